"""Leases in runs of the real program: two at once, killed, stopped, interrupted and cancelled."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest

from planforge.app.demo import story
from planforge.kernel import leases
from planforge.kernel.events import (
    AttemptRejected,
    EffectFailed,
    EffectIntended,
    LeaseAwaited,
    LeaseExpired,
    LeaseGranted,
    LeasePassed,
    LeaseReleased,
    LeaseRenewed,
    PatchApplied,
    StepCompleted,
)
from planforge.kernel.paths import overlap
from programs import document, planforge
from rehearsals import Rehearsal, copied, eventually, rehearsal
from repositories import git

FILE = "wordcount/frequency.py"
HOUR = timedelta(hours=1)
GOOD: list[dict[str, object]] = [
    {"write": {"path": FILE, "text": story.FREQUENCY}},
    {"write": {"path": "tests/test_frequency.py", "text": story.FREQUENCY_TEST}},
    {"say": story.CORRECTION},
]


@pytest.fixture(scope="module")
def two_plans(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return rehearsal(tmp_path_factory.mktemp("two") / "plans", plans=2)


@pytest.fixture
def plans(two_plans: Rehearsal, tmp_path: Path) -> Rehearsal:
    """Two approved plans that change the same files; the runs of forging them are `run-001` and `run-002`."""
    return copied(two_plans, tmp_path / "here")


def live_leases_overlap(plans: Rehearsal) -> bool:
    """Whether two holders had a path at the same time, at any moment on record."""
    live: dict[int, tuple[str, ...]] = {}
    for event in plans.events(LeaseGranted, LeasePassed, LeaseReleased, LeaseExpired):
        if isinstance(event, LeaseGranted):
            if any(overlap(one, other) for held in live.values() for one in held for other in event.paths):
                return True
            live[event.fence] = event.paths
        elif isinstance(event, LeasePassed):
            live[event.new_fence] = live.pop(event.fence)
        else:
            live.pop(event.fence)
    return False


def held(plans: Rehearsal) -> list[str]:
    return [lease.holder for lease in leases.held(plans.ledger)]


def somebody_else_has(plans: Rehearsal, *, for_good: bool = False) -> None:
    """Somebody else takes the file as soon as it can be had and, unless for good, gives it back."""
    ledger = plans.ledger
    eventually(lambda: not leases.held(ledger))
    lease = leases.claim(ledger, "somebody", [FILE], ttl=HOUR)
    if not for_good:
        leases.release(ledger, "somebody", lease.fence)
    ledger.close()


def ended(process: subprocess.Popen[str], seconds: float = 100) -> tuple[int, str]:
    _, said = process.communicate(timeout=seconds)
    return process.returncode, said


@pytest.mark.dear
def test_two_runs_that_change_the_same_files_take_turns(
    plans: Rehearsal, running: list[subprocess.Popen[str]]
) -> None:
    plans.scene("Step: phase-1", do=[{"sleep": 0.5}, *GOOD])
    running += [plans.start("plan", "run", plan) for plan in ("1", "2")]
    assert [ended(process)[0] for process in running] == [0, 0]
    assert not live_leases_overlap(plans)
    assert plans.events(LeaseAwaited)
    assert held(plans) == []
    for plan in ("plan-001", "plan-002"):
        assert git(plans.root, "rev-list", "--count", f"HEAD..planforge/{plan}") == "2"


@pytest.mark.dear
def test_a_run_whose_patience_ends_can_be_resumed_when_the_file_is_free(plans: Rehearsal) -> None:
    plans.settings("[run]\nlease_patience = 1\n")
    theirs = leases.claim(plans.ledger, "somebody", [FILE], ttl=HOUR)
    process = planforge("plan", "run", "1", cwd=plans.root)
    assert process.returncode == 7, process.stderr
    assert f"error: `{FILE}` is leased to `somebody` until " in process.stderr
    assert "planforge resume run-003" in process.stderr
    assert document("status", cwd=plans.root)["runs"][-1]["status"] == "interrupted"
    assert held(plans) == ["somebody"]
    assert leases.waiting(plans.ledger) == []

    leases.release(plans.ledger, "somebody", theirs.fence)
    assert planforge("resume", "run-003", cwd=plans.root).returncode == 0
    assert held(plans) == []


@pytest.mark.dear
def test_an_interrupted_wait_ends_at_once_and_goes_on_later(
    plans: Rehearsal, running: list[subprocess.Popen[str]]
) -> None:
    theirs = leases.claim(plans.ledger, "somebody", [FILE], ttl=HOUR)
    process = plans.start("plan", "run", "1")
    running.append(process)
    eventually(lambda: plans.events(LeaseAwaited))
    process.send_signal(signal.SIGTERM)
    told = time.monotonic()
    code, said = ended(process, 30)
    assert time.monotonic() - told < 10
    assert (code, "nothing is lost" in said) == (130, True)
    assert leases.waiting(plans.ledger) == []
    leases.release(plans.ledger, "somebody", theirs.fence)
    assert planforge("resume", cwd=plans.root).returncode == 0


@pytest.mark.dear
def test_an_agent_that_works_for_longer_than_a_lease_lasts_keeps_it(plans: Rehearsal) -> None:
    plans.settings("[run]\nlease_seconds = 1\n")
    plans.scene("Step: phase-1", do=[{"sleep": 3}, *GOOD])
    process = planforge("plan", "run", "1", cwd=plans.root)
    assert process.returncode == 0, process.stderr
    assert plans.events(AttemptRejected) == []
    assert len(plans.events(LeaseRenewed)) >= 3
    assert plans.events(LeaseExpired) == []


@pytest.mark.dear(but="True")
@pytest.mark.parametrize("expired", [False, True])
def test_a_run_that_was_killed_is_resumed_whether_its_lease_is_live_or_not(
    plans: Rehearsal, running: list[subprocess.Popen[str]], expired: bool
) -> None:
    plans.settings(f"[run]\nlease_seconds = {1 if expired else 3600}\nlease_patience = 5\n")
    plans.scene("Step: phase-1", do=[{"hang": True}])
    process = plans.start("plan", "run", "1")
    running.append(process)
    eventually(lambda: held(plans))
    eventually((plans.root / ".planforge/worktrees/run-003/phase-1-1").exists)
    process.kill()
    process.communicate()
    if expired:
        somebody_else_has(plans)
    else:
        assert held(plans) == ["run-003/phase-1"]
    plans.as_it_was()
    resumed = planforge("resume", cwd=plans.root)
    assert resumed.returncode == 0, resumed.stderr
    assert not any(event.error == "LeaseLost" for event in plans.events(EffectFailed))
    assert held(plans) == []


@pytest.mark.dear
@pytest.mark.parametrize("meddled", [False, True])
def test_what_was_done_before_a_kill_lands_only_if_nobody_else_had_the_files_since(
    plans: Rehearsal, running: list[subprocess.Popen[str]], meddled: bool
) -> None:
    plans.settings("[run]\nlease_seconds = 1\n")
    plans.scene("Step: phase-1", do=GOOD)
    toml = plans.root / "planforge.toml"
    before = toml.read_text()
    waits = plans.root.parent / "waits"
    waits.write_text("#!/bin/sh\nsleep 60\n")
    waits.chmod(0o755)
    toml.write_text(before.replace("command = [", f'command = ["{waits}", ', 1))
    process = plans.start("plan", "run", "1")
    running.append(process)
    eventually(lambda: any(event.effect == "RunCheck" for event in plans.events(EffectIntended)))
    process.kill()
    process.communicate()
    toml.write_text(before)
    if meddled:
        somebody_else_has(plans)

    resumed = planforge("resume", cwd=plans.root)

    assert resumed.returncode == 0, resumed.stderr
    lost = [event.message for event in plans.events(EffectFailed)]
    rejected = [(event.attempt, event.reason) for event in plans.events(AttemptRejected)]
    if meddled:
        assert lost == ["the lease of `run-003/phase-1` is lost: somebody else has had its files since"]
        assert rejected == [(1, lost[0])]
    else:
        assert (lost, rejected) == ([], [])
    assert next(event.attempts for event in plans.events(StepCompleted)) == 1 + meddled
    assert held(plans) == []


def test_cancelling_a_run_gives_its_leases_back_and_says_why(
    plans: Rehearsal, running: list[subprocess.Popen[str]]
) -> None:
    plans.scene("Step: phase-1", do=[{"hang": True}])
    process = plans.start("plan", "run", "1")
    running.append(process)
    eventually(lambda: held(plans))
    process.kill()
    process.communicate()
    assert planforge("cancel", "run-003", "--reason", "took too long", cwd=plans.root).returncode == 0
    assert held(plans) == []
    (released,) = plans.events(LeaseReleased)
    assert released.reason.endswith(": took too long")


def stopped_at_work(plans: Rehearsal) -> subprocess.Popen[str]:
    """A driver that the system has stopped while its agent was at work."""
    plans.settings("[run]\nlease_seconds = 1\n")
    # In the one place besides its worktree that the sandbox lets this agent write to.
    at_work, marker = plans.script.with_name("at-work"), plans.script.with_name("go")
    wait = f"touch {at_work}; while [ ! -e {marker} ]; do sleep 0.05; done"
    plans.scene("Step: phase-1", "Attempt: 1", do=[{"run": ["sh", "-c", wait]}, *GOOD])
    plans.scene("Step: phase-1", "Attempt: 2", do=GOOD)
    process = plans.start("plan", "run", "1")
    eventually(at_work.exists)
    eventually(lambda: is_stopped(process, plans))
    marker.touch()
    return process


def is_stopped(process: subprocess.Popen[str], plans: Rehearsal) -> bool:
    """Stop it, but not while it has the ledger to itself: nobody could go on then."""
    process.send_signal(signal.SIGSTOP)
    ledger = sqlite3.connect(plans.root / ".planforge" / "ledger.db", timeout=0.2)
    try:
        ledger.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        process.send_signal(signal.SIGCONT)
        return False
    else:
        ledger.rollback()
        return True
    finally:
        ledger.close()


@pytest.mark.dear
def test_a_driver_that_was_stopped_for_too_long_cannot_land_if_its_files_went_to_somebody_else(
    plans: Rehearsal, running: list[subprocess.Popen[str]]
) -> None:
    process = stopped_at_work(plans)
    running.append(process)
    somebody_else_has(plans)
    process.send_signal(signal.SIGCONT)
    code, said = ended(process)
    assert code == 0, said
    assert [event.error for event in plans.events(EffectFailed)] == ["LeaseLost"]
    assert [event.attempt for event in plans.events(PatchApplied)] == [2, 1]
    assert not live_leases_overlap(plans)


@pytest.mark.dear
def test_a_driver_whose_run_was_taken_over_lands_nothing(
    plans: Rehearsal, running: list[subprocess.Popen[str]]
) -> None:
    process = stopped_at_work(plans)
    running.append(process)
    (plans.root / ".planforge" / "locks" / "run-003.lock").unlink()  # as if on another machine
    resumed = planforge("resume", "run-003", cwd=plans.root)
    assert resumed.returncode == 0, resumed.stderr
    tip = git(plans.root, "rev-parse", "planforge/plan-001")
    events = len(plans.events())

    process.send_signal(signal.SIGCONT)
    code, said = ended(process)

    assert code == 1
    assert "taken over by another process" in said
    assert git(plans.root, "rev-parse", "planforge/plan-001") == tip
    added = plans.events()[events:]
    assert {type(event).__name__ for event in added} <= {"BudgetReconciled"}
    assert len(plans.events(PatchApplied)) == 2
