"""
The questions that runs have put to people, and what people answered.

A question waits until somebody answers it, is answered until its run has taken the
answer up, and is closed with its run. Asked anew in other words, it supersedes itself.
"""

from __future__ import annotations

import apsw
import msgspec

from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.projections.folding import Folds

TABLES = """
CREATE TABLE questions(
  number INTEGER PRIMARY KEY, run TEXT NOT NULL, effect TEXT NOT NULL, subject TEXT NOT NULL,
  text TEXT NOT NULL, choices TEXT NOT NULL, content TEXT NOT NULL, hash TEXT NOT NULL,
  status TEXT NOT NULL, answer TEXT NOT NULL, actor TEXT NOT NULL, reason TEXT NOT NULL,
  asked_at TEXT NOT NULL, answered_at TEXT NOT NULL
) STRICT;
CREATE INDEX questions_of_runs ON questions(run, effect, number);
CREATE INDEX questions_open ON questions(number) WHERE status = 'waiting';
"""

NAMES = ("questions",)

folds = Folds()

ASKING = "AskHuman"
"""The effect whose outcome is an answer."""


@folds.of(events.QuestionAsked)
def _(db: apsw.Connection, event: events.QuestionAsked, recorded: Recorded) -> None:
    statement = "UPDATE questions SET status = 'superseded' WHERE run = ? AND effect = ? AND number < ?"
    which = (event.run, event.effect, event.number)
    db.execute(f"{statement} AND status IN ('waiting', 'answered')", which)
    choices = msgspec.json.encode(event.choices).decode()
    what = (event.number, event.run, event.effect, event.subject, event.text, choices)
    # One that is copied into a stream by hand has a number that is taken, and asks nothing.
    db.execute(
        "INSERT OR IGNORE INTO questions VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'waiting', '', '', '', ?, '')",
        (*what, event.content, event.hash, recorded.at),
    )


@folds.of(events.QuestionAnswered)
def _(db: apsw.Connection, event: events.QuestionAnswered, recorded: Recorded) -> None:
    columns = "status = 'answered', answer = ?, actor = ?, reason = ?, answered_at = ?"
    statement = f"UPDATE questions SET {columns} WHERE number = ? AND run = ? AND hash = ?"  # noqa: S608  (constants)
    said = (event.answer, event.actor, event.reason, recorded.at)
    db.execute(f"{statement} AND status = 'waiting'", (*said, event.number, event.run, event.hash))


@folds.of(events.EffectCompleted)
def _(db: apsw.Connection, event: events.EffectCompleted, recorded: Recorded) -> None:
    if event.effect == ASKING:
        statement = (
            "UPDATE questions SET status = 'taken' WHERE run = ? AND effect = ? AND status = 'answered'"
        )
        db.execute(statement, (recorded.stream, recorded.key))


@folds.of(events.RunEnded)
def _(db: apsw.Connection, event: events.RunEnded, recorded: Recorded) -> None:
    del recorded
    statement = "UPDATE questions SET status = 'closed' WHERE run = ? AND status IN ('waiting', 'answered')"
    db.execute(statement, (event.run,))
