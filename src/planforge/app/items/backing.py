"""
The task behind each plan, as a record that is derived from the plan and so never disagrees with it.

The task of a plan that is approved is in progress, that of one whose run came to nothing is blocked, that of
one that is done, closed or cancelled is closed. A plan is for the task that a person named, or brings one of
its own: `ws-017` of `plan-017`. Where several plans are for one task, the newest says how it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice, see
from planforge.errors import InvalidInput, NotFound, RefusedByGate

if TYPE_CHECKING:
    from planforge.app.project import Project

LABEL = "plan"
OPEN, IN_PROGRESS, BLOCKED, CLOSED = "open", "in_progress", "blocked", "closed"

STANDING = {
    "DRAFT": (OPEN, ""),
    "REVIEW": (OPEN, ""),
    "APPROVED": (IN_PROGRESS, ""),
    "IMPLEMENTING": (IN_PROGRESS, ""),
    "AUDITING": (IN_PROGRESS, ""),
    "DONE": (CLOSED, "All phases complete"),
    "CLOSED": (CLOSED, "Plan closed"),
    "CANCELLED": (CLOSED, "Plan cancelled"),
}
"""What the status of a plan says of its task, and why that is closed."""


class BackingTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task behind a plan."""

    task: str
    title: str
    status: str
    """open, in_progress, blocked or closed"""
    description: str
    labels: tuple[str, ...]
    plan: str
    created_at: str
    updated_at: str
    closed_at: str
    close_reason: str


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    plan: str
    status: str
    branch: str
    task: str
    task_title: str
    description: str
    created_at: str
    updated_at: str


def rows(project: Project) -> list[BackingTask]:
    """All of them, in the order in which they were begun."""
    found: dict[str, BackingTask] = {}
    for row in project.ledger.select(_Row, "plans WHERE task <> '' ORDER BY length(plan), plan"):
        key = row.task.lower()
        found[key] = _told(row, found.get(key))
    return list(found.values())


def _told(row: _Row, before: BackingTask | None) -> BackingTask:
    status, reason = STANDING[row.status]
    if row.status == "REVIEW" and row.branch:
        status = BLOCKED  # a run of it was begun and came to nothing: somebody must look
    return BackingTask(
        task=before.task if before else row.task,
        title=before.title if before else row.task_title,
        status=status,
        description=row.description or (before.description if before else ""),
        labels=(LABEL,),
        plan=row.plan,
        created_at=before.created_at if before else row.created_at,
        updated_at=row.updated_at,
        closed_at=row.updated_at if status == CLOSED else "",
        close_reason=reason,
    )


def named(project: Project, name: str) -> tuple[str, str]:
    """The id of the task that a person names, and its title if it is known here."""
    from planforge.app.items import task_rows
    from planforge.documents.plan import OWN_TASK, task_id

    task = task_id(name)
    if not task:
        raise InvalidInput(f"`{name}` is not the id of a task", "write it like `ws-017` or `PROJ-12`")
    for found in rows(project):
        if found.task.lower() == task.lower():
            return found.task, found.title
    if OWN_TASK.fullmatch(task):
        raise NotFound(f"there is no task `{task}`", see("plan tasks"))
    if task.lower().startswith("task-"):
        of_pipeline = task_rows.row(project, task.lower())
        return of_pipeline.task, of_pipeline.title
    return task, ""


def require_new(project: Project, title: str, task: str, anyway: Action) -> None:
    """Refuse a second plan for what there is an open one for already; `anyway` makes one."""
    for found in rows(project):
        same = found.title.strip().casefold() == title.strip().casefold()
        if found.status != CLOSED and (found.task == task or (same and not task)):
            raise RefusedByGate(
                f"`{found.plan}` is for this already: {found.task}, {found.title} ({found.status})",
                Advice("see {}, or make another one: {}", Action("plan show", found.plan), anyway),
            )
