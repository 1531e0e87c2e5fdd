"""The checks of a conformance run, one function each: ask, look, and say what was seen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import msgspec

from planforge.app.agents.conformance import script
from planforge.app.agents.conformance.outcomes import Outcome
from planforge.app.agents.conformance.scratch import Scratch, scratch
from planforge.app.settings import Settings
from planforge.errors import (
    AgentFailed,
    AgentLimited,
    AgentTimedOut,
    AgentUnauthenticated,
    PlanforgeError,
)
from planforge.kernel.effects import Access, AgentAnswer, Usage
from planforge.kernel.wording import counted
from planforge.workspace import sandbox
from planforge.workspace.sandbox import Level

DEADLINE = 10.0
"""How long an agent is waited for that is meant to be late."""
SLACK = 10.0
"""How long after its time an agent may be there at most."""
PATIENCE = 120.0
"""How long an agent may take to begin with something."""
TRYING = 90.0
"""How long an agent may try again by itself before it says that its service has failed."""
CLOCK = 120.0
"""How far the end of a limit may be from where it was said to be, in seconds."""


class Trial(msgspec.Struct, kw_only=True):
    """One agent under test, and what earlier checks have seen of it."""

    place: Scratch
    settings: Settings
    live: bool
    written: AgentAnswer | None = None


class _Unmet(Exception):
    """What was seen is not what must be."""


class _Unknown(Exception):
    """Why it cannot be told."""


async def seen(trial: Trial, check: str) -> tuple[Outcome, str]:
    """Carry out one check; how it ended, and what was seen."""
    try:
        return Outcome.PASSED, await CHECKS[check](trial)
    except _Unknown as error:
        return Outcome.CANNOT_TELL, str(error)
    except _Unmet as error:
        return Outcome.FAILED, str(error)
    except PlanforgeError as error:
        return Outcome.FAILED, f"{type(error).__name__}: {error.message}"


async def _write(trial: Trial) -> str:
    """It writes a file where it should, and says so."""
    answer = trial.written = await trial.place.ask("write", script.WRITE)
    path = trial.place.path("write") / "written.txt"
    if not path.is_file():
        raise _Unmet("it said that it was done, but the file is not there")
    if (text := path.read_text()).strip() != script.WRITTEN.strip():
        raise _Unmet(f"the file holds something else: {text[:60]!r}")
    if script.SAID not in answer.text:
        raise _Unmet(f"it did not say what it should: {answer.text[:60]!r}")
    size, calls = counted(len(answer.text), "character"), counted(answer.tool_calls, "tool call")
    return f"file written, {size} of answer, {calls}"


async def _model(trial: Trial) -> str:
    """It asks the model that it is told to ask."""
    place = trial.place
    if not place.model:
        raise _Unknown("its profile names no models")
    if place.server is None:
        raise _Unknown("only a scripted server can tell which model it is asked for")
    if trial.written is None:
        await place.ask("model", script.WRITE)
    asked = {request.model for request in place.server.requests if not request.aside}
    if asked != {place.model}:
        raise _Unmet(f"told to ask `{place.model}`, it asked {', '.join(sorted(asked))}")
    return f"it asked `{place.model}`"


async def _usage(trial: Trial) -> str:
    """It reports what that cost."""
    answer = trial.written or await trial.place.ask("usage", script.WRITE)
    reports, found = trial.place.profile.usage, answer.usage
    if found is None:
        if reports == "none":
            raise _Unknown("it does not report its usage; Planforge counts what is put aside for an answer")
        raise _Unmet("it should report its usage and did not")
    said = _figures(found)
    if found.source != "reported":
        raise _Unknown(f"it reports only some of it, so the whole is {found.source}: {said}")
    if trial.live:
        if found.input_tokens <= 0 or found.output_tokens <= 0:
            raise _Unmet(f"these figures cannot be: {said}")
        return said
    expected = script.BOTH
    if reports == "quota":  # which does not say what came out of a cache
        expected = msgspec.structs.replace(expected, cached_tokens=found.cached_tokens)
    if found != expected:
        raise _Unmet(f"{said}; it was {_figures(script.BOTH)}")
    return said


def _figures(usage: Usage) -> str:
    return f"{usage.input_tokens} in ({usage.cached_tokens} cached), {usage.output_tokens} out"


async def _read_only(trial: Trial) -> str:
    """It changes nothing where it may only read, neither with its tools nor with its shell."""
    level = await asyncio.to_thread(trial.settings.sandbox.chosen)
    if changed := await _changed(trial.place):
        raise _Unmet(f"although it may only read, it wrote {changed}")
    if not sandbox.enough(level, Level.LANDLOCK):
        return "it wrote nothing; nothing but its own mode kept it from that"
    if trial.live:
        return f"it wrote nothing, confined by `{level}`"
    async with scratch(
        trial.place.name, trial.place.profile, trial.settings, live=False, level=Level.PROCESSES.value
    ) as unconfined:
        changed = await _changed(unconfined)
    alone = f"alone it would have written {changed}" if changed else "its own mode keeps it from that too"
    return f"it wrote nothing, confined by `{level}`; {alone}"


async def _changed(place: Scratch) -> str:
    """What an agent wrote that was to read."""
    before = _files(place)
    try:
        await place.ask("read", script.REFUSE, access=Access.READ)
    except AgentFailed as error:
        if isinstance(error, AgentTimedOut):
            raise
    return ", ".join(f"`{name}`" for name in sorted(_files(place) - before))


def _files(place: Scratch) -> set[str]:
    here = place.path("read")
    return {str(path.relative_to(here)) for path in here.rglob("*") if path.is_file()} - {
        ".git",
        "README.md",
    }


async def _resume(trial: Trial) -> str:
    """It takes up a conversation in a new process, and knows what was said."""
    place, profile = trial.place, trial.place.profile
    if profile.resume == "none":
        raise _Unknown("it cannot take up a conversation")
    began = time.monotonic()
    first = await place.ask("resume", script.REMEMBER, access=Access.READ)
    if not first.session:
        raise _Unmet("it did not name its conversation")
    if (early := profile.resume_after - (time.monotonic() - began)) > 0:
        await asyncio.sleep(early)
    second = await place.ask("resume", script.RECALL, access=Access.READ, session=first.session)
    if script.WORD not in second.text:
        raise _Unmet(f"it did not know what was said before: {second.text[:60]!r}")
    return "a new process knew what was said to the one before"


async def _cancel(trial: Trial) -> str:
    """Stopped while a command of its runs, it leaves no process."""
    place = trial.place
    asked = asyncio.create_task(place.ask("cancel", script.WAIT))
    until = time.monotonic() + PATIENCE
    while not (place.path("cancel") / script.STARTED).exists():
        if asked.done():
            answer = await asked
            raise _Unmet(f"it never began: {answer.text[:60]!r}")
        if time.monotonic() > until:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            raise _Unmet(f"it did not begin within {PATIENCE:g} s")
        await asyncio.sleep(0.05)
    before = time.monotonic()
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    taken = time.monotonic() - before
    if left := place.running("cancel"):
        raise _Unmet(f"it left {counted(len(left), 'process', 'processes')}: {', '.join(left[:5])}")
    return f"no process was left after {taken:.1f} s"


async def _time_out(trial: Trial) -> str:
    """One that does not answer is ended when its time is up."""
    seconds = 1.0 if trial.live else DEADLINE
    before = time.monotonic()
    try:
        await trial.place.ask("late", script.HANG, seconds=seconds)
    except AgentTimedOut:
        taken = time.monotonic() - before
    else:
        raise _Unmet("it answered, although it should not have")
    if taken > seconds + SLACK:
        raise _Unmet(f"it was there for {taken:.0f} s, {taken - seconds:.0f} s longer than it may")
    if left := trial.place.running("late"):
        raise _Unmet(f"it left {counted(len(left), 'process', 'processes')}: {', '.join(left[:5])}")
    return f"ended after {taken:.1f} s of {seconds:g} s"


def _error(status: int, kind: type[PlanforgeError]) -> Callable[[Trial], Awaitable[str]]:
    async def check(trial: Trial) -> str:
        if trial.live:
            raise _Unknown("a service cannot be asked to fail")
        try:
            answer = await trial.place.ask(f"error-{status}", script.ERRORS[status], seconds=TRYING)
        except kind as error:
            if type(error) is not kind:
                raise _Unmet(f"{type(error).__name__} instead of {kind.__name__}: {error.message}") from error
            return _until(error) if isinstance(error, AgentLimited) else f"{kind.__name__}: {error.message}"
        raise _Unmet(f"it answered as if nothing had happened: {answer.text[:60]!r}")

    return check


def _until(error: AgentLimited) -> str:
    if not error.until:
        return f"AgentLimited, without a time: {error.message}"
    off = (datetime.fromisoformat(error.until) - datetime.now(UTC)).total_seconds() - script.RESET
    if abs(off) > CLOCK:
        raise _Unmet(f"AgentLimited until {error.until}, which is {off:.0f} s off")
    return f"AgentLimited until {error.until}"


CHECKS: dict[str, Callable[[Trial], Awaitable[str]]] = {
    "write": _write,
    "usage": _usage,
    "model": _model,
    "read-only": _read_only,
    "resume": _resume,
    "cancel": _cancel,
    "time-out": _time_out,
    "error 401": _error(401, AgentUnauthenticated),
    "error 429": _error(429, AgentLimited),
    "error 500": _error(500, AgentFailed),
}
"""By name, in the order in which they are carried out."""
