"""`planforge plan run`, `run-one`, `run-phase`, `retry`: run a plan, whole or in parts."""

from __future__ import annotations

import click

from planforge.interfaces.cli.show import json_option
from planforge.interfaces.cli.views import here

PARALLEL = "Run phases with different files at the same time."


@click.command()
@click.argument("plan_id")
@click.option("--parallel", is_flag=True, help=PARALLEL)
@click.option("--jobs", type=click.IntRange(min=1), help="The most phases to run at once.")
@json_option
@click.pass_context
def run(ctx: click.Context, plan_id: str, parallel: bool, jobs: int | None, as_json: bool) -> None:
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
    from planforge.app.work import begin_plan_run
    from planforge.interfaces.cli.work import drive

    project = here()
    ctx.exit(drive(project, begin_plan_run(project, plan_id, parallel=parallel, jobs=jobs), as_json=as_json))


@click.command(name="run-one")
@click.argument("plan_id")
@json_option
@click.pass_context
def run_one(ctx: click.Context, plan_id: str, as_json: bool) -> None:
    """Run only the next phase of a plan

    \b
    Example:
      planforge plan run-one 17
    """
    from planforge.app.work import begin_plan_run
    from planforge.interfaces.cli.work import drive

    project = here()
    ctx.exit(drive(project, begin_plan_run(project, plan_id, only="one"), as_json=as_json))


@click.command(name="run-phase")
@click.argument("plan_id")
@click.argument("phase")
@json_option
@click.pass_context
def run_phase(ctx: click.Context, plan_id: str, phase: str, as_json: bool) -> None:
    """Run PHASE, if all phases that it depends on are done or skipped

    \b
    Examples:
      planforge plan run-phase 17 phase-3
      planforge plan run-phase 17 3
    """
    from planforge.app.work import begin_plan_run
    from planforge.interfaces.cli.work import drive

    project = here()
    ctx.exit(drive(project, begin_plan_run(project, plan_id, only=phase), as_json=as_json))


@click.command()
@click.argument("plan_id")
@click.argument("phase", required=False)
@json_option
@click.pass_context
def retry(ctx: click.Context, plan_id: str, phase: str | None, as_json: bool) -> None:
    """Retry a failed phase, by default the first

    Starts from the plan's branch as it is now. The work of failed attempts is kept under
    `refs/planforge/archive/`. Files that changed on the branch since then are kept and listed.

    \b
    Examples:
      planforge plan retry 17
      planforge plan retry 17 phase-3
    """
    from planforge.app.work import begin_retry
    from planforge.interfaces.cli.work import drive

    project = here()
    ctx.exit(drive(project, begin_retry(project, plan_id, phase), as_json=as_json))
