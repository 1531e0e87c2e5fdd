"""
One attempt at a change: a lease, a worktree, an agent, a commit, an inspection, evidence. Nothing lands here.

What the agent leaves is committed and kept whatever becomes of it. An agent whose context fills up hands over
to another, which goes on in the same worktree from what the ledger says.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from planforge.errors import PerformerFailed, SecretFound
from planforge.kernel.effects import (
    HANDED_OVER,
    Access,
    AgentAnswer,
    ClaimLease,
    CloseWorktree,
    Commit,
    GatherContext,
    Gathered,
    HandOver,
    Inspect,
    Inspection,
    Leased,
    Note,
    OpenWorktree,
    Patch,
    RunCheck,
    RunFormerTests,
)
from planforge.kernel.events import (
    AttemptInspected,
    PatchProposed,
    StepStarted,
    VerifyFailed,
    VerifyOk,
)
from planforge.kernel.evidence import Evidence
from planforge.rules import escalation
from planforge.rules.attempts import (
    doubt_of_former_tests,
    fault_of_evidence,
    fault_of_inspection,
    fault_of_patch,
)
from planforge.rules.escalation import Reached, Tried
from planforge.workflows import prompts
from planforge.workflows.asking import Question, escalated
from planforge.workflows.attempt.request import Attempt, Change, Proposal, Rejected
from planforge.workflows.context import Prompt

TITLE = 120
"""A title in a commit message is no longer than this."""


async def begin(
    change: Change, number: int, base: str, tried: Sequence[Tried] = (), lease: Leased | None = None
) -> Attempt:
    """Gather what the agent is told, decide on its model, lease the files; then the attempt is on record."""
    gathering = GatherContext(
        role=change.role, plan=change.plan, base=base, files=change.files, steps=change.earlier
    )
    gathered: Gathered = await (change.gather(gathering) if change.gather else gathering)
    own = change.tier or gathered.tier
    reason = escalation.after_attempts(tried, own, change.escalate_after)
    tier = await escalated(reason, own, plan=change.plan, step=change.step, attempt=number, role=change.role)
    if lease is None:
        lease = await ClaimLease(holder=f"{change.run}/{change.step}", paths=change.leases)
    await started(change, number, base, lease)
    return Attempt(change, number, base, gathered=gathered, tier=tier, lease=lease)


async def started(change: Change, number: int, base: str, lease: Leased | None) -> None:
    """Record that an attempt begins, and under which lease."""
    holder, fence = (lease.holder, lease.fence) if lease else ("", 0)
    await Note(
        StepStarted(plan=change.plan, step=change.step, attempt=number, base=base, holder=holder, fence=fence)
    )


async def propose(attempt: Attempt, prompt: Prompt, commit: str = "") -> Proposal | Rejected:
    """
    Have the work done, committed and inspected.

    The worktree begins at `commit`, if that is another than the base: what an attempt before it left.
    """
    change = attempt.change
    await OpenWorktree(name=attempt.worktree, commit=commit or attempt.base)
    answer = await _worked(attempt, prompt, commit or attempt.base)
    if isinstance(answer, Rejected):
        await CloseWorktree(name=attempt.worktree)
        return answer
    patch = await _committed(attempt)
    await CloseWorktree(name=attempt.worktree)
    if isinstance(patch, Rejected):
        return patch
    await Note(
        PatchProposed(
            plan=change.plan,
            step=change.step,
            attempt=attempt.number,
            commit=patch.commit,
            tree=patch.tree,
            files=patch.files,
            claim=answer.text.strip(),
            agent=answer.agent,
            sandbox=answer.sandbox,
        )
    )
    if fault := fault_of_patch(patch, change.files):
        unchanged = None if patch.files else patch
        return Rejected(reason=fault, tip=attempt.base, reached=Reached.ANSWER, unchanged=unchanged)
    inspection = await inspected(change, attempt.number, patch)
    if fault := fault_of_inspection(inspection):
        return Rejected(reason=fault, tip=attempt.base, reached=Reached.CHANGE)
    return Proposal(patch=patch, inspection=inspection, answer=answer)


async def check(change: Change, number: int, proposal: Proposal) -> Proposal | Rejected:
    """Gather evidence for a proposal; where tests of before fail, it needs a person to land."""
    patch, base = proposal.patch, proposal.patch.parent
    evidence = await verified(change, number, patch)
    if fault := fault_of_evidence(evidence):
        failing = evidence.counts.failed if evidence.counts else None
        return Rejected(reason=fault, tip=base, reached=Reached.INSPECTION, failing=failing)
    inspection = await _held_to_former_tests(change, number, patch, proposal.inspection)
    return msgspec.structs.replace(proposal, inspection=inspection, evidence=evidence)


async def _worked(attempt: Attempt, prompt: Prompt, commit: str) -> AgentAnswer | Rejected:
    """
    Have an agent do the work, and a successor go on where its context did not last.

    However it ends, the attempt has the lease that is held then.
    """
    change, asked = attempt.change, prompt
    for turn in range(1, change.handoffs + 2):
        question = _question(attempt, asked, commit, turn if change.handoffs else 0)
        try:
            answer = await change.ask(question, attempt.gathered)
            if answer.stop_reason != HANDED_OVER or answer.context is None:
                return answer
            if turn > change.handoffs:
                break
            handover = await HandOver(
                plan=change.plan,
                step=change.step,
                attempt=attempt.number,
                turn=turn,
                worktree=attempt.worktree,
                parent=attempt.base,
                lease=attempt.lease,
                context=answer.context,
            )
        except PerformerFailed as error:
            return Rejected(reason=error.message, tip=attempt.base, reached=Reached.NOTHING)
        commit, attempt.lease = handover.commit, handover.lease
        asked = prompts.go_on(prompt, turn=turn, state=handover.text)
    times = "once" if change.handoffs == 1 else f"{change.handoffs} times"
    reason = f"it handed over {times} and was still not done"
    return Rejected(reason=reason, tip=attempt.base, reached=Reached.NOTHING)


def _question(attempt: Attempt, prompt: Prompt, commit: str, turn: int) -> Question:
    change = attempt.change
    return Question(
        plan=change.plan,
        step=change.step,
        attempt=attempt.number,
        role=change.role,
        access=Access.WRITE,
        worktree=attempt.worktree,
        base=commit,
        files=change.files,
        earlier=change.earlier,
        closure=change.closure,
        prompt=prompt,
        lease=attempt.lease,
        turn=turn,
        tier=attempt.tier or change.tier,
        model="" if attempt.tier else change.model,
    )


async def _committed(attempt: Attempt) -> Patch | Rejected:
    change, number = attempt.change, attempt.number
    title = " ".join(change.title.split())[:TITLE]
    trailers = (
        f"Planforge-Run: {change.run}",
        f"Planforge-Step: {change.plan}/{change.step}",
        f"Planforge-Attempt: {number}",
    )
    message = f"{change.plan} {change.step}: {title}\n\n" + "\n".join(trailers) + "\n"
    try:
        return await Commit(
            worktree=attempt.worktree,
            parent=attempt.base,
            message=message,
            step=change.step,
            attempt=number,
        )
    except PerformerFailed as error:
        if error.error != SecretFound.__name__:
            raise
        return Rejected(reason=error.message, tip=attempt.base, reached=Reached.ANSWER)


async def inspected(change: Change, number: int, patch: Patch) -> Inspection:
    """Look at a change before anything of it is run."""
    inspection = await Inspect(commit=patch.commit, parent=patch.parent, files=change.files)
    if inspection.findings or inspection.protected:
        await _note_inspection(change, number, patch, inspection)
    return inspection


async def verified(change: Change, number: int, patch: Patch) -> Evidence:
    """Run the project's check on exactly this tree."""
    evidence = await RunCheck(commit=patch.commit, tree=patch.tree)
    event = VerifyFailed if fault_of_evidence(evidence) else VerifyOk
    await Note(event(plan=change.plan, step=change.step, attempt=number, evidence=evidence))
    return evidence


async def _held_to_former_tests(
    change: Change, number: int, patch: Patch, inspection: Inspection
) -> Inspection:
    """Run the tests as they were before the change; if they fail, it needs a person to land."""
    if not inspection.former:
        return inspection
    evidence = await RunFormerTests(commit=patch.commit, parent=patch.parent, files=inspection.former)
    doubt = doubt_of_former_tests(evidence, inspection.former)
    if doubt is None:
        return inspection
    await _note_inspection(change, number, patch, Inspection(protected=(doubt,)))
    return msgspec.structs.replace(inspection, protected=(*inspection.protected, doubt))


async def _note_inspection(change: Change, number: int, patch: Patch, inspection: Inspection) -> None:
    await Note(
        AttemptInspected(
            plan=change.plan,
            step=change.step,
            attempt=number,
            commit=patch.commit,
            findings=inspection.findings,
            protected=inspection.protected,
        )
    )
