"""
Which trees have evidence that passed or failed, so that it need not be gathered again.

A row for each tree and each fingerprint of what else determines the outcome. Where the
same tree has passed and failed under the same fingerprint, the row says that it is not
steady, for good.
"""

from __future__ import annotations

import apsw

from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.evidence import Outcome
from planforge.kernel.projections.folding import Folds

TABLES = """
CREATE TABLE evidence(
  tree TEXT NOT NULL, fingerprint TEXT NOT NULL, outcome TEXT NOT NULL, steady INTEGER NOT NULL,
  seq INTEGER NOT NULL, PRIMARY KEY(tree, fingerprint)
) STRICT, WITHOUT ROWID;
"""

NAMES = ("evidence",)

folds = Folds()


Checked = events.VerifyOk | events.VerifyFailed | events.MergeChecked


def _fold(db: apsw.Connection, event: Checked, recorded: Recorded) -> None:
    evidence = event.evidence
    # What was reused is on record where it was measured, and measured no second time.
    if evidence.outcome is Outcome.CANNOT_TELL or evidence.reused or not evidence.tree:
        return
    insert = "INSERT INTO evidence VALUES (?, ?, ?, 1, ?)"
    change = (
        "ON CONFLICT(tree, fingerprint) DO UPDATE SET seq = excluded.seq, "
        "steady = min(steady, outcome = excluded.outcome), outcome = excluded.outcome"
    )
    values = (evidence.tree, evidence.fingerprint, evidence.outcome.value, recorded.seq)
    db.execute(f"{insert} {change}", values)


folds.table |= {events.VerifyOk: _fold, events.VerifyFailed: _fold, events.MergeChecked: _fold}
