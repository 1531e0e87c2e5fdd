"""
The interpreter of pipelines: one flow that takes a task through the stages of any of them.

Before a stage its gate is held against the facts, after it what it must have left. A verdict sends the task
on, back, or to a person; what nobody can read, a gate that is closed, a loop that does not end and an agent
that gives nothing twice are a person's too, each with the file to look at and the command to go on with.
Nothing is passed over in silence: every stage begins and ends with a fact.
"""

from __future__ import annotations

from collections.abc import Mapping

from planforge.errors import PerformerFailed
from planforge.kernel.effects import FoundFacts, Note, ReadFacts
from planforge.kernel.events import StageEnded, StageStarted, TaskEnded, TaskMoved
from planforge.rules.gates.evaluation import Reason, Result, evaluate, places, resolved
from planforge.rules.gates.grammar import Artifact, Gate, InvalidGate, Require
from planforge.rules.gates.grammar import Forbid as ForbidField
from planforge.rules.loops import Continue, Done, Replan, Round
from planforge.rules.pipelines import Stage
from planforge.rules.states import IllegalTransition
from planforge.rules.states.tables import TASK
from planforge.rules.verdicts import Verdict
from planforge.workflows import stages
from planforge.workflows.asking import UNUSABLE
from planforge.workflows.course import Course, PipelineRequest, PipelineResult, Problem
from planforge.workflows.forge import recorded
from planforge.workflows.stages import Came

APPROVED, REVISION, ESCALATED, COMPLETED = "approved", "revision", "escalated", "completed"
STUCK = ("blocked", "escalated")
TO_PLAN = {"plan-revision-required": "plan"}
TO_CODE = TO_PLAN | {
    "draft": "implement without approved plan",
    "planned": "implement without approved plan",
    "plan-approved": "implement",
    "code-revision-required": "implement",
    "implementing": "implemented",
}
"""What leads from the statuses of a task that a person has go on at a later stage to what it is judged as."""


async def pipeline(request: PipelineRequest) -> PipelineResult:
    """Take a task through its pipeline, from its first stage or from where it is to go on."""
    course = Course(request)
    index = request.pipeline.index(request.start) if request.start else 0
    if request.status in STUCK:
        return await _ended(course, f"the task is {request.status}", stage=request.start, refused=True)
    while index < len(request.pipeline.stages):
        stage = request.pipeline.stages[index]
        outcome = await _through(course, stage)
        if outcome == ESCALATED:
            return await _ended(course, course.reason, stage=stage.name, refused=course.refused)
        index = request.pipeline.back_to(index) if outcome == REVISION else index + 1
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
    if came.judgement:
        course.verdicts[stage.name] = (verdict, judged)
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
            document=stage.leaves if came.document else "",
            object=came.document.object if came.document else "",
            findings=recorded(came.judgement.findings) if came.judgement else (),
            commit=course.commit if course.changed else "",
            agent=came.answer.agent if came.answer else "",
            model=came.answer.model if came.answer else "",
            tokens=usage.input_tokens + usage.output_tokens if usage else None,
        )
    )
    course.tell(stage, iteration, outcome, came.answer.text if came.answer else "", course.reason)
    await _move(course, stage, outcome)
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
        return _closed(result)
    try:
        if course.writes_code(stage):
            await _begin_code(course)
        came = await stages.play(course, stage, iteration)
    except IllegalTransition as error:
        return Came(reason=f"{error.message}: {error.hint}", stuck=True, refused=True)
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
    hint = f"; {result.remediation}" if result.remediation else ""
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
        return self._course.verdicts.get(stage, (None, ""))[0]


async def _held(course: Course, gate: Gate) -> Result:
    """Whether a gate is open; one that makes no sense is not."""
    known = places(task=course.request.path)
    try:
        paths, fields = asked_by(gate, known)
        found = FoundFacts()
        if paths or fields:
            found = await ReadFacts(task=course.request.task, paths=paths, fields=fields)
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


async def _begin_code(course: Course) -> None:
    """The code is being changed now, and is no longer what anybody has approved."""
    if event := TO_PLAN.get(course.status):
        await _set(course, event)
    if course.status in ("draft", "planned"):
        await _set(course, "implement without approved plan")
    elif course.status != "implementing":
        if course.status in ("implemented", "review-approved", "approved"):
            await _set(course, "code needs revision")
        await _set(course, "implement")


async def _move(course: Course, stage: Stage, outcome: str) -> None:
    """Move the task along its table, as far as the stage has moved it."""
    if outcome in (APPROVED, REVISION) or (stage.lands and outcome == COMPLETED):
        await _catch_up(course, stage)
    if event := _event(course, stage, outcome):
        await _set(course, event, course.reason if outcome == ESCALATED else "")


async def _catch_up(course: Course, stage: Stage) -> None:
    """What was judged or has landed was there before: the stage that writes it was not gone through again."""
    of = course.request.pipeline
    code = any(map(course.writes_code, of.stages[: of.index(stage.name)]))
    while event := (TO_CODE if code else TO_PLAN).get(course.status):
        await _set(course, event)


def _event(course: Course, stage: Stage, outcome: str) -> str:
    code = course.writes_code(stage) or any(map(course.writes_code, course.subjects(stage)))
    if outcome == ESCALATED:
        return "escalate"
    if outcome == REVISION:
        pipeline = course.request.pipeline
        target = pipeline.stages[pipeline.back_to(pipeline.index(stage.name))]
        return "code needs revision" if course.writes_code(target) else "plan needs revision"
    if stage.lands:
        return "commit" if course.status == APPROVED else "commit without approver"
    if outcome == COMPLETED:
        if code:
            return "implemented"
        return "plan" if stage.writes and course.status in ("draft", "plan-revision-required") else ""
    if stage.verdict == "person" and code:
        return "approve" if course.status in ("implemented", "review-approved") else ""
    if code:
        return "review approved" if course.status == "implemented" else ""
    return "plan approved" if course.status == "planned" else ""


async def _set(course: Course, event: str, reason: str = "") -> None:
    course.status = TASK.after(course.status, event)
    await Note(TaskMoved(task=course.request.task, event=event, status=course.status, reason=reason))


async def _ended(course: Course, reason: str, *, stage: str = "", refused: bool = False) -> PipelineResult:
    request = course.request
    done = not stage
    landed = done and course.changed and any(each.lands for each in request.pipeline.stages)
    branch, commit = (request.branch, course.commit) if landed else ("", "")
    await Note(
        TaskEnded(
            task=request.task,
            run=request.run,
            succeeded=done,
            reason=reason,
            stage=stage,
            refused=refused,
            document=course.to_look_at(stage),
            branch=branch,
            commit=commit,
        )
    )
    return PipelineResult(
        task=request.task,
        done=done,
        reason=reason,
        stage=stage,
        refused=refused,
        branch=branch,
        commit=commit,
    )
