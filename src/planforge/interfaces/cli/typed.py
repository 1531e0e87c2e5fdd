"""How an action is typed in a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planforge.actions import Action, Advice, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planforge.actions import Hint


def command(action: Action) -> str:
    """The command line that carries an action out; a blank is for the person to fill in."""
    return f"planforge {action}"


def text(hint: Hint | None) -> str:
    """A hint as it is printed in a sentence; empty for none."""
    return written(hint, command) if hint else ""


def next_lines(hints: Sequence[Hint]) -> list[str]:
    """One line for each hint: `next:` for a command, `then:` for advice."""
    return [f"then: {text(hint)}" if isinstance(hint, Advice) else f"next: {line(hint)}" for hint in hints]


def line(hint: Hint) -> str:
    """A hint outside a sentence, in a column or a document: an action without backticks."""
    return command(hint) if isinstance(hint, Action) else text(hint)
