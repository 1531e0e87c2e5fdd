"""`planforge question` as a person meets it, and a forge that is answered."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from calls import Command, caller
from decided import of
from planforge.app.decisions import questions
from planforge.app.demo import story
from planforge.app.project import Project
from planforge.errors import NeedsPerson
from planforge.kernel.driver import Call
from planforge.kernel.effects import AskHuman
from planforge.kernel.events import (
    Choice,
    ContextComposed,
    DecisionMade,
    ItemOpened,
    Payload,
    RunParked,
    RunStarted,
)
from programs import COMMAND, environment, planforge, python
from rehearsals import Rehearsal, copied
from repositories import EMAIL, NAME, repository
from workshops import workshop

TEXT = "the loop goes round in circles;\nwhat now? \x1b[2K\u202e"
CHOICES = (
    Choice(name="go on", cost="up to 20 rounds", consequence="round 4 is next"),
    Choice(name="stop", consequence="the run ends"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a run that has asked two questions."""
    root = repository(tmp_path_factory.mktemp("asked") / "project")
    project = Project.create(root)
    created = ItemOpened(item="plan-001", title="T", request="R", path="docs/plans/plan-001-t.md")
    started = RunStarted(run="run-001", flow="forge", flow_version=1, subject="plan-001", request=Payload())
    project.ledger.append("plan-001", [created], expected=0)
    project.ledger.append("run-001", [started], expected=0)
    for number, text in enumerate((TEXT, "and this?")):
        call = Call(run="run-001", key=f"/{number}", intended_at="", resumed=False)
        asking = AskHuman(question=text, choices=CHOICES, content="c0ffee")
        with pytest.raises(NeedsPerson):
            questions.reply(project, asking, call, "plan-001")
    project.ledger.append("run-001", [RunParked(run="run-001", reason="a question")], expected=None)
    project.ledger.close()
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def command(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(root, monkeypatch, capsys)


def test_list_has_what_waits_the_oldest_first_and_what_to_type(command: Command) -> None:
    lines = command("question", "list").out.splitlines()
    assert lines[0].split()[:3] == ["question-001", "run-001", "plan-001"]
    assert "the loop goes round in circles; what now? \\x1b[2K\\u202e" in lines[0]
    assert lines[1].startswith("question-002")
    assert lines[-1] == "next: planforge question show question-001"
    found = command("question", "list", "--json").document
    assert (found["schema_version"], [row["name"] for row in found["questions"]]) == (
        1,
        ["question-001", "question-002"],
    )


def test_show_has_the_options_with_what_they_cost_and_lead_to(command: Command) -> None:
    shown = command("question", "show", "1").out
    found = command("question", "show", "question-001", "--json").document
    assert "  1  go on\n     costs: up to 20 rounds\n     then:  round 4 is next\n  2  stop\n" in shown
    assert f"hash   {found['hash']}\nabout  c0ffee\nasked  2" in shown
    next_ = f"next: planforge question answer question-001 OPTION --seen {found['hash'][:12]}"
    assert shown.rstrip().endswith(next_)
    assert not set("\x1b\u202e") & set(shown)
    assert found["options"][0] == {
        "name": "go on",
        "cost": "up to 20 rounds",
        "consequence": "round 4 is next",
    }
    assert (found["status"], found["text"]) == ("waiting", TEXT)


def test_answer_says_what_to_resume_and_show_says_who_answered_what(command: Command) -> None:
    said = command("question", "answer", "1", "2", "--as", "Ada", "--reason", "it is enough")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "answered question-001 with `stop`, by Ada",
        "next: planforge resume run-001",
    ]
    assert "answer stop, by Ada on 2" in command("question", "show", "1").out
    assert command("question", "list").out.startswith("question-002")
    assert "answered" in command("question", "list", "--all").out
    assert "Ada answered question-001 with stop: it is enough" in command("log", "-n", "1").out
    again = command("question", "answer", "1", "2", "--as", "Ada", "--json")
    assert (again.code, again.current["answer"], again.current["reason"]) == (5, "stop", "it is enough")
    assert "Ada answered `stop` on 2" in again.err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("answer", "1", "perhaps", "--as", "Ada"), 2, "choose one of `go on`, `stop`"),
        (("answer", "9", "stop", "--as", "Ada"), 3, "there is no question `9`"),
        (("show", "9"), 3, "planforge question list"),
        (("answer", "1", "stop"), 6, "--as NAME"),
        (("answer", "1", "stop", "--as", " "), 2, "names nobody"),
        (("answer", "1", "stop", "--as", "claude"), 5, "is the name of an agent"),
        (("answer", "1", "stop", "--as", "Ada", "--seen", "0" * 12), 5, "look again"),
        (("answer", "1"), 2, "OPTION"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    command: Command, words: tuple[str, ...], code: int, text: str
) -> None:
    said = command("question", *words)
    assert (said.code, text in said.err) == (code, True), said.err
    assert len(command("question", "list", "--json").document["questions"]) == 2


