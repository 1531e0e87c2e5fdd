"""
Starting runs, driving them to their end, and taking them up again.

A run belongs to the process that holds its lock. When that process dies, the run
is interrupted: everything it had finished is in the ledger, and `resume` goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from planforge.errors import (
    AgentLimited,
    CannotPerform,
    Conflict,
    Diverged,
    Interrupted,
    NeedsPerson,
    NotFound,
    RefusedByGate,
    TryLater,
)
from planforge.kernel.ledger import Write
from planforge.kernel.locks import held, is_held

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    # Looking at the list of runs must be quick, and needs none of the events.
    from planforge.app.audience import Audience
    from planforge.app.casting import Cast
    from planforge.app.project import Project
    from planforge.kernel.events import Event, Payload, PlanCreated, Recorded, RunStarted, TaskOpened
    from planforge.workflows.flows import Result

    Observer = Callable[[Recorded], None]


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of runs."""

    run: str
    flow: str
    subject: str
    status: str
    """running, waiting, interrupted, done or failed"""
    reason: str
    until: str
    """From when on a waiting run can go on; empty if it waits for a person."""
    started_at: str
    updated_at: str

    @property
    def unfinished(self) -> bool:
        """Whether there is something left to do."""
        return self.status in ("running", "waiting", "interrupted")


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended."""

    run: str
    succeeded: bool
    reason: str
    exit_code: int


def rows(project: Project, *, unfinished: bool = False) -> list[RunRow]:
    """All runs, oldest first. One that nobody drives although it is not finished is interrupted."""
    where = "WHERE run IN unfinished" if unfinished else ""
    found = []
    for run in project.ledger.select(RunRow, f"runs {where} ORDER BY length(run), run"):
        if run.status == "running" and not is_held(project.lock(run.run)):
            found.append(msgspec.structs.replace(run, status="interrupted"))
        else:
            found.append(run)
    return found


def begin(
    project: Project,
    flow: str,
    subject: str,
    request: Callable[[str], msgspec.Struct],
    *also: PlanCreated | TaskOpened,
) -> str:
    """Record that a flow was asked for, with what it is about if that is new, and give the run its name."""
    from planforge.kernel.events import RunStarted
    from planforge.kernel.payloads import encode, pack
    from planforge.kernel.redaction import Redactor
    from planforge.workflows.flows import FLOWS

    redact = Redactor.of_environment()
    while True:
        (count,) = next(project.ledger.query("SELECT count(*) FROM runs"))
        run = f"run-{count + 1:03d}"
        body: Payload = pack(project.ledger, redact.json(encode(request(run))))
        started = RunStarted(
            run=run, flow=flow, flow_version=FLOWS[flow].version, subject=subject, request=body
        )
        try:
            created = [Write(subject, 0, [redact.struct(event)]) for event in also]
            writes = [Write(run, 0, [started]), *created]
            project.ledger.append_all(writes)
        except Conflict:
            if also and project.ledger.version(subject):
                raise
            continue  # another process took this number; the next one is ours
        return run


def drive(project: Project, run: str, observer: Observer, audience: Audience | None = None) -> Ended:
    """Drive a run to its end, as the only process that does, before whoever follows it."""
    import asyncio
    import signal

    with held(project.lock(run), f"`{run}`"):
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        project.ledger.listeners.append(observer)
        try:
            with _alone_at_it(project, run):
                return asyncio.run(_drive(project, run, audience))
        except KeyboardInterrupt:
            raise Interrupted(
                f"`{run}` was stopped; nothing is lost", f"run `planforge resume {run}`"
            ) from None
        finally:
            project.ledger.listeners.remove(observer)
            signal.signal(signal.SIGTERM, before)


def _alone_at_it(project: Project, run: str) -> AbstractContextManager[None]:
    """Whatever the run must have to itself besides itself."""
    from planforge.app import landing

    started = _started(project, run)
    return landing.only_lander(project, started.flow, started.subject)


async def _drive(project: Project, run: str, audience: Audience | None) -> Ended:
    from planforge.app import demo
    from planforge.app.audience import NOBODY

    started = _started(project, run)
    with demo.staged(project, started.flow) as cast:
        return await _driven(project, started, audience or NOBODY, cast)


async def _driven(project: Project, started: RunStarted, audience: Audience, cast: Cast | None) -> Ended:
    from planforge.app import plans, screening, statuses
    from planforge.app.asking import remove_homes
    from planforge.app.compose import performers
    from planforge.app.leasing import Leasing
    from planforge.kernel.driver import Driver
    from planforge.kernel.events import RunEnded, RunParked
    from planforge.kernel.payloads import unpack
    from planforge.workflows.flows import FLOWS
    from planforge.workspace import processes
    from planforge.workspace.worktrees import Worktrees

    run, entry = started.run, FLOWS[started.flow]
    request = msgspec.json.decode(unpack(project.ledger, started.request), type=entry.request)
    secret = screening.finder(project, started.subject)
    worktrees = Worktrees(project.git, project.state, run, secret=secret)
    processes.sweep(project.state)
    worktrees.discard_checks()
    leasing = Leasing(project, run)
    table = performers(project, run, started.flow, started.subject, leasing, audience, cast)
    driver = Driver(project.ledger, run, table, admit=statuses.admitting(project))
    try:
        async with leasing.attended():
            result = await driver.drive(entry.flow(request))
    except Diverged as error:
        error.hint = _way_on(started)
        raise
    except NeedsPerson as error:
        driver.record(RunParked(run=run, reason=error.message))
        raise
    except AgentLimited as error:
        driver.record(RunParked(run=run, reason=error.message, until=error.until))
        raise
    except (CannotPerform, RefusedByGate) as error:
        # These end a run for good. After any other error it is interrupted and can be resumed.
        ended = Ended(run=run, succeeded=False, reason=error.message, exit_code=error.exit_code)
        for event in statuses.left_open(project, started.subject, run, error.message):
            driver.record(event)
        # Whether that was recorded now, or by a process that died before it could write the file.
        for plan in project.ledger.select(plans.PlanRow, "plans WHERE plan = ?", started.subject):
            if plan.status == "REVIEW":
                plans.mark(project, plan.plan, plan.status)
    else:
        ended = judge(run, result)
    worktrees.sweep()
    remove_homes(project.state, run)
    driver.record(
        RunEnded(run=run, succeeded=ended.succeeded, reason=ended.reason, exit_code=ended.exit_code)
    )
    return ended


def _way_on(started: RunStarted) -> str:
    """What to do with a run that cannot be taken up, such as one of another version of Planforge."""
    again = "forge it again"
    if started.subject.startswith("refs/"):
        again = "`planforge land` again: what has landed is kept"
    elif started.flow == "pipeline":
        again = f"`planforge task resume {started.subject}`: what there is of it is kept"
    elif started.flow != "forge":
        plan = started.subject
        again = f"`planforge plan approve {plan}` and `planforge plan run {plan}`: what has landed is kept"
    return f"end it with `planforge cancel {started.run} --reason TEXT`, then {again}"


def judge(run: str, result: Result) -> Ended:
    """What a flow's result means for the person who started it."""
    from planforge.workflows.course import PipelineResult
    from planforge.workflows.demo import DemoResult
    from planforge.workflows.forge import ForgeResult
    from planforge.workflows.landing import LandResult, UpdateResult
    from planforge.workflows.plan_run import PlanRunResult

    match result:
        case ForgeResult(clean=clean, reason=reason, content=content):
            exit_code = 0 if clean else NeedsPerson.exit_code if content else 1
            return Ended(run=run, succeeded=clean, reason=reason, exit_code=exit_code)
        case PlanRunResult(done=done, reason=reason, voided=voided):
            exit_code = 0 if done else RefusedByGate.exit_code if voided else 1
            return Ended(run=run, succeeded=done, reason=reason, exit_code=exit_code)
        case LandResult(done=done, reason=reason, refused=refused):
            exit_code = 0 if done else RefusedByGate.exit_code if refused else 1
            return Ended(run=run, succeeded=done, reason=reason, exit_code=exit_code)
        case PipelineResult(done=done, reason=reason, refused=refused):
            exit_code = 0 if done else RefusedByGate.exit_code if refused else NeedsPerson.exit_code
            return Ended(run=run, succeeded=done, reason=reason, exit_code=exit_code)
        case UpdateResult(reason=reason):
            return Ended(run=run, succeeded=True, reason=reason, exit_code=0)
        case DemoResult(ran=PlanRunResult() as ran):
            return judge(run, ran)
        case DemoResult():
            reason, exit_code = "the plan was not approved", RefusedByGate.exit_code
            return Ended(run=run, succeeded=False, reason=reason, exit_code=exit_code)


