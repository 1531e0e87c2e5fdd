"""
`planforge plan`: write, approve, run and land plans.

This module lists, shows, approves, closes, cancels and reopens them; the modules beside it have the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.app.decisions import statuses
from planforge.app.items import plans
from planforge.app.items.plans import PlanRow
from planforge.app.project import Project
from planforge.interfaces.cli.caller import deciding, here
from planforge.interfaces.cli.commands.plan import creation, diff, form, landing, phases, runs
from planforge.interfaces.cli.help_sections import SectionedGroup, help_command
from planforge.interfaces.cli.layout import paragraphs, table
from planforge.interfaces.cli.options import actor_option, reason_option
from planforge.interfaces.cli.output import show, talk, wants_json
from planforge.interfaces.cli.typed import next_lines, text

if TYPE_CHECKING:
    from planforge.app.plans.pages import PlanView

STATUSES = ("DRAFT", "REVIEW", "APPROVED", "IMPLEMENTING", "AUDITING", "DONE", "CLOSED", "CANCELLED")
CLOSED = "nothing more is to be done with it"
SEEN = "The hash of the plan you read, as `plan show` prints it; refused if it has changed."

SECTIONS = {
    "Write": ("create", "import", "adopt", "audit"),
    "Decide": ("approve", "skip", "skip-to"),
    "Run": ("run", "run-one", "run-phase", "retry", "land"),
    "Look": ("list", "show", "phases", "diff", "evidence", "decompose", "tasks"),
    "End": ("close", "cancel", "reopen"),
}


@click.group(cls=SectionedGroup, sections=SECTIONS)
def plan() -> None:
    """Write, approve, run and land plans

    Name a plan by its id, its number or its task: `plan-007`, `plan-7`, `7`, `ws-007`.
    """


for command in (
    *(creation.create, creation.import_, creation.adopt, creation.tasks),
    *(form.audit, form.decompose, diff.diff),
    *(phases.phases, phases.skip, phases.skip_to),
    *(runs.run, runs.run_one, runs.run_phase, runs.retry),
    *(landing.land, landing.evidence, help_command),
):
    plan.add_command(command)


@plan.command(name="list")
@click.option(
    "--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only plans with this status."
)
def list_(status: str | None) -> None:
    """List all plans

    \b
    Examples:
      planforge plan list
      planforge plan list --status review --json
    """
    project = here()
    found, unknown = plans.listed(project, status or ""), len(plans.unknown(project))
    rows = [(row.plan, row.status, row.badge, row.title, row.task, _file(project, row)) for row in found]
    none = f"no plan is {status}" if status else "no plans yet; try `planforge forge`"
    if unknown and not rows:
        none = "no plans known here yet"
    show(found, table(rows) or none)
    if unknown and not wants_json():
        files = "1 plan file is" if unknown == 1 else f"{unknown} plan files are"
        talk(f"{files} not known here; adopt them: {text(plans.ADOPT)}")


def _file(project: Project, row: PlanRow) -> str:
    """The path of a plan, or why it has none."""
    if not row.path:
        return "(no plan file)"
    return row.path if row.object or (project.root / row.path).exists() else "(no draft was finished)"


@plan.command(name="show")
@click.argument("plan_id")
@click.option(
    "--recorded", is_flag=True, help="Print the text as Planforge last wrote it, even if the file is gone."
)
def show_(plan_id: str, recorded: bool) -> None:
    """Show one plan: its text, its approval, its steps

    \b
    Examples:
      planforge plan show 1
      planforge plan show 1 --recorded > docs/plans/plan-001-restored.md
    """
    from planforge.app.plans import pages

    project = here()
    if recorded:
        text = plans.recorded_text(project, plan_id)
        show({"text": text}, text)
    else:
        show(pages.view(project, plan_id), _view)


def _view(view: PlanView) -> str:
    plan = view.plan
    badge = f"  [{view.badge}]" if view.steps else ""
    head = [f"{plan.plan}  {plan.status}{badge}  {plan.title}"]
    head += [f"task    {plan.task}"] if plan.task else []
    head += [f"file    {plan.path}", f"hash    {view.content}"]
    if view.edited:
        head.append("edited  the file differs from what was last written or approved")
    if view.approved_by:
        head.append(f"yes     by {view.approved_by}, not used yet")
    if waits := [each.item for each in view.after if not each.over]:
        head.append(f"waits   for {', '.join(waits)}")
    if plan.branch:
        head.append(f"branch  {plan.branch} at {plan.landed[:12]}")
    steps = [
        (step.step, step.status, "" if step.score is None else f"score {step.score}", step.title, step.reason)
        for step in view.steps
    ]
    return paragraphs("\n".join(head), table(steps), view.text.rstrip())


@plan.command()
@click.argument("plan_id")
@actor_option("Who approves")
@click.option("--seen", metavar="HASH", help=SEEN)
def approve(plan_id: str, actor: str | None, seen: str | None) -> None:
    """Approve a plan so that it can run

    The approval is valid for the plan as it is now, and for one run. Editing the plan voids it. Agents cannot
    approve. Exits with 5 if you may not approve, or if the plan is not the one you read.

    \b
    Examples:
      planforge plan approve 1
      planforge plan approve 1 --seen cefe3305d8b3 --as "Ada Lovelace"
    """
    from planforge.app.decisions import approvals
    from planforge.app.overview import report

    project, who = deciding(actor)
    approval = approvals.approve(project, plan_id, actor=who, seen=seen)
    plan = plans.row(project, plan_id)
    lines = [f"approved {plan.plan} at {approval.content[:12]} by {approval.actor}"]
    lines += next_lines(report.about(project, plan.plan))
    show(approval, "\n".join(lines))
    _warn(statuses.mark_as_recorded(project, plan.plan))


def _warn(note: str) -> None:
    if note:
        talk(f"! {note}")


@plan.command()
@click.argument("plan_id")
@actor_option("Who decides")
@reason_option
def cancel(plan_id: str, actor: str | None, reason: str) -> None:
    """Cancel a plan: it no longer runs or lands

    For a plan that is not done. Its run is stopped at once, also in another terminal, and the work of its
    agents is kept. Commits on its branch and its file stay.

    \b
    Example:
      planforge plan cancel 1 --reason "the request was withdrawn"
    """
    from planforge.app import cancellation

    project, who = deciding(actor)
    found = cancellation.give_up(project, plan_id, actor=who, reason=reason)
    show(found, f"{found.plan} is {found.status}")
    _warn(statuses.mark_as_recorded(project, found.plan))


@plan.command()
@click.argument("plan_id")
@actor_option("Who decides")
@click.option("--reason", default="", metavar="TEXT", help="Why; required with --override and --unlanded.")
@click.option("--override", is_flag=True, help="Close it without evidence that it is done.")
@click.option(
    "--unlanded", is_flag=True, help="Close it although it has not landed; its work stays on its branch."
)
def close(plan_id: str, actor: str | None, reason: str, override: bool, unlanded: bool) -> None:
    """Close a finished plan

    For a plan that is done, with evidence, and has landed. --override also closes a plan that is approved or
    stopped, or whose phases were skipped. --unlanded also closes a plan that has not landed; its branch
    stays. `planforge plan reopen` undoes it. Exits with 5 while the plan is running.

    \b
    Examples:
      planforge plan close 1 --reason "landed and released"
      planforge plan close 1 --override --reason "finished by hand in 4f2a9c1"
      planforge plan close 1 --unlanded --reason "another way was chosen"
    """
    if (override or unlanded) and not reason.strip():
        raise click.UsageError("--override and --unlanded need a reason: --reason TEXT")
    project, who = deciding(actor)
    branch = plans.row(project, plan_id).branch if statuses.unlanded(project, plan_id) else ""
    found = statuses.move(
        project,
        plan_id,
        "close",
        actor=who,
        reason=reason or CLOSED,
        override=override,
        without_landing=unlanded,
    )
    show(found, f"{found.plan} is {found.status}")
    _warn(statuses.mark_as_recorded(project, found.plan))
    if branch:
        talk(f"! its work has not landed and stays on `{branch}`")
        talk(f"to undo this: `planforge plan reopen {found.plan} --reason TEXT`")


@plan.command()
@click.argument("plan_id")
@actor_option("Who decides")
@reason_option
def reopen(plan_id: str, actor: str | None, reason: str) -> None:
    """Reopen a closed or cancelled plan

    A plan that is done, with evidence, is DONE again and can land. Any other plan returns to review with its
    finished phases, and needs an approval to continue.

    \b
    Example:
      planforge plan reopen 1 --reason "it is wanted after all"
    """
    from planforge.app.overview import report

    project, who = deciding(actor)
    found = statuses.reopen(project, plan_id, actor=who, reason=reason)
    lines = [f"{found.plan} is {found.status}", *next_lines(report.about(project, found.plan))]
    show(found, "\n".join(lines))
