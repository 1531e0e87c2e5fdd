"""
What the stages of a pipeline do, each kind in its own way.

A stage that writes has an agent write a document, or change the tree in a worktree of its own. A stage
with a verdict has an agent review, has the project's checks run, or has a person look. A stage that lands
moves the task's branch, and only to exactly what every required stage has approved. None of them decides
what follows: that is `pipeline.py`.
"""

from __future__ import annotations

import msgspec

from planforge.errors import LeaseLost, PerformerFailed, SecretFound
from planforge.kernel.effects import (
    Access,
    AgentAnswer,
    ClaimLease,
    CloseWorktree,
    Commit,
    Decision,
    DocumentText,
    GatherContext,
    Gathered,
    Inspect,
    Inspection,
    Land,
    Landing,
    Leased,
    Note,
    OpenBranch,
    OpenWorktree,
    PassGate,
    Patch,
    ReadDocument,
    ReleaseLease,
    RunCheck,
    RunFormerTests,
    WriteDocument,
)
from planforge.kernel.events import (
    AttemptInspected,
    FrictionNoted,
    PatchApplied,
    PatchProposed,
    VerifyFailed,
    VerifyOk,
)
from planforge.kernel.evidence import Evidence, Outcome
from planforge.kernel.wording import counted
from planforge.rules import friction
from planforge.rules.attempts import (
    doubt_of_former_tests,
    fault_of_evidence,
    fault_of_inspection,
    fault_of_patch,
)
from planforge.rules.loops.rounds import Suite
from planforge.rules.pipelines import Stage
from planforge.rules.verdicts import KINDS, NO_VERDICT, Judgement, Verdict
from planforge.rules.verdicts.judgement import judged, unknown
from planforge.workflows import asking, stage_prompts
from planforge.workflows.asking import Conversation, Fault, Question, usable
from planforge.workflows.context import Prompt
from planforge.workflows.course import Course, Problem

WORKFLOW = "pipeline"
EVERYTHING = ("**",)
"""What a change leases whose files nobody has named."""

PROTECTED = "protected"
STRUCTURED = {"audit": "audit"}
"""The kinds of reviews that have a form for structured answers; all others are read from the text."""

TITLE = 120


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


async def _asked(
    course: Course, stage: Stage, question: Question, talk: Conversation | None, fault: Fault
) -> AgentAnswer:
    gathered: Gathered = await GatherContext(
        role=question.role, plan=question.plan, base=question.base, architecture=stage.architecture
    )
    gathered = msgspec.structs.replace(
        gathered,
        steps=tuple(course.told),
        summaries=stage.summaries or gathered.summaries,
        output=STRUCTURED.get(stage.verdict, "") if stage.verdict else gathered.output,
    )
    answer = await asking.ask(question, gathered, talk, fault)
    drained = friction.drain(answer.text)
    for signal in drained.signals:
        await Note(_friction(course, stage, question.attempt, signal, answer))
    if drained.unreadable:
        lost = friction.Signal(
            issue="x_friction_unreadable", detail=f"{counted(drained.unreadable, 'line')} could not be kept"
        )
        await Note(_friction(course, stage, question.attempt, lost, None))
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


def _question(
    course: Course, stage: Stage, iteration: int, prompt: Prompt, *, access: Access, worktree: str, base: str
) -> Question:
    return Question(
        plan=course.request.task,
        step=stage.name,
        attempt=iteration,
        role=course.role(stage),
        access=access,
        worktree=worktree,
        base=base,
        prompt=prompt,
        tier=stage.tier,
        model=stage.model,
    )


async def _read_only(
    course: Course, stage: Stage, iteration: int, texts: dict[str, str], fault: Fault
) -> AgentAnswer:
    """Ask somebody who only reads, in a worktree at the change that there is."""
    worktree = f"{stage.name}-{iteration}"
    name = course.name(stage, iteration)
    prompt = stage_prompts.stage(course, stage, name=name, iteration=iteration, attempt=1, texts=texts)
    await OpenWorktree(name=worktree, commit=course.commit)
    question = _question(
        course, stage, iteration, prompt, access=Access.READ, worktree=worktree, base=course.commit
    )
    try:
        return await _asked(course, stage, question, course.talk(stage), fault)
    finally:
        await CloseWorktree(name=worktree)


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


class _Proposed(msgspec.Struct, frozen=True, kw_only=True):
    patch: Patch
    answer: AgentAnswer
    inspection: Inspection


