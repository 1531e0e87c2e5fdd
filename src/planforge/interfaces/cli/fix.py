"""`planforge fix`: a small change without a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.errors import InvalidInput
from planforge.interfaces.cli import sources
from planforge.interfaces.cli.land import ONTO
from planforge.interfaces.cli.land import drive as drive_landing
from planforge.interfaces.cli.show import json_option, show, talk
from planforge.interfaces.cli.views import here

if TYPE_CHECKING:
    from planforge.app.landing import LandReport
    from planforge.app.project import Project

ONLY = "A file or glob that may be changed, and nothing else; can be repeated."
ANYWAY = "Start even if the request does not sound small; this is recorded."
ACCEPT = "Accept the change of FIX, which passed but is not small, exactly as it is."
AGAIN = "Do FIX again from the current checkout; replaces the earlier result."


@click.command()
@click.argument("request", required=False)
@click.option("--only", "files", multiple=True, metavar="PATH", help=ONLY)
@click.option("--anyway", is_flag=True, help=ANYWAY)
@click.option("--land", is_flag=True, help="Land it on your branch at once, through the landing queue.")
@click.option("--onto", metavar="BRANCH", help=ONTO)
@click.option("--accept", metavar="FIX", help=ACCEPT)
@click.option("--again", metavar="FIX", help=AGAIN)
@click.option("--reason", metavar="TEXT", help="Why you accept it; recorded with your name.")
@click.option("--as", "actor", metavar="NAME", help="Who wants it; by default you, as git knows you.")
@json_option
@click.pass_context
def fix(
    ctx: click.Context,
    request: str | None,
    files: tuple[str, ...],
    anyway: bool,
    land: bool,
    onto: str | None,
    accept: str | None,
    again: str | None,
    reason: str | None,
    actor: str | None,
    as_json: bool,
) -> None:
    """Make a small change, without a plan

    REQUEST is what you want, in your words; `-` reads it from standard input. One agent makes the change in
    its own worktree. The change lands on the branch `planforge/fix-NNN` if the tests pass when Planforge runs
    them on its exact tree. Leases, budgets, secrets and protected paths are checked as in a plan.

    A request that does not sound small is refused (exit code 5), with the `forge` command for it. A change
    that turns out too large (`fix.max_files`, `fix.max_lines`) is kept but does not land (exit code 6): make
    a plan of it, or accept it as it is.

    \b
    Examples:
      planforge fix "The help of --verbose says --quiet"
      planforge fix "Round prices up in totals()" --only src/totals.py --only tests/test_totals.py --land
      planforge fix --accept fix-003 --reason "generated files; I have read the rest"
      planforge fix --again fix-003
    """
    from planforge.app import fixes
    from planforge.app.decisions import deciders

    _require_one(request, files, accept, again, reason)
    project = here()
    who = deciders.person_or_script(project, actor)
    if land:
        _require_branch(project, onto)
    elif onto:
        raise InvalidInput("`--onto` says where to land, so it needs `--land`")
    if accept is not None:
        run = fixes.accept(project, accept, actor=who, reason=reason or "")
    elif again is not None:
        run = fixes.again(project, again, actor=who, anyway=anyway)
    else:
        text = sources.request(request or "")
        run = fixes.begin(project, text, actor=who, files=files, anyway=anyway)
    ctx.exit(_drive(project, run, land=land, onto=onto, as_json=as_json))


def _require_one(
    request: str | None, files: tuple[str, ...], accept: str | None, again: str | None, reason: str | None
) -> None:
    given = [what for what in (request, accept, again) if what is not None]
    if len(given) != 1:
        raise InvalidInput("give a request, `--accept FIX` or `--again FIX`", 'as in `planforge fix "..."`')
    if accept is not None and not (reason or "").strip():
        raise InvalidInput("`--accept` needs a reason", "say why: `--reason TEXT`")
    if reason is not None and accept is None:
        raise InvalidInput("`--reason` says why a change is accepted, so it needs `--accept FIX`")
    if files and request is None:
        raise InvalidInput("`--only` goes with a request; a fix keeps what it was begun with")


def _require_branch(project: Project, onto: str | None) -> None:
    """Check the options before an agent is asked."""
    from planforge.app import landing

    landing.branch_named(project, onto)


def _drive(project: Project, run: str, *, land: bool, onto: str | None, as_json: bool) -> int:
    from planforge.app import fixes, landing, report
    from planforge.app.runs import driver
    from planforge.interfaces.cli.progress import shown
    from planforge.interfaces.cli.work import following, summary

    talk(f"{run} in {project.root}")
    with shown() as screen:
        ended = driver.drive(project, run, screen, screen)
    document = report.of_run(project, run)
    landed: LandReport | None = None
    code = ended.exit_code
    if land and ended.succeeded:
        begun = landing.begin(project, [document.plan], onto)
        if begun is not None:
            code = drive_landing(project, begun)
            landed = landing.report(project, begun)
    told = {
        "fix": document.plan,
        "run": document,
        "landing": landed,
        "next": landed.next if landed else fixes.next_commands(project, document.plan),
    }

    def text() -> str:
        from planforge.interfaces.cli.land import told as told_landing

        if landed is None:
            return summary(document, following(project, document))
        return "\n".join([summary(document), told_landing(landed)])

    show(told, text, as_json=as_json)
    return code
