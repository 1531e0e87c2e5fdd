"""Programs that do not behave, asked as if they were Claude Code or Codex: each is told apart and ended."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from natives import Played, asked, resident
from planforge.agents.native import lines, program
from planforge.errors import (
    AgentCancelled,
    AgentEmpty,
    AgentFailed,
    AgentLimited,
    AgentMalformed,
    AgentTimedOut,
    AgentUnauthenticated,
    AgentUnavailable,
    InvalidInput,
    PlanforgeError,
)
from planforge.interfaces.cli.typed import text

BOTH = pytest.mark.parametrize("speaks", ["claude", "codex"])

GOOD: dict[str, str] = {
    "claude": """
        say({"type": "result", "is_error": False, "subtype": "success", "result": "all good"})
    """,
    "codex": """
        say({"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "all good"}})
        say({"type": "turn.completed", "usage": {}})
    """,
}
BEGUN: dict[str, str] = {
    "claude": 'say({"type": "system", "subtype": "init", "session_id": "s-1", "model": "m"})\n',
    "codex": 'say({"type": "thread.started", "thread_id": "s-1"})\n',
}


def after(speaks: str, script: str) -> str:
    """A script that does something, then answers properly."""
    return f"{script}\n" + "\n".join(line.strip() for line in GOOD[speaks].splitlines())


def failure(
    room: Played, speaks: str, script: str, kind: type[PlanforgeError], **more: Any
) -> PlanforgeError:
    """The error that asking this program ends with, which is of exactly that kind."""
    with pytest.raises(PlanforgeError) as caught:
        room.play(speaks, script, **more)
    assert type(caught.value) is kind, caught.value
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 700
    return caught.value


# How it ends


@BOTH
@pytest.mark.parametrize("code", [0, 1])
def test_the_terminal_event_decides_and_not_the_exit_code(room: Played, speaks: str, code: int) -> None:
    answer = room.play(speaks, after(speaks, "") + f"\nsys.exit({code})")
    assert answer.text == "all good"
    assert answer.stop_reason == "end_turn"


@BOTH
def test_ending_with_0_and_nothing_is_empty(room: Played, speaks: str) -> None:
    assert "without a word" in failure(room, speaks, "", AgentEmpty).message


@BOTH
def test_ending_with_0_and_no_terminal_event_is_malformed(room: Played, speaks: str) -> None:
    error = failure(room, speaks, BEGUN[speaks], AgentMalformed)
    assert "without saying that it was done" in error.message


@BOTH
@pytest.mark.parametrize(
    "data",
    [
        b'{"type": "result", "is_error": false, "resu',
        b'{"type": "result", "is_error": false, "result": "\xff\xfe"}\n',
        b'{"type": "item.completed", "item": {"type": "agent_mess',
        b"\x00\x00\x00\n",
        b"\x1b[2J\x1b]0;title\x07Welcome!\n",
        b"[]\nnull\n17\n",
        b'{"type": 5}\n{"kind": "result"}\n',
    ],
)
def test_what_is_no_event_is_malformed(room: Played, speaks: str, data: bytes) -> None:
    failure(room, speaks, f"put({data!r})", AgentMalformed)


@BOTH
def test_a_greeting_and_bytes_that_are_no_text_do_not_hide_a_good_answer(room: Played, speaks: str) -> None:
    noise = 'put(b"Welcome!\\n\\x00\\xff\\n{half\\n\\x1b[31m\\n")'
    assert room.play(speaks, after(speaks, noise)).text == "all good"


@BOTH
def test_a_program_that_fails_says_why_in_its_last_words(room: Played, speaks: str) -> None:
    script = 'sys.stderr.write("a warning\\nError: no such thread\\n\\n   1: <unknown>\\n"); sys.exit(3)'
    error = failure(room, speaks, script, AgentFailed)
    assert "no such thread" in error.message
    assert "exit code 3" in error.message
    assert "<unknown>" not in error.message


@BOTH
def test_one_that_is_not_logged_in_says_how_to_log_in(room: Played, speaks: str) -> None:
    script = 'sys.stderr.write("Not logged in. Please run /login\\n"); sys.exit(1)'
    assert "agent login" in str(failure(room, speaks, script, AgentUnauthenticated).hint)


@BOTH
def test_a_limit_on_standard_error_is_a_limit(room: Played, speaks: str) -> None:
    script = 'sys.stderr.write("429 Too Many Requests, retry-after: 3600\\n"); sys.exit(1)'
    error = failure(room, speaks, script, AgentLimited)
    assert isinstance(error, AgentLimited)
    assert error.until


@BOTH
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_one_that_somebody_stopped_was_cancelled(room: Played, speaks: str, number: str) -> None:
    script = f"signal.signal(signal.{number}, signal.SIG_DFL); os.kill(os.getpid(), signal.{number})"
    failure(room, speaks, BEGUN[speaks] + script, AgentCancelled)


@BOTH
def test_one_that_was_killed_has_failed(room: Played, speaks: str) -> None:
    error = failure(room, speaks, BEGUN[speaks] + "os.kill(os.getpid(), 9)", AgentFailed)
    assert "signal 9" in error.message


@BOTH
def test_a_program_that_is_not_there_is_unavailable(room: Played, speaks: str) -> None:
    with pytest.raises(AgentUnavailable, match="cannot be started") as caught:
        room.ask(speaks, ["/nowhere/agent"], asked())
    assert text(caught.value.hint) == "install the agent"


@BOTH
def test_a_conversation_that_is_named_like_an_option_is_refused(room: Played, speaks: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be the name"):
        room.play(speaks, GOOD[speaks], asked(session="--dangerously-skip-permissions"))
    assert room.started == []


@BOTH
def test_a_name_of_a_conversation_that_could_be_an_option_is_not_kept(room: Played, speaks: str) -> None:
    begun = BEGUN[speaks].replace("s-1", "--version")
    assert room.play(speaks, after(speaks, begun)).session == ""


# Limits


@BOTH
def test_a_line_without_an_end_is_refused_and_memory_stays_bounded(room: Played, speaks: str) -> None:
    before = resident()
    script = "block = b'x' * 2**20\nwhile True: put(block)"
    assert "without a line break" in failure(room, speaks, script, AgentMalformed).message
    assert resident() - before < 4 * lines.LINE_LIMIT


@BOTH
def test_endless_noise_is_refused(room: Played, speaks: str) -> None:
    error = failure(room, speaks, 'while True: put(b"yes\\n")', AgentMalformed)
    assert "no messages" in error.message


@BOTH
@pytest.mark.parametrize(("limit", "number"), [("OUTPUT_LIMIT", 1_000_000), ("MESSAGE_LIMIT", 20_000)])
def test_endless_events_are_refused(
    room: Played, speaks: str, limit: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, limit, number)
    event = {"type": "system"} if speaks == "claude" else {"type": "turn.started"}
    script = f"block = (json.dumps({event}) + '\\n').encode() * 1000\nwhile True: put(block)"
    assert f"printed more than {number} " in failure(room, speaks, script, AgentMalformed).message


@BOTH
def test_endless_complaints_do_not_fill_memory(room: Played, speaks: str) -> None:
    before = resident()
    script = "for _ in range(200): os.write(2, b'x' * 2**20)"
    assert room.play(speaks, after(speaks, script)).text == "all good"
    assert resident() - before < 50_000_000


@BOTH
def test_an_answer_that_is_too_long_is_refused_and_not_cut(room: Played, speaks: str) -> None:
    script = "\n".join(line.strip() for line in GOOD[speaks].splitlines())
    script = script.replace('"all good"', '"x" * (2**20 + 1)')
    assert "more than 1048576 characters" in failure(room, speaks, script, AgentMalformed).message


@BOTH
def test_an_empty_answer_is_empty(room: Played, speaks: str) -> None:
    script = "\n".join(line.strip() for line in GOOD[speaks].splitlines())
    failure(room, speaks, script.replace("all good", " \\n "), AgentEmpty)


@BOTH
def test_nothing_that_moves_a_cursor_gets_through(room: Played, speaks: str) -> None:
    script = "\n".join(line.strip() for line in GOOD[speaks].splitlines())
    answer = room.play(speaks, script.replace("all good", r"a\x1b[31mb\x00\x07c\x9bd\n\te"))
    assert answer.text == "abcd\n\te"
    assert all(heard.isprintable() for heard in room.heard)


# Time


@BOTH
def test_one_that_takes_too_long_is_ended(room: Played, speaks: str) -> None:
    error = failure(room, speaks, BEGUN[speaks] + "time.sleep(60)", AgentTimedOut, task=asked(seconds=1.0))
    assert "within 1 s" in error.message
    assert room.seconds < 10


@BOTH
def test_one_that_is_silent_for_too_long_is_ended(room: Played, speaks: str) -> None:
    task = asked(idle_seconds=1.0)
    error = failure(room, speaks, BEGUN[speaks] + "time.sleep(60)", AgentTimedOut, task=task)
    assert "silent for 1 s" in error.message
    assert room.seconds < 10


@BOTH
def test_one_that_says_something_now_and_then_is_not_silent(room: Played, speaks: str) -> None:
    event = {"type": "system"} if speaks == "claude" else {"type": "turn.started"}
    script = f"for _ in range(8):\n    say({event})\n    time.sleep(0.3)"
    assert room.play(speaks, after(speaks, script), asked(idle_seconds=1.5)).text == "all good"
    assert room.seconds > 1.5


@BOTH
def test_one_that_was_cancelled_leaves_nothing_running(room: Played, speaks: str) -> None:
    mark = room.home / "mark"
    script = f"""
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                open({str(mark)!r}, "w").close()
                time.sleep(1000)
            os._exit(0)
        time.sleep(1000)
    """
    with pytest.raises(asyncio.CancelledError):
        room.play(speaks, script, cancel_when=mark)
    assert room.seconds < 20


@BOTH
def test_a_child_that_holds_the_streams_does_not_keep_the_answer(room: Played, speaks: str) -> None:
    script = 'subprocess.Popen(["sleep", "1000"])'
    assert room.play(speaks, after(speaks, script)).text == "all good"
    assert room.seconds < 15


@BOTH
def test_one_that_stays_after_its_last_word_is_ended(
    room: Played, speaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "LEAVE", 0.5)
    assert room.play(speaks, after(speaks, "") + "\ntime.sleep(1000)").text == "all good"
    assert room.seconds < 10


@BOTH
def test_what_it_writes_down_after_its_last_word_is_waited_for(room: Played, speaks: str) -> None:
    kept = room.home / "conversation"
    script = after(speaks, "") + f"\nos.close(1)\ntime.sleep(1.5)\nopen({str(kept)!r}, 'w').close()"
    assert room.play(speaks, script).text == "all good"
    assert kept.exists()


# The prompt


@BOTH
def test_the_prompt_goes_in_by_standard_input_whole_and_nowhere_else(room: Played, speaks: str) -> None:
    prompt = "a secret plan: ümlaut, 'quotes', $HOME\n" * 100_000
    kept = room.home / "kept"
    script = f"open({str(kept)!r}, 'wb').write(sys.stdin.buffer.read())"
    assert room.play(speaks, after(speaks, script), asked(prompt)).text == "all good"
    assert kept.read_text() == prompt
    assert "secret" not in " ".join(room.commands[0])


@BOTH
def test_one_that_does_not_read_its_prompt_is_listened_to_all_the_same(room: Played, speaks: str) -> None:
    assert room.play(speaks, after(speaks, "os.close(0)"), asked("x" * 10_000_000)).text == "all good"


@BOTH
def test_it_finds_the_environment_of_its_home_and_of_its_worktree(room: Played, speaks: str) -> None:
    script = "assert (os.environ['ONE'], os.environ['PORT']) == ('1', '8080')"
    answer = room.play(speaks, after(speaks, script), env={"ONE": "1"}, variables={"PORT": "8080"})
    assert answer.text == "all good"


def test_neither_loads_the_protocol_library() -> None:
    heavy = "{'acp', 'pydantic', 'httpx', 'click', 'apsw'} & {name.partition('.')[0] for name in sys.modules}"
    code = (
        f"import sys, planforge.agents.native.claude, planforge.agents.native.codex; print(sorted({heavy}))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert shown.stdout.strip() == "[]"


def test_the_example_of_the_page_prints_what_the_page_says() -> None:
    page = (Path(__file__).parents[3] / "docs" / "native-agents.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    shown = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True)
    assert shown.stdout == "heard: has ended its turn\nHello.\n"
    assert "It prints `heard: has ended its turn` and `Hello.`" in page
