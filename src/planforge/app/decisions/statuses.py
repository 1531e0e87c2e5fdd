"""
Which status a plan gets next, held to its table in `kernel/work/lifecycle`.

Whatever gives a plan another status is asked here first: people's commands while
they write, facts of a run before they are recorded, the status line of the file
before it is written. A plan that is kept in the ledger alone has no status of its
own; it has that of its steps, which the kernel looks after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import TEXT, Action, Advice
from planforge.app import landing, runs
from planforge.app.items import offers, plans
from planforge.errors import InvalidDocument, NotFound, RefusedByGate
from planforge.kernel import events
from planforge.kernel.ledger import Write
from planforge.kernel.objects import write_atomically
from planforge.kernel.work.items import Kind, kind_of
from planforge.kernel.work.lifecycle import IllegalTransition
from planforge.kernel.work.lifecycle.statuses import MACHINES, Given, given
from planforge.kernel.work.lifecycle.tables import PLAN
from planforge.rules.badges import Badge

if TYPE_CHECKING:
    from planforge.app.items.plans import PlanRow
    from planforge.app.project import Project
    from planforge.kernel.events import Event

CLOSE = "close"

UNDER_WAY = ("IMPLEMENTING", "AUDITING")
"""The statuses of a plan that a run is at."""


def require(project: Project, plan: str, target: str) -> None:
    """Refuse a status that may not follow the one the plan has; the one it has it may keep."""
    require_of(plans.row(project, plan), target)


def require_event(project: Project, plan: str, event: str) -> None:
    """Refuse what cannot happen to the plan as it is."""
    found = plans.row(project, plan)
    PLAN.after(found.status, event, found.plan)


def require_of(plan: PlanRow, target: str) -> None:
    """The same of a plan that was looked up."""
    if plan.status != target:
        PLAN.move(plan.status, target, plan.plan)


def admitting(project: Project) -> Callable[[Event], None]:
    """What refuses the facts of a run that would give an item a status which it may not have."""

    def admit(event: Event) -> None:
        moved = given(project.ledger.query, event)
        if moved is None or moved.counted:
            return
        if kind_of(moved.item) in (Kind.PLAN, Kind.FIX):
            require(project, moved.item, moved.status)
        else:
            _require_row(project, moved)

    return admit


def _require_row(project: Project, moved: Given) -> None:
    """Refuse what is not a row of the table of its kind."""
    for (status,) in list(project.ledger.query("SELECT status FROM items WHERE item = ?", moved.item)):
        machine = MACHINES[kind_of(moved.item)]
        if machine.after(status, moved.by, moved.item) != moved.status:
            machine.move(status, moved.status, moved.item)


def left_open(project: Project, subject: str, run: str, reason: str) -> list[events.PlanEnded]:
    """What to record of a plan whose run ends from outside, so that it is not under way for ever."""
    found = project.ledger.select(plans.PlanRow, "plans WHERE plan = ?", subject)
    return [
        events.PlanEnded(
            plan=plan.plan, run=run, succeeded=False, reason=reason, branch=plan.branch, commit=plan.landed
        )
        for plan in found
        if plan.status in UNDER_WAY
    ]


def cancelled_with_run(
    project: Project, subject: str, *, actor: str, reason: str, whatever: bool
) -> list[Write]:
    """
    What to write of the plan that a run which is cancelled was about: nothing of it is left if it is a draft
    still. `whatever` is any plan that can be cancelled.
    """
    found = project.ledger.select(plans.PlanRow, "plans WHERE plan = ? AND path <> ''", subject)
    return [
        Write(plan.plan, None, [_moved(plan, "cancel", actor, reason)])
        for plan in found
        if plan.status == PLAN.initial or (whatever and _can_be_cancelled(plan))
    ]


def _can_be_cancelled(plan: PlanRow) -> bool:
    return any(row.event == "cancel" for row in PLAN.leaving(plan.status))


def _moved(plan: PlanRow, event: str, actor: str, reason: str) -> events.ItemMoved:
    target = PLAN.after(plan.status, event, plan.plan)
    return events.ItemMoved(item=plan.plan, by=event, status=target, actor=actor, reason=reason)


# What a person does


def move(
    project: Project,
    name: str,
    event: str,
    *,
    actor: str,
    reason: str,
    override: bool = False,
    without_landing: bool = False,
) -> PlanRow:
    """
    Do to a plan what its table calls `event`, `close` or `cancel`; no run may be at it.

    It is closed with evidence that it is done, or by `override`; once it has landed, or `without_landing`.
    Both are on record then.
    """
    plan = plans.row(project, name).plan

    def decide() -> events.ItemMoved:
        moved = _moved(plans.row(project, plan), event, actor, reason)
        if event != CLOSE:
            return moved
        lacking, left = _lacking(project, plan), unlanded(project, plan)
        if (lacking and not override) or (left and not without_landing):
            raise _not_closed(plan, lacking, left)
        return msgspec.structs.replace(moved, override=bool(lacking), unlanded=left)

    return _decided(project, plan, decide)


def reopen(project: Project, name: str, *, actor: str, reason: str) -> PlanRow:
    """Take back that a plan was closed or cancelled: it is done, if its evidence says so, or in review."""
    plan = plans.row(project, name).plan

    def decide() -> events.ItemMoved:
        found = plans.row(project, plan)
        event = "reopen"
        if found.status == "CLOSED" and not _doubt(project, found):
            event = "reopen as done"
        elif found.status == "CANCELLED" and found.path and not found.object:
            event = "reopen as draft"  # no text of it was ever finished
        moved = _moved(found, event, actor, reason)
        return msgspec.structs.replace(moved, unlanded=unlanded(project, plan))

    return _decided(project, plan, decide)


def _decided(project: Project, plan: str, decide: Callable[[], events.ItemMoved]) -> PlanRow:
    def write() -> list[Write]:
        runs.require_free(project, plan)
        return [Write(plan, None, [decide()])]

    try:
        project.ledger.transact(write)
    except IllegalTransition as error:
        _mark_final(project, plan)
        found = plans.row(project, plan)
        if found.status == "DONE" and (ways := offers.about(project, found)):
            error.hint = Advice("run {}", ways[0])
        raise
    mark_as_recorded(project, plan)
    return plans.row(project, plan)


def _not_closed(plan: str, lacking: str, left: str) -> RefusedByGate:
    """Why a plan is not closed, and how it can be."""
    close = Action("plan close", plan, override=bool(lacking), unlanded=bool(left), reason=TEXT)
    if lacking:
        message = f"`{plan}` cannot be closed as done: {lacking}"
        message += ", and what is on its branch has not landed" if left else ""
        hint = Advice("see {}, or close it all the same: {}", Action("plan phases", plan), close)
    else:
        message = f"`{plan}` has not landed ({left[:12]}), and once it is closed it does not land"
        land = Action("land" if kind_of(plan) is Kind.FIX else "plan land", plan)
        hint = Advice("land it with {}, or close it all the same: {}", land, close)
    return RefusedByGate(message, hint)


def unlanded(project: Project, name: str) -> str:
    """The commit with the work of a plan that has not landed; empty if there is none."""
    plan = plans.row(project, name)
    landed = plan.status == "DONE" and not any(
        project.ledger.query("SELECT 1 FROM unlanded WHERE plan = ?", plan.plan)
    )
    if landed or not plan.branch or not plan.landed:
        return ""
    return "" if landing.reaches(project, plan.landed) else plan.landed


def _mark_final(project: Project, plan: str) -> None:
    """Write the status of a plan that has ended, if a process died before it could: it gets no other."""
    found = plans.row(project, plan)
    if found.status in PLAN.final:
        mark_as_recorded(project, plan)


def _lacking(project: Project, plan: str) -> str:
    """What is missing of the evidence that a plan is done; empty if nothing is."""
    row = plans.row(project, plan)
    return f"it is {row.status}" if row.status != "DONE" else _doubt(project, row)


def _doubt(project: Project, row: PlanRow) -> str:
    """What the evidence of a plan's steps lacks; empty if nothing."""
    steps = plans.steps(project, row.plan)
    if not row.path and all(step.status == "done" for step in steps):
        return ""  # a small change without a plan has evidence, and no audit
    badge = plans.badge_of(steps)
    return "" if badge in (Badge.VERIFIED, Badge.AUDITED) else f"its evidence is {badge}"


# The file of a plan says its status


def mark(project: Project, plan: str, status: str) -> None:
    """Write a status that the plan has, or may have next, into its file, changing nothing else in it."""
    from planforge.documents.plan import PlanStatus, with_status

    found = plans.row(project, plan)
    require_of(found, status)
    if not found.path:
        return
    path = project.root / found.path
    if path.exists():
        before = plans.text(project, found)
        after = with_status(before, PlanStatus(status))
        if after != before:
            write_atomically(path, after.encode())


def mark_as_recorded(project: Project, plan: str) -> str:
    """
    Have the file say the status that the ledger says; why it does not say so, or nothing if it does.

    What is on record holds whatever the file says. So it is no error if somebody has made something else of
    the file, or if it cannot be written.
    """
    for found in project.ledger.select(plans.PlanRow, "plans WHERE plan = ? AND path <> ''", plan):
        try:
            mark(project, found.plan, found.status)
        except (InvalidDocument, NotFound) as error:
            return f"`{found.path}` does not say {found.status}: {error.message}"
        except OSError as error:
            return f"`{found.path}` does not say {found.status}: {error.strerror}"
    return ""
