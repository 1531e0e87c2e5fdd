"""
Carry out an approved plan: its phases in waves, each landing on the plan's branch as it passes.

The approval is used up at the start. Before each wave the plan is read again; one
that was edited since stops the run, keeping what has landed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from planforge.documents import markdown
from planforge.documents import plan as plans
from planforge.documents.phases import Phase, PhaseKind, decompose, render_phases
from planforge.documents.plan import PlanStatus
from planforge.errors import PerformerFailed
from planforge.kernel.effects import (
    Access,
    AgentAnswer,
    CloseWorktree,
    MarkPlan,
    Note,
    OpenBranch,
    OpenWorktree,
    ReadPlan,
    ReadProgress,
    TakeApproval,
    Together,
    WritePhases,
)
from planforge.kernel.events import (
    AuditRecorded,
    PlanEnded,
    PlannedStep,
    PlanStarted,
    StepCompleted,
    StepFailed,
    StepStarted,
)
from planforge.rules.states.tables import PHASE
from planforge.rules.verdicts import Verdict, parse_audit
from planforge.workflows import asking, prompts
from planforge.workflows.asking import UNUSABLE, Fault, Question, usable
from planforge.workflows.context import Prompt, closure_of
from planforge.workflows.forge import no_verdict, recorded
from planforge.workflows.step import StepRequest, StepResult, implement

GATE = "plan"
EDITED = "it was edited after it was approved"


class PlanRunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which plan to carry out, from where, and how."""

    plan: str
    run: str
    path: str
    base: str
    today: str
    parallel: bool = False
    jobs: int = 2
    attempts: int = 3
    max_files: int = 5
    leased: bool = False
    """Steps lease their files; False is for runs that were recorded before there were leases."""
    handoffs: int = 0
    inspected: bool = False
    """Changes are looked at before they are run; False is for runs that were recorded before that."""
    composed: bool = False
    """Agents get a composed context; False is for runs that were recorded before that."""
    escalate_after: int = 0


class PlanRunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the plan ended."""

    plan: str
    branch: str
    commit: str
    done: bool
    reason: str
    voided: bool
    """It stopped because the approval no longer holds."""


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """The plan's phases, and those that are done."""

    phases: tuple[Phase, ...]
    done: tuple[str, ...]


async def plan_run(request: PlanRunRequest) -> PlanRunResult:
    """Take the approval, decompose the plan, run its phases."""
    text = (await ReadPlan(plan=request.plan)).text
    content = plans.content_hash(text)
    await TakeApproval(plan=request.plan, gate=GATE, content=content)
    phases = decompose(text, max_files=request.max_files, parallel=request.parallel)
    branch = branch_of(request.plan)
    tip = (await OpenBranch(branch=branch, commit=request.base)).commit
    landed = {
        step.step: step.scope for step in (await ReadProgress(plan=request.plan, content=content)).landed
    }
    kept = tuple(phase.id for phase in phases if landed.get(phase.id) == phase.files)
    await Note(
        PlanStarted(
            plan=request.plan,
            run=request.run,
            content=content,
            branch=branch,
            base=tip,
            steps=tuple(_planned(phase) for phase in phases),
            kept=kept,
        )
    )
    await MarkPlan(plan=request.plan, status=PlanStatus.IMPLEMENTING.value)
    try:
        stopped = await _waves(request, text, phases, kept)
    except PerformerFailed as error:
        stopped = StepResult(step=request.plan, done=False, tip=tip, reason=error.message)
    return await _ended(request, stopped)


async def _ended(request: PlanRunRequest, stopped: StepResult | None) -> PlanRunResult:
    branch = branch_of(request.plan)
    commit = (await OpenBranch(branch=branch, commit=request.base)).commit
    reason = f"{stopped.step}: {stopped.reason}" if stopped else "every step is done"
    done = stopped is None
    # A plan that could not go on returns to review: approving it again is the way out.
    await MarkPlan(plan=request.plan, status=(PlanStatus.DONE if done else PlanStatus.REVIEW).value)
    await Note(
        PlanEnded(
            plan=request.plan, run=request.run, succeeded=done, reason=reason, branch=branch, commit=commit
        )
    )
    voided = stopped is not None and stopped.voided
    return PlanRunResult(
        plan=request.plan, branch=branch, commit=commit, done=done, reason=reason, voided=voided
    )


async def _waves(
    request: PlanRunRequest, text: str, phases: Sequence[Phase], kept: Sequence[str]
) -> StepResult | None:
    """Run the phases wave by wave; the step that cannot go on, or None."""
    content = plans.content_hash(text)
    status = dict.fromkeys(kept, PHASE.after(PHASE.initial, "landed before"))
    notes = ""
    for wave in waves(phases, kept):
        await _write_phases(request, content, phases, status)
        now = (await ReadPlan(plan=request.plan)).text
        if plans.content_hash(now) != content:
            return StepResult(step=request.plan, done=False, tip="", reason=EDITED, voided=True)
        base = (await OpenBranch(branch=branch_of(request.plan), commit=request.base)).commit
        known = _Known(phases=tuple(phases), done=tuple(p.id for p in phases if status.get(p.id) == "done"))
        under_way = {phase.id: PHASE.after(status.get(phase.id, PHASE.initial), "start") for phase in wave}
        flows = {phase.id: _phase(request, text, phase, base, notes, known) for phase in wave}
        results = await Together(flows, limit=request.jobs)
        status |= {name: _came_to(under_way[name], result) for name, result in results.items()}
        notes += "".join(result.notes for result in results.values())
        if stopped := next((result for result in results.values() if not result.done), None):
            await _write_phases(request, content, phases, status)
            return stopped
    await _write_phases(request, content, phases, status)
    return None


