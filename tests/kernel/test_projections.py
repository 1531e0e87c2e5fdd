"""The tables that quick answers come from, event by event."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from decided import approval
from kernel.histories import PASSED, PHASE_1, PHASE_2, PHASE_3
from planforge.kernel.events import (
    AttemptRejected,
    DriverStarted,
    Event,
    ItemOpened,
    PatchApplied,
    Payload,
    PlanEnded,
    PlanForged,
    PlanStarted,
    PlanWritten,
    RunEnded,
    RunParked,
    RunStarted,
    StepCompleted,
    StepFailed,
    StepStarted,
)
from planforge.kernel.ledger import Ledger
from planforge.kernel.projections import NAMES, TABLES
from planforge.kernel.scores import score

R, P, S = "run-001", "plan-001", "phase-2"

started = RunStarted(run=R, flow="forge", flow_version=1, subject=P, request=Payload())
driven = DriverStarted(run=R, fence=1, process=1)
waiting = RunParked(run=R, reason="approve?")

created = ItemOpened(item=P, title="Words", request="Count", path="docs/plans/plan-001.md")
written = PlanWritten(plan=P, round=2, cause="audit", title="All words", content="c1", object="o1")
forged = PlanForged(plan=P, content="c1", rounds=2, reason="", clean=True)
asked, approved = approval(P, "c2")
begun = PlanStarted(
    plan=P, run=R, content="c2", branch="b", base="ba5e", steps=(PHASE_1, PHASE_2, PHASE_3), kept=("phase-1",)
)
first, second = (StepStarted(plan=P, step=S, attempt=attempt, base="ba5e") for attempt in (1, 2))
audit = StepStarted(plan=P, step="phase-3", attempt=1, base="ba5e")
rejected = AttemptRejected(plan=P, step=S, attempt=1, reason="it fails")
applied = PatchApplied(
    plan=P, step=S, attempt=2, content="c2", scope=(), branch="b", commit="dec0de", tree="t", parent="ba5e"
)
done = StepCompleted(plan=P, step=S, attempts=2, score=score(PASSED, 200))
unscored = StepCompleted(plan=P, step=S, attempts=1, score=None)
failed = StepFailed(plan=P, step=S, attempts=2, reason="no more attempts")


def ended(succeeded: bool) -> PlanEnded:
    return PlanEnded(plan=P, run=R, succeeded=succeeded, reason="", branch="b", commit="dec0de")


def run_ended(succeeded: bool) -> RunEnded:
    return RunEnded(run=R, succeeded=succeeded, reason="why", exit_code=0)


def check(ledger: Ledger, given: Sequence[Event], query: str, rows: list[tuple[object, ...]]) -> None:
    ledger.append("stream", given, expected=0)
    assert list(ledger.query(query)) == rows
    ledger.rebuild()
    assert list(ledger.query(query)) == rows


@pytest.mark.parametrize(
    ("given", "status", "reason"),
    [
        ([started], "running", ""),
        ([started, driven], "running", ""),
        ([started, waiting], "waiting", "approve?"),
        ([started, waiting, driven], "running", ""),
        ([started, run_ended(True)], "done", "why"),
        ([started, run_ended(False)], "failed", "why"),
    ],
)
def test_a_run_has_the_status_of_what_happened_to_it_last(
    ledger: Ledger, given: list[Event], status: str, reason: str
) -> None:
    row = (R, "forge", P, status, reason)
    check(ledger, given, "SELECT run, flow, subject, status, reason FROM runs", [row])


def test_a_run_says_when_it_started_and_when_it_last_moved(ledger: Ledger) -> None:
    at = [item.at for item in ledger.append("stream", [started, driven, waiting], expected=0)]
    assert list(ledger.query("SELECT started_at, updated_at FROM runs")) == [(at[0], at[2])]


@pytest.mark.parametrize(
    ("given", "row"),
    [
        ([], ("Words", "DRAFT", "", "", 0, "", "")),
        ([written], ("All words", "DRAFT", "c1", "o1", 2, "", "")),
        ([written, forged], ("All words", "REVIEW", "c1", "o1", 2, "", "")),
        ([written, forged, asked, approved], ("All words", "APPROVED", "c2", "o1", 2, "", "")),
        ([begun], ("Words", "IMPLEMENTING", "", "", 0, "b", "ba5e")),
        ([begun, first], ("Words", "IMPLEMENTING", "", "", 0, "b", "ba5e")),
        ([begun, applied], ("Words", "IMPLEMENTING", "", "", 0, "b", "dec0de")),
        ([begun, audit], ("Words", "AUDITING", "", "", 0, "b", "ba5e")),
        ([begun, ended(True)], ("Words", "DONE", "", "", 0, "b", "dec0de")),
        ([begun, ended(False)], ("Words", "REVIEW", "", "", 0, "b", "dec0de")),
    ],
)
def test_a_plan_has_the_status_of_what_happened_to_it_last(
    ledger: Ledger, given: list[Event], row: tuple[object, ...]
) -> None:
    query = "SELECT title, status, content, object, rounds, branch, landed FROM plans"
    check(ledger, [created, *given], query, [row])


@pytest.mark.parametrize(
    ("given", "row"),
    [
        ([], ("pending", 0, "", None, "")),
        ([first], ("in-progress", 1, "", None, "")),
        ([first, rejected], ("in-progress", 1, "", None, "it fails")),
        ([first, rejected, second], ("in-progress", 2, "", None, "it fails")),
        ([first, rejected, second, applied], ("in-progress", 2, "dec0de", None, "it fails")),
        ([first, rejected, second, applied, done], ("done", 2, "dec0de", score(PASSED, 200).value, "")),
        ([first, unscored], ("done", 1, "", None, "")),
        ([first, rejected, second, failed], ("failed", 2, "", None, "no more attempts")),
        ([first, failed, begun], ("failed", 1, "", None, "no more attempts")),
    ],
)
def test_a_step_has_the_status_of_what_happened_to_it_last(
    ledger: Ledger, given: list[Event], row: tuple[object, ...]
) -> None:
    query = "SELECT status, attempts, landed, score, reason FROM steps WHERE step = 'phase-2'"
    check(ledger, [created, begun, *given], query, [row])


def test_the_steps_of_a_plan_keep_their_order_and_kept_ones_are_done(ledger: Ledger) -> None:
    rows: list[tuple[object, ...]] = [
        ("phase-1", "Count", "implement", "done"),
        ("phase-2", "Show", "implement", "pending"),
        ("phase-3", "Audit", "audit", "pending"),
    ]
    query = "SELECT step, title, kind, status FROM steps ORDER BY ordinal"
    check(ledger, [created, begun], query, rows)


def test_plans_and_steps_of_the_same_name_do_not_mix(ledger: Ledger) -> None:
    other = PlanStarted(plan="plan-002", run=R, content="c", branch="x", base="y", steps=(PHASE_2,), kept=())
    check(
        ledger,
        [created, begun, other, first],
        "SELECT plan, status FROM steps WHERE step = 'phase-2' ORDER BY plan",
        [("plan-001", "in-progress"), ("plan-002", "pending")],
    )


def test_every_table_is_folded_anew() -> None:
    assert sorted(re.findall(r"CREATE TABLE (\w+)", TABLES)) == sorted(NAMES)
