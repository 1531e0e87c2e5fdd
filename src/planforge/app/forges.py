"""
Forging, as a person asks for it: what their words mean, which forges there are, and what follows a clean one.

`forge "what I want"` makes a plan, `forge plan-017` goes on with one as its status says. A forge belongs to
one plan, and a plan has one forge at a time; forges of different plans know nothing of each other.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from planforge.actions import Action, Advice, Hint
from planforge.app import cancellation, runs
from planforge.app.context.gather import constraints
from planforge.app.decisions import approvals
from planforge.app.items import offers, phase_views, plan_rounds, plans
from planforge.app.plans import creation, fixes, phases, work
from planforge.documents import requests
from planforge.documents.plan import (
    content_hash,
    given,
    header_faults,
    heartbeat,
    looks_like_plan_id,
    resuming_faults,
    structural_faults,
)
from planforge.documents.template import is_blank
from planforge.errors import Conflict, InvalidDocument, InvalidInput, NotFound, PlanforgeError, RefusedByGate
from planforge.kernel.events import (
    AuditRecorded,
    EffectCompleted,
    EffectFailed,
    EffectIntended,
    ItemOpened,
    PlanForged,
    RecordedFinding,
    RunEnded,
)
from planforge.kernel.objects import address
from planforge.kernel.redaction import Redactor
from planforge.kernel.wording import CANCELLED
from planforge.kernel.work.actions import back_or_new, of_run
from planforge.rules.auto_implement import CAP_REACHED, Forged, Refusal, refusal
from planforge.rules.findings import Severity
from planforge.rules.verdicts import Verdict
from planforge.workflows.forge import ForgeRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planforge.app.items.plans import PlanRow
    from planforge.app.project import Project
    from planforge.app.runs import RunRow
    from planforge.documents.imports import Imported
    from planforge.workflows.forge import ForgeRequest

FLOW = "forge"

RESERVED = ("status", "cancel", "help", "audit")
"""Words that are never a request."""


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was begun, and of what."""

    run: str
    approved: bool = False
    """Whether the plan was approved before, so that it is carried out and not forged."""


# Beginning one


def begin(project: Project, words: str, *, cap: int | None = None, context: Imported | None = None) -> Begun:
    """What somebody wants, or a plan to go on with; nothing is started yet."""
    if words.strip() in RESERVED:
        raise InvalidInput(
            f"`{words.strip()}` is not a request", Advice("see {}", Action("forge", help=True))
        )
    require_constraints(project)
    if looks_like_plan_id(words) or plans.of_task(project, words) is not None:
        if context is not None:
            raise InvalidInput(f"`{words.strip()}` is a plan already", "put what else is known into its file")
        return again(project, words, cap=cap)
    if context is not None and (requests.item(words) or requests.means_nothing(words)):
        words = context.title
    elif context is None:
        _require_request(project, words)
    return Begun(run=begin_forge(project, words, cap=cap, context=context))


def _require_request(project: Project, words: str) -> None:
    """Refuse words that are none, with what was probably meant: the newest plan there is to go on with."""
    named = requests.item(words)
    if named and named.kind == "plan":
        raise InvalidInput(
            f"`{words.strip()}` is a name, not a request", Advice("run {}", Action("forge", named.name))
        )
    if named and named.kind == "fix" and (ways := fixes.offered(project, plans.row(project, named.name))):
        raise InvalidInput(f"`{words.strip()}` is a fix, not a request", Advice("run {}", ways[-1]))
    open_ = [row for row in plans.rows(project) if row.status in ("DRAFT", "REVIEW") and row.path]
    if open_ and words.strip() and not named and requests.means_nothing(words):
        raise InvalidInput(
            f"`{' '.join(words.split())}` does not say what you want",
            Advice(
                "say it in a sentence; to go on with the newest plan, run {}", Action("forge", open_[-1].plan)
            ),
        )
    work.require_request(words)


def again(project: Project, name: str, *, cap: int | None = None) -> Begun:
    """Go on with a plan as its status says: audit it as it is on disk, or carry it out."""
    plan = plans.row(project, name)
    if not plan.path:
        raise RefusedByGate(
            f"`{plan.plan}` has no file to audit",
            Advice("see what there is of it: {}", Action("graph", plan.plan)),
        )
    runs.require_free(project, plan.plan)
    match plan.status:
        case "DRAFT" | "REVIEW":
            return Begun(run=_resumed(project, plan, cap))
        case "APPROVED" | "IMPLEMENTING":
            return Begun(run=work.begin_plan_run(project, plan.plan, parallel=False), approved=True)
    raise _refusal(project, plan)


