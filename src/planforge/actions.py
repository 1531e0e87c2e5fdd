"""
What can be done next, as a value.

An action is a verb, the items it is about and its options. Errors, views and documents carry actions. The
command line, the chat and every other interface decide how an action is typed or clicked there, so no
command line stands as text below `interfaces`.

    Action("plan skip", "plan-001", "phase-2", reason=TEXT)
    Advice("read {}, then run {}", "`plans/plan-001.md`", Action("plan approve", "plan-001"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

# fmt: off
Verb = Literal[
    "agent add", "agent list", "agent remove", "agent test", "backtest", "bench guardrails", "budget",
    "cancel", "chat", "check-proof", "cleanup", "context", "demo", "doctor", "evidence", "fix", "forge",
    "forge cancel", "forge status", "gate approve", "gate check", "gate list", "gate reject", "gate show",
    "graph", "handoff list", "handoff show", "init", "land", "lease list", "lease release", "lesson add",
    "lesson list", "lesson promote", "lesson show", "lesson stale", "lesson supersede", "link", "log",
    "pipeline check", "pipeline list", "pipeline run", "pipeline show", "plan adopt", "plan approve",
    "plan audit", "plan cancel", "plan close", "plan create", "plan decompose", "plan diff",
    "plan evidence", "plan import", "plan land", "plan list", "plan phases", "plan reopen",
    "plan retry", "plan run", "plan run-one", "plan run-phase", "plan show", "plan skip", "plan skip-to",
    "plan tasks", "policy list", "policy simulate", "prove", "question answer", "question list",
    "question show", "rebuild", "recover", "replay", "resume", "role list", "role show", "scan", "schema",
    "score", "states", "status", "task abandon", "task list", "task log", "task override", "task resume",
    "task show", "verdict", "verify", "why", "worktree list",
]
# fmt: on
"""Everything that can be done."""


class Blank(str):
    """A place that a person fills in: `TEXT`, `BRANCH`, "what you want"."""

    __slots__ = ()


TEXT = Blank("TEXT")
"""A reason or a remark in the person's own words."""

REQUEST = Blank("what you want")
"""A request in the person's own words."""

Value = str | int | bool


class Action:
    """One thing that a person or a program can do next."""

    __slots__ = ("items", "options", "verb")

    def __init__(self, verb: Verb, *items: str, **options: Value) -> None:
        """A name that Python reserves ends with `_`: `from_`."""
        self.verb = verb
        self.items = items
        self.options = {name.rstrip("_"): value for name, value in options.items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Action):
            return NotImplemented
        return (self.verb, self.items, self.options) == (other.verb, other.items, other.options)

    def __hash__(self) -> int:
        return hash((self.verb, self.items, tuple(self.options.items())))

    def __repr__(self) -> str:
        options = [f"{name}={value!r}" for name, value in self.options.items()]
        return f"Action({', '.join([*map(repr, (self.verb, *self.items)), *options])})"

    def __str__(self) -> str:
        """The action in words, quoted as a shell wants them; an interface says what comes before them."""
        options: list[str] = []
        for name, value in self.options.items():
            if value is not False:
                options.append(f"--{name.replace('_', '-')}")
                options += [] if value is True else [_word(value)]
        items = list(map(_word, self.items))
        if any(item.startswith("-") for item in self.items):  # it would be taken for an option
            return " ".join([self.verb, *options, "--", *items])
        return " ".join([self.verb, *items, *options])


def _word(value: Value) -> str:
    if isinstance(value, Blank):
        return f'"{value}"' if " " in value else value
    from shlex import quote

    return quote(str(value))


class Advice:
    """A sentence with an action, a text or another sentence at each `{}`."""

    __slots__ = ("pieces",)

    def __init__(self, text: str, *parts: Hint) -> None:
        """What comes from a person goes into `parts`: a `{}` in it stays what it is."""
        head, *rest = text.split("{}")
        found: list[str | Action] = [head]
        for part, after in zip(parts, rest, strict=True):
            found += [*pieces(part), after]
        self.pieces = tuple(piece for piece in found if piece != "")

    def __eq__(self, other: object) -> bool:
        return self.pieces == other.pieces if isinstance(other, Advice) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.pieces)

    def __repr__(self) -> str:
        return f"Advice({', '.join(map(repr, self.pieces))})"

    def __str__(self) -> str:
        return written(self, str)


Hint = str | Action | Advice


def see(verb: Verb, *items: str) -> Advice:
    """Where to look."""
    return Advice("see {}", Action(verb, *items))


def pieces(hint: Hint | None) -> tuple[str | Action, ...]:
    """A hint as texts and actions; none for no hint."""
    if isinstance(hint, Advice):
        return hint.pieces
    return (hint,) if hint else ()


def pieced(found: Iterable[str | Action]) -> Hint | None:
    """A hint of its texts and actions."""
    match tuple(found):
        case ():
            return None
        case (one,):
            return one
        case several:
            return Advice("{}" * len(several), *several)


def written(hint: Hint, say: Callable[[Action], str]) -> str:
    """A hint in words, with each action as `say` writes it, in backticks."""
    return "".join(f"`{say(piece)}`" if isinstance(piece, Action) else piece for piece in pieces(hint))
