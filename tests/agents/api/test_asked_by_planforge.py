"""The program asked by our own client, as every agent is: permission, resumption, limits, cancelling."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from model_apis import KEY, command
from planforge.agents.profiles import Profile, Way
from planforge.agents.protocol import Task
from planforge.errors import AgentFailed, AgentLimited, AgentTimedOut, AgentUnauthenticated
from planforge.kernel.effects import Access
from planforge.testing.model_server import ModelServer
from rooms import Room, members

LONG = "echo $$ > pid; setsid sleep 600 & echo $! > left; sleep 600"
SCENES: dict[str, list[dict[str, object]]] = {
    "write it": [
        {"tool": "write", "input": {"path": "it.txt", "content": "it\n"}},
        {"say": "Written."},
        {"usage": {"input": 700, "output": 30, "cached": 200}},
    ],
    "what did I ask": [{"say": "You asked: ${history}"}],
    "wait": [{"tool": "shell", "input": {"command": LONG}}, {"say": "never"}],
    "limited": [{"http": {"status": 429, "message": "too many", "reset": 600}}],
    "no login": [{"http": {"status": 401, "message": "who are you"}}],
    "garbage": [{"garbage": "<html>"}],
    "hang": [{"hang": True}],
}
SCRIPT = {"name": "asked", "scenes": [{"when": [when], "do": do} for when, do in SCENES.items()]}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(SCRIPT) as server:
        yield server


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "worktree").mkdir()
    return Room(tmp_path / "worktree")


def profile(server: ModelServer, room: Room) -> Profile:
    return Profile(
        command=tuple(command("anthropic", server.url, "--retries", "0")),
        env={"ANTHROPIC_API_KEY": KEY, "HOME": str(room.directory.parent)},
        read=Way(mode="read"),
        write=Way(mode="ask"),
        resume="resume",
        usage="turn",
    )


def task(prompt: str, access: Access = Access.WRITE, session: str = "", seconds: float = 180) -> Task:
    return Task(prompt=prompt, access=access, session=session, seconds=seconds)


@pytest.mark.dear
def test_a_writer_is_permitted_to_write_and_its_conversation_goes_on(server: ModelServer, room: Room) -> None:
    answer = room.ask(profile(server, room), task("write it"))
    assert answer.text == "Written."
    assert (room.directory / "it.txt").read_text() == "it\n"
    assert [(request.kind, request.title) for request in room.requests] == [("edit", "Write it.txt")]
    assert room.requests[0].paths == (str(room.directory / "it.txt"),)
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (900, 30)
    assert answer.usage.cached_tokens == 200

    again = room.ask(profile(server, room), task("what did I ask?", session=answer.session))
    assert "write it" in again.text
    assert members(room.started) == []


def test_a_reader_writes_nothing(server: ModelServer, room: Room) -> None:
    answer = room.ask(profile(server, room), task("write it", Access.READ))
    assert answer.text == "Written."  # so it says
    assert list(room.directory.iterdir()) == []


@pytest.mark.dear
def test_a_task_that_is_called_off_leaves_nothing(server: ModelServer, room: Room) -> None:
    with pytest.raises(asyncio.CancelledError):
        room.ask(profile(server, room), task("wait"), cancel_when=room.directory / "left")
    left = [Path("/proc") / (room.directory / name).read_text().strip() for name in ("pid", "left")]
    assert not any(path.exists() for path in left)


@pytest.mark.dear
@pytest.mark.parametrize(
    ("prompt", "kind"),
    [("limited", AgentLimited), ("no login", AgentUnauthenticated), ("garbage", AgentFailed)],
)
def test_failures_have_their_kind(
    server: ModelServer, room: Room, prompt: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as failed:
        room.ask(profile(server, room), task(prompt, Access.READ))
    if isinstance(failed.value, AgentLimited):
        assert failed.value.until


@pytest.mark.dear
def test_our_deadline_ends_a_model_that_never_answers(server: ModelServer, room: Room) -> None:
    with pytest.raises(AgentTimedOut):
        room.ask(profile(server, room), msgspec.structs.replace(task("hang", Access.READ), seconds=20))
    assert members(room.started) == []
