"""Commands about the ledger: `planforge verify`, `planforge rebuild` and `planforge schema`."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from planforge.app.history import ledgers
from planforge.app.history.integrity import Verification
from planforge.app.history.integrity import verify as look
from planforge.app.history.ledgers import Rebuilt
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.output import JsonCommand, show, talk
from planforge.kernel import schemas
from planforge.kernel.wording import counted

PATIENCE = 2.0
"""Seconds between two lines of progress."""


@click.command(cls=JsonCommand)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a row differs.")
def rebuild(check: bool) -> int:
    """Rebuild the projections from the events

    Projections are tables for quick answers, derived from the events. A row that differs from the events was
    changed by hand or by a bug: it is named, and then all projections are rebuilt in one transaction. Events
    are never changed.

    \b
    Example:
      planforge rebuild --check
    """
    found = ledgers.rebuild(here(), check=check, progress=_Progress())
    show(found, _rebuilt)
    return 1 if check and found.differing else 0


class _Progress:
    """Shows progress now and then; short work shows none."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, folded: int, head: int) -> None:
        if time.monotonic() - self._said >= PATIENCE:
            self._said = time.monotonic()
            talk(f"{folded} of {counted(head, 'event')} folded")


def _rebuilt(found: Rebuilt) -> Iterator[str]:
    yield from (f"differs: {difference}" for difference in found.differences)
    if found.differing > len(found.differences):
        yield f"and {found.differing - len(found.differences)} more"
    what = f"{counted(found.events, 'event')}, {counted(found.tables, 'table')}, {counted(found.rows, 'row')}"
    if not found.differing:
        yield f"nothing differs: {what}"
    elif found.changed:
        yield f"rebuilt: {what}"


@click.command(cls=JsonCommand)
@click.argument("name", required=False)
@click.option("--list", "listed", is_flag=True, help="List only the names, with revision and description.")
def schema(name: str | None, listed: bool) -> None:
    """Print the JSON Schema of events and documents

    With NAME, prints one schema; without it, all of them as one object. An event is described as `planforge
    log --json` prints it, in any stored revision.

    \b
    Examples:
      planforge schema --list
      planforge schema StepCompleted
      planforge schema Recorded
    """
    if listed:
        show(
            schemas.summaries(),
            lambda found: table([(item.name, str(item.revision), item.description) for item in found]),
        )
    else:
        show(schemas.schema(name) if name else schemas.every(), "", as_json=True)


@click.command(cls=JsonCommand)
def verify() -> int:
    """Check that nobody changed the ledger

    Follows the hash chain over all events, checks every object that they refer to, and compares the
    projections with the events. If something was changed, it names the event or the row and exits with 1.
    """
    found = look(here())
    show(found, _verification)
    return 0 if found.intact else 1


def _verification(found: Verification) -> Iterator[str]:
    if found.intact:
        yield f"intact: {counted(found.events, 'event')}, {counted(found.objects, 'object')}"
        return
    for fault in found.faults:
        name = f"event {fault.seq} ({fault.kind} of {fault.stream}): " if fault.kind else ""
        yield f"not intact: {name}{fault.problem}"
