"""
What the stages of a pipeline do, each kind in its own way.

A stage that writes has an agent write a document, or change the tree in a worktree of its own. A stage
with a verdict has an agent review, has the project's checks run, or has a person look. A stage that lands
moves the task's branch, and only to exactly what every required stage has approved. None of them decides
what follows: that is `pipeline.py`.
"""

from __future__ import annotations

from functools import partial

import msgspec

from planforge.documents.phases import named_files
from planforge.kernel.effects import (
    Access,
    AgentAnswer,
    ClaimLease,
    CloseWorktree,
    DocumentText,
    GatherContext,
    Gathered,
    Inspection,
    Note,
    OpenBranch,
    OpenWorktree,
    PassGate,
    Patch,
    ReadDocument,
    ReleaseLease,
    WriteDocument,
)
from planforge.kernel.events import FrictionNoted, PhasesGenerated, PlannedStep, StepCompleted
from planforge.kernel.evidence import Evidence, Outcome
from planforge.kernel.wording import counted
from planforge.rules import friction
from planforge.rules.attempts import fault_of_evidence, fault_of_inspection
from planforge.rules.escalation import Reached
from planforge.rules.loops.rounds import Suite
from planforge.rules.pipelines import Stage
from planforge.rules.verdicts import KINDS, NO_VERDICT, Judgement, Verdict
from planforge.rules.verdicts.judgement import judged, unknown
from planforge.workflows import asking, stage_prompts
from planforge.workflows.asking import Fault, Question
from planforge.workflows.attempt import (
    Attempt,
    Change,
    Proposal,
    Rejected,
    carry_out,
    check,
    inspected,
    land,
    verified,
)
from planforge.workflows.context import Prompt
from planforge.workflows.course import Course

WORKFLOW = "pipeline"
STRUCTURED = {"audit": "audit"}
"""The kinds of reviews that have a form for structured answers; all others are read from the text."""


