"""
The audit of finished work, and mending what it finds.

An auditor reads what has landed. Where something blocks, a developer mends it and the auditor
looks again, a few times at most; the same failure after a mend that changed nothing about it
ends the loop at once. What was mended lands when an audit has passed it, with evidence and
under a lease as every other change. If none passes, nothing of it lands: it is kept beside the
branch, and a person has to look.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from planforge.documents import plan as plans
from planforge.documents.phases import Phase
from planforge.errors import PerformerFailed
from planforge.kernel.effects import CloseWorktree, Leased, Note, OpenWorktree, ReleaseLease
from planforge.kernel.events import AuditRecorded, StepCompleted, StepFailed
from planforge.rules.loops import Decision, Done, Escalate, Loop, Round
from planforge.rules.loops.policies import named
from planforge.rules.loops.revisions import Revisions
from planforge.rules.verdicts import Judgement, Verdict, parse_audit
from planforge.workflows import phase as phases
from planforge.workflows import prompts
from planforge.workflows.asking import UNUSABLE
from planforge.workflows.attempt import (
    Change,
    Proposal,
    Rejected,
    StepResult,
    begin,
    check,
    completed,
    land,
    propose,
    rejected,
    started,
)
from planforge.workflows.context import Prompt
from planforge.workflows.forge import no_verdict, recorded

POLICY = "repeated-failure"


async def audit(change: Change, phase: Phase, text: str, fixes: int) -> StepResult:
    """Audit, mend and audit again until it passes or there is nothing more to be tried."""
    await started(change, 1, change.base, None)
    return await _Auditing(change, phase, text, fixes).result()


class _Auditing:
    """One audit with its fixes: what was mended so far and has not landed, and under which lease."""

    def __init__(self, change: Change, phase: Phase, text: str, fixes: int) -> None:
        self._change = change
        self._phase = phase
        self._text = text
        self._fixes = fixes
        self._loop = Loop(named(POLICY, {"cap": fixes + 1}))
        self._proposal: Proposal | None = None
        self._revisions = Revisions()
        self._lease: Leased | None = None
        self._said = ""
        """What the last audit led to."""
        self._used = 0
        """How many fixes were tried; each is an attempt, after the first, which was the audit alone."""

    async def result(self) -> StepResult:
        """How the step ended, which is on record then."""
        try:
            result = await self._ended(await self._rounds())
        except PerformerFailed as error:
            if error.error not in UNUSABLE:
                await self._release(error.message)
                raise
            result = self._failed(error.message)
        await self._release(result.reason)
        plan, step, attempts = self._change.plan, self._change.step, self._used + 1
        if not result.done:
            await Note(StepFailed(plan=plan, step=step, attempts=attempts, reason=result.reason))
        elif self._proposal is None:
            await Note(StepCompleted(plan=plan, step=step, attempts=attempts, score=None))
        return result

    async def _release(self, reason: str) -> None:
        if self._lease:
            await ReleaseLease(lease=self._lease, reason=reason)

    def _failed(self, reason: str) -> StepResult:
        change = self._change
        return StepResult(step=change.step, done=False, tip=change.base, reason=reason, person=True)

    async def _ended(self, decision: Decision) -> StepResult:
        """How the step ends; what was mended lands if the audit has passed it."""
        change, number = self._change, self._used + 1
        if not isinstance(decision, Done):
            kept = " (what was mended is kept, and has not landed)" if self._proposal else ""
            return self._failed(f"{self._said}{kept}")
        if self._proposal is None:
            return StepResult(step=change.step, done=True, tip=change.base, reason=decision.reason)
        assert self._lease is not None  # taken before anything was mended
        outcome = await land(change, number, self._proposal, self._lease)
        if isinstance(outcome, Proposal):
            return await completed(change, number, outcome)
        await rejected(change, number, outcome)
        return self._failed(outcome.reason)

    async def _rounds(self) -> Decision:
        while True:
            by, said, verdict = await self._audited(self._loop.round + 1)
            passed = verdict.verdict is Verdict.APPROVED
            files = self._proposal.patch.files if self._proposal else ()
            decision = self._loop.record(
                Round(
                    findings=verdict.findings,
                    verdict=verdict.verdict,
                    reason=verdict.reason,
                    signature="" if passed else signature(said, files),
                )
            )
            noted = self._noted(by, verdict, decision)
            await Note(noted)
            self._said = noted.decision_reason
            if decision.ends:
                return decision
            if problem := await self._mend(verdict):
                self._said += f"; no fix was taken, the last because {problem}"
                return Escalate(problem)

    async def _audited(self, number: int) -> tuple[str, str, Judgement]:
        """Who audited what is there now, in which words, and the verdict."""
        change, commit = self._change, self._commit
        worktree = change.step if number == 1 else f"{change.step}-again-{number}"
        prompt = prompts.review(change.plan, self._phase, plans.approvable(self._text), number)
        await OpenWorktree(name=worktree, commit=commit)
        try:
            answer = await phases.ask(
                change, "auditor", prompt, worktree=worktree, commit=commit, fault=no_verdict
            )
        except PerformerFailed:
            await CloseWorktree(name=worktree)
            raise
        await CloseWorktree(name=worktree)
        return answer.agent, answer.text, parse_audit(answer.output or answer.text)

    @property
    def _commit(self) -> str:
        """The work as it is now, mended or not."""
        return self._proposal.patch.commit if self._proposal else self._change.base

    async def _mend(self, verdict: Judgement) -> str:
        """Have the findings mended. Why the last fix was rejected; empty if it was accepted."""
        change = self._change
        problem = "there are none"
        while self._used < self._fixes:
            self._used += 1
            number = self._used + 1
            attempt = await begin(change, number, change.base, lease=self._lease)
            prompt = self._asked(verdict, problem if self._used > 1 else "")
            outcome = await propose(attempt, prompt, self._commit)
            self._lease = attempt.lease
            if isinstance(outcome, Proposal):
                outcome = await check(change, number, outcome)
            if isinstance(outcome, Proposal):
                repeated = self._revisions.repeated(outcome.patch.tree, "the developer")
                if not repeated:
                    self._proposal = outcome
                    return ""
                await rejected(change, number, Rejected(reason=repeated, tip=change.base))
                return repeated
            problem = outcome.reason
            await rejected(change, number, outcome)
        return problem

    def _asked(self, verdict: Judgement, problem: str) -> Prompt:
        return prompts.fix(
            self._change.plan,
            self._phase,
            fix=self._used,
            last=self._used == self._fixes,
            objective=phases.objective_of(self._text),
            findings=verdict.findings,
            problem=problem,
        )

    def _noted(self, by: str, verdict: Judgement, decision: Decision) -> AuditRecorded:
        passed = verdict.verdict is Verdict.APPROVED
        said = f"the audit says {verdict.verdict.value} ({verdict.reason})"
        return AuditRecorded(
            plan=self._change.plan,
            step=self._change.step,
            round=self._loop.round,
            by=by,
            verdict=verdict.verdict.value,
            reason=verdict.reason,
            findings=recorded(verdict.findings),
            decision=type(decision).__name__.lower(),
            decision_reason="nothing blocks" if passed else f"{said}; {decision.reason}",
        )


def signature(said: str, files: Sequence[str]) -> str:
    """What a failed audit looks like, so that the same one is known again after a fix."""
    normal = " ".join(said.split()).lower()
    return hashlib.sha256("\n".join((normal, *sorted(files))).encode("utf-8", "replace")).hexdigest()[:16]
