"""How an action is typed in a shell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from planforge.actions import Action, Advice, Blank, written

if TYPE_CHECKING:
    from planforge.actions import Hint, Value


def command(action: Action) -> str:
    """The command line that carries an action out; a blank is for the person to fill in."""
    words = ["planforge", action.verb, *map(_word, action.items)]
    for name, value in action.options.items():
        if value is not False:
            words.append(f"--{name.replace('_', '-')}")
            words += [] if value is True else [_word(value)]
    return " ".join(words)


def _word(value: Value) -> str:
    if isinstance(value, Blank):
        return f'"{value}"' if " " in value else value
    return shlex.quote(str(value))


def encoded(value: object) -> str:
    """An action or advice within a document, as it is printed."""
    if isinstance(value, Action):
        return command(value)
    if isinstance(value, Advice):
        return text(value)
    raise NotImplementedError(f"no document has a {type(value).__name__}")


def text(hint: Hint) -> str:
    """A hint as it is printed."""
    return written(hint, command)
