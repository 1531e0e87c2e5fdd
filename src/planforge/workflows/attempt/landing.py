"""
Landing a proposal: the branch only ever moves to a commit whose exact tree has passed.

It moves under a lease of every path that the change touches. Where it has moved on meanwhile, the change is
rebased and its evidence gathered again first.
"""

from __future__ import annotations

import msgspec

from planforge.errors import LeaseLost, PerformerFailed
from planforge.kernel.effects import Land, Leased, Note, PassGate, Rebase
from planforge.kernel.events import PatchApplied
from planforge.rules.attempts import fault_of_evidence
from planforge.workflows.attempt.proposal import verified
from planforge.workflows.attempt.request import Change, Proposal, Rejected

PROTECTED = "protected"
"""The gate of changes that need a person."""

LANDING_TRIES = 50
"""A branch that moves this often under one landing is a fault, not a queue."""


async def land(change: Change, number: int, proposal: Proposal, lease: Leased) -> Proposal | Rejected:
    """Land what was proposed; returned as it landed, which is another commit after a rebase."""
    for _ in range(LANDING_TRIES):
        patch = proposal.patch
        if refusal := await _refused_by_person(change, number, proposal):
            return Rejected(reason=refusal, tip=patch.parent, person=True)
        try:
            landing = await Land(
                branch=change.branch,
                commit=patch.commit,
                expected=patch.parent,
                lease=lease,
                files=patch.files,
            )
        except PerformerFailed as error:
            if error.error != LeaseLost.__name__:
                raise
            return Rejected(reason=error.message, tip=patch.parent)
        if landing.landed:
            await Note(_applied(change, number, proposal))
            return proposal
        rebased = await _rebased(change, number, proposal, landing.tip)
        if isinstance(rebased, Rejected):
            return rebased
        proposal = rebased
    reason = f"`{change.branch}` moved {LANDING_TRIES} times during one landing"
    return Rejected(reason=reason, tip=proposal.patch.parent)


async def _rebased(change: Change, number: int, proposal: Proposal, tip: str) -> Proposal | Rejected:
    """The change on the commit that the branch is at now, with evidence of its own."""
    patch = await Rebase(commit=proposal.patch.commit, onto=tip, step=change.step, attempt=number)
    if patch.conflicts:
        names = ", ".join(f"`{path}`" for path in patch.conflicts)
        return Rejected(reason=f"it conflicts with what landed meanwhile in {names}", tip=tip)
    if change.exact and patch.tree != proposal.patch.tree:
        moved = f"`{change.branch}` moved to {tip[:12]} meanwhile"
        return Rejected(reason=f"{moved}; rebased onto that, the change is not what was approved", tip=tip)
    evidence = await verified(change, number, patch)
    if fault := fault_of_evidence(evidence):
        return Rejected(reason=f"together with what landed meanwhile, {fault}", tip=tip)
    return msgspec.structs.replace(proposal, patch=patch, evidence=evidence)


async def _refused_by_person(change: Change, number: int, proposal: Proposal) -> str | None:
    """Have a person look at a change of protected paths, as exactly the tree that would land."""
    if not proposal.inspection.protected:
        return None
    patch = proposal.patch
    decision = await PassGate(
        plan=change.plan,
        step=change.step,
        attempt=number,
        gate=f"{PROTECTED}/{change.step}",
        commit=patch.commit,
        tree=patch.tree,
        parent=patch.parent,
        reasons=proposal.inspection.protected,
    )
    return None if decision.approved else f"{decision.actor} said no to it: {decision.reason}"


def _applied(change: Change, number: int, proposal: Proposal) -> PatchApplied:
    patch = proposal.patch
    return PatchApplied(
        plan=change.plan,
        step=change.step,
        attempt=number,
        content=change.content,
        scope=change.files,
        branch=change.branch,
        commit=patch.commit,
        tree=patch.tree,
        parent=patch.parent,
    )
