"""
Draft a plan, audit it, revise it, until nothing blocks or the rounds are used up.

The agents only read. The structure of a plan is checked before an auditor is paid.
However the loop ends, the plan goes to review by a person; only an audit without a
blocking finding counts as clean. A forge that is taken up again has no draft to make:
it audits the file as it is on disk, and its rounds count on from the last one there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import msgspec

from planforge.documents import plan as plans
from planforge.documents import template
from planforge.documents.plan import PlanStatus
from planforge.errors import InvalidDocument, PerformerFailed
from planforge.kernel.effects import (
    Access,
    AgentAnswer,
    AskHuman,
    CloseWorktree,
    Gathered,
    MarkPlan,
    Note,
    OpenWorktree,
    ReadPlan,
    WritePlan,
)
from planforge.kernel.events import (
    AuditRecorded,
    Choice,
    PlanForged,
    PlanWritten,
    RecordedFinding,
)
from planforge.rules import escalation
from planforge.rules.findings import Finding, Severity, worst
from planforge.rules.loops import Decision, Done, Halt, Loop, blocking_only
from planforge.rules.loops.revisions import Revisions
from planforge.rules.verdicts import NO_VERDICT, Judgement, Verdict, parse_audit
from planforge.workflows import asking, prompts, research
from planforge.workflows.asking import UNUSABLE, Conversation, Fault, Question, usable
from planforge.workflows.context import Prompt

WORKTREE = "forge"
Cause = Literal["draft", "audit", "revision"]
GIVE_UP, ASK_AGAIN = "give up", "ask again"


class ForgeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to plan, and how long to go on."""

    plan: str
    title: str
    request: str
    project: str
    today: str
    base: str
    cap: int = 5
    task: str = ""
    """The task behind the plan, if there is one."""
    context: str = ""
    """What was given along with the request."""
    source: str = ""
    """Where that is from."""
    resumed: bool = False
    """There is a plan: the file as it is on disk is audited, and not drafted anew."""
    earlier: tuple[RecordedFinding, ...] = ()
    """What was raised in earlier runs about this plan."""
    form: str = ""
    """The file that the plan begins as, where that is another than usual: the draft is put into it."""
    blank: str = ""
    """The address of that file, if it lies on disk already and nobody has written into it."""
    research: str = "auto"
    """Whether files are chosen before a plan is written: `always`, `never`, or `auto` for want of tools."""


class _Draft(msgspec.Struct, frozen=True, kw_only=True):
    """The plan file between two rounds."""

    text: str
    on_disk: str
    before: int = 0
    """How many rounds it had before this forge."""


async def forge(request: ForgeRequest) -> PlanForged:
    """Draft a plan, then audit and revise it until nothing blocks."""
    await OpenWorktree(name=WORKTREE, commit=request.base)
    loop, agents = Loop(blocking_only(request.cap)), _Agents(request)
    draft = await (_found(request) if request.resumed else _drafted(request, agents))
    if isinstance(draft, Halt):
        await CloseWorktree(name=WORKTREE)
        return await _end(request, 0, "", draft)
    revisions = Revisions()
    revisions.repeated(plans.approvable(draft.text), "the drafter")
    while True:
        draft, decision = await _audited(request, agents, loop, draft)
        if decision.ends:
            break
        body = await _plan_from(request, agents, "reviser", _revision(request, loop, draft))
        if isinstance(body, Halt):
            decision = body
            break
        text = plans.with_body(draft.text, body)
        repeated = revisions.repeated(plans.approvable(text), "the reviser")
        if repeated:
            decision = Halt(reason=f"{repeated}: edit the plan yourself")
            break
        draft = await _written(request, "revision", draft.before + loop.round, text, draft)
    await CloseWorktree(name=WORKTREE)
    await MarkPlan(plan=request.plan, status=PlanStatus.REVIEW.value)
    warning = _warning(draft.text) if isinstance(decision, Done) else ""
    content = plans.content_hash(draft.text)
    return await _end(request, draft.before + loop.round, content, decision, warning)


async def _drafted(request: ForgeRequest, agents: _Agents) -> _Draft | Halt:
    """The plan as its drafter has it."""
    form = template.to_fill_in(request.form)
    prompt = prompts.draft(request.plan, request.request, request.context, form)
    body = await _plan_from(request, agents, "drafter", prompt)
    if isinstance(body, Halt):
        return body
    blank = _Draft(text=request.form, on_disk=request.blank) if request.blank else None
    return await _written(request, "draft", 0, _put_together(request, body), blank)


