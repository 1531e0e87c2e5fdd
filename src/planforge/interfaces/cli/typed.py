"""How an action is typed in a shell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from planforge.actions import Action, Blank, written

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


def text(hint: Hint | None) -> str:
    """A hint as it is printed in a sentence; empty for none."""
    return written(hint, command) if hint else ""


def line(hint: Hint) -> str:
    """A hint as it stands by itself, in a column or a document: an action without backticks."""
    return command(hint) if isinstance(hint, Action) else text(hint)
