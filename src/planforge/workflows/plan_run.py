"""
Carry out an approved plan: its phases as soon as they may, each landing on the plan's branch as it passes.

Which phases there are and how far each has come is in the ledger. A phase begins when all that
it depends on is done or was left out. One that fails stops those that depend on it and no
others; then the plan is stopped, not lost: the same approval holds for going on. Before each
phase the plan is read again; one that was edited since begins nothing more, keeping what has
landed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planforge.documents import plan as plans
from planforge.documents.phases import Phase, PhaseKind, decompose
from planforge.documents.plan import PlanStatus
from planforge.errors import PerformerFailed
from planforge.kernel.effects import (
    CloseWorktree,
    KnownPhases,
    MarkPlan,
    Note,
    OpenBranch,
    OpenWorktree,
    ReadPhases,
    ReadPlan,
    ShowPhases,
    TakeApproval,
    Together,
)
from planforge.kernel.events import (
    PlanEnded,
    PlanPaused,
    PlanStarted,
    StepCompleted,
    StepFailed,
    StepRetried,
)
from planforge.kernel.wording import counted
from planforge.rules import selection
from planforge.rules.selection import MET, ORDER, Candidate
from planforge.workflows import auditing, prompts
from planforge.workflows.attempt import Change, StepResult, branch_of, implement, started
from planforge.workflows.context import Prompt, closure_of
from planforge.workflows.phase import EDITED, GATE, PlanRunRequest, PlanRunResult, ask, objective_of, planned

__all__ = ["GATE", "ONE", "PlanRunRequest", "PlanRunResult", "plan_run"]

ONE = "one"
"""Whichever phase is next, and no other."""


async def plan_run(request: PlanRunRequest) -> PlanRunResult:
    """Take the approval and run what is left of the plan, or what was asked for of that."""
    text = (await ReadPlan(plan=request.plan)).text
    content = plans.content_hash(text)
    known = await ReadPhases(
        plan=request.plan, content=content, parallel=request.parallel, max_files=request.max_files
    )
    await TakeApproval(plan=request.plan, gate=GATE, content=content)
    phases = decompose(text, max_files=known.max_files, parallel=known.parallel, present=known.present)
    branch = branch_of(request.plan)
    tip = (await OpenBranch(branch=branch, commit=request.base)).commit
    await Note(
        PlanStarted(
            plan=request.plan,
            run=request.run,
            content=content,
            branch=branch,
            base=tip,
            steps=tuple(planned(phase) for phase in phases),
            kept=_with(phases, known, "done"),
            skipped=_with(phases, known, "skipped"),
        )
    )
    await MarkPlan(plan=request.plan, status=PlanStatus.IMPLEMENTING.value)
    run = _Run(request, text, phases, known, tip)
    await run.go()
    return await run.ended()


def _with(phases: Sequence[Phase], known: KnownPhases, status: str) -> tuple[str, ...]:
    return tuple(phase.id for phase in phases if known.statuses.get(phase.id) == status)


def _candidates(phases: Sequence[Phase], statuses: Mapping[str, str]) -> list[Candidate]:
    return [
        Candidate(id=phase.id, status=statuses.get(phase.id, "pending"), depends_on=phase.depends_on)
        for phase in phases
    ]


class _Run:
    """One run of a plan: what was known before, and what its phases came to."""

    def __init__(
        self, request: PlanRunRequest, text: str, phases: Sequence[Phase], known: KnownPhases, tip: str
    ) -> None:
        self._request = request
        self._tip = tip
        self._text = text
        self._content = plans.content_hash(text)
        self._phases = {phase.id: phase for phase in phases}
        self._known = known
        self._results: dict[str, StepResult] = {}
        self._chosen = self._choose()

    def _choose(self) -> tuple[str, ...]:
        """What is to be done, what was interrupted or failed before the rest."""
        candidates = _candidates(tuple(self._phases.values()), self._known.statuses)
        only = self._request.only
        if only == ONE:
            following = selection.next_phase(candidates)
            return (following.id,) if following else ()
        if only:
            return (selection.target(candidates, only).id,)
        left = {each.id: each.status for each in candidates if each.status not in MET}
        urgent = [name for name in selection.most_urgent_first(candidates) if name in left]
        return tuple(sorted(urgent, key=lambda name: ORDER.index(left[name])))

    async def go(self) -> None:
        """Run what was chosen, each as soon as it may begin."""
        await ShowPhases(plan=self._request.plan)
        chosen = set(self._chosen)
        after = {name: chosen.intersection(self._phases[name].depends_on) for name in self._chosen}
        await Together(
            {name: self._phase(self._phases[name]) for name in self._chosen},
            limit=self._request.jobs,
            after=after,
        )

    async def _phase(self, phase: Phase) -> StepResult:
        if any(not self._is_met(name) for name in phase.depends_on):
            reason = f"it waits for {', '.join(n for n in phase.depends_on if not self._is_met(n))}"
            result = StepResult(step=phase.id, done=False, tip="", reason=reason, waiting=True)
        elif plans.content_hash((await ReadPlan(plan=self._request.plan)).text) != self._content:
            result = StepResult(step=phase.id, done=False, tip="", reason=EDITED, voided=True)
        else:
            result = await self._performed(phase)
            await ShowPhases(plan=self._request.plan)
        self._results[phase.id] = result
        return result

    def _is_met(self, name: str) -> bool:
        """Whether a phase is done or was left out: one that this run is not at, or that has ended in it."""
        found = self._results.get(name)
        return found.done if found else self._known.statuses.get(name) in MET

    async def _performed(self, phase: Phase) -> StepResult:
        base = self._tip
        if set(phase.depends_on).intersection(self._chosen):
            branch = branch_of(self._request.plan)
            base = (await OpenBranch(branch=branch, commit=self._request.base)).commit
        if self._known.statuses.get(phase.id) == "failed":
            problem = self._known.problems.get(phase.id, "")
            changed = self._known.changed.get(phase.id, ())
            await Note(StepRetried(plan=self._request.plan, step=phase.id, problem=problem, changed=changed))
        try:
            return await self._by_kind(phase, self._change(phase, base))
        except PerformerFailed as error:
            # Whatever cannot be done for one phase is that phase's failure; the others go on.
            await Note(StepFailed(plan=self._request.plan, step=phase.id, attempts=1, reason=error.message))
            return StepResult(step=phase.id, done=False, tip=base, reason=error.message)

    def _change(self, phase: Phase, base: str) -> Change:
        """The change that a phase asks for."""
        request, known, phases = self._request, self._known, tuple(self._phases.values())
        closure = closure_of(phases, phase.id)
        before = _with(phases, known, "done")
        # What phases that only read have found.
        notes = "".join(self._results[name].notes for name in closure if name in self._results)

        def asked(attempt: int, why: str) -> Prompt:
            objective = objective_of(self._text)
            return prompts.implement(
                request.plan, phase, attempt=attempt, objective=objective, notes=notes, problem=why
            )

        return Change(
            plan=request.plan,
            run=request.run,
            step=phase.id,
            title=phase.title,
            base=base,
            files=phase.files,
            prompt=asked,
            content=self._content,
            attempts=request.attempts,
            handoffs=request.handoffs,
            escalate_after=request.escalate_after,
            # Of this run only what the phase waits for: how far others are is another thing each time.
            earlier=tuple(name for name in self._phases if name in before or name in closure),
            closure=closure,
            problem=known.problems.get(phase.id, ""),
            landed=known.landed.get(phase.id, ""),
        )

    async def _by_kind(self, phase: Phase, change: Change) -> StepResult:
        match phase.kind:
            case PhaseKind.IMPLEMENT:
                return await implement(change)
            case PhaseKind.READ:
                return await self._read(phase, change)
            case PhaseKind.AUDIT:
                await MarkPlan(plan=change.plan, status=PlanStatus.AUDITING.value)
                return await auditing.audit(change, phase, self._text, self._request.fixes)

    async def _read(self, phase: Phase, change: Change) -> StepResult:
        """Have the code read before anything is changed, for those who change it."""
        await started(change, 1, change.base, None)
        await OpenWorktree(name=phase.id, commit=change.base)
        prompt = prompts.read(change.plan, phase, plans.approvable(self._text))
        answer = await ask(change, "developer", prompt, worktree=phase.id, commit=change.base)
        await CloseWorktree(name=phase.id)
        await Note(StepCompleted(plan=change.plan, step=phase.id, attempts=1, score=None))
        return StepResult(step=phase.id, done=True, tip=change.base, reason="read", notes=answer.text)

    async def ended(self) -> PlanRunResult:
        """The plan is done, or stopped until somebody goes on with it."""
        request, branch = self._request, branch_of(self._request.plan)
        commit = (await OpenBranch(branch=branch, commit=request.base)).commit
        left = tuple(name for name in self._phases if not self._is_met(name))
        stopped = [item for item in self._results.values() if not (item.done or item.waiting)]
        reason = self._reason(stopped, left)
        if left:
            failed = tuple(item.step for item in stopped if not item.voided)
            await Note(
                PlanPaused(
                    plan=request.plan,
                    run=request.run,
                    reason=reason,
                    failed=failed,
                    left=left,
                    branch=branch,
                    commit=commit,
                )
            )
            await MarkPlan(plan=request.plan, status=PlanStatus.IMPLEMENTING.value)
        else:
            await MarkPlan(plan=request.plan, status=PlanStatus.DONE.value)
            await Note(
                PlanEnded(
                    plan=request.plan,
                    run=request.run,
                    succeeded=True,
                    reason=reason,
                    branch=branch,
                    commit=commit,
                )
            )
        return PlanRunResult(
            done=not stopped,
            reason=reason,
            voided=any(item.voided for item in stopped),
            person=any(item.person for item in stopped),
        )

    def _reason(self, stopped: Sequence[StepResult], left: Sequence[str]) -> str:
        if not left:
            return "every step is done"
        more = f"{counted(len(left), 'phase')} left"
        if not stopped:
            done = ", ".join(name for name, item in self._results.items() if item.done) or "nothing"
            return f"{done} done as asked; {more}"
        # In the order of the plan: which of them ended first is another thing each time.
        first = min(stopped, key=lambda item: list(self._phases).index(item.step))
        others = len(stopped) - 1
        also = f" (and {others} more)" if others else ""
        return f"{first.step}: {first.reason}{also}"
