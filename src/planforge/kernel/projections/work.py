"""Runs and plans: what `status` shows."""

from __future__ import annotations

import apsw

from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.projections.folding import Folds

TABLES = """
CREATE TABLE runs(
  run TEXT PRIMARY KEY, flow TEXT NOT NULL, subject TEXT NOT NULL, status TEXT NOT NULL,
  reason TEXT NOT NULL, until TEXT NOT NULL, started_at TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE plans(
  plan TEXT PRIMARY KEY, title TEXT NOT NULL, status TEXT NOT NULL, path TEXT NOT NULL,
  content TEXT NOT NULL, object TEXT NOT NULL, rounds INTEGER NOT NULL, branch TEXT NOT NULL,
  landed TEXT NOT NULL, updated_at TEXT NOT NULL, task TEXT NOT NULL, task_title TEXT NOT NULL,
  description TEXT NOT NULL, created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX plans_by_task ON plans(task COLLATE NOCASE);
CREATE INDEX runs_by_subject ON runs(subject, run);
CREATE TABLE unfinished(run TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE unlanded(plan TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""

NAMES = ("runs", "plans", "unfinished", "unlanded")

OWN = "ws-"
"""How the tasks begin that plans bring with them."""

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


@folds.of(events.PlanCreated)
def _(db: apsw.Connection, event: events.PlanCreated, recorded: Recorded) -> None:
    task = (event.task or own_task(event.plan)) if event.path else ""
    values = (event.plan, event.title, event.path, recorded.at, task, event.title, event.description)
    statement = "INSERT INTO plans VALUES (?, ?, 'DRAFT', ?, '', '', 0, '', '', ?, ?, ?, ?, ?)"
    db.execute(statement, (*values, recorded.at))


def own_task(plan: str) -> str:
    """The task of a plan that was made for no other: `ws-017` of `plan-017`."""
    kind, _, number = plan.partition("-")
    return f"{OWN}{number}" if kind == "plan" and number.isdecimal() else ""


@folds.of(events.PlanWritten)
def _(db: apsw.Connection, event: events.PlanWritten, recorded: Recorded) -> None:
    values = (event.title, event.content, event.object, event.round, recorded.at, event.plan)
    columns = "title = ?, content = ?, object = ?, rounds = ?, updated_at = ?"
    db.execute(f"UPDATE plans SET {columns} WHERE plan = ?", values)  # noqa: S608  (a constant)


@folds.of(events.PlanForged)
def _(db: apsw.Connection, event: events.PlanForged, recorded: Recorded) -> None:
    if event.content:  # there is something to review
        _plan(db, event.plan, "REVIEW", recorded.at)


@folds.of(events.DecisionMade)
def _(db: apsw.Connection, event: events.DecisionMade, recorded: Recorded) -> None:
    if event.kind == "approval":
        statement = "UPDATE plans SET status = 'APPROVED', content = ?, updated_at = ? WHERE plan = ?"
        db.execute(statement, (event.content, recorded.at, event.subject))


@folds.of(events.PlanStarted)
def _(db: apsw.Connection, event: events.PlanStarted, recorded: Recorded) -> None:
    values = (event.branch, event.base, recorded.at, event.plan)
    columns = "status = 'IMPLEMENTING', branch = ?, landed = ?, updated_at = ?"
    db.execute(f"UPDATE plans SET {columns} WHERE plan = ?", values)  # noqa: S608  (a constant)


@folds.of(events.PlanPaused)
def _(db: apsw.Connection, event: events.PlanPaused, recorded: Recorded) -> None:
    # The run is over and the plan is not: another run goes on with it, under the same approval.
    statement = "UPDATE plans SET status = 'IMPLEMENTING', landed = ?, updated_at = ? WHERE plan = ?"
    db.execute(statement, (event.commit, recorded.at, event.plan))


@folds.of(events.PlanEnded)
def _(db: apsw.Connection, event: events.PlanEnded, recorded: Recorded) -> None:
    # A plan that could not go on returns to review: a new approval is the way out.
    statement = "UPDATE plans SET status = ?, landed = ?, updated_at = ? WHERE plan = ?"
    db.execute(statement, ("DONE" if event.succeeded else "REVIEW", event.commit, recorded.at, event.plan))
    if event.succeeded:
        db.execute("INSERT OR IGNORE INTO unlanded VALUES (?)", (event.plan,))


@folds.of(events.PlanMoved)
def _(db: apsw.Connection, event: events.PlanMoved, recorded: Recorded) -> None:
    _plan(db, event.plan, event.status, recorded.at)
    db.execute("DELETE FROM unlanded WHERE plan = ?", (event.plan,))
    if event.status == "DONE" and event.unlanded:
        db.execute("INSERT INTO unlanded VALUES (?)", (event.plan,))


@folds.of(events.PlanLanded)
def _(db: apsw.Connection, event: events.PlanLanded, recorded: Recorded) -> None:
    del recorded
    db.execute("DELETE FROM unlanded WHERE plan = ?", (event.plan,))


@folds.of(events.PatchApplied)
def _(db: apsw.Connection, event: events.PatchApplied, recorded: Recorded) -> None:
    statement = "UPDATE plans SET landed = ?, updated_at = ? WHERE plan = ?"
    db.execute(statement, (event.commit, recorded.at, event.plan))


def _run(db: apsw.Connection, run: str, status: str, reason: str, at: str, until: str = "") -> None:
    statement = "UPDATE runs SET status = ?, reason = ?, until = ?, updated_at = ? WHERE run = ?"
    db.execute(statement, (status, reason, until, at, run))


def _plan(db: apsw.Connection, plan: str, status: str, at: str) -> None:
    db.execute("UPDATE plans SET status = ?, updated_at = ? WHERE plan = ?", (status, at, plan))
