"""Facts of earlier revisions read as today's; their bytes, and so the chain, stay as they were written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from planforge.errors import LedgerUnreadable
from planforge.kernel.events import EVENTS, RunParked
from planforge.kernel.ledger import Ledger
from planforge.kernel.ledger.rows import hash_after, read_event
from planforge.kernel.ledger.upcasts import UPCASTS, revision, upcast

OLD = b'{"run":"run-001","why":"it waits"}'
"""A fact as the example of `docs/events.md` has it in revision 1."""

NEW = RunParked(run="run-001", reason="it waits")


def why_is_the_reason(fields: dict[str, Any]) -> dict[str, Any]:
    return {"run": fields["run"], "reason": fields["why"]}


@pytest.fixture
def renamed() -> Iterator[None]:
    """The table as it is when a field of an event has had another name."""
    UPCASTS["RunParked"] = (why_is_the_reason,)
    yield
    del UPCASTS["RunParked"]


@pytest.mark.usefixtures("renamed")
def test_a_fact_of_an_earlier_revision_is_read_in_todays_shape() -> None:
    assert read_event(7, "RunParked", 1, OLD) == NEW
    assert read_event(7, "RunParked", 2, b'{"run":"run-001","reason":"it waits"}') == NEW


@pytest.mark.usefixtures("renamed")
def test_an_upcast_leaves_what_it_is_given_alone() -> None:
    fields = {"run": "run-001", "why": "it waits"}
    upcast("RunParked", 1, fields)
    assert fields == {"run": "run-001", "why": "it waits"}


@pytest.mark.usefixtures("renamed")
@pytest.mark.parametrize("body", [b'{"run":"run-001"}', b"[]", b"null", b"{", b'{"run":1,"why":"x"}'])
def test_a_fact_that_was_never_of_its_revision_cannot_be_read(body: bytes) -> None:
    with pytest.raises(LedgerUnreadable, match=r"event 7 \(`RunParked`\) cannot be read"):
        read_event(7, "RunParked", 1, body)


def test_a_fact_of_a_later_revision_is_refused() -> None:
    with pytest.raises(LedgerUnreadable, match="has revision 2, this Planforge reads up to 1"):
        read_event(7, "RunParked", 2, b'{"run":"run-001","reason":""}')


def test_each_upcast_is_of_a_known_kind() -> None:
    assert set(UPCASTS) <= set(EVENTS)
    assert {kind: revision(kind) for kind in EVENTS} == dict.fromkeys(EVENTS, 1)


@pytest.mark.usefixtures("renamed")
def test_a_ledger_with_facts_of_before_is_read_and_its_bytes_and_its_chain_stay(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "old").close()
    db = apsw.Connection(str(tmp_path / "old" / "ledger.db"))
    row = (1, "run-001", 1, "RunParked", 1, "/0", "2026-01-31T23:59:58.000000+00:00", OLD)
    db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, hash_after(b"", *row)))
    db.execute("DROP TABLE runs")
    db.execute("PRAGMA user_version = 1")
    db.close()
    ledger = Ledger.open(tmp_path / "old")
    assert [item.event for item in ledger.since()] == [NEW]
    ledger.append("run-001", [NEW], expected=1)
    found = [(bytes(body), number) for body, number in ledger.query("SELECT body, revision FROM events")]
    assert found == [(OLD, 1), (b'{"run":"run-001","reason":"it waits","until":""}', 2)]
    assert list(ledger.faults()) == []
    ledger.close()
