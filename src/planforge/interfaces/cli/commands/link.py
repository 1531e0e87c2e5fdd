"""`planforge link`: say what comes after what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.errors import InvalidInput
from planforge.interfaces.cli.caller import deciding, here
from planforge.interfaces.cli.options import actor_option
from planforge.interfaces.cli.output import JsonCommand, show

if TYPE_CHECKING:
    from planforge.app.items.links import Linked


@click.command(cls=JsonCommand)
@click.argument("item", metavar="PLAN|TASK")
@click.option("--after", multiple=True, metavar="PLAN|TASK", help="What it comes after; may be given again.")
@click.option("--clear", is_flag=True, help="It need not wait for anything any more.")
@actor_option("Who says so")
def link(item: str, after: tuple[str, ...], *, clear: bool, actor: str | None) -> None:
    """Say which plans and tasks have to land before another one starts

    It cannot be run and does not land before they have landed, or have been closed, cancelled or abandoned.
    What you say replaces what was said before. Without an option it only shows what is known.

    \b
    Examples:
      planforge link plan-002 --after plan-001
      planforge link task-003 --after task-001 --after plan-002
      planforge link plan-002
      planforge link plan-002 --clear
    """
    from planforge.app.items import links

    if after and clear:
        raise InvalidInput("say either `--after` or `--clear`")
    if after or clear:
        project, who = deciding(actor)
        links.link(project, item, after, actor=who)
    show(links.linked(here(), item), _shown)


def _shown(found: Linked) -> str:
    if not found.after:
        return f"{found.item} comes after nothing"
    lines = [f"{each.item} ({'over' if each.over else 'not over'}: {each.status})" for each in found.after]
    return "\n".join([f"{found.item} comes after", *(f"  {line}" for line in lines)])
