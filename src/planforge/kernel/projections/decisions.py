"""
What people are asked to decide and what they decided, and who made the changes they decide about.

The newest decision of a name counts: it takes the place of the one before, whether that was made
or not, so no yes lies around for later. A no is final. What nobody has used is closed with the run
that waits for it; an approval waits for no run.
"""

from __future__ import annotations

import apsw

from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.projections.folding import Folds, text_of
from planforge.kernel.work.decisions import KINDS
from planforge.kernel.work.lifecycle.tables import PLAN

TABLES = """
CREATE TABLE decisions(
  kind TEXT NOT NULL, number INTEGER NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL,
  run TEXT NOT NULL, step TEXT NOT NULL, attempt INTEGER NOT NULL, text TEXT NOT NULL,
  reasons TEXT NOT NULL, choices TEXT NOT NULL, content TEXT NOT NULL, proposed TEXT NOT NULL,
  base TEXT NOT NULL, diff TEXT NOT NULL, documents TEXT NOT NULL, hash TEXT NOT NULL,
  asked_at TEXT NOT NULL, status TEXT NOT NULL, choice TEXT NOT NULL, actor TEXT NOT NULL,
  reason TEXT NOT NULL, decided_at TEXT NOT NULL, used_by TEXT NOT NULL, PRIMARY KEY(kind, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX decisions_by_name ON decisions(kind, name, subject, number);
CREATE INDEX decisions_of_runs ON decisions(run, name);
CREATE INDEX decisions_open ON decisions(kind, number) WHERE status = 'waiting';
CREATE TABLE authors(plan TEXT NOT NULL, agent TEXT NOT NULL, PRIMARY KEY(plan, agent)) STRICT, WITHOUT ROWID;
"""

NAMES = ("decisions", "authors")

folds = Folds()

ASKING = "AskHuman"
"""The effect whose outcome is the answer to a question."""

END = "UPDATE decisions SET status = ? WHERE status IN ('waiting', 'decided') AND "
"""Whatever may still be decided or used, and is not any more."""

WHICH = "WHERE kind = ? AND number = ? AND subject = ? AND name = ? AND content = ?"


@folds.of(events.PatchProposed)
def _(db: apsw.Connection, event: events.PatchProposed, _: Recorded) -> None:
    db.execute("INSERT OR IGNORE INTO authors VALUES (?, ?)", (event.plan, event.agent))


@folds.of(events.DecisionAsked)
def _(db: apsw.Connection, event: events.DecisionAsked, recorded: Recorded) -> None:
    ((last,),) = db.execute("SELECT coalesce(max(number), 0) FROM decisions WHERE kind = ?", (event.kind,))
    if event.number != last + 1:
        return  # It was copied into a stream by hand.
    what = (event.kind, event.name, event.subject)
    db.execute(f"{END} kind = ? AND name = ? AND subject = ?", ("superseded", *what))
    reasons, choices, documents = map(text_of, (event.reasons, event.choices, event.documents))
    of = (event.kind, event.number, event.subject, event.name, event.run, event.step, event.attempt)
    asked = (event.text, reasons, choices, event.content, event.commit, event.base, event.diff, documents)
    statement = "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
    db.execute(f"{statement} 'waiting', '', '', '', '', '')", (*of, *asked, event.hash, recorded.at))


@folds.of(events.DecisionMade)
def _(db: apsw.Connection, event: events.DecisionMade, recorded: Recorded) -> None:
    status = "decided" if event.approves or KINDS[event.kind].answers else "rejected"
    said = (status, event.choice, event.actor, event.reason, recorded.at)
    columns = "status = ?, choice = ?, actor = ?, reason = ?, decided_at = ?"
    statement = f"UPDATE decisions SET {columns} {WHICH} AND hash = ? AND status = 'waiting'"  # noqa: S608
    db.execute(statement, (*said, *_which(event), event.hash))


@folds.of(events.DecisionUsed)
def _(db: apsw.Connection, event: events.DecisionUsed, _: Recorded) -> None:
    before = ("used", event.continues) if event.continues else ("decided", "")
    statement = f"UPDATE decisions SET status = 'used', used_by = ? {WHICH} AND status = ? AND used_by = ?"  # noqa: S608
    db.execute(statement, (event.run, *_which(event), *before))


def _which(event: events.OfDecision) -> tuple[str, int, str, str, str]:
    return event.kind, event.number, event.subject, event.name, event.content


@folds.of(events.EffectCompleted)
def _(db: apsw.Connection, event: events.EffectCompleted, recorded: Recorded) -> None:
    if event.effect == ASKING:
        statement = "UPDATE decisions SET status = 'used', used_by = run WHERE run = ? AND name = ?"
        db.execute(f"{statement} AND status = 'decided'", (recorded.stream, recorded.stream + recorded.key))


@folds.of(events.ItemMoved)
def _(db: apsw.Connection, event: events.ItemMoved, _: Recorded) -> None:
    # Whoever cancels or closes a plan takes back the yes that nobody has used; reopened, it wants another.
    if event.status in PLAN.final:
        db.execute(f"{END} kind = 'approval' AND subject = ?", ("closed", event.item))


@folds.of(events.PlanEnded)
def _(db: apsw.Connection, event: events.PlanEnded, _: Recorded) -> None:
    db.execute(f"{END} kind = 'gate' AND subject = ?", ("closed", event.plan))


@folds.of(events.RunEnded)
def _(db: apsw.Connection, event: events.RunEnded, _: Recorded) -> None:
    # A run that a person cancels says nothing of its plan. Nobody comes to its gates any more.
    db.execute(f"{END} run = ?", ("closed", event.run))
