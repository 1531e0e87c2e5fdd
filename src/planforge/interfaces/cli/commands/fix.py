"""`planforge fix`: a small change without a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.app.project import Project
from planforge.errors import InvalidInput
from planforge.interfaces.cli import inputs
from planforge.interfaces.cli.caller import deciding
from planforge.interfaces.cli.commands.land import ONTO
from planforge.interfaces.cli.commands.land import told as land_words
from planforge.interfaces.cli.foreground import summary, summary_and_next, watch
from planforge.interfaces.cli.options import actor_option
from planforge.interfaces.cli.output import JsonCommand, show

if TYPE_CHECKING:
    from planforge.app.landing import LandReport

ONLY = "A file or glob that may be changed, and nothing else; can be repeated."
ANYWAY = "Start even if the request does not sound small; this is recorded."
ACCEPT = "Accept the change of FIX, which passed but is not small, exactly as it is."
AGAIN = "Do FIX again from the current checkout; replaces the earlier result."


@click.command(cls=JsonCommand)
@click.argument("request", required=False)
@click.option("--only", "files", multiple=True, metavar="PATH", help=ONLY)
@click.option("--anyway", is_flag=True, help=ANYWAY)
@click.option("--land", is_flag=True, help="Land it on your branch at once, through the landing queue.")
@click.option("--onto", metavar="BRANCH", help=ONTO)
@click.option("--accept", metavar="FIX", help=ACCEPT)
@click.option("--again", metavar="FIX", help=AGAIN)
@click.option("--reason", metavar="TEXT", help="Why you accept it; recorded with your name.")
@actor_option("Who wants it")
def fix(
    request: str | None,
    files: tuple[str, ...],
    anyway: bool,
    land: bool,
    onto: str | None,
    accept: str | None,
    again: str | None,
    reason: str | None,
    actor: str | None,
) -> int:
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
    from planforge.app import landing
    from planforge.app.plans import fixes

    _require_one(request, files, accept, again, reason)
    project, who = deciding(actor)
    if land:
        landing.branch_named(project, onto)  # refused before an agent is asked
    elif onto:
        raise InvalidInput("`--onto` says where to land, so it needs `--land`")
    if accept is not None:
        run = fixes.accept(project, accept, actor=who, reason=reason or "")
    elif again is not None:
        run = fixes.again(project, again, actor=who, anyway=anyway)
    else:
        text = inputs.request_text(request or "")
        run = fixes.begin(project, text, actor=who, files=files, anyway=anyway)
    return _drive(project, run, land=land, onto=onto)


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


def _drive(project: Project, run: str, *, land: bool, onto: str | None) -> int:
    from planforge.app import landing
    from planforge.app.overview import report

    ended = watch(project, run)
    document = report.of_run(project, run)
    landed: LandReport | None = None
    code = ended.exit_code
    if land and ended.succeeded:
        begun = landing.begin(project, [document.plan], onto)
        if begun is not None:
            code = watch(project, begun).exit_code
            landed = landing.report(project, begun)
    told = {
        "fix": document.plan,
        "run": document,
        "landing": landed,
        "next": landed.next if landed else report.about(project, document.plan),
    }

    if landed is None:
        show(told, lambda _: summary_and_next(project, document))
    else:
        show(told, "\n".join([summary(document), land_words(landed)]))
    return code
