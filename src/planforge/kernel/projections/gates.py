"""
The gates that changes stand at, what people decided there, and who made the changes.

The newest gate of a name counts: a change that is made anew takes the place of the one
before, whether that was decided or not, so no yes lies around for later.
"""

from __future__ import annotations

import apsw
import msgspec

from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.projections.folding import Folds

TABLES = """
CREATE TABLE raised_gates(
  number INTEGER PRIMARY KEY, plan TEXT NOT NULL, step TEXT NOT NULL, attempt INTEGER NOT NULL,
  gate TEXT NOT NULL, content TEXT NOT NULL, proposed TEXT NOT NULL, base TEXT NOT NULL,
  reasons TEXT NOT NULL, diff TEXT NOT NULL, status TEXT NOT NULL, actor TEXT NOT NULL,
  reason TEXT NOT NULL, used_by TEXT NOT NULL, raised_at TEXT NOT NULL, decided_at TEXT NOT NULL
) STRICT;
CREATE INDEX raised_gates_by_name ON raised_gates(plan, gate, number);
CREATE INDEX raised_gates_open ON raised_gates(number) WHERE status = 'waiting';
CREATE TABLE authors(plan TEXT NOT NULL, agent TEXT NOT NULL, PRIMARY KEY(plan, agent)) STRICT, WITHOUT ROWID;
"""

NAMES = ("raised_gates", "authors")

folds = Folds()

CLOSE = "UPDATE raised_gates SET status = 'closed' WHERE status IN ('waiting', 'approved') AND plan = "


@folds.of(events.PatchProposed)
def _(db: apsw.Connection, event: events.PatchProposed, recorded: Recorded) -> None:
    del recorded
    db.execute("INSERT OR IGNORE INTO authors VALUES (?, ?)", (event.plan, event.agent))


@folds.of(events.GateRaised)
def _(db: apsw.Connection, event: events.GateRaised, recorded: Recorded) -> None:
    statement = "UPDATE raised_gates SET status = 'superseded' WHERE status IN ('waiting', 'approved')"
    db.execute(f"{statement} AND plan = ? AND gate = ?", (event.plan, event.gate))
    what = (event.plan, event.step, event.attempt, event.gate, event.content, event.commit, event.base)
    values = (*what, msgspec.json.encode(event.reasons).decode(), event.diff, recorded.at)
    statement = "INSERT INTO raised_gates SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
    db.execute(f"{statement} 'waiting', '', '', '', ?, '' FROM raised_gates", values)


@folds.of(events.GateDecided)
def _(db: apsw.Connection, event: events.GateDecided, recorded: Recorded) -> None:
    columns = "status = ?, actor = ?, reason = ?, decided_at = ?"
    said = ("approved" if event.approved else "rejected", event.actor, event.reason, recorded.at)
    # A yes that is said again of a later gate, by whoever copies it, is not said of that one.
    where = "plan = ? AND gate = ? AND content = ? AND status = 'waiting' AND number = ?"
    statement = f"UPDATE raised_gates SET {columns} WHERE {where}"  # noqa: S608  (constants)
    db.execute(statement, (*said, event.plan, event.gate, event.content, event.number))


@folds.of(events.ApprovalUsed)
def _(db: apsw.Connection, event: events.ApprovalUsed, recorded: Recorded) -> None:
    del recorded
    statement = (
        "UPDATE raised_gates SET status = 'used', used_by = ? WHERE plan = ? AND gate = ? AND content = ?"
    )
    db.execute(f"{statement} AND status = 'approved'", (event.run, event.plan, event.gate, event.content))


@folds.of(events.PlanEnded)
def _(db: apsw.Connection, event: events.PlanEnded, recorded: Recorded) -> None:
    del recorded
    db.execute(CLOSE + "?", (event.plan,))


@folds.of(events.RunEnded)
def _(db: apsw.Connection, event: events.RunEnded, recorded: Recorded) -> None:
    # A run that a person cancels says nothing of its plan. Nobody comes to its gates any more.
    del recorded
    subjects = "(SELECT subject FROM runs WHERE run = ?)"
    db.execute(CLOSE + subjects, (event.run,))
