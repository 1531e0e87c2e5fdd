"""Checks of what stands in a script: each returns the value as what is wanted, or says what is wrong."""

import json
import math
from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind")


class ScriptError(Exception):
    """A script that cannot be played; the message says where and why."""


def expect(value: object, kind: type[Kind], called: str) -> Kind:
    """The value, if it is of this kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"wants {called}, not `{json.dumps(value)}`")
    return value


def mapping(value: object) -> dict[str, object]:
    """A JSON object."""
    return expect(value, dict, "an object")


def listed(value: object) -> list[object]:
    """A JSON list."""
    return expect(value, list, "a list")


def text(value: object) -> str:
    """A text."""
    return expect(value, str, "a text")


def texts(value: object) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(map(text, listed(value)))


def whole(value: object, low: float = 0, high: float = math.inf) -> int:
    """A whole number in these bounds."""
    number = expect(value, int, "a whole number")
    if not low <= number <= high:
        raise ValueError(f"wants a whole number from {low} to {high}, not `{number}`")
    return number


def fields(value: object, *required: str, optional: tuple[str, ...] = ()) -> dict[str, object]:
    """An object with all of the required keys and none but those and the optional ones."""
    found = mapping(value)
    for key in required:
        if key not in found:
            raise ValueError(f"has no `{key}`")
    for key in found:
        if key not in required and key not in optional:
            raise ValueError(f"has an unknown key `{key}`")
    return found


def seconds(value: object) -> float:
    """A number of seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
        raise ValueError(f"wants seconds, not `{json.dumps(value)}`")
    return float(value)


def one_of(*known: str) -> Callable[[object], str]:
    """A check for one of these texts."""

    def choice(value: object) -> str:
        if value not in known:
            raise ValueError(f"wants one of {', '.join(known)}, not `{json.dumps(value)}`")
        return str(value)

    return choice
