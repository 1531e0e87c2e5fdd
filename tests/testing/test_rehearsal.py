"""The rehearsal agent as a real process, driven by the real client library and by raw lines."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import acp
import pytest
from acp.schema import (
    AgentThoughtChunk,
)

import planforge
from planforge.testing import script as rehearsal_script
from planforge.testing.script import grammar
from testing.listeners import Listener, cancelled_after_news, converse
from testing.wires import COMMAND, ENVIRONMENT, PATIENCE, Message, Wire, eventually, scene

GUIDE = Path(__file__).parents[2] / "docs" / "rehearsal-agent.md"


# The client library


def test_it_introduces_itself(script: Callable[..., Path]) -> None:
    async def introduction() -> acp.InitializeResponse:
        async with (
            asyncio.timeout(PATIENCE),
            acp.spawn_agent_process(Listener(), *COMMAND, str(script()), env=ENVIRONMENT) as (agent, _),  # type: ignore[arg-type]
        ):
            answer = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            await agent.authenticate(method_id="none")
            return answer

    answer = asyncio.run(introduction())
    assert answer.protocol_version == 1
    assert answer.agent_info is not None
    assert (answer.agent_info.name, answer.agent_info.version) == (
        "planforge-rehearsal",
        planforge.__version__,
    )
    assert answer.agent_capabilities is not None
    assert answer.agent_capabilities.load_session is False


def test_it_thinks_and_says_and_a_long_text_comes_in_several_chunks(
    script: Callable[..., Path], room: Path
) -> None:
    listener = Listener()
    answer = converse(script(scene({"think": "hm"}, {"say": "déjà " * 1000})), room, listener)
    assert answer.stop_reason == "end_turn"
    assert answer.usage is None
    assert listener.chunks(AgentThoughtChunk) == ["hm"]
    assert listener.said == "déjà " * 1000
    assert len(listener.chunks()) > 1


def test_a_written_file_is_announced_with_its_location(script: Callable[..., Path], room: Path) -> None:
    listener = Listener()
    converse(script(scene({"write": {"path": "a/b/c.txt", "text": "one\r\ntwo"}})), room, listener)
    assert (room / "a/b/c.txt").read_bytes() == b"one\r\ntwo"
    [start], [end] = listener.started, listener.ended
    assert (start.kind, start.status, end.status) == ("edit", "in_progress", "completed")
    assert start.tool_call_id == end.tool_call_id
    assert [place.path for place in end.locations or []] == [str(room / "a/b/c.txt")]


def test_it_appends_and_deletes(script: Callable[..., Path], room: Path) -> None:
    (room / "log").write_text("one\n")
    (room / "old").write_text("")
    listener = Listener()
    converse(script(scene({"append": {"path": "log", "text": "two\n"}}, {"delete": "old"})), room, listener)
    assert (room / "log").read_text() == "one\ntwo\n"
    assert not (room / "old").exists()
    assert [start.kind for start in listener.started] == ["edit", "delete"]
    assert [end.status for end in listener.ended] == ["completed", "completed"]


def test_nothing_stops_a_script_from_writing_outside(script: Callable[..., Path], room: Path) -> None:
    absolute = room.parent / "absolute"
    listener = Listener()
    converse(
        script(
            scene(
                {"write": {"path": "../relative", "text": "r"}},
                {"write": {"path": str(absolute), "text": "a"}},
            )
        ),
        room,
        listener,
    )
    assert (room.parent / "relative").read_text() == "r"
    assert absolute.read_text() == "a"
    assert listener.ended[0].locations is not None
    assert listener.ended[0].locations[0].path == str(room.parent / "relative")


@pytest.mark.parametrize(
    "action",
    [
        {"delete": "missing"},
        {"write": {"path": ".", "text": ""}},
        {"write": {"path": "nul\0", "text": ""}},
        {"write": {"path": "file", "text": "\ud800"}},
        {"run": ["no-such-program"]},
        {"run": ["false"]},
    ],
)
def test_a_failed_tool_call_is_reported_and_the_turn_goes_on(
    script: Callable[..., Path], room: Path, action: Message
) -> None:
    listener = Listener()
    answer = converse(script(scene(action, {"say": "still here"})), room, listener)
    assert [end.status for end in listener.ended] == ["failed"]
    assert (answer.stop_reason, listener.said) == ("end_turn", "still here")


def test_a_command_runs_in_the_sessions_directory_without_the_protocols_stdin(
    script: Callable[..., Path], room: Path
) -> None:
    listener = Listener()
    code = "import os, sys; print('noise'); open('seen', 'w').write(os.getcwd() + sys.stdin.read())"
    converse(script(scene({"run": [sys.executable, "-c", code]})), room, listener)
    assert (room / "seen").read_text() == str(room)
    [start], [end] = listener.started, listener.ended
    assert (start.kind, end.status, end.raw_output) == ("execute", "completed", {"exitCode": 0})


@pytest.mark.parametrize(
    ("choice", "said"),
    [("allow_once", "yes"), ("reject_once", "no"), ("cancelled", "no")],
)
def test_a_permission_decides_what_is_done(
    script: Callable[..., Path], room: Path, choice: str, said: str
) -> None:
    listener = Listener(choice)
    path = script(
        scene(
            {"ask": {"title": "Write it?", "kind": "execute"}},
            {"say": "yes", "if": "allowed"},
            {"say": "no", "if": "denied"},
        )
    )
    converse(path, room, listener)
    [(call, options)] = listener.questions
    assert (call.title, call.kind) == ("Write it?", "execute")
    assert [option.kind for option in options] == ["allow_once", "reject_once"]
    assert listener.said == said


def test_the_last_permission_counts(script: Callable[..., Path], room: Path) -> None:
    listener = Listener("reject_once")
    ask = {"ask": {"title": "?"}}
    converse(script(scene(ask, {**ask, "if": "allowed"}, {"say": "no", "if": "denied"})), room, listener)
    assert len(listener.questions) == 1
    assert listener.said == "no"


def test_usage_and_stop_reason_are_reported_as_told(script: Callable[..., Path], room: Path) -> None:
    usage = {"input": 5, "output": 7, "thought": 1, "cached_read": 2, "cached_write": 3}
    answer = converse(script(scene({"usage": usage}, {"stop": "max_tokens"})), room, Listener())
    assert answer.stop_reason == "max_tokens"
    assert answer.usage is not None
    assert answer.usage.model_dump(exclude_none=True) == {
        "total_tokens": 18,
        "input_tokens": 5,
        "output_tokens": 7,
        "thought_tokens": 1,
        "cached_read_tokens": 2,
        "cached_write_tokens": 3,
    }


def test_a_usage_of_zero_is_not_the_same_as_none(script: Callable[..., Path], room: Path) -> None:
    answer = converse(script(scene({"usage": {"input": 0, "output": 0}})), room, Listener())
    assert answer.usage is not None
    assert answer.usage.total_tokens == 0


def test_an_error_answers_the_prompt(script: Callable[..., Path], room: Path) -> None:
    listener = Listener()
    with pytest.raises(acp.RequestError, match="overloaded") as caught:
        converse(
            script(scene({"error": {"code": -32099, "message": "overloaded"}}, {"say": "x"})), room, listener
        )
    assert caught.value.code == -32099
    assert listener.said == ""


def test_the_first_scene_that_holds_all_its_texts_is_played(script: Callable[..., Path], room: Path) -> None:
    listener = Listener()
    path = script(
        {"when": ["alpha", "beta"], "do": [{"say": "both"}]},
        {"when": ["beta"], "do": [{"say": "beta"}]},
        {"when": [], "do": [{"say": "any"}]},
    )
    for prompt, said in (("beta alpha", "both"), ("beta", "beta"), ("alpha", "any")):
        listener = Listener()
        converse(path, room, listener, prompt)
        assert listener.said == said


def test_a_prompt_without_a_scene_is_refused_by_its_head(script: Callable[..., Path], room: Path) -> None:
    with pytest.raises(acp.RequestError, match="no scene of `test` fits the prompt `Fix the bug, please`"):
        converse(script(scene(when="alpha")), room, Listener(), "Fix the bug\nplease\n\nSoon.")


def test_placeholders_are_filled_from_the_prompt(script: Callable[..., Path], room: Path) -> None:
    listener = Listener()
    path = script(
        scene(
            {"say": "${cwd} ${file} $${file} ${1 + 1} $HOME"},
            {"write": {"path": "${file}", "text": "for ${file}"}},
            {"run": ["touch", "${file}.run"]},
            match={"file": r"write (\S+)"},
        )
    )
    converse(path, room, listener, "please write notes.md now")
    assert listener.said == f"{room} notes.md ${{file}} ${{1 + 1}} $HOME"
    assert (room / "notes.md").read_text() == "for notes.md"
    assert (room / "notes.md.run").exists()


def test_a_pattern_that_finds_nothing_fails_the_prompt(script: Callable[..., Path], room: Path) -> None:
    with pytest.raises(acp.RequestError, match=r"`scenes\[0\]`: `match.file` finds nothing"):
        converse(script(scene({"say": "${file}"}, match={"file": r"write (\S+)"})), room, Listener())


@pytest.mark.parametrize(
    "waiting",
    [{"sleep": 600}, {"hang": True}, {"run": ["sleep", "600"]}, {"flood": 10**12}, {"ask": {"title": "?"}}],
)
def test_a_cancelled_turn_says_so(script: Callable[..., Path], room: Path, waiting: Message) -> None:
    listener = Listener("never")
    answer = cancelled_after_news(script(scene({"say": "x"}, waiting, {"say": "not this"})), room, listener)
    assert answer.stop_reason == "cancelled"
    assert "not this" not in listener.said


def test_a_flood_has_exactly_its_size(script: Callable[..., Path], room: Path) -> None:
    listener = Listener()
    converse(script(scene({"flood": 100_001})), room, listener)
    assert len(listener.said) == 100_001


def test_a_detached_child_outlives_the_agent_in_its_own_session(
    script: Callable[..., Path], room: Path
) -> None:
    listener = Listener()
    converse(script(scene({"detach": 600})), room, listener)
    output = listener.ended[0].raw_output
    assert isinstance(output, dict)
    try:
        assert os.getsid(output["pid"]) == output["pid"]
    finally:
        os.kill(output["pid"], signal.SIGKILL)


# Raw lines


@pytest.mark.parametrize(
    ("action", "code"),
    [({"exit": 3}, 3), ({"die": "KILL"}, -signal.SIGKILL), ({"die": "INT"}, -signal.SIGINT)],
)
def test_an_agent_may_end_without_an_answer(
    script: Callable[..., Path], room: Path, action: Message, code: int
) -> None:
    with Wire(str(script(scene({"say": "bye"}, action)))) as wire:
        wire.prompt(room)
        assert wire.message()["params"]["update"]["content"]["text"] == "bye"
        assert wire.line() == b""
        assert wire.end() == (code, "")


@pytest.mark.parametrize("waiting", [{"sleep": 600}, {"hang": True}, {"ask": {"title": "?"}}])
def test_the_end_of_the_client_ends_the_agent(
    script: Callable[..., Path], room: Path, waiting: Message
) -> None:
    with Wire(str(script(scene({"say": "now"}, waiting)))) as wire:
        wire.prompt(room)
        wire.message()
        wire.leave()
        assert wire.process.wait(PATIENCE) == 0


def test_the_end_of_the_client_ends_a_running_command(script: Callable[..., Path], room: Path) -> None:
    shell = "echo $$ > pid.new; mv pid.new pid; exec sleep 600"
    with Wire(str(script(scene({"run": ["sh", "-c", shell]})))) as wire:
        wire.prompt(room)
        eventually((room / "pid").exists)
        wire.leave()
        assert wire.process.wait(PATIENCE) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((room / "pid").read_text()), 0)


def test_a_client_that_no_longer_reads_ends_a_flood(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"flood": 10**12})))) as wire:
        wire.prompt(room)
        wire.message()
        assert wire.process.stdout is not None
        wire.process.stdout.close()
        assert wire.process.wait(PATIENCE) == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see ignored signals")
def test_a_deaf_agent_ignores_cancellation_the_end_of_the_client_and_sigterm(
    script: Callable[..., Path], room: Path
) -> None:
    def ignores_sigterm() -> bool:
        status = Path(f"/proc/{wire.process.pid}/status").read_text()
        ignored = re.search(r"^SigIgn:\s*(\w+)", status, re.MULTILINE)
        return ignored is not None and bool(int(ignored[1], 16) & 1 << (signal.SIGTERM - 1))

    with Wire(str(script(scene({"hang": "deaf"})))) as wire:
        wire.prompt(room)
        eventually(ignores_sigterm)
        wire.notify("session/cancel", sessionId="rehearsal-1")
        wire.leave()
        os.kill(wire.process.pid, signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            wire.process.wait(0.5)
        os.kill(wire.process.pid, signal.SIGKILL)
        assert wire.process.wait(PATIENCE) == -signal.SIGKILL
        assert wire.line() == b""


def test_garbage_goes_to_stdout_and_stderr_to_stderr_as_they_are(
    script: Callable[..., Path], room: Path
) -> None:
    with Wire(str(script(scene({"garbage": "<html>${cwd}\n{"}, {"stderr": "warning: odd\n"})))) as wire:
        wire.prompt(room)
        assert wire.line().decode() == f"<html>{room}"
        assert wire.line().startswith(b'{{"jsonrpc"')
        assert wire.end() == (0, "warning: odd\n")


def test_other_requests_are_answered_while_a_prompt_runs(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"hang": True}, when="wait"), scene({"say": "quick"})))) as wire:
        wire.prompt(room, "wait")
        prompt = [{"type": "text", "text": "again"}]
        again = wire.answer("session/prompt", sessionId="rehearsal-1", prompt=prompt)
        assert again["error"] == {
            "code": -32600,
            "message": "session `rehearsal-1` is still answering a prompt",
        }
        assert wire.answer("session/set_mode", sessionId="rehearsal-1", modeId="plan")["result"] == {}
        assert wire.answer("session/new", cwd=str(room), mcpServers=[])["result"] == {
            "sessionId": "rehearsal-2"
        }
        quick = wire.answer("session/prompt", sessionId="rehearsal-2", prompt=prompt)
        assert quick["result"] == {"stopReason": "end_turn"}


def test_cancelling_one_session_leaves_the_other_alone(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"hang": True})))) as wire:
        first, second = wire.prompt(room), wire.prompt(room)
        wire.notify("session/cancel", sessionId="rehearsal-9")
        wire.notify("session/cancel", sessionId="rehearsal-2")
        assert wire.message() == {"jsonrpc": "2.0", "id": second, "result": {"stopReason": "cancelled"}}
        wire.notify("session/cancel", sessionId="rehearsal-1")
        assert wire.message()["id"] == first


def test_an_answer_nobody_asked_for_wakes_no_turn(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene({"hang": True})))) as wire:
        wire.prompt(room)
        for request in (None, 7, "permission-call-1"):
            stray = {"jsonrpc": "2.0", "id": request, "result": {"outcome": {"outcome": "cancelled"}}}
            wire.send_raw(json.dumps(stray).encode() + b"\n")
        assert wire.answer("session/set_mode", sessionId="rehearsal-1", modeId="plan")["result"] == {}
        wire.notify("session/cancel", sessionId="rehearsal-1")
        assert wire.message()["result"] == {"stopReason": "cancelled"}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{not json", -32700),
        (b'"\xff"', -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"{}", -32600),
        (b'{"id": 5, "method": 7}', -32600),
        (b'{"id": 5, "method": "session/load"}', -32601),
        (b'{"id": 5, "method": "session/new", "params": []}', -32602),
        (b'{"id": 5, "method": "session/new", "params": {"cwd": "."}}', -32602),
        (b'{"id": 5, "method": "session/new", "params": {"cwd": "/no/such/directory"}}', -32602),
        (b'{"id": 5, "method": "session/prompt", "params": {"sessionId": []}}', -32602),
    ],
)
def test_a_bad_message_is_refused_and_the_next_is_answered(
    script: Callable[..., Path], line: bytes, code: int
) -> None:
    with Wire(str(script())) as wire:
        wire.send_raw(b"\n" + line + b"\n")
        refusal = wire.message()
        assert refusal["error"]["code"] == code
        assert refusal["id"] == (5 if code in (-32601, -32602) else None)
        assert "result" in wire.answer("initialize", protocolVersion=1)


def test_a_prompt_must_be_a_list_of_blocks(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene()))) as wire:
        wire.answer("session/new", cwd=str(room), mcpServers=[])
        assert wire.answer("session/prompt", sessionId="rehearsal-1", prompt="go")["error"]["code"] == -32602


def test_a_message_may_come_in_pieces_and_two_in_one(script: Callable[..., Path]) -> None:
    with Wire(str(script())) as wire:
        wire.send_raw(b'{"id": 1, "method": "initia')
        wire.send_raw(b'lize"}\n{"id": 2, "method": "authenticate"}\n')
        assert [wire.message()["id"], wire.message()["id"]] == [1, 2]


# Bad scripts


def refusal_of(*arguments: str, room: Path, **variables: str) -> str:
    """What session/new is refused with; checks that initialize still works and that stderr says the same."""
    with Wire(*arguments, **variables) as wire:
        assert wire.answer("initialize", protocolVersion=1)["result"]["protocolVersion"] == 1
        error = wire.answer("session/new", cwd=str(room), mcpServers=[])["error"]
        assert error["code"] == -32603
        assert wire.end() == (0, f"planforge-rehearsal: {error['message']}\n")
        return str(error["message"])


def test_without_a_script_it_says_how_to_give_one(room: Path) -> None:
    assert refusal_of(room=room) == (
        "no script: give its path, or set `PLANFORGE_REHEARSAL_SCRIPT` in `env` of the agent's profile"
    )


def test_a_missing_script_is_named(room: Path) -> None:
    assert refusal_of("/no/such.json", room=room) == (
        "cannot read the script `/no/such.json`: No such file or directory; "
        "if it is there, a sandbox hides it: name it in `reads` of the agent's profile"
    )


def test_a_script_may_be_named_by_the_environment(script: Callable[..., Path], room: Path) -> None:
    path = script(scene({"sing": "la"}))
    refusal = refusal_of(room=room, PLANFORGE_REHEARSAL_SCRIPT=str(path))
    assert refusal.startswith(f"bad script `{path}`: `scenes[0].do[0]`: unknown action `sing` (known: say, ")


def test_more_than_one_argument_is_a_usage_error() -> None:
    with Wire("one.json", "two.json") as wire:
        assert wire.end() == (
            2,
            "usage: planforge-rehearsal [--journal FILE] [--sessions DIRECTORY] [SCRIPT.json]\n",
        )


# The journal


def journal_lines(path: Path) -> list[Message]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_journal_counts_prompts_across_crashes(
    script: Callable[..., Path], room: Path, tmp_path: Path
) -> None:
    path = script(scene({"exit": 1}, when="crash"), scene({"say": "fine"}))
    journal = tmp_path / "journal"
    pids = []
    for text in ("crash", "work"):
        with Wire(str(path), PLANFORGE_REHEARSAL_JOURNAL=str(journal)) as wire:
            pids.append(wire.process.pid)
            wire.prompt(room, text)
            while wire.line().startswith(b'{"jsonrpc": "2.0", "method"'):
                pass
    crash, work = (hashlib.sha256(text).hexdigest() for text in (b"crash", b"work"))
    assert journal_lines(journal) == [
        {"event": "asked", "prompt": crash, "scene": 0, "pid": pids[0]},
        {"event": "asked", "prompt": work, "scene": 1, "pid": pids[1]},
        {"event": "answered", "prompt": work, "scene": 1, "pid": pids[1]},
    ]


def test_the_journal_knows_prompts_that_no_scene_fits(
    script: Callable[..., Path], room: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    with Wire(str(script()), PLANFORGE_REHEARSAL_JOURNAL=str(journal)) as wire:
        wire.prompt(room)
        assert "error" in wire.message()
        assert [(line["event"], line["scene"]) for line in journal_lines(journal)] == [
            ("asked", None),
            ("answered", None),
        ]


def test_a_journal_that_cannot_be_written_fails_the_prompt(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene())), PLANFORGE_REHEARSAL_JOURNAL="/no/such/journal") as wire:
        wire.prompt(room)
        assert wire.message()["error"]["message"] == (
            "cannot write the journal `/no/such/journal`: No such file or directory"
        )


# The program and its guide


def test_it_loads_nothing_heavy() -> None:
    code = "import planforge.testing.rehearsal, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, check=True, capture_output=True, text=True
    ).stdout.split()
    heavy = {"acp", "asyncio", "click", "dataclasses", "msgspec", "pathlib", "pydantic", "subprocess"}
    assert not heavy & set(loaded)


def test_the_guide_names_every_action_and_its_scripts_are_good() -> None:
    guide = GUIDE.read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE))
    assert set(grammar.ACTIONS) <= rows
    examples = re.findall(r"^```json\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        rehearsal_script.parse(example.encode())