async def _changed(course: Course, stage: Stage, iteration: int) -> Came:
    """Have an agent change the tree, until a change can be taken or the attempts are used up."""
    request = course.request
    texts = await _texts(course, [each.leaves for each in request.pipeline.stages if each.writes])
    reason = ""
    for attempt in range(1, request.attempts + 1):
        lease = await ClaimLease(holder=f"{request.run}/{stage.name}", paths=EVERYTHING)
        found = await _attempted(course, stage, iteration, attempt, texts, lease)
        await ReleaseLease(lease=lease, reason=found if isinstance(found, str) else "proposed")
        if isinstance(found, _Proposed):
            course.commit, course.tree = found.patch.commit, found.patch.tree
            course.files = tuple(dict.fromkeys((*course.files, *found.patch.files)))
            course.protected = found.inspection.protected
            course.former = found.inspection.former
            document = await _left(course, stage, found.answer.text.strip() + "\n")
            if repeated := course.repeated(stage, course.tree):
                return Came(reason=repeated, stuck=True, document=document, answer=found.answer)
            words = f"changed {counted(len(found.patch.files), 'file')}"
            return Came(reason=words, document=document, answer=found.answer)
        reason = found
        course.problem = Problem(stage=stage.name, reason=f"the change was not taken: {found}")
    return Came(reason=f"no change could be taken: {reason}", stuck=True)


async def _attempted(
    course: Course, stage: Stage, iteration: int, attempt: int, texts: dict[str, str], lease: Leased
) -> _Proposed | str:
    """One try; why it was not taken, if it was not."""
    worktree = f"{stage.name}-{iteration}.{attempt}"
    name = course.name(stage, iteration)
    prompt = stage_prompts.stage(course, stage, name=name, iteration=iteration, attempt=attempt, texts=texts)
    await OpenWorktree(name=worktree, commit=course.commit)
    question = _question(
        course, stage, iteration, prompt, access=Access.WRITE, worktree=worktree, base=course.commit
    )
    try:
        answer = await _asked(course, stage, msgspec.structs.replace(question, lease=lease), None, usable)
        patch = await Commit(
            worktree=worktree,
            parent=course.commit,
            message=_message(course, stage, iteration),
            step=f"{stage.name}-{iteration}",
            attempt=attempt,
        )
    except PerformerFailed as error:
        if error.error != SecretFound.__name__:
            raise
        return error.message
    finally:
        await CloseWorktree(name=worktree)
    await Note(_proposed(course, stage, iteration, patch, answer))
    if fault := fault_of_patch(patch, ()):
        return fault
    return await _inspected(course, stage, iteration, patch, answer)


async def _inspected(
    course: Course, stage: Stage, iteration: int, patch: Patch, answer: AgentAnswer
) -> _Proposed | str:
    """Look at the whole change, from where the task began, before anything of it is run."""
    inspection = await Inspect(commit=patch.commit, parent=course.request.base, files=())
    if inspection.findings or inspection.protected:
        await Note(
            AttemptInspected(
                plan=course.request.task,
                step=stage.name,
                attempt=iteration,
                commit=patch.commit,
                findings=inspection.findings,
                protected=inspection.protected,
            )
        )
    if fault := fault_of_inspection(inspection):
        return fault
    return _Proposed(patch=patch, answer=answer, inspection=inspection)


def _proposed(
    course: Course, stage: Stage, iteration: int, patch: Patch, answer: AgentAnswer
) -> PatchProposed:
    return PatchProposed(
        plan=course.request.task,
        step=stage.name,
        attempt=iteration,
        commit=patch.commit,
        tree=patch.tree,
        files=patch.files,
        claim=answer.text.strip(),
        agent=answer.agent,
        sandbox=answer.sandbox,
    )


def _message(course: Course, stage: Stage, iteration: int) -> str:
    request = course.request
    title = " ".join(request.title.split())[:TITLE]
    trailers = (
        f"Planforge-Run: {request.run}",
        f"Planforge-Step: {request.task}/{stage.name}",
        f"Planforge-Attempt: {iteration}",
    )
    return f"{request.task} {stage.name}: {title}\n\n" + "\n".join(trailers) + "\n"


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
    evidence = await _verified(course, stage, iteration)
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


async def _verified(course: Course, stage: Stage, iteration: int) -> Evidence:
    evidence = await RunCheck(commit=course.commit, tree=course.tree)
    event = VerifyFailed if fault_of_evidence(evidence) else VerifyOk
    await Note(event(plan=course.request.task, step=stage.name, attempt=iteration, evidence=evidence))
    return evidence


def _report(course: Course, evidence: Evidence, judgement: Judgement) -> str:
    lines = [f"# Evidence for {course.request.task}", "", f"- tree: `{evidence.tree or course.tree}`"]
    lines += [f"- outcome: {evidence.outcome.value}", f"- {evidence.reason}"]
    lines += [f"- failing: `{name}`" for name in evidence.failing]
    return "\n".join([*lines, "", f"Verdict: {judgement.verdict.value}", ""])


