"""`planforge plan land` and `evidence`: land or propose one finished plan, and show its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.app.decisions import deciders
from planforge.errors import InvalidInput
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.commands.land import ONTO, begun, previewed
from planforge.interfaces.cli.options import actor_option
from planforge.interfaces.cli.output import JsonCommand, show, wants_json

if TYPE_CHECKING:
    from planforge.app.plans.pull_requests import PullRequest

PR = "Open a pull request with its evidence through your `gh`, instead of landing it."


@click.command(cls=JsonCommand)
@click.argument("plan_id")
@click.option("--onto", metavar="BRANCH", help=ONTO)
@click.option("--pr", is_flag=True, help=PR)
@click.option("--remote", metavar="NAME", help="With `--pr`: the remote to push to; by default `origin`.")
@click.option("--dry-run", is_flag=True, help="Show what would land or be proposed; change nothing.")
@actor_option("Who proposes it")
def land(
    plan_id: str, onto: str | None, pr: bool, remote: str | None, dry_run: bool, actor: str | None
) -> int:
    """Land one finished plan, or open a pull request

    The same as `planforge land PLAN`. With `--pr` nothing is merged here: the plan's branch is pushed, never
    by force, and a pull request is opened with the text of `planforge plan evidence`. If one is open already,
    nothing changes and its URL is printed.

    Exits with 5 if the plan may not land, or if the remote branch has other commits; with 4 if `gh` is
    missing or not logged in, or the remote needs a login.

    \b
    Examples:
      planforge plan land 17
      planforge plan land 17 --pr --dry-run
      planforge plan land 17 --pr --onto main --remote upstream
    """
    from planforge.app import landing
    from planforge.app.plans import pull_requests

    project = here()
    if not pr:
        if remote or actor:
            raise InvalidInput("`--remote` and `--as` need `--pr`")
        if not dry_run:
            return begun(project, (plan_id,), onto)
        show(landing.preview(project, (plan_id,), onto), previewed)
        return 0
    where = remote or "origin"
    if dry_run:
        show(pull_requests.preview(project, plan_id, onto=onto, remote=where), _would)
        return 0
    who = deciders.person_or_script(project, actor)
    show(pull_requests.open_(project, plan_id, actor=who, onto=onto, remote=where), _told)
    return 0


def _would(drawn: PullRequest) -> str:
    head = f"would push {drawn.branch} at {drawn.commit[:12]} to {drawn.remote}, for {drawn.base}"
    return f"{head}\ntitle: {drawn.title}\n\n{drawn.body.rstrip()}"


def _told(opened: PullRequest) -> str:
    if opened.opened:
        return f"✓ {opened.plan} at {opened.commit[:12]} is proposed for {opened.base}\n{opened.url}"
    lines = [f"{opened.plan} is proposed for {opened.base} already; nothing was changed", opened.url]
    if opened.differs:
        lines.append(f"! it is at {opened.differs[:12]} there, and the plan is at {opened.commit[:12]}")
    return "\n".join(lines)


@click.command(cls=JsonCommand)
@click.argument("plan_id")
@click.option("--markdown", is_flag=True, help="Print Markdown; the default.")
def evidence(plan_id: str, markdown: bool) -> None:
    """Show the evidence for a plan on one page

    Shows its objective, its phases with their commits, the checks with tree and command, scores, audits with
    open findings, approvals, and how to verify all of it. Secrets are left out.

    \b
    Examples:
      planforge plan evidence 17
      planforge plan evidence 17 --json
      planforge plan evidence fix-003 > evidence.md
    """
    from planforge.app.items import plan_evidence
    from planforge.documents import evidence_page

    if markdown and wants_json():
        raise InvalidInput("use either `--markdown` or `--json`")
    show(plan_evidence.page(here(), plan_id), lambda page: evidence_page.markdown(page).rstrip())
