"""
Tasks on their way through a pipeline, and what each stage came to last.
"""

from __future__ import annotations

import apsw

from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.projections.folding import Folds

TABLES = """
CREATE TABLE tasks(
  task TEXT PRIMARY KEY, title TEXT NOT NULL, request TEXT NOT NULL, pipeline TEXT NOT NULL,
  path TEXT NOT NULL, status TEXT NOT NULL, stage TEXT NOT NULL, reason TEXT NOT NULL,
  branch TEXT NOT NULL, landed TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE stages(
  task TEXT NOT NULL, stage TEXT NOT NULL, iteration INTEGER NOT NULL, outcome TEXT NOT NULL,
  verdict TEXT NOT NULL, judged TEXT NOT NULL, reason TEXT NOT NULL, document TEXT NOT NULL,
  object TEXT NOT NULL, proposed TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY(task, stage)
) STRICT, WITHOUT ROWID;
"""

NAMES = ("tasks", "stages")

INITIAL = "draft"

folds = Folds()


@folds.of(events.TaskOpened)
def _(db: apsw.Connection, event: events.TaskOpened, recorded: Recorded) -> None:
    values = (event.task, event.title, event.request, event.pipeline, event.path, INITIAL, recorded.at)
    db.execute("INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, '', '', '', '', ?)", values)


@folds.of(events.TaskMoved)
def _(db: apsw.Connection, event: events.TaskMoved, recorded: Recorded) -> None:
    statement = "UPDATE tasks SET status = ?, reason = ?, updated_at = ? WHERE task = ?"
    db.execute(statement, (event.status, event.reason, recorded.at, event.task))


@folds.of(events.StageStarted)
def _(db: apsw.Connection, event: events.StageStarted, recorded: Recorded) -> None:
    statement = "UPDATE tasks SET stage = ?, updated_at = ? WHERE task = ?"
    db.execute(statement, (event.stage, recorded.at, event.task))


@folds.of(events.StageEnded)
def _(db: apsw.Connection, event: events.StageEnded, recorded: Recorded) -> None:
    said = (event.outcome, event.verdict, event.judged, event.reason)
    left = (event.document, event.object, event.commit, recorded.at)
    statement = "INSERT OR REPLACE INTO stages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    db.execute(statement, (event.task, event.stage, event.iteration, *said, *left))


@folds.of(events.TaskEnded)
def _(db: apsw.Connection, event: events.TaskEnded, recorded: Recorded) -> None:
    values = (event.stage, event.reason, event.branch, event.commit, recorded.at, event.task)
    columns = "stage = ?, reason = ?, branch = ?, landed = ?, updated_at = ?"
    db.execute(f"UPDATE tasks SET {columns} WHERE task = ?", values)  # noqa: S608  (a constant)
