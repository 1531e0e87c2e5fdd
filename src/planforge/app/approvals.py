"""
A person's yes to a plan, bound to exact content and good for one run.

Approvals live in the plan's stream. Any edit of the plan changes its content hash,
so an approval of what it said before opens nothing; a run that takes an approval
uses it up. Each has a token that is used once: written into the stream again, by
whoever can write there, it opens nothing either.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from planforge.actions import Action, Advice
from planforge.app import deciders, plans, statuses
from planforge.app.deciders import Current
from planforge.errors import InvalidInput, RefusedByGate, StaleView
from planforge.kernel.effects import Approval
from planforge.kernel.events import ApprovalUsed, PlanApproved
from planforge.kernel.ledger import Write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planforge.app.plans import PlanRow
    from planforge.app.project import Project
    from planforge.kernel.events import Event

PLAN_GATE = "plan"


def approve(project: Project, name: str, *, actor: str, seen: str | None = None) -> Approval:
    """Record a person's yes to the plan as it is on disk now; `seen` is the hash of what they looked at."""
    from planforge.documents.plan import content_hash

    plan = plans.row(project, name)
    _require_idle(project, plan.plan)
    on_disk = plans.text(project, plan)
    content = content_hash(on_disk)
    deciders.require_current(seen, _current(project, plan, content))
    require_whole(project, plan, on_disk, Action("plan approve", plan.plan))
    approval = give(project, plan.plan, PLAN_GATE, content, actor, alone=True)
    plans.mark_as_recorded(project, plan.plan)
    return approval


def require_whole(project: Project, plan: PlanRow, text: str, action: Action) -> None:
    """Refuse what no run could be held to; `action` is what to do again once that is fixed."""
    from planforge.documents.template import is_blank

    if found := faults(project, plan, text):
        hint = Advice("edit `{}`, then run {} again", plan.path, action)
        if is_blank(text):
            hint = Advice("{}; or have it drafted: {}", hint, Action("forge", plan.plan))
        raise RefusedByGate(f"`{plan.path}` is not a whole plan: {'; '.join(found)}", hint)


def faults(project: Project, plan: PlanRow, text: str) -> list[str]:
    """Why no run could be held to it: a broken header, a missing section, an order that cannot be."""
    from planforge.app.phase_views import present
    from planforge.documents.phases import decompose
    from planforge.documents.plan import declared_parallel, header_faults, structural_findings, unwritten
    from planforge.rules.findings import Severity

    found = [*header_faults(text, plan.plan)]
    found += [each.title for each in structural_findings(text) if each.severity is Severity.BLOCKING]
    found += [f"`## {name}` is not written yet" for name in unwritten(text)]
    try:
        decompose(
            text,
            max_files=project.settings.run.max_files,
            parallel=bool(declared_parallel(text)),
            present=present(project.git, text, plan.branch),
        )
    except InvalidInput as error:
        found.append(error.message)
    return found


def give(
    project: Project, plan: str, gate: str, content: str, actor: str, *, alone: bool = False
) -> Approval:
    """
    Append the approval to the plan's stream. The same person's yes to the same content, given again before
    it was used, is the same yes; somebody else's is refused. `alone` is while no run is at the plan.
    """
    deciders.require_other_author(project, plan, actor)
    token = secrets.token_hex(16)

    def decide() -> list[Write]:
        if alone:
            _require_idle(project, plan)
        before = _unused(project, plan, gate)
        if before is None or before.content != content:
            statuses.require(project, plan, "APPROVED")
            event = PlanApproved(plan=plan, gate=gate, content=content, actor=actor, token=token)
            return [Write(plan, None, [event])]
        if before.actor != actor:
            raise _decided(plan, before)
        return []  # said twice

    project.ledger.transact(decide)
    return Approval(actor=actor, content=content)


def take(project: Project, plan: str, gate: str, content: str, run: str) -> Approval:
    """Use up the approval of `content`, for `run` and nobody else."""
    taken: list[Approval] = []

    def decide() -> list[Write]:
        taken.clear()
        found, used = _told(project, plan, gate)
        if (mine := used.get((run, content))) is not None:  # it asks again, after a crash
            taken.append(Approval(actor=mine.actor, content=content))
            return []
        _require_alone(project, plan, run)
        before = _begun(project, plan, content, used)
        if found is not None and found.content == content:
            statuses.require_event(project, plan, "run")
            continues = ""
        elif before is not None:
            (continues, _), found = before
        else:
            raise not_approved(plan, content)
        taken.append(Approval(actor=found.actor, content=content))
        event = ApprovalUsed(
            plan=plan, gate=gate, content=content, run=run, token=found.token, continues=continues
        )
        return [Write(plan, None, [event])]

    project.ledger.transact(decide)
    return taken[0]


