"""The real agents over the Agent Client Protocol, against the scripted model server."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from planforge.agents import acp, homes
from planforge.agents.known import KNOWN
from planforge.agents.protocol import Task
from planforge.errors import (
    AgentFailed,
    AgentLimited,
    AgentTimedOut,
    AgentUnauthenticated,
    AgentUnavailable,
    PlanforgeError,
    SessionUnknown,
)
from planforge.kernel.effects import Access, AgentAnswer, Usage
from planforge.testing.model_server import ModelServer
from rooms import Room

Action = dict[str, Any]
Server = Callable[[Any], ModelServer]

PROGRAMS = {
    "claude-acp": ("claude-agent-acp",),
    "codex-acp": ("codex-acp",),
    "gemini": ("gemini",),
    "opencode": ("opencode",),
    "pi": ("pi", "pi-acp"),
}
"""The programs that each needs; the last one is what is said to be tested."""

ALL = pytest.mark.parametrize("name", list(PROGRAMS))
PATIENCE = 120.0
USAGE: Action = {"usage": {"input": 1000, "output": 42, "cached": 300}}  # what was cached is not in the input


def asked(prompt: str, **more: Any) -> Task:
    return msgspec.structs.replace(Task(prompt=prompt, access=Access.WRITE, seconds=PATIENCE), **more)


def script(**scenes: list[Action]) -> dict[str, Any]:
    """What the model does for the prompts that hold these words."""
    return {"name": "acp", "scenes": [{"when": [words], "do": does} for words, does in scenes.items()]}


class RealRoom(Room):
    """A room in which the real programs are asked."""

    def __init__(self, directory: Path, programs: Any) -> None:
        super().__init__(directory / "worktree")
        self.directory.mkdir()
        self.home = directory / "home"
        self._programs = programs

    def real(
        self,
        name: str,
        server: ModelServer | str,
        task: Task,
        *,
        model: str = "",
        cancel_when: Callable[[], bool] | None = None,
    ) -> AgentAnswer:
        """Put the task to the real program; one that is not installed ends the test here."""
        for program in PROGRAMS[name]:
            assert self._programs[program].exists()
        furnished = homes.prepare(
            self.home,
            KNOWN[name],
            access=task.access,
            root=self.directory,
            cwd=self.directory,
            model=model,
            endpoint=server if isinstance(server, str) else server.url,
        )
        place = msgspec.structs.replace(
            self.place(furnished.profile), home=furnished.home, argv=furnished.argv, env=furnished.env
        )

        async def conversation() -> AgentAnswer:
            asking = asyncio.ensure_future(acp.ask(name, furnished.profile, task, place))
            if cancel_when is not None:
                while not asking.done() and not cancel_when():
                    await asyncio.sleep(0.05)
                asking.cancel()
            return await asking

        return asyncio.run(conversation())

    def left(self) -> list[str]:
        """What still runs and has to do with this room, by its command or by where it is."""
        here = str(self.directory.parent)
        return [text for text in commands() if here in text]


def commands() -> Iterator[str]:
    """The command and the directory of every process but this one."""
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            yield f"{command} in {(process / 'cwd').readlink()}"
        except OSError:  # it ended while we looked
            continue


@pytest.fixture
def room(tmp_path: Path, programs: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealRoom]:
    monkeypatch.setenv("PATH", programs.path)
    room = RealRoom(tmp_path, programs)
    yield room
    ends = time.monotonic() + 10
    while left := room.left():
        assert time.monotonic() < ends, left
        time.sleep(0.1)


@ALL
@pytest.mark.check("writes a file, says its text, reports its usage")
def test_a_file_is_written_the_text_is_captured_and_the_usage_is_right(
    name: str, room: RealRoom, server: Server
) -> None:
    write: Action = {"write": {"path": "hello.txt", "text": "hello\n"}}
    answer = room.real(
        name,
        server(script(hello=[USAGE, {"remark": "I will."}, write, USAGE, {"say": "FINAL"}])),
        asked("hello"),
    )
    assert (room.directory / "hello.txt").read_text() == "hello\n"
    assert (answer.text, answer.stop_reason) == ("I will.\n\nFINAL", "end_turn")
    assert (answer.tool_calls, [tool.status for tool in answer.tools]) == (1, ["completed"])
    whole = Usage(input_tokens=2600, output_tokens=84, cached_tokens=600)
    means: dict[str, Usage | None] = {
        "claude-acp": whole,
        "codex-acp": whole,
        "gemini": msgspec.structs.replace(whole, cached_tokens=0),  # it does not say
        "opencode": msgspec.structs.replace(whole, source="estimated"),
        "pi": None,
    }
    assert answer.usage == means[name]
    assert answer.session
    assert room.sessions == [answer.session]


@ALL
@pytest.mark.check("goes on with a conversation in a new process")
def test_a_conversation_that_is_gone_on_with_has_its_history_and_only_the_new_answer(
    name: str, room: RealRoom, server: Server
) -> None:
    write: Action = {"write": {"path": "hello.txt", "text": "hello\n"}}
    model = server(script(again=[USAGE, {"say": "SECOND"}], hello=[USAGE, write, USAGE, {"say": "FIRST"}]))
    first = room.real(name, model, asked("hello, the secret is 4711"))
    time.sleep(KNOWN[name].resume_after)
    task = asked("again, what was it?", session=first.session, before=first.usage)
    second = room.real(name, model, task)
    assert (second.text, second.session) == ("SECOND", first.session)
    assert (second.tool_calls, second.tools) == (0, ())
    if name != "pi":
        cached = 0 if name == "gemini" else 300
        assert second.usage == Usage(input_tokens=1300, output_tokens=42, cached_tokens=cached)
    history = "\n".join(next(r for r in reversed(model.requests) if "again" in r.prompt).history)
    assert "the secret is 4711" in history
    assert "FIRST" in history


@ALL
@pytest.mark.check("does not know a conversation that there is not")
def test_a_conversation_that_there_is_not_is_unknown(name: str, room: RealRoom, server: Server) -> None:
    nobody = (
        "00000000-0000-4000-8000-000000000000" if name != "opencode" else "ses_00000000000000000000000000"
    )
    with pytest.raises(SessionUnknown):
        room.real(name, server(script(hello=[{"say": "no"}])), asked("hello", session=nobody))


@ALL
@pytest.mark.check("reads only: its write tool and its shell are refused")
@pytest.mark.parametrize("permits", [True, False])
def test_an_agent_that_only_reads_can_neither_write_nor_run_a_shell(
    name: str, room: RealRoom, server: Server, permits: bool
) -> None:
    room.permits = permits  # it must not depend on our answers alone
    does: list[Action] = [
        {"write": {"path": "written.txt", "text": "x"}},
        {"run": ["touch", "touched.txt"]},
        {"say": "TRIED"},
    ]
    model = server(script(hello=does))
    answer = room.real(name, model, asked("hello", access=Access.READ))
    assert [path.name for path in room.directory.iterdir()] == []
    assert "TRIED" in answer.text
    assert len([request for request in model.requests if "hello" in request.prompt]) >= 3


@ALL
@pytest.mark.check("a denial is honoured")
def test_what_is_denied_is_not_done(name: str, room: RealRoom, server: Server) -> None:
    if name in ("codex-acp", "pi"):
        pytest.skip("it never asks for what it may do in its own sandbox, or has none")
    room.permits = False
    write: Action = {"write": {"path": "hello.txt", "text": "x"}}
    model = server(script(hello=[write, {"say": "FINAL"}]))
    if name == "opencode":  # whose turn ends with a denial
        with pytest.raises(AgentFailed):
            room.real(name, model, asked("hello"))
    else:
        answer = room.real(name, model, asked("hello"))
        assert [tool.status for tool in answer.tools] == ["denied"]
    assert not (room.directory / "hello.txt").exists()
    asked_for = [(request.kind, request.paths) for request in room.requests]
    assert asked_for == [("edit", (str(room.directory / "hello.txt"),))]


@ALL
@pytest.mark.check("is cancelled while a tool runs, and nothing is left")
def test_a_cancelled_agent_leaves_no_process(name: str, room: RealRoom, server: Server) -> None:
    (room.directory / "followed").write_text("x")
    model = server(script(hello=[{"run": ["tail", "-f", "followed"]}, {"say": "no"}]))

    def runs() -> bool:
        return any(text.startswith("tail -f followed") for text in room.left())

    with pytest.raises(asyncio.CancelledError):
        room.real(name, model, asked("hello"), cancel_when=runs)


REFUSALS: list[tuple[int, type[PlanforgeError]]] = [
    (401, AgentUnauthenticated),
    (429, AgentLimited),
    (500, AgentFailed),
]


@ALL
@pytest.mark.check("tells 401, 429 and 500 apart")
@pytest.mark.parametrize(("status", "kind"), REFUSALS)
def test_what_its_service_refuses_is_told_apart(
    name: str, room: RealRoom, server: Server, status: int, kind: type[PlanforgeError]
) -> None:
    # Two try again for longer than anybody wants to wait; one of them says why on its standard error.
    waits = {("opencode", 429): 40.0, ("opencode", 500): 40.0}
    refusal: Action = {"http": {"status": status}}
    if status == 429:
        refusal["http"]["reset"] = 3600
    seconds = waits.get((name, status), PATIENCE)
    with pytest.raises(PlanforgeError) as caught:
        room.real(name, server(script(hello=[refusal])), asked("hello", seconds=seconds))
    assert isinstance(caught.value, kind), (type(caught.value), caught.value.message)
    if isinstance(caught.value, AgentLimited) and name != "claude-acp":  # which keeps that to itself
        assert caught.value.until


@ALL
@pytest.mark.check("says that its service cannot be reached")
def test_a_service_that_is_not_there_makes_it_unavailable(name: str, room: RealRoom) -> None:
    if name in ("opencode", "gemini"):
        pytest.skip("it tries again for longer than anybody wants to wait")
    with pytest.raises(AgentUnavailable):
        room.real(name, "http://127.0.0.1:9", asked("hello"))


@ALL
@pytest.mark.check("is ended by our deadline if its model never answers")
def test_a_model_that_never_answers_is_ended_by_our_deadline(
    name: str, room: RealRoom, server: Server
) -> None:
    model = server(script(hello=[{"hang": True}]))
    began = time.monotonic()
    seconds = 40.0 if name == "opencode" else 20.0
    with pytest.raises(AgentTimedOut):
        room.real(name, model, asked("hello", seconds=seconds))
    assert time.monotonic() - began < seconds + 10
    assert [request for request in model.requests if "hello" in request.prompt]