def _put_together(request: ForgeRequest, body: str) -> str:
    """A first draft as a file."""
    if request.form:
        return plans.with_body(request.form, body)
    return plans.render_new(
        plan=request.plan,
        title=request.title,
        created=request.today,
        project=request.project,
        request=request.request,
        body=body,
        task=request.task,
        context=request.context,
        source=request.source,
    )


async def _found(request: ForgeRequest) -> _Draft | Halt:
    """The plan as it is on disk, whoever wrote it last."""
    found = await ReadPlan(plan=request.plan)
    if faults := plans.resuming_faults(found.text):
        return Halt(reason=f"the audit cannot go on with the plan as it is: {'; '.join(faults)}")
    return _Draft(text=found.text, on_disk=found.object, before=plans.next_round(found.text) - 1)


def _warning(text: str) -> str:
    """What is wrong with a plan's form although no audit says so."""
    return "; ".join(fault.title for fault in plans.structural_faults(text))


async def _audited(
    request: ForgeRequest, agents: _Agents, loop: Loop, draft: _Draft
) -> tuple[_Draft, Decision]:
    by, verdict, notes = await _audit(request, agents, loop, draft)
    decision = loop.record(verdict)
    number = draft.before + loop.round
    await Note(
        AuditRecorded(
            plan=request.plan,
            round=number,
            by=by,
            verdict=verdict.verdict.value,
            reason=verdict.reason,
            findings=recorded(verdict.findings),
            decision=type(decision).__name__.lower(),
            decision_reason=decision.reason,
        )
    )
    closing = _closing(decision, draft.text)
    text = plans.with_audit_round(draft.text, number, request.today, notes, closing)
    return await _written(request, "audit", number, text, draft), decision


def _closing(decision: Decision, text: str) -> str:
    """What the audit log says of the end of the loop, if this is it and there is something to say."""
    if not decision.ends:
        return ""
    if not isinstance(decision, Done):
        return f"VERDICT: {decision.reason}"
    warning = _warning(text)
    return f"STRUCTURE: {warning}" if warning else ""


async def _audit(
    request: ForgeRequest, agents: _Agents, loop: Loop, draft: _Draft
) -> tuple[str, Judgement, str]:
    """Who audited, the verdict, and the notes for the audit log."""
    faults = (*plans.structural_findings(draft.text), *template.missing(draft.text, request.form))
    if worst(faults) is Severity.BLOCKING:
        notes = "\n".join(f"- Severity: {fault.severity.value} — {fault.title}" for fault in faults)
        reason = "the structure of the plan"
        verdict = Judgement(
            verdict=Verdict.REVISION,
            max_severity=Severity.BLOCKING,
            findings=faults,
            summary="",
            reason=reason,
        )
        return "structure", verdict, notes
    earlier = [*_raised(request), *(finding for verdict in loop.history for finding in verdict.findings)]
    number = draft.before + loop.round + 1
    prompt = prompts.audit(request.plan, number, plans.approvable(draft.text), earlier)
    said = [verdict.findings for verdict in loop.history]
    answer = await agents.ask("auditor", prompt, no_verdict, said)
    if isinstance(answer, Halt):
        verdict = Judgement(
            verdict=Verdict.UNKNOWN, max_severity=None, findings=(), reason=f"no audit: {answer.reason}"
        )
        return "nobody", verdict, answer.reason
    return answer.agent, parse_audit(answer.output or answer.text), answer.text


def _raised(request: ForgeRequest) -> list[Finding]:
    """What earlier runs found, as this one hands it on."""
    return [
        Finding(severity=Severity(finding.severity), title=finding.title, location=finding.location)
        for finding in request.earlier
    ]


def _revision(request: ForgeRequest, loop: Loop, draft: _Draft) -> Prompt:
    number = draft.before + loop.round
    return prompts.revise(request.plan, number, plans.approvable(draft.text), loop.latest.findings)


async def _plan_from(request: ForgeRequest, agents: _Agents, role: str, prompt: Prompt) -> str | Halt:
    """Ask for a plan; the loop halts if what comes back is not one."""
    answer = await agents.ask(role, prompt, partial(no_plan, form=request.form))
    return answer if isinstance(answer, Halt) else plans.drafted_body(answer.text)


def no_plan(answer: AgentAnswer, form: str) -> str:
    """Why an answer is no plan; empty if it is one. The template given back is none."""
    try:
        drafted = plans.drafted_body(answer.text)
    except InvalidDocument as error:
        return error.message
    return plans.template_echo(drafted) or template.given_back(drafted, form)


