"""Policies by name: how each goes, and what none of them may ever do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.errors import InvalidInput
from planforge.rules.findings import Finding, Severity
from planforge.rules.loops.decisions import Continue, Done, Escalate, Halt, Replan
from planforge.rules.loops.policies import POLICIES, named
from planforge.rules.loops.rounds import Round, Suite
from planforge.rules.verdicts import Verdict
from tries import tries


def failing(*counts: int) -> tuple[Round, ...]:
    return tuple(Round(tests=Suite(total=100, passed=100 - count, failed=count)) for count in counts)


def required(count: int) -> Round:
    findings = tuple(
        Finding(severity=Severity.BLOCKING, title=f"required {number}") for number in range(count)
    )
    return Round(findings=findings, tests=Suite(total=100, passed=100, failed=0))


def course(policy: str, history: tuple[Round, ...], **values: object) -> list[str]:
    """What the policy decides after each round, up to the one that ends the loop."""
    rule = named(policy, values)
    decided = []
    for length in range(1, len(history) + 1):
        decision = rule(history[:length])
        decided.append(type(decision).__name__)
        if decision.ends:
            break
    return decided


def test_progress_goes_on_replans_once_after_three_stalls_and_asks_after_three_more() -> None:
    assert course("progress", failing(9, 8, 8, 8, 8, 7, 7, 7, 7, 7)) == [
        *["Continue"] * 4,
        "Replan",
        *["Continue"] * 3,
        "Escalate",
    ]


def test_strictly_fewer_failures_reset_the_stall() -> None:
    assert course("progress", failing(9, 9, 9, 8, 8, 8, 7, 7, 7, 6)) == ["Continue"] * 10


def test_as_many_failures_as_before_are_no_progress_and_more_are_none_either() -> None:
    assert course("progress", failing(5, 5, 6, 6)) == [*["Continue"] * 3, "Replan"]


def test_findings_after_green_tests_are_progress_however_many_they_are() -> None:
    history = (*failing(2, 2, 2), required(9), required(9), required(8), required(0))
    assert course("progress", history) == [*["Continue"] * 6, "Done"]


def test_going_back_to_red_is_no_progress() -> None:
    history = (required(3), *failing(1), required(3), *failing(1), *failing(1), *failing(1))
    assert course("progress", history) == [
        "Continue",
        "Continue",
        "Continue",
        "Continue",
        "Continue",
        "Replan",
    ]


@pytest.mark.parametrize(("policy", "ceiling"), [("progress", 20), ("fix-rounds", 10)])
def test_even_steady_progress_ends_at_the_ceiling(policy: str, ceiling: int) -> None:
    decided = course(policy, failing(*range(99, 60, -1)))
    assert decided == [*["Continue"] * ceiling, "Escalate"]


def test_no_tests_at_all_are_never_the_end_of_a_build() -> None:
    nothing = Round(tests=Suite(total=0, passed=0, failed=0))
    assert "Done" not in course("progress", (nothing,) * 30)
    assert "Done" not in course("code-builder", (nothing,) * 60)


def test_a_reviewer_that_does_not_approve_keeps_the_loop_open_without_findings() -> None:
    assert course("progress", (Round(verdict=Verdict.UNKNOWN), Round(verdict=Verdict.APPROVED))) == [
        "Continue",
        "Done",
    ]


def test_the_same_failure_twice_in_a_row_is_for_a_person() -> None:
    def seen(*signatures: str) -> tuple[Round, ...]:
        return tuple(Round(verdict=Verdict.REVISION, signature=signature) for signature in signatures)

    assert course("repeated-failure", seen("a", "b", "a"), cap=9) == ["Continue"] * 3
    assert course("repeated-failure", seen("a", "b", "b"), cap=9) == ["Continue", "Continue", "Escalate"]
    assert course("repeated-failure", seen("", "", ""), cap=9) == ["Continue"] * 3
    assert course("repeated-failure", seen("a", "b", "c")) == ["Continue", "Continue", "Escalate"]


def test_the_same_failing_tests_three_times_or_two_failed_exits_on_one_task_are_stuck() -> None:
    def red(*names: str) -> Round:
        return Round(tests=Suite(total=9, passed=9 - len(names), failed=len(names), failing=names))

    def ended(task: str, code: int) -> Round:
        return Round(task=task, exit_code=code, tests=Suite(total=9, passed=8, failed=1))

    assert course("code-builder", (red("a"), red("a", "b"), red("b", "a"), red("a", "b"))) == [
        *["Continue"] * 3,
        "Halt",
    ]
    assert course("code-builder", (red("a"), red("b"), red("a"))) == ["Continue"] * 3
    assert course("code-builder", (ended("x", 1), ended("x", 1))) == ["Continue", "Halt"]
    assert (
        course("code-builder", (ended("x", 1), ended("y", 1), ended("y", 0), ended("y", 2)))
        == ["Continue"] * 4
    )


def test_a_review_stage_escalates_when_its_iterations_are_used_up() -> None:
    revision = Round(verdict=Verdict.REVISION)
    assert course("max-iterations", (revision,) * 4) == ["Continue", "Continue", "Escalate"]
    assert course("max-iterations", (revision,) * 4, max_iterations="4") == [*["Continue"] * 3, "Escalate"]


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("nope", {}, "there is no policy `nope`"),
        ("progress", {"cap": 3}, "has no setting `cap`"),
        ("progress", {"ceiling": "many"}, "cannot be set so"),
        ("progress", {"ceiling": 0}, "cannot be set so"),
        ("blocking-only", {"cap": 0}, "cannot be set so"),
        ("convergence", {"stagnation_limit": 1}, "cannot be set so"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, values: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        named(name, values)


# What holds for every history

FINDINGS = st.lists(
    st.builds(
        Finding, severity=st.sampled_from(Severity), title=st.sampled_from(["a", "bb", "ccc", "dddd dddd"])
    ),
    max_size=8,
).map(tuple)
TESTS = st.one_of(
    st.none(),
    st.integers(0, 6).flatmap(
        lambda total: st.integers(0, total).map(
            lambda failed: Suite(
                total=total,
                passed=total - failed,
                failed=failed,
                failing=tuple(f"t{number}" for number in range(failed)),
            )
        )
    ),
)
ROUNDS = st.builds(
    Round,
    findings=FINDINGS,
    verdict=st.one_of(st.none(), st.sampled_from(Verdict)),
    fixed=st.one_of(st.none(), FINDINGS),
    tests=TESTS,
    signature=st.sampled_from(["", "a", "b"]),
    task=st.sampled_from(["x", "y"]),
    exit_code=st.sampled_from([None, 0, 1]),
)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=tries(240), deadline=None)
@given(kinds=st.lists(ROUNDS, min_size=1, max_size=6))
def test_every_policy_ends_on_every_history(name: str, kinds: list[Round]) -> None:
    rule = named(name)
    history = tuple(kinds[number % len(kinds)] for number in range(60))
    assert any(rule(history[:length]).ends for length in range(1, len(history) + 1))


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=tries(400), deadline=None)
@given(history=st.lists(ROUNDS, min_size=1, max_size=8).map(tuple), allowed=st.integers(0, 2))
def test_no_policy_is_done_while_something_blocks_unless_it_says_so(
    name: str, history: tuple[Round, ...], allowed: int
) -> None:
    decision = named(name, {"critical_max": allowed} if name == "convergence" else {})(history)
    if not isinstance(decision, Done):
        return
    latest = history[-1]
    critical = latest.counts.critical
    assert latest.verdict is not Verdict.UNKNOWN
    if name != "convergence":
        assert (latest.decided, critical) == (Verdict.APPROVED, 0)
    elif critical:
        plateau = decision.reason.endswith(f"; {critical} critical are still open")
        within = (
            decision.reason.endswith(f", of which {allowed} critical are allowed") and critical <= allowed
        )
        assert plateau or within


def test_an_approval_over_something_blocking_is_for_a_person() -> None:
    blocking = Finding(severity=Severity.BLOCKING, title="no rollback")
    contradiction = Round(verdict=Verdict.APPROVED, findings=(blocking,))
    for name in ("blocking-only", "max-iterations", "repeated-failure"):
        assert isinstance(named(name)((contradiction,)), Escalate)


def test_a_review_that_nobody_can_read_is_never_good_enough() -> None:
    nothing = Round(verdict=Verdict.UNKNOWN)
    assert course("convergence", (nothing,) * 50) == [*["Continue"] * 49, "Halt"]


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=tries(240), deadline=None)
@given(history=st.lists(ROUNDS, min_size=1, max_size=8).map(tuple))
def test_a_decision_is_that_of_the_first_guard_that_fired_and_has_a_reason(
    name: str, history: tuple[Round, ...]
) -> None:
    policy = named(name)
    fired = [look.decision for look in policy.looks(history) if look.decision]
    decision = policy(history)
    assert decision == (fired[0] if fired else Continue(f"nothing stops it after round {len(history)}"))
    assert decision.reason
    assert isinstance(decision, Continue | Replan | Done | Halt | Escalate)


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("convergance", {}, "there is no policy `convergance`; did you mean `convergence`?"),
        ("blocking-only", {"capp": 3}, "policy `blocking-only` has no setting `capp`; did you mean `cap`?"),
    ],
)
def test_a_misspelt_policy_or_setting_is_told_with_the_nearest(
    name: str, values: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        named(name, values)
    assert refused.value.message == problem
