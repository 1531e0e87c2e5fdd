"""
Conversations with agents that are gone on with, on record so that a resumed run finds them.

A conversation has a name of ours (`forge:plan-001:auditor`) and one of the agent's. It is taken up only with
the same agent and the same model, in the private home in which it began. It is over when an attempt in it has
failed, when the agent hands over to another, and when the agent does not know it any more.
"""

from __future__ import annotations

from datetime import UTC, datetime

from planforge.kernel.effects import Usage
from planforge.kernel.events import Event, SessionKept, SessionLost
from planforge.kernel.ledger import Ledger
from planforge.kernel.redaction import Redactor

NOTHING = Usage(input_tokens=0, output_tokens=0)


class Sessions:
    """The conversations of one run."""

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger = ledger
        self._run = run

    def now(self) -> str:
        """Now, as the beginning of a conversation."""
        return self._ledger.now().astimezone(UTC).isoformat(timespec="microseconds")

    def age(self, found: SessionKept) -> float:
        """For how many seconds a conversation has been going on."""
        return (self._ledger.now() - datetime.fromisoformat(found.began_at)).total_seconds()

    def find(self, conversation: str, agent: str, model: str) -> SessionKept | None:
        """The conversation of this name, unless it is over. One with another agent or model is over now."""
        found = self._newest(conversation)
        if not isinstance(found, SessionKept):
            return None
        if (found.agent, found.model) != (agent, model):
            self.lose(
                conversation, f"{_who(agent, model)} goes on instead of {_who(found.agent, found.model)}"
            )
            return None
        return found

    def keep(self, conversation: SessionKept) -> None:
        """Remember a conversation, with what it has used in all."""
        record(self._ledger, stream(self._run), conversation)

    def lose(self, conversation: str, reason: str) -> None:
        """Say that a conversation is over; nothing is said of one that there is not."""
        found = self._newest(conversation)
        if isinstance(found, SessionKept):
            lost = SessionLost(run=self._run, conversation=conversation, agent=found.agent, reason=reason)
            record(self._ledger, stream(self._run), lost)

    def _newest(self, conversation: str) -> SessionKept | SessionLost | None:
        newest = None
        for recorded in self._ledger.stream(stream(self._run)):
            event = recorded.event
            if isinstance(event, SessionKept | SessionLost) and event.conversation == conversation:
                newest = event
        return newest


def used(kept: SessionKept | None) -> Usage | None:
    """What a conversation has used until now, as far as it is known."""
    if kept is None or not (kept.input_tokens or kept.output_tokens):
        return None
    return Usage(
        input_tokens=kept.input_tokens, output_tokens=kept.output_tokens, cached_tokens=kept.cached_tokens
    )


def _who(agent: str, model: str) -> str:
    return f"`{agent}` with `{model}`" if model else f"`{agent}`"


def stream(run: str) -> str:
    """The stream in which the conversations of a run are recorded."""
    return f"sessions/{run}"


def record(ledger: Ledger, stream: str, event: Event) -> None:
    """Put on record what an agent may have said in its own words, without secrets."""
    ledger.append(stream, [Redactor.of_environment().struct(event)], expected=None)
