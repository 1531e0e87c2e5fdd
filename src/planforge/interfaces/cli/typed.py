"""How an action is typed in a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planforge.actions import Action, Advice, Blank, written

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    word = str(value)
    if word.isascii() and word.replace("-", "").isalnum():
        return word
    from shlex import quote  # which `status` seldom needs

    return quote(word)


def next_lines(hints: Sequence[Hint]) -> list[str]:
    """What can be done next, a line each: commands, then what takes more than one."""
    return [f"then: {text(hint)}" if isinstance(hint, Advice) else f"next: {bare(hint)}" for hint in hints]


def bare(hint: Hint) -> str:
    """A hint that stands in a line of its own: a command needs no backticks there."""
    return command(hint) if isinstance(hint, Action) else text(hint)


def encoded(value: object) -> str:
    """An action or an advice in a JSON document: as it is typed."""
    if isinstance(value, Action | Advice):
        return bare(value)
    raise NotImplementedError(f"{type(value).__name__} is in no document")


def text(hint: Hint) -> str:
    """A hint as it is printed."""
    return written(hint, command)
