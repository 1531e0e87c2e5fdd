"""`planforge lesson`: the project's lessons, and decisions about new ones."""

from __future__ import annotations

import click

from planforge.app import lessons
from planforge.app.decisions import deciders
from planforge.app.lessons import LessonChange, LessonList, LessonRow, promotion
from planforge.app.lessons.promotion import Promotion
from planforge.interfaces.cli.caller import deciding, here
from planforge.interfaces.cli.layout import paragraphs, table, visible
from planforge.interfaces.cli.options import actor_option
from planforge.interfaces.cli.output import JsonGroup, show

TAGS = "A topic, path or glob that it is about; can be repeated. `always` means every agent is told."
UPDATE = "Replace this lesson instead of adding one."
DISTINCT = "It is a different lesson, however similar it looks."

tag_option = click.option("--tag", "tags", multiple=True, metavar="TAG", help=TAGS)
title_option = click.option(
    "--title", default="", metavar="TEXT", help="Its title; by default its first words."
)
applied_option = click.option("--applied", default="", metavar="TEXT", help="Where it was put into practice.")
update_option = click.option("--update", default="", metavar="ID", help=UPDATE)
distinct_option = click.option("--distinct", is_flag=True, help=DISTINCT)


@click.group(cls=JsonGroup)
def lesson() -> None:
    """Decide what agents are told from past plans

    A lesson is an entry in a file of the repository: `docs/lessons.md`, or `lessons.file` in the settings.
    Edit and commit it as you like. Agents are told the active lessons that are relevant to their work, from
    the commit they start at. Agents do not write lessons; you do.
    """


@lesson.command(name="list")
@click.option(
    "--status",
    type=click.Choice(["active", "superseded", "stale", "unknown"]),
    default=None,
    help="Only those with this status.",
)
@click.option("--tag", default="", metavar="TAG", help="Only those with this tag.")
def list_(status: str | None, tag: str) -> None:
    """List the lessons, and the plans whose lessons are undecided

    \b
    Examples:
      planforge lesson list --status active
      planforge lesson list --tag testing --json | jq -r '.lessons[].lesson'
    """
    none = "no such lesson" if status or tag else ""
    show(lessons.listed(here(), status or "", tag), lambda found: _listed(found, none))


@lesson.command(name="show")
@click.argument("name", metavar="ID")
def show_(name: str) -> None:
    """Show a lesson

    ID is its name from `lesson list`, or the start of it.

    \b
    Example:
      planforge lesson show checks-run
    """
    show(lessons.show(here(), name), _view)


@lesson.command()
@click.argument("text", metavar="LESSON")
@title_option
@tag_option
@click.option("--source", default="", metavar="TEXT", help="The plan, phase or run that it comes from.")
@applied_option
@update_option
@distinct_option
@actor_option("Who decides")
def add(
    text: str,
    title: str,
    tags: tuple[str, ...],
    source: str,
    applied: str,
    update: str,
    distinct: bool,
    actor: str | None,
) -> None:
    """Add a lesson of one to three sentences

    Refused with exit code 2 if a similar lesson exists: then `--update` that one, or say that this one is
    `--distinct`. If `--source` names a plan, this also records the decision about that plan's lessons.

    \b
    Examples:
      planforge lesson add "Name files from the root of the checkout." --tag checks --source plan-017
      planforge lesson add "Name files from the root, never absolutely." --update name-files-from-the-root
    """
    from planforge.app.plans import work

    _require_one(update=bool(update), distinct=distinct)
    project, who = deciding(actor)
    new = lessons.New(text=text, title=title, tags=tags, source=source, applied=applied)
    if update:
        done = lessons.update(project, update, new, actor=who)
    else:
        done = lessons.add(project, new, actor=who, today=work.today(), distinct=distinct)
    show(done, _done)


@lesson.command()
@click.argument("old", metavar="OLD")
@click.option(
    "--by", required=True, metavar="NEW", help="The ID of another lesson, or the text of a new one."
)
@actor_option("Who decides")
def supersede(old: str, by: str, actor: str | None) -> None:
    """Replace a lesson with another one

    The old lesson stays in the file and names the new one.

    Exits with 5 if OLD is superseded already.

    \b
    Examples:
      planforge lesson supersede mock-the-clock --by freeze-the-clock
      planforge lesson supersede mock-the-clock --by "Hand the clock in, so that a test can move it."
    """
    from planforge.app.plans import work

    project, _ = deciding(actor)
    show(lessons.supersede(project, old, by, today=work.today()), _done)


@lesson.command()
@click.argument("name", metavar="ID")
@click.option("--reason", required=True, metavar="TEXT", help="Why it is no longer true.")
@actor_option("Who decides")
def stale(name: str, reason: str, actor: str | None) -> None:
    """Mark a lesson as stale: no agent is told it again

    `planforge lesson add LESSON --update ID` makes it active again.

    \b
    Example:
      planforge lesson stale mock-the-clock --reason "there is no clock in there any more"
    """
    project, _ = deciding(actor)
    show(lessons.mark_stale(project, name, reason), _done)


