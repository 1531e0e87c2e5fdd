"""
The walk: in every status of every kind, every action that a screen offers, carried out for real.

Wherever it leads, a status of the table is what comes of it, along rows of the table; and where the status is
not final, something is offered again.
"""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import texts
from calls import Command, Said, caller
from fixing import REQUEST, prepared
from planforge.app import cancellation, driver, runs, tasks
from planforge.app.items import plans, task_rows
from planforge.app.overview import overview, report
from planforge.app.project import Project
from planforge.errors import Interrupted, NeedsPerson
from planforge.interfaces.cli.typed import line
from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.work.lifecycle.tables import PLAN, TASK
from rehearsals import Rehearsal, copied
from repositories import commit, git
from shops import DONE, GOOD, HALF, NEVER, NO, SHORT, STORY, TWICE, decided, go, opened, scene
from shops import PLAN as TEXT

LEGAL = {0, 1, 5, 6}
"""Done, failed, refused by a gate, needs a person: what a command that is offered may come to."""

CLEAN = '{"maxSeverity": "none", "concerns": []}'
CONTENT = (*STORY[:2], scene("Stage: implement", say=DONE, lines=GOOD), *STORY[5:])
"""Everybody is content at once."""

Reach = Callable[[Path], Project]


# Tasks


def _interrupted(project: Project, run: str, status: str) -> None:
    """Drive a run until its task has a status, and stop there as Ctrl-C does."""

    def look(recorded: Recorded) -> None:
        match recorded.event:
            case events.ItemMoved(status=found) if found == status:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        driver.drive(project, run, look)


def _stopped(status: str) -> Reach:
    def reach(place: Path) -> Project:
        first = [scene("Stage: review-plan", "Iteration: 1", say=NO)] if status.startswith("plan-rev") else []
        project = opened(place, (*first, *STORY))
        _interrupted(project, tasks.begin(project, "bug", "Count lines"), status)
        return project

    return reach


def _begun(place: Path) -> Project:
    project = opened(place)
    tasks.begin(project, "bug", "Count lines")
    return project


def _at_the_gate(place: Path) -> Project:
    project = opened(place, CONTENT)
    with pytest.raises(NeedsPerson):
        go(project, tasks.begin(project, "bug", "Count lines"))
    return project


def _approved(place: Path) -> Project:
    project = _at_the_gate(place)
    decided(project)
    _interrupted(project, runs.rows(project)[-1].run, "approved")
    return project


def _committed(place: Path) -> Project:
    project = opened(place, TWICE[1:], SHORT)
    assert go(project, tasks.begin(project, "short", "Count lines")).succeeded
    return project


def _landed(place: Path) -> Project:
    from planforge.app import landing

    project = _committed(place)
    assert (run := landing.begin(project)) is not None
    assert go(project, run).succeeded
    return project


def _refused_at_landing(place: Path) -> Project:
    from planforge.app import landing

    project = _committed(place)
    (project.root / "lines.py").write_text(HALF)
    git(project.root, "commit", "--quiet", "-am", "by hand")
    assert (run := landing.begin(project)) is not None
    assert not go(project, run).succeeded
    return project


def _delivered(place: Path) -> Project:
    project = opened(place, (scene("Stage: draft", say=TEXT), scene("Stage: audit", say=CLEAN)))
    assert go(project, tasks.begin(project, "forge", "Count lines")).succeeded
    return project


def _cancelled(place: Path) -> Project:
    project = _at_the_gate(place)
    cancellation.cancel(project, runs.rows(project)[-1].run, reason="another day", actor="Ada")
    return project


def _abandoned(place: Path) -> Project:
    project = _cancelled(place)
    tasks.abandon(project, "1", actor="Ada", reason="never")
    return project


def _escalated_over_the_plan(place: Path) -> Project:
    project = opened(place, (STORY[0], scene("Stage: review-plan", say=NO), *CONTENT[2:]))
    assert not go(project, tasks.begin(project, "bug", "Count lines")).succeeded
    return project


def _escalated_over_the_code(place: Path) -> Project:
    project = opened(place, NEVER)
    assert not go(project, tasks.begin(project, "bug", "Count lines")).succeeded
    return project


