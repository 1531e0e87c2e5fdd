"""What the rehearsal agent can say and do wrong, as a real process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import acp
import pytest
from acp.schema import AgentPlanUpdate, UsageUpdate

from planforge import testing
from testing.listeners import Listener, converse
from testing.wires import PATIENCE, Message, Wire, scene


def test_tool_calls_are_told_as_scripted(script: Callable[..., Path], room: Path) -> None:
    listener = Listener()
    path = script(
        scene(
            {"tool": "grep", "input": {"for": "${cwd}"}, "kind": "search", "paths": ["a"], "output": "found"},
            {"tool": "fetch", "status": "failed", "kind": "fetch"},
            {"tool": "think", "status": "in_progress"},
        )
    )
    converse(path, room, listener)
    starts, ends = listener.started, listener.ended
    assert [(start.title, start.kind) for start in starts] == [
        ("grep", "search"),
        ("fetch", "fetch"),
        ("think", "other"),
    ]
    assert starts[0].raw_input == {"for": str(room)}
    assert [place.path for place in starts[0].locations or []] == [str(room / "a")]
    assert [end.status for end in ends] == ["completed", "failed"]


def test_files_are_read_and_edited(script: Callable[..., Path], room: Path) -> None:
    (room / "a").write_text("one two two")
    listener = Listener()
    path = script(
        scene(
            {"read": "a"},
            {"read": "missing"},
            {"edit": {"path": "a", "old": "one", "new": "three"}},
            {"edit": {"path": "a", "old": "two", "new": "x"}},
        )
    )
    converse(path, room, listener)
    assert [start.kind for start in listener.started] == ["read", "read", "edit", "edit"]
    assert [end.status for end in listener.ended] == ["completed", "failed", "completed", "failed"]
    assert (room / "a").read_text() == "three two two"


def test_costs_plans_and_quotas_are_reported(script: Callable[..., Path], room: Path) -> None:
    listener = Listener()
    path = script(
        scene(
            {"context": {"used": 10, "size": 100, "cost": 0.25}},
            {"context": 20},
            {"plan": ["first", {"step": "second", "status": "completed"}]},
            {"quota": {"input": 3, "output": 4}},
        )
    )
    answer = converse(path, room, listener)
    assert answer.field_meta == {"quota": {"token_count": {"input_tokens": 3, "output_tokens": 4}}}
    told = [update for update in listener.updates if isinstance(update, UsageUpdate)]
    assert [(update.used, update.size) for update in told] == [(10, 100), (20, 128_000)]
    assert told[0].cost is not None
    assert (told[0].cost.amount, told[0].cost.currency) == (0.25, "USD")
    [plan] = [update for update in listener.updates if isinstance(update, AgentPlanUpdate)]
    assert [(entry.content, entry.status) for entry in plan.entries] == [
        ("first", "pending"),
        ("second", "completed"),
    ]


def test_usage_adds_up(script: Callable[..., Path], room: Path) -> None:
    usage = {"usage": {"input": 5, "output": 7, "cached": 1}}
    answer = converse(script(scene(usage, usage)), room, Listener())
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.cached_read_tokens, answer.usage.total_tokens) == (
        10,
        2,
        26,
    )


@pytest.mark.parametrize(("choice", "said"), [("allow_once", "yes, sure"), ("reject_once", "no, sorry")])
def test_a_permission_names_paths_and_chooses_between_two_lists(
    script: Callable[..., Path], room: Path, choice: str, said: str
) -> None:
    listener = Listener(choice)
    inner = {"ask": {"title": "Sure?", "allowed": [{"say": "sure"}], "denied": [{"say": "sorry"}]}}
    outer = {
        "title": "Write?",
        "paths": ["a/b", "/etc/passwd"],
        "allowed": [{"say": "yes, "}, inner],
        "denied": [{"say": "no, "}, inner],
    }
    converse(script(scene({"ask": outer})), room, listener)
    assert listener.said == said
    call, _ = listener.questions[0]
    assert [place.path for place in call.locations or []] == [str(room / "a/b"), "/etc/passwd"]


@pytest.mark.parametrize(
    ("action", "code", "message", "data"),
    [
        (
            {"error": {"code": -32000, "message": "log in", "data": {"kind": "auth"}}},
            -32000,
            "log in",
            {"kind": "auth"},
        ),
        ({"http": {"status": 401}}, -32000, "Authentication required", {"status": 401}),
        ({"http": {"status": 500}}, -32603, "the model's server answered 500", {"status": 500}),
        ({"http": {"status": 429, "message": "full"}}, -32603, "full", {"status": 429}),
    ],
)
def test_errors_have_codes_and_data(
    script: Callable[..., Path], room: Path, action: Message, code: int, message: str, data: Message
) -> None:
    with pytest.raises(acp.RequestError) as caught:
        converse(script(scene(action)), room, Listener())
    assert (caught.value.code, str(caught.value), caught.value.data) == (code, message, data)


def test_a_limit_says_when_it_ends(script: Callable[..., Path], room: Path) -> None:
    with pytest.raises(acp.RequestError) as caught:
        converse(script(scene({"http": {"status": 429, "reset": 60}})), room, Listener())
    assert isinstance(caught.value.data, dict)
    assert 0 < caught.value.data["resetsAt"] - time.time() <= 60


@pytest.mark.parametrize(
    "fault", [{"error": {"code": 1, "message": "x", "times": 2}}, {"http": {"status": 500, "times": 2}}]
)
def test_a_fault_that_comes_twice_comes_twice_over_all_processes(
    script: Callable[..., Path], room: Path, tmp_path: Path, fault: Message
) -> None:
    path = script(scene(fault, {"say": "at last"}))
    answers = []
    for text in ("go", "go", "go", "another"):
        with Wire("--sessions", str(tmp_path / "kept"), str(path)) as wire:
            request = wire.prompt(room, text)
            while (message := wire.message()).get("id") != request:
                pass
            answers.append("error" in message)
    assert answers == [True, True, False, True]


def test_one_line_has_exactly_its_size(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"line": 3_000_001})))) as wire:
        wire.prompt(room)
        line = wire.line()
        assert len(line) + 1 == 3_000_001
        assert set(json.loads(line)["params"]["update"]["content"]["text"]) == {"x"}
        assert wire.message()["result"] == {"stopReason": "end_turn"}


def test_an_endless_flood_ends_when_it_is_cancelled(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"flood": "endless"})))) as wire:
        request = wire.prompt(room)
        for _ in range(2000):
            assert wire.message()["method"] == "session/update"
        wire.notify("session/cancel", sessionId="rehearsal-1")
        while (message := wire.message()).get("id") != request:
            pass
        assert message["result"] == {"stopReason": "cancelled"}


def test_bytes_that_are_no_text_come_as_they_are(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"hex": "ff fe 00 1b 5b 32 4a 0a"}, {"garbage": "\0\x1b[31m\n"})))) as wire:
        wire.prompt(room)
        assert [wire.line(), wire.line()] == [b"\xff\xfe\x00\x1b[2J", b"\0\x1b[31m"]
        assert wire.message()["result"] == {"stopReason": "end_turn"}


def test_control_characters_can_be_said(script: Callable[..., Path], room: Path) -> None:
    listener = Listener()
    converse(script(scene({"say": "a\0b\x1b[31mc"})), room, listener)
    assert listener.said == "a\0b\x1b[31mc"


def test_half_an_answer_is_all_there_is(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"truncate": True})))) as wire:
        wire.prompt(room)
        half = wire.line()
        assert half.startswith(b'{"jsonrpc"')
        with pytest.raises(json.JSONDecodeError):
            json.loads(half)
        assert wire.process.wait(PATIENCE) == 0


def test_a_prompt_can_be_answered_twice(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"twice": True})))) as wire:
        request = wire.prompt(room)
        assert [wire.message()["id"], wire.message()["id"]] == [request, request]


@pytest.mark.parametrize(("action", "code"), [({"leave": 1}, 1), ({"leave": 0}, 0)])
def test_it_can_end_badly_after_a_good_answer(
    script: Callable[..., Path], room: Path, action: Message, code: int
) -> None:
    with Wire(str(script(scene({"say": "good"}, action)))) as wire:
        wire.prompt(room)
        assert wire.message()["params"]["update"]["content"]["text"] == "good"
        assert wire.message()["result"] == {"stopReason": "end_turn"}
        assert wire.process.wait(PATIENCE) == code


def test_it_can_end_well_without_an_answer(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"drop": True})))) as wire:
        wire.prompt(room)
        assert wire.line() == b""
        assert wire.process.wait(PATIENCE) == 0


def test_a_slow_agent_takes_its_time(script: Callable[..., Path], room: Path) -> None:
    begun = time.monotonic()
    converse(script(scene({"slow": 0.2}, {"say": "x" * 3000})), room, Listener())
    assert time.monotonic() - begun > 0.6


# How it is started


def test_the_command_plays_the_script_and_keeps_a_journal(
    script: Callable[..., Path], room: Path, tmp_path: Path
) -> None:
    journal, kept = tmp_path / "journal", tmp_path / "kept"
    command = testing.rehearsal_command(script(scene({"say": "x"}), load=True), journal, sessions=kept)
    with Wire(*command[3:]) as wire:
        wire.prompt(room)
        assert wire.message()["method"] == "session/update"
        assert "result" in wire.message()
    assert command[1:3] == ["-m", "planforge.testing.rehearsal"]
    assert len(journal.read_text().splitlines()) == 2
    assert len(list(kept.iterdir())) == 1


def test_no_command_is_made_for_a_bad_script(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("{}")
    with pytest.raises(testing.ScriptError, match="has no `name`"):
        testing.rehearsal_command(path)


def test_what_is_public_can_be_had_and_nothing_else() -> None:
    for name in testing.__all__:
        assert getattr(testing, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute `Model`"):
        testing.Model  # noqa: B018