def _started(project: Project, run: str) -> RunStarted:
    from planforge.kernel.events import RunStarted

    for recorded in project.ledger.stream(run):
        if isinstance(recorded.event, RunStarted):
            return recorded.event
    raise NotFound(f"there is no `{run}` here", "see `planforge status`")


def cancel(project: Project, run: str, *, reason: str, actor: str) -> Ended:
    """End a run that nobody drives, for good. What its agents left is archived; what landed stays."""
    from planforge.app import leasing, plans, screening, statuses, tasks
    from planforge.app.asking import remove_homes
    from planforge.kernel.events import RunEnded
    from planforge.workspace.worktrees import Worktrees

    found = next((row for row in rows(project) if row.run == run), None)
    if found is None:
        raise NotFound(f"there is no `{run}` here", "see `planforge status`")
    if not found.unfinished:
        raise RefusedByGate(f"`{run}` has ended already ({found.status})")
    said = f"cancelled by {actor}: {reason}"
    with held(project.lock(run), f"`{run}`"):
        secret = screening.finder(project, found.subject)
        Worktrees(project.git, project.state, run, secret=secret).sweep()
        remove_homes(project.state, run)
        leasing.give_back(project.ledger, run, said)
        ending: list[Event] = [RunEnded(run=run, succeeded=False, reason=said, exit_code=1)]
        ending[:0] = statuses.left_open(project, found.subject, run, said)
        ending[:0] = tasks.stopped(project, found.subject, run, said)
        writes = [Write(run, project.ledger.version(run), ending)]
        # What was never drafted to its end is cancelled with the forge; a plan under way returns to review.
        writes += statuses.cancelled_draft(project, found.subject, actor=actor, reason=reason)
        project.ledger.append_all(writes)
        for plan in project.ledger.select(plans.PlanRow, "plans WHERE plan = ?", found.subject):
            plans.mark(project, plan.plan, plan.status)
    return Ended(run=run, succeeded=False, reason=said, exit_code=1)


