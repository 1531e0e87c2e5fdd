"""Agents that give nothing usable: asked once more in short, then refused, or a person decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from planforge.app.demo import story
from planforge.app.history.replays import replayed
from planforge.kernel.events import AttemptRejected, ContextComposed, StepCompleted, TierEscalated
from programs import document, planforge
from rehearsals import Rehearsal
from workshops import workshop

SHORT = "You must produce a result"


def new(place: Path) -> Rehearsal:
    return Rehearsal(workshop(place), place / "rehearsal" / "script.json")


def test_a_drafter_that_says_nothing_is_asked_once_more_in_short_and_the_forge_goes_on(
    tmp_path: Path,
) -> None:
    made = new(tmp_path)
    made.scene("Role: drafter", do=[{"say": "Sure, I can do that."}])
    made.scene("Role: drafter", SHORT, do=[{"say": story.DRAFT}])
    process = planforge("forge", story.REQUEST, cwd=made.root)
    assert process.returncode == 0, process.stderr
    told = [(event.role, event.simplified) for event in made.events(ContextComposed)]
    assert told[:3] == [("drafter", False), ("drafter", True), ("auditor", False)]
    assert "the drafter was told" in process.stderr
    assert "asked again, in short" in process.stderr
    ledger = made.ledger
    assert replayed(ledger, "run-001").difference is None
    ledger.close()


@pytest.mark.dear
def test_a_drafter_that_fails_twice_makes_the_run_wait_and_resuming_asks_again(tmp_path: Path) -> None:
    made = new(tmp_path)
    made.scene("Role: drafter", do=[{"exit": 3}])
    process = planforge("forge", story.REQUEST, cwd=made.root)
    assert process.returncode == 6, process.stderr
    assert "the drafter of plan-001 gave nothing that could be used, twice" in process.stderr
    assert "planforge resume run-001" in process.stderr
    assert [run["status"] for run in document("status", cwd=made.root)["runs"]] == ["waiting"]

    made.as_it_was()
    process = planforge("resume", "run-001", cwd=made.root)
    assert process.returncode == 0, process.stderr
    assert [row["status"] for row in document("plan", "list", cwd=made.root)] == ["REVIEW"]
    assert len([event for event in made.events(ContextComposed) if event.role == "drafter"]) == 3


@pytest.mark.dear
def test_a_developer_that_crashes_is_asked_once_more_within_its_attempt(plan: Rehearsal) -> None:
    plan.scene("Step: phase-1", "Attempt: 2", do=[{"write": {"path": "left", "text": "x"}}, {"exit": 3}])
    good: list[dict[str, object]] = [
        {"write": {"path": "wordcount/frequency.py", "text": story.FREQUENCY}},
        {"write": {"path": "tests/test_frequency.py", "text": story.FREQUENCY_TEST}},
        {"say": story.CORRECTION},
    ]
    plan.scene("Step: phase-1", "Attempt: 2", SHORT, do=good)
    process = planforge("plan", "run", "1", cwd=plan.root)
    assert process.returncode == 0, process.stderr
    done = {event.step: event.attempts for event in plan.events(StepCompleted)}
    assert done["phase-1"] == 2
    assert len(plan.events(AttemptRejected)) == 1
    told = [event.simplified for event in plan.events(ContextComposed) if event.step == "phase-1"]
    assert told == [False, False, True]


def test_two_attempts_that_get_nowhere_and_the_third_has_a_heavy_model(plan: Rehearsal) -> None:
    lie: list[dict[str, object]] = [
        {"write": {"path": "wordcount/frequency.py", "text": story.WRONG_FREQUENCY}},
        {"write": {"path": "tests/test_frequency.py", "text": story.FREQUENCY_TEST}},
        {"say": story.LIE},
    ]
    plan.scene("Step: phase-1", do=lie)
    process = planforge("plan", "run", "1", cwd=plan.root)
    assert process.returncode == 1
    (escalated,) = plan.events(TierEscalated)
    assert (escalated.step, escalated.attempt, escalated.tier) == ("phase-1", 3, "heavy")
    assert "the developer gets a heavy model for this attempt" in process.stderr
