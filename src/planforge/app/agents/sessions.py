"""
Conversations with agents that are gone on with, on record so that a resumed run finds them.

A conversation has a name of ours (`forge:plan-001:auditor`) and one of the agent's. It is taken up only with
the same agent and the same model, in the private home in which it began. It is over when an attempt in it has
failed, when the agent hands over to another, and when the agent does not know it any more.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property

import msgspec

from planforge.kernel.effects import Usage
from planforge.kernel.events import Event, SessionKept, SessionLost
from planforge.kernel.ledger import Ledger
from planforge.kernel.redaction import Redactor


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """One that can be gone on with."""

    session: str
    home: str
    began_at: str
    used: Usage | None
    """What it has used until now, as far as it is known."""
    unfinished: bool
    """Its agent was cut off by a limit; the worktree is as it left it."""


class Sessions:
    """The conversations of one run."""

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger = ledger
        self._run = run

    @cached_property
    def _redact(self) -> Redactor:
        return Redactor.of_environment()

    def now(self) -> str:
        """Now, as the beginning of a conversation."""
        return self._ledger.now().astimezone(UTC).isoformat(timespec="microseconds")

    def age(self, found: Conversation) -> float:
        """For how many seconds a conversation has been going on."""
        return (self._ledger.now() - datetime.fromisoformat(found.began_at)).total_seconds()

    def find(self, conversation: str, agent: str, model: str) -> Conversation | None:
        """The conversation of this name, unless it is over. One with another agent or model is over now."""
        found = self._newest(conversation)
        if not isinstance(found, SessionKept):
            return None
        if (found.agent, found.model) != (agent, model):
            self.lose(
                conversation, f"{_who(agent, model)} goes on instead of {_who(found.agent, found.model)}"
            )
            return None
        used = Usage(
            input_tokens=found.input_tokens,
            output_tokens=found.output_tokens,
            cached_tokens=found.cached_tokens,
        )
        return Conversation(
            session=found.session,
            home=found.home,
            began_at=found.began_at,
            used=used if used.input_tokens or used.output_tokens else None,
            unfinished=found.unfinished,
        )

    def keep(self, conversation: str, agent: str, model: str, found: Conversation) -> None:
        """Remember a conversation, with what it has used in all."""
        used = found.used or Usage(input_tokens=0, output_tokens=0)
        self._record(
            SessionKept(
                run=self._run,
                conversation=conversation,
                agent=agent,
                model=model,
                session=found.session,
                home=found.home,
                began_at=found.began_at,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cached_tokens=used.cached_tokens,
                unfinished=found.unfinished,
            )
        )

    def lose(self, conversation: str, reason: str) -> None:
        """Say that a conversation is over; nothing is said of one that there is not."""
        found = self._newest(conversation)
        if isinstance(found, SessionKept):
            self._record(
                SessionLost(run=self._run, conversation=conversation, agent=found.agent, reason=reason)
            )

    def _newest(self, conversation: str) -> SessionKept | SessionLost | None:
        newest = None
        for recorded in self._ledger.stream(stream(self._run)):
            event = recorded.event
            if isinstance(event, SessionKept | SessionLost) and event.conversation == conversation:
                newest = event
        return newest

    def _record(self, event: Event) -> None:
        self._ledger.append(stream(self._run), [self._redact.struct(event)], expected=None)


def _who(agent: str, model: str) -> str:
    return f"`{agent}` with `{model}`" if model else f"`{agent}`"


def stream(run: str) -> str:
    """The stream in which the conversations of a run are recorded."""
    return f"sessions/{run}"
