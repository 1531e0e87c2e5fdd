"""
The interpreter of pipelines: one flow that takes a task through the stages of any of them.

Before a stage its gate is held against the facts, after it what it must have left. A verdict sends the task
on, back, or to a person; what nobody can read, a gate that is closed, a loop that does not end and an agent
that gives nothing twice are a person's too, each with the file to look at and the command to go on with.
Nothing is passed over in silence: every stage begins and ends with a fact.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from planforge.errors import PerformerFailed
from planforge.kernel.effects import FoundFacts, Note, ReadFacts
from planforge.kernel.events import ItemMoved, StageEnded, StageStarted, TaskEnded
from planforge.kernel.work.lifecycle import IllegalTransition
from planforge.kernel.work.lifecycle.tables import TASK
from planforge.rules.gates.evaluation import Reason, Result, evaluate, places, resolved
from planforge.rules.gates.grammar import After, Artifact, Gate, InvalidGate, Require
from planforge.rules.gates.grammar import Forbid as ForbidField
from planforge.rules.loops import Continue, Done, Replan, Round
from planforge.rules.pipelines import Stage
from planforge.rules.verdicts import Verdict
from planforge.workflows import stages
from planforge.workflows.asking import UNUSABLE
from planforge.workflows.attempt import branch_of
from planforge.workflows.course import Course, PipelineRequest, Problem
from planforge.workflows.forge import recorded
from planforge.workflows.stages import Came

APPROVED, REVISION, ESCALATED, COMPLETED = "approved", "revision", "escalated", "completed"
STUCK = ("blocked", "escalated")
COMMITTED = "committed"


async def pipeline(request: PipelineRequest) -> TaskEnded:
    """Take a task through its pipeline, from its first stage or from where it is to go on."""
    course = Course(request)
    index = request.pipeline.index(request.start) if request.start else 0
    if request.status in STUCK:
        return await _ended(course, f"the task is {request.status}", stage=request.start, refused=True)
    while index < len(request.pipeline.stages):
        stage = request.pipeline.stages[index]
        outcome = await _through(course, stage)
        if outcome == ESCALATED:
            stopped_at = course.stopped_at or stage.name
            return await _ended(course, course.reason, stage=stopped_at, refused=course.refused)
        index = request.pipeline.back_to(index) if outcome == REVISION else index + 1
    if course.status != COMMITTED:
        await _move(course, "delivered")
    return await _ended(course, course.reason)


async def _through(course: Course, stage: Stage) -> str:
    """One stage, from its gate to what it came to."""
    iteration = course.begins(stage)
    name = course.name(stage, iteration)
    role = course.role(stage)
    await Note(
        StageStarted(
            task=course.request.task,
            stage=stage.name,
            iteration=iteration,
            role=role,
            name=name,
            tier=stage.tier,
        )
    )
    came = await _came(course, stage, iteration)
    course.reason, course.refused = came.reason, came.refused
    outcome = _outcome(course, stage, came)
    judged = course.judged(stage) if came.judgement else ""
    verdict = _verdict(came, outcome)
    usage = came.answer.usage if came.answer else None
    left = came.document or course.documents.get(stage.leaves)
    if came.judgement:
        course.verdicts[stage.name] = (verdict, judged)
        course.overridden.pop(stage.name, None)
    await Note(
        StageEnded(
            task=course.request.task,
            stage=stage.name,
            iteration=iteration,
            role=role,
            name=name,
            outcome=outcome,
            reason=course.reason,
            verdict=verdict,
            judged=judged,
            document=stage.leaves if left else "",
            object=left.object if left else "",
            findings=recorded(came.judgement.findings) if came.judgement else (),
            commit=course.commit if course.changed else "",
            agent=came.answer.agent if came.answer else "",
            model=came.answer.model if came.answer else "",
            tokens=usage.input_tokens + usage.output_tokens if usage else None,
        )
    )
    course.tell(stage, iteration, outcome, came.answer.text if came.answer else "", course.reason)
    await _judged(course, stage, outcome)
    if came.answer and came.judgement and came.judgement.verdict is Verdict.UNKNOWN:
        await stages.noticed(course, stage, iteration, "x_verdict_malformed", came.reason)
    if outcome == REVISION:
        assert came.judgement is not None
        course.problem = Problem(stage=stage.name, reason=course.reason, findings=came.judgement.findings)
    elif stage.writes:
        course.problem = None
    return outcome


async def _came(course: Course, stage: Stage, iteration: int) -> Came:
    """What it comes to; nothing is begun behind a gate that is closed."""
    result = await _held(course, stage.entry)
    if not result.ok:
        await stages.noticed(course, stage, iteration, "x_gate_closed", result.detail)
        if result.reason_code is Reason.PREDECESSOR_VERDICT_MISSING and (void := course.void(stage)):
            course.stopped_at = void[0]
            said = f"the task has to be resumed at `{void[0]}`, which has not seen that"
            result = msgspec.structs.replace(result, remediation=said)
        return _closed(result)
    try:
        if course.writes_code(stage):
            await _move(course, "implementing")
        came = await stages.play(course, stage, iteration)
    except IllegalTransition as error:
        return Came(reason=error.message, stuck=True, refused=True)
    except PerformerFailed as error:
        if error.error not in UNUSABLE:
            return Came(reason=error.message, stuck=True)
        await stages.noticed(course, stage, iteration, "x_agent_failed", error.message)
        return Came(reason=f"nothing that could be used came back, twice: {error.message}", stuck=True)
    if came.stuck:
        return came
    result = await _held(course, stage.exit)
    return came if result.ok else _closed(result, came)


def _closed(result: Result, came: Came | None = None) -> Came:
    code = result.reason_code.value if result.reason_code else Reason.TOOL_ERROR.value
    hint = f"; {result.remediation}" if isinstance(result.remediation, str) and result.remediation else ""
    return Came(
        reason=f"{code}: {result.detail}{hint}",
        stuck=True,
        refused=True,
        document=came.document if came else None,
        answer=came.answer if came else None,
    )


def _verdict(came: Came, outcome: str) -> str:
    """What counts as said: where a policy finds good enough what a reviewer would have better, that it is."""
    if came.judgement is None:
        return ""
    return APPROVED if outcome == APPROVED else came.judgement.verdict.value


def _outcome(course: Course, stage: Stage, came: Came) -> str:
    """What follows: on, back, or to a person."""
    if came.stuck:
        return ESCALATED
    if came.judgement is None:
        return COMPLETED
    judgement = came.judgement
    if judgement.verdict is Verdict.UNKNOWN:  # whatever the policy would make of its findings
        course.reason = f"a person must read it: {came.reason}"
        return ESCALATED
    latest = Round(
        findings=judgement.findings, verdict=judgement.verdict, reason=judgement.reason, tests=came.tests
    )
    decision = course.loop(stage).record(latest)
    course.reason = decision.reason if came.reason in decision.reason else f"{came.reason}; {decision.reason}"
    if isinstance(decision, Done):
        # Only of a deliverable that is polished may a policy say that it is good enough.
        return APPROVED if judgement.verdict is Verdict.APPROVED or stage.verdict == "polish" else ESCALATED
    return REVISION if isinstance(decision, Continue | Replan) else ESCALATED


# Gates


class _Facts:
    """What is true, as it was looked up."""

    def __init__(self, found: FoundFacts, course: Course) -> None:
        self._found = found
        self._course = course

    def size(self, path: str) -> int | None:
        if path in self._found.unreadable:
            raise OSError(self._found.unreadable[path])
        return self._found.sizes.get(path)

    def field(self, name: str) -> str | None:
        return self._found.fields[name]

    def verdict(self, stage: str) -> str | None:
        if stage not in {each.name for each in self._course.request.pipeline.stages}:
            raise KeyError(stage)
        return self._course.verdict(stage) or None


async def _held(course: Course, gate: Gate) -> Result:
    """Whether a gate is open; one that makes no sense is not."""
    known = places(task=course.request.path)
    try:
        paths, fields = asked_by(gate, known)
        found = FoundFacts()
        if paths or fields:
            found = await ReadFacts(task=course.request.task, paths=paths, fields=fields)
        if any(isinstance(item, After) for item in gate.directives):
            await stages.texts_now(course)
        return evaluate(gate, _Facts(found, course), known)
    except InvalidGate as error:
        return Result(
            phase=gate.stage,
            reason_code=Reason.TOOL_ERROR,
            detail=error.message,
            remediation=error.hint or "the gate has to be put right",
        )


def asked_by(gate: Gate, known: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths and the fields that a gate asks for."""
    paths = [resolved(item.path, known) for item in gate.directives if isinstance(item, Artifact)]
    fields = [item.predicate.field for item in gate.directives if isinstance(item, Require | ForbidField)]
    return tuple(dict.fromkeys(paths)), tuple(dict.fromkeys(fields))


