"""Commands that show the state and the history: `planforge status` and `planforge log`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from planforge.interfaces.cli import log_lines, status_page
from planforge.interfaces.cli.output import JsonCommand, wants_json


@click.command(cls=JsonCommand)
def status() -> None:
    """Show plans, runs, what waits for you, and the next command

    \b
    Example:
      planforge status --json | jq '.plans[].plan.status'
    """
    _print(status_page.status(as_json=wants_json()))


@click.command(cls=JsonCommand)
@click.option(
    "-n",
    "--last",
    type=int,
    help="How many events, newest last; 0 for all. [default: 30, or all with --since]",
)
@click.option(
    "--run", "--stream", "streams", metavar="NAME", multiple=True, help="Only events of this run or stream."
)
@click.option("--kind", "kinds", metavar="KIND", multiple=True, help="Only events of this kind.")
@click.option("--plan", metavar="PLAN", help="Only events that name this plan.")
@click.option("--since", type=int, default=0, metavar="SEQ", help="Only events after this sequence number.")
@click.option("-f", "--follow", is_flag=True, help="Print new events as they come, until Ctrl-C.")
def log(follow: bool, **wanted: Any) -> None:
    """Show what happened, oldest first

    With --json, one JSON object a line. --run and --kind can be repeated.

    \b
    Examples:
      planforge log -n 5
      planforge log --run plan-001
      planforge log --follow --kind StepCompleted --kind StepFailed
      planforge log --since 120 --json
    """
    try:
        _print(log_lines.log(follow=follow, as_json=wants_json(), **wanted))
    except KeyboardInterrupt:
        if not follow:  # Ctrl-C is how following ends
            raise


def _print(texts: Iterator[str]) -> None:
    for text in texts:
        click.echo(text)
