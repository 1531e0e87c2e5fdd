"""
One step of a plan: attempts in worktrees of their own until the evidence carries one, then its landing.

An attempt starts at an explicit commit. What the agent leaves is committed and
kept whatever becomes of it; Planforge's own check on a fresh checkout decides.
The branch only ever moves to a commit whose exact tree has passed, under a lease
of every path it changes. An agent whose context fills up hands over to another,
which goes on in the same worktree from what the ledger says.
"""

from __future__ import annotations

import msgspec

from planforge.documents.phases import Phase
from planforge.errors import LeaseLost, PerformerFailed, SecretFound
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
    Land,
    Landing,
    Leased,
    Note,
    OpenWorktree,
    PassGate,
    Patch,
    Rebase,
    ReleaseLease,
    RunCheck,
    RunFormerTests,
)
from planforge.kernel.events import (
    AttemptInspected,
    AttemptRejected,
    PatchApplied,
    PatchProposed,
    StepCompleted,
    StepFailed,
    StepStarted,
    TierEscalated,
    VerifyFailed,
    VerifyOk,
)
from planforge.kernel.evidence import Evidence
from planforge.kernel.scores import score
from planforge.kernel.tokens import TokenState
from planforge.rules import escalation
from planforge.rules.attempts import (
    doubt_of_former_tests,
    fault_of_evidence,
    fault_of_inspection,
    fault_of_patch,
)
from planforge.rules.escalation import Reached, Tried
from planforge.workflows import asking, prompts
from planforge.workflows.asking import Question
from planforge.workflows.context import Prompt

PROTECTED = "protected"
"""The gate of changes that need a person."""

EVERYTHING = ("**",)
"""What a step leases that does not say which files it changes."""

