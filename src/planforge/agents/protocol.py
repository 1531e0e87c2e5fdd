"""
What every agent is asked, and how every adapter answers.

An adapter puts one `Task` to one program in one `Place` and returns an `AgentAnswer`, or raises one of the
errors that say what kind of failure it was: `AgentFailed`, `AgentTimedOut`, `AgentCancelled`, `AgentLimited`,
`AgentUnauthenticated`, `AgentUnavailable`, `AgentMalformed`, `AgentEmpty`. An answer needs a terminal event
without an error flag; an exit code alone proves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from planforge.agents.profiles import Profile
from planforge.kernel.effects import Access, AgentAnswer, Usage


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of an agent."""

    prompt: str
    access: Access
    model: str = ""
    """Empty is the agent's own choice."""
    session: str = ""
    """The agent's own name of a conversation to go on with; empty begins a new one."""
    schema: str = ""
    """A JSON schema that the answer is to have, for those that can be held to one."""
    seconds: float = 1800.0
    """How long it may take."""
    idle_seconds: float = 0.0
    """How long it may be silent; 0 is as long as it likes."""
    threshold: int = 0
    """At how many tokens in its context it is stopped, so that another can go on; 0 is never."""
    before: Usage | None = None
    """What the conversation that is gone on with had used before, for agents that count the whole of it."""


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent wants to do, before it does it."""

    kind: str
    """read, edit, delete, move, search, execute, think, fetch, switch_mode or other."""
    title: str
    paths: tuple[str, ...] = ()
    """The files it names, absolute or relative to its worktree."""


class Permit(Protocol):
    """Answers an agent that asks whether it may."""

    def __call__(self, request: ToolRequest) -> Awaitable[bool]:
        """Whether it may, this once."""


class Launch(Protocol):
    """Starts a program the way Planforge starts programs: confined, limited, known by its cookie."""

    def __call__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path
    ) -> Awaitable[asyncio.subprocess.Process]:
        """Start it with its three streams as pipes."""


class End(Protocol):
    """Ends a program and everything it started, wherever that went."""

    def __call__(self, process: asyncio.subprocess.Process) -> Awaitable[None]:
        """End it."""


class Heard(Protocol):
    """Is told of every sign of life."""

    def __call__(self, what: str) -> None:
        """`what` is a line for people: the tool that was called, the file that was read."""


class Noted(Protocol):
    """Is told what a call is known to have come to so far, so that it is known also if the call fails."""

    def __call__(self, *, session: str = "", usage: Usage | None = None, money: int | None = None) -> None:
        """The conversation's name as soon as there is one; usage and money of this call, as often as they
        are heard of, each time in all."""


def unnoted(*, session: str = "", usage: Usage | None = None, money: int | None = None) -> None:
    """Nobody wants to know."""
    del session, usage, money


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent works, and who starts, ends, permits and hears it."""

    cwd: Path
    home: Path
    """Its private home: configuration, login and sessions, nobody else's."""
    argv: tuple[str, ...]
    """The whole command that starts it, as `homes.prepare` furnished it. An adapter only appends to it what
    depends on the task: a conversation to resume, a schema, the prompt."""
    env: Mapping[str, str]
    """The whole environment of that command, besides `variables`."""
    launch: Launch
    end: End
    permit: Permit
    heard: Heard
    noted: Noted = unnoted
    variables: Mapping[str, str] = {}
    """What it finds in its environment besides what its profile says: ports, caches."""


class Adapter(Protocol):
    """One way to talk to agents."""

    def __call__(self, name: str, profile: Profile, task: Task, place: Place) -> Awaitable[AgentAnswer]:
        """Put the task and return the answer, or raise what kind of failure it was."""
