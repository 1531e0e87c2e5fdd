"""
What we ask an agent, by method: what goes with it, and what comes back.

Nothing is said that is not needed: a capability that is not named is one that we do not have.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from planforge import __version__
from planforge.agents.acp.answers import Begun, Chosen, Ended, Greeted, Implementation, Session, Set
from planforge.agents.acp.parts import Part, read
from planforge.agents.acp.updates import TextBlock

PROTOCOL_VERSION = 1

P = TypeVar("P")
A = TypeVar("A")


class Initialize(Part, frozen=True, kw_only=True):
    """Who we are. Files and terminals are not offered."""

    protocol_version: int
    client_info: Implementation


class NewSession(Part, frozen=True, kw_only=True):
    """Open a session. `meta` goes to those who know what it means."""

    cwd: str
    mcp_servers: list[Any]
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


class TakeUp(NewSession, frozen=True, kw_only=True):
    """Go on with a session."""

    session_id: str


class SetMode(Part, frozen=True, kw_only=True):
    """Be in another mode."""

    session_id: str
    mode_id: str


class SetOption(Part, frozen=True, kw_only=True):
    """Take another value for an option."""

    session_id: str
    config_id: str
    value: str


class Prompt(Part, frozen=True, kw_only=True):
    """Do this."""

    session_id: str
    prompt: list[TextBlock]
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


class Cancel(Part, frozen=True, kw_only=True):
    """Stop what you are at."""

    session_id: str


class Method(msgspec.Struct, Generic[P, A], frozen=True):
    """One thing that can be asked."""

    name: str
    params: type[P]
    answer: type[A]
    blank: bool = False
    """Whether an answer that is no object counts as an empty one: some agents answer with nothing."""

    def read(self, raw: object) -> A:
        """Parse an answer; raises `ValueError` if it is not valid."""
        try:
            return read(self.answer, {} if self.blank and not isinstance(raw, dict) else raw)
        except ValueError as error:
            raise ValueError(f"what it answered to `{self.name}` is no answer: {error}") from error


HELLO = Initialize(
    protocol_version=PROTOCOL_VERSION, client_info=Implementation(name="planforge", version=__version__)
)
INITIALIZE = Method("initialize", Initialize, Greeted)
NEW_SESSION = Method("session/new", NewSession, Begun)
LOAD_SESSION = Method("session/load", TakeUp, Session, blank=True)
RESUME_SESSION = Method("session/resume", TakeUp, Session)
SET_MODE = Method("session/set_mode", SetMode, Set, blank=True)
SET_OPTION = Method("session/set_config_option", SetOption, Chosen, blank=True)
PROMPT = Method("session/prompt", Prompt, Ended)

CANCEL = "session/cancel"
"""Not asked but told."""
