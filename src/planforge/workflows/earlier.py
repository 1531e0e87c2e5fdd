"""
Carrying out a plan as it was before its phases were in the ledger.

Runs that were recorded then are decided again by this, and taken up again by it;
no new run is. It goes wave by wave and ends with the first step that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planforge.documents import plan as plans
from planforge.documents.phases import Phase, PhaseKind, decompose, render_phases
from planforge.documents.plan import PlanStatus
from planforge.errors import PerformerFailed
from planforge.kernel.effects import (
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
    PlanStarted,
    StepCompleted,
    StepFailed,
    StepStarted,
)
from planforge.rules.states.tables import PHASE
from planforge.rules.verdicts import Verdict, parse_audit
from planforge.workflows import phase as phases_
from planforge.workflows import prompts
from planforge.workflows.asking import UNUSABLE
from planforge.workflows.forge import no_verdict, recorded
from planforge.workflows.phase import (
    EDITED,
    GATE,
    Known,
    Place,
    PlanRunRequest,
    PlanRunResult,
    branch_of,
    planned,
    step_of,
)
from planforge.workflows.step import StepRequest, StepResult, implement


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
            steps=tuple(planned(phase) for phase in phases),
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
    # A plan that could not go on returned to review: approving it again was the way out.
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
        known = Known(phases=tuple(phases), done=tuple(p.id for p in phases if status.get(p.id) == "done"))
        under_way = {phase.id: PHASE.after(status.get(phase.id, PHASE.initial), "start") for phase in wave}
        flows = {
            phase.id: _phase(step_of(request, text, phase, base, known, notes=notes), text) for phase in wave
        }
        results = await Together(flows, limit=request.jobs)
        status |= {name: _came_to(under_way[name], result) for name, result in results.items()}
        notes += phases_.notes_of(tuple(results.values()))
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


async def _phase(request: StepRequest, text: str) -> StepResult:
    phase, base = request.phase, request.base
    if phase.kind is PhaseKind.IMPLEMENT:
        return await implement(request)
    await Note(StepStarted(plan=request.plan, step=phase.id, attempt=1, base=base))
    await OpenWorktree(name=phase.id, commit=base)
    looking = phases_.read if phase.kind is PhaseKind.READ else _audit
    try:
        result = await looking(request, text)
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


async def _audit(request: StepRequest, text: str) -> StepResult:
    """Have the finished work read by an auditor. Only a clear verdict without a blocking finding passes."""
    phase, base = request.phase, request.base
    prompt = prompts.review(request.plan, phase, plans.approvable(text))
    place = Place(worktree=phase.id, commit=base)
    answer = await phases_.ask(request, "auditor", place, prompt, no_verdict)
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
