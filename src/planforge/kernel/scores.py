"""
A number for a step, from evidence alone.

Integers only, so that the same measures give the same number on any machine. Of
1000 points:

- not compiling, or any regression: 0;
- otherwise, unless it is known that it compiles, that nothing regressed and how
  the tests went: no number at all. Unknown is not 0, and never beats a number;
- otherwise 700 · passed/total, 150 · 200/(200 + changed lines), 50/(1 + new
  warnings), 50/(1 + new lint findings) and 50/(1 + rollbacks), each rounded down.
  A measure that is unknown earns no points.

So more passing tests never lower it, a smaller change never lowers it, and no known
value of a measure is worth less than not knowing it. Wall-clock time is recorded
and is in no number and no comparison. `docs/scores.md` works some examples out.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from planforge.kernel.evidence import Evidence, Outcome

TESTS, SIZE, WARNINGS, LINT, ROLLBACKS = 700, 150, 50, 50, 50
HALF_SIZE = 200
"""The number of changed lines at which half of the size points are gone."""

FORMULA = 2
"""Goes up when the formula changes; a recorded score says which one made it."""


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one step; None is unknown."""

    compile_ok: bool | None = None
    """Whether the tree could be built and its tests started."""
    tests_passed: int | None = None
    tests_total: int | None = None
    warnings_delta: int | None = None
    lint_delta: int | None = None
    diff_size: int | None = None
    """Lines added and removed."""
    time_cost_ms: int | None = None
    """An observation, kept for people; it is in no formula and no comparison."""
    rollback_count: int | None = None
    """Attempts that were thrown away before this one."""
    regression_hits: int | None = None
    """Tests that passed before the step and do not pass now: they fail, are skipped, or are gone."""


class StepScore(msgspec.Struct, frozen=True, kw_only=True):
    """What the score was made from, and the score."""

    measures: Measures
    value: int | None
    """0 to 1000; None is unknown."""
    formula: int = FORMULA


def compute(measures: Measures) -> StepScore:
    """The score of these measures."""
    return StepScore(measures=measures, value=_value(measures))


def measure(
    evidence: Evidence,
    *,
    baseline: Evidence | None = None,
    compile_ok: bool | None = None,
    diff_size: int | None = None,
    rollback_count: int | None = None,
    warnings_delta: int | None = None,
    lint_delta: int | None = None,
) -> Measures:
    """
    What evidence says, against what a check of the tree before the step said.

    Without a baseline every failing test counts as a regression. Without a separate word on whether it
    compiles, tests that ran say so.
    """
    counts = evidence.counts if evidence.outcome is not Outcome.CANNOT_TELL else None
    return Measures(
        compile_ok=_compiled(evidence) if compile_ok is None else compile_ok,
        tests_passed=counts.passed if counts else None,
        tests_total=counts.total if counts else None,
        warnings_delta=warnings_delta,
        lint_delta=lint_delta,
        diff_size=diff_size,
        time_cost_ms=round(evidence.seconds * 1000),
        rollback_count=rollback_count,
        regression_hits=_regressions(evidence, baseline),
    )


def score(evidence: Evidence, changed_lines: int, rollbacks: int | None = None) -> StepScore:
    """Score one step from the evidence on its tree and the size of its change."""
    return compute(measure(evidence, diff_size=changed_lines, rollback_count=rollbacks))


def compare(one: StepScore, other: StepScore) -> int:
    """-1, 0 or 1: whether `one` is worse than, as good as or better than `other`."""
    left, right = rank(one), rank(other)
    return (left > right) - (left < right)


def rank(scored: StepScore) -> tuple[tuple[int, int], ...]:
    """
    A key to sort by, the best last: the value, then what the value rounds away or leaves out.

    The value is worked out anew, so that scores which an earlier formula made are compared by the same one.
    """
    measures = scored.measures
    return (
        _more(_value(measures)),
        _more(measures.compile_ok),
        _more(measures.tests_passed),
        _less(measures.tests_total),
        _less(measures.regression_hits),
        _less(measures.diff_size),
        _less(measures.warnings_delta),
        _less(measures.lint_delta),
        _less(measures.rollback_count),
    )


def _more(value: int | None) -> tuple[int, int]:
    """Where more is better, and anything is better than not to know."""
    return (0, 0) if value is None else (1, int(value))


def _less(value: int | None) -> tuple[int, int]:
    """Where less is better, and anything is better than not to know."""
    return (0, 0) if value is None else (1, -value)


def _value(measures: Measures) -> int | None:
    if measures.compile_ok is False or (measures.regression_hits or 0) > 0:
        return 0
    passed, total = measures.tests_passed, measures.tests_total
    if measures.compile_ok is None or measures.regression_hits is None:
        return None
    if passed is None or total is None or total < 1:
        return None
    points = TESTS * max(0, min(passed, total)) // total
    if measures.diff_size is not None:
        points += SIZE * HALF_SIZE // (HALF_SIZE + max(measures.diff_size, 0))
    for weight, count in (
        (WARNINGS, measures.warnings_delta),
        (LINT, measures.lint_delta),
        (ROLLBACKS, measures.rollback_count),
    ):
        if count is not None:
            points += weight // (1 + max(count, 0))
    return points


def _compiled(evidence: Evidence) -> bool | None:
    if evidence.outcome is Outcome.CANNOT_TELL:
        return None
    if evidence.counts is not None and evidence.counts.total > 0:
        return True
    return False if evidence.outcome is Outcome.FAIL else None


def _regressions(evidence: Evidence, baseline: Evidence | None) -> int | None:
    if evidence.outcome is Outcome.CANNOT_TELL:
        return None
    before = baseline if baseline and baseline.outcome is not Outcome.CANNOT_TELL else None
    gone = _gone(evidence, before)
    if evidence.outcome is Outcome.PASS:
        return gone
    named, unnamed = _failures(evidence)
    old_named, old_unnamed = _failures(before) if before else (Counter[str](), 0)
    hits = max((named - old_named).total() + max(unnamed - old_unnamed, 0), gone)
    if hits == 0 and unnamed:
        return None  # as many failures without a name as before may be the same ones, or others
    return hits


def _gone(evidence: Evidence, before: Evidence | None) -> int:
    """How many tests passed before and cannot be among those that pass now, by the counts alone."""
    if before is None or before.counts is None or evidence.counts is None:
        return 0
    return max(before.counts.passed - evidence.counts.passed, 0)


def _failures(evidence: Evidence) -> tuple[Counter[str], int]:
    """The failing tests by name, and how many failures have none: a failed check has one at least."""
    named = Counter(evidence.failing)
    failed = evidence.counts.failed if evidence.counts else 0
    if evidence.outcome is Outcome.FAIL:
        failed = max(failed, 1)
    return named, max(failed - named.total(), 0)
