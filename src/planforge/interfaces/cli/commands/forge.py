"""
`planforge forge`: turn a request into a plan, resume a plan, list forges, cancel one.

The words after the command are a request, unless the first is a subcommand or they name a plan. So this is a
group that looks for subcommands first and gives all other words to a hidden one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.actions import Action, Advice, Blank
from planforge.app.project import Project
from planforge.errors import InvalidInput, RefusedByGate
from planforge.interfaces.cli import inputs
from planforge.interfaces.cli.caller import deciding, here
from planforge.interfaces.cli.foreground import drive, driven, summary, summary_and_next
from planforge.interfaces.cli.help_sections import help_command
from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.options import actor_option, given_up_option
from planforge.interfaces.cli.output import JsonGroup, show, talk
from planforge.interfaces.cli.typed import line, next_lines
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.forges import ForgeView
    from planforge.app.overview.report import Document

START = "start"
"""The hidden command for words that are not a subcommand."""


class ForgeGroup(JsonGroup):
    """A group that takes a request where others take only commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the hidden command before words that are not a subcommand."""
        help_options = self.get_help_option_names(ctx)
        if args and args[0] not in self.commands and args[0] not in help_options:
            args = [START, *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, _: click.Context) -> list[str]:
        """The usage line: a request, a plan or a command."""
        return ["[OPTIONS]", "REQUEST | PLAN | COMMAND"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of a request; the group itself has none."""
        start = self.commands[START]
        options = [each for each in start.get_params(ctx) if isinstance(each, click.Option)]
        found = [record for each in options if (record := each.get_help_record(ctx))]
        with formatter.section("Options"):
            formatter.write_dl(found)
        self.format_commands(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands that are not hidden."""
        return [name for name in super().list_commands(ctx) if not self.commands[name].hidden]


@click.group(cls=ForgeGroup, no_args_is_help=True)
def forge() -> None:
    """Turn REQUEST into a plan: draft, audit, revise until nothing blocks

    REQUEST is what you want, in your words; `-` reads it from standard input. The plan is a Markdown file
    that you can edit; approve it when you agree. Exits with 6 if a person has to decide, for example when the
    rounds are used up.

    PLAN resumes a plan, named `plan-017`, `plan-17` or `17`. A draft or a plan in review is audited as it is
    on disk, with your edits, and revised; an approved plan is carried out. Words that only point at something
    ("this", "the plan") and names of other items (`fix-004`, `run-003`) do not start a draft; with
    `--context`, `--issue` or `--from`, "this" is the text you give.

    \b
    Examples:
      planforge forge "Add rate limiting to the webhook"
      planforge forge - < request.md
      planforge forge "Rate limits" --context notes.md
      planforge forge --from specs/001-rate-limits
      planforge forge 17 --cap 2
      planforge forge "Fix the typo in the help" --implement
      planforge forge cancel 17
    """


@forge.command(name=START, hidden=True)
@click.argument("request", required=False)
@click.option(
    "--from", "source", metavar="SOURCE", help="Import the request from a file or issue; see `plan import`."
)
@inputs.context_options
@click.option("--cap", type=click.IntRange(min=1), help="The most rounds of audit.")
@click.option(
    "--implement/--no-implement",
    default=None,
    help="Approve a clean plan in your name and carry it out; default: `forge.auto_implement`.",
)
@actor_option("Who approves it")
def start(
    request: str | None,
    source: str | None,
    context: str | None,
    issue: str | None,
    cap: int | None,
    implement: bool | None,
    actor: str | None,
) -> int:
    """Turn a request into a plan, or resume a plan"""
    from planforge.app import forges
    from planforge.app.decisions import deciders

    project = here()
    text, given = inputs.asked(project, request, source, context, issue)
    wanted = project.settings.forge.auto_implement if implement is None else implement
    # The person who approves is named before an agent is asked.
    person = ""
    if wanted:
        person = deciders.person_or_script(project, actor)
        deciders.require_other_author(project, "", person)
    begun = forges.begin(project, text, cap=cap, context=given)
    if begun.approved:
        talk(f"{begun.run} carries it out: it was approved before")
    if not wanted or begun.approved:
        return drive(project, begun.run)
    return _implemented(project, begun.run, person)


def _implemented(project: Project, run: str, person: str) -> int:
    """Forge a plan and, unless something prevents it, carry it out; shows one result at the end."""
    from planforge.app import forges

    forged, code = driven(project, run)
    made = forges.implement(project, run, actor=person)
    for finding in made.warnings:
        talk(f"! {finding.severity}: {finding.title}")
    ran: Document | None = None
    if made.refusal is None:
        talk(f"✓ {made.plan} approved by {made.approved_by}; {made.run} carries it out")
        ran, code = driven(project, made.run)
    elif not code:
        code = RefusedByGate.exit_code
    last = ran or forged
    document = {"schema_version": 1, "forge": forged, "implement": made, "run": ran}
    if made.refusal is None:
        show(document, lambda _: summary_and_next(project, last))
    else:
        first, second = map(line, made.refusal.next)
        why = f"not carried out: {made.refusal.reason}"
        show(document, "\n".join([summary(last), why, f"next: {first}", f"then: {second}"]))
    return code


@forge.command()
def status() -> None:
    """List forges that are running, waiting or interrupted"""
    from planforge.app import forges

    show(forges.unfinished(here()), _forges)


def _forges(found: list[ForgeView]) -> str:
    rows = [
        (
            each.run,
            each.plan,
            each.status,
            f"after {counted(each.rounds, 'round')}",
            f"the {each.doing} is at work" if each.doing else each.reason,
            each.title,
        )
        for each in found
    ]
    following = next_lines([each.next for each in found])
    return "\n".join([table(rows), *following]) if found else "no forge is under way"


@forge.command()
@click.argument("plan_id", metavar="[PLAN]", required=False)
@given_up_option
@actor_option("Who cancels it")
def cancel(plan_id: str | None, reason: str, actor: str | None) -> None:
    """Stop the forge of PLAN and cancel the plan

    Works also if the forge runs in another terminal: its agents are stopped, and the command there exits with
    130. Without PLAN, cancels the only running forge. The text of the plan stays on disk. To stop a forge but
    keep a plan that was in review before, use `planforge cancel RUN`.

    \b
    Examples:
      planforge forge cancel
      planforge forge cancel 17 --reason "we do it by hand"
    """
    from planforge.app import forges
    from planforge.app.decisions import statuses

    project, who = deciding(actor)
    ended, plan = forges.cancel(project, plan_id, actor=who, reason=reason)
    document = {"run": ended.run, "plan": plan.plan, "status": plan.status, "reason": ended.reason}
    show(document, f"{plan.plan} is {plan.status}\n{ended.run}: {ended.reason}")
    if note := statuses.mark_as_recorded(project, plan.plan):
        talk(f"! {note}")


forge.add_command(help_command)


@forge.command(cls=click.Command, hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1)
def audit(words: tuple[str, ...]) -> None:
    """Reserved: an audit alone is a command of `plan`"""
    named = words[0] if words else Blank("PLAN")
    whole, form = Action("plan audit", named), Action("plan audit", named, structural=True)
    raise InvalidInput("`audit` is not a request", Advice("run {}; for its form alone, {}", whole, form))
