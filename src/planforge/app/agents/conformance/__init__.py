"""
A conformance run: what an agent really does when it is asked the way Planforge asks.

Behind the agent stands the scripted model server on loopback, so the run needs no account and costs nothing;
or, asked for, the agent's own service. Each check ends as passed, failed or cannot tell, with what was seen.
The third is never the first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.agents import programs
from planforge.agents.roster import choose
from planforge.app.agents.conformance import checks, scratch
from planforge.app.agents.conformance.outcomes import Outcome
from planforge.app.project import Project
from planforge.app.settings import Settings
from planforge.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from planforge.app.settings import Settings


AT_ONCE = 3
"""How many checks are under way at once; most of the time an agent is waited for."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table."""

    check: str
    outcome: Outcome
    seen: str
    seconds: float


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent did."""

    schema_version: int = 1
    agent: str
    service: str
    """`scripted`, or `live` for the agent's own."""
    checks: tuple[Checked, ...]
    startup: float | None = None
    """Seconds from starting it to its first request or its first word."""

    @property
    def conforms(self) -> bool:
        """Whether every check passed."""
        return all(checked.outcome is Outcome.PASSED for checked in self.checks)


Told = Callable[[Checked], None]
"""Hears of each check when it has ended."""


async def of(
    wanted: str, *, live: bool = False, only: Sequence[str] = (), told: Told = lambda _: None
) -> Conformance:
    """Try an agent of the project that we are in, or a known one anywhere; its start-up is remembered."""
    try:
        project = Project.find(Path.cwd())
    except NotFound:
        project = None
    settings = project.settings if project else Settings()
    found = await conform(wanted, settings, live=live, only=only, told=told)
    if project is not None and found.startup is not None:
        memory = programs.Memory(project.state / programs.CACHE)
        programs.started_in(choose(wanted, settings.agents.profiles)[1], memory, found.startup)
        memory.keep()
    return found


async def conform(
    wanted: str,
    settings: Settings,
    *,
    live: bool = False,
    only: Sequence[str] = (),
    told: Told = lambda _: None,
) -> Conformance:
    """Try the agent called `wanted`; every check, or `only` some."""
    name, profile = choose(wanted, settings.agents.profiles)
    if wrong := [check for check in only if check not in checks.CHECKS]:
        names = ", ".join(f"`{check}`" for check in checks.CHECKS)
        raise InvalidInput(f"there is no check `{wrong[0]}`; there are {names}")
    wished = set(only) or set(checks.CHECKS)
    if not profile.tiers and "model" not in only:  # then it is not told which model to ask
        wished.discard("model")
    chosen = [check for check in checks.CHECKS if check in wished]
    service = "live" if live else "scripted"
    if not live and not scratch.can_be_scripted(name, profile):
        why = "its profile does not say how it is pointed at another server (`endpoint`); try `--live`"
        unknown = [
            Checked(check=check, outcome=Outcome.CANNOT_TELL, seen=why, seconds=0.0) for check in chosen
        ]
        return Conformance(agent=name, service=service, checks=tuple(unknown))
    async with scratch.scratch(name, profile, settings, live=live) as place:
        trial = checks.Trial(place=place, settings=settings, live=live)
        turns = asyncio.Semaphore(AT_ONCE)

        async def checked(check: str) -> Checked:
            async with turns:
                began = time.monotonic()
                outcome, seen = await checks.seen(trial, check)
                taken = round(time.monotonic() - began, 1)
            line = Checked(check=check, outcome=outcome, seen=seen, seconds=taken)
            told(line)
            return line

        # The first one by itself: how long the agent takes to start is measured on it.
        first, *others = chosen
        found = [await checked(first), *await asyncio.gather(*map(checked, others))]
        startup = place.startup
    return Conformance(agent=name, service=service, checks=tuple(found), startup=startup)
