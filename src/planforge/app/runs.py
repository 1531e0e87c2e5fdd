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
    Locked,
    NeedsPerson,
    NotFound,
    PlanforgeError,
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
    from planforge.kernel.events import (
        CancelRequested,
        Event,
        Payload,
        PlanApproved,
        PlanCreated,
        Recorded,
        RunStarted,
        TaskOpened,
    )
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
        elif run.status == "waiting" and (decided := _decided(project, run)):
            found.append(msgspec.structs.replace(run, reason=decided))
        else:
            found.append(run)
    return found


def begin(
    project: Project,
    flow: str,
    subject: str,
    request: Callable[[str], msgspec.Struct],
    *also: PlanCreated | PlanApproved | TaskOpened,
    alone: bool = False,
) -> str:
    """
    Record that a flow was asked for, with what it is about if that is new, and give the run its name.

    `alone` refuses it while another run is at the same.
    """
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
            created = [Write(subject, 0, [redact.struct(event) for event in also])] if also else []
            _append(project, [Write(run, 0, [started]), *created], alone_at=subject if alone else "")
        except Conflict:
            if also and project.ledger.version(subject):
                raise
            continue  # another process took this number; the next one is ours
        return run


def _append(project: Project, writes: list[Write], *, alone_at: str) -> None:
    def decide() -> list[Write]:
        if alone_at:
            require_free(project, alone_at)
        return writes

    project.ledger.transact(decide)


def require_free(project: Project, subject: str) -> None:
    """Refuse to begin anything while a run is at the same, and say what can be done about that one."""
    for row in rows(project, unfinished=True):
        if row.subject != subject:
            continue
        end = (
            f"`planforge forge cancel {subject}`" if row.flow == "forge" else f"`planforge cancel {row.run}`"
        )
        if row.status == "running":
            raise Locked(
                f"`{subject}` is being worked on by `{row.run}`", f"wait for it to end, or end it: {end}"
            )
        raise RefusedByGate(
            f"`{subject}` has an unfinished run, `{row.run}` ({row.status})",
            f"go on with it: `planforge resume {row.run}`, or end it: {end}",
        )


def drive(project: Project, run: str, observer: Observer, audience: Audience | None = None) -> Ended:
    """Drive a run to its end, as the only process that does, before whoever follows it."""
    import asyncio
    import signal

    from planforge.app import cancelling

    with held(project.lock(run), f"`{run}`"):
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        project.ledger.listeners.append(observer)
        try:
            with _alone_at_it(project, run):
                ended = asyncio.run(_drive(project, run, audience))
            if isinstance(ended, Ended):
                return ended
            # Nothing of it is at work any more; what is left is what there is of a run that nobody drives.
            return cancelling.ended(project, run, ended, exit_code=Interrupted.exit_code)
        except KeyboardInterrupt:
            raise _interrupted(run) from None
        except OSError as error:
            raise _refused(run, error) from error
        finally:
            project.ledger.listeners.remove(observer)
            signal.signal(signal.SIGTERM, before)


def drive_beside(
    project: Project, run: str, begun: Callable[[Callable[[], None]], None], audience: Audience | None = None
) -> Ended:
    """The same in another thread than the first, for which no signal is meant; `begun` gets what stops it."""
    import asyncio

    from planforge.app import cancelling

    async def stoppable() -> Ended | CancelRequested:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        cancel = task.cancel

        def stop() -> None:
            loop.call_soon_threadsafe(cancel)

        begun(stop)
        return await _drive(project, run, audience)

    with held(project.lock(run), f"`{run}`"), _alone_at_it(project, run):
        try:
            ended = asyncio.run(stoppable())
        except asyncio.CancelledError:
            raise _interrupted(run) from None
        except OSError as error:
            raise _refused(run, error) from error
        if isinstance(ended, Ended):
            return ended
        return cancelling.ended(project, run, ended, exit_code=Interrupted.exit_code)


def _interrupted(run: str) -> Interrupted:
    return Interrupted(f"`{run}` was stopped; nothing is lost", f"run `planforge resume {run}`")


def _refused(run: str, error: OSError) -> PlanforgeError:
    """What the system refuses is no outcome of the run: it goes on where it was once that is mended."""
    what = f"`{error.filename}`: {error.strerror}" if error.filename else error.strerror or str(error)
    return PlanforgeError(
        f"`{run}` was interrupted and nothing of it is lost: {what}",
        f"mend that, then run `planforge resume {run}`",
    )


def _alone_at_it(project: Project, run: str) -> AbstractContextManager[None]:
    """Whatever the run must have to itself besides itself."""
    from planforge.app import landing

    started = _started(project, run)
    return landing.only_lander(project, started.flow, started.subject)


async def _drive(project: Project, run: str, audience: Audience | None) -> Ended | CancelRequested:
    """How the run ended; or who has asked, meanwhile or before, for its end."""
    from planforge.app import cancelling, demo
    from planforge.app.audience import NOBODY

    started = _started(project, run)
    with demo.staged(project, started.flow) as cast:
        driving = _driven(project, started, audience or NOBODY, cast)
        return await cancelling.unless_asked(project, run, driving)


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
            # A forge gives a plan no status before it has ended well.
            if plan.status == "REVIEW" or started.flow == "forge":
                plans.mark_as_recorded(project, plan.plan)
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
    elif started.flow == "chat":
        again = "say it again"
    elif started.flow == "pipeline":
        again = f"`planforge task resume {started.subject}`: what there is of it is kept"
    elif started.flow == "fix":
        again = f"`planforge fix --again {started.subject}`: what was tried is kept"
    elif started.flow != "forge":
        plan = started.subject
        again = f"`planforge plan approve {plan}` and `planforge plan run {plan}`: what has landed is kept"
    return f"end it with `planforge cancel {started.run} --reason TEXT`, then {again}"


