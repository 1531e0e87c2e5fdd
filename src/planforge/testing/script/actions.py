"""
What a script can have an agent do.

Structures have a base of their own because importing `dataclasses`, or making so
many `NamedTuple`s, would add a tenth to a third to the time that the rehearsal
agent needs to start.
"""

import re
from collections.abc import Mapping
from typing import ClassVar, Self, dataclass_transform

PLACEHOLDER = re.compile(r"\$?\$\{(\w+)\}")


@dataclass_transform(frozen_default=True)
class Structure:
    """Fields in the order of their annotations, given by position or by name and never changed."""

    names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.names = tuple(cls.__annotations__) if "__annotations__" in vars(cls) else ()
        setattr(cls, "__match_args__", cls.names)

    def __init__(self, *values: object, **named: object) -> None:
        self.__dict__.update(zip(self.names, values, strict=False), **named)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash((type(self), *self.fields().values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fields()})"

    def fields(self) -> dict[str, object]:
        """The fields and their values, in order."""
        return {name: getattr(self, name) for name in self.names}

    def changed(self, **named: object) -> Self:
        """The same with other values for some fields."""
        return type(self)(**{**self.fields(), **named})


class Say(Structure):
    """Stream text as one kind of session update: the agent's message or its thought."""

    update: str
    text: str


class Remark(Structure):
    """Say something on the way, before the next tool is used."""

    text: str


class Raw(Structure):
    """Put text as it is on stdout, where only JSON-RPC belongs, or on stderr."""

    descriptor: int
    text: str


class Bytes(Structure):
    """Put bytes on stdout that need not be text at all."""

    data: bytes


class Flood(Structure):
    """Stream this many bytes of message, or message without end."""

    size: float


class Line(Structure):
    """Send a message of this many bytes in a single line."""

    size: int


class Write(Structure):
    """Write a file or add to its end, inside the session's directory or not."""

    path: str
    text: str
    append: bool


class Edit(Structure):
    """Put one text in the place of another that stands in a file once."""

    path: str
    old: str
    new: str


class Read(Structure):
    """Read a file."""

    path: str


class Delete(Structure):
    """Remove a file."""

    path: str


class Run(Structure):
    """Run a command in the session's directory and wait for it."""

    argv: tuple[str, ...]


class Detach(Structure):
    """Leave a child behind in a session of its own."""

    seconds: float


class Tool(Structure):
    """Call a tool by its own name; the rehearsal agent only says that it did."""

    name: str
    input: Mapping[str, object]
    kind: str
    paths: tuple[str, ...]
    status: str
    output: str


class Sleep(Structure):
    """Do nothing for a while, or for ever."""

    seconds: float


class Ask(Structure):
    """Ask the client for permission, wait for its answer and continue accordingly."""

    title: str
    kind: str
    paths: tuple[str, ...] = ()
    allowed: tuple["Cue", ...] = ()
    denied: tuple["Cue", ...] = ()


class Deaf(Structure):
    """Never answer, and hear neither a cancellation nor the end of the client."""


class Stop(Structure):
    """Choose the stop reason that the turn will end with."""

    reason: str


class Usage(Structure):
    """Add to the usage that the turn will report, in the protocol's names."""

    tokens: tuple[tuple[str, int], ...]


class Quota(Structure):
    """Report tokens in `_meta.quota`, as some agents do instead of in `usage`."""

    input: int
    output: int


class Context(Structure):
    """Say how many tokens are in context now, of how many, and what all of it has cost so far."""

    used: int
    size: int = 0
    cost: float | None = None
    currency: str = "USD"


class Plan(Structure):
    """Say which steps are planned, each with how far it is."""

    entries: tuple[tuple[str, str], ...]


class Mode(Structure):
    """Change the session's mode without being asked to."""

    name: str


class Error(Structure):
    """Answer the prompt with a JSON-RPC error, the first `times` times that it is asked."""

    code: int
    message: str
    data: object = None
    times: int = 0


class Http(Structure):
    """Have the model's server refuse with this status, the first `times` times that it is asked."""

    status: int
    message: str
    reset: float | None
    """Seconds from now on; an instant is the negative of its seconds since 1970."""
    body: str | None
    times: int

    def resets_at(self, now: float) -> float | None:
        """When the refusal ends, in seconds since 1970."""
        return self.reset if self.reset is None else -self.reset if self.reset < 0 else now + self.reset


class Slow(Structure):
    """Have the model's answer trickle, so many seconds between any two pieces."""

    seconds: float


class Truncate(Structure):
    """Have the model's answer break off in the middle."""


class Drop(Structure):
    """Have the model's server close the connection without a word."""


class Exit(Structure):
    """End the process without an answer."""

    code: int


class Leave(Structure):
    """End the process with this code once the prompt is answered."""

    code: int


class Twice(Structure):
    """Answer the prompt two times."""


class Die(Structure):
    """End the process by a signal."""

    signal: int


Ending = Stop | Usage | Quota | Error | Http | Exit | Leave | Twice | Die | Deaf | Truncate | Drop
Change = Write | Edit | Delete
Noise = Raw | Bytes | Flood | Line | Slow
Doing = Change | Read | Run | Detach | Tool
Action = Say | Remark | Noise | Doing | Sleep | Ask | Context | Plan | Mode | Ending


class Cue(Structure):
    """An action, and the answer (`allowed` or `denied`) without which it is left out."""

    action: Action
    only_if: str | None


def filled(action: Action, values: Mapping[str, str]) -> Action:
    """The action with each `${name}` replaced; `$${name}` stands for a literal `${name}`."""

    def value_of(hit: re.Match[str]) -> str:
        return hit[0][1:] if hit[0].startswith("$$") else values[hit[1]]

    def fill(field: object) -> object:
        if isinstance(field, str):
            return PLACEHOLDER.sub(value_of, field)
        if isinstance(field, Cue):  # it is filled when its turn has come
            return field
        if isinstance(field, dict):
            return {key: fill(value) for key, value in field.items()}
        if isinstance(field, list):
            return list(map(fill, field))
        return tuple(map(fill, field)) if isinstance(field, tuple) else field

    return action.changed(**{name: fill(value) for name, value in action.fields().items()})
