"""The six guards, at the very edge of where each fires."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from planforge.rules.findings import Finding, Severity
from planforge.rules.loops.convergence import (
    Thresholds,
    fabrication,
    fix_regression,
    hallucination,
    max_iterations,
    stagnation,
    termination,
)
from planforge.rules.loops.decisions import Done, Halt
from planforge.rules.loops.guards import Look
from planforge.rules.loops.policies import named
from planforge.rules.loops.rounds import Round, Suite

SEVERITIES = (Severity.BLOCKING, Severity.MEDIUM, Severity.MINOR)
WORDS = ("apple", "river", "candle", "mountain", "violet", "harbour", "pencil", "quartz", "lantern", "meadow")


def found(critical: int, medium: int = 0, minor: int = 0, *, about: str = "") -> tuple[Finding, ...]:
    """So many of each, none like another, and with another `about` none like those either."""
    return tuple(
        Finding(severity=severity, title=f"{about} {WORDS[number % 10]} {severity.value} {number * 7919}")
        for severity, count in zip(SEVERITIES, (critical, medium, minor), strict=True)
        for number in range(count)
    )


def rounds(*counts: tuple[int, ...]) -> tuple[Round, ...]:
    return tuple(Round(findings=found(*each)) for each in counts)


def totals(*counts: int) -> tuple[Round, ...]:
    return rounds(*((0, 0, count) for count in counts))


def fixes(*counts: tuple[int, int | None]) -> tuple[Round, ...]:
    """Rounds with so many findings before the fix, and after it."""
    return tuple(
        Round(findings=found(0, 0, before), fixed=None if after is None else found(0, 0, after))
        for before, after in counts
    )


@pytest.mark.parametrize(
    ("history", "halts"),
    [
        (fixes((5, 6)), False),  # once is a warning
        (fixes((5, 5), (5, 6)), False),
        (fixes((5, 6), (6, 6)), False),
        (fixes((5, 6), (6, 7)), True),
        (fixes((5, 6), (6, 5), (5, 6)), False),  # not in a row
        (fixes((5, 6), (0, None), (5, 6)), True),  # the two most recent fixes
        (fixes((5, 6), (6, None)), False),  # this round had none
        (fixes((5, 6), (6, 7), (7, 7)), False),
        (fixes((0, 1), (1, 2)), True),
    ],
)
def test_two_fixes_in_a_row_that_leave_more_than_they_found_end_it(
    history: tuple[Round, ...], halts: bool
) -> None:
    look = fix_regression()(history)
    assert isinstance(look.decision, Halt) is halts
    if not halts:
        assert look.decision is None


def test_the_first_fix_that_leaves_more_is_warned_of() -> None:
    look = fix_regression()(fixes((5, 6)))
    assert look.saw == "warning: the fix left 6 instead of 5"
    assert look.numbers == {"before": 5, "after": 6}


@pytest.mark.parametrize(
    ("counts", "done"),
    [
        ((0, 3, 5), True),
        ((1, 0, 0), False),
        ((0, 4, 0), False),
        ((0, 0, 6), False),
        ((0, 0, 0), True),
    ],
)
def test_it_is_good_enough_at_the_thresholds_and_not_above(counts: tuple[int, ...], done: bool) -> None:
    assert isinstance(termination(Thresholds())(rounds(counts)).decision, Done) is done


@pytest.mark.parametrize(
    ("tests", "done"),
    [
        (None, False),
        (Suite(total=0, passed=0, failed=0), False),
        (Suite(total=2, passed=1, failed=1), False),
        (Suite(total=2, passed=1, failed=0), False),
        (Suite(total=2, passed=2, failed=0), True),
    ],
)
def test_code_is_good_enough_only_if_there_are_tests_and_all_pass(tests: Suite | None, done: bool) -> None:
    history = (Round(findings=(), tests=tests),)
    assert isinstance(termination(Thresholds(code=True))(history).decision, Done) is done


def test_suggestions_never_keep_it_from_being_good_enough() -> None:
    suggestion = Finding(severity=Severity.SUGGESTION, title="a nicer name")
    assert isinstance(termination(Thresholds())((Round(findings=(suggestion,) * 99),)).decision, Done)


def test_where_critical_findings_are_allowed_the_reason_says_that_some_are_left() -> None:
    decision = termination(Thresholds(critical_max=1))(rounds((1,))).decision
    assert isinstance(decision, Done)
    assert "1 critical" in decision.reason
    assert "allowed" in decision.reason


@pytest.mark.parametrize(
    ("history", "halts"),
    [
        (totals(12, 11, 10, 12), False),  # exactly 20 %
        (totals(12, 11, 10, 13), True),
        (totals(11, 10, 13), False),  # one decline
        (totals(12, 10, 10, 13), False),  # a plateau is no decline
        (totals(20, 12, 11, 10, 13), True),
        (totals(10, 13), False),
        (
            totals(
                10,
            ),
            False,
        ),
        (totals(2, 1, 0, 1), True),
        (totals(52, 51, 50, 60), False),
        (totals(52, 51, 50, 61), True),
    ],
)
def test_a_jump_of_more_than_a_fifth_after_two_declines_halts(
    history: tuple[Round, ...], halts: bool
) -> None:
    assert isinstance(hallucination()(history).decision, Halt) is halts


def test_the_halt_shows_the_course() -> None:
    decision = hallucination()(totals(30, 12, 11, 10, 13)).decision
    assert decision == Halt(
        "findings fell for 3 rounds and then jumped: 30 → 12 → 11 → 10 → 13",
        {"falls": 3, "before": 10, "now": 13},
    )


@pytest.mark.parametrize(
    ("history", "halts"),
    [
        (rounds((0, 4, 4), (0, 4, 4), (0, 4, 4), (0, 6, 4)), False),  # exactly half more
        (rounds((0, 4, 4), (0, 4, 4), (0, 4, 4), (0, 7, 4)), True),
        (rounds((0, 1, 4), (0, 1, 4), (0, 1, 4), (0, 2, 4)), False),  # twice as many, but only one more
        (rounds((0, 1, 4), (0, 1, 4), (0, 1, 4), (0, 3, 4)), True),
        (rounds((0, 4, 4), (0, 4, 4), (0, 7, 4)), False),  # not before the fourth
        (rounds((1, 4, 4), (1, 4, 4), (1, 4, 4), (1, 7, 4)), False),  # never close: a critical one
        (rounds((0, 7, 4), (0, 7, 4), (0, 7, 4), (0, 14, 4)), False),  # never close: more than 2 x 3 medium
        (rounds((0, 6, 10), (0, 7, 4), (0, 7, 4), (0, 7, 4), (0, 14, 4)), True),  # close once, long ago
        (rounds((0, 6, 11), (0, 7, 4), (0, 7, 4), (0, 7, 4), (0, 14, 4)), False),
        (rounds((0, 0, 0), (0, 0, 0), (0, 0, 0), (2, 0, 0)), True),
        (rounds((0, 0, 0), (0, 0, 0), (0, 0, 0), (1, 0, 0)), False),
        (rounds((0, 1, 4), (0, 2, 4), (0, 2, 4), (0, 3, 4)), False),  # mean 5/3: up by 4/3
        (rounds((0, 1, 4), (0, 1, 4), (0, 2, 4), (0, 3, 4)), False),  # mean 4/3: up by 5/3
        (rounds((0, 3, 4), (0, 1, 4), (0, 2, 4), (0, 4, 4)), True),  # mean 2: up by 2, twice as many
    ],
)
def test_a_severity_that_swells_when_it_was_nearly_done_halts(
    history: tuple[Round, ...], halts: bool
) -> None:
    assert isinstance(fabrication(Thresholds())(history).decision, Halt) is halts


def test_how_close_is_close_follows_the_thresholds() -> None:
    history = rounds((0, 7, 0), (0, 7, 0), (0, 7, 0), (0, 14, 0))
    assert fabrication(Thresholds(medium_max=3))(history).decision is None
    assert isinstance(fabrication(Thresholds(medium_max=4))(history).decision, Halt)


def plateau(kept: int, of: int, *, length: int = 3) -> tuple[Round, ...]:
    """Rounds with the same total, the last of which keeps so many findings of the one before."""
    same = found(0, 0, of, about="the same")
    others = found(0, 0, of, about="something else altogether")
    return (*[Round(findings=same)] * (length - 1), Round(findings=(*same[:kept], *others[kept:])))


@pytest.mark.parametrize(
    ("history", "done"),
    [
        (plateau(7, 10), False),  # exactly 70 %
        (plateau(6, 10), True),
        (plateau(0, 10, length=2), False),
        (plateau(0, 10, length=4), True),
        (plateau(10, 10), False),
        (plateau(0, 0), False),
        ((*totals(9), *plateau(0, 10, length=2)), False),
        ((*plateau(0, 10, length=2), *totals(9)), False),
    ],
)
def test_a_plateau_on_which_findings_rotate_is_the_end(history: tuple[Round, ...], done: bool) -> None:
    assert isinstance(stagnation(3)(history).decision, Done) is done


@pytest.mark.parametrize(("letters", "same"), [(8, True), (7, False)])
def test_two_descriptions_are_the_same_from_four_fifths_on(letters: int, same: bool) -> None:
    before = (Finding(severity=Severity.MINOR, title="a" * 10),)
    now = (Finding(severity=Severity.MINOR, title="a" * letters + "b" * (10 - letters)),)
    history = (Round(findings=before), Round(findings=before), Round(findings=now))
    assert stagnation(3)(history).numbers["kept"] == int(same)


def test_a_plateau_with_something_critical_is_done_as_the_document_says_and_says_so() -> None:
    history = tuple(
        Round(findings=found(2, about=about)) for about in ("one thing", "two that", "all of it, yes")
    )
    decision = stagnation(3)(history).decision
    assert isinstance(decision, Done)
    assert decision.reason.endswith("; 2 critical are still open")


@pytest.mark.parametrize(("count", "halts"), [(49, False), (50, True), (51, True)])
def test_it_halts_at_the_ceiling(count: int, halts: bool) -> None:
    assert isinstance(max_iterations(50)(totals(*[9] * count)).decision, Halt) is halts


def fired(looks: Sequence[Look]) -> list[str]:
    return [look.guard for look in looks if look.decision is not None]


def test_the_guards_are_asked_in_order_and_the_first_that_fires_decides() -> None:
    policy = named("convergence", {"max_iterations": 2})
    good = Round(findings=found(0, 0, 1), fixed=found(0, 0, 2))
    looks = policy.looks((good, good))
    assert [look.guard for look in looks] == [
        "fix regression",
        "termination",
        "hallucination",
        "fabrication",
        "stagnation",
        "max iterations",
    ]
    assert fired(looks) == ["fix regression", "termination", "max iterations"]
    assert isinstance(policy((good, good)), Halt)
    assert isinstance(policy((good,)), Done)