# Statuses


async def _judged(course: Course, stage: Stage, outcome: str) -> None:
    """Give the task the status that follows from what the stage came to."""
    if course.status == COMMITTED:
        return  # whatever a later stage makes of it
    if outcome == ESCALATED:
        await _move(course, "escalated", course.reason)
    elif outcome == REVISION:
        of = course.request.pipeline
        code = course.writes_code(of.stages[of.back_to(of.index(stage.name))])
        await _move(course, "code-revision-required" if code else "plan-revision-required")
    else:
        if (status := course.earned()) != TASK.initial:  # no stage makes a task what it was at first
            await _move(course, status)
        if stage.lands and course.changed:
            await _move(course, COMMITTED)


async def _move(course: Course, status: str, reason: str = "") -> None:
    """Move the task along its table, to a status that may be some rows away."""
    for row in TASK.way(course.status, status):
        course.status = row.target
        await Note(ItemMoved(item=course.request.task, by=row.event, status=row.target, reason=reason))


async def _ended(course: Course, reason: str, *, stage: str = "", refused: bool = False) -> TaskEnded:
    """Record how the task came through; with a `stage`, a person has to look there."""
    request, done = course.request, not stage
    ended = TaskEnded(
        task=request.task,
        run=request.run,
        succeeded=done,
        reason=reason,
        stage=stage,
        refused=refused,
        document=course.to_look_at(stage),
        branch=branch_of(request.task) if course.status == COMMITTED else "",
        commit=course.commit if done and course.changed else "",
    )
    await Note(ended)
    return ended
