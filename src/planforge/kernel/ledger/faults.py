"""Where a ledger is not what was written: its guards, its chain, its end, and the file itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from planforge.errors import LedgerUnreadable
from planforge.kernel.ledger.rows import hash_after
from planforge.kernel.ledger.shapes import Fault
from planforge.kernel.ledger.storage import GUARDS

Query = Callable[..., Iterator[tuple[Any, ...]]]
"""Rows of a read-only statement with its values."""

SHOWN = 20
"""How many problems of the file itself are told."""

EVENTS = """
SELECT seq, CAST(stream AS BLOB), version, CAST(kind AS BLOB), revision, CAST(key AS BLOB), CAST(at AS BLOB),
  body, hash
FROM events ORDER BY seq
"""
"""Text as bytes, because damaged text may not decode."""


def faults(query: Query) -> Iterator[Fault]:
    """Every fault, as far as it can be told."""
    triggers: dict[str, str] = dict(query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
    for name, guard in GUARDS.items():
        if triggers.get(name) != guard:
            yield Fault(seq=0, problem=f"the guard `{name}` is gone")
    found = 0
    try:
        for fault in _chain(query):
            if fault.problem:
                yield fault
            found = fault.seq
        yield from _missing_end(query, found)
    except LedgerUnreadable as error:
        yield Fault(seq=found, problem=f"what comes after event {found} cannot be read: {error.message}")
    yield from _file(query)


def _chain(query: Query) -> Iterator[Fault]:
    """Each event with its problem, if it has one."""
    number, previous = 0, b""
    for seq, stream, version, kind, revision, key, at, body, digest in query(EVENTS):
        texts = [_text(field) for field in (stream, kind, key, at)]
        number += 1
        problem = ""
        if seq != number:  # then its own hash, which includes the one before, cannot be checked
            several = f"events {number} to {seq - 1} are missing"
            problem = several if seq - number > 1 else f"event {number} is missing"
            number = seq
        elif digest != hash_after(previous, seq, texts[0], version, texts[1], revision, *texts[2:], body):
            problem = "its content does not match its hash"
        yield Fault(seq=seq, stream=texts[0], kind=texts[1], problem=problem)
        previous = digest if isinstance(digest, bytes) else b""


def _missing_end(query: Query, found: int) -> Iterator[Fault]:
    """What was once said of the end must still hold; events after that have come since."""
    for seq, digest in query("SELECT seq, hash FROM head"):
        if seq > found:
            yield Fault(seq=found, problem=f"the ledger once ended at event {seq}, now at {found}")
        elif seq and (digest,) not in query("SELECT hash FROM events WHERE seq = ?", seq):
            yield Fault(seq=seq, problem=f"event {seq} once had another hash")
        return
    yield Fault(seq=0, problem="the note of where the ledger ends is gone")


def _file(query: Query) -> Iterator[Fault]:
    """What SQLite finds wrong with its own pages and indexes."""
    try:
        for (said,) in query(f"PRAGMA integrity_check({SHOWN})"):
            if said != "ok":
                yield Fault(seq=0, problem=f"the file is damaged: {' '.join(said.split())}")
    except LedgerUnreadable as error:
        yield Fault(seq=0, problem=error.message)


def _text(stored: object) -> str:
    return stored.decode("utf-8", "replace") if isinstance(stored, bytes) else str(stored)
