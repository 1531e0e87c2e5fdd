"""`planforge plan diff`: what changed in a plan from round to round, and why."""

from __future__ import annotations

import click

from planforge.app.items import plan_rounds
from planforge.app.items.plan_rounds import PlanDiff
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import paragraphs, visible
from planforge.interfaces.cli.output import JsonCommand, show

COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command("diff", cls=JsonCommand)
@click.argument("plan_id")
@click.option(
    "--rounds",
    nargs=2,
    metavar="A B",
    default=("", ""),
    help="Two audit rounds; `now` is the current file. By default the last round and `now`.",
)
def diff(plan_id: str, rounds: tuple[str, str]) -> None:
    """Show what changed between two audits, and why

    A round stands for the text that was audited in it. The findings from round A on explain why B differs.

    \b
    Examples:
      planforge plan diff 1 --rounds 1 2
      planforge plan diff 1                 # what you changed since the last audit
    """
    show(plan_rounds.diff(here(), plan_id, *rounds), _shown)


def _shown(found: PlanDiff) -> str:
    why = [f"  {each.severity}: {visible(each.title)}" for each in found.reasons]
    lines = [click.style(visible(line), fg=COLOURS.get(line[:1])) for line in found.lines]
    return paragraphs(
        "\n".join([f"Found from round {found.before.round} on", *why]) if why else "",
        "\n".join(lines) if lines else "nothing has changed",
    )
