"""
A person's yes, bound to exact content and good for one run.

Approvals live in the plan's stream. Any edit of the plan changes its content hash,
so an approval of what it said before opens nothing; a run that takes an approval
uses it up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planforge.app import plans
from planforge.errors import Conflict, RefusedByGate
from planforge.kernel.effects import Approval
from planforge.kernel.events import ApprovalUsed, PlanApproved

if TYPE_CHECKING:
    from planforge.app.project import Project

PLAN_GATE = "plan"


def approve(project: Project, name: str, *, actor: str) -> Approval:
    """Record a person's yes to the plan as it is on disk now."""
    from planforge.documents.plan import PlanStatus, content_hash, structural_findings
    from planforge.rules.findings import Severity, worst

    plan = plans.row(project, name)
    if plan.status in ("IMPLEMENTING", "AUDITING"):
        raise RefusedByGate(f"`{plan.plan}` is being carried out", "finish it first: `planforge resume`")
    on_disk = plans.text(project, plan)
    faults = structural_findings(on_disk)
    if worst(faults) is Severity.BLOCKING:
        titles = "; ".join(fault.title for fault in faults if fault.severity is Severity.BLOCKING)
        raise RefusedByGate(f"`{plan.path}` is not a whole plan: {titles}", f"edit `{plan.path}`")
    approval = give(project, plan.plan, PLAN_GATE, content_hash(on_disk), actor)
    plans.mark(project, plan.plan, PlanStatus.APPROVED.value)
    return approval


def give(project: Project, plan: str, gate: str, content: str, actor: str) -> Approval:
    """Append the approval to the plan's stream; giving the same one again changes nothing."""
    if unused(project, plan, gate, content) is None:
        event = PlanApproved(plan=plan, gate=gate, content=content, actor=actor)
        _append(project, plan, event)
    return Approval(actor=actor, content=content)


def take(project: Project, plan: str, gate: str, content: str, run: str) -> Approval:
    """Use up the approval of `content`, for `run` and nobody else."""
    for recorded in project.ledger.stream(plan):
        event = recorded.event
        if isinstance(event, ApprovalUsed) and (event.run, event.content, event.gate) == (run, content, gate):
            return Approval(actor="", content=content)
    approval = unused(project, plan, gate, content)
    if approval is None:
        raise RefusedByGate(
            f"`{plan}` is not approved as it is now ({content[:12]})",
            f"read it, then run `planforge plan approve {plan}`",
        )
    _append(project, plan, ApprovalUsed(plan=plan, gate=gate, content=content, run=run))
    return approval


def unused(project: Project, plan: str, gate: str, content: str) -> Approval | None:
    """The approval of exactly this content that no run has taken yet. Any later one voids it."""
    found: Approval | None = None
    for recorded in project.ledger.stream(plan):
        match recorded.event:
            case PlanApproved() as event if event.gate == gate:
                found = Approval(actor=event.actor, content=event.content)
            case ApprovalUsed() as event if event.gate == gate:
                found = None
    return found if found and found.content == content else None


def _append(project: Project, plan: str, event: PlanApproved | ApprovalUsed) -> None:
    version = project.ledger.version(plan)
    try:
        project.ledger.append(plan, [event], expected=version)
    except Conflict as error:
        raise RefusedByGate(f"somebody else changed `{plan}` just now", "look at it and try again") from error