def not_approved(plan: str, content: str) -> RefusedByGate:
    """What is said of a plan that nobody has approved with this content."""
    approve = Advice("read it, then run {}", Action("plan approve", plan))
    return RefusedByGate(f"`{plan}` is not approved as it is now ({content[:12]})", approve)


def holding(project: Project, plan: str, gate: str, content: str) -> Approval | None:
    """The approval under which a run may begin: one not used yet, or that of the run that was stopped."""
    left, used = _told(project, plan, gate)
    before = _begun(project, plan, content, used)
    found = left if left and left.content == content else before[1] if before else None
    return Approval(actor=found.actor, content=content) if found else None


def _begun(
    project: Project, plan: str, content: str, used: dict[tuple[str, str], PlanApproved]
) -> tuple[tuple[str, str], PlanApproved] | None:
    """The newest use of a yes to this content, if the plan is stopped and somebody may go on under it."""
    if plans.row(project, plan).status != "IMPLEMENTING" or not used:
        return None
    newest = list(used.items())[-1]
    return newest if newest[0][1] == content else None


def _require_alone(project: Project, plan: str, run: str) -> None:
    """Refuse a second run of a plan, also one that was begun at the same moment."""
    query = "SELECT run FROM runs WHERE subject = ? AND run IN unfinished AND run <> ?"
    for (other,) in project.ledger.query(query, plan, run):
        raise RefusedByGate(
            f"`{plan}` is being worked on by `{other}`", Advice("run {}", Action("resume", other))
        )


def unused(project: Project, plan: str, gate: str, content: str) -> Approval | None:
    """The approval of exactly this content that no run has taken yet. Any later one voids it."""
    found = _unused(project, plan, gate)
    return Approval(actor=found.actor, content=content) if found and found.content == content else None


def _unused(project: Project, plan: str, gate: str) -> PlanApproved | None:
    return _told(project, plan, gate)[0]


def _told(
    project: Project, plan: str, gate: str
) -> tuple[PlanApproved | None, dict[tuple[str, str], PlanApproved]]:
    """The yes that is left, if any, and those that are used up, by run and content."""
    left: PlanApproved | None = None
    used: dict[tuple[str, str], PlanApproved] = {}
    known: set[str] = set()
    for event in _of(project, plan, gate):
        if isinstance(event, ApprovalUsed) and event.continues:
            before = used.get((event.continues, event.content))
            if before and before.token == event.token:
                used[event.run, event.content] = before
        elif isinstance(event, ApprovalUsed):
            if left and (left.content, left.token) == (event.content, event.token):
                used[event.run, event.content] = left
            left = None
            known.add("")  # from here on, one without a token may be any of those before
        elif event.token not in known:
            left = event
            known |= {event.token} - {""}
    return left, used


def _of(project: Project, plan: str, gate: str) -> Iterator[PlanApproved | ApprovalUsed]:
    """What was said and used at this gate of this plan; what is about another is nothing here."""
    for recorded in project.ledger.stream(plan):
        event: Event = recorded.event
        if isinstance(event, PlanApproved | ApprovalUsed) and (event.plan, event.gate) == (plan, gate):
            yield event


def _require_idle(project: Project, plan: str) -> None:
    """No yes is given while a run is at the plan: it would lie around for another one."""
    query = "SELECT run FROM runs WHERE subject = ? AND run IN unfinished ORDER BY length(run), run"
    for (run,) in project.ledger.query(query, plan):
        raise StaleView(
            f"`{plan}` is being worked on by `{run}`",
            Advice("finish it first: {}, or end it: {}", Action("resume", run), Action("cancel", run)),
            current=Current(what=run, status="unfinished", hash="", next=Action("status")),
        )


def _current(project: Project, plan: PlanRow, content: str) -> Current:
    approved = _unused(project, plan.plan, PLAN_GATE)
    return Current(
        what=plan.plan,
        status=plan.status,
        hash=content,
        actor=approved.actor if approved and approved.content == content else "",
        at=plan.updated_at,
        next=Action("plan show", plan.plan),
    )


def _decided(plan: str, before: PlanApproved) -> StaleView:
    run = Action("plan run", plan)
    return StaleView(
        f"`{plan}` was approved by {before.actor} as it is now ({before.content[:12]})",
        Advice("run it: {}", run),
        current=Current(
            what=plan,
            status="APPROVED",
            hash=before.content,
            actor=before.actor,
            next=run,
        ),
    )
