"""
What becomes of a run whose agent has reached its usage limit.

By the settings another agent takes over, or the run waits for this one: here, if the limit ends soon, or
parked without a process until it does. Which agent is limited until when is on record, so that the next call,
of whatever run, goes straight to another one where that is the policy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from planforge.actions import Action, Advice
from planforge.agents import roster
from planforge.app.agents.audience import Audience
from planforge.app.agents.sessions import record
from planforge.app.settings import AgentSettings
from planforge.errors import AgentLimited, NoAgent
from planforge.kernel.events import AgentSwitched, LimitReached

if TYPE_CHECKING:
    from planforge.app.project import Project

STREAM = "agents"
MARGIN = 1.0
"""How many seconds are waited beyond the end of a limit: clocks differ."""

LONGEST = timedelta(days=35)
"""An agent that says its limit lasts longer than this is not believed."""


class Limits:
    """Knows which agents are limited, and what to do about it."""

    def __init__(self, project: Project, run: str, settings: AgentSettings, audience: Audience) -> None:
        self._ledger = project.ledger
        self._run = run
        self._settings = settings
        self._audience = audience

    def until(self, agent: str) -> str:
        """Until when an agent is limited, as far as it is known; empty if it is not."""
        found = ""
        for recorded in self._ledger.stream(STREAM):
            if isinstance(recorded.event, LimitReached) and recorded.event.agent == agent:
                found = recorded.event.until
        return found if found and _instant(found) > self._ledger.now() else ""

    def instead_of(self, agent: str, role: str) -> str:
        """The agent to ask: another one if this one is known to be limited, and that is the policy."""
        if self._settings.limits.policy == "switch" and (until := self.until(agent)):
            return self._switched(agent, role, until, "it was limited already") or agent
        return agent

    async def met(self, error: AgentLimited, agent: str, role: str, key: str) -> str:
        """Take in that an agent is limited; whom to ask next, or `AgentLimited` if the run must be parked."""
        until = self._noted(error, agent)
        if self._settings.limits.policy == "switch" and (
            successor := self._switched(agent, role, until, error.message)
        ):
            return successor
        left = (_instant(until) - self._ledger.now()).total_seconds()
        if left <= self._settings.limits.wait_minutes * 60:
            await self._wait(agent, until, key)
            return agent
        raise AgentLimited(
            f"agent `{agent}` has reached its limit; `{self._run}` is parked until {shown(until)}",
            resume_later(self._run),
            until=until,
        ) from error

    def _noted(self, error: AgentLimited, agent: str) -> str:
        now = self._ledger.now()
        said = _sensible(error.until, now)
        until = said or now + timedelta(minutes=self._settings.limits.retry_minutes)
        reached = LimitReached(
            run=self._run,
            agent=agent,
            until=until.astimezone(UTC).isoformat(timespec="microseconds"),
            said=said is not None,
            reason=error.message,
        )
        record(self._ledger, STREAM, reached)
        return reached.until

    def _switched(self, agent: str, role: str, until: str, reason: str) -> str:
        for successor in self._candidates(agent):
            if not self.until(successor) and self._can_as_much(successor, agent):
                switched = AgentSwitched(
                    run=self._run, role=role, agent=agent, successor=successor, until=until, reason=reason
                )
                record(self._ledger, STREAM, switched)
                return successor
        self._audience.told(
            f"`{agent}` is limited until {shown(until)}, and there is no other agent to switch to"
        )
        return ""

    def _candidates(self, agent: str) -> Iterator[str]:
        own = self._settings.profiles
        if not self._settings.limits.switch_to:
            yield from roster.others(roster.vendor_of(agent, own), own)
        for wanted in self._settings.limits.switch_to:
            try:
                name, _ = roster.choose(wanted, own)
            except NoAgent:
                continue
            if name != agent:
                yield name

    def _can_as_much(self, successor: str, agent: str) -> bool:
        """Whether an agent has tools where the other has: the question was put for one that does."""
        known = roster.every(self._settings.profiles)
        return all(
            known[successor].has_tools(reading=reading) or not known[agent].has_tools(reading=reading)
            for reading in (True, False)
        )

    async def _wait(self, agent: str, until: str, key: str) -> None:
        """Wait for the limit to end; whoever stops the command stops this too."""
        end = _instant(until) + timedelta(seconds=MARGIN)
        self._audience.told(f"`{agent}` has reached its limit; waiting until {shown(until)}")
        while (left := (end - self._ledger.now()).total_seconds()) > 0:
            minutes, seconds = divmod(int(left), 60)
            self._audience.heard(key, f"waits {minutes}:{seconds:02d} for the limit of {agent} to end")
            await asyncio.sleep(min(left, 1.0))


def shown(instant: str) -> str:
    """An instant for people: to the minute, in UTC."""
    return instant[:16].replace("T", " ") + " UTC"


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _sensible(text: str, now: datetime) -> datetime | None:
    """When a limit ends by what the agent said, if that can be: not in the past, and not in years."""
    try:
        found = _instant(text)
    except ValueError:
        return None
    return found if now - timedelta(minutes=1) < found < now + LONGEST else None


def resume_later(run: str) -> Advice:
    """How to resume a run that is parked: at its time, or at once."""
    return Advice("then run {}; at once: {}", Action("resume", run), Action("resume", run, now=True))
