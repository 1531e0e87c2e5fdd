"""
A number for a step, from evidence alone.

Integers only, so that the same evidence gives the same score on any machine:

- no evidence, evidence that cannot tell, or evidence without counts: no score;
- evidence that fails: 0;
- otherwise 800 · passed/total + 200 · 200/(200 + changed lines), out of 1000.

More passing tests never lower it and a smaller change never lowers it. Time is
not in it.
"""

from __future__ import annotations

import msgspec

from planforge.kernel.evidence import Evidence, Outcome

PERFECT = 1000
TESTS_WEIGHT = 800
SIZE_WEIGHT = 200
HALF_SIZE = 200
"""The number of changed lines at which half of the size points are gone."""


class StepScore(msgspec.Struct, frozen=True, kw_only=True):
    """What the score was made from, and the score."""

    outcome: Outcome
    tests_passed: int | None
    tests_total: int | None
    changed_lines: int
    value: int | None
    """0 to 1000; None is unknown, which is not 0 and never beats a number."""


def score(evidence: Evidence, changed_lines: int) -> StepScore:
    """Score one step from the evidence on its tree and the size of its change."""
    counts = evidence.counts
    return StepScore(
        outcome=evidence.outcome,
        tests_passed=counts.passed if counts else None,
        tests_total=counts.total if counts else None,
        changed_lines=changed_lines,
        value=_value(evidence, changed_lines),
    )


def _value(evidence: Evidence, changed_lines: int) -> int | None:
    if evidence.outcome is Outcome.FAIL:
        return 0
    if evidence.outcome is Outcome.CANNOT_TELL or evidence.counts is None or evidence.counts.total < 1:
        return None
    tests = TESTS_WEIGHT * evidence.counts.passed // evidence.counts.total
    size = SIZE_WEIGHT * HALF_SIZE // (HALF_SIZE + max(changed_lines, 0))
    return tests + size
