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

SHOWN_RUNS = 10
"""How many ended runs the screen shows; the unfinished ones are all there."""

LANDINGS = ("land", "update_checkout")
"""The flows that land plans beside a branch, and that bring them into its checkout."""


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
        next=tuple(_next(project, every, [item.plan for item in listed])),
        questions=questions.waiting(project).questions,
        tasks=tuple(task for task in tasks.rows(project) if task.status != "abandoned"),
    )


def _next(project: Project, every: list[RunRow], listed: list[PlanRow]) -> list[str]:
    gates = project.ledger.query("SELECT number FROM raised_gates WHERE status = 'waiting' ORDER BY number")
    unlanded = {plan for (plan,) in project.ledger.query("SELECT plan FROM unlanded")}
    asked = project.ledger.query("SELECT number FROM questions WHERE status = 'waiting' ORDER BY number")
    commands = [f"planforge gate show gate-{number:03d}" for (number,) in gates]
    commands += [f"planforge question show question-{number:03d}" for (number,) in asked]
    waiting = [run for run in every if run.status in ("interrupted", "waiting")]
    due = [run for run in waiting if not run.until or runs.is_due(project, run.until)]
    commands += [f"planforge resume {run.run}" for run in due]
    busy = {run.subject for run in every if run.unfinished}
    for plan in listed:
        if plan.plan in busy:
            continue
        if plan.status == "REVIEW":
            commands += [f"planforge plan show {plan.plan}", f"planforge plan approve {plan.plan}"]
        elif plan.status == "APPROVED":
            commands.append(f"planforge plan run {plan.plan}")
        elif plan.status == "IMPLEMENTING":
            commands += _going_on(project, plan.plan)
        elif plan.status == "DONE" and plan.plan in unlanded and "planforge land" not in commands:
            commands.append("planforge land")
    if _has_landed(every) and _is_ahead(project):
        commands.append("planforge land --update-checkout")
    stuck = [task for task in tasks.rows(project) if task.stuck and task.task not in busy]
    commands += [f"planforge task show {task.task}" for task in stuck]
    return commands or ['planforge forge "what you want"']


def _has_landed(every: list[RunRow]) -> bool:
    """Whether something was landed and nothing was brought into the checkout since."""
    done = [run.flow for run in every if run.status == "done" and run.flow in LANDINGS]
    return done[-1:] == [LANDINGS[0]]


def _is_ahead(project: Project) -> bool:
    """Whether what has landed lies beside the person's branch; it takes a look into git."""
    from planforge.app import landing
    from planforge.errors import PlanforgeError

    try:
        return landing.is_ahead(project)
    except PlanforgeError:  # no branch is checked out
        return False


def _going_on(project: Project, plan: str) -> tuple[str, ...]:
    """How to go on with a plan that has stopped."""
    from planforge.app import phases  # not for every look: a plan that is not stopped needs none of it

    return phases.view(project, plan).next
