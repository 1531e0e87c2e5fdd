"""Everything about one plan on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from planforge.app.decisions import approvals
from planforge.app.items import plans
from planforge.app.items.plans import PlanRow, StepRow
from planforge.documents.plan import content_hash
from planforge.kernel.work.links import Before, before

if TYPE_CHECKING:
    from planforge.app.project import Project


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one plan on one page."""

    plan: PlanRow
    text: str
    edited: bool
    """The file on disk is not what Planforge last wrote or what was last approved."""
    approved_by: str
    """Whose approval of exactly this content is still unused; empty if nobody's."""
    content: str = ""
    """The hash of the plan as it is on disk now, which an approval is bound to."""
    steps: tuple[StepRow, ...]
    badge: str = ""
    after: tuple[Before, ...] = ()
    """What it comes after."""


def view(project: Project, name: str) -> PlanView:
    """The plan that `name` means, in full."""
    plan = plans.row(project, name)
    on_disk = plans.text(project, plan)
    content = content_hash(on_disk)
    approval = approvals.unused(project, plan.plan, approvals.PLAN_GATE, content)
    known = plans.steps(project, plan.plan)
    return PlanView(
        plan=plan,
        text=on_disk,
        edited=bool(plan.content) and content != plan.content,
        approved_by=approval.actor if approval else "",
        content=content,
        steps=known,
        badge=plans.shown_badge(plan, known),
        after=before(project.ledger, plan.plan),
    )