def judge(run: str, result: Result) -> Ended:
    """What a flow's result means for the person who started it."""
    from planforge.workflows.chat import ChatResult
    from planforge.workflows.course import PipelineResult
    from planforge.workflows.demo import DemoResult
    from planforge.workflows.fix import FixResult
    from planforge.workflows.forge import ForgeResult
    from planforge.workflows.landing import LandResult, UpdateResult
    from planforge.workflows.plan_run import PlanRunResult

    match result:
        case ForgeResult(clean=clean, reason=reason, content=content):
            exit_code = 0 if clean else NeedsPerson.exit_code if content else 1
            return Ended(run=run, succeeded=clean, reason=reason, exit_code=exit_code)
        case PlanRunResult(done=done, reason=reason, voided=voided, person=person):
            exit_code = RefusedByGate.exit_code if voided else NeedsPerson.exit_code if person else 1
            exit_code = 0 if done else exit_code
            return Ended(run=run, succeeded=done, reason=reason, exit_code=exit_code)
        case FixResult(done=done, reason=reason, large=large):
            exit_code = 0 if done else NeedsPerson.exit_code if large else 1
            return Ended(run=run, succeeded=done, reason=reason, exit_code=exit_code)
        case LandResult(done=done, reason=reason, refused=refused):
            exit_code = 0 if done else RefusedByGate.exit_code if refused else 1
            return Ended(run=run, succeeded=done, reason=reason, exit_code=exit_code)
        case PipelineResult(done=done, reason=reason, refused=refused):
            exit_code = 0 if done else RefusedByGate.exit_code if refused else NeedsPerson.exit_code
            return Ended(run=run, succeeded=done, reason=reason, exit_code=exit_code)
        case UpdateResult(reason=reason):
            return Ended(run=run, succeeded=True, reason=reason, exit_code=0)
        case ChatResult(problem=problem, done=done):
            reason = problem or (
                f"answered, with {len(done)} action{'s'[len(done) == 1 :]}" if done else "answered"
            )
            return Ended(run=run, succeeded=not problem, reason=reason, exit_code=1 if problem else 0)
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


def cancel(project: Project, run: str, *, reason: str, actor: str, with_plan: bool = False) -> Ended:
    """
    End a run for good, at once, also one that another process drives. What its agents left is archived; what
    landed stays. A plan that was under way returns to review, unless it is cancelled with the run.
    """
    from planforge.app import cancelling

    return cancelling.cancel(project, run, reason=reason, actor=actor, with_plan=with_plan)


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
            f"then run `planforge resume {first.run}`; at once: `planforge resume {first.run} --now`",
        )
    return [row.run for row in due]


def waiting_for(project: Project, run: str | None) -> list[str]:
    """What a person can type about runs that wait for somebody; about one alone, if it is named."""
    waiting = [row for row in rows(project, unfinished=True) if run in (None, row.run)]
    names, subjects = {row.run for row in waiting}, {row.subject for row in waiting}
    asked = project.ledger.query("SELECT number, run FROM questions WHERE status = 'waiting' ORDER BY number")
    gates = project.ledger.query(
        "SELECT number, plan FROM raised_gates WHERE status = 'waiting' ORDER BY number"
    )
    return [
        *(f"planforge question show question-{number:03d}" for number, about in asked if about in names),
        *(f"planforge gate show gate-{number:03d}" for number, plan in gates if plan in subjects),
    ]


def is_due(project: Project, until: str) -> bool:
    """Whether the time that a run is parked until has come."""
    from datetime import datetime

    return datetime.fromisoformat(until) <= project.ledger.now()


def _can_go_on(project: Project, row: RunRow) -> bool:
    """Whether a run can go on without anybody naming it: nothing stands in its way but, perhaps, a time."""
    if row.status != "waiting":
        return row.status == "interrupted"
    return bool(row.until or _decided(project, row))


def _decided(project: Project, row: RunRow) -> str:
    """What a person has decided since a run came to wait for them, in words; empty if nobody has."""
    from planforge.app import questions

    if question := questions.answered(project, row.run):
        return f"`{question}` is answered: it can go on"
    gates = (
        "SELECT number, status, actor FROM raised_gates WHERE plan = ? AND decided_at > ? "
        "AND status IN ('approved', 'rejected') ORDER BY number LIMIT 1"
    )
    for number, status, actor in project.ledger.query(gates, row.subject, row.updated_at):
        return f"`gate-{number:03d}` was {status} by {actor}: it can go on"
    return ""


def events(project: Project, run: str) -> list[Event]:
    """Everything that happened in a run, and to the plan it is about, in order."""
    subject = _started(project, run).subject
    streams = [run] + ([subject] if subject else [])
    recorded = [item for stream in streams for item in project.ledger.stream(stream)]
    return [item.event for item in sorted(recorded, key=lambda item: item.seq)]
