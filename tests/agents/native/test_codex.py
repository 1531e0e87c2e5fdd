"""What Codex prints is understood: events as it prints them, in programs that print them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from natives import Played, asked
from planforge.agents.native import codex, codex_record
from planforge.agents.native.codex_record import Record
from planforge.errors import (
    AgentFailed,
    AgentLimited,
    AgentMalformed,
    AgentTimedOut,
    AgentUnauthenticated,
    AgentUnavailable,
    PlanforgeError,
)
from planforge.kernel.effects import HANDED_OVER, AgentAnswer, ToolUse, Usage

Event = dict[str, Any]
THREAD = "01a1e345-63fc-72d0-9c25-ae38b394910e"
BEGUN = ({"type": "thread.started", "thread_id": THREAD}, {"type": "turn.started"})


def item(kind: str, name: str = "item_1", *, event: str = "completed", **more: Any) -> Event:
    """Something of a turn."""
    return {"type": f"item.{event}", "item": {"id": name, "type": kind, **more}}


def message(text: str) -> Event:
    return item("agent_message", text=text)


def tokens(given: int, output: int, *, cached: int = 0) -> Event:
    return {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": output}


def completed(usage: Event | None = None) -> Event:
    return {"type": "turn.completed", "usage": usage}


def failed(words: str) -> tuple[Event, ...]:
    """How a turn ends that failed."""
    return (
        *BEGUN,
        {"type": "error", "message": f"Reconnecting... 1/1 ({words})"},
        {"type": "error", "message": words},
        {"type": "turn.failed", "error": {"message": words}},
    )


def failure(room: Played, *events: Event, kind: type[PlanforgeError], code: int = 1) -> PlanforgeError:
    """The error that a program which prints these events ends with."""
    with pytest.raises(PlanforgeError) as caught:
        room.tell("codex", *events, code=code)
    assert type(caught.value) is kind, caught.value
    return caught.value


def test_an_answer_has_what_the_program_says_of_it(room: Played) -> None:
    shell = {"command": "/bin/bash -lc 'make test'", "aggregated_output": ""}
    answer = room.tell(
        "codex",
        *BEGUN,
        item("error", "item_0", message="Model metadata for `m` not found."),
        message("I will do that now."),
        item("command_execution", "item_2", event="started", **shell, exit_code=None, status="in_progress"),
        item("command_execution", "item_2", **shell, exit_code=0, status="completed"),
        message("FINAL done."),
        completed(tokens(2000, 84, cached=600)),
        task=asked(model="m"),
    )
    assert answer == AgentAnswer(
        agent="it",
        text="FINAL done.",
        stop_reason="end_turn",
        tool_calls=1,
        usage=Usage(input_tokens=2000, output_tokens=84, cached_tokens=600),
        model="m",
        session=THREAD,
        tools=(ToolUse(kind="execute", title="/bin/bash -lc 'make test'", status="completed"),),
    )
    assert room.noted[0].session == THREAD
    assert room.commands[0][-1] == "-"


def test_tools_say_what_they_are_and_what_became_of_them(room: Played) -> None:
    answer = room.tell(
        "codex",
        *BEGUN,
        item("command_execution", "1", command="exit 3", status="failed", exit_code=3),
        item("file_change", "2", changes=[{"path": "a.py"}, {"path": "b.py"}], status="completed"),
        item("mcp_tool_call", "3", server="files", tool="read", status="declined"),
        item("web_search", "4", query="how to"),
        item("reasoning", "5", text="hm"),
        item("todo_list", "6", items=[]),
        message("done"),
        completed(),
    )
    assert answer.tools == (
        ToolUse(kind="execute", title="exit 3", status="failed"),
        ToolUse(kind="edit", title="edit a.py b.py", status="completed"),
        ToolUse(kind="other", title="files read", status="denied"),
        ToolUse(kind="fetch", title="how to"),
    )
    assert answer.usage is None


# Form and conversation


def test_options_stand_before_the_conversation_and_the_schema_is_gone_afterwards(room: Played) -> None:
    script = """
        where = sys.argv.index("--output-schema")
        assert sys.argv.index("resume") > where
        assert json.load(open(sys.argv[where + 1])) == {"type": "object"}
    """
    script += f"""
        for event in {[*BEGUN, message('{"n": 3}'), completed()]!r}: say(event)
    """
    answer = room.play("codex", script, asked(schema='{"type": "object"}', session=THREAD))
    assert answer.output == '{"n": 3}'
    assert room.commands[0][-3:] == ("resume", THREAD, "-")
    assert list(room.home.glob("schema-*")) == []


def test_a_text_that_is_no_json_is_no_output(room: Played) -> None:
    events = (*BEGUN, message("no form"), completed())
    assert room.tell("codex", *events, task=asked(schema="{}")).output == ""
    answer = room.tell("codex", *BEGUN, message('{"n": 3}'), completed())
    assert (answer.text, answer.output) == ('{"n": 3}', "")


def test_what_the_thread_had_used_before_is_taken_off(room: Played) -> None:
    events = (*BEGUN, message("done"), completed(tokens(3000, 126, cached=900)))
    before = Usage(input_tokens=1000, output_tokens=42, cached_tokens=300)
    answer = room.tell("codex", *events, task=asked(session=THREAD, before=before))
    assert answer.usage == Usage(input_tokens=2000, output_tokens=84, cached_tokens=600)


def test_what_nobody_knows_is_unknown(room: Played) -> None:
    events = (*BEGUN, message("done"), completed(tokens(3000, 126, cached=900)))
    assert room.tell("codex", *events, task=asked(session=THREAD)).usage is None


def test_the_record_of_a_thread_knows_better_than_we_do(room: Played) -> None:
    written(room.home / ".codex", total=tokens(2000, 100, cached=500))
    events = (*BEGUN, message("done"), completed(tokens(3000, 126, cached=900)))
    before = Usage(input_tokens=1000, output_tokens=42)  # a call that failed was not counted
    answer = room.tell("codex", *events, task=asked(session=THREAD, before=before))
    assert answer.usage == Usage(input_tokens=1000, output_tokens=26, cached_tokens=400)


# Failures


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("unexpected status 401 Unauthorized: no, url: http://127.0.0.1/v1/responses", AgentUnauthenticated),
        ("Missing environment variable: `OPENAI_API_KEY`.", AgentUnauthenticated),
        ("exceeded retry limit, last status: 429 Too Many Requests", AgentLimited),
        ("You\u2019ve hit your usage limit. Upgrade to Pro or try again at 8:32 AM.", AgentLimited),
        ("We\u2019re currently experiencing high demand, which may cause temporary errors.", AgentFailed),
        ("stream disconnected before completion: stream closed", AgentFailed),
    ],
)
def test_a_turn_that_failed_says_how(room: Played, words: str, kind: type[PlanforgeError]) -> None:
    failure(room, *failed(words), kind=kind)


def test_an_error_that_it_got_over_is_none(room: Played) -> None:
    trouble = {"type": "error", "message": "Reconnecting... 1/5 (stream disconnected)"}
    assert room.tell("codex", *BEGUN, trouble, message("done"), completed()).text == "done"


def test_a_thread_that_is_not_there_is_named(room: Played) -> None:
    words = "Error: no rollout found for thread id 0\\n\\nStack backtrace:\\n   0: <unknown>"
    with pytest.raises(AgentFailed, match="no rollout found"):
        room.play("codex", f'sys.stderr.write("{words}"); sys.exit(1)')


def test_one_that_would_wait_for_the_network_for_ever_is_unavailable(room: Played) -> None:
    waiting = {"type": "error", "message": "Reconnecting... waiting for network (Connection failed)"}
    script = f"for event in {[*BEGUN, *[waiting] * 3]!r}: say(event)\ntime.sleep(60)"
    with pytest.raises(AgentUnavailable, match="waiting for network"):
        room.play("codex", script)
    assert room.seconds < 10


def test_one_that_waited_for_the_network_and_reached_it_goes_on(room: Played) -> None:
    waiting = {"type": "error", "message": "Reconnecting... waiting for network (Connection failed)"}
    more = (waiting, waiting, item("reasoning", text="hm"), waiting, waiting, message("done"), completed())
    assert room.tell("codex", *BEGUN, *more).text == "done"


def test_one_that_kept_trying_until_it_was_too_late_says_what(room: Played) -> None:
    trouble = {"type": "error", "message": "Reconnecting... 2/5 (stream disconnected)"}
    script = f"for event in {[*BEGUN, trouble]!r}: say(event)\ntime.sleep(60)"
    with pytest.raises(AgentTimedOut, match="stream disconnected"):
        room.play("codex", script, asked(seconds=1.0))


def test_a_turn_that_began_must_end(room: Played) -> None:
    failure(room, *BEGUN, message("one"), completed(), BEGUN[1], kind=AgentMalformed, code=0)


# The record, and a full context


def written(home: Path, *, total: Event, last: Event | None = None, thread: str = THREAD) -> Path:
    """A record as Codex keeps it."""
    day = home / "sessions" / "2026" / "11" / "16"
    day.mkdir(parents=True, exist_ok=True)
    path = day / f"rollout-2026-11-16T07-32-18-{thread}.jsonl"
    info = {"total_token_usage": total, "last_token_usage": last or total, "model_context_window": 258400}
    entries: list[Event] = [
        {"type": "session_meta", "payload": {"id": thread}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": info}},
        {"type": "response_item", "payload": {"type": "message", "text": 'a "token_count" of its own'}},
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def test_a_record_says_what_was_used_and_how_full_the_context_is(tmp_path: Path) -> None:
    written(tmp_path, total=tokens(3000, 84, cached=600), last=tokens(2000, 42, cached=300))
    written(tmp_path, total=tokens(1, 1), thread="another")
    counted = Record(tmp_path, THREAD).counted()
    assert counted is not None
    assert counted.context == 2042
    assert counted.total.usage() == Usage(input_tokens=3000, output_tokens=84, cached_tokens=600)


def test_what_a_later_version_writes_at_once_is_understood(tmp_path: Path) -> None:
    path = written(tmp_path, total=tokens(3000, 84))
    told = {"usage": tokens(90_000, 42), "thread_token_usage": tokens(93_000, 126, cached=600)}
    with path.open("a") as file:
        file.write(json.dumps({"type": "token_usage_record", "payload": told}) + "\n")
    counted = Record(tmp_path, THREAD).counted()
    assert counted is not None
    assert counted.context == 90_042
    assert counted.total.usage() == Usage(input_tokens=93_000, output_tokens=126, cached_tokens=600)


def test_a_record_is_read_at_its_end_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, total=tokens(3000, 84))
    path.write_text("x" * 1_000_000 + "\n" + path.read_text())
    assert Record(tmp_path, THREAD).counted() is not None
    monkeypatch.setattr(codex_record, "END", 10)
    assert Record(tmp_path, THREAD).counted() is None


def test_what_is_in_the_place_of_a_record_is_not_trusted(tmp_path: Path) -> None:
    path = written(tmp_path / "home", total=tokens(3000, 84))
    elsewhere = path.rename(tmp_path / "elsewhere.jsonl")
    record = Record(tmp_path / "home", THREAD)
    path.symlink_to(elsewhere)
    assert record.counted() is None
    path.unlink()
    os.mkfifo(path)  # which would keep us waiting
    assert record.counted() is None
    path.unlink()
    path.mkdir()
    assert record.counted() is None


def test_a_directory_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    written(tmp_path / "other", total=tokens(3000, 84))
    (tmp_path / "home" / "sessions").mkdir(parents=True)
    (tmp_path / "home" / "sessions" / "2026").symlink_to(tmp_path / "other" / "sessions" / "2026")
    assert Record(tmp_path / "home", THREAD).counted() is None


def test_there_may_be_no_record(tmp_path: Path) -> None:
    assert Record(tmp_path, THREAD).counted() is None


def test_one_whose_context_is_nearly_full_hands_over(room: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex, "GLANCE", 0.0)
    written(room.home / ".codex", total=tokens(200_000, 900), last=tokens(90_000, 500))
    work = item("command_execution", command="true", event="started", status="in_progress")
    script = f"for event in {[*BEGUN, work]!r}: say(event)\ntime.sleep(60)"
    answer = room.play("codex", script, asked(threshold=80_000))
    assert answer.stop_reason == HANDED_OVER
    assert answer.context is not None
    assert (answer.context.used, answer.context.estimated) == (90_500, False)
    assert answer.usage == Usage(input_tokens=200_000, output_tokens=900)
    assert answer.session == THREAD


def test_a_home_of_another_name_is_found_by_its_variable(
    room: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex, "GLANCE", 0.0)
    written(room.home / "elsewhere", total=tokens(90_000, 500))
    script = f"for event in {[*BEGUN, message('hm')]!r}: say(event)\ntime.sleep(60)"
    env = {"CODEX_HOME": str(room.home / "elsewhere")}
    answer = room.play("codex", script, asked(threshold=80_000), env=env)
    assert answer.stop_reason == HANDED_OVER


def test_one_that_keeps_no_record_is_guessed_about(room: Played) -> None:
    large = item("command_execution", command="cat", aggregated_output="x" * 400_000, status="completed")
    script = f"for event in {[*BEGUN, large]!r}: say(event)\ntime.sleep(60)"
    answer = room.play("codex", script, asked(threshold=80_000))
    assert answer.stop_reason == HANDED_OVER
    assert answer.context is not None
    assert answer.context.estimated
