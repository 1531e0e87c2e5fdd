"""Scores: from measures alone, the same everywhere, and nothing is gained by not knowing."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kernel.histories import PASSED
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.scores import (
    FORMULA,
    Measures,
    StepScore,
    compare,
    compute,
    measure,
    rank,
    score,
)

FIELDS = Measures.__struct_fields__

counts = st.integers(min_value=0, max_value=10**6)
huge = st.integers(min_value=-(2**70), max_value=2**70)
KNOWN: dict[str, st.SearchStrategy[Any]] = {
    "compile_ok": st.booleans(),
    **{name: st.integers(-3, 12) | huge for name in FIELDS if name != "compile_ok"},
}
measures = st.builds(Measures, **{name: st.none() | known for name, known in KNOWN.items()})
sound = st.builds(
    Measures,
    compile_ok=st.just(True),
    tests_passed=counts,
    tests_total=counts,
    regression_hits=st.just(0),
    **{
        name: st.none() | counts
        for name in ("warnings_delta", "lint_delta", "diff_size", "time_cost_ms", "rollback_count")
    },
).filter(lambda found: 0 < (found.tests_total or 0) >= (found.tests_passed or 0))


def value(found: Measures) -> int:
    """The score of measures that have one."""
    number = compute(found).value
    assert number is not None
    return number


def but(found: Measures, **changes: Any) -> Measures:
    return msgspec.structs.replace(found, **changes)


GOOD = Measures(
    compile_ok=True,
    tests_passed=8,
    tests_total=8,
    warnings_delta=0,
    lint_delta=0,
    diff_size=0,
    rollback_count=0,
    regression_hits=0,
)


# The formula


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 1000),
        ({"tests_passed": 4}, 650),
        ({"tests_passed": 0}, 300),
        ({"tests_passed": 2, "tests_total": 3}, 466 + 300),
        ({"tests_passed": 9}, 1000),
        ({"tests_passed": -5}, 300),
        ({"diff_size": 200}, 925),
        ({"diff_size": 600}, 887),
        ({"diff_size": 10**9}, 850),
        ({"diff_size": -3}, 1000),
        ({"diff_size": None}, 850),
        ({"warnings_delta": 1}, 975),
        ({"warnings_delta": 2, "lint_delta": 4}, 926),
        ({"warnings_delta": -7, "lint_delta": -1}, 1000),
        ({"warnings_delta": None, "lint_delta": None}, 900),
        ({"rollback_count": 1}, 975),
        ({"rollback_count": None}, 950),
        ({"time_cost_ms": 10**9}, 1000),
        ({"compile_ok": False}, 0),
        ({"regression_hits": 1}, 0),
        ({"compile_ok": False, "tests_passed": None, "regression_hits": None}, 0),
        ({"compile_ok": None, "regression_hits": 2, "tests_total": None}, 0),
        ({"compile_ok": None}, None),
        ({"regression_hits": None}, None),
        ({"tests_passed": None}, None),
        ({"tests_total": None}, None),
        ({"tests_passed": 0, "tests_total": 0}, None),
        ({"tests_total": -1}, None),
    ],
)
def test_the_formula(changes: dict[str, Any], expected: int | None) -> None:
    assert compute(but(GOOD, **changes)).value == expected


def documented() -> list[list[str]]:
    text = (Path(__file__).parents[2] / "docs" / "scores.md").read_text()
    rows = text.partition("## Examples")[2].partition("## Order")[0].splitlines()
    return [[cell.strip() for cell in row.strip("| ").split("|")] for row in rows if row.startswith("| ")][1:]


@pytest.mark.parametrize("row", documented(), ids=lambda row: row[0])
def test_the_documented_examples_are_worked_out_right(row: list[str]) -> None:
    case, *cells, parts, expected = row
    passed, total, size, warnings, lint, rollbacks = (None if cell == "?" else int(cell) for cell in cells)
    found = Measures(
        compile_ok={"does not compile": False, "no count of tests": None}.get(case, True),
        tests_passed=passed,
        tests_total=total,
        warnings_delta=warnings,
        lint_delta=lint,
        diff_size=size,
        rollback_count=rollbacks,
        regression_hits=1 if case == "one regression" else 0,
    )
    assert compute(found).value == (None if expected == "?" else int(expected))
    if parts:
        assert sum(int(part) for part in parts.split("+")) == int(expected)


def test_a_score_says_what_it_was_made_from_and_by_which_formula() -> None:
    assert compute(GOOD) == StepScore(measures=GOOD, value=1000, formula=FORMULA)


@given(found=measures)
def test_a_score_lies_between_nought_and_perfect_or_is_unknown(found: Measures) -> None:
    number = compute(found).value
    assert number is None or 0 <= number <= 1000


@given(found=measures)
def test_the_same_measures_have_the_same_score_also_after_they_were_stored(found: Measures) -> None:
    assume(all(abs(getattr(found, name) or 0) < 2**63 for name in FIELDS))
    stored = msgspec.json.decode(msgspec.json.encode(found), type=Measures)
    assert compute(found) == compute(found) == compute(stored)
    assert isinstance(compute(found).value, int | None)


# The law


@given(found=measures)
def test_what_does_not_compile_is_worth_nothing(found: Measures) -> None:
    assert compute(but(found, compile_ok=False)).value == 0


@given(found=measures, hits=counts)
def test_what_breaks_something_is_worth_nothing(found: Measures, hits: int) -> None:
    assert compute(but(found, regression_hits=hits + 1)).value == 0


@given(found=measures, passed=st.none() | counts, total=st.none() | counts)
def test_unknown_tests_never_score_as_passed_tests(
    found: Measures, passed: int | None, total: int | None
) -> None:
    assume(passed is None or total is None)
    unknown = compute(but(found, tests_passed=passed, tests_total=total))
    assert unknown.value in (None, 0)
    all_passed = but(found, tests_passed=total or passed or 1, tests_total=total or passed or 1)
    assert compare(unknown, compute(all_passed)) < 0


@given(found=sound, more=counts)
def test_more_passing_tests_never_lower_a_score(found: Measures, more: int) -> None:
    assert found.tests_passed is not None
    better = but(found, tests_passed=found.tests_passed + more)
    assert value(better) >= value(found)
    assert compare(compute(better), compute(found)) == (1 if more else 0)


@given(found=sound, more=counts)
def test_new_tests_that_pass_never_lower_a_score(found: Measures, more: int) -> None:
    assert found.tests_passed is not None
    assert found.tests_total is not None
    better = but(found, tests_passed=found.tests_passed + more, tests_total=found.tests_total + more)
    assert value(better) >= value(found)
    assert compare(compute(better), compute(found)) == (1 if more else 0)


@given(found=measures, fewer=counts, size=counts)
def test_a_smaller_change_never_lowers_a_score(found: Measures, fewer: int, size: int) -> None:
    smaller, larger = compute(but(found, diff_size=size)), compute(but(found, diff_size=size + fewer))
    assert (smaller.value is None) == (larger.value is None)
    assert (smaller.value or 0) >= (larger.value or 0)
    assert compare(smaller, larger) == (1 if fewer else 0)


@given(
    found=measures,
    name=st.sampled_from(["warnings_delta", "lint_delta", "rollback_count"]),
    count=counts,
    more=counts,
)
def test_fewer_warnings_findings_and_rollbacks_never_lower_a_score(
    found: Measures, name: str, count: int, more: int
) -> None:
    fewer, several = compute(but(found, **{name: count})), compute(but(found, **{name: count + more}))
    assert (fewer.value or 0) >= (several.value or 0)
    assert compare(fewer, several) >= 0


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "time_cost_ms"])
@given(data=st.data())
def test_not_to_know_a_measure_is_never_better_than_any_value_of_it(name: str, data: st.DataObject) -> None:
    found = data.draw(measures)
    unknown = compute(but(found, **{name: None}))
    known = compute(but(found, **{name: data.draw(KNOWN[name])}))
    assert compare(unknown, known) < 0
    assert unknown.value is None or (known.value is not None and unknown.value <= known.value)


# The order


@given(one=measures, other=measures)
def test_any_two_scores_can_be_compared_and_the_answer_does_not_depend_on_who_asks(
    one: Measures, other: Measures
) -> None:
    left, right = compute(one), compute(other)
    assert compare(left, right) in (-1, 0, 1)
    assert compare(left, right) == -compare(right, left)
    assert (compare(left, right) == 0) == (but(one, time_cost_ms=0) == but(other, time_cost_ms=0))


@given(found=measures)
def test_a_score_is_as_good_as_itself(found: Measures) -> None:
    assert compare(compute(found), compute(found)) == 0


@given(found=st.lists(measures, min_size=3, max_size=3))
def test_what_is_better_than_the_better_is_better(found: list[Measures]) -> None:
    a, b, c = sorted(map(compute, found), key=cmp_to_key(compare))
    assert compare(a, b) <= 0
    assert compare(b, c) <= 0
    assert compare(a, c) == min(compare(a, b), compare(b, c)) <= 0


@given(found=st.lists(measures, min_size=1, max_size=8))
def test_the_best_of_several_does_not_depend_on_their_order(found: list[Measures]) -> None:
    scores = [compute(one) for one in found]
    best = max(scores, key=rank)
    assert rank(best) == rank(max(scores[::-1], key=rank))
    assert all(compare(one, best) <= 0 for one in scores)
    assert all(compare(one, other) <= 0 for one, other in pairwise(sorted(scores, key=rank)))


@given(one=measures, other=measures)
def test_a_number_beats_what_is_unknown_and_a_higher_number_a_lower_one(
    one: Measures, other: Measures
) -> None:
    left, right = compute(one), compute(other)
    if left.value is not None and (right.value is None or left.value > right.value):
        assert compare(left, right) == 1


@given(found=measures, milliseconds=st.none() | huge)
def test_no_comparison_hears_of_time(found: Measures, milliseconds: int | None) -> None:
    slower = compute(but(found, time_cost_ms=milliseconds))
    assert slower.value == compute(found).value
    assert compare(slower, compute(found)) == 0


def test_scores_of_an_earlier_formula_are_compared_by_this_one() -> None:
    old = StepScore(measures=but(GOOD, diff_size=500), value=1000, formula=1)
    assert compare(old, compute(but(GOOD, diff_size=400))) == -1


# What evidence says


def evidence(
    passed: int, total: int, outcome: Outcome = Outcome.PASS, failing: tuple[str, ...] = ()
) -> Evidence:
    failed = total - passed if outcome is Outcome.FAIL else 0
    tally = Counts(total=total, passed=passed, failed=failed, skipped=total - passed - failed)
    return msgspec.structs.replace(PASSED, outcome=outcome, counts=tally, failing=failing)


def failed(passed: int, total: int, *failing: str) -> Evidence:
    return evidence(passed, total, Outcome.FAIL, failing)


UNCOUNTED = msgspec.structs.replace(PASSED, counts=None)


def test_measures_of_a_pass() -> None:
    found = measure(
        evidence(5, 7), diff_size=12, rollback_count=1, warnings_delta=2, lint_delta=3, baseline=PASSED
    )
    assert found == Measures(
        compile_ok=True,
        tests_passed=5,
        tests_total=7,
        warnings_delta=2,
        lint_delta=3,
        diff_size=12,
        time_cost_ms=1250,
        rollback_count=1,
        regression_hits=2,
    )


@pytest.mark.parametrize("given_", [PASSED, failed(6, 7, "a"), UNCOUNTED])
def test_evidence_that_cannot_tell_says_nothing_but_how_long_it_took(given_: Evidence) -> None:
    unsure = msgspec.structs.replace(given_, outcome=Outcome.CANNOT_TELL)
    assert measure(unsure) == Measures(time_cost_ms=1250)
    assert score(unsure, 5).value is None


@pytest.mark.parametrize(
    ("found", "told", "compiles"),
    [
        (PASSED, None, True),
        (failed(6, 7), None, True),
        (UNCOUNTED, None, None),
        (msgspec.structs.replace(UNCOUNTED, outcome=Outcome.FAIL), None, False),
        (failed(0, 0), None, False),
        (PASSED, False, False),
        (UNCOUNTED, True, True),
    ],
)
def test_tests_that_ran_have_compiled_unless_somebody_knows_better(
    found: Evidence, told: bool | None, compiles: bool | None
) -> None:
    assert measure(found, compile_ok=told).compile_ok is compiles


@pytest.mark.parametrize(
    ("before", "now", "hits"),
    [
        pytest.param(None, PASSED, 0, id="all pass"),
        pytest.param(None, failed(5, 7, "a", "b"), 2, id="without a baseline every failure is new"),
        pytest.param(failed(5, 7, "a", "b"), failed(5, 7, "a", "b"), 0, id="old failures"),
        pytest.param(failed(5, 7, "a", "b"), failed(6, 7, "b"), 0, id="fewer of them"),
        pytest.param(failed(5, 7, "a", "b"), failed(5, 7, "b", "c"), 1, id="as many, but another"),
        pytest.param(PASSED, failed(5, 7, "a", "b"), 2, id="new failures"),
        pytest.param(failed(5, 7, "a", "a"), failed(5, 7, "a", "a"), 0, id="one name for two tests"),
        pytest.param(failed(6, 7, "a"), failed(5, 7, "a", "a"), 1, id="one name, one more test"),
        pytest.param(None, failed(5, 7), 2, id="failures without a name"),
        pytest.param(failed(6, 7), failed(5, 7), 1, id="one more without a name"),
        pytest.param(failed(5, 7), failed(5, 7), None, id="as many without a name may be others"),
        pytest.param(PASSED, evidence(5, 5), 2, id="tests that are gone"),
        pytest.param(PASSED, evidence(5, 7), 2, id="tests that are skipped now"),
        pytest.param(failed(6, 7, "a"), evidence(6, 6), 0, id="a failing test is gone"),
        pytest.param(PASSED, evidence(9, 9), 0, id="more tests"),
        pytest.param(UNCOUNTED, evidence(1, 1), 0, id="a baseline without counts"),
        pytest.param(PASSED, UNCOUNTED, 0, id="no counts now"),
        pytest.param(
            msgspec.structs.replace(failed(6, 7, "a"), outcome=Outcome.CANNOT_TELL),
            failed(6, 7, "a"),
            1,
            id="a baseline that cannot tell excuses nothing",
        ),
        pytest.param(
            None,
            msgspec.structs.replace(PASSED, outcome=Outcome.FAIL),
            1,
            id="it failed although no test did",
        ),
    ],
)
def test_regressions_are_tests_that_passed_before_and_do_not_now(
    before: Evidence | None, now: Evidence, hits: int | None
) -> None:
    assert measure(now, baseline=before).regression_hits == hits


@given(passed=counts, more=counts, changed_lines=counts)
def test_evidence_that_fails_is_worth_nothing(passed: int, more: int, changed_lines: int) -> None:
    assert score(failed(passed, passed + more), changed_lines).value == 0
    uncounted = msgspec.structs.replace(PASSED, outcome=Outcome.FAIL, counts=None)
    assert score(uncounted, changed_lines).value == 0


@given(changed_lines=counts)
def test_a_pass_without_counts_or_without_tests_has_no_score(changed_lines: int) -> None:
    assert score(UNCOUNTED, changed_lines).value is None
    assert score(evidence(0, 0), changed_lines).value is None


@given(passed=counts, more=counts, changed_lines=counts, seconds=st.floats(min_value=0, max_value=1e6))
def test_the_same_evidence_has_the_same_score_however_long_it_took(
    passed: int, more: int, changed_lines: int, seconds: float
) -> None:
    found = evidence(passed, passed + more)
    slower = score(msgspec.structs.replace(found, seconds=seconds), changed_lines)
    assert slower.value == score(found, changed_lines).value
    assert compare(slower, score(found, changed_lines)) == 0


def test_rollbacks_that_nobody_counted_are_unknown() -> None:
    assert score(PASSED, 0).measures.rollback_count is None
    assert (score(PASSED, 0).value, score(PASSED, 0, 0).value, score(PASSED, 0, 1).value) == (850, 900, 875)