def _overridden(reached: Reach, stage: str) -> Reach:
    def reach(place: Path) -> Project:
        project = reached(place)
        tasks.override(project, "1", stage=stage, actor="Ada", reason="it is right")
        return project

    return reach


def _edited_after_its_approval(place: Path) -> Project:
    project = _at_the_gate(place)
    decided(project)
    plan = project.root / task_rows.row(project, "1").path / "PLAN.md"
    plan.write_text(f"{plan.read_text()}\nAnd a command for it.\n")
    with suppress(NeedsPerson):
        assert not go(project, runs.rows(project)[-1].run).succeeded
    return project


TASKS: dict[str, tuple[str, Reach]] = {
    "begun": ("draft", _begun),
    "at the gate": ("review-approved", _at_the_gate),
    "approved": ("approved", _approved),
    "committed": ("committed", _committed),
    "landed": ("landed", _landed),
    "refused at landing": ("code-revision-required", _refused_at_landing),
    "delivered": ("delivered", _delivered),
    "cancelled": ("blocked", _cancelled),
    "abandoned": ("abandoned", _abandoned),
    "escalated over the plan": ("escalated", _escalated_over_the_plan),
    "escalated over the code": ("escalated", _escalated_over_the_code),
    "edited after its approval": ("escalated", _edited_after_its_approval),
    "overridden plan": ("plan-approved", _overridden(_escalated_over_the_plan, "review-plan")),
    "overridden code": ("review-approved", _overridden(_escalated_over_the_code, "review-code")),
    **{
        f"stopped when {status}": (status, _stopped(status))
        # In the others a run is only on its way to the next one.
        for status in ("planned", "plan-revision-required", "implementing", "implemented")
    },
}
"""Ways in which a task gets into each of its statuses."""


def test_every_status_of_a_task_is_walked() -> None:
    assert {status for status, _ in TASKS.values()} == set(TASK.states)


def offered_of_task(project: Project) -> list[str]:
    """What screens offer about the one task that there is."""
    found = overview(project)
    ways = [way.command for way in tasks.view(project, "1").next]
    return list(dict.fromkeys(map(line, [*ways, *found.next, *(each.command for each in found.waiting)])))


def legal_moves_of(project: Project) -> str:
    """The status that a task has, if it came to it along the rows of its table."""
    status = TASK.initial
    for recorded in project.ledger.since():
        match recorded.event:
            case events.ItemMoved() as moved:
                assert TASK.after(status, moved.by) == moved.status
                status = moved.status
    return status


@pytest.mark.dear(but="committed")
@pytest.mark.parametrize("name", TASKS)
def test_what_is_offered_about_a_task_leads_to_a_status_of_its_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, reach = TASKS[name]
    commands, number = [""], 0
    while number < len(commands):
        (place := tmp_path / str(number)).mkdir()
        project = reach(place)
        assert task_rows.row(project, "1").status == status
        commands = offered_of_task(project)
        assert commands, status
        said = typed(caller(project.root, monkeypatch, capsys), commands[number])
        found = task_rows.row(project, "1")
        told = f"{commands[number]}: {said.code}, {found.status}\n{said.out}\n{said.err}"
        assert said.code in LEGAL, told
        assert "Traceback" not in said.err, told
        assert found.status == legal_moves_of(project), told
        assert found.status in TASK.final or tasks.view(project, "1").next, told
        number += 1


# Plans and fixes


def _stopped_while_audited(at: Rehearsal, call: Command) -> None:
    """Stop the run of a plan as Ctrl-C does, when its audit has begun."""
    from planforge.app.plans import work

    call("plan", "approve", "1")
    project = Project(at.root)

    def look(recorded: Recorded) -> None:
        match recorded.event:
            case events.StepStarted() if plans.row(project, "1").status == "AUDITING":
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        driver.drive(project, work.begin_plan_run(project, "1"), look)
    project.ledger.close()


def _doing(*commands: str) -> Callable[[Rehearsal, Command], None]:
    """Type these, one after the other, whatever each comes to."""

    def reach(at: Rehearsal, call: Command) -> None:
        del at
        for words in map(shlex.split, commands):
            call(*words)

    return reach


def _failed(at: Rehearsal, call: Command) -> None:
    texts.play(at, texts.scenes("wrong\n"))
    _doing("plan approve 1", "plan run 1")(at, call)


