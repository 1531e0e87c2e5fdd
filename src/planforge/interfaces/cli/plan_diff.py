"""`planforge plan diff`: what changed in a plan from round to round, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.printing import visible
from planforge.interfaces.cli.show import json_option, show
from planforge.interfaces.cli.views import here

if TYPE_CHECKING:
    from planforge.app.plan_rounds import PlanDiff

COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command("diff")
@click.argument("plan_id")
@click.option(
    "--rounds",
    nargs=2,
    metavar="A B",
    default=("", ""),
    help="Two audit rounds; `now` is the current file. By default the last round and `now`.",
)
@json_option
def diff(plan_id: str, rounds: tuple[str, str], as_json: bool) -> None:
    """Show what changed between two audits, and why

    A round stands for the text that was audited in it. The findings from round A on explain why B differs.

    \b
    Examples:
      planforge plan diff 1 --rounds 1 2
      planforge plan diff 1                 # what you changed since the last audit
    """
    from planforge.app import plan_rounds

    found = plan_rounds.diff(here(), plan_id, *rounds)
    show(found, lambda: _shown(found), as_json=as_json)


def _shown(found: PlanDiff) -> str:
    parts = []
    if found.reasons:
        why = [f"  {each.severity}: {visible(each.title)}" for each in found.reasons]
        parts.append("\n".join([f"Found from round {found.before.round} on", *why]))
    lines = [click.style(visible(line), fg=COLOURS.get(line[:1])) for line in found.lines]
    parts.append("\n".join(lines) if lines else "nothing has changed")
    return "\n\n".join(parts)
