"""Whether two sides are the same: fields, redacted bodies, and scores of earlier formulas."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.histories import PASSED
from planforge.kernel.events import PatchApplied, StepCompleted
from planforge.kernel.replay.differences import EARLIER, differing, same_but_redacted, same_fact
from planforge.kernel.scores import Measures, StepScore, score


def test_the_fields_that_differ_are_named_with_both_values() -> None:
    one = {"effect": "Say", "body": {"words": "one", "more": [1, 2], "left": 1}}
    other = {"effect": "Say", "body": {"words": "two", "more": [1, 3], "right": None}}
    fields = differing("/0", "differs", one, other).fields
    assert [(field.path, field.recorded, field.asked) for field in fields] == [
        ("body.words", "one", "two"),
        ("body.more[1]", 2, 3),
        ("body.left", 1, msgspec.UNSET),
        ("body.right", msgspec.UNSET, None),
    ]
    assert b'"body.right","asked":null' in msgspec.json.encode(fields)


@pytest.mark.parametrize("other", [None, {"effect": "Shout", "body": {}}, {"fact": "Say"}])
def test_fields_of_different_things_are_not_compared(other: object) -> None:
    assert differing("/0", "differs", {"effect": "Say", "body": {}}, other).fields == ()


@pytest.mark.parametrize(
    ("stored", "asked", "same"),
    [
        (b"one", b"one", True),
        (b"one", b"two", False),
        (b"[redacted:KEY]", b"s3cret", True),
        (b"a [redacted:KEY] b", b"a s3cret b", True),
        (b"a [redacted:KEY] b [redacted:K2] c", b"a x b y c", True),
        (b"a [redacted:KEY] b", b"a s3cret c", False),
        (b"a [redacted:KEY] b", b"z s3cret b", False),
        (b"a [redacted:KEY] b [redacted:K2] c", b"a x y c", False),
        (b"aa[redacted:KEY]aa", b"aaa", False),
    ],
)
def test_a_redacted_body_is_the_same_where_it_was_not_redacted(
    stored: bytes, asked: bytes, same: bool
) -> None:
    assert same_but_redacted(stored, asked) is same


# Scores of earlier formulas


def completed(value: StepScore | None, attempts: int = 2) -> StepCompleted:
    return StepCompleted(plan="plan-001", step="phase-1", attempts=attempts, score=value)


def of_the_first_formula(value: int | None, passed: int, total: int, lines: int) -> StepScore:
    measures = Measures(tests_passed=passed, tests_total=total, diff_size=lines)
    return StepScore(measures=measures, value=value, formula=1)


NOW = score(PASSED, 26, rollbacks=1)
THEN = of_the_first_formula(800 + 200 * 200 // 226, 7, 7, 26)


@pytest.mark.parametrize(
    ("recorded", "same"),
    [
        (completed(THEN), True),
        (completed(msgspec.structs.replace(THEN, value=1000)), False),
        (completed(of_the_first_formula(THEN.value, 6, 7, 26)), False),
        (completed(of_the_first_formula(THEN.value, 7, 7, 25)), False),
        (completed(THEN, attempts=1), False),
        (completed(None), False),
        (completed(msgspec.structs.replace(NOW, value=1)), False),
        (completed(msgspec.structs.replace(THEN, formula=99)), False),
    ],
)
def test_a_score_of_an_earlier_formula_is_compared_by_what_that_formula_took(
    recorded: StepCompleted, same: bool
) -> None:
    assert same_fact(recorded, completed(NOW)) is same


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 10_000))
def test_the_first_formula_gives_what_it_gave(passed: int, failed: int, lines: int) -> None:
    total = passed + failed
    value = EARLIER[1].value(Measures(tests_passed=passed, tests_total=total, diff_size=lines))
    assert value == (800 * passed // total + 200 * 200 // (200 + lines) if total else None)


def test_facts_of_other_kinds_are_the_same_only_if_they_are_equal() -> None:
    applied = PatchApplied(
        plan="p", step="s", attempt=1, content="", scope=(), branch="b", commit="c", tree="t", parent=""
    )
    assert same_fact(applied, applied)
    assert not same_fact(applied, msgspec.structs.replace(applied, tree="u"))