def _conflicted(at: Rehearsal, call: Command) -> None:
    _doing("plan approve 1", "plan run 1")(at, call)
    commit(at.root, {"two/b.txt": "by hand\n"}, "by hand")
    call("plan", "land", "1")


PLANS: dict[str, tuple[str, str, Callable[[Rehearsal, Command], None]]] = {
    "created": ("plan-002", "DRAFT", _doing('plan create "More of them"')),
    "forged": ("plan-001", "REVIEW", _doing()),
    "approved": ("plan-001", "APPROVED", _doing("plan approve 1")),
    "failed": ("plan-001", "IMPLEMENTING", _failed),
    "stopped": ("plan-001", "AUDITING", _stopped_while_audited),
    "done": ("plan-001", "DONE", _doing("plan approve 1", "plan run 1")),
    "landed": ("plan-001", "DONE", _doing("plan approve 1", "plan run 1", "land")),
    "conflicted": ("plan-001", "REVIEW", _conflicted),
    "closed": (
        "plan-001",
        "CLOSED",
        _doing("plan approve 1", "plan run 1", "plan close 1 --unlanded --reason x"),
    ),
    "cancelled": ("plan-001", "CANCELLED", _doing("plan cancel 1 --reason x")),
}
"""Ways in which a plan gets into each of its statuses."""


def test_every_status_of_a_plan_is_walked() -> None:
    assert {status for _, status, _ in PLANS.values()} == set(PLAN.states)


def offered_of_plan(project: Project, plan: str) -> list[str]:
    """What screens offer about a plan or a fix."""
    found = overview(project)
    own = report.about(project, plan)
    return list(dict.fromkeys(map(line, [*own, *found.next, *(each.command for each in found.waiting)])))


def walked(at: Rehearsal, plan: str, status: str, number: int, call: Command) -> int:
    """Type the command of that number which is offered; how many there are."""
    project = Project(at.root)
    assert plans.row(project, plan).status == status
    commands = offered_of_plan(project, plan)
    assert commands, status
    said = typed(call, commands[number])
    found = plans.row(project, plan).status
    told = f"{commands[number]}: {said.code}, {found}\n{said.out}\n{said.err}"
    assert said.code in LEGAL, told
    assert "Traceback" not in said.err, told
    assert found in PLAN.states, told
    assert offered_of_plan(project, plan), told
    project.ledger.close()
    return len(commands)


@pytest.mark.dear(but="forged")
@pytest.mark.parametrize("name", PLANS)
def test_what_is_offered_about_a_plan_leads_to_a_status_of_its_table(
    name: str,
    two_texts: Rehearsal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan, status, reach = PLANS[name]
    number, many = 0, 1
    while number < many:
        at = copied(two_texts, tmp_path / str(number))
        at.settings("[run]\nattempts = 1\n")
        texts.play(at, texts.scenes())
        call = caller(at.root, monkeypatch, capsys)
        reach(at, call)
        many = walked(at, plan, status, number, call)
        number += 1


SMALL, LARGE = texts.writes("one/a.txt"), texts.writes("one/a.txt", "one/b.txt", "one/c.txt", "one/d.txt")
FIXES = {
    "done": ("DONE", SMALL),
    "not small": ("REVIEW", LARGE),
    "failed": ("REVIEW", texts.writes("one/a.txt", text="wrong\n")),
}
"""What an agent does about a fix, and what becomes of it."""


@pytest.mark.dear(but="done")
@pytest.mark.parametrize("name", FIXES)
def test_what_is_offered_about_a_fix_leads_to_a_status_of_its_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, does = FIXES[name]
    number, many = 0, 1
    while number < many:
        (place := tmp_path / str(number)).mkdir()
        at = prepared(place, (("Role: developer",), does))
        call = caller(at.root, monkeypatch, capsys)
        call("fix", REQUEST)
        many = walked(at, "fix-001", status, number, call)
        number += 1


def typed(call: Command, line: str) -> Said:
    """What comes of typing a command, with a reason where one is asked for, by Ada where somebody decides."""
    words = shlex.split(line.removeprefix("planforge ").replace("what you want", "Count the words too"))
    by_somebody = words[:2] in (["task", "resume"], ["task", "override"], ["task", "abandon"])
    return call(*words, *(("--as", "Ada") if by_somebody else ()))
