"""`planforge land`: merge finished plans, fixes and tasks into your branch, and update your checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.app.project import Project
from planforge.errors import InvalidInput
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.foreground import watch
from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.output import JsonCommand, show
from planforge.interfaces.cli.typed import next_lines

if TYPE_CHECKING:
    from planforge.app.landing import LandReport, Preview
    from planforge.kernel.effects import Probed

ONTO = "The branch to land on; by default the one in the settings, or the one checked out."


@click.command(cls=JsonCommand)
@click.argument("plans", nargs=-1, metavar="[NAME]...")
@click.option("--onto", metavar="BRANCH", help=ONTO)
@click.option("--dry-run", is_flag=True, help="Show what would land, in which order; change nothing.")
@click.option("--probe", is_flag=True, help="Show which unlanded work conflicts with each other.")
@click.option(
    "--update-checkout", is_flag=True, help="Update the branch and its checkout with what has landed."
)
def land(plans: tuple[str, ...], onto: str | None, dry_run: bool, probe: bool, update_checkout: bool) -> int:
    """Land finished plans, fixes and tasks on your branch

    NAME is a plan, a fix or a task: `7`, `fix-2`, `task-001`. Without a name, everything that is finished
    lands, in order. Each one is merged, the tests run again on the merged tree, and only then the branch
    moves. A branch that is checked out is not moved: the work lands on `planforge/landed/BRANCH` beside it.
    `--update-checkout` then updates the branch and its files, unless you have uncommitted changes.

    \b
    Examples:
      planforge land --dry-run
      planforge land
      planforge land 7 --onto release
      planforge land task-001
      planforge land --update-checkout
    """
    from planforge.app import landing

    if sum((dry_run, probe, update_checkout)) > 1:
        raise InvalidInput("use only one of `--dry-run`, `--probe` and `--update-checkout`")
    if plans and (probe or update_checkout):
        raise InvalidInput("`--probe` and `--update-checkout` take no plans")
    project = here()
    if dry_run:
        show(landing.preview(project, plans, onto), previewed)
        return 0
    if probe:
        show(landing.probe(project, onto), _probed)
        return 0
    if update_checkout:
        return _drive(project, landing.begin_update(project, onto), "nothing to update")
    return begun(project, plans, onto)


def begun(project: Project, plans: tuple[str, ...], onto: str | None) -> int:
    """Land these plans, or all that may land, and show the result; returns the exit code."""
    from planforge.app import landing

    run = landing.begin(project, plans, onto)
    nothing = "nothing to land"
    if run is None and landing.is_ahead(project, onto):
        nothing += "; what has landed is not in the checkout yet\nnext: planforge land --update-checkout"
    return _drive(project, run, nothing)


def _drive(project: Project, run: str | None, nothing: str) -> int:
    from planforge.app import landing

    if run is None:
        show({"run": None, "landed": [], "left": []}, nothing)
        return 0
    code = watch(project, run).exit_code
    show(landing.report(project, run), told)
    return code


def told(report: LandReport) -> str:
    """What landed and what did not, in a few lines, with the next command."""
    lines = [
        f"✓ {item.plan} landed on {report.landing} as {item.commit[:12]}: {item.evidence}"
        for item in report.landed
    ]
    words = {"conflict": f"conflicts with {report.branch} "}
    lines += [f"✗ {left.plan} {words.get(left.why, 'did not land: ')}{left.reason}" for left in report.left]
    if not lines:
        lines.append(f"{'✓' if report.status == 'done' else '✗'} {report.reason}")
    lines += [f"! {item.one} conflicts with {item.other} in {_paths(item.paths)}" for item in report.foreseen]
    return "\n".join([*lines, *next_lines(report.next)])


def previewed(preview: Preview) -> list[str]:
    """What would land, and what would not."""
    place = f", which is checked out in {preview.checkout}" if preview.checkout else ""
    lines = [f"onto {preview.branch}{place}"]
    if preview.checkout:
        lines.append(f"through {preview.landing} at {preview.tip[:12]}")
    if preview.catches_up:
        lines.append(f"first the newest commits of {preview.branch} are merged into it")
    rows = [
        (
            item.plan,
            item.commit[:12],
            f"conflicts in {_paths(item.conflicts)}" if item.conflicts else "merges",
            f"after {', '.join(item.after)}" if item.after else "",
            item.title,
        )
        for item in preview.ready
    ]
    lines += [table(rows, "  ")] if rows else ["nothing to land"]
    return [*lines, *(f"✗ {item.plan} does not land: {item.reason}" for item in preview.held)]


def _probed(probed: Probed) -> str:
    looked = f"{len(probed.items)} not landed, {probed.merges} pairs that touch the same files merged"
    if probed.left_out:
        looked += f", {probed.left_out} left out"
    rows = [(item.one, "with", item.other, _paths(item.paths)) for item in probed.conflicts]
    return f"{table(rows) or 'nothing conflicts'}\n{looked}"


def _paths(paths: tuple[str, ...], limit: int = 3) -> str:
    more = f" and {len(paths) - limit} more" if len(paths) > limit else ""
    return (", ".join(paths[:limit]) or "a way that git does not report") + more
