"""
Draft a plan, audit it, revise it, until nothing blocks or the rounds are used up.

The agents only read. The structure of a plan is checked before an auditor is paid.
However the loop ends, the plan goes to review by a person; only an audit without a
blocking finding counts as clean.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from planforge.documents import plan as plans
from planforge.documents.plan import PlanStatus
from planforge.errors import InvalidDocument
from planforge.kernel.effects import Access, CloseWorktree, MarkPlan, Note, OpenWorktree, RunAgent, WritePlan
from planforge.kernel.events import AuditRecorded, PlanForged, PlanWritten, RecordedFinding
from planforge.rules.findings import Finding, Severity, worst
from planforge.rules.loops import Decision, Done, Halt, Loop, blocking_only
from planforge.rules.verdicts import AuditVerdict, Verdict, parse_audit
from planforge.workflows import prompts

WORKTREE = "forge"
Cause = Literal["draft", "audit", "revision"]
DRAFT_TRIES = 2
"""An answer that is not a plan is asked for once more."""


class ForgeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to plan, and how long to go on."""

    plan: str
    title: str
    request: str
    project: str
    today: str
    base: str
    cap: int = 5


class ForgeResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the loop ended."""

    plan: str
    content: str
    rounds: int
    clean: bool
    reason: str


class _Draft(msgspec.Struct, frozen=True, kw_only=True):
    """The plan file between two rounds."""

    text: str
    on_disk: str


async def forge(request: ForgeRequest) -> ForgeResult:
    """Draft a plan, then audit and revise it until nothing blocks."""
    await OpenWorktree(name=WORKTREE, commit=request.base)
    loop = Loop(blocking_only(request.cap))
    body = await _plan_from(request, "drafter", prompts.draft(request.plan, request.request))
    if body is None:
        await CloseWorktree(name=WORKTREE)
        return await _end(request, loop, "", Halt(reason="the drafter gave no plan"))
    text = plans.render_new(
        plan=plans.parse_plan_id(request.plan),
        title=request.title,
        created=request.today,
        project=request.project,
        request=request.request,
        body=body,
    )
    draft = await _written(request, "draft", 0, text, None)
    while True:
        draft, decision = await _audited(request, loop, draft)
        if decision.ends:
            break
        body = await _plan_from(request, "reviser", _revision(request, loop, draft))
        if body is None:
            decision = Halt(reason="the reviser gave no plan")
            break
        text = plans.with_body(draft.text, body)
        draft = await _written(request, "revision", loop.round, text, draft.on_disk)
    await CloseWorktree(name=WORKTREE)
    await MarkPlan(plan=request.plan, status=PlanStatus.REVIEW.value)
    return await _end(request, loop, plans.content_hash(draft.text), decision)


async def _audited(request: ForgeRequest, loop: Loop, draft: _Draft) -> tuple[_Draft, Decision]:
    by, verdict, notes = await _audit(request, loop, draft.text)
    decision = loop.record(verdict)
    await Note(
        AuditRecorded(
            plan=request.plan,
            round=loop.round,
            by=by,
            verdict=verdict.verdict.value,
            reason=verdict.reason,
            findings=recorded(verdict.findings),
            decision=type(decision).__name__.lower(),
            decision_reason=decision.reason,
        )
    )
    if decision.ends and not isinstance(decision, Done):
        notes = f"{notes}\n\nVERDICT: {decision.reason}"
    text = plans.with_audit_round(draft.text, loop.round, request.today, notes)
    return await _written(request, "audit", loop.round, text, draft.on_disk), decision


async def _audit(request: ForgeRequest, loop: Loop, text: str) -> tuple[str, AuditVerdict, str]:
    """Who audited, the verdict, and the notes for the audit log."""
    faults = plans.structural_findings(text)
    if worst(faults) is Severity.BLOCKING:
        notes = "\n".join(f"- Severity: {fault.severity.value} — {fault.title}" for fault in faults)
        reason = "the structure of the plan"
        verdict = AuditVerdict(
            verdict=Verdict.REVISION,
            max_severity=Severity.BLOCKING,
            findings=faults,
            summary="",
            reason=reason,
        )
        return "structure", verdict, notes
    earlier = [finding for verdict in loop.history for finding in verdict.findings]
    prompt = prompts.audit(request.plan, loop.round + 1, plans.approvable(text), earlier)
    answer = await _ask(request, "auditor", prompt)
    return answer.agent, parse_audit(answer.text), answer.text


def _revision(request: ForgeRequest, loop: Loop, draft: _Draft) -> str:
    return prompts.revise(request.plan, loop.round, plans.approvable(draft.text), loop.latest.findings)


async def _plan_from(request: ForgeRequest, role: str, prompt: str) -> str | None:
    """Ask for a plan; None if what comes back is not one."""
    for _ in range(DRAFT_TRIES):
        answer = await _ask(request, role, prompt)
        try:
            return plans.drafted_body(answer.text)
        except InvalidDocument:
            continue
    return None


def _ask(request: ForgeRequest, role: str, prompt: str) -> RunAgent:
    return RunAgent(role=role, access=Access.READ, worktree=WORKTREE, base=request.base, prompt=prompt)


async def _written(
    request: ForgeRequest, cause: Cause, round_number: int, text: str, replaces: str | None
) -> _Draft:
    written = await WritePlan(plan=request.plan, text=text, replaces=replaces)
    await Note(
        PlanWritten(
            plan=request.plan,
            round=round_number,
            cause=cause,
            title=plans.parse(text).title,
            content=plans.content_hash(text),
            object=written.object,
        )
    )
    return _Draft(text=text, on_disk=written.object)


async def _end(request: ForgeRequest, loop: Loop, content: str, decision: Decision) -> ForgeResult:
    clean = isinstance(decision, Done)
    result = ForgeResult(
        plan=request.plan, content=content, rounds=loop.round, clean=clean, reason=decision.reason
    )
    await Note(
        PlanForged(plan=request.plan, content=content, rounds=loop.round, reason=decision.reason, clean=clean)
    )
    return result


def recorded(findings: tuple[Finding, ...]) -> tuple[RecordedFinding, ...]:
    """Findings as an event holds them."""
    return tuple(
        RecordedFinding(severity=finding.severity.value, title=finding.title, location=finding.location)
        for finding in findings
    )
