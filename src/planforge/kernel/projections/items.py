"""
Items: everything that people work on, one row each. The status of each comes from its lifecycle.

Plans (with fixes) and tasks are views of it, by the names that they have there.
"""

from __future__ import annotations

from functools import partial

import apsw

from planforge.kernel import events
from planforge.kernel.events import Event, Recorded
from planforge.kernel.projections import revisions
from planforge.kernel.projections.folding import Folds, update
from planforge.kernel.work.items import Kind, kind_of
from planforge.kernel.work.lifecycle.statuses import MACHINES, approves, given

TABLES = """
CREATE TABLE items(
  item TEXT PRIMARY KEY, kind TEXT NOT NULL, title TEXT NOT NULL, opened_as TEXT NOT NULL,
  request TEXT NOT NULL, description TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
  parent TEXT NOT NULL, path TEXT NOT NULL, content TEXT NOT NULL, object TEXT NOT NULL,
  rounds INTEGER NOT NULL, pipeline TEXT NOT NULL, stage TEXT NOT NULL, branch TEXT NOT NULL,
  landed TEXT NOT NULL, opened_at TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX items_by_kind ON items(kind, item);
CREATE INDEX items_by_parent ON items(parent COLLATE NOCASE);
CREATE VIEW plans AS SELECT item AS plan, title, status, path, content, object, rounds, branch, landed,
  updated_at, parent AS task, opened_as AS task_title, description, opened_at AS created_at
  FROM items WHERE kind IN ('plan', 'fix');
CREATE VIEW tasks AS SELECT item AS task, title, request, pipeline, path, status, stage, reason, branch,
  landed, updated_at FROM items WHERE kind = 'task';
CREATE TABLE links(item TEXT NOT NULL, after TEXT NOT NULL, PRIMARY KEY(item, after)) STRICT, WITHOUT ROWID;
CREATE TABLE unlanded(plan TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE stages(
  task TEXT NOT NULL, stage TEXT NOT NULL, iteration INTEGER NOT NULL, outcome TEXT NOT NULL,
  verdict TEXT NOT NULL, judged TEXT NOT NULL, reason TEXT NOT NULL, document TEXT NOT NULL,
  object TEXT NOT NULL, proposed TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY(task, stage)
) STRICT, WITHOUT ROWID;
"""

NAMES = ("items", "links", "unlanded", "stages")

OWN = "ws-"
"""How the tasks begin that plans bring with them."""

folds = Folds()


@folds.of(events.ItemOpened)
def _(db: apsw.Connection, event: events.ItemOpened, recorded: Recorded) -> None:
    kind = kind_of(event.item)
    parent = event.parent or (own_task(event.item) if event.path else "")
    status = MACHINES[kind].initial if kind in MACHINES else ""  # nothing is known yet of how it goes
    said = (event.title, event.title, event.request, event.description, status, "", parent)
    rest = (event.path, "", "", 0, event.pipeline, "", "", "", recorded.at, recorded.at)
    values = (event.item, kind.value, *said, *rest)
    db.execute(f"INSERT INTO items VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608  (a constant)


def own_task(plan: str) -> str:
    """The task of a plan that was made for no other: `ws-017` of `plan-017`."""
    kind, _, number = plan.partition("-")
    return f"{OWN}{number}" if kind == Kind.PLAN and number.isdecimal() else ""


@folds.of(events.ItemMoved)
def _(db: apsw.Connection, event: events.ItemMoved, recorded: Recorded) -> None:
    _set(db, recorded, event.item, reason=event.reason)
    if kind_of(event.item) in (Kind.PLAN, Kind.FIX):
        db.execute("DELETE FROM unlanded WHERE plan = ?", (event.item,))
        if event.status == "DONE" and event.unlanded:
            db.execute("INSERT INTO unlanded VALUES (?)", (event.item,))


@folds.of(events.ItemLinked)
def _(db: apsw.Connection, event: events.ItemLinked, recorded: Recorded) -> None:
    _set(db, recorded, event.item)
    db.execute("DELETE FROM links WHERE item = ?", (event.item,))
    db.executemany("INSERT OR IGNORE INTO links VALUES (?, ?)", [(event.item, name) for name in event.after])


# Plans and fixes


@folds.of(events.PlanWritten)
def _(db: apsw.Connection, event: events.PlanWritten, recorded: Recorded) -> None:
    written = {"title": event.title, "content": event.content, "object": event.object}
    _set(db, recorded, event.plan, **written, rounds=event.round)


@folds.of(events.DecisionMade)
def _(db: apsw.Connection, event: events.DecisionMade, recorded: Recorded) -> None:
    if approves(partial(revisions.rows, db), event):
        _set(db, recorded, event.subject, content=event.content)


@folds.of(events.PlanStarted)
def _(db: apsw.Connection, event: events.PlanStarted, recorded: Recorded) -> None:
    _set(db, recorded, event.plan, branch=event.branch, landed=event.base)


@folds.of(events.PlanPaused)
def _(db: apsw.Connection, event: events.PlanPaused, recorded: Recorded) -> None:
    _set(db, recorded, event.plan, landed=event.commit)


@folds.of(events.PlanEnded)
def _(db: apsw.Connection, event: events.PlanEnded, recorded: Recorded) -> None:
    _set(db, recorded, event.plan, landed=event.commit)
    if event.succeeded:
        db.execute("INSERT OR IGNORE INTO unlanded VALUES (?)", (event.plan,))


@folds.of(events.PlanLanded)
def _(db: apsw.Connection, event: events.PlanLanded, _: Recorded) -> None:
    db.execute("DELETE FROM unlanded WHERE plan = ?", (event.plan,))


@folds.of(events.PatchApplied)
def _(db: apsw.Connection, event: events.PatchApplied, recorded: Recorded) -> None:
    if kind_of(event.plan) is not Kind.TASK:  # what a task lands is not on its branch before it is through
        _set(db, recorded, event.plan, landed=event.commit)


# Tasks on their way through a pipeline, and what each stage came to last


@folds.of(events.StageStarted)
def _(db: apsw.Connection, event: events.StageStarted, recorded: Recorded) -> None:
    _set(db, recorded, event.task, stage=event.stage)


@folds.of(events.StageEnded)
def _(db: apsw.Connection, event: events.StageEnded, recorded: Recorded) -> None:
    said = (event.outcome, event.verdict, event.judged, event.reason)
    left = (event.document, event.object, event.commit, recorded.at)
    statement = "INSERT OR REPLACE INTO stages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    db.execute(statement, (event.task, event.stage, event.iteration, *said, *left))


@folds.of(events.TaskEnded)
def _(db: apsw.Connection, event: events.TaskEnded, recorded: Recorded) -> None:
    left = {"branch": event.branch, "landed": event.commit}
    _set(db, recorded, event.task, stage=event.stage, reason=event.reason, **left)


def _set(db: apsw.Connection, recorded: Recorded, item: str, **columns: str | int) -> None:
    """Give an item other values, and the time at which it got them."""
    update(db, "items", "item", item, **columns, updated_at=recorded.at)


def move(db: apsw.Connection, event: Event, recorded: Recorded) -> None:
    """Give an item the status that an event leads to, once everything else of the event is folded in."""
    moved = given(partial(revisions.rows, db), event)
    if moved is not None:
        _set(db, recorded, moved.item, status=moved.status)
