"""How an action is typed in a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planforge.actions import Action, written

if TYPE_CHECKING:
    from planforge.actions import Hint


def command(action: Action) -> str:
    """The command line that carries an action out; a blank is for the person to fill in."""
    return f"planforge {action}"


def text(hint: Hint | None) -> str:
    """A hint as it is printed in a sentence; empty for none."""
    return written(hint, command) if hint else ""


def line(hint: Hint) -> str:
    """A hint as it stands by itself, in a column or a document: an action without backticks."""
    return command(hint) if isinstance(hint, Action) else text(hint)
