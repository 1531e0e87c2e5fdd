"""Evidence that is on record already, found by the tree that it is about."""

from __future__ import annotations

from planforge.kernel.evidence import Evidence
from planforge.kernel.ledger import Ledger


def lookup(ledger: Ledger, tree: str, fingerprint: str) -> Evidence | None:
    """
    Evidence on record for this tree, determined by the same, or None.

    Only what passed or failed is found, and nothing where it did both: a check that says now this and now
    that has to be asked again.
    """
    if not tree or not fingerprint:
        return None
    rows = ledger.query(
        "SELECT seq FROM evidence WHERE tree = ? AND fingerprint = ? AND steady = 1", tree, fingerprint
    )
    return next((_recorded(ledger, seq) for (seq,) in rows), None)


def latest(ledger: Ledger, tree: str) -> Evidence | None:
    """The newest evidence on record that passed or failed for this tree, however it was determined."""
    rows = ledger.query("SELECT seq FROM evidence WHERE tree = ? ORDER BY seq DESC LIMIT 1", tree)
    return next((_recorded(ledger, seq) for (seq,) in rows), None)


def _recorded(ledger: Ledger, seq: int) -> Evidence | None:
    for item in ledger.since(seq - 1, 1):
        found = getattr(item.event, "evidence", None)
        if isinstance(found, Evidence):
            return found
    return None
