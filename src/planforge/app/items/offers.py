"""
What can be done next about a plan, a fix or a task: the facts are looked up here, `kernel/work/actions.py`
decides.

All of it is quick, and none of the events is loaded: `status` asks for every item there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from planforge.app import runs
from planforge.app.items import plans
from planforge.errors import PlanforgeError
from planforge.kernel.work import decisions
from planforge.kernel.work.actions import OVER, AtWork, Known, offered
from planforge.kernel.work.items import Kind, kind_of
from planforge.kernel.work.links import waits_for

if TYPE_CHECKING:
    from planforge.actions import Action
    from planforge.app.items.plans import PlanRow, StepRow
    from planforge.app.project import Project
    from planforge.app.runs import RunRow
    from planforge.kernel.work.decisions import Decision

APPROVAL, PLAN_GATE = "approval", "plan"


def about(project: Project, plan: PlanRow, **facts: Any) -> list[Action]:
    """What can be done next about a plan or a fix; `facts` are known better, or only where it is asked."""
    known = known_of(project, plan, plans.steps(project, plan.plan))
    facts["at_work"] = at_work(project, plan.plan)
    return offered(plan.plan, plan.status, msgspec.structs.replace(known, **facts))


def at_work(project: Project, item: str) -> AtWork | None:
    """The run that is at an item, with how it is ended."""
    found = (row for row in runs.rows(project, unfinished=True) if row.subject == item)
    return next((run_of(project, row) for row in found), None)


def run_of(project: Project, row: RunRow) -> AtWork:
    """An unfinished run, as far as what can be done about it goes."""
    from planforge.workflows.flows import end_of

    return AtWork(
        run=row.run,
        driven=row.status == "running",
        awaited=tuple(runs.waiting_for(project, row.run)),
        end=end_of(row.flow, row.run, row.subject),
    )


def known_of_task(project: Project, task: str, landing: str | None = None) -> Known:
    """What is known of a task that no run is at; `landing` is one that was interrupted, if that is known."""
    return Known(**_around(project, task, landing))


def known_of(
    project: Project, plan: PlanRow, steps: tuple[StepRow, ...], landing: str | None = None
) -> Known:
    """What is known of a plan or a fix that no run is at; `landing` as above."""
    known = _known_of(project, plan, steps)
    return msgspec.structs.replace(known, **_around(project, plan.plan, landing))


def _around(project: Project, item: str, landing: str | None) -> dict[str, Any]:
    if landing is None:
        landing = interrupted_landing(runs.rows(project, unfinished=True))
    return {"landing": landing, "waits": bool(waits_for(project.ledger, item))}


def interrupted_landing(every: list[RunRow]) -> str:
    """The landing that stands still, if one does; of the runs that have not ended."""
    stopped = (row.run for row in every if row.subject.startswith("refs/heads/") and row.status != "running")
    return next(stopped, "")


def _known_of(project: Project, plan: PlanRow, steps: tuple[StepRow, ...]) -> Known:
    unlanded = any(project.ledger.query("SELECT 1 FROM unlanded WHERE plan = ?", plan.plan))
    if kind_of(plan.plan) is Kind.FIX:
        done = all(step.status == "done" for step in steps)
        return Known(unlanded=unlanded, passed=done and plan.status != "IMPLEMENTING")
    left = plan.status == "DONE" and bool(plan.path) and _is_left(steps)
    if not plan.path or plan.status in OVER or (plan.status == "DONE" and not left):
        return Known(unlanded=unlanded, filed=bool(plan.path))
    if not plan.object:
        return Known(blank=True)
    if not (project.root / plan.path).is_file():
        return Known(readable=False)
    newest = "SELECT content FROM revisions WHERE plan = ? ORDER BY revision DESC LIMIT 1"
    made = next((content for (content,) in project.ledger.query(newest, plan.plan)), "")
    if plan.status == "REVIEW" and not made:
        return Known()  # whatever its file says
    failed = next((step.step for step in steps if step.status == "failed"), "")
    return _read(project, plan, made, Known(left=left, failed=failed))


def _is_left(steps: tuple[StepRow, ...]) -> bool:
    """Whether phases are to be done: those of a plan that was done may have been made once more."""
    from planforge.rules.selection import MET

    return any(step.status not in MET for step in steps)


def _read(project: Project, plan: PlanRow, made: str, known: Known) -> Known:
    """The same with what the plan says now; its phases were `made` of that content, if there are any."""
    from planforge.documents.plan import content_hash
    from planforge.documents.template import is_blank

    try:
        text = plans.text(project, plan)
    except PlanforgeError:
        return msgspec.structs.replace(known, readable=False)
    content = content_hash(text)
    return msgspec.structs.replace(
        known,
        blank=is_blank(text),
        stale=made not in ("", content),
        approved=approval(project, plan, PLAN_GATE, content) is not None,
    )


def approval(project: Project, plan: PlanRow, gate: str, content: str, run: str = "") -> Decision | None:
    """The yes under which a run may begin: one not used yet, or that of `run` or of one that was stopped."""
    found = decisions.newest(project.ledger, APPROVAL, plan.plan, gate)
    if found is None or found.content != content:
        return None
    if found.status == "used" and found.used_by != run:
        return found if plan.status == "IMPLEMENTING" else None
    return found if found.status in ("decided", "used") else None
