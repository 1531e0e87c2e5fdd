"""
A person's yes to a plan, bound to exact content and good for one run.

Nobody is asked first: it is asked and decided in one transaction. Any edit of the plan changes its
content hash, so an approval of what it said before opens nothing; a run that takes an approval uses it
up. Written into the stream again, by whoever can write there, it has a number that is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planforge.actions import Action, Advice
from planforge.app.decisions import deciders, statuses
from planforge.app.decisions.deciders import Current
from planforge.app.items import offers, plans
from planforge.errors import InvalidInput, RefusedByGate, StaleView
from planforge.kernel.effects import Approval
from planforge.kernel.events import Choice, DecisionAsked, DecisionKind
from planforge.kernel.ledger import Write
from planforge.kernel.work import decisions
from planforge.kernel.work.actions import of_run
from planforge.kernel.work.decisions import APPROVE, Decision

if TYPE_CHECKING:
    from planforge.app.items.plans import PlanRow
    from planforge.app.project import Project
    from planforge.kernel.events import DecisionMade

PLAN_GATE = "plan"
APPROVAL: DecisionKind = "approval"
CHOICES = (Choice(name=APPROVE, consequence="one run may carry it out, as it is now"),)


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
    statuses.mark_as_recorded(project, plan.plan)
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
    from planforge.app.items.phase_views import present
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

    def decide() -> list[Write]:
        if alone:
            _require_idle(project, plan)
        before = unused(project, plan, gate, content)
        if before is None:
            statuses.require(project, plan, "APPROVED")
            return [Write(plan, None, given(project, plan, gate, content, actor))]
        if before.actor != actor:
            raise _decided(plan, before)
        return []  # said twice

    project.ledger.transact(decide)
    return Approval(actor=actor, content=content)


def given(
    project: Project, plan: str, gate: str, content: str, actor: str
) -> list[DecisionAsked | DecisionMade]:
    """The facts of a yes, within the transaction that records them."""
    about = DecisionAsked(kind=APPROVAL, number=0, subject=plan, name=gate, choices=CHOICES, content=content)
    asked = decisions.asked(project.ledger, about)
    return [asked, decisions.made(asked, APPROVE, actor)]


def take(project: Project, plan: str, gate: str, content: str, run: str) -> Approval:
    """Use up the approval of `content`, for `run` and nobody else."""
    taken: list[Approval] = []

    def decide() -> list[Write]:
        taken.clear()
        found = offers.approval(project, plans.row(project, plan), gate, content, run)
        mine = found is not None and found.used_by == run  # it asks again, after a crash
        if not mine:
            _require_alone(project, plan, run)
        if found is None:
            raise not_approved(plan, content)
        taken.append(Approval(actor=found.actor, content=content))
        if mine:
            return []
        if not found.used_by:
            statuses.require_event(project, plan, "run")
        return [Write(plan, None, [decisions.used(found, run, continues=found.used_by)])]

    project.ledger.transact(decide)
    return taken[0]


def not_approved(plan: str, content: str) -> RefusedByGate:
    """What is said of a plan that nobody has approved with this content."""
    approve = Advice("read it, then run {}", Action("plan approve", plan))
    return RefusedByGate(f"`{plan}` is not approved as it is now ({content[:12]})", approve)


def _require_alone(project: Project, plan: str, run: str) -> None:
    """Refuse a second run of a plan, also one that was begun at the same moment."""
    query = "SELECT run FROM runs WHERE subject = ? AND run IN unfinished AND run <> ?"
    for (other,) in project.ledger.query(query, plan, run):
        raise RefusedByGate(
            f"`{plan}` is being worked on by `{other}`", Advice("run {}", Action("resume", other))
        )


def unused(project: Project, plan: str, gate: str, content: str) -> Decision | None:
    """The approval of exactly this content that no run has taken yet. Any later one voids it."""
    found = decisions.newest(project.ledger, APPROVAL, plan, gate)
    return found if found and (found.status, found.content) == ("decided", content) else None


def _require_idle(project: Project, plan: str) -> None:
    """No yes is given while a run is at the plan: it would lie around for another one."""
    if found := offers.at_work(project, plan):
        *_, way, end = of_run(found)
        raise StaleView(
            f"`{plan}` is being worked on by `{found.run}`",
            Advice("finish it first: {}, or end it: {}", way, end),
            current=Current(what=found.run, status="unfinished", hash="", next=Action("status")),
        )


def _current(project: Project, plan: PlanRow, content: str) -> Current:
    approved = unused(project, plan.plan, PLAN_GATE, content)
    return Current(
        what=plan.plan,
        status=plan.status,
        hash=content,
        actor=approved.actor if approved else "",
        at=plan.updated_at,
        next=Action("plan show", plan.plan),
    )


def _decided(plan: str, before: Decision) -> StaleView:
    run = Action("plan run", plan)
    return StaleView(
        f"`{plan}` was approved by {before.actor} as it is now ({before.content[:12]})",
        Advice("run it: {}", run),
        current=Current(what=plan, status="APPROVED", hash=before.content, actor=before.actor, next=run),
    )
