"""Facts of earlier revisions read as today's; their bytes, and so the chain, stay as they were written."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import msgspec
import pytest

from planforge.errors import LedgerUnreadable
from planforge.kernel.events import EVENTS, StepCompleted
from planforge.kernel.ledger import Ledger
from planforge.kernel.ledger.stored import REVISED, chains, read_event
from planforge.kernel.ledger.upcasts import UPCASTS, revision, upcast
from planforge.kernel.scores import Measures, StepScore, compare, compute

PASS = (
    b'{"plan":"plan-001","step":"phase-1","attempts":2,"score":{"outcome":"pass","tests_passed":9,'
    b'"tests_total":9,"changed_lines":28,"value":975}}'
)
AUDIT = b'{"plan":"plan-001","step":"phase-3","attempts":1,"score":null}'
"""Two facts as a ledger of format 1 holds them."""

PASS_TODAY = Measures(
    compile_ok=True, tests_passed=9, tests_total=9, diff_size=28, rollback_count=1, regression_hits=0
)


def completed(body: bytes, stored: int = 1) -> StepCompleted:
    event = read_event(7, "StepCompleted", stored, body)
    assert isinstance(event, StepCompleted)
    return event


def scored(**fields: object) -> StepScore:
    body = msgspec.json.decode(PASS)
    score = completed(msgspec.json.encode(body | {"score": body["score"] | fields})).score
    assert score is not None
    return score


def test_a_completed_step_of_revision_1_has_its_measures_its_value_and_its_formula() -> None:
    event = completed(PASS)
    assert event.score == StepScore(measures=PASS_TODAY, value=975, formula=1)
    assert (event.plan, event.step, event.attempts) == ("plan-001", "phase-1", 2)
    assert completed(AUDIT).score is None


def test_what_revision_1_did_not_measure_is_unknown_and_not_nought() -> None:
    measures = scored().measures
    assert (measures.warnings_delta, measures.lint_delta, measures.time_cost_ms) == (None, None, None)


@pytest.mark.parametrize(
    ("fields", "measures"),
    [
        (
            {"tests_passed": None, "tests_total": None, "value": None},
            Measures(diff_size=28, rollback_count=1, regression_hits=0),
        ),
        (
            {"tests_passed": 0, "tests_total": 0, "value": None},
            Measures(tests_passed=0, tests_total=0, diff_size=28, rollback_count=1, regression_hits=0),
        ),
        (
            {"outcome": "cannot_tell", "value": None},
            Measures(diff_size=28, rollback_count=1),
        ),
        (
            {"outcome": "fail", "value": 0, "tests_passed": 8},
            Measures(
                compile_ok=True,
                tests_passed=8,
                tests_total=9,
                diff_size=28,
                rollback_count=1,
                regression_hits=1,
            ),
        ),
        (
            {"outcome": "fail", "value": 0, "tests_passed": None, "tests_total": None},
            Measures(compile_ok=False, diff_size=28, rollback_count=1, regression_hits=1),
        ),
    ],
    ids=["no counts", "no tests", "cannot tell", "a failure", "a failure without counts"],
)
def test_measures_are_those_that_todays_formula_needs_to_come_to_the_same_end(
    fields: dict[str, object], measures: Measures
) -> None:
    found = scored(**fields)
    assert found.measures == measures
    assert found.value == fields["value"]
    assert compute(found.measures).value == fields["value"]


def test_a_score_of_revision_1_is_compared_with_todays() -> None:
    assert compare(scored(), compute(PASS_TODAY)) == 0
    assert compare(scored(changed_lines=1), compute(PASS_TODAY)) == 1


def test_a_fact_of_todays_revision_is_taken_as_it_is() -> None:
    event = StepCompleted(plan="plan-001", step="phase-1", attempts=1, score=compute(PASS_TODAY))
    assert completed(msgspec.json.encode(event), revision("StepCompleted")) == event


def test_a_fact_of_a_later_revision_is_refused() -> None:
    with pytest.raises(LedgerUnreadable, match=r"event 7 .* has revision 3, this Planforge reads up to 2"):
        completed(PASS, revision("StepCompleted") + 1)
    with pytest.raises(LedgerUnreadable, match="has revision 2, this Planforge reads up to 1"):
        read_event(7, "RunParked", 2, b'{"run":"run-001","reason":""}')


@pytest.mark.parametrize(
    "body",
    [
        b'{"plan":"plan-001","step":"phase-1","attempts":2,"score":{}}',
        b'{"plan":"plan-001","step":"phase-1","score":{"outcome":"pass","tests_total":1}}',
        b'{"plan":"plan-001","step":"phase-1","attempts":2,"score":[1]}',
        b"[]",
        b"null",
        b"{",
    ],
)
def test_a_fact_that_was_never_of_its_revision_cannot_be_read(body: bytes) -> None:
    with pytest.raises(LedgerUnreadable, match=r"event 7 \(`StepCompleted`\) cannot be read"):
        completed(body)


def test_each_upcast_is_of_a_known_kind_and_readers_know_which_kinds_have_one() -> None:
    assert set(UPCASTS) <= set(EVENTS)
    assert set(UPCASTS) == REVISED
    assert {kind: revision(kind) for kind in EVENTS} == {**dict.fromkeys(EVENTS, 1), "StepCompleted": 2}


def test_an_upcast_leaves_what_it_is_given_alone() -> None:
    fields = msgspec.json.decode(PASS)
    upcast("StepCompleted", 1, fields)
    assert fields == msgspec.json.decode(PASS)


# A ledger of format 1, as a Planforge of that time leaves it


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The tables of format 1 with two of its rows."""
    made = Ledger.create(tmp_path / "made")
    made.close()
    directory = tmp_path / "old"
    shutil.copytree(tmp_path / "made", directory)
    db = apsw.Connection(str(directory / "ledger.db"))
    previous = b""
    for version, body in enumerate((PASS, AUDIT), start=1):
        row = (
            version,
            "run-001",
            version,
            "StepCompleted",
            1,
            "/0",
            "2026-01-31T23:59:58.000000+00:00",
            body,
        )
        previous = chains(previous, *row)[1]
        db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, previous))
    db.execute("DROP TABLE cursors")
    db.execute("PRAGMA user_version = 1")
    db.close()
    return directory


def test_a_ledger_of_format_1_is_read_and_its_bytes_and_its_chain_stay(old: Path) -> None:
    ledger = Ledger.open(old)
    found = [item.event for item in ledger.since()]
    assert [event.score for event in found if isinstance(event, StepCompleted)] == [scored(), None]
    assert [bytes(body) for (body,) in ledger.query("SELECT body FROM events ORDER BY seq")] == [PASS, AUDIT]
    assert list(ledger.faults()) == []
    ledger.append("run-001", found, expected=2)
    assert [row for (row,) in ledger.query("SELECT revision FROM events ORDER BY seq")] == [1, 1, 2, 2]
    assert [item.event for item in ledger.since(2)] == found
    assert list(ledger.faults()) == []
    ledger.close()
