"""`planforge task`: list tasks of pipelines, and resume, override or abandon a stuck one."""

from __future__ import annotations

import click

from planforge.app import tasks
from planforge.app.items import task_rows
from planforge.app.items.task_rows import TaskRow
from planforge.app.tasks import TaskView
from planforge.interfaces.cli import typed
from planforge.interfaces.cli.caller import deciding_at_gate, here
from planforge.interfaces.cli.foreground import drive
from planforge.interfaces.cli.layout import table, visible
from planforge.interfaces.cli.options import actor_option, optional_reason_option, reason_option
from planforge.interfaces.cli.output import JsonGroup, show, talk
from planforge.interfaces.cli.progress import SIGNALS


@click.group(cls=JsonGroup)
def task() -> None:
    """List, show and resume the tasks that pipelines work on

    `planforge pipeline run` opens a task.
    """


@task.command("list")
def list_() -> None:
    """List the tasks

    \b
    Examples:
      planforge task list
      planforge task list --json | jq -r '.[] | select(.status == "escalated") | .task'
    """
    found = task_rows.rows(here())
    rows = [(each.task, each.status, each.pipeline, each.stage, visible(each.title)) for each in found]
    show(found, table(rows) or "no tasks")


@task.command("show")
@click.argument("name", metavar="TASK")
def show_(name: str) -> None:
    """Show a task: the result of each stage, and the next commands

    TASK is its name or number: `task-007`, `7`.

    \b
    Examples:
      planforge task show 1
    """
    show(tasks.view(here(), name), _view)


@task.command()
@click.argument("name", metavar="TASK")
@click.option(
    "--at", metavar="STAGE", default="", help="The stage to resume at; by default where it stopped."
)
@click.option(
    "--rounds", type=click.IntRange(min=0), default=0, help="Allow this many more revisions of that stage."
)
@optional_reason_option
@actor_option("Who decides, if there is no terminal")
def resume(name: str, at: str, rounds: int, reason: str, actor: str | None) -> int:
    """Resume a stuck task

    Earlier verdicts still count if their content has not changed.

    \b
    Examples:
      planforge task resume 1
      planforge task resume 1 --at implement --reason "the plan is right, try again"
      planforge task resume 1 --at review-code --rounds 2
    """
    project, who = deciding_at_gate(actor)
    return drive(project, tasks.resume(project, name, at=at, rounds=rounds, actor=who, reason=reason))


@task.command()
@click.argument("name", metavar="TASK")
@click.option("--stage", required=True, help="The stage that passes in your name.")
@reason_option
@actor_option("Who decides, if there is no terminal")
def override(name: str, stage: str, reason: str, actor: str | None) -> None:
    """Let a stage pass in your name, for exactly the current content

    Any later change voids it. The results of the project's own checks cannot be overridden.

    \b
    Examples:
      planforge task override 1 --stage review-code --reason "the reviewer asks for another feature"
    """
    project, who = deciding_at_gate(actor)
    show(tasks.override(project, name, stage=stage, actor=who, reason=reason), _moved)


@task.command()
@click.argument("name", metavar="TASK")
@reason_option
@actor_option("Who decides, if there is no terminal")
def abandon(name: str, reason: str, actor: str | None) -> None:
    """Abandon a task; its work is kept

    \b
    Examples:
      planforge task abandon 1 --reason "no longer wanted"
    """
    project, who = deciding_at_gate(actor)
    show(tasks.abandon(project, name, actor=who, reason=reason), _moved)


@task.command()
@click.argument("name", metavar="TASK")
def log(name: str) -> None:
    """Print what happened to a task, one line each

    A line is `time|agent|persona|status|detail`.

    \b
    Examples:
      planforge task log 1
      planforge task log 1 | grep '|error|'
      planforge task log 1 --json
    """
    show(list(tasks.progress(here(), name)), lambda found: (visible(each.line) for each in found))


def _moved(found: TaskRow) -> str:
    talk(f"next: planforge task show {found.task}")
    return f"{found.task} is {found.status}: {visible(found.reason)}"


def _view(view: TaskView) -> str:
    found = view.task
    lines = [
        f"{found.task}  {found.status}  {visible(found.title)}",
        f"pipeline {found.pipeline}, {found.path}",
    ]
    if found.branch:
        lines.append(f"branch {found.branch} at {found.landed[:12]}")
    elif found.landed:
        lines.append(f"its change is {found.landed[:12]}, kept under refs/planforge/archive; nothing lands")
    if found.reason and (found.stuck or found.status == "code-revision-required"):
        lines.append(f"⚠ {found.stage or 'land'}: {visible(found.reason)}")
    came = [
        (
            SIGNALS.get(each.outcome, "·"),
            each.stage,
            each.outcome,
            f"iteration {each.iteration}",
            visible(each.reason),
        )
        for each in view.stages
    ]
    if came:
        lines += ["", table(came).rstrip()]
    if view.next:
        ways = [(typed.command(way.command), way.does, way.cost) for way in view.next]
        lines += ["", "Next", table(ways, "  ").rstrip()]
    return "\n".join(lines)
