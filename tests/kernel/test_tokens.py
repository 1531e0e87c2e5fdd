"""How full a context is, and when it is time to hand over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.kernel.tokens import THRESHOLD, TokenState, estimate


def state(used: int = 0, threshold: int = THRESHOLD, *, estimated: bool = True) -> TokenState:
    return TokenState(used=used, threshold=threshold, estimated=estimated)


def test_the_threshold_is_100k_unless_a_profile_says_otherwise() -> None:
    assert THRESHOLD == 100_000


@pytest.mark.parametrize(
    ("used", "threshold", "due"), [(99_999, 100_000, False), (100_000, 100_000, True), (10**9, 0, False)]
)
def test_it_is_due_at_the_threshold_and_never_without_one(used: int, threshold: int, due: bool) -> None:
    assert state(used, threshold).is_due is due


def test_a_reported_number_ends_all_guessing() -> None:
    guessed = state().guessed(4001)
    assert (guessed.used, guessed.estimated) == (1001, True)
    reported = guessed.reported(70)
    assert (reported.used, reported.estimated, reported.threshold) == (70, False, THRESHOLD)
    assert reported.guessed(10**9) == reported
    assert reported.reported(60).used == 60, "an agent that cuts its own context has less of it"


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_more_characters_are_never_thought_to_be_fewer_tokens(one: int, more: int) -> None:
    assert estimate(one) <= estimate(one + more)
    assert (estimate(one) == 0) == (one == 0)
