"""A run that comes to a gate: it waits, a person decides, and it goes on from there; all as processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from decided import of
from planforge.app.demo import story
from planforge.kernel.events import AttemptRejected, DecisionAsked, DecisionMade, PatchApplied, RunEnded
from programs import planforge
from rehearsals import Actions, Rehearsal, copied, rehearsal
from repositories import git

FILE = "wordcount/frequency.py"


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    """A run whose first step has come to a gate."""
    made = rehearsal(tmp_path_factory.mktemp("gated") / "plans")
    made.settings(f'[protect]\nadd = ["{FILE}"]\n')
    actions: Actions = [
        {"write": {"path": FILE, "text": story.FREQUENCY}},
        {"write": {"path": "tests/test_frequency.py", "text": story.FREQUENCY_TEST}},
        {"say": "done"},
    ]
    made.scene("Role: developer", FILE, "Attempt: 1", do=actions)
    process = planforge("plan", "run", "1", cwd=made.root)
    assert process.returncode == 6, process.stderr
    assert "`gate-001` must be opened first" in process.stderr
    assert "planforge gate show gate-001" in process.stderr
    return made


@pytest.fixture
def target(waiting: Rehearsal, tmp_path: Path) -> Rehearsal:
    return copied(waiting, tmp_path / "here")


def branch_has(target: Rehearsal, path: str) -> bool:
    return path in git(target.root, "ls-tree", "-r", "--name-only", "planforge/plan-001").splitlines()


def test_nothing_lands_until_a_person_has_looked(target: Rehearsal) -> None:
    (raised,) = of(target.events(DecisionAsked), "gate")
    assert raised.reasons == (f"`{FILE}`: a protected path is added",)
    assert not branch_has(target, FILE)
    again = planforge("resume", "run-002", cwd=target.root)
    assert again.returncode == 6
    assert len(of(target.events(DecisionAsked), "gate")) == 1
    assert target.events(PatchApplied) == []


@pytest.mark.dear
def test_after_a_yes_exactly_that_tree_lands(target: Rehearsal) -> None:
    said = planforge("gate", "approve", "1", "--as", "Ada", cwd=target.root)
    assert "next: planforge resume run-002" in said.stdout
    status = planforge("status", cwd=target.root).stdout
    assert "`gate-001` was approved by Ada: it can go on" in status
    assert "must be opened" not in status
    resumed = planforge("resume", "run-002", cwd=target.root)
    assert resumed.returncode == 0, resumed.stderr
    (raised,), applied = of(target.events(DecisionAsked), "gate"), target.events(PatchApplied)
    assert raised.content == applied[0].tree
    assert branch_has(target, FILE)
    assert planforge("gate", "list", cwd=target.root).stdout == "no gate is waiting\n"
    assert "used" in planforge("gate", "list", "--all", cwd=target.root).stdout


def test_after_a_no_the_next_attempt_is_told_why_and_comes_to_a_gate_of_its_own(target: Rehearsal) -> None:
    planforge("gate", "reject", "1", "--as", "Ada", "--reason", "name the function better", cwd=target.root)
    better = story.FREQUENCY.replace("ties in alphabetical order", "ties by the alphabet")
    assert better != story.FREQUENCY
    actions: Actions = [
        {"write": {"path": FILE, "text": better}},
        {"write": {"path": "tests/test_frequency.py", "text": story.FREQUENCY_TEST}},
    ]
    target.scene("Role: developer", "name the function better", "Attempt: 2", do=[*actions, {"say": "done"}])
    resumed = planforge("resume", "run-002", cwd=target.root)
    assert resumed.returncode == 6, resumed.stderr
    assert target.events(AttemptRejected)[0].reason == "Ada said no to it: name the function better"
    first, second = of(target.events(DecisionAsked), "gate")
    assert first.content != second.content
    assert [event.choice for event in of(target.events(DecisionMade), "gate")] == ["reject"]


def test_a_run_that_is_cancelled_leaves_no_gate_behind(target: Rehearsal) -> None:
    assert planforge("cancel", "run-002", "--reason", "not now", cwd=target.root).returncode == 0
    assert len(target.events(RunEnded)) >= 1
    assert planforge("gate", "list", cwd=target.root).stdout == "no gate is waiting\n"
    refused = planforge("gate", "approve", "1", "--as", "Ada", cwd=target.root)
    assert refused.returncode == 5
    assert "its run has ended" in refused.stderr


@pytest.mark.dear
def test_resume_without_a_name_goes_on_once_somebody_has_decided(target: Rehearsal) -> None:
    nothing = planforge("resume", cwd=target.root).stdout
    assert nothing == "nothing to resume\nnext: planforge gate show gate-001\n"
    assert planforge("gate", "approve", "1", "--as", "Ada", cwd=target.root).returncode == 0
    resumed = planforge("resume", cwd=target.root)
    assert resumed.returncode == 0, resumed.stderr
    assert branch_has(target, FILE)
