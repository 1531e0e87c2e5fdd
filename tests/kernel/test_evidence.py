"""What parts add up to, what changed between two pieces of evidence, and what is on record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.another_client import another_client
from kernel.histories import FAILED, PASSED
from planforge.kernel.events import Event, VerifyFailed, VerifyOk
from planforge.kernel.evidence import (
    Counts,
    Coverage,
    Evidence,
    Outcome,
    Part,
    combined,
    compare,
)
from planforge.kernel.ledger import Ledger
from planforge.kernel.recorded_evidence import latest, lookup
from planforge.kernel.scores import measure

PASS, FAIL, CANNOT_TELL = Outcome.PASS, Outcome.FAIL, Outcome.CANNOT_TELL


def part(name: str, outcome: Outcome = PASS, **fields: Any) -> Part:
    return Part(name=name, outcome=outcome, **({"reason": f"{name} said so"} | fields))


def counts(total: int, passed: int, failed: int = 0, skipped: int = 0) -> Counts:
    return Counts(total=total, passed=passed, failed=failed, skipped=skipped)


def evidence(*parts: Part, tree: str = "7ree", failing: Sequence[str] = (), **fields: Any) -> Evidence:
    tests = next((item for item in parts if item.name == "tests"), None)
    outcome, reason = combined(parts)
    known = {"outcome": outcome, "reason": reason, "counts": tests.counts if tests else None, "tree": tree}
    return msgspec.structs.replace(PASSED, parts=parts, failing=tuple(failing), **(known | fields))


# Parts


@pytest.mark.parametrize(
    ("parts", "outcome", "reason"),
    [
        ([part("tests")], PASS, "tests said so"),
        ([part("build"), part("lint"), part("tests")], PASS, "tests said so"),
        ([part("build", FAIL), part("tests", CANNOT_TELL, ran=False)], FAIL, "build: build said so"),
        ([part("types", CANNOT_TELL), part("tests")], CANNOT_TELL, "types: types said so"),
        ([part("types", CANNOT_TELL), part("tests", FAIL)], FAIL, "tests said so"),
        ([part("lint", FAIL, required=False), part("tests")], PASS, "tests said so"),
        ([part("lint", CANNOT_TELL, required=False), part("tests")], PASS, "tests said so"),
        ([part("tests", FAIL, required=False)], FAIL, "tests said so"),
        ([part("tests", CANNOT_TELL)], CANNOT_TELL, "tests said so"),
        ([part("build")], CANNOT_TELL, "there is no check `tests`"),
        ([], CANNOT_TELL, "there is no check `tests`"),
    ],
)
def test_what_parts_add_up_to(parts: list[Part], outcome: Outcome, reason: str) -> None:
    assert combined(parts) == (outcome, reason)


PARTS = st.builds(
    part, st.sampled_from(["build", "lint", "tests", "own"]), st.sampled_from(Outcome), required=st.booleans()
)


@given(st.lists(PARTS, max_size=5))
def test_only_tests_that_passed_and_nothing_required_that_did_not_pass(parts: list[Part]) -> None:
    deserved = any(item.name == "tests" for item in parts) and all(
        item.outcome is PASS for item in parts if item.required or item.name == "tests"
    )
    assert (combined(parts)[0] is PASS) == deserved


# Comparing


BEFORE = evidence(
    part("lint", findings=4, required=False),
    part("types", findings=1, required=False),
    part("tests", FAIL, counts=counts(4, 2, 2), warnings=3, coverage=Coverage(covered=50, total=100)),
    failing=["t.a", "t.b"],
    tree="old",
)


def test_what_is_newly_failing_fixed_and_gone_is_told_by_name() -> None:
    after = evidence(
        part("lint", findings=6, required=False),
        part("types", findings=0, required=False),
        part("tests", FAIL, counts=counts(4, 2, 2), warnings=1, coverage=Coverage(covered=60, total=100)),
        failing=["t.b", "t.c"],
    )
    delta = compare(BEFORE, after, ["t.a", "t.b", "t.c", "t.d"], ["t.a", "t.b", "t.c", "t.e"])
    assert (delta.base, delta.newly_failing, delta.fixed) == ("old", ("t.c",), ("t.a",))
    assert (delta.vanished, delta.vanished_at_least) == (("t.d",), 0)
    assert delta.counts == counts(0, 0, 0)
    assert (delta.lint_delta, delta.warnings_delta, delta.coverage_delta) == (1, -2, 1000)


def test_a_failing_test_that_was_taken_away_is_not_fixed() -> None:
    after = evidence(part("tests", FAIL, counts=counts(3, 2, 1)), failing=["t.b"])
    delta = compare(BEFORE, after, ["t.a", "t.b", "t.c", "t.d"], ["t.b", "t.c", "t.d"])
    assert (delta.fixed, delta.vanished, delta.vanished_at_least) == ((), ("t.a",), 1)


def test_of_two_tests_with_one_name_one_cannot_vanish_behind_the_other() -> None:
    after = evidence(part("tests", counts=counts(3, 3)))
    delta = compare(BEFORE, after, ["t.a", "t.a", "t.b", "t.c"], ["t.a", "t.b", "t.c"])
    assert delta.vanished == ("t.a",)


def test_without_names_the_counts_say_how_many_are_gone_at_least() -> None:
    delta = compare(BEFORE, evidence(part("tests", counts=counts(1, 1))))
    assert (delta.vanished, delta.vanished_at_least) == ((), 3)


def test_failures_without_names_fix_nothing() -> None:
    after = evidence(part("tests", FAIL, counts=counts(4, 2, 2)), failing=["t.b"])
    assert compare(BEFORE, after).fixed == ()


def test_evidence_that_cannot_tell_is_compared_with_nothing() -> None:
    after = evidence(part("tests", CANNOT_TELL), failing=[])
    delta = compare(BEFORE, after)
    assert (delta.counts, delta.newly_failing, delta.fixed, delta.warnings_delta) == (None, (), (), None)


def test_tests_are_compared_although_another_part_cannot_tell() -> None:
    after = evidence(part("build", CANNOT_TELL), part("tests", counts=counts(5, 5)))
    assert (after.outcome, compare(BEFORE, after).counts) == (CANNOT_TELL, counts(1, 3, -2))


def test_findings_are_compared_only_where_the_same_was_counted() -> None:
    after = evidence(part("lint", findings=9, required=False), part("tests", counts=counts(4, 4)))
    assert compare(BEFORE, after).lint_delta is None  # nobody knows about the types


def test_a_comparison_feeds_the_score() -> None:
    after = evidence(
        part("build"),
        part("lint", findings=2, required=False),
        part("types", findings=1, required=False),
        part("tests", counts=counts(4, 4), warnings=4),
    )
    delta = compare(BEFORE, after)
    measures = measure(
        after,
        baseline=BEFORE,
        compile_ok=delta.compile_ok,
        warnings_delta=delta.warnings_delta,
        lint_delta=delta.lint_delta,
    )
    assert (measures.compile_ok, measures.tests_passed, measures.tests_total) == (True, 4, 4)
    assert (measures.warnings_delta, measures.lint_delta, measures.regression_hits) == (1, -2, 0)


@pytest.mark.parametrize(("outcome", "compiles"), [(PASS, True), (FAIL, False), (CANNOT_TELL, None)], ids=str)
def test_only_a_build_says_whether_it_compiles(outcome: Outcome, compiles: bool | None) -> None:
    assert evidence(part("build", outcome), part("tests")).compile_ok is compiles
    assert evidence(part("tests")).compile_ok is None


# On record


def on(tree: str, mark: str, outcome: Outcome = PASS, **fields: Any) -> Event:
    base = PASSED if outcome is PASS else FAILED
    found = msgspec.structs.replace(base, tree=tree, fingerprint=mark, outcome=outcome, **fields)
    kind = VerifyOk if outcome is PASS else VerifyFailed
    return kind(plan="", step="", attempt=0, evidence=found)


def found(ledger: Ledger, tree: str, mark: str) -> tuple[Outcome, str] | None:
    known = lookup(ledger, tree, mark)
    return (known.outcome, known.reason) if known else None


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ([], None),
        ([on("t", "f")], (PASS, "all 7 tests pass")),
        ([on("t", "f", FAIL)], (FAIL, "1 of 7 tests fails")),
        ([on("t", "f", CANNOT_TELL)], None),
        ([on("t", "f"), on("t", "f", CANNOT_TELL)], (PASS, "all 7 tests pass")),
        ([on("t", "f", reason="once"), on("t", "f", reason="again")], (PASS, "again")),
        ([on("t", "f"), on("t", "f", FAIL)], None),
        ([on("t", "f", FAIL), on("t", "f"), on("t", "f")], None),
        ([on("t", "g")], None),
        ([on("u", "f")], None),
        ([on("t", "")], None),
        ([on("t", "f", reason="measured"), on("t", "f", reason="reused", reused=True)], (PASS, "measured")),
    ],
)
def test_what_is_found_again(
    ledger: Ledger, given_: list[Event], expected: tuple[Outcome, str] | None
) -> None:
    ledger.append("evidence", given_, expected=0)
    assert found(ledger, "t", "f") == expected
    assert lookup(ledger, "t", "") is None
    ledger.rebuild()
    assert found(ledger, "t", "f") == expected


def test_the_newest_for_a_tree_is_found_however_it_was_determined(ledger: Ledger) -> None:
    assert latest(ledger, "t") is None
    events = [on("t", "f"), on("t", "", FAIL), on("u", "f"), on("t", "f", CANNOT_TELL)]
    ledger.append("evidence", events, expected=0)
    known = latest(ledger, "t")
    assert known is not None
    assert known.outcome is FAIL


def test_evidence_of_before_there_were_parts_is_read_still() -> None:
    known = msgspec.to_builtins(PASSED)
    for name in ("parts", "sandbox", "fingerprint", "reused"):
        del known[name]
    assert msgspec.convert(known, Evidence) == PASSED


def test_a_ledger_of_format_2_is_brought_up_to_date_and_its_evidence_is_found(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    ledger.append("evidence", [on("t", "f")], expected=0)
    ledger.append_all([], {"subscriber": 1})
    ledger.close()
    another_client(tmp_path, "DROP TABLE evidence", "PRAGMA user_version = 2")
    again = Ledger.open(tmp_path)
    assert found(again, "t", "f") == (PASS, "all 7 tests pass")
    assert (again.cursor("subscriber"), list(again.faults())) == (1, [])
    again.close()
