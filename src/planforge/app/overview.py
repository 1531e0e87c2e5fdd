"""One screen: what there is, what waits for a person, what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from planforge.app import plans, questions, runs, tasks
from planforge.app.plans import PlanRow, StepRow
from planforge.app.questions import QuestionRow
from planforge.app.runs import RunRow
from planforge.app.tasks import TaskRow

if TYPE_CHECKING:
    from planforge.app.project import Project

FIX = "fix-"
"""How the names of small changes begin that have no plan file."""

SHOWN_RUNS = 10
"""How many ended runs the screen shows; the unfinished ones are all there."""


class PlanStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A plan and how far its steps have come."""

    plan: PlanRow
    steps: tuple[StepRow, ...]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a project."""

    schema_version: int = 1
    root: str
    events: int
    runs: tuple[RunRow, ...]
    plans: tuple[PlanStatus, ...]
    next: tuple[str, ...]
    """Commands that make sense now, the most urgent first."""
    questions: tuple[QuestionRow, ...] = ()
    """What people are asked and have not answered, the oldest first."""
    tasks: tuple[TaskRow, ...] = ()
    """Tasks on their way through a pipeline, without those that were given up."""


def overview(project: Project) -> Overview:
    """The state of `project` as the ledger has it."""
    every = runs.rows(project)
    ended = [run for run in every if not run.unfinished]
    shown = [run for run in every if run.unfinished or run in ended[-SHOWN_RUNS:]]
    listed = tuple(PlanStatus(plan=row, steps=plans.steps(project, row.plan)) for row in plans.rows(project))
    return Overview(
        root=str(project.root),
        events=project.ledger.head(),
        runs=tuple(shown),
        plans=listed,
        next=tuple(_next(project, every, listed)),
        questions=questions.waiting(project).questions,
        tasks=tuple(task for task in tasks.rows(project) if task.status != "abandoned"),
    )


def _next(project: Project, every: list[RunRow], listed: tuple[PlanStatus, ...]) -> list[str]:
    gates = project.ledger.query("SELECT number FROM raised_gates WHERE status = 'waiting' ORDER BY number")
    unlanded = {plan for (plan,) in project.ledger.query("SELECT plan FROM unlanded")}
    asked = project.ledger.query("SELECT number FROM questions WHERE status = 'waiting' ORDER BY number")
    commands = [f"planforge gate show gate-{number:03d}" for (number,) in gates]
    commands += [f"planforge question show question-{number:03d}" for (number,) in asked]
    waiting = [run for run in every if run.status in ("interrupted", "waiting")]
    due = [run for run in waiting if not run.until or runs.is_due(project, run.until)]
    commands += [f"planforge resume {run.run}" for run in due]
    busy = {run.subject for run in every if run.unfinished}
    for item in listed:
        plan = item.plan
        if plan.plan in busy:
            continue
        if plan.plan.startswith(FIX) and plan.status in ("REVIEW", "APPROVED", "IMPLEMENTING"):
            commands.append(_next_of_fix(item))
        elif plan.status == "DRAFT" and plan.object:
            commands += [f"planforge forge {plan.plan}", f"planforge plan approve {plan.plan}"]
        elif plan.status == "REVIEW":
            commands += [f"planforge plan show {plan.plan}", f"planforge plan approve {plan.plan}"]
        elif plan.status == "APPROVED":
            commands.append(f"planforge plan run {plan.plan}")
        elif plan.status == "DONE" and plan.plan in unlanded and "planforge land" not in commands:
            commands.append("planforge land")
    stuck = [task for task in tasks.rows(project) if task.stuck and task.task not in busy]
    commands += [f"planforge task show {task.task}" for task in stuck]
    return commands or ['planforge forge "what you want"']


def _next_of_fix(item: PlanStatus) -> str:
    """A fix that is not done: taken although it is not small, if it passed; otherwise done again."""
    fix = item.plan.plan
    if item.plan.status != "IMPLEMENTING" and all(step.status == "done" for step in item.steps):
        return f"planforge fix --accept {fix} --reason TEXT"
    return f"planforge fix --again {fix}"