def _came_to(status: str, result: StepResult) -> str:
    """The status of a phase that was under way."""
    return PHASE.after(status, "evidence passed" if result.done else "attempts used up")


async def _write_phases(
    request: PlanRunRequest, content: str, phases: Sequence[Phase], status: Mapping[str, str]
) -> None:
    plan = plans.parse_plan_id(request.plan)
    text = render_phases(plan, request.path, content, request.today, tuple(phases), status)
    await WritePhases(plan=request.plan, text=text)


async def _phase(
    request: PlanRunRequest, text: str, phase: Phase, base: str, notes: str, known: _Known
) -> StepResult:
    if phase.kind is PhaseKind.IMPLEMENT:
        step = StepRequest(
            plan=request.plan,
            run=request.run,
            content=plans.content_hash(text),
            branch=branch_of(request.plan),
            objective=(markdown.body(text, "Objective") or "").strip(),
            notes=notes,
            phase=phase,
            base=base,
            attempts=request.attempts,
            leased=request.leased,
            handoffs=request.handoffs,
            inspected=request.inspected,
            composed=request.composed,
            earlier=known.done if request.composed else (),
            closure=closure_of(known.phases, phase.id) if request.composed else (),
            escalate_after=request.escalate_after,
        )
        return await implement(step)
    await Note(StepStarted(plan=request.plan, step=phase.id, attempt=1, base=base))
    await OpenWorktree(name=phase.id, commit=base)
    looking = _read if phase.kind is PhaseKind.READ else _audit
    try:
        result = await looking(request, text, phase, base, known)
    except PerformerFailed as error:
        if not request.composed or error.error not in UNUSABLE:
            raise
        result = StepResult(step=phase.id, done=False, tip=base, reason=error.message)
    await CloseWorktree(name=phase.id)
    if result.done:
        await Note(StepCompleted(plan=request.plan, step=phase.id, attempts=1, score=None))
    else:
        await Note(StepFailed(plan=request.plan, step=phase.id, attempts=1, reason=result.reason))
    return result


async def _ask(
    request: PlanRunRequest,
    role: str,
    phase: Phase,
    base: str,
    prompt: Prompt,
    known: _Known,
    fault: Fault = usable,
) -> AgentAnswer:
    question = Question(
        plan=request.plan,
        step=phase.id,
        attempt=1,
        role=role,
        access=Access.READ,
        worktree=phase.id,
        base=base,
        files=phase.files,
        earlier=known.done,
        closure=closure_of(known.phases, phase.id),
        prompt=prompt,
    )
    if not request.composed:
        return await asking.plainly(question)
    return await asking.ask(question, await asking.gathering(question), fault=fault)


async def _read(request: PlanRunRequest, text: str, phase: Phase, base: str, known: _Known) -> StepResult:
    """Have the code read before anything is changed."""
    prompt = prompts.read(request.plan, phase, plans.approvable(text))
    answer = await _ask(request, "developer", phase, base, prompt, known)
    return StepResult(step=phase.id, done=True, tip=base, reason="read", notes=answer.text)


async def _audit(request: PlanRunRequest, text: str, phase: Phase, base: str, known: _Known) -> StepResult:
    """Have the finished work read by an auditor. Only a clear verdict without a blocking finding passes."""
    prompt = prompts.review(request.plan, phase, plans.approvable(text))
    answer = await _ask(request, "auditor", phase, base, prompt, known, no_verdict)
    verdict = parse_audit(answer.output or answer.text)
    passed = verdict.verdict is Verdict.APPROVED
    reason = "nothing blocks" if passed else f"the audit says {verdict.verdict.value} ({verdict.reason})"
    await Note(
        AuditRecorded(
            plan=request.plan,
            step=phase.id,
            round=1,
            by=answer.agent,
            verdict=verdict.verdict.value,
            reason=verdict.reason,
            findings=recorded(verdict.findings),
            decision="done" if passed else "halt",
            decision_reason=reason,
        )
    )
    return StepResult(step=phase.id, done=passed, tip=base, reason=reason)


def branch_of(plan: str) -> str:
    """The branch a plan lands on."""
    return f"planforge/{plan}"


def waves(phases: Sequence[Phase], done: Sequence[str] = ()) -> Iterator[list[Phase]]:
    """Group phases so that each group needs only what comes before it."""
    met = set(done)
    left = [phase for phase in phases if phase.id not in met]
    while left:
        wave = [phase for phase in left if met.issuperset(phase.depends_on)]
        if not wave:
            names = ", ".join(phase.id for phase in left)
            raise ValueError(f"phases wait for each other: {names}")
        yield wave
        met.update(phase.id for phase in wave)
        left = [phase for phase in left if phase not in wave]


def _planned(phase: Phase) -> PlannedStep:
    return PlannedStep(
        step=phase.id,
        title=phase.title,
        kind=phase.kind.value,
        files=phase.files,
        depends_on=phase.depends_on,
    )