class Came(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage came to, before anybody has decided what follows."""

    reason: str
    judgement: Judgement | None = None
    """None if the stage gives no verdict."""
    stuck: bool = False
    """Whether a person has to look."""
    refused: bool = False
    """Whether it was stopped because something had not been approved."""
    document: DocumentText | None = None
    answer: AgentAnswer | None = None
    tests: Suite | None = None
    """How the tests went, where they were run."""


async def play(course: Course, stage: Stage, iteration: int) -> Came:
    """Do what the stage is there for."""
    if stage.lands:
        return await _landed(course, stage, iteration)
    match stage.verdict:
        case "evidence":
            return await _measured(course, stage, iteration)
        case "person":
            return await _decided(course, stage, iteration)
        case "":
            if course.writes_code(stage):
                return await _changed(course, stage, iteration)
            return await _written(course, stage, iteration)
        case _:
            return await _reviewed(course, stage, iteration)


# Asking


async def _gathered(course: Course, stage: Stage, asked: GatherContext) -> Gathered:
    """What the agent of a stage is told of the project and of the stages before."""
    gathered: Gathered = await msgspec.structs.replace(asked, architecture=stage.architecture)
    return msgspec.structs.replace(
        gathered,
        steps=tuple(course.told),
        summaries=stage.summaries or gathered.summaries,
        output=STRUCTURED.get(stage.verdict, "") if stage.verdict else gathered.output,
    )


async def _drained(course: Course, stage: Stage, iteration: int, answer: AgentAnswer) -> AgentAnswer:
    """The answer without what it says of friction, which is on record then."""
    drained = friction.drain(answer.text)
    for signal in drained.signals:
        await Note(_friction(course, stage, iteration, signal, answer))
    if drained.unreadable:
        lost = friction.Signal(
            issue="x_friction_unreadable", detail=f"{counted(drained.unreadable, 'line')} could not be kept"
        )
        await Note(_friction(course, stage, iteration, lost, None))
    return msgspec.structs.replace(answer, text=drained.text)


def _friction(
    course: Course, stage: Stage, iteration: int, signal: friction.Signal, answer: AgentAnswer | None
) -> FrictionNoted:
    persona = course.request.players[course.role(stage)].persona if answer else "orchestrator"
    return FrictionNoted(
        task=course.request.task,
        workflow=WORKFLOW,
        persona=persona,
        issue=signal.issue,
        stage=stage.name,
        iteration=iteration,
        skill=signal.skill,
        detail=signal.detail,
        agent=answer.agent if answer else "",
        model=answer.model if answer else "",
    )


async def noticed(course: Course, stage: Stage, iteration: int, issue: str, detail: str) -> None:
    """Record what stood in the way as Planforge itself saw it."""
    await Note(_friction(course, stage, iteration, friction.Signal(issue=issue, detail=detail), None))


async def _read_only(
    course: Course, stage: Stage, iteration: int, texts: dict[str, str], fault: Fault
) -> AgentAnswer:
    """Ask an agent that only reads, in a worktree at the change that there is."""
    worktree = f"{stage.name}-{iteration}"
    question = Question(
        plan=course.request.task,
        step=stage.name,
        attempt=iteration,
        role=course.role(stage),
        access=Access.READ,
        worktree=worktree,
        base=course.commit,
        prompt=stage_prompts.stage(course, stage, iteration, texts),
        tier=stage.tier,
        model=stage.model,
    )
    await OpenWorktree(name=worktree, commit=course.commit)
    try:
        gathered = await _gathered(course, stage, asking.gathering(question))
        answer = await asking.ask(question, gathered, course.talk(stage), fault)
    finally:
        await CloseWorktree(name=worktree)
    return await _drained(course, stage, iteration, answer)


# Documents


async def _written(course: Course, stage: Stage, iteration: int) -> Came:
    """Have an agent write a document."""
    texts = await _texts(course, [each.leaves for each in course.request.pipeline.stages if each.writes])
    answer = await _read_only(course, stage, iteration, texts, _no_text)
    if repeated := course.repeated(stage, answer.text):
        before = course.documents.get(stage.leaves)
        reason = f"{repeated}: edit `{stage.leaves}` yourself"
        return Came(reason=reason, stuck=True, document=before, answer=answer)
    document = await _left(course, stage, answer.text.strip() + "\n")
    return Came(reason=f"wrote `{stage.leaves}`", document=document, answer=answer)


def _no_text(answer: AgentAnswer) -> str:
    return "" if friction.drain(answer.text).text.strip() else "the answer is empty"


async def _texts(course: Course, names: list[str]) -> dict[str, str]:
    """Documents as they are on disk now, whoever wrote them; what is not there is left out."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        if name in course.documents:
            course.documents[name] = await ReadDocument(task=course.request.task, name=name)
            found[name] = course.documents[name].text
    return found


async def texts_now(course: Course) -> None:
    """Read all that stages have written: an edit voids what was approved before it."""
    await _texts(course, [each.leaves for each in course.request.pipeline.stages if each.writes])


async def _left(course: Course, stage: Stage, text: str) -> DocumentText:
    """Write what a stage leaves behind."""
    before = course.documents.get(stage.leaves)
    course.documents[stage.leaves] = await WriteDocument(
        task=course.request.task, name=stage.leaves, text=text, replaces=before.object if before else ""
    )
    return course.documents[stage.leaves]


# Changes


async def _changed(course: Course, stage: Stage, iteration: int) -> Came:
    """Have an agent change the tree, until a change can be taken or the attempts are used up."""
    request = course.request
    texts = await _texts(course, [each.leaves for each in request.pipeline.stages if each.writes])
    change = _change(course, stage, iteration, texts)
    if not course.attempts:
        await Note(_steps(course, change))
    outcome = await carry_out(change, partial(_proposed, course.tree), course.commit)
    if isinstance(outcome, Rejected):
        if outcome.reached is Reached.NOTHING:
            await noticed(course, stage, iteration, "x_agent_failed", outcome.reason)
        return Came(reason=f"no change could be taken: {outcome.reason}", stuck=True)
    patch, answer = outcome.patch, outcome.answer
    assert answer is not None  # it was made just now
    course.commit, course.tree, course.files = patch.commit, patch.tree, patch.files
    course.protected, course.former = outcome.inspection.protected, outcome.inspection.former
    document = await _left(course, stage, answer.text.strip() + "\n")
    if repeated := course.repeated(stage, course.tree):
        return Came(reason=repeated, stuck=True, document=document, answer=answer)
    words = f"changed {counted(len(patch.files), 'file')}"
    return Came(reason=words, document=document, answer=answer)


async def _proposed(before: str, attempt: Attempt, proposal: Proposal) -> Proposal | Rejected:
    """A change of a task is taken as it is: later stages measure it, review it and land it."""
    if proposal.patch.tree == before:
        return Rejected(reason="the agent changed nothing", tip=attempt.base, reached=Reached.ANSWER)
    return proposal


def _change(course: Course, stage: Stage, iteration: int, texts: dict[str, str]) -> Change:
    """The change that a stage makes, or lands: everything since the task began, as one commit."""
    request = course.request
    first = course.attempts.get(stage.name, 0) + 1
    files = _files(course)

    def prompt(number: int, why: str) -> Prompt:
        course.attempts[stage.name] = number
        asked = stage_prompts.stage(course, stage, iteration, texts)
        return stage_prompts.change(asked, files, attempt=number - first + 1, problem=why)

    async def ask(question: Question, gathered: Gathered) -> AgentAnswer:
        return await _drained(course, stage, iteration, await asking.ask(question, gathered))

    return Change(
        plan=request.task,
        run=request.run,
        step=stage.name,
        title=request.title,
        base=request.base,
        files=files,
        prompt=prompt,
        content=course.approved(),
        exact=True,
        role=course.role(stage),
        tier=stage.tier,
        model=stage.model,
        attempts=request.attempts,
        first=first,
        handoffs=request.handoffs,
        escalate_after=request.escalate_after,
        gather=partial(_gathered, course, stage),
        ask=ask,
    )


def _files(course: Course) -> tuple[str, ...]:
    """The files that the documents of the task mean to change, and those that it has changed; () is any."""
    stages = [each for each in course.request.pipeline.stages if each.writes]
    texts = [course.documents[name].text for name in course.texts(stages) if name in course.documents]
    named = [path for text in texts for path in named_files(text)]
    return tuple(dict.fromkeys((*named, *course.files))) if named else ()


def _changing(course: Course) -> list[Stage]:
    return [each for each in course.request.pipeline.stages if course.writes_code(each)]


def _steps(course: Course, change: Change) -> PhasesGenerated:
    """The stages that change code, as steps that an agent can hand over."""
    steps = tuple(
        PlannedStep(step=each.name, title=change.title, kind="implement", files=change.files, depends_on=())
        for each in _changing(course)
    )
    return PhasesGenerated(
        plan=change.plan, content=change.content, parallel=False, max_files=0, steps=steps, signatures={}
    )


# Verdicts


async def _reviewed(course: Course, stage: Stage, iteration: int) -> Came:
    """Have an agent judge; what it says is read in a closed vocabulary."""
    texts = await _texts(course, course.texts(course.subjects(stage)))
    parse = KINDS[stage.verdict]

    def read(answer: AgentAnswer) -> Judgement:
        return parse(answer.output or friction.drain(answer.text).text)

    answer = await _read_only(course, stage, iteration, texts, lambda said: _nothing_said(read(said)))
    judgement = read(answer)
    document = await _left(course, stage, answer.text.strip() + "\n")
    return Came(reason=judgement.reason, judgement=judgement, document=document, answer=answer)


def _nothing_said(judgement: Judgement) -> str:
    """Whether there is no verdict at all: then it is asked for again. One in doubt is a person's to read."""
    nothing = judgement.reason == NO_VERDICT or judgement.reason.startswith(
        ("there is no ", "it is not a review")
    )
    return judgement.reason if judgement.verdict is Verdict.UNKNOWN and nothing else ""


async def _measured(course: Course, stage: Stage, iteration: int) -> Came:
    """Have the project's own checks judge; what they cannot tell nobody else may."""
    evidence = await verified(_change(course, stage, iteration, {}), iteration, _patch(course))
    reason = fault_of_evidence(evidence)
    match evidence.outcome:
        case Outcome.PASS:
            judgement = judged(Verdict.APPROVED, evidence.reason)
        case Outcome.FAIL:
            judgement = judged(Verdict.REVISION, reason or evidence.reason)
        case _:
            judgement = unknown(reason or evidence.reason)
    document = await _left(course, stage, _report(course, evidence, judgement))
    return Came(reason=judgement.reason, judgement=judgement, document=document, tests=_suite(evidence))


def _suite(evidence: Evidence) -> Suite | None:
    if evidence.counts is None:
        return None
    counts = evidence.counts
    return Suite(
        total=counts.total - counts.skipped,
        passed=counts.passed,
        failed=counts.failed,
        failing=evidence.failing,
    )


def _report(course: Course, evidence: Evidence, judgement: Judgement) -> str:
    lines = [f"# Evidence for {course.request.task}", "", f"- tree: `{evidence.tree or course.tree}`"]
    lines += [f"- outcome: {evidence.outcome.value}", f"- {evidence.reason}"]
    lines += [f"- failing: `{name}`" for name in evidence.failing]
    return "\n".join([*lines, "", f"Verdict: {judgement.verdict.value}", ""])


async def _decided(course: Course, stage: Stage, iteration: int) -> Came:
    """Have a person look at exactly what there is; the run waits without a process."""
    await texts_now(course)
    while (decision := await _passed(course, stage, iteration)).void:
        await texts_now(course)
        if void := course.void(stage):
            course.stopped_at = void[0]
            said = f"{decision.reason}; the task has to be resumed at `{void[0]}`, which has not seen that"
            return Came(reason=said, stuck=True, refused=True)
    said = f"{decision.actor} said {'yes' if decision.approved else 'no'}"
    words = f"{said}: {decision.reason}" if decision.reason else said
    verdict = Verdict.APPROVED if decision.approved else Verdict.REVISION
    document = await _left(course, stage, f"# Decision on {course.request.task}\n\n{words}\n")
    return Came(reason=words, judgement=judged(verdict, words), document=document)


def _passed(course: Course, stage: Stage, iteration: int) -> PassGate:
    request = course.request
    judged = course.judged_documents(stage)
    reasons = [f"`{stage.name}` of {request.task}: {request.title}"]
    reasons += [f"`{each.path}` as it is now" for each in judged]
    reasons += [f"{name}: {course.said(name)}" for name in course.verdicts]
    return PassGate(
        plan=request.task,
        step=stage.name,
        attempt=iteration,
        gate=stage.name,
        commit=course.commit,
        tree=course.tree,
        parent=request.base,
        reasons=(*reasons, *course.protected),
        documents=judged,
    )


# Landing


async def _landed(course: Course, stage: Stage, iteration: int) -> Came:
    """Move the task's branch to what was approved, and to nothing else."""
    await _texts(course, list(course.documents))
    if missing := course.missing():
        course.stopped_at = missing[0]
        names = ", ".join(f"`{name}`" for name in missing)
        return Came(reason=f"{names} has not approved what would land", stuck=True, refused=True)
    if not course.changed:
        return Came(reason="nothing was changed, so nothing lands")
    change = msgspec.structs.replace(_change(course, stage, iteration, {}), files=course.files)
    inspection = await _inspection(course, change, iteration)
    if fault := fault_of_inspection(inspection):
        return Came(reason=fault, stuck=True)
    outcome = await check(change, iteration, Proposal(patch=_patch(course), inspection=inspection))
    if isinstance(outcome, Proposal):
        await OpenBranch(branch=change.branch, commit=change.base)
        lease = await ClaimLease(holder=f"{change.run}/{change.step}", paths=change.leases)
        try:
            outcome = await land(change, iteration, outcome, lease)
        finally:
            await ReleaseLease(lease=lease, reason="landed")
    if isinstance(outcome, Rejected):
        return Came(reason=outcome.reason, stuck=True, refused=outcome.person)
    course.commit = outcome.patch.commit
    for each in _changing(course):
        number = course.attempts.get(each.name, 1)
        await Note(StepCompleted(plan=change.plan, step=each.name, attempts=number, score=None))
    return Came(reason=f"landed {course.commit[:12]} on `{change.branch}`")


def _patch(course: Course) -> Patch:
    """The change that there is, from where the task began."""
    base = course.request.base
    return Patch(commit=course.commit, tree=course.tree, parent=base, files=course.files, changed_lines=0)


async def _inspection(course: Course, change: Change, iteration: int) -> Inspection:
    """
    What was found in the change; what a person has said yes to needs no second person.

    One that an earlier run left is inspected again: what that run knew of it, this one does not.
    """
    found = Inspection(protected=course.protected, former=course.former)
    if course.commit == course.request.commit:
        found = await inspected(change, iteration, _patch(course))
    return msgspec.structs.replace(found, protected=()) if _seen_by_person(course) else found


def _seen_by_person(course: Course) -> bool:
    """Whether a person has said yes to exactly this tree in a stage of theirs."""
    stages = [each for each in course.request.pipeline.stages if each.verdict == "person"]
    seen = [each for each in stages if any(map(course.writes_code, course.subjects(each)))]
    return any(course.verdicts.get(each.name) == ("approved", course.judged(each)) for each in seen)
