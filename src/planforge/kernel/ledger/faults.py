"""Where a ledger is not what was written: its guards, its chain, its end, and the file itself."""

from __future__ import annotations

from collections.abc import Iterator

from planforge.errors import LedgerUnreadable
from planforge.kernel.ledger import Fault, Ledger
from planforge.kernel.ledger.storage import GUARDS
from planforge.kernel.ledger.stored import chains

SHOWN = 20
"""How many problems of the file itself are told."""

EVENTS = """
SELECT seq, CAST(stream AS BLOB), version, CAST(kind AS BLOB), revision, CAST(key AS BLOB), CAST(at AS BLOB),
  body, hash
FROM events ORDER BY seq
"""
"""Text as bytes, because a damaged one may not be text any more."""


def faults(ledger: Ledger) -> Iterator[Fault]:
    """Every fault, as far as it can be told."""
    triggers = dict(ledger.query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
    for name, guard in GUARDS.items():
        if triggers.get(name) != guard:
            yield _of_all(f"the guard `{name}` is gone")
    found = 0
    try:
        for fault in _chain(ledger):
            if fault.problem:
                yield fault
            found = fault.seq
        yield from _missing_end(ledger, found)
    except LedgerUnreadable as error:
        yield _of_all(f"what comes after event {found} cannot be read: {error.message}", found)
    yield from _file(ledger)


def _chain(ledger: Ledger) -> Iterator[Fault]:
    """Each event with its problem, if it has one."""
    expected, previous = 0, b""
    for seq, stream, version, kind, revision, key, at, body, digest in ledger.query(EVENTS):
        texts = [_text(field) for field in (stream, kind, key, at)]
        expected += 1
        problem = ""
        if seq != expected:  # then its own hash, which includes the one before, cannot be checked
            several = f"events {expected} to {seq - 1} are missing"
            problem = several if seq - expected > 1 else f"event {expected} is missing"
            expected = seq
        elif digest not in chains(previous, seq, texts[0], version, texts[1], revision, *texts[2:], body):
            problem = "its content does not match its hash"
        yield Fault(seq=seq, stream=texts[0], kind=texts[1], problem=problem)
        previous = digest if isinstance(digest, bytes) else b""


def _missing_end(ledger: Ledger, found: int) -> Iterator[Fault]:
    """What was once said of the end must still hold; events after that have come since."""
    for seq, digest in ledger.query("SELECT seq, hash FROM head"):
        if seq > found:
            yield _of_all(f"the ledger once ended at event {seq}, now at {found}", found)
        elif seq and (digest,) not in ledger.query("SELECT hash FROM events WHERE seq = ?", seq):
            yield _of_all(f"event {seq} once had another hash", seq)
        return
    yield _of_all("the note of where the ledger ends is gone")


def _file(ledger: Ledger) -> Iterator[Fault]:
    """What SQLite finds wrong with its own pages and indexes."""
    try:
        for (said,) in ledger.query(f"PRAGMA integrity_check({SHOWN})"):
            if said != "ok":
                yield _of_all(f"the file is damaged: {' '.join(said.split())}")
    except LedgerUnreadable as error:
        yield _of_all(error.message)


def _of_all(problem: str, seq: int = 0) -> Fault:
    return Fault(seq=seq, stream="", kind="", problem=problem)


def _text(stored: object) -> str:
    return stored.decode("utf-8", "replace") if isinstance(stored, bytes) else str(stored)
