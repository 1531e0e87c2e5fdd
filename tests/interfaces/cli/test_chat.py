"""`planforge chat`, in this process, as a process at the end of a pipe, and as one at a terminal."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calls import Command, caller
from decided import of
from planforge.app import runs
from planforge.app.items import plans
from planforge.app.project import Project
from planforge.kernel.events import DecisionMade
from planforge.rules.commands import TABLE
from planforge.rules.commands.actions import FORMS
from programs import environment, planforge
from rehearsals import Rehearsal, copied
from texts import CLEAN, PLAN, Scene, forged, play, says

DRAFTED = (("Role: drafter",), says(PLAN))
AUDITED = (("Role: auditor",), says(CLEAN))
ASLEEP: Scene = (("Role: drafter",), [{"sleep": 60}])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return forged(tmp_path_factory.mktemp("made"))


@pytest.fixture
def at(made: Rehearsal, tmp_path: Path) -> Rehearsal:
    return copied(made, tmp_path)


@pytest.fixture
def call(at: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(at.root, monkeypatch, capsys)


def lines(monkeypatch: pytest.MonkeyPatch, *texts: str) -> None:
    """What somebody types, to a pipe."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{text}\n" for text in texts)))


def replies(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_each_line_has_one_reply_and_the_worst_is_the_exit_code(
    call: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines(monkeypatch, "!plan list", "", "!plan show 9", "!plan show", "!paln list")
    said = call("chat", "--json")
    found = replies(said.out)
    assert [reply["exit_code"] for reply in found] == [0, 3, 2, 2]
    assert found[0]["command"] == {"type": "plan list"}
    assert found[0]["data"][0]["plan"] == "plan-001"
    assert "usage: !plan show <plan-id|task-id>" in found[2]["text"]
    assert "did you mean `!plan`?" in found[3]["text"]
    assert said.code == 3


def test_people_read_text_and_what_to_type_next(call: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    lines(monkeypatch, "!plan approve 1")
    said = call("chat", "--as", "Ada")
    assert said.out.endswith("by Ada\nnext: !plan run plan-001\n")


def test_the_status_is_the_screen_of_the_command_line(call: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    lines(monkeypatch, "!status")
    shown = call("chat").out
    lines(monkeypatch)
    assert call("status").out.splitlines()[0] in shown


def test_what_was_begun_is_waited_for_when_the_input_ends(
    at: Rehearsal, call: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(at, (DRAFTED, AUDITED))
    lines(monkeypatch, "!forge Some more texts", "!forge status", "!forge Yet more")
    said = call("chat", "--json")
    begun, status, refused, ended = replies(said.out)
    assert begun["runs"] == ["run-002"]
    assert "run-002 forges plan-002: running" in status["text"]
    assert refused["error"] == "Locked"
    assert (ended["kind"], ended["exit_code"]) == ("ended", 0)
    assert ended["next"] == ["!plan approve plan-002"]
    assert "drafted" in said.err or "plan-002" in said.err, "progress goes to standard error"
    assert said.code == 7


def test_other_text_is_answered_by_an_agent_whose_words_cannot_move_a_cursor(
    at: Rehearsal, call: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(at, ((("Role: assistant",), says("It \x1b[2Jwaits.")),))
    lines(monkeypatch, "what about plan 1?")
    said = call("chat")
    assert said.code == 0
    assert "\x1b" not in said.out
    assert "waits." in said.out


def test_without_an_agent_the_reply_says_so_and_the_chat_goes_on(
    at: Rehearsal, call: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = at.root / "planforge.toml"
    path.write_text(path.read_text().replace('default = "rehearsal"', 'default = "nobody"'))
    lines(monkeypatch, "hello", "!plan list")
    first, second = replies(call("chat", "--json").out)
    assert first["exit_code"] != 0
    assert second["exit_code"] == 0


def test_outside_of_a_project_it_does_not_begin(tmp_path: Path) -> None:
    assert planforge("chat", cwd=tmp_path).returncode == 3


# As processes


@pytest.mark.dear
@pytest.mark.parametrize("sent", ["!stop\n!plan list\n", None], ids=["by a command", "by a signal"])
def test_a_real_process_at_a_pipe_stops_a_forge_and_loses_nothing(at: Rehearsal, sent: str | None) -> None:
    play(at, (ASLEEP,))
    process = subprocess.Popen(
        [sys.executable, "-m", "planforge", "chat", "--json"],
        cwd=at.root,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write("!forge Some more texts\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["runs"] == ["run-002"]
        time.sleep(0.7)
        if sent is None:
            process.send_signal(signal.SIGINT)
            stopped = json.loads(process.stdout.readline())
            assert process.poll() is None, "the first one stops what goes on, and no more"
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate("", 20)
            assert (process.returncode, rest) == (130, ""), stopped["text"]
        else:
            rest, _ = process.communicate(sent, 20)
            stopped, listed = replies(rest)
            assert "plan-002 [DRAFT]" in listed["text"]
            assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
    assert stopped["next"] == ["!resume run-002"]
    project = Project(at.root)
    try:
        assert runs.rows(project)[-1].status == "interrupted"
        assert [row.status for row in plans.rows(project)] == ["REVIEW", "DRAFT"]
    finally:
        project.ledger.close()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches it


class Terminal:
    """A process with a terminal of its own."""

    def __init__(self, cwd: Path) -> None:
        self.master, slave = pty.openpty()
        argv = [sys.executable, "-m", "planforge", "chat"]
        env = environment({"TERM": "xterm"})
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509  (there are no threads here)
        )
        os.close(slave)
        self.shown = ""

    def type(self, text: str) -> None:
        time.sleep(0.3)  # a signal before Python waits for keys is noticed with the next key
        os.write(self.master, text.encode())

    def until(self, words: str, seconds: float = 20) -> None:
        """Read until it shows something, and forget what it showed before."""
        end = time.monotonic() + seconds
        while words not in self.shown:
            assert time.monotonic() < end, f"no {words!r} in {self.shown!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.master, 65536).decode()
                except OSError:  # it has gone
                    break
        assert words in self.shown, self.shown
        self.shown = self.shown.partition(words)[2]


@pytest.fixture
def terminal(at: Rehearsal) -> Iterator[Terminal]:
    play(at, (ASLEEP,))
    found = Terminal(at.root)
    yield found
    found.process.kill()
    found.process.wait()
    os.close(found.master)


@pytest.mark.dear
def test_a_real_process_at_a_terminal_has_a_prompt_a_history_and_two_ways_out(
    at: Rehearsal, terminal: Terminal
) -> None:
    terminal.until("> ")
    terminal.type("!plan approve 1\r")
    terminal.until("next: !plan run plan-001")
    terminal.until("> ")
    assert len(of(at.events(DecisionMade), "approval")) == 1
    terminal.type("!plan list\r")
    terminal.until("plan-001 [APPROVED]")
    terminal.until("> ")
    terminal.type("\x1b[A\r")  # once more, from the history
    terminal.until("plan-001 [APPROVED]")
    terminal.until("> ")
    terminal.type("!forge Some more texts\r")
    terminal.until("run-002 forges plan-002")
    terminal.type("\x03")
    terminal.until("run-002 was stopped; nothing is lost")
    terminal.until("next: !resume run-002")
    terminal.type("\x04")
    assert terminal.process.wait(20) == 0


def test_at_a_terminal_leaving_stops_what_goes_on_and_a_second_interrupt_leaves(terminal: Terminal) -> None:
    terminal.until("> ")
    terminal.type("\x03")
    terminal.until("Ctrl-C again leaves")
    terminal.type("\x03")
    assert terminal.process.wait(20) == 130


def test_the_page_about_the_chat_names_every_command_and_every_action() -> None:
    page = (Path(__file__).parents[3] / "docs" / "chat.md").read_text()
    for row in TABLE:
        words = row.usage.replace("|", "\\|")
        assert f"| `{words}` | {row.meaning}{' *' if row.person else ''} |" in page
    for form in FORMS:
        assert f"- `{form}`" in page
