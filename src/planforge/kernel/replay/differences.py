"""
Whether two sides are the same, and if not, where they differ.

Where secrets were taken out of what is stored, only the rest is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from planforge.kernel.events import Event
from planforge.kernel.objects import encode

REDACTED = re.compile(rb"\[redacted:[^\]\"]*\]")
"""What is left in the place of a secret. A fingerprint is made before secrets are taken out."""


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One place where the two sides differ; a side without it leaves it out."""

    path: str
    recorded: object = msgspec.UNSET
    asked: object = msgspec.UNSET


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where a flow and its recording part, with both sides."""

    key: str
    problem: str
    recorded: object
    """What is on record, None if nothing is."""
    asked: object
    """What the flow asked for or noted, None if nothing."""
    fields: tuple[FieldDifference, ...]


def differing(key: str, problem: str, recorded: object, asked: object) -> Difference:
    """A difference with the fields that make it."""
    fields = tuple(_fields(recorded, asked)) if _comparable(recorded, asked) else ()
    return Difference(key=key, problem=problem, recorded=recorded, asked=asked, fields=fields)


def _comparable(recorded: object, asked: object) -> bool:
    """Whether both are the same kind of thing, so that it says something to compare their fields."""
    if not (isinstance(recorded, dict) and isinstance(asked, dict)):
        return False
    return all(recorded.get(name) == asked.get(name) for name in ("effect", "fact"))


def _fields(recorded: object, asked: object, path: str = "") -> Iterator[FieldDifference]:
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for name in [*recorded, *(name for name in asked if name not in recorded)]:
            one, other = recorded.get(name, msgspec.UNSET), asked.get(name, msgspec.UNSET)
            yield from _fields(one, other, f"{path}.{name}" if path else str(name))
    elif isinstance(recorded, list) and isinstance(asked, list) and len(recorded) == len(asked):
        for number, (one, other) in enumerate(zip(recorded, asked, strict=True)):
            yield from _fields(one, other, f"{path}[{number}]")
    elif recorded is not asked and recorded != asked:
        yield FieldDifference(path=path, recorded=recorded, asked=asked)


def value_of(event: Event) -> object:
    """A fact as JSON values, with its name."""
    return {"fact": type(event).__name__} | msgspec.json.decode(encode(event), type=dict)


def same_but_redacted(stored: bytes, asked: bytes) -> bool:
    """Whether `stored` is `asked` with something else in the places that were redacted, and only there."""
    first, *others = REDACTED.split(stored)
    if not others:
        return stored == asked
    *between, last = others
    if not asked.startswith(first) or not asked.endswith(last):
        return False
    at, end = len(first), len(asked) - len(last)
    for part in between:
        found = asked.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end
