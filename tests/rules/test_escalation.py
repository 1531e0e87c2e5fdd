from __future__ import annotations

import pytest

from planforge.rules.escalation import Reached, Tried, after_attempts, after_rounds, stalled
from planforge.rules.findings import Finding, Severity


def failing(*counts: int | None) -> list[Tried]:
    return [Tried(reached=Reached.INSPECTION, failing=count) for count in counts]


NOTHING = Tried(reached=Reached.NOTHING)
OUTSIDE = Tried(reached=Reached.ANSWER)
WEAKENED = Tried(reached=Reached.CHANGE)
HEAVY = Tried(reached=Reached.INSPECTION, failing=3, tier="heavy")


@pytest.mark.parametrize(
    ("tried", "count"),
    [
        ([], 0),
        (failing(3), 1),
        (failing(3, 3), 2),
        (failing(3, 4), 2),
        (failing(3, 2), 0),
        (failing(3, 2, 2), 1),
        (failing(3, 2, 3), 1),
        (failing(3, 2, 4, 2), 2),
        (failing(3, 2, 1), 0),
        (failing(None, None), 2),
        (failing(None, 5), 0),
        ([NOTHING, OUTSIDE], 0),
        ([OUTSIDE, WEAKENED, *failing(9)], 0),
        ([*failing(9), OUTSIDE], 2),
        ([*failing(9), OUTSIDE, *failing(9)], 3),
        ([*failing(3, 3), HEAVY], 0),
        ([*failing(3, 3), HEAVY, *failing(3)], 1),
        ([*failing(3, 3), HEAVY, *failing(2)], 0),
    ],
)
def test_attempts_get_nowhere_until_fewer_tests_fail_or_something_later_does(
    tried: list[Tried], count: int
) -> None:
    assert stalled(tried) == count


def test_two_attempts_without_progress_earn_the_next_one_a_heavy_model_once() -> None:
    tried: list[Tried] = []
    tiers = []
    for _ in range(7):
        reason = after_attempts(tried, "balanced", 2)
        tiers.append("heavy" if reason else "")
        tried.append(Tried(reached=Reached.INSPECTION, failing=3, tier=tiers[-1]))
    assert tiers == ["", "", "heavy", "", "", "heavy", ""]


def test_the_reason_says_how_many_and_nobody_escalates_who_is_told_not_to_or_is_heavy_already() -> None:
    assert after_attempts(failing(3, 3), "balanced", 2) == "2 attempts without progress"
    assert after_attempts(failing(3), "light", 1) == "1 attempt without progress"
    assert after_attempts(failing(3, 3), "balanced", 0) == ""
    assert after_attempts(failing(3, 3), "heavy", 2) == ""


def found(*titles: str) -> tuple[Finding, ...]:
    return tuple(Finding(severity=Severity.BLOCKING, title=title) for title in titles)


@pytest.mark.parametrize(
    ("rounds", "escalates"),
    [
        ([], False),
        ([found("a")], False),
        ([found("a"), found("A ")], True),
        ([found("a", "b"), found("b", "a")], True),
        ([found("a"), found("b")], False),
        ([found("a"), found("a", "b")], False),
        ([(), ()], False),
        ([found("b"), found("a"), found("a")], True),
        ([found("a"), found("a"), found("a")], False),
        ([found("a"), found("a"), found("a"), found("a")], True),
    ],
)
def test_a_reviewer_that_says_the_same_twice_gets_a_heavy_model_once(
    rounds: list[tuple[Finding, ...]], escalates: bool
) -> None:
    assert bool(after_rounds(rounds, "balanced")) is escalates
    assert after_rounds(rounds, "heavy") == ""


def test_the_same_finding_is_known_in_other_words_and_at_another_severity() -> None:
    again = Finding(severity=Severity.MEDIUM, title="**No rollback** (line 40)")
    rounds = [found("No rollback"), (again,)]
    assert after_rounds(rounds, "balanced") == "the same findings in 2 rounds"
