"""
Tables for quick answers, folded from events in the transaction that records them.

Nothing here is a second truth: `rebuild` throws the tables away and folds them
again from the first event on, to identical rows. Each module has some tables, and
says for each kind of event what it does to them.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from planforge.kernel.events import Event, Recorded
from planforge.kernel.projections import budgets, decisions, evidence, graph, leases, tasks, work

MODULES = (work, graph, leases, budgets, evidence, decisions, tasks)

TABLES = "".join(module.TABLES for module in MODULES)
NAMES = tuple(name for module in MODULES for name in module.NAMES)

FOLDS = {
    kind: tuple(module.folds.table[kind] for module in MODULES if kind in module.folds.table)
    for kind in {kind for module in MODULES for kind in module.folds.table}
}


def project(db: apsw.Connection, event: Event, recorded: Recorded) -> None:
    """Fold one event into the tables."""
    for fold in FOLDS.get(type(event), ()):
        fold(db, event, recorded)


def create(db: apsw.Connection) -> None:
    """Make the tables, empty; those of an earlier layout are thrown away."""
    kept = ("events", "head", "cursors")
    found = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (name,) in list(found):
        if name not in kept:
            db.execute(f'DROP TABLE "{name}"')
    db.execute(TABLES)


def rebuild(db: apsw.Connection, history: Iterable[Recorded]) -> None:
    """Fold the tables anew; the caller holds the transaction."""
    create(db)
    for recorded in history:
        project(db, recorded.event, recorded)
