"""
Ending a run from outside, for good and at once, whoever drives it.

A run that nobody drives is ended where this is asked. One that another process drives is asked to end: the
request is an event in a stream beside the run's, where it disturbs no fence. The driver hears of it as it
hears of any event, stops whatever is under way as it would for an interrupt, and then ends the run itself.
No process is looked for and none is killed, so none can be mistaken for another. A request that nobody
heard, because its driver died, is honoured by whoever takes the run up next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING

from planforge.actions import Action, Advice
from planforge.app import tasks
from planforge.app.agents.calls import remove_homes
from planforge.app.decisions import statuses
from planforge.app.evidence import screening
from planforge.app.items import plans
from planforge.app.runs import leasing
from planforge.app.runs.table import rows, unknown
from planforge.errors import Locked, RefusedByGate
from planforge.kernel.bus import subscribe
from planforge.kernel.events import CancelRequested, Event, RunEnded
from planforge.kernel.ledger import Write
from planforge.kernel.locks import held, is_held
from planforge.kernel.wording import CANCELLED
from planforge.workspace.worktrees import Worktrees

if TYPE_CHECKING:
    from planforge.app.items.plans import PlanRow
    from planforge.app.project import Project
    from planforge.app.runs.table import RunRow

PATIENCE = 60.0
"""How many seconds a driver has to end its run before whoever asked for it is told that it does not."""

LOOK = 0.2
"""How many seconds pass at most before it is looked whether a driver is there still."""


def requests(run: str) -> str:
    """The stream of what is wanted of a run from outside."""
    return f"{run}/requests"


# Whoever asks


def give_up(project: Project, name: str, *, reason: str, actor: str) -> PlanRow:
    """End whatever is at a plan, at once, and cancel the plan."""
    plan = plans.row(project, name)
    for row in rows(project, unfinished=True):
        if row.subject == plan.plan:
            cancel(project, row.run, reason=reason, actor=actor, with_plan=True)
    found = plans.row(project, plan.plan)
    if found.status == "CANCELLED" and found.status != plan.status:
        return found  # it went with its run
    return statuses.move(project, plan.plan, "cancel", actor=actor, reason=reason)


def cancel(
    project: Project,
    run: str,
    *,
    reason: str,
    actor: str,
    with_plan: bool = False,
    patience: float = PATIENCE,
) -> RunEnded:
    """
    End a run for good, at once: here, if nobody drives it, and otherwise where it is driven.

    What its agents left is archived; what landed stays. A plan that was under way returns to review, unless
    it is cancelled with the run.
    """
    _require_unfinished(project, run)
    request = CancelRequested(run=run, actor=actor, reason=reason, with_plan=with_plan)
    asked = False
    deadline = time.monotonic() + patience
    with subscribe(project.ledger, streams=(run,), kinds=("RunEnded",), after=project.ledger.head()) as news:
        while True:
            if not is_held(project.lock(run)):
                with suppress(Locked), held(project.lock(run), f"`{run}`"):
                    return _ended_meanwhile(project, run) or ended(project, run, request)
            if not asked:
                project.ledger.append(requests(run), [request], expected=None)
                asked = True
            news.next(LOOK)
            if time.monotonic() > deadline:
                raise Locked(
                    f"`{run}` was asked to end {patience:.0f} s ago, and whoever drives it does not answer",
                    Advice(
                        "the request stands: it ends as soon as it is heard; {} says whether",
                        Action("status"),
                    ),
                )


def _require_unfinished(project: Project, run: str) -> RunRow:
    found = next((row for row in rows(project) if row.run == run), None)
    if found is None:
        raise unknown(run)
    if not found.unfinished:
        raise RefusedByGate(f"`{run}` has ended already ({found.status})")
    return found


def _ended_meanwhile(project: Project, run: str) -> RunEnded | None:
    """How the run ended while somebody waited for it; refused if that was not because they asked for it."""
    for recorded in project.ledger.stream(run):
        if isinstance(recorded.event, RunEnded):
            event = recorded.event
            if not event.reason.startswith(CANCELLED):
                raise RefusedByGate(f"`{run}` has ended already: {event.reason}")
            return event
    return None


# Whoever drives


async def unless_asked(
    project: Project, run: str, driving: Coroutine[object, object, RunEnded]
) -> RunEnded | CancelRequested:
    """Drive a run until it ends, or until somebody wants it to, who is then named."""
    working = asyncio.create_task(driving)
    listening = asyncio.create_task(_heard(project, run))
    try:
        await asyncio.wait((working, listening), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        request = listening.result()
    finally:
        # However this ends, an interrupt included, nothing is left at work. Both are told once, and whatever
        # they say of being cancelled already: a timeout of their own says the same, and takes it back.
        for task in (listening, working):
            task.cancel()
        await asyncio.gather(working, listening, return_exceptions=True)
    # It may have come to its end before it could be stopped.
    return request if working.cancelled() else working.result()


async def _heard(project: Project, run: str) -> CancelRequested:
    """The request that the run be ended, once there is one."""
    stream = requests(run)
    after = project.ledger.head()
    for recorded in project.ledger.stream(stream):
        if isinstance(recorded.event, CancelRequested):
            return recorded.event
    with subscribe(project.ledger, streams=(stream,), after=after) as news:
        async for recorded in news:
            if isinstance(recorded.event, CancelRequested):
                return recorded.event
    raise AssertionError("nobody else closes the subscription")


# Ending it


def ended(project: Project, run: str, request: CancelRequested, *, exit_code: int = 1) -> RunEnded:
    """End a run at which nothing is at work any more. Whoever calls this holds its lock."""
    found = _require_unfinished(project, run)
    actor, reason = request.actor, request.reason
    said = f"cancelled by {actor}: {reason}"
    secret = screening.finder(project, found.subject)
    Worktrees(project.git, project.state, run, secret=secret).sweep()
    remove_homes(project.state, run)
    leasing.give_back(project.ledger, run, said)
    ending: list[Event] = [RunEnded(run=run, succeeded=False, reason=said, exit_code=1)]
    ending[:0] = statuses.left_open(project, found.subject, run, said)
    ending[:0] = tasks.stopped(project, found.subject, run, said)
    writes = [Write(run, project.ledger.version(run), ending)]
    # What was never drafted to its end is cancelled with the forge; a plan under way returns to review.
    writes += statuses.cancelled_with_run(
        project, found.subject, actor=actor, reason=reason, whatever=request.with_plan
    )
    project.ledger.append_all(writes)
    statuses.mark_as_recorded(project, found.subject)
    return RunEnded(run=run, succeeded=False, reason=said, exit_code=exit_code)
