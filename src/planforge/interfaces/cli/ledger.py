"""Commands about the ledger itself: `rebuild`, `schema`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli import views
from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show, talk
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.ledgers import Rebuilt

PATIENCE = 2.0
"""Seconds between two lines about how far it is."""


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a row differs.")
@json_option
@click.pass_context
def rebuild(ctx: click.Context, check: bool, as_json: bool) -> None:
    """Rebuild the projections from the events

    Projections are tables for quick answers, derived from the events. A row that differs from the events was
    changed by hand or by a bug: it is named, and then all projections are rebuilt in one transaction. Events
    are never changed.

    \b
    Example:
      planforge rebuild --check
    """
    from planforge.app import ledgers

    found = ledgers.rebuild(views.here(), check=check, progress=_Progress())
    show(found, lambda: _rebuilt(found), as_json=as_json)
    ctx.exit(1 if check and found.differing else 0)


class _Progress:
    """Shows progress now and then; short work shows none."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, folded: int, head: int) -> None:
        if time.monotonic() - self._said >= PATIENCE:
            self._said = time.monotonic()
            talk(f"{folded} of {counted(head, 'event')} folded")


def _rebuilt(found: Rebuilt) -> str:
    lines = [f"differs: {difference}" for difference in found.differences]
    if found.differing > len(found.differences):
        lines.append(f"and {found.differing - len(found.differences)} more")
    what = ", ".join(
        (counted(found.events, "event"), counted(found.tables, "table"), counted(found.rows, "row"))
    )
    if not found.differing:
        lines.append(f"nothing differs: {what}")
    elif found.changed:
        lines.append(f"rebuilt: {what}")
    return "\n".join(lines)


@click.command()
@click.argument("name", required=False)
@click.option("--list", "listed", is_flag=True, help="List only the names, with revision and description.")
@json_option
def schema(name: str | None, listed: bool, as_json: bool) -> None:
    """Print the JSON Schema of events and documents

    With NAME, prints one schema; without it, all of them as one object. An event is described as `planforge
    log --json` prints it, in any stored revision.

    \b
    Examples:
      planforge schema --list
      planforge schema StepCompleted
      planforge schema Recorded
    """
    from planforge.kernel import schemas

    if listed:
        found = schemas.summaries()
        rows = [(item.name, str(item.revision), item.description) for item in found]
        show(found, lambda: table(rows), as_json=as_json)
    else:
        show(schemas.schema(name) if name else schemas.every(), "", as_json=True)