def to_resume(project: Project, run: str | None, *, now: bool = False) -> list[str]:
    """The runs that `planforge resume` would go on with; `now` is also those whose time has not come."""
    if run is not None:
        found = [row for row in rows(project) if row.run == run]
        if not found:
            raise NotFound(f"there is no `{run}` here", "see `planforge status`")
        unfinished = [row for row in found if row.unfinished]
    else:
        unfinished = [row for row in rows(project, unfinished=True) if _can_go_on(project, row)]
    due = [row for row in unfinished if now or not row.until or is_due(project, row.until)]
    if unfinished and not due:
        first = min(unfinished, key=lambda row: row.until)
        raise TryLater(
            f"`{first.run}` is parked until {first.until[:16].replace('T', ' ')} UTC: its agent is limited",
            f"run `planforge resume {first.run}` then; with `--now` it is tried at once",
        )
    return [row.run for row in due]


def is_due(project: Project, until: str) -> bool:
    """Whether the time that a run is parked until has come."""
    from datetime import datetime

    return datetime.fromisoformat(until) <= project.ledger.now()


def _can_go_on(project: Project, row: RunRow) -> bool:
    """Whether a run can go on without anybody naming it: nothing stands in its way but, perhaps, a time."""
    if row.status != "waiting":
        return row.status == "interrupted"
    from planforge.app import questions

    if questions.has_answer(project, row.run):
        return True
    # A person has decided since it came to a gate.
    decided = "plan = ? AND status IN ('approved', 'rejected') AND decided_at > ?"
    query = f"SELECT 1 FROM raised_gates WHERE {decided} LIMIT 1"  # noqa: S608  (a constant)
    return bool(row.until) or any(project.ledger.query(query, row.subject, row.updated_at))


def events(project: Project, run: str) -> list[Event]:
    """Everything that happened in a run, and to the plan it is about, in order."""
    subject = _started(project, run).subject
    streams = [run] + ([subject] if subject else [])
    recorded = [item for stream in streams for item in project.ledger.stream(stream)]
    return [item.event for item in sorted(recorded, key=lambda item: item.seq)]
