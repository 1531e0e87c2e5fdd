"""What the phases of a plan have shown: a row of the document each, and what holds of all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.rules.badges import Badge, Judged, Shown, badge


def phase(kind: str, status: str, *evidence: str) -> Judged:
    """A phase; its evidence as `test`, or `!test` where it failed."""
    shown = tuple(Shown(kind=each.removeprefix("!"), passed=not each.startswith("!")) for each in evidence)
    return Judged(kind=kind, status=status, evidence=shown)


WORK, AUDIT = phase("implement", "done", "test"), phase("audit", "done", "audit")
ROWS: dict[str, tuple[list[Judged], str]] = {
    "no phases": ([], "pending"),
    "any fail: evidence": ([phase("implement", "done", "!build"), AUDIT], "failed"),
    "any fail: an audit": ([WORK, phase("audit", "failed", "!audit")], "failed"),
    "any fail: a phase": ([phase("implement", "failed"), phase("audit", "pending")], "failed"),
    "any fail, before all else": ([phase("implement", "done", "test", "!build"), AUDIT], "failed"),
    "not all terminal: pending": ([WORK, phase("audit", "pending")], "pending"),
    "not all terminal: in progress": ([phase("implement", "in-progress"), AUDIT], "pending"),
    "all skipped": ([phase("implement", "skipped"), phase("audit", "skipped")], "skipped"),
    "test pass and audit pass": ([WORK, AUDIT], "verified"),
    "build pass and audit pass": ([phase("implement", "done", "build"), AUDIT], "verified"),
    "verified although one was skipped": ([WORK, phase("implement", "skipped"), AUDIT], "verified"),
    "audit pass only": ([phase("implement", "done"), AUDIT], "audited"),
    "audited although one was skipped": ([phase("implement", "skipped"), AUDIT], "audited"),
    "some skipped": ([WORK, phase("audit", "skipped")], "skipped"),
    "else: tests and no audit": ([WORK, phase("audit", "done")], "pending"),
    "else: nothing shown": ([phase("implement", "done")], "pending"),
    "skips produce no evidence: pass": ([WORK, phase("audit", "skipped", "audit")], "skipped"),
    "skips produce no evidence: fail": ([phase("implement", "skipped", "!test"), AUDIT], "audited"),
    "audit evidence is never the worker's": ([phase("implement", "done", "test", "audit")], "pending"),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_run_state(row: str) -> None:
    phases, expected = ROWS[row]
    assert badge(phases) == expected


EVIDENCE = st.builds(Shown, kind=st.sampled_from(["build", "test", "audit"]), passed=st.booleans())
PHASES = st.lists(
    st.builds(
        Judged,
        kind=st.sampled_from(["implement", "read", "audit"]),
        status=st.sampled_from(["pending", "in-progress", "done", "failed", "skipped"]),
        evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
    ),
    max_size=5,
)


@given(phases=PHASES)
def test_a_badge_claims_no_more_than_was_shown(phases: list[Judged]) -> None:
    found = badge(phases)
    passed = {
        (phase.kind, each.kind)
        for phase in phases
        if phase.status == "done"
        for each in phase.evidence
        if each.passed
    }
    if found in (Badge.VERIFIED, Badge.AUDITED):
        assert ("audit", "audit") in passed
        assert all(phase.status in ("done", "skipped") for phase in phases)
        assert all(each.passed for phase in phases if phase.status == "done" for each in phase.evidence)
    assert (found is Badge.VERIFIED) <= any(kind in ("build", "test") for _, kind in passed)
    assert any(phase.status == "failed" for phase in phases) <= (found is Badge.FAILED)
    assert badge(list(reversed(phases))) is found


@given(phases=PHASES, at=st.integers(0, 5))
def test_whatever_else_was_shown_one_failed_phase_is_a_failure(phases: list[Judged], at: int) -> None:
    assert badge([*phases[:at], phase("implement", "failed"), *phases[at:]]) is Badge.FAILED
