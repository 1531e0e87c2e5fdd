"""What Claude Code prints is understood: events as it prints them, in programs that print them."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pytest

from natives import Played, asked
from planforge.agents.native import program
from planforge.errors import (
    AgentCancelled,
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
SESSION = "ab96f1de-0000-4000-8000-000000000001"
INIT = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "claude-sonnet-4-5", "tools": []}


def tokens(fresh: int, output: int, *, read: int = 0, made: int = 0) -> Event:
    """Tokens as the service counts them."""
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": made,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }


def said(*blocks: Event, name: str = "msg_1", usage: Event | None = None, **more: Any) -> Event:
    """What the model said."""
    message = {"id": name, "model": "claude-sonnet-4-5", "role": "assistant", "content": list(blocks)}
    return {"type": "assistant", "message": message | {"usage": usage}, "session_id": SESSION, **more}


def text(words: str) -> Event:
    return {"type": "text", "text": words}


def used(tool: str, name: str = "toolu_1", **given: Any) -> Event:
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def returned(name: str = "toolu_1", content: str = "done", **more: Any) -> Event:
    """What a tool returned."""
    block = {"type": "tool_result", "tool_use_id": name, "content": content, **more}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": SESSION}


def result(words: str | None = "FINAL done.", **more: Any) -> Event:
    """How a turn ended. The type is not the first key: the program prints them in any order."""
    return {
        "duration_ms": 92,
        "session_id": SESSION,
        "is_error": False,
        "subtype": "success",
        "stop_reason": "end_turn",
        "terminal_reason": "completed",
        "result": words,
        "type": "result",
    } | more


def model_usage(fresh: int, output: int, *, read: int = 0, made: int = 0, cost: float = 0.0) -> Event:
    return {
        "inputTokens": fresh,
        "outputTokens": output,
        "cacheReadInputTokens": read,
        "cacheCreationInputTokens": made,
        "costUSD": cost,
    }


def failure(room: Played, *events: Event, kind: type[PlanforgeError], code: int = 1) -> PlanforgeError:
    """The error that a program which prints these events ends with."""
    with pytest.raises(PlanforgeError) as caught:
        room.tell("claude", *events, code=code)
    assert type(caught.value) is kind, caught.value
    return caught.value


def test_an_answer_has_what_the_program_says_of_it(room: Played) -> None:
    answer = room.tell(
        "claude",
        INIT,
        said(text("I will."), usage=tokens(1000, 1, read=300, made=20)),
        said(used("Write", file_path="a.py", content="x"), usage=tokens(1000, 1, read=300, made=20)),
        returned(),
        said(text("FINAL done."), name="msg_2", usage=tokens(1000, 1, read=300, made=20)),
        result(
            usage=tokens(2000, 84, read=600, made=40),
            total_cost_usd=0.00759,
            model_usage_since_last_result={
                "claude-sonnet-4-5": model_usage(2000, 84, read=600, made=40, cost=0.00759)
            },
        ),
    )
    assert answer == AgentAnswer(
        agent="it",
        text="FINAL done.",
        stop_reason="end_turn",
        tool_calls=1,
        usage=Usage(input_tokens=2640, output_tokens=84, cached_tokens=600),
        money=7590,
        model="claude-sonnet-4-5",
        session=SESSION,
        tools=(ToolUse(kind="edit", title="Write a.py", status="completed"),),
    )
    assert "Write a.py" in room.heard
    assert room.noted[0].session == SESSION


def test_helpers_and_their_models_are_part_of_what_was_used(room: Played) -> None:
    answer = room.tell(
        "claude",
        result(
            usage=tokens(1000, 42),
            total_cost_usd=9.0,
            model_usage_since_last_result={
                "claude-sonnet-4-5": model_usage(1000, 42, cost=0.25),
                "claude-haiku-4-5": model_usage(500, 8, read=100, cost=0.5),
            },
        ),
    )
    assert answer.usage == Usage(input_tokens=1600, output_tokens=50, cached_tokens=100)
    assert answer.money == 750_000


def test_a_total_that_includes_earlier_calls_is_not_taken_for_this_one(room: Played) -> None:
    ended = result(usage=tokens(1000, 42), total_cost_usd=0.0075)
    assert room.tell("claude", ended).money == 7500
    resumed = room.tell("claude", ended, task=asked(session=SESSION))
    assert resumed.money is None
    assert resumed.usage == Usage(input_tokens=1000, output_tokens=42)


def test_turns_that_follow_each_other_are_added_and_the_last_one_counts(room: Played) -> None:
    one = {"m": model_usage(1000, 10, cost=0.25)}
    two = {"m": model_usage(2000, 20, cost=0.5)}
    answer = room.tell(
        "claude",
        result("first", model_usage_since_last_result=one),
        said(text("there is more"), usage=tokens(2000, 1)),
        result("second", model_usage_since_last_result=two),
    )
    assert answer.text == "second"
    assert answer.usage == Usage(input_tokens=3000, output_tokens=30)
    assert answer.money == 750_000


def test_a_turn_that_began_after_the_last_one_ended_must_end_as_well(room: Played) -> None:
    failure(room, result("first"), said(text("there is more")), kind=AgentMalformed, code=0)


def test_figures_that_cannot_be_are_not_believed(room: Played) -> None:
    wrong = tokens(-5, 10**30)
    answer = room.tell("claude", result(usage=wrong, total_cost_usd=1e300))
    assert answer.usage is None
    assert answer.money is None


def test_a_call_that_does_not_end_has_noted_what_it_used(room: Played) -> None:
    with pytest.raises(AgentMalformed):
        room.tell(
            "claude",
            INIT,
            said(text("x" * 400), usage=tokens(1000, 1, read=300, made=20)),
            said(used("Bash", command="true"), usage=tokens(1000, 1, read=300, made=20)),
            said(text("y" * 40), name="msg_2", usage=tokens(2000, 1)),
        )
    usage = room.noted[-1].usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_tokens, usage.source) == (3320, 300, "estimated")
    assert usage.output_tokens in range(110, 125)


# Form and command


def test_an_answer_with_a_form_comes_as_json(room: Played) -> None:
    schema = '{"type": "object"}'
    form = result('{"n":3}', structured_output={"n": 3}, stop_reason="tool_use")
    task = asked(schema=schema)
    answer = room.tell("claude", INIT, said(used("StructuredOutput", n=3)), form, task=task)
    assert answer.output == '{"n": 3}'
    assert answer.tool_calls == 0
    assert room.commands[0][-2:] == ("--json-schema", schema)


def test_an_answer_without_the_form_that_was_asked_for_has_no_output(room: Played) -> None:
    answer = room.tell("claude", result("no form"), task=asked(schema="{}"))
    assert (answer.text, answer.output) == ("no form", "")


def test_a_conversation_is_gone_on_with_by_its_name(room: Played) -> None:
    room.tell("claude", result(), task=asked(session=SESSION))
    assert room.commands[0][-2:] == ("--resume", SESSION)


def test_a_prompt_that_looks_like_a_command_is_none(room: Played) -> None:
    kept = room.home / "kept"
    script = f"open({str(kept)!r}, 'wb').write(sys.stdin.buffer.read())\nsay({result()!r})"
    room.play("claude", script, asked("/clear everything"))
    assert kept.read_text() == "\n/clear everything"


# Tools


def test_tools_say_what_they_are_and_what_became_of_them(room: Played) -> None:
    answer = room.tell(
        "claude",
        said(used("Bash", "1", command="make\n  test", description="Run the tests")),
        returned("1", is_error=True),
        said(used("Grep", "2", pattern="x")),
        said(used("mcp__thing__do", "3", anything=[1])),
        said(used("Write", "4", file_path="/etc/passwd")),
        {"type": "system", "subtype": "permission_denied", "tool_name": "Write", "tool_use_id": "4"},
        returned("4", is_error=True),
        said(used("WebFetch", "5", url="http://x")),
        returned("5", is_error=True),
        result(permission_denials=[{"tool_name": "WebFetch", "tool_use_id": "5", "tool_input": {}}]),
    )
    assert answer.tools == (
        ToolUse(kind="execute", title="Bash make test", status="failed"),
        ToolUse(kind="search", title="Grep x"),
        ToolUse(kind="other", title="mcp__thing__do"),
        ToolUse(kind="edit", title="Write /etc/passwd", status="denied"),
        ToolUse(kind="fetch", title="WebFetch http://x", status="denied"),
    )
    assert answer.tool_calls == 5


def test_only_the_last_tools_are_listed_and_all_are_counted(room: Played) -> None:
    tools = [said(used("Read", str(number), file_path=f"{number}.py")) for number in range(300)]
    answer = room.tell("claude", *tools, result())
    assert answer.tool_calls == 300
    assert [tool.title for tool in answer.tools] == [f"Read {number}.py" for number in range(100, 300)]


def test_a_result_of_many_megabytes_is_passed_over(room: Played) -> None:
    script = f"""
        say({said(used("Read", file_path="large.bin"))!r})
        block = {{"type": "tool_result", "content": "x" * 20_000_000}}
        say({{"type": "user", "message": {{"content": [block]}}}})
        say({result()!r})
    """
    answer = room.play("claude", script)
    assert (answer.text, answer.tool_calls) == ("FINAL done.", 1)


def test_half_of_a_character_in_an_answer_does_not_lose_it(room: Played) -> None:
    line = b'{"type": "result", "is_error": false, "result": "cut \\ud83d off"}\n'
    assert room.play("claude", f"put({line!r})").text == "cut \ufffd off"


# Failures


def error(words: str, status: int | None, **more: Any) -> Event:
    """How a turn ends that failed: its subtype says `success`."""
    return result(words, is_error=True, api_error_status=status, terminal_reason="api_error", **more)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (error("Failed to authenticate. API Error: 401 no", 401), AgentUnauthenticated),
        (error("Not logged in · Please run /login", None), AgentUnauthenticated),
        (error("API Error: Request rejected (429) · slow down", 429), AgentLimited),
        (error("API Error: 500 oh. This is a server-side issue", 500), AgentFailed),
        (error("API Error: 529 overloaded", 529), AgentFailed),
        (error("API Error: Connection refused (ECONNREFUSED)", None), AgentUnavailable),
        (error("API Error: API returned an empty or malformed response (HTTP 200)", None), AgentFailed),
        (result(None, is_error=True, subtype="error_max_turns", terminal_reason="max_turns"), AgentFailed),
        (result("half", stop_reason="max_tokens"), AgentFailed),
        (result("I cannot help with that", stop_reason="refusal"), AgentFailed),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_a_turn_that_failed_says_how(
    room: Played, event: Event, kind: type[PlanforgeError], code: int
) -> None:
    failure(room, INIT, event, kind=kind, code=code)


def test_a_conversation_that_is_not_there_is_named(room: Played) -> None:
    gone = result(None, is_error=True, subtype="error_during_execution", terminal_reason=None)
    told = failure(room, gone | {"errors": ["No conversation found with session ID: 0"]}, kind=AgentFailed)
    assert "No conversation found" in told.message


@pytest.mark.parametrize("code", [0, 1])
def test_an_interrupted_one_ends_with_0_and_was_cancelled(room: Played, code: int) -> None:
    interrupted = result(
        None, is_error=True, subtype="error_during_execution", terminal_reason="aborted_tools"
    )
    failure(room, INIT, interrupted, kind=AgentCancelled, code=code)


def test_a_limit_says_until_when(room: Played) -> None:
    resets = int(time.time()) + 3600
    info = {"status": "rejected", "resetsAt": resets, "rateLimitType": "five_hour"}
    told = failure(
        room,
        INIT,
        {"type": "rate_limit_event", "rate_limit_info": info},
        error("You've hit your 5-hour limit", 429),
        kind=AgentLimited,
    )
    assert isinstance(told, AgentLimited)
    assert datetime.fromisoformat(told.until).timestamp() == resets


def test_a_limit_that_is_not_reached_is_none(room: Played) -> None:
    info = {"status": "allowed_warning", "resetsAt": int(time.time()) + 3600}
    answer = room.tell("claude", {"type": "rate_limit_event", "rate_limit_info": info}, result())
    assert answer.text == "FINAL done."


def test_one_that_kept_trying_until_it_was_too_late_failed_of_what_it_tried(room: Played) -> None:
    retry = {
        "type": "system",
        "subtype": "api_retry",
        "attempt": 3,
        "error_status": 429,
        "error": "rate_limit",
    }
    script = f"say({INIT!r})\nsay({retry!r})\ntime.sleep(60)"
    with pytest.raises(AgentLimited):
        room.play("claude", script, asked(seconds=1.0))
    with pytest.raises(AgentTimedOut):
        room.play("claude", script.replace("429", "500").replace("rate_limit", "server"), asked(seconds=1.0))


def test_a_result_without_an_error_flag_is_malformed(room: Played) -> None:
    ended = result()
    del ended["is_error"]
    failure(room, INIT, ended, kind=AgentMalformed, code=0)


# A full context


def full(used_tokens: int, last: str) -> str:
    """A script that says how full its context is while it uses a tool."""
    begun = said(used("Bash", command="true"), usage=tokens(used_tokens - 400, 1, read=400))
    return f"say({INIT!r})\nsay({begun!r})\n{last}"


def test_one_whose_context_is_nearly_full_hands_over(room: Played) -> None:
    answer = room.play("claude", full(90_000, "time.sleep(60)"), asked(threshold=80_000))
    assert answer.stop_reason == HANDED_OVER
    assert answer.context is not None
    assert answer.context.used in range(90_000, 90_100)
    assert not answer.context.estimated
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.source) == (90_000, "estimated")
    assert answer.session == SESSION
    assert room.seconds < 10


@pytest.mark.parametrize("threshold", [0, 100_000])
def test_one_whose_context_is_not_full_goes_on(room: Played, threshold: int) -> None:
    ended = f"time.sleep(1.5)\nsay({result()!r})"
    answer = room.play("claude", full(90_000, ended), asked(threshold=threshold))
    assert answer.stop_reason == "end_turn"


def test_one_that_was_at_its_last_word_has_answered(room: Played) -> None:
    answer = room.play("claude", full(90_000, f"say({result()!r})"), asked(threshold=80_000))
    assert answer.stop_reason == "end_turn"


def test_what_a_helper_has_in_its_context_is_its_own(room: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "GRACE", 0.2)
    helper = said(text("hm"), usage=tokens(90_000, 1), parent_tool_use_id="toolu_1")
    script = f"say({helper!r})\ntime.sleep(1)\nsay({result()!r})"
    assert room.play("claude", script, asked(threshold=80_000)).stop_reason == "end_turn"


def test_one_that_does_not_say_how_full_it_is_is_guessed_about(room: Played) -> None:
    large = returned(content="x" * 400_000)
    answer = room.play("claude", f"say({large!r})\ntime.sleep(60)", asked(threshold=80_000))
    assert answer.stop_reason == HANDED_OVER
    assert answer.context is not None
    assert answer.context.estimated


def test_what_it_prints_may_be_of_a_later_version(room: Played) -> None:
    answer = room.tell("claude", {"type": "unheard_of", "session_id": SESSION}, result(brand_new={"a": 1}))
    assert answer.text == "FINAL done."
    assert "unheard_of" in room.heard
