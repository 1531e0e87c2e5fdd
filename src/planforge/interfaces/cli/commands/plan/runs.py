"""`planforge plan run`, `run-one`, `run-phase` and `retry`: run a plan, whole or in part."""

from __future__ import annotations

import click

from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.foreground import drive
from planforge.interfaces.cli.output import JsonCommand

PARALLEL = "Run phases with different files at the same time."


@click.command(cls=JsonCommand)
@click.argument("plan_id")
@click.option("--parallel", is_flag=True, help=PARALLEL)
@click.option("--jobs", type=click.IntRange(min=1), help="The most phases to run at once.")
def run(plan_id: str, parallel: bool, jobs: int | None) -> int:
    """Run the remaining phases of an approved plan

    Each phase works in its own worktree. It lands on the branch `planforge/<plan>` if the tests pass when
    Planforge runs them on its exact tree. Your checkout is not touched. Interrupted phases run first, then
    failed ones, then the rest. A failed phase stops the phases that depend on it. You can run the plan again
    with the same approval until the plan is edited.

    \b
    Examples:
      planforge plan run 17
      planforge plan run 17 --parallel --jobs 4
    """
    return _run(plan_id, parallel=parallel, jobs=jobs)


@click.command(name="run-one", cls=JsonCommand)
@click.argument("plan_id")
def run_one(plan_id: str) -> int:
    """Run only the next phase of a plan

    \b
    Example:
      planforge plan run-one 17
    """
    return _run(plan_id, only="one")


@click.command(name="run-phase", cls=JsonCommand)
@click.argument("plan_id")
@click.argument("phase")
def run_phase(plan_id: str, phase: str) -> int:
    """Run PHASE, if all phases that it depends on are done or skipped

    \b
    Examples:
      planforge plan run-phase 17 phase-3
      planforge plan run-phase 17 3
    """
    return _run(plan_id, only=phase)


@click.command(cls=JsonCommand)
@click.argument("plan_id")
@click.argument("phase", required=False)
def retry(plan_id: str, phase: str | None) -> int:
    """Retry a failed phase, by default the first

    Starts from the plan's branch as it is now. The work of failed attempts is kept under
    `refs/planforge/archive/`. Files that changed on the branch since then are kept and listed.

    \b
    Examples:
      planforge plan retry 17
      planforge plan retry 17 phase-3
    """
    from planforge.app.plans.work import begin_retry

    project = here()
    return drive(project, begin_retry(project, plan_id, phase))


def _run(plan_id: str, *, parallel: bool = False, jobs: int | None = None, only: str = "") -> int:
    from planforge.app.plans.work import begin_plan_run

    project = here()
    return drive(project, begin_plan_run(project, plan_id, parallel=parallel, jobs=jobs, only=only))
