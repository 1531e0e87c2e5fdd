"""Runs, and which of them are not finished."""

from __future__ import annotations

import apsw

from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.projections.folding import Folds, update

TABLES = """
CREATE TABLE runs(
  run TEXT PRIMARY KEY, flow TEXT NOT NULL, subject TEXT NOT NULL, status TEXT NOT NULL,
  reason TEXT NOT NULL, until TEXT NOT NULL, started_at TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_subject ON runs(subject, run);
CREATE TABLE unfinished(run TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""

NAMES = ("runs", "unfinished")

folds = Folds()


@folds.of(events.RunStarted)
def _(db: apsw.Connection, event: events.RunStarted, recorded: Recorded) -> None:
    values = (event.run, event.flow, event.subject, "running", "", "", recorded.at, recorded.at)
    db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    db.execute("INSERT OR IGNORE INTO unfinished VALUES (?)", (event.run,))


@folds.of(events.DriverStarted)
def _(db: apsw.Connection, event: events.DriverStarted, recorded: Recorded) -> None:
    _run(db, event.run, "running", "", recorded.at)
    db.execute("INSERT OR IGNORE INTO unfinished SELECT run FROM runs WHERE run = ?", (event.run,))


@folds.of(events.RunParked)
def _(db: apsw.Connection, event: events.RunParked, recorded: Recorded) -> None:
    _run(db, event.run, "waiting", event.reason, recorded.at, event.until)


@folds.of(events.RunEnded)
def _(db: apsw.Connection, event: events.RunEnded, recorded: Recorded) -> None:
    _run(db, event.run, "done" if event.succeeded else "failed", event.reason, recorded.at)
    db.execute("DELETE FROM unfinished WHERE run = ?", (event.run,))


def _run(db: apsw.Connection, run: str, status: str, reason: str, at: str, until: str = "") -> None:
    update(db, "runs", "run", run, status=status, reason=reason, until=until, updated_at=at)
