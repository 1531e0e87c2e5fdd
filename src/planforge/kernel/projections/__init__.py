"""
Tables for quick answers, folded from events in the transaction that records them.

Nothing here is a second truth: `rebuild` throws the tables away and folds them
again from the first event on, to identical rows. Each module has some tables, and
says for each kind of event what it does to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import apsw

from planforge.kernel.events import Event, Recorded
from planforge.kernel.projections import budgets, decisions, evidence, graph, items, leases, runs
from planforge.kernel.work.lifecycle.statuses import LEADS

MODULES = (runs, decisions, items, graph, leases, budgets, evidence)

TABLES = "".join(module.TABLES for module in MODULES)
NAMES = tuple(name for module in MODULES for name in module.NAMES)

TABLES_OF_FOLDS = (
    *(module.folds.table for module in MODULES),
    dict.fromkeys(graph.REMEMBERED, graph.remember),
    dict.fromkeys(LEADS, items.move),
)
"""In this order: the status of an item comes last, from what the others have made of an event."""

FOLDS = {
    kind: tuple(table[kind] for table in TABLES_OF_FOLDS if kind in table)
    for kind in {kind for table in TABLES_OF_FOLDS for kind in table}
}


def project(db: apsw.Connection, event: Event, recorded: Recorded) -> None:
    """Fold one event into the tables."""
    for fold in FOLDS.get(type(event), ()):
        fold(db, event, recorded)


def create(db: apsw.Connection, guards: Collection[str] = ()) -> None:
    """Make the tables, empty; those of an earlier layout are thrown away, and triggers that are no guards."""
    kept = {"events", "head", "cursors", *guards}
    found = db.execute(
        "SELECT type, name FROM sqlite_schema WHERE type <> 'index' AND name NOT GLOB 'sqlite_*'"
    )
    for what, name in sorted(found, key=lambda each: each[0] != "trigger"):  # those of a table go with it
        if name not in kept:
            db.execute(f'DROP {what} "{name}"')
    db.execute(TABLES)


def rebuild(db: apsw.Connection, history: Iterable[Recorded], guards: Collection[str]) -> None:
    """Fold the tables anew; the caller holds the transaction."""
    create(db, guards)
    for recorded in history:
        project(db, recorded.event, recorded)