@lesson.command()
@click.argument("plan", metavar="PLAN")
@click.option(
    "--accept", "number", type=click.IntRange(min=1), metavar="N", help="Accept this candidate as proposed."
)
@click.option("--none", "nothing", is_flag=True, help="Record that no lesson is needed; needs `--reason`.")
@click.option("--reason", default="", metavar="TEXT", help="Why none is needed.")
@click.option("--text", default="", metavar="LESSON", help="With `--accept`: the lesson in your words.")
@title_option
@tag_option
@applied_option
@update_option
@distinct_option
@actor_option("Who decides")
def promote(
    plan: str,
    number: int | None,
    nothing: bool,
    reason: str,
    text: str,
    title: str,
    tags: tuple[str, ...],
    applied: str,
    update: str,
    distinct: bool,
    actor: str | None,
) -> None:
    """Show what a plan may teach, and decide

    PLAN is a plan or a task. Candidates are blocking findings that were settled, findings of the final audit,
    repeated refusals, and friction. For each it shows whether a lesson would be added, updated, or exists
    already. Without `--accept` and `--none` nothing is changed. The decision is recorded.

    \b
    Examples:
      planforge lesson promote 17
      planforge lesson promote 17 --accept 1 --text "Name files from the root of the checkout." --tag checks
      planforge lesson promote 17 --none --reason "nothing stood in the way"
    """
    from planforge.app.plans import work

    project = here()
    _require_one(accept=number is not None, none=nothing)
    _require_one(update=bool(update), distinct=distinct)
    new = lessons.New(text=text, title=title, tags=tags, applied=applied)
    if number is None and not nothing:
        if new != lessons.New(text="") or update or distinct or reason:
            raise click.UsageError("choose a candidate with `--accept N`, or none with `--none`")
        found = promotion.proposed(project, plan)
        show(found, _promotion)
        return
    who = deciders.person_or_script(project, actor)
    if number is None:
        done = promotion.none_needed(project, plan, actor=who, reason=reason)
    else:
        today = work.today()
        done = promotion.accept(
            project, plan, number, new, actor=who, today=today, update=update, distinct=distinct
        )
    show(done, _done)


def _require_one(**given: bool) -> None:
    if all(given.values()):
        raise click.UsageError(f"`--{'` and `--'.join(given)}` cannot both be given")


# In words


def _listed(found: LessonList, none: str) -> str:
    rows = [(each.id, each.status, each.date, ", ".join(each.tags)) for each in found.lessons]
    shown = table([tuple(map(visible, row)) for row in rows]) or none or f"no lessons yet in {found.file}"
    if not found.undecided:
        return shown
    undecided = ", ".join(found.undecided)
    return f"{shown}\n\nnot decided: {undecided}\nnext: planforge lesson promote {found.undecided[0]}"


def _view(found: LessonRow) -> str:
    status = found.status + (f" by {found.successor}" if found.successor else "")
    rows = [
        ("status", status + (f": {found.remark}" if found.remark else "")),
        ("tags", ", ".join(found.tags)),
        ("source", found.source),
        ("applied", found.applied),
    ]
    shown = [(name, visible(value)) for name, value in rows if value]
    title = visible(f"{found.id}  {found.date}  {found.title}")
    return "\n\n".join([title, visible(found.lesson), table(shown)])


def _done(done: LessonChange) -> str:
    lines = []
    if done.old and done.lesson:
        lines.append(f"{done.old.id} is superseded by {done.lesson.id}, in {done.file}")
    elif done.lesson:
        lines.append(f"{done.lesson.id} is {done.done}, in {done.file}")
    if done.decided:
        what = "no lesson needed" if not done.lesson else f"{done.lesson.id} {done.done}"
        lines.append(f"decided for {', '.join(done.decided)}: {what}")
    if done.lesson:
        lines.append("next: review and commit the file; agents read lessons from commits")
    return "\n".join(map(visible, lines))


def _promotion(found: Promotion) -> str:
    parts = [found.plan + (f"\nthe plan says: {visible(found.planned)}" if found.planned else "")]
    for each in found.proposals:
        times = f", {each.candidate.times} times" if each.candidate.times > 1 else ""
        place = f" in {each.candidate.step}" if each.candidate.step else ""
        about = f" {each.lesson} ({each.likeness}% alike)" if each.lesson else ""
        at = f" ({each.candidate.location})" if each.candidate.location else ""
        lines = (
            f"{each.number}  {each.candidate.kind}{place}{times}",
            f"   {each.candidate.text}{at}",
            f"   proposed: {each.decision.value}{about}, as {each.reason}",
        )
        parts.append("\n".join(map(visible, lines)))
    if not found.proposals:
        parts.append("nothing in this plan is worth a lesson")
    decided = [
        f"decided: {each.decision} {each.lesson}".rstrip() + f", by {each.actor}" for each in found.decisions
    ]
    if decided:
        return paragraphs(*parts, "\n".join(map(visible, decided)))
    ways = f"--accept {found.proposals[0].number}" if found.proposals else "--none --reason TEXT"
    return paragraphs(*parts, f"next: planforge lesson promote {found.plan} {ways}")