async def _decided(course: Course, stage: Stage, iteration: int) -> Came:
    """Have a person look at exactly what there is; the run waits without a process."""
    await _texts(course, course.texts(course.subjects(stage)))
    content = course.judged(stage)
    decision = await _passed(
        course, stage, iteration, f"{stage.name}/{content[:16]}", _reasons(course, stage)
    )
    said = f"{decision.actor} said {'yes' if decision.approved else 'no'}"
    words = f"{said}: {decision.reason}" if decision.reason else said
    verdict = Verdict.APPROVED if decision.approved else Verdict.REVISION
    document = await _left(course, stage, f"# Decision on {course.request.task}\n\n{words}\n")
    return Came(reason=words, judgement=judged(verdict, words), document=document)


def _passed(course: Course, stage: Stage, iteration: int, gate: str, reasons: tuple[str, ...]) -> PassGate:
    return PassGate(
        plan=course.request.task,
        step=stage.name,
        attempt=iteration,
        gate=gate,
        commit=course.commit,
        tree=course.tree,
        parent=course.request.base,
        reasons=reasons,
    )


def _reasons(course: Course, stage: Stage) -> tuple[str, ...]:
    request = course.request
    reasons = [f"`{stage.name}` of {request.task}: {request.title}"]
    reasons += [f"`{request.path}/{name}` as it is now" for name in course.texts(course.subjects(stage))]
    reasons += [f"{name}: {verdict}" for name, (verdict, _) in course.verdicts.items()]
    return tuple(reasons + list(course.protected))


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
    if fault := fault_of_evidence(await _verified(course, stage, iteration)):
        return Came(reason=fault, stuck=True)
    if fault := await _fault_from_before(course):
        return Came(reason=fault, stuck=True)
    reasons = () if _seen_by_person(course) else course.protected
    if doubt := await _doubt_of_former_tests(course):
        reasons = (*reasons, doubt)
    if reasons:
        gate = f"{PROTECTED}/{stage.name}"
        decision: Decision = await _passed(course, stage, iteration, gate, reasons)
        if not decision.approved:
            return Came(reason=f"{decision.actor} said no to it: {decision.reason}", stuck=True, refused=True)
    landing = await _moved(course, stage)
    if isinstance(landing, str):
        return Came(reason=landing, stuck=True)
    if not landing.landed:
        words = f"`{course.request.branch}` is at {landing.tip[:12]}, not where this change began"
        return Came(reason=words, stuck=True)
    await Note(_applied(course, stage, iteration))
    return Came(reason=f"landed {course.commit[:12]} on `{course.request.branch}`")


async def _fault_from_before(course: Course) -> str | None:
    """Look at a change that an earlier run left: what that run knew of it, this one does not."""
    request = course.request
    if course.commit != request.commit:
        return None
    inspection = await Inspect(commit=course.commit, parent=request.base, files=())
    course.protected, course.former = inspection.protected, inspection.former
    return fault_of_inspection(inspection)


async def _doubt_of_former_tests(course: Course) -> str | None:
    """Why tests that were there before the task need a person, or None; whoever looked did not know that."""
    if not course.former:
        return None
    evidence = await RunFormerTests(commit=course.commit, parent=course.request.base, files=course.former)
    return doubt_of_former_tests(evidence, course.former)


def _seen_by_person(course: Course) -> bool:
    """Whether a person has said yes to exactly this tree in a stage of theirs."""
    stages = [each for each in course.request.pipeline.stages if each.verdict == "person"]
    seen = [each for each in stages if any(map(course.writes_code, course.subjects(each)))]
    return any(course.verdicts.get(each.name) == ("approved", course.judged(each)) for each in seen)


async def _moved(course: Course, stage: Stage) -> Landing | str:
    request = course.request
    await OpenBranch(branch=request.branch, commit=request.base)
    lease = await ClaimLease(holder=f"{request.run}/{stage.name}", paths=course.files or EVERYTHING)
    try:
        return await Land(
            branch=request.branch,
            commit=course.commit,
            expected=request.base,
            lease=lease,
            files=course.files,
        )
    except PerformerFailed as error:
        if error.error != LeaseLost.__name__:
            raise
        return error.message
    finally:
        await ReleaseLease(lease=lease, reason="landed")


def _applied(course: Course, stage: Stage, iteration: int) -> PatchApplied:
    request = course.request
    return PatchApplied(
        plan=request.task,
        step=stage.name,
        attempt=iteration,
        content=course.approved(),
        scope=course.files,
        branch=request.branch,
        commit=course.commit,
        tree=course.tree,
        parent=request.base,
    )