def _refusal(project: Project, plan: PlanRow) -> RefusedByGate:
    hint: Hint = back_or_new(plan.plan)
    if plan.status == "CANCELLED" and plan.object:
        hint = Advice("{}; its text is still there: {}", hint, Action("plan show", plan.plan))
    elif plan.status == "AUDITING":
        hint = Advice("its finished work is being audited: {}", Action("plan show", plan.plan))
    elif plan.status == "DONE":
        approve = Action("plan approve", plan.plan)
        hint = Advice("edit `{}` and approve it again: {}", plan.path, approve)
        for way in phases.offered(project, plan)[:1]:
            hint = Advice("run {}, or {}", way, hint)
    return RefusedByGate(f"`{plan.plan}` is {plan.status}: there is nothing to forge", hint)


def audit(project: Project, name: str) -> str:
    """Record one more round of audit of a plan as it is on disk, without any revision."""
    plan = plans.row(project, name)
    runs.require_free(project, plan.plan)
    if not plan.path or plan.status not in ("DRAFT", "REVIEW"):
        raise RefusedByGate(
            f"`{plan.plan}` is {plan.status}: only a draft or a plan in review is audited",
            Advice("see {}", Action("plan show", plan.plan)),
        )
    _require_sound(project, plan, Action("plan audit", plan.plan))
    return _resumed(project, plan, 1)


def _resumed(project: Project, plan: PlanRow, cap: int | None) -> str:
    """Record the run that audits a plan again; one that nobody has drafted or written yet is drafted."""
    there = bool(plan.object) or (project.root / plan.path).exists()
    text = plans.text(project, plan) if there else ""
    if blank := there and is_blank(text):
        _require_header(plan, text, Action("forge", plan.plan))
    elif there:
        _require_sound(project, plan, Action("forge", plan.plan))
    work.require_agents(project, work.ROLES_OF_FORGE)
    work.require_directory(project, Path(plan.path).parent.as_posix(), "plans")
    request = msgspec.structs.replace(
        forge_request(project, plan.plan, plan.title, _request_of(project, plan.plan), cap=cap),
        task=plan.task,
        resumed=there and not blank,
        earlier=raised(project, plan.plan),
    )
    if blank:
        on_disk = address(text.encode())
        request = msgspec.structs.replace(request, form=text, blank=on_disk, context=given(text))
    elif not there and (first := _asked_first(project, plan.plan)):
        request = msgspec.structs.replace(
            request, form=first.form, context=first.context, source=first.source
        )
    return runs.begin(project, FLOW, plan.plan, lambda _: request, alone=True)


def _asked_first(project: Project, plan: str) -> ForgeRequest | None:
    """What the first forge of a plan was asked, of which no draft has come."""
    first = runs.of_subject(project, plan, FLOW)[:1]
    return runs.request(project, first[0], ForgeRequest) if first else None


def _require_sound(project: Project, plan: PlanRow, then: Action) -> None:
    """Refuse a file that an audit cannot go on with; whoever edited it is told what is wrong."""
    text = plans.text(project, plan)
    _require(plan, resuming_faults(text), then)
    _require_header(plan, text, then)


def _require_header(plan: PlanRow, text: str, then: Action) -> None:
    _require(plan, header_faults(text, plan.plan), then)


def _require(plan: PlanRow, faults: tuple[str, ...], then: Action) -> None:
    if faults:
        raise RefusedByGate(
            f"`{plan.path}` cannot be audited as it is: {'; '.join(faults)}",
            Advice("edit it, then run {} again", then),
        )


def _request_of(project: Project, plan: str) -> str:
    created = (item.event for item in project.ledger.stream(plan) if isinstance(item.event, ItemOpened))
    return next((event.request for event in created), "")


def raised(project: Project, plan: str) -> tuple[RecordedFinding, ...]:
    """What the audits of a plan have found in all its runs, each once, in order."""
    found: dict[tuple[str, str], RecordedFinding] = {}
    for event in plan_rounds.history(project, plan):
        if isinstance(event, AuditRecorded) and event.plan == plan and not event.step:
            for finding in event.findings:
                found.setdefault((finding.severity, finding.title), finding)
    return tuple(found.values())


