"""A run that a person has ended replays and proves, whatever it was and however far it had come."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from fixing import ADA, prepared
from planforge.app import cancellation, driver, forges, tasks
from planforge.app.decisions import gates
from planforge.app.history import proof_checks, proofs, replays
from planforge.app.items import task_rows
from planforge.app.plans import fixes, work
from planforge.app.project import Project
from planforge.errors import Interrupted, NeedsPerson
from planforge.kernel.events import EffectIntended, Recorded
from planforge.kernel.objects import Objects
from rehearsals import Rehearsal
from texts import CLEAN, PLAN, Scene, says, writes

OWN = """
[pipelines.small]
about = "a plan that is reviewed and a change that a person looks at"
requires = ["look"]
stages = [
  {name = "plan", role = "planner", writes = ["plan"], outputs = "artifact {task}/PLAN.md min=50"},
  {name = "review", role = "reviewer", verdict = "review", judges = ["plan"]},
  {name = "implement", role = "developer", writes = ["code"], gate = "after review = approved"},
  {name = "look", role = "approver", verdict = "person", judges = ["code"]},
  {name = "land", role = "collator", lands = true},
]
"""
SCENES: tuple[Scene, ...] = (
    (("Role: drafter",), says(PLAN)),
    (("Role: auditor",), says(CLEAN)),
    (("Stage: plan",), says("The plan is to write one text more. " * 4)),
    (("Stage: review",), says("Right.\n\n**Verdict:** Approved\n")),
    (("Role: developer",), writes("one/a.txt")),
)
LATE = {"forge": "MarkPlan", "fix": "Land", "plan_run": "Land", "pipeline": "Land"}
"""An effect near the end of each flow."""


class Killed(Exception):
    """A process ends."""


class Cut:
    """A run as it would be on record if it had been cancelled earlier."""

    def __init__(self, project: Project, events: Iterable[Recorded]) -> None:
        self.objects: Objects = project.ledger.objects
        self._events = list(events)

    def stream(self, name: str, /) -> list[Recorded]:
        del name
        return self._events


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = prepared(tmp_path, *SCENES)
    made.settings(OWN)
    return Project(made.root)


@pytest.fixture
def begun(project: Project, request: pytest.FixtureRequest) -> tuple[Project, str]:
    """A run of the flow that a test names."""
    match request.param:
        case "pipeline":
            return project, tasks.begin(project, "small", "A text more")
        case "fix":
            return project, fixes.begin(project, "Say it", actor=ADA, files=["one/a.txt"])
        case "plan_run":
            approved: Rehearsal = request.getfixturevalue("plan")
            return Project(approved.root), work.begin_plan_run(Project(approved.root), "1")
    return project, forges.begin_forge(project, "Some texts")


@pytest.mark.parametrize(("begun", "effect"), LATE.items(), indirect=["begun"])
def test_a_run_that_was_cancelled_replays_and_proves_wherever_it_was(
    begun: tuple[Project, str], effect: str
) -> None:
    """As if its process had been killed after any of its events, and it was cancelled then."""
    project, run = begun

    def kill(recorded: Recorded) -> None:
        if isinstance(recorded.event, EffectIntended) and recorded.event.effect == effect:
            raise Killed

    with pytest.raises((NeedsPerson, Killed)) as stopped:
        driver.drive(project, run, kill)
    if stopped.type is NeedsPerson:
        gates.approve(project, "gate-001", actor=ADA)
        with pytest.raises(Killed):
            driver.drive(project, run, kill)
    before = len(list(project.ledger.stream(run)))
    cancellation.cancel(project, run, reason="another day", actor=ADA)
    events = list(project.ledger.stream(run))
    for length in range(1, before + 1):
        replayed = replays.replayed(Cut(project, [*events[:length], *events[before:]]), run)
        assert replayed.agrees, replayed.difference
        assert replayed.reason == f"cancelled by {ADA}: another day"
    _, checked = proof_checks.checked(proofs.made(project, run))
    assert checked.faults == ()


def test_a_pipeline_that_is_cancelled_while_an_agent_is_at_work_replays(project: Project) -> None:
    run = tasks.begin(project, "small", "A text more")
    elsewhere: list[threading.Thread] = []

    def cancel() -> None:
        other = Project(project.root)
        cancellation.cancel(other, run, reason="another day", actor=ADA)
        other.ledger.close()

    def observer(recorded: Recorded) -> None:
        if (
            isinstance(recorded.event, EffectIntended)
            and recorded.event.effect == "RunAgent"
            and not elsewhere
        ):
            elsewhere.append(threading.Thread(target=cancel))
            elsewhere[0].start()

    ended = driver.drive(project, run, observer)
    elsewhere[0].join()
    assert ended.exit_code == Interrupted.exit_code
    assert task_rows.row(project, "1").status == "blocked"
    assert replays.replayed(project.ledger, run).agrees