def no_verdict(answer: AgentAnswer) -> str:
    """Whether an answer has no verdict in it at all. One that contradicts itself is a person's to read."""
    verdict = parse_audit(answer.output or answer.text)
    return verdict.reason if verdict.reason == NO_VERDICT else ""


class _Agents:
    """Whom a forge asks: what each role is told of the project, and the conversations of its rounds."""

    def __init__(self, request: ForgeRequest) -> None:
        self._request = request
        self._gathered: dict[str, Gathered] = {}
        self._talks: dict[str, Conversation] = {}
        self._shown: tuple[str, ...] = ()
        """The files that plans were written from so far."""

    async def ask(
        self, role: str, prompt: Prompt, fault: Fault = usable, said: Sequence[tuple[Finding, ...]] = ()
    ) -> AgentAnswer | Halt:
        """Ask, and where nothing comes of it have a person decide whether to ask again."""
        request = self._request
        question = Question(
            plan=request.plan,
            role=role,
            access=Access.READ,
            worktree=WORKTREE,
            base=request.base,
            prompt=prompt,
        )
        if role not in self._gathered:
            self._gathered[role] = await asking.gathering(question)
        question = await self._escalated(question, said)
        while True:
            try:
                return await self._answer(question, fault)
            except PerformerFailed as error:
                if error.error not in UNUSABLE:
                    raise
                if not await self._asked_again(role, error.message):
                    return Halt(reason=f"the {role} gave nothing that could be used: {error.message}")

    async def _answer(self, question: Question, fault: Fault) -> AgentAnswer:
        """An answer that can be used; a plan may want files to be chosen first."""
        gathered, talk = self._gathered[question.role], self._talk(question.role)
        if research.wanted(self._request.research, question.role, gathered):
            answer, self._shown = await research.ask(question, gathered, talk, fault, self._shown)
            return answer
        return await asking.ask(question, gathered, talk, fault)

    async def _escalated(self, question: Question, said: Sequence[tuple[Finding, ...]]) -> Question:
        """The question with a heavier model, if those before it went round in circles."""
        own = self._gathered[question.role].tier
        reason = escalation.after_rounds(said, own)
        tier = await asking.escalated(
            reason, own, plan=question.plan, attempt=len(said) + 1, role=question.role
        )
        return msgspec.structs.replace(question, tier=tier)

    async def _asked_again(self, role: str, problem: str) -> bool:
        plan = self._request.plan
        question = f"the {role} of {plan} gave nothing that could be used, twice: {problem}; ask again?"
        reply = await AskHuman(question=question, choices=_choices(role), resumed=ASK_AGAIN)
        return reply.answer == ASK_AGAIN

    def _talk(self, role: str) -> Conversation:
        """Whoever drafts and whoever revises is one; the auditor is another."""
        who = "drafter" if role == "reviser" else role
        return self._talks.setdefault(who, Conversation(f"forge:{self._request.plan}:{who}"))


def _choices(role: str) -> tuple[Choice, ...]:
    """What a person may do about an agent that gives nothing, and what that costs them."""
    left = "the run ends without a plan" if role == "drafter" else "the plan goes to review as it is"
    return (
        Choice(name=GIVE_UP, cost="nothing more", consequence=f"{left}; nothing of it is approved"),
        Choice(
            name=ASK_AGAIN,
            cost=f"up to two more calls of the {role}",
            consequence="the run goes on if one of them can be used; otherwise you are asked again",
        ),
    )


async def _written(
    request: ForgeRequest, cause: Cause, round_number: int, text: str, before: _Draft | None
) -> _Draft:
    replaces = before.on_disk if before else None
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
    return _Draft(text=text, on_disk=written.object, before=before.before if before else 0)


async def _end(
    request: ForgeRequest, rounds: int, content: str, decision: Decision, warning: str = ""
) -> PlanForged:
    ended = PlanForged(
        plan=request.plan,
        content=content,
        rounds=rounds,
        reason=decision.reason,
        clean=isinstance(decision, Done),
        warning=warning,
    )
    await Note(ended)
    return ended


def recorded(findings: tuple[Finding, ...]) -> tuple[RecordedFinding, ...]:
    """Findings as an event holds them."""
    return tuple(
        RecordedFinding(severity=finding.severity.value, title=finding.title, location=finding.location)
        for finding in findings
    )
