"""Drives a run to its end, as the only process that does, in the foreground or beside other work."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from planforge.actions import Action, Advice
from planforge.app import cancellation, compose
from planforge.app.agents.audience import NOBODY, Audience
from planforge.app.agents.calls import remove_homes
from planforge.app.agents.casting import Cast
from planforge.app.decisions import statuses
from planforge.app.evidence import screening
from planforge.app.items import plans
from planforge.app.project import Project
from planforge.app.runs import background, table
from planforge.app.runs.background import Work
from planforge.app.runs.leasing import Leasing
from planforge.errors import (
    AgentLimited,
    CannotPerform,
    Diverged,
    Interrupted,
    NeedsPerson,
    PlanforgeError,
    RefusedByGate,
)
from planforge.kernel.driver import Driver
from planforge.kernel.events import CancelRequested, Recorded, RunEnded, RunParked, RunStarted
from planforge.kernel.locks import held
from planforge.kernel.payloads import unpack
from planforge.workflows.flows import Declaration, asked, way_on
from planforge.workspace.processes import cookies
from planforge.workspace.worktrees import Worktrees

Observer = Callable[[Recorded], None]


def drive(project: Project, run: str, observer: Observer, audience: Audience = NOBODY) -> RunEnded:
    """Drive a run to its end before whoever follows it; Ctrl-C and SIGTERM interrupt it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    project.ledger.listeners.append(observer)
    try:
        return _held(project, run, audience)
    finally:
        project.ledger.listeners.remove(observer)
        signal.signal(signal.SIGTERM, before)


def drive_beside(
    project: Project,
    run: str,
    told: Callable[[Work], None] = background.nobody,
    audience: Audience = NOBODY,
) -> Work:
    """Drive a run in a thread; when this returns, it is under way or over. `told` hears of its end."""

    def drive(begun: Callable[[Callable[[], None]], None]) -> RunEnded:
        return _held(project, run, audience, begun)

    return background.start(project, run, drive, told)


def _held(
    project: Project,
    run: str,
    audience: Audience,
    begun: Callable[[Callable[[], None]], None] = lambda _: None,
) -> RunEnded:
    """Drive a run whose lock is ours; `begun` gets what stops it, which any thread may call."""

    async def stoppable(driven: Coroutine[Any, Any, RunEnded]) -> RunEnded | CancelRequested:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        cancel = task.cancel

        def stop() -> None:
            loop.call_soon_threadsafe(cancel)

        begun(stop)
        return await cancellation.unless_asked(project, run, driven)

    with held(project.lock(run), f"`{run}`"):
        try:
            started = table.started(project, run)
            flow, request = _asked(project, started)
            with compose.staged(project, flow.needs, started.subject) as cast:
                ended = asyncio.run(stoppable(_driven(project, started, flow, request, audience, cast)))
            if isinstance(ended, RunEnded):
                return ended
            # Nothing of it is at work any more; what is left is what there is of a run that nobody drives.
            return cancellation.ended(project, run, ended, exit_code=Interrupted.exit_code)
        except (KeyboardInterrupt, asyncio.CancelledError):
            hint = Advice("run {}", Action("resume", run))
            raise Interrupted(f"`{run}` was stopped; nothing is lost", hint) from None
        except OSError as error:
            raise _refused(run, error) from error


def _refused(run: str, error: OSError) -> PlanforgeError:
    """What the system refuses is no outcome of the run: it goes on where it was once that is mended."""
    what = f"`{error.filename}`: {error.strerror}" if error.filename else error.strerror or str(error)
    return PlanforgeError(
        f"`{run}` was interrupted and nothing of it is lost: {what}",
        Advice("mend that, then run {}", Action("resume", run)),
    )


def _asked(project: Project, started: RunStarted) -> tuple[Declaration, msgspec.Struct]:
    try:
        return asked(started, unpack(project.ledger, started.request))
    except PlanforgeError as error:
        error.hint = way_on(started)
        raise


async def _driven(
    project: Project,
    started: RunStarted,
    declared: Declaration,
    request: msgspec.Struct,
    audience: Audience,
    cast: Cast | None,
) -> RunEnded:
    run = started.run
    secret = screening.finder(project, started.subject)
    worktrees = Worktrees(project.git, project.state, run, secret=secret)
    cookies.sweep(project.state)
    worktrees.discard_checks()
    leasing = Leasing(project, run)
    performers = compose.performers(project, run, declared.needs, started.subject, leasing, audience, cast)
    driver = Driver(project.ledger, run, performers, admit=statuses.admitting(project))
    try:
        async with leasing.attended():
            result = await driver.drive(declared.flow(request))
    except Diverged as error:
        error.hint = way_on(started)
        raise
    except NeedsPerson as error:
        driver.record(RunParked(run=run, reason=error.message))
        raise
    except AgentLimited as error:
        driver.record(RunParked(run=run, reason=error.message, until=error.until))
        raise
    except (CannotPerform, RefusedByGate) as error:
        # These end a run for good. After any other error it is interrupted and can be resumed.
        ended = RunEnded(run=run, succeeded=False, reason=error.message, exit_code=error.exit_code)
        _leave_open(project, started, driver, error.message)
    else:
        found = declared.outcome(result)
        ended = RunEnded(run=run, succeeded=found.succeeded, reason=found.reason, exit_code=found.exit_code)
    worktrees.sweep()
    remove_homes(project.state, run)
    driver.record(ended)
    return ended


def _leave_open(project: Project, started: RunStarted, driver: Driver, reason: str) -> None:
    """Record what a run that ends early leaves undone."""
    for event in statuses.left_open(project, started.subject, started.run, reason):
        driver.record(event)
    # Whether that was recorded now, or by a process that died before it could write the file. A plan that is
    # drafted gets no status before that has ended well.
    for plan in project.ledger.select(plans.PlanRow, "plans WHERE plan = ?", started.subject):
        if plan.status in ("DRAFT", "REVIEW"):
            statuses.mark_as_recorded(project, plan.plan)
