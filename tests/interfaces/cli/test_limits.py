"""A run whose agent has reached its limit is parked, says until when, and is taken up then."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planforge.kernel.events import PatchApplied, RunParked
from programs import document, planforge
from rehearsals import Rehearsal, copied, rehearsal


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return rehearsal(tmp_path_factory.mktemp("original"))


@pytest.fixture
def plan(original: Rehearsal, tmp_path: Path) -> Rehearsal:
    return copied(original, tmp_path)


def limited(plan: Rehearsal, seconds: int) -> None:
    """Have the first developer run into a limit, once, that ends so long after."""
    message = f"429 rate limit reached, try again in {seconds} seconds"
    error: dict[str, object] = {"error": {"code": -32603, "message": message, "times": 1}}
    plan.scene("Role: developer", "wordcount/frequency.py", "Attempt: 1", do=[error, {"say": "Nothing yet."}])


@pytest.mark.dear
def test_a_parked_run_says_until_when_and_goes_on_then(plan: Rehearsal) -> None:
    limited(plan, 3600)
    process = planforge("plan", "run", "1", cwd=plan.root)
    assert process.returncode == 75
    (parked,) = plan.events(RunParked)
    left = datetime.fromisoformat(parked.until) - datetime.now(UTC)
    assert timedelta(minutes=55) < left <= timedelta(minutes=61)
    shown = parked.until[:16].replace("T", " ") + " UTC"
    assert f"`run-002` is parked until {shown}" in process.stderr
    assert (
        "hint: then run `planforge resume run-002`; at once: `planforge resume run-002 --now`"
        in process.stderr
    )

    status = planforge("status", cwd=plan.root).stdout
    assert f"parked until {shown}" in status
    assert "planforge resume" not in status.partition("Next")[2]
    (row,) = [row for row in document("status", cwd=plan.root)["runs"] if row["run"] == "run-002"]
    assert (row["status"], row["until"]) == ("waiting", parked.until)

    for words in (("resume",), ("resume", "run-002")):
        early = planforge(*words, cwd=plan.root)
        assert early.returncode == 75
        assert f"error: `run-002` is parked until {shown}: its agent is limited" in early.stderr

    plan.as_it_was()
    done = planforge("resume", "run-002", "--now", cwd=plan.root)
    assert done.returncode == 0, done.stderr
    assert [event.step for event in plan.events(PatchApplied)] == ["phase-1", "phase-2"]
    assert list((plan.root / ".planforge" / "homes").glob("*")) == []


@pytest.mark.dear
def test_resume_without_a_name_takes_up_what_was_parked_once_its_time_has_come(plan: Rehearsal) -> None:
    plan.settings("[agents.limits]\nwait_minutes = 0\n")
    limited(plan, 4)
    assert planforge("plan", "run", "1", cwd=plan.root).returncode == 75
    plan.as_it_was()
    (parked,) = plan.events(RunParked)
    left = datetime.fromisoformat(parked.until) - datetime.now(UTC)
    time.sleep(max(left.total_seconds(), 0) + 0.1)
    assert "planforge resume run-002" in planforge("status", cwd=plan.root).stdout
    done = planforge("resume", cwd=plan.root)
    assert done.returncode == 0, done.stderr


@pytest.mark.dear
def test_a_limit_that_ends_soon_is_waited_for(plan: Rehearsal) -> None:
    limited(plan, 4)
    process = planforge("plan", "run", "1", cwd=plan.root)
    assert "`rehearsal` has reached its limit; waiting until " in process.stderr
    assert plan.events(RunParked) == []
    assert process.returncode == 0, process.stderr


def test_resume_with_nothing_to_take_up_says_so(plan: Rehearsal) -> None:
    assert planforge("resume", cwd=plan.root).stdout.strip() == "nothing to resume"
