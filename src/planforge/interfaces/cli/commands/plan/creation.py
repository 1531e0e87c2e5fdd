"""`planforge plan create`, `import`, `adopt` and `tasks`: plans that no agent drafts, and their tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli import inputs
from planforge.interfaces.cli.caller import deciding, here
from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.options import actor_option
from planforge.interfaces.cli.output import JsonCommand, show, talk

if TYPE_CHECKING:
    from planforge.app.plans.adoption import Adopted
    from planforge.app.plans.creation import Created

task_option = click.option(
    "--task", default="", metavar="TASK-ID", help="The task that it is for; by default a new one."
)
new_option = click.option("--new", is_flag=True, help="Even if an open plan for the same request exists.")


@click.command(cls=JsonCommand)
@click.argument("description")
@inputs.context_options
@task_option
@new_option
def create(description: str, context: str | None, issue: str | None, task: str, new: bool) -> None:
    """Write a plan file from the template, without an agent

    The template is `.plan-template.md` in the directory of the plans, or the built-in one. Text from
    `--context` or `--issue` is quoted in the plan. Exits with 5 if an open plan for the same request exists.

    \b
    Examples:
      planforge plan create "Add rate limiting to the webhook"
      planforge plan create "Rate limits" --context notes.md
      git log -5 | planforge plan create "Undo the last release" --context -
      planforge plan create "this" --task task-003
    """
    from planforge.app.plans import creation

    project = here()
    found = inputs.given(project, context, issue)
    show(creation.create(project, description, context=found, task=task, new=new), _made)


@click.command(name="import", cls=JsonCommand)
@click.argument("source_", metavar="SOURCE")
@task_option
@new_option
def import_(source_: str, task: str, new: bool) -> None:
    """Import a plan from spec-kit, a GitHub issue or Markdown

    SOURCE is a spec-kit directory (`specs/001-name`), a GitHub issue (read through `gh`), a Markdown file, or
    `-` for standard input. Sections are recognised by their usual names; everything else is quoted at the
    end, so nothing is lost. The plan is a draft: audit, edit and approve it like any other. Exits with 4 if
    `gh` is missing or not logged in.

    \b
    Examples:
      planforge plan import specs/001-rate-limits
      planforge plan import owner/repo#12
      planforge plan import docs/design.md --json
    """
    from planforge.app.plans import creation

    project = here()
    show(creation.adopt(project, inputs.source(project, source_), task=task, new=new), _made)


@click.command(cls=JsonCommand)
@click.argument("plan_ids", metavar="[PLAN]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All plan files that are not known here.")
@actor_option("Who decides")
def adopt(plan_ids: tuple[str, ...], every: bool, actor: str | None) -> int:
    """Adopt plan files that this ledger does not know yet

    For example in a new clone. Each plan keeps its number and its file. A plan that is done, closed or
    cancelled in its file is closed or cancelled here; every other plan is a draft and needs an approval,
    whatever its file says. Phases are generated again, none of them done. Files that are not plans are
    reported, and the others are adopted; the exit code is then 2.

    \b
    Examples:
      planforge plan adopt --all
      planforge plan adopt 7 12
    """
    from planforge.app.plans import adoption

    if every == bool(plan_ids):
        raise click.UsageError("name the plans, or adopt all of them with --all")
    project, who = deciding(actor)
    found = adoption.adopt(project, plan_ids, actor=who)
    show(found, _adopted)
    for each in found.refused:
        talk(f"! {each.path}: {each.reason}")
    return 2 if found.refused else 0


def _adopted(found: Adopted) -> str:
    if not found.taken:
        return "nothing was adopted" if found.refused else "every plan file is known here already"
    rows = []
    for each in found.taken:
        said = f"(its file said {each.said})" if each.said != each.status else ""
        rows.append((each.plan, each.status, said, each.title, each.path))
    drafts = [each.plan for each in found.taken if each.status == "DRAFT"]
    return "\n".join([table(rows), *(f"next: planforge plan show {plan}" for plan in drafts[:1])])


def _made(made: Created) -> list[str]:
    lines = [f"{made.plan} {made.status}: {made.title}", f"task: {made.task}", f"plan: {made.path}"]
    if made.source:
        lines.append(f"from: {made.source}")
    if made.template:
        lines.append(f"template: {made.template}")
    if made.findings:
        left = dict.fromkeys(each.location.removeprefix("## ") for each in made.findings)
        lines.append(f"to be written: {', '.join(left)}")
    forge, approve = f"planforge forge {made.plan}", f"planforge plan approve {made.plan}"
    if made.blank:
        then = f"let an agent draft it: {forge}; or edit it, then: {approve}"
    else:
        then = f"{'edit it, then: ' if made.findings else 'next: '}{forge}, or {approve}"
    return [*lines, then]


@click.command(cls=JsonCommand)
def tasks() -> None:
    """List the tasks behind the plans

    Each plan has one task: the one named when the plan was created, or a new one like `ws-007`. Its status
    follows from the plan. You can name a plan by its task everywhere.

    \b
    Examples:
      planforge plan tasks
      planforge plan show ws-007
    """
    from planforge.app.items import backing

    found = backing.rows(here())
    rows = [(each.task, each.status, each.title, each.plan, each.close_reason) for each in found]
    show(found, table(rows) or "no plans yet; try `planforge plan create`")
