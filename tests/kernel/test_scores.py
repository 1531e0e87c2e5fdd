from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kernel.histories import PASSED
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.scores import PERFECT, StepScore, score

lines = st.integers(min_value=0, max_value=10**9)
tests = st.integers(min_value=1, max_value=10**6)


def evidence(passed: int, total: int, outcome: Outcome = Outcome.PASS) -> Evidence:
    counts = Counts(total=total, passed=passed, failed=0, skipped=total - passed)
    return msgspec.structs.replace(PASSED, outcome=outcome, counts=counts)


def value(passed: int, total: int, changed_lines: int) -> int:
    found = score(evidence(passed, total), changed_lines).value
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("passed", "total", "changed_lines", "expected"),
    [
        (7, 7, 0, 1000),
        (7, 7, 200, 900),
        (7, 7, 600, 850),
        (7, 7, 10**9, 800),
        (1, 2, 0, 600),
        (0, 5, 0, 200),
        (2, 3, 1, 533 + 199),
        (7, 7, -3, 1000),
    ],
)
def test_the_formula(passed: int, total: int, changed_lines: int, expected: int) -> None:
    assert value(passed, total, changed_lines) == expected


@given(passed=tests, more=tests, total=tests, changed_lines=lines)
def test_more_passing_tests_never_lower_a_score(
    passed: int, more: int, total: int, changed_lines: int
) -> None:
    assume(passed + more <= total)
    assert value(passed + more, total, changed_lines) >= value(passed, total, changed_lines)


@given(passed=tests, more=tests, total=tests, changed_lines=lines)
def test_new_tests_that_pass_never_lower_a_score(
    passed: int, more: int, total: int, changed_lines: int
) -> None:
    assume(passed <= total)
    assert value(passed + more, total + more, changed_lines) >= value(passed, total, changed_lines)


@given(passed=tests, total=tests, changed_lines=lines, fewer=lines)
def test_a_smaller_change_never_lowers_a_score(
    passed: int, total: int, changed_lines: int, fewer: int
) -> None:
    assume(passed <= total)
    assert value(passed, total, changed_lines) >= value(passed, total, changed_lines + fewer)


@given(passed=tests, total=tests, changed_lines=lines)
def test_a_score_lies_between_nought_and_perfect(passed: int, total: int, changed_lines: int) -> None:
    assume(passed <= total)
    assert 0 <= value(passed, total, changed_lines) <= PERFECT


@given(passed=tests, total=tests, changed_lines=lines)
def test_evidence_that_fails_is_worth_nothing(passed: int, total: int, changed_lines: int) -> None:
    assert score(evidence(passed, total, Outcome.FAIL), changed_lines).value == 0
    uncounted = msgspec.structs.replace(PASSED, outcome=Outcome.FAIL, counts=None)
    assert score(uncounted, changed_lines).value == 0


@given(passed=tests, total=tests, changed_lines=lines)
def test_evidence_that_cannot_tell_has_no_score(passed: int, total: int, changed_lines: int) -> None:
    assert score(evidence(passed, total, Outcome.CANNOT_TELL), changed_lines).value is None


@given(changed_lines=lines)
def test_a_pass_without_counts_or_without_tests_has_no_score(changed_lines: int) -> None:
    assert score(msgspec.structs.replace(PASSED, counts=None), changed_lines).value is None
    assert score(evidence(0, 0), changed_lines).value is None


@given(passed=tests, total=tests, changed_lines=lines, seconds=st.floats(min_value=0, max_value=1e6))
def test_the_same_evidence_has_the_same_score_however_long_it_took(
    passed: int, total: int, changed_lines: int, seconds: float
) -> None:
    found = evidence(passed, total)
    slower = msgspec.structs.replace(found, seconds=seconds)
    assert score(found, changed_lines) == score(slower, changed_lines)


def test_a_score_says_what_it_was_made_from() -> None:
    made = StepScore(outcome=Outcome.PASS, tests_passed=3, tests_total=4, changed_lines=200, value=700)
    assert score(evidence(3, 4), 200) == made
    unknown = score(msgspec.structs.replace(PASSED, counts=None), 5)
    assert (unknown.tests_passed, unknown.tests_total, unknown.value) == (None, None, None)
