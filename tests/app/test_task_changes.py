"""The changes that tasks make, in runs of the real program: they go the way that those of plans go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planforge.app.project import Project
from planforge.app.upkeep.setup import initialise
from planforge.kernel import leases
from planforge.kernel.events import (
    AttemptRejected,
    HandoffEmitted,
    LeaseAwaited,
    LeaseGranted,
    PatchProposed,
    StageEnded,
)
from programs import planforge, started
from repositories import git, repository

Scene = dict[str, Any]

YES = "Right.\n\n**Verdict:** Approved\n"
SAID = "The function is in and its test beside it; an empty text has no lines. " * 5
CHECK = (
    "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(1)\n"
)


def plan(*paths: str) -> str:
    named = "\n".join(f"- `{path}` — what it says" for path in paths)
    return f"# Plan\n\n{'A function of its own counts, and is tested. ' * 6}\n\n## Changes\n\n{named}\n"


def writes(path: str) -> Scene:
    return {"write": {"path": path, "text": "ONE = 1\n"}}


def stage(name: str, *do: Scene, task: int = 1, more: tuple[str, ...] = ()) -> Scene:
    return {"when": [f"Task: task-{task:03}", f"Stage: {name}", *more], "do": list(do)}


def says(text: str) -> Scene:
    return {"say": text}


def shop(place: Path, *scenes: Scene) -> Project:
    """A project whose agents play scenes; what they leave beside the script they can wait for."""
    script = place / "rehearsal" / "script.json"
    script.parent.mkdir()
    reviews = [{"when": [f"Stage: {name}"], "do": [says(YES)]} for name in ("review-plan", "review-code")]
    script.write_text(json.dumps({"name": "story", "scenes": [*scenes, *reviews]}))
    settings = (
        '[check]\ncommand = ["python3", "-m", "unittest"]\nreport = "unittest"\n\n'
        '[agents]\ndefault = "rehearsal"\n\n'
        f'[agents.profiles.rehearsal]\nwrites = ["{script.parent}"]\n\n'
        f'[agents.profiles.rehearsal.env]\nPLANFORGE_REHEARSAL_SCRIPT = "{script}"\n'
    )
    repository(place / "shop", {"test_it.py": CHECK, "planforge.toml": settings})
    initialise(place / "shop")
    return Project.find(place / "shop")


def events(project: Project, kind: type) -> list[Any]:
    return [item.event for item in project.ledger.since() if isinstance(item.event, kind)]


def meet(place: Path, mine: str, other: str) -> Scene:
    """Wait until the agent of the other task is at work as well."""
    directory = place / "rehearsal"
    wait = f"touch {directory}/{mine}; until test -e {directory}/{other}; do sleep 0.1; done"
    return {"run": ["sh", "-c", wait]}


@pytest.mark.dear
def test_tasks_change_code_at_once_each_under_a_lease_of_its_own_files(tmp_path: Path) -> None:
    scenes = []
    for number, mine, other in ((1, "one", "two"), (2, "two", "one")):
        scenes.append(stage("plan", says(plan(f"{mine}.py")), task=number))
        met = meet(tmp_path, mine, other)
        scenes.append(stage("implement", writes(f"{mine}.py"), met, says(SAID), task=number))
    project = shop(tmp_path, *scenes)
    runs = [started("pipeline", "run", "default", f"Add {each}", cwd=project.root) for each in ("one", "two")]
    for process in runs:
        process.communicate(timeout=120)
    granted = {event.holder.partition("/")[0]: event.paths for event in events(project, LeaseGranted)}
    assert sorted(granted.values()) == [("one.py",), ("two.py",)]
    assert events(project, LeaseAwaited) == []
    assert sorted(event.files for event in events(project, PatchProposed)) == [("one.py",), ("two.py",)]
    assert leases.held(project.ledger) == []


@pytest.mark.dear
def test_a_task_whose_agent_is_full_is_handed_over_and_goes_on(tmp_path: Path) -> None:
    full = ({"context": 100_000}, {"hang": True})
    project = shop(
        tmp_path,
        stage("plan", says(plan("one.py", "two.py"))),
        stage("implement", writes("two.py"), says(SAID), more=("Turn: 2",)),
        stage("implement", writes("one.py"), says("So far."), *full),
    )
    process = planforge("pipeline", "run", "default", "Add both", cwd=project.root)
    (handoff,) = events(project, HandoffEmitted)
    assert (handoff.plan, handoff.step) == ("task-001", "implement"), process.stderr
    assert handoff.successor == "run-001/implement-1.2"
    (proposed,) = events(project, PatchProposed)
    assert proposed.files == ("one.py", "two.py")
    assert ("implement", "completed") in [(end.stage, end.outcome) for end in events(project, StageEnded)]


@pytest.mark.dear
def test_a_task_that_changes_a_file_which_its_plan_does_not_name_is_rejected(tmp_path: Path) -> None:
    project = shop(
        tmp_path,
        stage("plan", says(plan("one.py"))),
        stage("implement", writes("one.py"), says(SAID), more=("Attempt: 2",)),
        stage("implement", writes("one.py"), writes("three.py"), says(SAID)),
    )
    planforge("pipeline", "run", "default", "Add one", cwd=project.root)
    assert [event.reason for event in events(project, AttemptRejected)] == [
        "it changed `three.py`, which the step does not name"
    ]
    _, taken = events(project, PatchProposed)
    assert taken.files == ("one.py",)
    assert git(project.root, "log", "--format=%s", "-1", taken.commit) == "task-001 implement: Add one"
    assert git(project.root, "rev-parse", f"{taken.commit}^") == git(project.root, "rev-parse", "HEAD")