DEVELOPER = "developer"

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
    handoffs: int
    """How often the agent of one attempt may hand over."""
    earlier: tuple[str, ...] = ()
    """The steps that are done, in order."""
    closure: tuple[str, ...] = ()
    """The steps that this one depends on, directly or not."""
    escalate_after: int = 0
    """After how many attempts without progress the next one gets a heavy model, once; 0 is never."""
    problem: str = ""
    """Why an earlier run could not do it, if one tried."""
    landed: str = ""
    """The commit on the branch that landed for the same step before, if there is one."""

    @property
    def holder(self) -> str:
        """The name that the step leases its files under."""
        return f"{self.run}/{self.phase.id}"


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the step ended."""

    step: str
    done: bool
    tip: str
    reason: str
    notes: str = ""
    voided: bool = False
    """The approval no longer holds."""
    waiting: bool = False
    """It was not begun, because something that it depends on is not done."""
    person: bool = False
    """A person has to look at it."""
    files: tuple[str, ...] = ()
    """What the change that landed touches."""
    changed_lines: int = 0


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent of an attempt is told besides its task, and its tier if not its own."""

    gathered: Gathered
    tier: str = ""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent of an attempt is asked, and where it begins."""

    prompt: Prompt
    base: str
    """What its change is a change of."""
    commit: str
    """What it finds in its worktree: the base, or what an attempt before it left."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change that could land: looked at, and with evidence that passed."""

    patch: Patch
    inspection: Inspection
    evidence: Evidence


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt was not taken, and where the branch was then."""

    reason: str
    tip: str
    reached: Reached = Reached.EVIDENCE
    """How far it came."""
    failing: int | None = None
    """How many tests failed, where that was counted."""
    unchanged: Patch | None = None
    """What there is, if the agent changed nothing."""


async def implement(request: StepRequest) -> StepResult:
    """Try until an attempt has landed or the attempts are used up."""
    phase = request.phase
    problem = Refused(reason=request.problem, tip=request.base)
    tried: list[Tried] = []
    for attempt in range(1, request.attempts + 1):
        told = await told_of(request, attempt, problem.tip, tried)
        outcome = await _under_lease(request, attempt, problem, told)
        if isinstance(outcome, StepResult):
            return outcome
        problem = outcome
        tried.append(Tried(reached=problem.reached, failing=problem.failing, tier=told.tier))
        rejected = AttemptRejected(plan=request.plan, step=phase.id, attempt=attempt, reason=problem.reason)
        await Note(rejected)
    await Note(StepFailed(plan=request.plan, step=phase.id, attempts=request.attempts, reason=problem.reason))
    return StepResult(step=phase.id, done=False, tip=problem.tip, reason=problem.reason)


async def told_of(request: StepRequest, attempt: int, base: str, tried: list[Tried]) -> Told:
    """What the next agent gets to know, and whether it has a heavier model, this once."""
    gathered = await GatherContext(
        role=DEVELOPER, plan=request.plan, base=base, files=request.phase.files, steps=request.earlier
    )
    reason = escalation.after_attempts(tried, gathered.tier, request.escalate_after)
    if not reason:
        return Told(gathered=gathered)
    await Note(
        TierEscalated(
            plan=request.plan,
            step=request.phase.id,
            attempt=attempt,
            role=DEVELOPER,
            tier=escalation.HEAVY,
            instead_of=gathered.tier,
            reason=reason,
        )
    )
    return Told(gathered=gathered, tier=escalation.HEAVY)


async def _under_lease(
    request: StepRequest, attempt: int, before: Refused, told: Told
) -> StepResult | Refused:
    lease = await ClaimLease(holder=request.holder, paths=request.phase.files or EVERYTHING)
    outcome, lease = await _attempt(request, attempt, before, told, lease)
    await ReleaseLease(lease=lease, reason=outcome.reason)
    return outcome


async def _attempt(
    request: StepRequest, attempt: int, before: Refused, told: Told, lease: Leased
) -> tuple[StepResult | Refused, Leased]:
    await started(request, attempt, before.tip, lease)
    asked = Asked(prompt=_first(request, attempt, before), base=before.tip, commit=before.tip)
    proposal, lease = await propose(request, attempt, asked, told, lease)
    if isinstance(proposal, Refused):
        if proposal.unchanged and request.landed:
            return await _found(request, attempt, proposal.unchanged), lease
        return proposal, lease
    return await landed(request, attempt, proposal, lease), lease


async def _found(request: StepRequest, attempt: int, patch: Patch) -> StepResult | Refused:
    """
    Check what is there, where nothing was changed because the same step had landed before.

    What the agent says of it does not count: a step that has never landed is not done by changing nothing.
    """
    evidence = await _verified(request, attempt, patch)
    if fault := fault_of_evidence(evidence):
        failing = evidence.counts.failed if evidence.counts else None
        reason = f"the agent changed nothing, and {fault}"
        return Refused(reason=reason, tip=patch.parent, reached=Reached.INSPECTION, failing=failing)
    step = request.phase.id
    value = score(evidence, patch.changed_lines, rollbacks=attempt - 1)
    await Note(
        StepCompleted(plan=request.plan, step=step, attempts=attempt, score=value, found=request.landed)
    )
    return StepResult(step=step, done=True, tip=patch.parent, reason=evidence.reason)


async def started(request: StepRequest, attempt: int, base: str, lease: Leased | None) -> None:
    """Record that an attempt begins, and under which lease."""
    holder, fence = (lease.holder, lease.fence) if lease else ("", 0)
    step = request.phase.id
    await Note(
        StepStarted(plan=request.plan, step=step, attempt=attempt, base=base, holder=holder, fence=fence)
    )


async def propose(
    request: StepRequest, attempt: int, asked: Asked, told: Told, lease: Leased
) -> tuple[Proposal | Refused, Leased]:
    """Have the work done, committed, looked at and checked; nothing lands."""
    phase, base = request.phase, asked.base
    worktree = _worktree(request, attempt)
    await OpenWorktree(name=worktree, commit=asked.commit)
    answer, lease = await _worked(request, attempt, asked, told, lease)
    if isinstance(answer, Refused):
        await CloseWorktree(name=worktree)
        return answer, lease
    committing = Commit(
        worktree=worktree, parent=base, message=_message(request, attempt), step=phase.id, attempt=attempt
    )
    try:
        patch = await committing
    except PerformerFailed as error:
        if error.error != SecretFound.__name__:
            raise
        await CloseWorktree(name=worktree)
        return Refused(reason=error.message, tip=base, reached=Reached.ANSWER), lease
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
            sandbox=answer.sandbox,
        )
    )
    if fault := fault_of_patch(patch, phase.files):
        unchanged = None if patch.files else patch
        return Refused(reason=fault, tip=base, reached=Reached.ANSWER, unchanged=unchanged), lease
    inspection = await _inspected(request, attempt, patch)
    if fault := fault_of_inspection(inspection):
        return Refused(reason=fault, tip=base, reached=Reached.CHANGE), lease
    evidence = await _verified(request, attempt, patch)
    if fault := fault_of_evidence(evidence):
        failing = evidence.counts.failed if evidence.counts else None
        return Refused(reason=fault, tip=base, reached=Reached.INSPECTION, failing=failing), lease
    inspection = await _held_to_former_tests(request, attempt, patch, inspection)
    return Proposal(patch=patch, inspection=inspection, evidence=evidence), lease


async def _worked(
    request: StepRequest, attempt: int, asked: Asked, told: Told, lease: Leased
) -> tuple[AgentAnswer | Refused, Leased]:
    """
    Have an agent do the work, and a successor go on where its context did not last.

    However it ends, the lease that comes back is the one that is held then.
    """
    base, commit, prompt = asked.base, asked.commit, asked.prompt
    for turn in range(1, request.handoffs + 2):
        question = msgspec.structs.replace(
            _question(request, attempt, commit, prompt),
            lease=lease,
            turn=turn if request.handoffs else 0,
            tier=told.tier,
        )
        try:
            answer = await asking.ask(question, told.gathered)
            if answer.stop_reason != HANDED_OVER or answer.context is None:
                return answer, lease
            if turn > request.handoffs:
                break
            handover = await _handed_over(request, attempt, turn, base, lease, answer.context)
        except PerformerFailed as error:
            return Refused(reason=error.message, tip=base, reached=Reached.NOTHING), lease
        commit, lease = handover.commit, handover.lease
        prompt = prompts.go_on(request.plan, request.phase, attempt=attempt, turn=turn, state=handover.text)
    times = "once" if request.handoffs == 1 else f"{request.handoffs} times"
    reason = f"it handed over {times} and was still not done"
    return Refused(reason=reason, tip=base, reached=Reached.NOTHING), lease


def _first(request: StepRequest, attempt: int, before: Refused) -> Prompt:
    return prompts.implement(
        request.plan,
        request.phase,
        attempt=attempt,
        objective=request.objective,
        notes=request.notes,
        problem=before.reason,
    )


def _question(request: StepRequest, attempt: int, base: str, prompt: Prompt) -> Question:
    return Question(
        plan=request.plan,
        step=request.phase.id,
        attempt=attempt,
        role=DEVELOPER,
        access=Access.WRITE,
        worktree=_worktree(request, attempt),
        base=base,
        files=request.phase.files,
        earlier=request.earlier,
        closure=request.closure,
        prompt=prompt,
    )


def _handed_over(
    request: StepRequest, attempt: int, turn: int, base: str, lease: Leased, context: TokenState
) -> HandOver:
    return HandOver(
        plan=request.plan,
        step=request.phase.id,
        attempt=attempt,
        turn=turn,
        worktree=_worktree(request, attempt),
        parent=base,
        lease=lease,
        context=context,
    )


async def _inspected(request: StepRequest, attempt: int, patch: Patch) -> Inspection:
    """Look at the change before anything of it is run."""
    inspection = await Inspect(commit=patch.commit, parent=patch.parent, files=request.phase.files)
    if inspection.findings or inspection.protected:
        await Note(
            AttemptInspected(
                plan=request.plan,
                step=request.phase.id,
                attempt=attempt,
                commit=patch.commit,
                findings=inspection.findings,
                protected=inspection.protected,
            )
        )
    return inspection


async def _verified(request: StepRequest, attempt: int, patch: Patch) -> Evidence:
    evidence = await RunCheck(commit=patch.commit, tree=patch.tree)
    event = VerifyFailed if fault_of_evidence(evidence) else VerifyOk
    await Note(event(plan=request.plan, step=request.phase.id, attempt=attempt, evidence=evidence))
    return evidence


async def _held_to_former_tests(
    request: StepRequest, attempt: int, patch: Patch, inspection: Inspection
) -> Inspection:
    """Run the tests as they were before the change; if they fail, it needs a person to land."""
    if not inspection.former:
        return inspection
    evidence = await RunFormerTests(commit=patch.commit, parent=patch.parent, files=inspection.former)
    doubt = doubt_of_former_tests(evidence, inspection.former)
    if doubt is None:
        return inspection
    await Note(
        AttemptInspected(
            plan=request.plan,
            step=request.phase.id,
            attempt=attempt,
            commit=patch.commit,
            findings=(),
            protected=(doubt,),
        )
    )
    return msgspec.structs.replace(inspection, protected=(*inspection.protected, doubt))


async def landed(
    request: StepRequest, attempt: int, proposal: Proposal, lease: Leased
) -> StepResult | Refused:
    """Land the patch; where the branch has moved on, move the patch there and check it again first."""
    step = request.phase.id
    patch, evidence, inspection = proposal.patch, proposal.evidence, proposal.inspection
    for _ in range(LANDING_TRIES):
        if inspection.protected and (
            refusal := await _refused_by_person(request, attempt, patch, inspection)
        ):
            return Refused(reason=refusal, tip=patch.parent)
        try:
            landing = await _land(request, patch, lease)
        except PerformerFailed as error:
            if error.error != LeaseLost.__name__:
                raise
            return Refused(reason=error.message, tip=patch.parent)
        if landing.landed:
            return await _completed(request, attempt, patch, evidence)
        patch = await Rebase(commit=patch.commit, onto=landing.tip, step=step, attempt=attempt)
        if patch.conflicts:
            names = ", ".join(f"`{path}`" for path in patch.conflicts)
            return Refused(reason=f"it conflicts with what landed meanwhile in {names}", tip=landing.tip)
        evidence = await _verified(request, attempt, patch)
        if fault := fault_of_evidence(evidence):
            return Refused(reason=f"together with what landed meanwhile, {fault}", tip=landing.tip)
    return Refused(
        reason=f"`{request.branch}` moved {LANDING_TRIES} times during one landing", tip=patch.parent
    )


async def _refused_by_person(
    request: StepRequest, attempt: int, patch: Patch, inspection: Inspection
) -> str | None:
    """Have a person look at a change of protected paths, as exactly the tree that would land."""
    step = request.phase.id
    decision = await PassGate(
        plan=request.plan,
        step=step,
        attempt=attempt,
        gate=f"{PROTECTED}/{step}",
        commit=patch.commit,
        tree=patch.tree,
        parent=patch.parent,
        reasons=inspection.protected,
    )
    return None if decision.approved else f"{decision.actor} said no to it: {decision.reason}"


async def _land(request: StepRequest, patch: Patch, lease: Leased) -> Landing:
    return await Land(
        branch=request.branch, commit=patch.commit, expected=patch.parent, lease=lease, files=patch.files
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
    value = score(evidence, patch.changed_lines, rollbacks=attempt - 1)
    await Note(StepCompleted(plan=request.plan, step=step, attempts=attempt, score=value))
    return StepResult(
        step=step,
        done=True,
        tip=patch.commit,
        reason=evidence.reason,
        files=patch.files,
        changed_lines=patch.changed_lines,
    )


def _worktree(request: StepRequest, attempt: int) -> str:
    return f"{request.phase.id}-{attempt}"


def _message(request: StepRequest, attempt: int) -> str:
    title = " ".join(request.phase.title.split())
    trailers = (
        f"Planforge-Run: {request.run}",
        f"Planforge-Step: {request.plan}/{request.phase.id}",
        f"Planforge-Attempt: {attempt}",
    )
    return f"{request.plan} {request.phase.id}: {title}\n\n" + "\n".join(trailers) + "\n"
