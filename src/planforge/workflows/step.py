"""
One step of a plan: attempts in worktrees of their own until the evidence carries one, then its landing.

An attempt starts at an explicit commit. What the agent leaves is committed and
kept whatever becomes of it; Planforge's own check on a fresh checkout decides.
The branch only ever moves to a commit whose exact tree has passed.
"""

from __future__ import annotations

import msgspec

from planforge.documents.phases import Phase
from planforge.errors import PerformerFailed
from planforge.kernel.effects import (
    Access,
    CloseWorktree,
    Commit,
    Land,
    Note,
    OpenWorktree,
    Patch,
    Rebase,
    RunAgent,
    RunCheck,
)
from planforge.kernel.events import (
    AttemptRejected,
    PatchApplied,
    PatchProposed,
    StepCompleted,
    StepFailed,
    StepStarted,
    VerifyFailed,
    VerifyOk,
)
from planforge.kernel.evidence import Evidence
from planforge.kernel.scores import score
from planforge.rules.attempts import fault_of_evidence, fault_of_patch
from planforge.workflows import prompts

LANDING_TRIES = 50
"""A branch that moves this often under one landing is a fault, not a queue."""


class StepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a step needs to know of its plan."""

    plan: str
    run: str
    content: str
    branch: str
    objective: str
    notes: str
    """What phases that only read have found."""
    phase: Phase
    base: str
    attempts: int


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the step ended."""

    step: str
    done: bool
    tip: str
    reason: str
    notes: str = ""
    voided: bool = False
    """The approval no longer holds."""


class _Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt was not taken, and where the branch was then."""

    reason: str
    tip: str


async def implement(request: StepRequest) -> StepResult:
    """Try until an attempt has landed or the attempts are used up."""
    phase = request.phase
    problem = _Refused(reason="", tip=request.base)
    for attempt in range(1, request.attempts + 1):
        outcome = await _attempt(request, attempt, problem)
        if isinstance(outcome, StepResult):
            return outcome
        problem = outcome
        rejected = AttemptRejected(plan=request.plan, step=phase.id, attempt=attempt, reason=problem.reason)
        await Note(rejected)
    await Note(StepFailed(plan=request.plan, step=phase.id, attempts=request.attempts, reason=problem.reason))
    return StepResult(step=phase.id, done=False, tip=problem.tip, reason=problem.reason)


async def _attempt(request: StepRequest, attempt: int, before: _Refused) -> StepResult | _Refused:
    phase, base = request.phase, before.tip
    worktree = f"{phase.id}-{attempt}"
    await Note(StepStarted(plan=request.plan, step=phase.id, attempt=attempt, base=base))
    await OpenWorktree(name=worktree, commit=base)
    prompt = prompts.implement(
        request.plan,
        phase,
        attempt=attempt,
        objective=request.objective,
        notes=request.notes,
        problem=before.reason,
    )
    try:
        answer = await RunAgent(
            role="developer", access=Access.WRITE, worktree=worktree, base=base, prompt=prompt
        )
    except PerformerFailed as error:
        await CloseWorktree(name=worktree)
        return _Refused(reason=error.message, tip=base)
    patch = await Commit(
        worktree=worktree, parent=base, message=_message(request, attempt), step=phase.id, attempt=attempt
    )
    await CloseWorktree(name=worktree)
    await Note(
        PatchProposed(
            plan=request.plan,
            step=phase.id,
            attempt=attempt,
            commit=patch.commit,
            tree=patch.tree,
            files=patch.files,
            claim=answer.text.strip(),
            agent=answer.agent,
        )
    )
    if fault := fault_of_patch(patch, phase.files):
        return _Refused(reason=fault, tip=base)
    evidence = await _verified(request, attempt, patch)
    if fault := fault_of_evidence(evidence):
        return _Refused(reason=fault, tip=base)
    return await _landed(request, attempt, patch, evidence)


async def _verified(request: StepRequest, attempt: int, patch: Patch) -> Evidence:
    evidence = await RunCheck(commit=patch.commit, tree=patch.tree)
    event = VerifyFailed if fault_of_evidence(evidence) else VerifyOk
    await Note(event(plan=request.plan, step=request.phase.id, attempt=attempt, evidence=evidence))
    return evidence


async def _landed(
    request: StepRequest, attempt: int, patch: Patch, evidence: Evidence
) -> StepResult | _Refused:
    """Land the patch; where the branch has moved on, move the patch there and check it again first."""
    step = request.phase.id
    for _ in range(LANDING_TRIES):
        landing = await Land(branch=request.branch, commit=patch.commit, expected=patch.parent)
        if landing.landed:
            return await _completed(request, attempt, patch, evidence)
        patch = await Rebase(commit=patch.commit, onto=landing.tip, step=step, attempt=attempt)
        if patch.conflicts:
            names = ", ".join(f"`{path}`" for path in patch.conflicts)
            return _Refused(reason=f"it conflicts with what landed meanwhile in {names}", tip=landing.tip)
        evidence = await _verified(request, attempt, patch)
        if fault := fault_of_evidence(evidence):
            return _Refused(reason=f"together with what landed meanwhile, {fault}", tip=landing.tip)
    return _Refused(
        reason=f"`{request.branch}` moved {LANDING_TRIES} times during one landing", tip=patch.parent
    )


async def _completed(request: StepRequest, attempt: int, patch: Patch, evidence: Evidence) -> StepResult:
    step = request.phase.id
    await Note(
        PatchApplied(
            plan=request.plan,
            step=step,
            attempt=attempt,
            content=request.content,
            scope=request.phase.files,
            branch=request.branch,
            commit=patch.commit,
            tree=patch.tree,
            parent=patch.parent,
        )
    )
    value = score(evidence, patch.changed_lines)
    await Note(StepCompleted(plan=request.plan, step=step, attempts=attempt, score=value))
    return StepResult(step=step, done=True, tip=patch.commit, reason=evidence.reason)


def _message(request: StepRequest, attempt: int) -> str:
    title = " ".join(request.phase.title.split())
    trailers = (
        f"Planforge-Run: {request.run}",
        f"Planforge-Step: {request.plan}/{request.phase.id}",
        f"Planforge-Attempt: {attempt}",
    )
    return f"{request.plan} {request.phase.id}: {title}\n\n" + "\n".join(trailers) + "\n"
