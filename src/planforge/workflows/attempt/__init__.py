"""
The one way in which code changes: attempts in worktrees of their own until the evidence carries one.

Phases of plans, fixes, what an audit has mended and the change stages of pipelines all go through here.
`proposal.py` has one attempt made, `landing.py` lands it, and this module tries until one is taken. Each
attempt starts at an explicit commit and leases the files that it may touch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from planforge.kernel.effects import Flow, Inspection, Note, Patch, ReleaseLease
from planforge.kernel.events import AttemptRejected, StepCompleted, StepFailed
from planforge.kernel.scores import score
from planforge.rules.attempts import fault_of_evidence
from planforge.rules.escalation import Reached, Tried
from planforge.workflows.attempt.landing import LANDING_TRIES, land
from planforge.workflows.attempt.proposal import begin, check, inspected, propose, started, verified
from planforge.workflows.attempt.request import Attempt, Change, Proposal, Rejected, StepResult, branch_of

__all__ = [
    "LANDING_TRIES",
    "Attempt",
    "Change",
    "Proposal",
    "Rejected",
    "StepResult",
    "begin",
    "branch_of",
    "carry_out",
    "check",
    "completed",
    "implement",
    "inspected",
    "land",
    "propose",
    "rejected",
    "started",
    "verified",
]

Outcome = TypeVar("Outcome", Proposal, StepResult)


async def carry_out(
    change: Change, finish: Callable[[Attempt, Proposal], Flow[Outcome | Rejected]], commit: str = ""
) -> Outcome | Rejected:
    """
    Try until an attempt is taken or all are used up.

    `finish` is what becomes of a proposal while its attempt has its lease. The worktrees begin at `commit`,
    if the change goes on with one that was made before.
    """
    why = Rejected(reason=change.problem, tip=change.base)
    tried: list[Tried] = []
    for number in range(change.first, change.first + change.attempts):
        attempt = await begin(change, number, why.tip, tried)
        proposal = await propose(attempt, change.prompt(number, why.reason), commit)
        if isinstance(proposal, Rejected) and proposal.unchanged and change.landed:
            proposal = await _found(attempt, proposal.unchanged)
        outcome = proposal if isinstance(proposal, Rejected) else await finish(attempt, proposal)
        await ReleaseLease(lease=attempt.lease, reason=outcome.reason)
        if not isinstance(outcome, Rejected):
            return outcome
        why = outcome
        tried.append(Tried(reached=why.reached, failing=why.failing, tier=attempt.tier))
        await rejected(change, number, why)
    return why


async def implement(change: Change) -> StepResult:
    """Carry out a step of a plan, and land it."""
    outcome = await carry_out(change, _landed)
    if isinstance(outcome, StepResult):
        return outcome
    await Note(
        StepFailed(plan=change.plan, step=change.step, attempts=change.attempts, reason=outcome.reason)
    )
    return StepResult(step=change.step, done=False, tip=outcome.tip, reason=outcome.reason)


async def _landed(attempt: Attempt, proposal: Proposal) -> StepResult | Rejected:
    change, number = attempt.change, attempt.number
    if proposal.evidence is None:
        checked = await check(change, number, proposal)
        if isinstance(checked, Rejected):
            return checked
        landing = await land(change, number, checked, attempt.lease)
        if isinstance(landing, Rejected):
            return landing
        proposal = landing
    return await completed(change, number, proposal)


async def _found(attempt: Attempt, patch: Patch) -> Proposal | Rejected:
    """
    Check what is there, where nothing was changed because the same step had landed before.

    What the agent says of it does not count: a step that has never landed is not done by changing nothing.
    """
    evidence = await verified(attempt.change, attempt.number, patch)
    if fault := fault_of_evidence(evidence):
        failing = evidence.counts.failed if evidence.counts else None
        reason = f"the agent changed nothing, and {fault}"
        return Rejected(reason=reason, tip=patch.parent, reached=Reached.INSPECTION, failing=failing)
    return Proposal(patch=patch, inspection=Inspection(), evidence=evidence)


async def completed(change: Change, number: int, landed: Proposal) -> StepResult:
    """Record that a step is done, with the score of what has landed."""
    patch, evidence = landed.patch, landed.evidence
    assert evidence is not None  # nothing lands without
    value = score(evidence, patch.changed_lines, rollbacks=number - 1)
    found = "" if patch.files else change.landed
    await Note(StepCompleted(plan=change.plan, step=change.step, attempts=number, score=value, found=found))
    return StepResult(
        step=change.step,
        done=True,
        tip=patch.commit if patch.files else patch.parent,
        reason=evidence.reason,
        files=patch.files,
        changed_lines=patch.changed_lines,
    )


async def rejected(change: Change, number: int, why: Rejected) -> None:
    """Record why an attempt was not taken."""
    await Note(AttemptRejected(plan=change.plan, step=change.step, attempt=number, reason=why.reason))