def require_constraints(project: Project) -> None:
    """Make sure that what every plan has to keep to can be read, before an agent is asked."""
    constraints(project)


# Those that there are


class ForgeView(msgspec.Struct, frozen=True, kw_only=True):
    """A forge that is not at its end."""

    run: str
    plan: str
    title: str
    status: str
    """running, waiting or interrupted"""
    rounds: int
    """How many rounds of audit the plan has had."""
    doing: str
    """Who is at work, if anybody is."""
    reason: str
    """What it waits for, if it does."""
    started_at: str
    next: Action
    """What a person can do about it."""


def unfinished(project: Project) -> list[ForgeView]:
    """The forges that run, wait or were interrupted, oldest first."""
    return [_view(project, row) for row in runs.rows(project, unfinished=True, flow=FLOW)]


def _view(project: Project, row: RunRow) -> ForgeView:
    plan = next(iter(project.ledger.select(plans.PlanRow, "plans WHERE plan = ?", row.subject)), None)
    return ForgeView(
        run=row.run,
        plan=row.subject,
        title=plan.title if plan else "",
        status=row.status,
        rounds=plan.rounds if plan else 0,
        doing=_doing(project, row.run) if row.status == "running" else "",
        reason=row.reason,
        started_at=row.started_at,
        next=of_run(offers.run_of(project, row))[0],
    )


def _doing(project: Project, run: str) -> str:
    """The role that is asked now."""
    asked: dict[str, str] = {}
    for recorded in project.ledger.stream(run):
        match recorded.event:
            case EffectIntended(effect="RunAgent", about=role):
                asked[recorded.key] = role
            case EffectCompleted() | EffectFailed():
                asked.pop(recorded.key, None)
    return ", ".join(asked.values())


def cancel(project: Project, name: str | None, *, actor: str, reason: str) -> tuple[RunEnded, PlanRow]:
    """End a forge at once, whoever drives it, and cancel its plan; how it ended, and the plan."""
    found = _meant(project, name)
    ended = cancellation.cancel(project, found.run, reason=reason, actor=actor, with_plan=True)
    return ended, plans.row(project, found.subject)


def _meant(project: Project, name: str | None) -> RunRow:
    there = runs.rows(project, unfinished=True, flow=FLOW)
    if name is not None:
        plan = plans.row(project, name).plan
        for row in there:
            if row.subject == plan:
                return row
        raise NotFound(f"no forge of `{plan}` is under way", Advice("see {}", Action("forge status")))
    if not there:
        raise NotFound("no forge is under way", Advice("see {}", Action("forge status")))
    if len(there) > 1:
        names = ", ".join(f"`{row.subject}`" for row in there)
        raise InvalidInput(f"{len(there)} forges are under way: {names}", "say which: the plan's id")
    return there[0]


# What follows


