"""What comes back from a command, and who gave it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from planforge.actions import TEXT, Action, Blank, Hint, written
from planforge.errors import InvalidInput, PlanforgeError, nearest
from planforge.rules.commands import Command, Misused, parse
from planforge.rules.commands.grammar import WORDS

NAMED = Action("chat", **{"as": Blank("NAME")})
"""How a person says who they are: when the chat begins, not with each command."""


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """Who gives a command."""

    name: str | None = None
    """Who decides, if they say so; otherwise it is whoever git knows."""
    depth: int = 0
    """0 is a person, 1 what an agent's answer to one asks for."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a command came to."""

    schema_version: int = 1
    kind: str = "reply"
    """`reply` to a command, `answer` of an agent, or `ended` for a run that went on in the background."""
    text: str
    command: Command | None = None
    exit_code: int = 0
    data: Any = None
    hint: Hint | None = None
    """What can be done about what was refused."""
    next: tuple[Hint, ...] = ()
    """What it makes sense to do now."""
    runs: tuple[str, ...] = ()
    """Runs that were begun and that nobody drives yet."""
    error: str = ""
    """The name of what was refused or failed."""


def said(text: str, *, data: object = None, then: tuple[Hint, ...] = (), runs: tuple[str, ...] = ()) -> Reply:
    """A reply to a command that was done."""
    return Reply(text=text, data=data, next=then, runs=runs)


def refused(error: PlanforgeError, command: Command | None = None) -> Reply:
    """A reply to a command that was not."""
    return Reply(
        text=error.message,
        hint=error.hint,
        command=command,
        exit_code=error.exit_code,
        error=type(error).__name__,
    )


def misused(found: Misused) -> Reply:
    """A reply to a command that is not written as it must be."""
    hint = f"\n{found.hint}" if found.hint else ""
    return Reply(
        text=f"{found.problem}\nusage: {found.usage}{hint}",
        exit_code=InvalidInput.exit_code,
        error="Misused",
    )


def unknown(word: str) -> Reply:
    """A reply to what looks like a command and is none: nobody is paid to read a slip of the finger."""
    near = nearest(word, WORDS)
    guess = f"; did you mean `!{near}`?" if near else ""
    rest = "`!help` lists them; what does not begin with `!` goes to an agent"
    return Reply(
        text=f"`!{word}` is no command{guess}\n{rest}",
        exit_code=InvalidInput.exit_code,
        error="Unknown",
        next=("!help",),
    )


# What is typed here


def typed(action: Action) -> str:
    """How an action is typed here; empty if nothing here does it. Here a reason may be left out."""
    match action:
        case Action(verb="forge" | "fix" as verb, items=(words,)) if " " in words and not action.options:
            return _described(verb, words)
        case Action(verb="plan create", items=(words,)) if not action.options:
            return _described("plan", words)
    options = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}")
        for name, value in action.options.items()
        if value is not TEXT
    ]
    return _if_known(" ".join([action.verb, *action.items, *options]))


def _plainly(action: Action) -> str:
    return " ".join((action.verb, *action.items))


def worded(hint: Hint, shell: Callable[[Action], str] = _plainly) -> str:
    """A hint with each action as it is typed here, or in the shell if nothing here does it."""
    if isinstance(hint, str):
        return hint.replace("`--as NAME`", f"`{shell(NAMED)}`")
    return written(hint, lambda action: typed(action) or shell(action))


def line(hint: Hint, shell: Callable[[Action], str] = _plainly) -> str:
    """What stands in a line of its own: a command needs no backticks there."""
    return worded(hint, shell).strip("`") if isinstance(hint, Action) else worded(hint, shell)


def shown(reply: Reply, shell: Callable[[Action], str] = _plainly) -> str:
    """A whole reply, as a person reads it."""
    hint = [worded(reply.hint, shell)] if reply.hint else []
    return "\n".join([reply.text, *hint, *(f"next: {line(each, shell)}" for each in reply.next)])


def _if_known(words: str) -> str:
    """The command that these words are, if they are one that is about something which is there."""
    meant = parse(f"!{words}")
    return f"!{words}" if isinstance(meant, Command) and not meant.description else ""


def _described(command: str, said: str) -> str:
    """A command with a description, in quotation marks; empty if it would be read as something else."""
    words = f'!{command} "{said}"'
    return words if getattr(parse(words), "description", None) == said else ""
