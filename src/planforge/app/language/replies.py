"""What comes back from a command, and who gave it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import msgspec

from planforge.actions import Action, written
from planforge.errors import InvalidInput, PlanforgeError, nearest
from planforge.rules.commands import Command, Misused, NoCommand, parse, shapes
from planforge.rules.commands.grammar import WORDS

if TYPE_CHECKING:
    from planforge.app.overview import Overview

OURS = re.compile(r"`planforge (?P<rest>[^`]+)`")
REASON = re.compile(r"\s+--reason TEXT\b")
AS = "`--as NAME`"


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
    next: tuple[str, ...] = ()
    """What it makes sense to type now."""
    runs: tuple[str, ...] = ()
    """Runs that were begun and that nobody drives yet."""
    error: str = ""
    """The name of what was refused or failed."""


def said(text: str, *, data: object = None, then: tuple[str, ...] = (), runs: tuple[str, ...] = ()) -> Reply:
    """A reply to a command that was done."""
    return Reply(text=text, data=data, next=then, runs=runs)


def refused(error: PlanforgeError, command: Command | None = None) -> Reply:
    """A reply to a command that was not."""
    hint = f"\n{in_our_words(written(error.hint, _as_in_shell))}" if error.hint else ""
    return Reply(
        text=f"{in_our_words(error.message)}{hint}",
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


def typed_here(found: Overview) -> Overview:
    """The state of a project with every command that can be typed here as it is typed here."""
    waiting = [msgspec.structs.replace(each, command=_command(each.command)) for each in found.waiting]
    return msgspec.structs.replace(found, next=tuple(map(_command, found.next)), waiting=tuple(waiting))


def _command(command: str) -> str:
    return in_our_words(f"`{command}`").strip("`")


def _as_in_shell(action: Action) -> str:
    """An action as it is typed in a shell, from which `in_our_words` makes what is typed here."""
    options = [f"--{name.replace('_', '-')} {value}" for name, value in action.options.items()]
    return " ".join(
        ["planforge", action.verb, *action.items, *(each.removesuffix(" True") for each in options)]
    )


def in_our_words(text: str) -> str:
    """A text that names commands of the shell, with those that can be typed here as they are typed here."""

    def ours(found: re.Match[str]) -> str:
        typed = _typed_here(REASON.sub("", found["rest"]))
        return f"`{typed}`" if typed else found[0]

    return OURS.sub(ours, text).replace(AS, "`planforge chat --as NAME`")


def _typed_here(shell: str) -> str:
    """What is typed here for a command of the shell; empty if that does what nothing here does."""
    try:
        words = shlex.split(shell)
    except ValueError:
        return ""
    match words:
        case ["forge" | "fix" as command, said] if not shell.endswith(f" {said}"):  # in quotation marks
            return _described(command, said)
        case ["plan", "create", said]:
            return _described("plan", said)
    meant = parse(f"!{shell}")
    if isinstance(meant, NoCommand | Misused | shapes.PlanCreate | shapes.ForgeCreate | shapes.Fix):
        return ""
    return f"!{shell}"


def _described(command: str, said: str) -> str:
    """A command with a description, in quotation marks; empty if it would be read as something else."""
    typed = f'!{command} "{said}"'
    return typed if getattr(parse(typed), "description", None) == said else ""
