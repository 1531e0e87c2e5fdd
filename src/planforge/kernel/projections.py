"""
Tables for quick answers, folded from events in the transaction that records them.

Nothing here is a second truth: `rebuild` throws the tables away and folds them
again from the first event on, to identical rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

import apsw

from planforge.kernel import events
from planforge.kernel.events import Event, Recorded

TABLES = """
CREATE TABLE IF NOT EXISTS runs(
  run TEXT PRIMARY KEY, flow TEXT NOT NULL, subject TEXT NOT NULL, status TEXT NOT NULL,
  reason TEXT NOT NULL, started_at TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plans(
  plan TEXT PRIMARY KEY, title TEXT NOT NULL, status TEXT NOT NULL, path TEXT NOT NULL,
  content TEXT NOT NULL, object TEXT NOT NULL, rounds INTEGER NOT NULL, branch TEXT NOT NULL,
  landed TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS steps(
  plan TEXT NOT NULL, ordinal INTEGER NOT NULL, step TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL,
  status TEXT NOT NULL, attempts INTEGER NOT NULL, landed TEXT NOT NULL, score INTEGER, reason TEXT NOT NULL,
  PRIMARY KEY(plan, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_by_status ON runs(status, run);
"""

NAMES = ("runs", "plans", "steps")


def project(connection: apsw.Connection, recorded: Recorded) -> None:
    """Fold one event into the tables."""
    for statement, values in _changes(recorded.event, recorded.at):
        connection.execute(statement, values)


def rebuild(connection: apsw.Connection, history: Iterable[Recorded]) -> None:
    """Fold the tables anew; the caller holds the transaction."""
    for name in NAMES:
        connection.execute(f"DELETE FROM {name}")  # noqa: S608  (a constant)
    for recorded in history:
        project(connection, recorded)


Change = tuple[str, tuple[str | int | None, ...]]


@singledispatch
def _changes(event: Event, at: str) -> Iterable[Change]:
    """What `event` does to the tables; most events do nothing."""
    del event, at
    return ()


@_changes.register(events.RunStarted)
def _(event: events.RunStarted, at: str) -> Iterable[Change]:
    values = (event.run, event.flow, event.subject, "running", "", at, at)
    yield "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", values


@_changes.register(events.DriverStarted)
def _(event: events.DriverStarted, at: str) -> Iterable[Change]:
    yield _run(event.run, "running", "", at)


@_changes.register(events.RunParked)
def _(event: events.RunParked, at: str) -> Iterable[Change]:
    yield _run(event.run, "waiting", event.reason, at)


@_changes.register(events.RunEnded)
def _(event: events.RunEnded, at: str) -> Iterable[Change]:
    yield _run(event.run, "done" if event.succeeded else "failed", event.reason, at)


@_changes.register(events.PlanCreated)
def _(event: events.PlanCreated, at: str) -> Iterable[Change]:
    values = (event.plan, event.title, "DRAFT", event.path, "", "", 0, "", "", at)
    yield "INSERT INTO plans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values


@_changes.register(events.PlanWritten)
def _(event: events.PlanWritten, at: str) -> Iterable[Change]:
    statement = (
        "UPDATE plans SET title = ?, content = ?, object = ?, rounds = ?, updated_at = ? WHERE plan = ?"
    )
    yield statement, (event.title, event.content, event.object, event.round, at, event.plan)


@_changes.register(events.PlanForged)
def _(event: events.PlanForged, at: str) -> Iterable[Change]:
    if event.content:  # there is something to review
        yield _plan(event.plan, "REVIEW", at)


@_changes.register(events.PlanApproved)
def _(event: events.PlanApproved, at: str) -> Iterable[Change]:
    statement = "UPDATE plans SET status = 'APPROVED', content = ?, updated_at = ? WHERE plan = ?"
    yield statement, (event.content, at, event.plan)


@_changes.register(events.PlanStarted)
def _(event: events.PlanStarted, at: str) -> Iterable[Change]:
    statement = (
        "UPDATE plans SET status = 'IMPLEMENTING', branch = ?, landed = ?, updated_at = ? WHERE plan = ?"
    )
    yield statement, (event.branch, event.base, at, event.plan)
    yield "DELETE FROM steps WHERE plan = ?", (event.plan,)
    for ordinal, step in enumerate(event.steps):
        status = "done" if step.step in event.kept else "pending"
        values = (event.plan, ordinal, step.step, step.title, step.kind, status, 0, "", None, "")
        yield "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values


@_changes.register(events.PlanEnded)
def _(event: events.PlanEnded, at: str) -> Iterable[Change]:
    # A plan that could not go on returns to review: a new approval is the way out.
    statement = "UPDATE plans SET status = ?, landed = ?, updated_at = ? WHERE plan = ?"
    yield statement, ("DONE" if event.succeeded else "REVIEW", event.commit, at, event.plan)


@_changes.register(events.StepStarted)
def _(event: events.StepStarted, at: str) -> Iterable[Change]:
    statement = "UPDATE steps SET status = 'in-progress', attempts = ? WHERE plan = ? AND step = ?"
    yield statement, (event.attempt, event.plan, event.step)
    audits = "EXISTS (SELECT 1 FROM steps WHERE plan = ? AND step = ? AND kind = 'audit')"
    statement = f"UPDATE plans SET status = 'AUDITING', updated_at = ? WHERE plan = ? AND {audits}"  # noqa: S608
    yield statement, (at, event.plan, event.plan, event.step)


@_changes.register(events.AttemptRejected)
def _(event: events.AttemptRejected, at: str) -> Iterable[Change]:
    del at
    yield "UPDATE steps SET reason = ? WHERE plan = ? AND step = ?", (event.reason, event.plan, event.step)


@_changes.register(events.PatchApplied)
def _(event: events.PatchApplied, at: str) -> Iterable[Change]:
    yield "UPDATE steps SET landed = ? WHERE plan = ? AND step = ?", (event.commit, event.plan, event.step)
    yield "UPDATE plans SET landed = ?, updated_at = ? WHERE plan = ?", (event.commit, at, event.plan)


@_changes.register(events.StepCompleted)
def _(event: events.StepCompleted, at: str) -> Iterable[Change]:
    del at
    value = event.score.value if event.score else None
    statement = "UPDATE steps SET status = 'done', score = ?, reason = '' WHERE plan = ? AND step = ?"
    yield statement, (value, event.plan, event.step)


@_changes.register(events.StepFailed)
def _(event: events.StepFailed, at: str) -> Iterable[Change]:
    del at
    statement = "UPDATE steps SET status = 'failed', reason = ? WHERE plan = ? AND step = ?"
    yield statement, (event.reason, event.plan, event.step)


def _run(run: str, status: str, reason: str, at: str) -> Change:
    return "UPDATE runs SET status = ?, reason = ?, updated_at = ? WHERE run = ?", (status, reason, at, run)


def _plan(plan: str, status: str, at: str) -> Change:
    return "UPDATE plans SET status = ?, updated_at = ? WHERE plan = ?", (status, at, plan)
