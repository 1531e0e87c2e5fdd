"""Tasks and their stages as the ledger has them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import InvalidInput, NotFound
from planforge.kernel.work.items import Kind, parse

if TYPE_CHECKING:
    from planforge.app.project import Project

FINAL = ("landed", "delivered", "abandoned")
COMMITTED = "committed"
STUCK = ("blocked", "escalated")


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of tasks."""

    task: str
    title: str
    request: str
    pipeline: str
    path: str
    status: str
    stage: str
    reason: str
    branch: str
    landed: str
    updated_at: str

    @property
    def stuck(self) -> bool:
        """Whether a person has to look."""
        return self.status in STUCK

    @property
    def open(self) -> bool:
        """Whether something can be done about it still."""
        return self.status not in FINAL


class StageRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage came to last."""

    stage: str
    iteration: int
    outcome: str
    verdict: str
    judged: str
    reason: str
    document: str
    object: str
    proposed: str
    at: str


def rows(project: Project) -> list[TaskRow]:
    """All tasks, oldest first."""
    return project.ledger.select(TaskRow, "tasks ORDER BY length(task), task")


def row(project: Project, name: str) -> TaskRow:
    """The task that `name` means: `task-007`, `task-7` or `7`."""
    with suppress(InvalidInput):
        for found in project.ledger.select(TaskRow, "tasks WHERE task = ?", parse(name, Kind.TASK)):
            return found
    raise NotFound(f"there is no task `{name}`", Advice("see {}", Action("task list")))


def stages(project: Project, task: str) -> tuple[StageRow, ...]:
    """What the stages came to, in the order in which they did."""
    return tuple(project.ledger.select(StageRow, "stages WHERE task = ? ORDER BY at, stage", task))
