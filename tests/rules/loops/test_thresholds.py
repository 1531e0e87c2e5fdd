"""
Every guard of every policy, at the very place where it fires and one step before.

A row has a history after which the guard is quiet and one after which it fires. Every setting of every policy
has rows at its default and at another value, so that none is read from the wrong place; a test counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import pytest

from planforge.rules.findings import Finding, Severity
from planforge.rules.loops.decisions import Decision, Done, Escalate, Halt, Replan
from planforge.rules.loops.policies import POLICIES, named
from planforge.rules.loops.rounds import History, Round, Suite
from planforge.rules.verdicts import Verdict

WORDS = ["apple", "river", "candle", "mountain", "violet", "harbour", "pencil", "quartz", "lantern", "meadow"]
GREEN = Suite(total=9, passed=9, failed=0)


class Row(NamedTuple):
    """One threshold."""

    policy: str
    guard: str
    setting: str
    """The setting that moves it; or what is fixed, in words."""
    values: Mapping[str, object]
    quiet: History
    fires: History
    decision: type[Decision]


def found(critical: int, medium: int = 0, minor: int = 0, about: str = "") -> tuple[Finding, ...]:
    counts = zip((Severity.BLOCKING, Severity.MEDIUM, Severity.MINOR), (critical, medium, minor), strict=True)
    return tuple(
        Finding(severity=severity, title=f"{about} {WORDS[number % 10]} {severity.value} {number * 7919}")
        for severity, count in counts
        for number in range(count)
    )


def reviewed(*counts: tuple[int, int, int]) -> History:
    return tuple(Round(findings=found(*each)) for each in counts)


def totals(*counts: int) -> History:
    return reviewed(*((0, 0, count) for count in counts))


def fixed(*counts: tuple[int, int]) -> History:
    return tuple(Round(findings=found(9, 0, before), fixed=found(9, 0, after)) for before, after in counts)


def failing(*counts: int) -> History:
    return tuple(Round(tests=Suite(total=99, passed=99 - count, failed=count)) for count in counts)


def required(*counts: int) -> History:
    return tuple(Round(findings=found(count), tests=GREEN) for count in counts)


def red(*names: str) -> History:
    return tuple(
        Round(tests=Suite(total=9, passed=9 - len(each), failed=len(each), failing=tuple(each)))
        for each in names
    )


def ended(*codes: tuple[str, int]) -> History:
    return tuple(
        Round(task=task, exit_code=code, tests=Suite(total=9, passed=8, failed=1)) for task, code in codes
    )


def signed(*signatures: str) -> History:
    return tuple(Round(verdict=Verdict.REVISION, signature=each) for each in signatures)


def plateau(length: int, kept: int, of: int) -> History:
    same, others = found(0, 0, of, "the same"), found(0, 0, of, "something else altogether")
    return (*[Round(findings=same)] * (length - 1), Round(findings=(*same[:kept], *others[kept:])))


def similar(letters: int) -> History:
    """A plateau of one finding, whose ten letters changed so that so many are left."""
    before = Round(findings=(Finding(severity=Severity.BLOCKING, title="a" * 10),))
    now = Round(findings=(Finding(severity=Severity.BLOCKING, title="a" * letters + "b" * (10 - letters)),))
    return (before, before, now)


REVISION = Round(verdict=Verdict.REVISION)
ROWS = [
    # Plan & Forge: revise while something blocks, CAP_REACHED after the last round
    Row("blocking-only", "verdict", "cap", {}, (REVISION,) * 4, (REVISION,) * 5, Escalate),
    Row("blocking-only", "verdict", "cap", {"cap": 2}, (REVISION,), (REVISION,) * 2, Escalate),
    Row("blocking-only", "verdict", "the worst severity", {}, reviewed((1, 0, 0)), reviewed((0, 9, 9)), Done),
    # Forge: so many iterations for each review stage
    Row("max-iterations", "verdict", "max_iterations", {}, (REVISION,) * 2, (REVISION,) * 3, Escalate),
    Row(
        "max-iterations",
        "verdict",
        "max_iterations",
        {"max_iterations": 4},
        (REVISION,) * 3,
        (REVISION,) * 4,
        Escalate,
    ),
    # autoforge: three rounds without progress, three more, the ceiling
    Row("progress", "open", "nothing required", {}, required(1), required(0), Done),
    Row("progress", "open", "no test fails", {}, failing(1), failing(0), Done),
    Row("progress", "stall", "stall_threshold", {}, failing(9, 9, 9), failing(9, 9, 9, 9), Replan),
    Row(
        "progress",
        "stall",
        "stall_threshold",
        {"stall_threshold": 2},
        failing(9, 9),
        failing(9, 9, 9),
        Replan,
    ),
    Row("progress", "stall", "strictly fewer", {}, failing(9, 9, 9, 8), failing(9, 9, 9, 9), Replan),
    Row("progress", "stall", "more is no progress", {}, failing(9, 9, 9), failing(9, 9, 9, 10), Replan),
    Row("progress", "stall", "findings after green", {}, required(3, 3, 3, 2), required(3, 3, 3, 3), Replan),
    Row("progress", "stall", "second approach", {}, failing(*[9] * 6), failing(*[9] * 7), Escalate),
    Row(
        "progress", "stall", "ceiling", {}, failing(*range(90, 70, -1)), failing(*range(90, 69, -1)), Escalate
    ),
    Row(
        "progress", "stall", "ceiling", {"ceiling": 4}, failing(9, 8, 7, 6), failing(9, 8, 7, 6, 5), Escalate
    ),
    Row("fix-rounds", "open", "nothing required", {}, required(1), required(0), Done),
    Row("fix-rounds", "stall", "stall_threshold", {}, failing(9, 9, 9), failing(9, 9, 9, 9), Replan),
    Row("fix-rounds", "stall", "stall_threshold", {"stall_threshold": 1}, failing(9), failing(9, 9), Replan),
    Row("fix-rounds", "stall", "second approach", {}, failing(*[9] * 6), failing(*[9] * 7), Escalate),
    Row(
        "fix-rounds",
        "stall",
        "ceiling",
        {},
        failing(*range(90, 80, -1)),
        failing(*range(90, 79, -1)),
        Escalate,
    ),
    Row("fix-rounds", "stall", "ceiling", {"ceiling": 3}, failing(9, 8, 7), failing(9, 8, 7, 6), Escalate),
    # Plan & Forge: the same failure twice, and how often is mended
    Row("repeated-failure", "signature", "repeats", {}, signed("a", "b"), signed("b", "a", "a"), Escalate),
    Row(
        "repeated-failure", "signature", "repeats", {"repeats": 3}, signed("a", "a"), signed(*"aaa"), Escalate
    ),
    Row(
        "repeated-failure",
        "signature",
        "in a row",
        {},
        signed("a", "b", "a"),
        signed("a", "b", "b"),
        Escalate,
    ),
    Row("repeated-failure", "verdict", "cap", {}, signed("a", "b"), signed("a", "b", "c"), Escalate),
    Row("repeated-failure", "verdict", "cap", {"cap": 1}, (), signed("a"), Escalate),
    # ThoughtForge's builder: the same tests three times, two failing exits on one task
    Row("code-builder", "open", "no test fails", {}, failing(1), failing(0), Done),
    Row("code-builder", "same tests", "same_tests", {}, red("ab", "ba"), red("ab", "ba", "ab"), Halt),
    Row("code-builder", "same tests", "same_tests", {"same_tests": 2}, red("ab"), red("ab", "ab"), Halt),
    Row(
        "code-builder", "same tests", "the identical set", {}, red("ab", "ab", "a"), red("a", "a", "a"), Halt
    ),
    Row("code-builder", "task", "failed_exits", {}, ended(("x", 1)), ended(("x", 1), ("x", 2)), Halt),
    Row(
        *("code-builder", "task", "failed_exits", {"failed_exits": 3}),
        ended(("x", 1), ("x", 1)),
        ended(("x", 1), ("x", 1), ("x", 1)),
        Halt,
    ),
    Row(
        *("code-builder", "task", "one task", {}),
        ended(("x", 1), ("y", 1)),
        ended(("x", 0), ("y", 1), ("y", 1)),
        Halt,
    ),
    Row("code-builder", "max iterations", "ceiling", {}, failing(*[9] * 49), failing(*[9] * 50), Halt),
    Row("code-builder", "max iterations", "ceiling", {"ceiling": 2}, failing(9), failing(9, 9), Halt),
    # ThoughtForge: the six guards
    Row(
        "convergence",
        "fix regression",
        "more than before",
        {},
        fixed((5, 6), (5, 5)),
        fixed((5, 6), (5, 6)),
        Halt,
    ),
    Row("convergence", "fix regression", "two in a row", {}, fixed((5, 6)), fixed((5, 6), (6, 7)), Halt),
    Row(
        *("convergence", "fix regression", "not in a row", {}),
        fixed((5, 6), (5, 5), (5, 6)),
        fixed((5, 5), (5, 6), (5, 6)),
        Halt,
    ),
    Row("convergence", "termination", "critical_max", {}, reviewed((1, 0, 0)), reviewed((0, 0, 0)), Done),
    Row(
        *("convergence", "termination", "critical_max", {"critical_max": 2}),
        reviewed((3, 0, 0)),
        reviewed((2, 0, 0)),
        Done,
    ),
    Row("convergence", "termination", "medium_max", {}, reviewed((0, 4, 0)), reviewed((0, 3, 0)), Done),
    Row(
        "convergence",
        "termination",
        "medium_max",
        {"medium_max": 0},
        reviewed((0, 1, 0)),
        reviewed((0, 0, 5)),
        Done,
    ),
    Row("convergence", "termination", "minor_max", {}, reviewed((0, 3, 6)), reviewed((0, 3, 5)), Done),
    Row(
        "convergence",
        "termination",
        "minor_max",
        {"minor_max": 7},
        reviewed((0, 0, 8)),
        reviewed((0, 0, 7)),
        Done,
    ),
    Row("convergence", "termination", "code", {"code": True}, (Round(),), (Round(tests=GREEN),), Done),
    Row("convergence", "termination", "code", {}, reviewed((1, 0, 0)), (Round(),), Done),
    Row("convergence", "termination", "all tests", {"code": True}, failing(1), (Round(tests=GREEN),), Done),
    Row("convergence", "hallucination", "20 %", {}, totals(12, 11, 10, 12), totals(12, 11, 10, 13), Halt),
    Row(
        "convergence",
        "hallucination",
        "20 %",
        {},
        totals(102, 101, 100, 120),
        totals(102, 101, 100, 121),
        Halt,
    ),
    Row("convergence", "hallucination", "two declines", {}, totals(11, 10, 13), totals(12, 11, 10, 13), Halt),
    Row(
        "convergence",
        "hallucination",
        "in a row",
        {},
        totals(12, 11, 11, 14),
        totals(12, 12, 11, 10, 14),
        Halt,
    ),
    Row(
        *("convergence", "fabrication", "half more than the mean", {}),
        reviewed(*[(0, 4, 4)] * 3, (0, 6, 4)),
        reviewed(*[(0, 4, 4)] * 3, (0, 7, 4)),
        Halt,
    ),
    Row(
        *("convergence", "fabrication", "by two", {}),
        reviewed(*[(0, 1, 4)] * 3, (0, 2, 4)),
        reviewed(*[(0, 1, 4)] * 3, (0, 3, 4)),
        Halt,
    ),
    Row(
        *("convergence", "fabrication", "not before the fourth", {}),
        reviewed(*[(0, 4, 4)] * 2, (0, 7, 4)),
        reviewed(*[(0, 4, 4)] * 3, (0, 7, 4)),
        Halt,
    ),
    Row(
        *("convergence", "fabrication", "the mean of three", {}),
        reviewed((0, 1, 0), (0, 6, 0), (0, 6, 0), (0, 6, 0), (0, 9, 0)),
        reviewed((0, 6, 0), (0, 1, 0), (0, 6, 0), (0, 6, 0), (0, 9, 0)),
        Halt,
    ),
    Row(
        *("convergence", "fabrication", "within twice: medium", {}),
        reviewed(*[(0, 7, 0)] * 3, (0, 14, 0)),
        reviewed((0, 6, 0), *[(0, 7, 0)] * 3, (0, 14, 0)),
        Halt,
    ),
    Row(
        *("convergence", "fabrication", "within twice: minor", {}),
        reviewed(*[(0, 0, 11)] * 3, (0, 0, 22)),
        reviewed((0, 0, 10), *[(0, 0, 11)] * 3, (0, 0, 22)),
        Halt,
    ),
    Row(
        *("convergence", "fabrication", "within twice: critical", {}),
        reviewed((1, 0, 0), *[(1, 7, 0)] * 3, (1, 14, 0)),
        reviewed((0, 0, 0), *[(1, 7, 0)] * 3, (1, 14, 0)),
        Halt,
    ),
    Row(
        *("convergence", "fabrication", "each severity: critical", {}),
        reviewed(*[(0, 0, 0)] * 3, (1, 0, 0)),
        reviewed(*[(0, 0, 0)] * 3, (2, 0, 0)),
        Halt,
    ),
    Row(
        *("convergence", "fabrication", "medium_max", {"medium_max": 4}),
        reviewed(*[(0, 9, 0)] * 3, (0, 18, 0)),
        reviewed(*[(0, 8, 0)] * 3, (0, 16, 0)),
        Halt,
    ),
    Row("convergence", "stagnation", "stagnation_limit", {}, plateau(2, 0, 9), plateau(3, 0, 9), Done),
    Row(
        *("convergence", "stagnation", "stagnation_limit", {"stagnation_limit": 4}),
        plateau(3, 0, 9),
        plateau(4, 0, 9),
        Done,
    ),
    Row("convergence", "stagnation", "70 %", {}, plateau(3, 7, 10), plateau(3, 6, 10), Done),
    Row("convergence", "stagnation", "the same total", {}, totals(9, 9, 8), plateau(3, 0, 9), Done),
    Row("convergence", "stagnation", "0.8 alike", {}, similar(8), similar(7), Done),
    Row("convergence", "max iterations", "max_iterations", {}, totals(*[9] * 49), totals(*[9] * 50), Halt),
    Row(
        "convergence",
        "max iterations",
        "max_iterations",
        {"max_iterations": 3},
        totals(9, 9),
        totals(9, 9, 9),
        Halt,
    ),
]


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.policy}-{row.guard}-{row.setting}-{len(row.values)}"
)
def test_a_guard_fires_at_its_threshold_and_not_before(row: Row) -> None:
    policy = named(row.policy, row.values)
    quiet = [look.decision for look in policy.looks(row.quiet) if look.guard == row.guard]
    assert not any(isinstance(decision, row.decision) for decision in quiet)
    (look,) = (look for look in policy.looks(row.fires) if look.guard == row.guard)
    assert isinstance(look.decision, row.decision)
    assert look.saw
    assert look.decision.reason


def test_every_setting_has_a_row_at_its_default_and_at_another_value() -> None:
    for name, known in POLICIES.items():
        for field in msgspec.structs.fields(known.settings):
            rows = [row for row in ROWS if (row.policy, row.setting) == (name, field.name)]
            assert {field.name in row.values for row in rows} == {True, False}, f"{name}: {field.name}"


def test_every_guard_of_every_policy_has_a_row() -> None:
    asked = {(name, look.guard) for name in POLICIES for look in named(name).looks((Round(),))}
    assert asked == {(row.policy, row.guard) for row in ROWS}
