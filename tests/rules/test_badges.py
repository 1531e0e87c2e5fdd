"""What the phases of a plan have shown: a row of the document each, and what holds of all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.rules.badges import Badge, badge

Phase = tuple[str, str]

WORK, AUDIT = ("implement", "done"), ("audit", "done")
ROWS: dict[str, tuple[list[Phase], str]] = {
    "no phases": ([], "pending"),
    "any fail: an audit": ([WORK, ("audit", "failed")], "failed"),
    "any fail: a phase": ([("implement", "failed"), ("audit", "pending")], "failed"),
    "any fail, before all else": ([WORK, ("implement", "failed"), AUDIT], "failed"),
    "not all terminal: pending": ([WORK, ("audit", "pending")], "pending"),
    "not all terminal: in progress": ([("implement", "in-progress"), AUDIT], "pending"),
    "all skipped": ([("implement", "skipped"), ("audit", "skipped")], "skipped"),
    "test pass and audit pass": ([WORK, AUDIT], "verified"),
    "verified although one was skipped": ([WORK, ("implement", "skipped"), AUDIT], "verified"),
    "audit pass only": ([("read", "done"), AUDIT], "audited"),
    "audited although one was skipped": ([("implement", "skipped"), AUDIT], "audited"),
    "some skipped": ([WORK, ("audit", "skipped")], "skipped"),
    "else: tests and no audit": ([WORK], "pending"),
    "else: nothing shown": ([("read", "done")], "pending"),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_run_state(row: str) -> None:
    phases, expected = ROWS[row]
    assert badge(phases) == expected


PHASES = st.lists(
    st.tuples(
        st.sampled_from(["implement", "read", "audit"]),
        st.sampled_from(["pending", "in-progress", "done", "failed", "skipped"]),
    ),
    max_size=5,
)


@given(phases=PHASES)
def test_a_badge_claims_no_more_than_was_shown(phases: list[Phase]) -> None:
    found = badge(phases)
    if found in (Badge.VERIFIED, Badge.AUDITED):
        assert AUDIT in phases
        assert all(status in ("done", "skipped") for _, status in phases)
    assert (found is Badge.VERIFIED) <= (WORK in phases)
    assert any(status == "failed" for _, status in phases) <= (found is Badge.FAILED)
    assert badge(list(reversed(phases))) is found


@given(phases=PHASES, at=st.integers(0, 5))
def test_whatever_else_was_shown_one_failed_phase_is_a_failure(phases: list[Phase], at: int) -> None:
    assert badge([*phases[:at], ("implement", "failed"), *phases[at:]]) is Badge.FAILED
