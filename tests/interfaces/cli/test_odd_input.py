"""Arguments, streams, files and directories that are not what they must be: one line, and nothing done."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from calls import Command, caller
from planforge.app import driver, forges
from planforge.app.project import Project
from planforge.errors import PlanforgeError
from planforge.interfaces.cli.output import talk
from planforge.interfaces.cli.typed import text
from planforge.kernel.events import EffectCompleted, EffectIntended, ItemMoved, Recorded, StepSkipped
from programs import COMMAND, environment
from rehearsals import Rehearsal, copied
from repositories import git
from texts import CLEAN, PLAN, play, says

PLAN_FILE = "docs/plans/plan-001-some-texts.md"


@pytest.fixture
def at(two_texts: Rehearsal, tmp_path: Path) -> Rehearsal:
    return copied(two_texts, tmp_path)


@pytest.fixture
def call(at: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(at.root, monkeypatch, capsys)


def roles(at: Rehearsal) -> list[str]:
    """The roles that were asked for the second plan."""
    asked = [each for each in at.events(EffectIntended) if each.effect == "RunAgent"]
    return [each.about for each in asked[2:]]


def put(root: Path, name: str, content: bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# Arguments


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("forge", "caf\udce9"), "argument 2"),
        (("plan", "cancel", "1", "--reason", "caf\udce9"), "`--reason`"),
        (("plan", "approve", "1", "--as=caf\udce9"), "`--as`"),
        (("gate", "check", "--stage", "design", "--subject", "caf\udce9"), "`--subject`"),
        (("log", "--run", "caf\udce9"), "`--run`"),
        (("scan", "--", "caf\udce9.py"), "argument 3"),
    ],
)
def test_an_argument_that_is_not_utf_8_is_named(
    call: Command, at: Rehearsal, words: tuple[str, ...], named: str
) -> None:
    before = len(at.events())
    said = call(*words)
    assert said.code == 2
    assert said.err.startswith(f"error: {named} is not UTF-8: `caf\\xe9")
    assert "\n\nhint: use UTF-8" in said.err
    assert len(at.events()) == before


def test_an_error_is_one_line_whatever_it_quotes(call: Command) -> None:
    said = call("why", "two\nlines\x1b[2J")
    assert said.code
    assert "two\\x0alines\\x1b[2J" in said.err.splitlines()[0]


def test_a_mistake_on_the_command_line_looks_like_every_other_error(call: Command) -> None:
    said = call("plan", "approve", "--json")
    assert said.err == "error: Missing argument 'PLAN_ID'\n\nhint: see `planforge plan approve --help`\n"
    assert said.document["error"] == {
        "code": 2,
        "error": "InvalidInput",
        "message": "Missing argument 'PLAN_ID'",
        "hint": "see `planforge plan approve --help`",
    }


def test_what_is_said_on_the_way_does_nothing_to_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    talk("run-001 in /tmp/\x1b[2J\nNo model is called")
    assert capsys.readouterr().err == "run-001 in /tmp/\\x1b[2J\nNo model is called\n"


@pytest.mark.parametrize("days", ["99999999999", "-1", "1" + "0" * 30])
def test_a_number_of_days_that_no_calendar_has_is_refused(call: Command, days: str) -> None:
    said = call("cleanup", f"--older-than={days}")
    assert (said.code, said.err) == (2, "error: `--older-than` is a number of days from 0 to 36500\n")


def test_the_log_since_a_number_that_no_event_has_is_empty(call: Command) -> None:
    assert call("log", "--since", "1" + "0" * 30).out == "no such events yet\n"


@pytest.mark.parametrize("pace", ["nan", "inf", "-1", "1e9"])
def test_a_pace_that_would_have_no_end_is_refused(call: Command, at: Rehearsal, pace: str) -> None:
    said = call("demo", "story", f"--pace={pace}")
    assert (said.code, (at.root / "story").exists()) == (2, False)
    assert said.err.startswith("error: `--pace` is a number of seconds from 0 to")


# Standard streams


@pytest.mark.parametrize(
    "words",
    [
        ("forge", "-"),
        ("forge", "Some texts", "--context", "-"),
        ("fix", "-"),
        ("pipeline", "run", "bug-quick", "-"),
        ("plan", "import", "-"),
        ("plan", "create", "More texts", "--context", "-"),
        ("plan", "decompose", "-"),
        ("policy", "simulate", "-", "--policy", "convergence"),
        ("verdict", "-", "--kind", "review"),
    ],
)
def test_standard_input_that_is_not_utf_8_is_refused(
    call: Command, at: Rehearsal, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    before = len(at.events())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9"), encoding="utf-8"))
    said = call(*words)
    assert said.code == 2
    assert "standard input" in said.err + said.out
    assert "is not UTF-8" in said.err + said.out
    assert len(at.events()) == before


def test_a_line_of_a_chat_that_is_not_utf_8_is_refused_and_the_next_one_is_taken(
    call: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = io.BytesIO(b"!caf\xe9\n!help\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(lines, encoding="utf-8"))
    said = call("chat", "--json")
    refused, answered = map(json.loads, said.out.splitlines())
    assert said.code == 2
    assert "not UTF-8" in refused["text"]
    assert "!plan" in answered["text"]


@pytest.mark.parametrize(
    ("redirection", "code", "error"),
    [
        ("<&- >&- 2>&-", 0, ""),
        (">/dev/full", 1, "error: standard output cannot be written: No space left on device\n"),
    ],
)
def test_standard_streams_that_are_closed_or_full(
    at: Rehearsal, redirection: str, code: int, error: str
) -> None:
    argv = ["sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, "plan", "list"]
    ended = subprocess.run(argv, cwd=at.root, env=environment(), capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr.startswith(error)
    assert "Traceback" not in ended.stderr
    assert Project(at.root).ledger.head() > 0  # no stream was mistaken for it


def test_what_a_terminal_cannot_show_is_written_out(call: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", output)
    assert call("pipeline", "check", "default").code == 0
    assert output.buffer.getvalue().startswith(b"\\u2713 default: clean")


def test_a_directory_that_is_gone_is_named(call: Command, tmp_path: Path) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    os.chdir(place)
    place.rmdir()
    for words in (("status",), ("plan", "list"), ("init",)):
        said = call(*words)
        assert said.code == 3
        assert said.err.startswith("error: the current directory is gone\n\nhint: ")


# Files


def test_settings_that_are_no_text_are_an_error_in_words(call: Command, at: Rehearsal) -> None:
    put(at.root, "planforge.toml", b"[forge]\ncap = 3 # caf\xe9\n")
    said = call("forge", "Some more")
    assert (said.code, said.err.splitlines()[0]) == (
        2,
        "error: `planforge.toml` line 2, column 14: not UTF-8",
    )


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 3000, "a = " + "9" * 5000, "[forge]\nheartbeat_seconds = nan"]
)
def test_settings_that_nobody_can_mean_are_an_error_in_words(call: Command, at: Rehearsal, text: str) -> None:
    put(at.root, "planforge.toml", text.encode())
    said = call("forge", "Some more")
    assert said.code == 2
    assert said.err.startswith("error: `planforge.toml`")
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00"])
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("cancel", "1", "--reason", "no"), "CANCELLED"),
        (("close", "1", "--override", "--reason", "no"), "CLOSED"),
    ],
)
def test_a_plan_can_be_given_up_whatever_its_file_has_become(
    call: Command, at: Rehearsal, content: bytes, words: tuple[str, ...], status: str
) -> None:
    if status == "CLOSED":
        assert call("plan", "approve", "1").code == 0
    put(at.root, PLAN_FILE, content)
    said = call("plan", *words, "--json")
    assert (said.code, said.document["status"]) == (0, status)
    assert said.err.startswith(f"! `{PLAN_FILE}` does not say {status}: ")
    assert [each.status for each in at.events(ItemMoved)] == [status]
    assert (at.root / PLAN_FILE).read_bytes() == content


# Directories that are files


@pytest.mark.parametrize("name", ["docs", "docs/plans"])
@pytest.mark.parametrize(
    "words",
    [
        ("forge", "Some more"),
        ("plan", "create", "Some more"),
        ("plan", "import", "notes.md"),
        ("forge", "1"),
        ("pipeline", "run", "bug-quick", "Mend it"),
    ],
)
def test_a_directory_that_is_a_file_is_refused_before_anybody_is_asked(
    call: Command, at: Rehearsal, name: str, words: tuple[str, ...]
) -> None:
    at.settings('[run]\ntasks = "docs/plans/tasks"\n')
    put(at.root, "notes.md", b"# Some notes\n")
    (at.root / PLAN_FILE).unlink()
    (at.root / "docs/plans").rmdir()
    if name == "docs":
        (at.root / "docs").rmdir()
    put(at.root, name, b"a file\n")
    before = len(at.events())
    said = call(*words)
    assert said.code in (2, 3)
    assert f"`{name}` is not a directory" in said.err or "Not a directory" in said.err
    assert len(at.events()) == before


def test_a_directory_that_becomes_a_file_interrupts_a_forge_that_can_be_resumed(at: Rehearsal) -> None:
    play(at, ((("Role: drafter",), says(PLAN)), (("Role: auditor",), says(CLEAN))))
    at.settings('[forge]\nplans = "papers/plans"\n')
    project = Project(at.root)
    run = forges.begin_forge(project, "Other texts")

    def spoil(recorded: Recorded) -> None:
        if isinstance(recorded.event, EffectCompleted) and not (at.root / "papers").exists():
            put(at.root, "papers", b"a file\n")

    with pytest.raises(PlanforgeError) as refused:
        driver.drive(project, run, spoil)
    assert "was interrupted and nothing of it is lost: " in refused.value.message
    assert text(refused.value.hint) == f"mend that, then run `planforge resume {run}`"
    assert roles(at) == ["drafter"]
    (at.root / "papers").unlink()
    assert driver.drive(project, run, lambda _: None).succeeded
    assert roles(at) == ["drafter", "auditor"]  # the draft was not paid for again
    assert next((at.root / "papers/plans").glob("plan-002-*.md")).read_text().count("Other texts")


# An error has done nothing


def test_a_branch_that_is_there_is_refused_before_any_file_is_written(call: Command, at: Rehearsal) -> None:
    git(at.root, "update-ref", "refs/planforge/archive/run-001/kept", "HEAD")
    said = call("recover", "run-001/kept", "--to", "look", "--branch", "main")
    assert (said.code, said.err.splitlines()[0]) == (2, "error: there is a branch `main` already")
    assert not (at.root / "look").exists()


def test_a_demo_without_git_leaves_no_directory(
    call: Command, at: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    said = call("demo", "story")
    assert (said.code, (at.root / "story").exists()) == (3, False)


def test_phases_are_left_out_whatever_their_file_has_become(call: Command, at: Rehearsal) -> None:
    assert call("plan", "approve", "1").code == 0
    assert call("plan", "phases", "1", "--regenerate").code == 0
    phases = at.root / "docs/plans/plan-001-phases.md"
    phases.unlink()
    phases.mkdir()
    (phases / "kept").write_text("it is somebody's\n")
    said = call("plan", "skip", "1", "phase-1", "--reason", "no", "--json")
    assert said.code == 0
    assert len(at.events(StepSkipped)) == 1
    assert phases.read_text().startswith("# ")
    assert [each.read_text() for each in phases.parent.glob("*edited*/kept")] == ["it is somebody's\n"]