class Implementation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a plan after its forge: a run that carries it out, or why there is none."""

    plan: str
    run: str = ""
    approved_by: str = ""
    refusal: Refusal | None = None
    warnings: tuple[RecordedFinding, ...] = ()
    """What the last audit found although nothing blocks."""


def implement(project: Project, run: str, *, actor: str) -> Implementation:
    """Approve what a forge has made, in the name of who asked for it, and begin to carry it out."""
    found, content, warnings = _forged(project, run)
    why_not = refusal(found)
    if why_not is not None:
        return Implementation(plan=found.plan, refusal=why_not, warnings=warnings)
    approvals.approve(project, found.plan, actor=actor, seen=content)
    begun = work.begin_plan_run(project, found.plan, parallel=False)
    return Implementation(plan=found.plan, run=begun, approved_by=actor, warnings=warnings)


def _forged(project: Project, run: str) -> tuple[Forged, str, tuple[RecordedFinding, ...]]:
    """How a forge ended, the hash of what it left, and what its last audit found that does not block."""
    events = [item.event for item in project.ledger.stream(run)]
    ended = next((event for event in events if isinstance(event, RunEnded)), None)
    end = next((event for event in events if isinstance(event, PlanForged)), None)
    audits = [event for event in events if isinstance(event, AuditRecorded)]
    last = audits[-1] if audits else None
    findings = last.findings if last else ()
    plan = next(row.subject for row in runs.rows(project) if row.run == run)
    found = Forged(
        plan=plan,
        written=bool(end and end.content),
        error=_failure(ended, end),
        cap_reached=bool(last and last.decision_reason.startswith(CAP_REACHED)),
        cancelled=bool(ended and ended.reason.startswith(CANCELLED)),
        verdict=Verdict(last.verdict) if last else None,
        severity=max(
            (Severity(each.severity) for each in findings), key=lambda each: each.rank, default=None
        ),
        structure=_structure(project, plan) if end and end.content else "",
        running=next((row.run for row in runs.rows(project, unfinished=True) if row.subject == plan), ""),
        phases=_phases(project, plan),
    )
    warnings = tuple(each for each in findings if each.severity != Severity.BLOCKING.value)
    return found, end.content if end else "", warnings


def _failure(ended: RunEnded | None, end: PlanForged | None) -> str:
    if ended is None:
        return "it has not ended"
    return "" if end else ended.reason


def _structure(project: Project, plan: str) -> str:
    """What is wrong with the form of the plan as it is on disk now."""
    try:
        text = plans.text(project, plans.row(project, plan))
    except (NotFound, InvalidDocument):
        return "its file cannot be read"
    return "; ".join(fault.title for fault in structural_faults(text))


def _phases(project: Project, plan: str) -> Literal["none", "current", "stale", "unreadable"]:
    """Whether there are phases of the plan, and of which text of it."""
    made = phase_views.newest(project, plan)
    if made is None:
        return "none"
    try:
        content = content_hash(plans.text(project, plans.row(project, plan)))
    except PlanforgeError:
        return "unreadable"
    return "current" if content == made.content else "stale"


# Signs of life


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How often somebody who follows a run is told that it goes on."""

    heartbeat: float
    """Seconds; 0 for never."""
    progress: float
    problem: str = ""
    """What is wrong with what the plan says about it."""


def pace(project: Project, run: str) -> Pace:
    """What the settings say, unless the plan's header says otherwise."""
    settings = project.settings.forge
    said, problem = None, ""
    for text in _texts(project, run):
        try:
            said = heartbeat(text)
        except InvalidDocument as error:
            problem = f"{error.message}; it is {settings.heartbeat_seconds:g} s"
    beat = settings.heartbeat_seconds if said is None else said
    return Pace(heartbeat=beat, progress=settings.progress_seconds, problem=problem)


def _texts(project: Project, run: str) -> Iterator[str]:
    """The file of the plan that a run is about, if it is about one that is there."""
    for (subject,) in project.ledger.query("SELECT subject FROM runs WHERE run = ?", run):
        for plan in project.ledger.select(plans.PlanRow, "plans WHERE plan = ? AND path <> ''", subject):
            try:
                yield plans.text(project, plan)
            except (NotFound, InvalidDocument):
                return


# Beginning


def begin_forge(
    project: Project, request: str, *, cap: int | None = None, context: Imported | None = None
) -> str:
    """Give the request a plan of its own and record the run; nothing is started yet."""
    work.require_agents(project, work.ROLES_OF_FORGE)
    title = work.title_of(request)

    given = Redactor.of_environment().text(context.text) if context else ""
    source = context.source if context else ""

    while True:
        created = work.new_plan(project, title, request, description=given)
        asking = msgspec.structs.replace(
            forge_request(project, created.item, title, request, cap=cap),
            task=created.parent,
            context=given,
            source=source,
            form=creation.own_form(project, created, request, given, source),
        )
        try:
            return runs.begin(project, "forge", created.item, _always(asking), created)
        except Conflict:
            continue  # another process took this plan number; the next one is ours


def forge_request(
    project: Project, plan: str, title: str, request: str, *, cap: int | None = None
) -> ForgeRequest:
    """What a forge of this plan is asked, as the settings have it."""
    return ForgeRequest(
        plan=plan,
        title=title,
        request=request,
        project=project.root.name,
        today=work.today(),
        base=work.head(project),
        cap=cap or project.settings.forge.cap,
        research=project.settings.forge.research,
    )


def _always(asking: ForgeRequest) -> Callable[[str], ForgeRequest]:
    return lambda _: asking
