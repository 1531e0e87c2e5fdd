"""What an agent answers to our requests, as far as we read it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from planforge.agents.acp.parts import FORGIVEN, PICKED, Part, read

Count = Annotated[int, msgspec.Meta(ge=0)]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]

# To a greeting


class SessionCapabilities(Part, frozen=True, kw_only=True):
    """What it can do with sessions besides opening them."""

    resume: Annotated[dict[str, Any] | None, FORGIVEN] = None
    """There, and empty, if it can."""


class Capabilities(Part, frozen=True, kw_only=True):
    """What it can do."""

    load_session: Annotated[bool | None, FORGIVEN] = False
    session_capabilities: Annotated[SessionCapabilities | None, FORGIVEN] = SessionCapabilities()


class Implementation(Part, frozen=True, kw_only=True):
    """A program and its version."""

    name: str
    version: str


class Greeted(Part, frozen=True, kw_only=True):
    """It greets back."""

    protocol_version: Annotated[int, msgspec.Meta(ge=0, le=65535)]
    agent_capabilities: Annotated[Capabilities | None, FORGIVEN] = Capabilities()
    auth_methods: list[Any] | None = []
    """Not read, but a list."""
    agent_info: Annotated[Implementation | None, FORGIVEN] = None


# To the opening of a session


class Mode(Part, frozen=True, kw_only=True):
    """One of the modes that it can be in."""

    id: str
    name: str


class Modes(Part, frozen=True, kw_only=True):
    """The mode that it is in, and those that it has."""

    current_mode_id: str
    available_modes: Annotated[tuple[Mode, ...], PICKED]


class Choice(Part, frozen=True, kw_only=True):
    """One value of an option."""

    value: str
    name: str


class Group(Part, frozen=True, kw_only=True):
    """Values that it shows together."""

    group: str
    name: str
    options: Annotated[tuple[Choice, ...], PICKED]


class Select(Part, frozen=True, kw_only=True):
    """An option of a session that has one of several values."""

    type: Literal["select"]
    id: str
    name: str
    current_value: str
    options: list[Any]
    category: Annotated[str | None, FORGIVEN] = None

    def __post_init__(self) -> None:
        _values(self.options)  # what cannot be chosen from is no option

    @property
    def values(self) -> tuple[str, ...]:
        """All that can be chosen."""
        return _values(self.options)


def _values(options: list[Any]) -> tuple[str, ...]:
    """Either all of them are in groups, or none is."""
    try:
        return tuple(read(Choice, found).value for found in options)
    except ValueError:
        groups = [read(Group, found) for found in options]
    return tuple(choice.value for group in groups for choice in group.options)


class Session(Part, frozen=True, kw_only=True):
    """An open session. Options without a list of values are ignored."""

    modes: Annotated[Modes | None, FORGIVEN] = None
    config_options: Annotated[tuple[Select, ...] | None, PICKED] = None


class Begun(Session, frozen=True, kw_only=True):
    """A new session."""

    session_id: str


class Set(Part, frozen=True, kw_only=True):
    """It has taken a mode."""


class Chosen(Part, frozen=True, kw_only=True):
    """It has taken a value of an option, and names all of them."""

    config_options: Annotated[tuple[Select, ...], PICKED]


# To a prompt


class Reported(Part, frozen=True, kw_only=True):
    """What it says a turn has used. What the figures mean differs by agent."""

    total_tokens: Count
    input_tokens: Count
    output_tokens: Count
    thought_tokens: Annotated[Count | None, FORGIVEN] = None
    cached_read_tokens: Annotated[Count | None, FORGIVEN] = None
    cached_write_tokens: Annotated[Count | None, FORGIVEN] = None


class Ended(Part, frozen=True, kw_only=True):
    """Its turn is over."""

    stop_reason: StopReason
    usage: Annotated[Reported | None, FORGIVEN] = None
    meta: Annotated[dict[str, Any] | None, FORGIVEN] = msgspec.field(name="_meta", default=None)