def test_somebody_at_a_terminal_is_who_git_says(root: Path) -> None:
    controller, terminal = pty.openpty()
    try:
        ended = subprocess.run(
            [*COMMAND, "question", "answer", "1", "stop"],
            cwd=root,
            env=environment(),
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(controller)
        os.close(terminal)
    assert f"by {NAME} <{EMAIL}>" in ended.stdout, ended.stderr


def test_status_has_the_questions_and_the_commands_and_stays_quick(root: Path) -> None:
    shown = planforge("status", cwd=root).stdout
    assert "question-001" in shown.partition("Waits for you\n")[2].splitlines()[0]
    assert "(go on | stop)" in shown
    assert shown.index("question show question-001") < shown.index("question show question-002")
    assert not set("\x1b\u202e") & set(shown)
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))\n"
        "sys.argv = ['planforge', 'status']\n"
        "from planforge.interfaces.cli.main import run\n"
        "run()\n"
    )
    loaded = set(python(code, cwd=root).stderr.split())
    assert "planforge.app.decisions.questions" in loaded
    assert not loaded & {"click", "asyncio", "planforge.kernel.events", "planforge.kernel.effects"}


def test_without_questions_status_says_nothing_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = repository(tmp_path / "quiet")
    Project.create(root).ledger.close()
    command = caller(root, monkeypatch, capsys)
    assert "Questions" not in command("status").out
    assert command("question", "list").out == "no question is waiting\n"
    assert command("question", "list", "--all").out == "no questions yet\n"


# A forge whose drafter gives nothing


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    place = tmp_path_factory.mktemp("stuck")
    found = Rehearsal(workshop(place), place / "rehearsal" / "script.json")
    found.scene("Role: drafter", do=[{"exit": 3}])
    process = planforge("forge", story.REQUEST, cwd=found.root)
    assert process.returncode == 6, process.stderr
    assert "`question-001` waits for an answer: the drafter of plan-001 gave nothing" in process.stderr
    assert "planforge question show question-001" in process.stderr
    return found


def at(
    stuck: Rehearsal, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Rehearsal, Command]:
    found = copied(stuck, place / "here")
    return found, caller(found.root, monkeypatch, capsys)


def test_a_forge_says_what_going_on_costs_and_ends_when_a_person_gives_up(
    stuck: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, command = at(stuck, tmp_path, monkeypatch, capsys)
    shown = command("question", "show", "1").out
    assert "1  give up\n     costs: nothing more\n     then:  the run ends without a plan" in shown
    assert "2  ask again\n     costs: up to two more calls of the drafter" in shown
    assert command("resume").out == "nothing to resume\nnext: planforge question show question-001\n"
    assert command("question", "answer", "1", "give up", "--as", "Ada").code == 0
    assert command("resume").code == 1
    assert [row["status"] for row in command("status", "--json").document["runs"]] == ["failed"]
    assert len([event for event in found.events(ContextComposed) if event.role == "drafter"]) == 2


def test_a_forge_that_is_told_to_ask_again_goes_on_without_being_named(
    stuck: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, command = at(stuck, tmp_path, monkeypatch, capsys)
    found.as_it_was()
    assert command("question", "answer", "1", "ask again", "--as", "Ada").code == 0
    assert command("resume").code == 0
    assert [row["status"] for row in command("plan", "list", "--json").document] == ["REVIEW"]
    (answered,) = of(found.events(DecisionMade), "question")
    assert answered.actor == "Ada"


def test_who_resumes_a_forge_without_answering_has_it_ask_again(
    stuck: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, command = at(stuck, tmp_path, monkeypatch, capsys)
    found.as_it_was()
    assert command("resume", "run-001").code == 0
    (answered,) = of(found.events(DecisionMade), "question")
    assert (answered.choice, answered.actor) == ("ask again", f"{NAME} <{EMAIL}>")
    late = command("question", "answer", "1", "give up", "--as", "Ada")
    assert (late.code, f"{NAME} <{EMAIL}> answered `ask again`" in late.err) == (5, True)


def test_after_the_forge_was_cancelled_nobody_answers(
    stuck: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, command = at(stuck, tmp_path, monkeypatch, capsys)
    assert command("cancel", "run-001", "--reason", "never mind").code == 0
    late = command("question", "answer", "1", "give up", "--as", "Ada")
    assert (late.code, "its run has ended" in late.err) == (5, True)
    assert of(found.events(DecisionMade), "question") == []
