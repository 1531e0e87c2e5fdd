"""The real claude and codex by their own command lines, against the scripted model server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from natives import Room, asked
from planforge.agents import homes
from planforge.agents.homes import Furnished
from planforge.agents.known import KNOWN
from planforge.agents.protocol import Task
from planforge.errors import (
    AgentEmpty,
    AgentFailed,
    AgentLimited,
    AgentTimedOut,
    AgentUnauthenticated,
    AgentUnavailable,
    PlanforgeError,
)
from planforge.kernel.effects import HANDED_OVER, Access, AgentAnswer, Usage
from planforge.testing.model_server import ModelServer
from planforge.workspace import sandbox
from planforge.workspace.sandbox import Level

Action = dict[str, Any]
Server = Callable[[Any], ModelServer]

MODELS = {"claude": "claude-sonnet-4-5", "codex": "scripted-1"}
USAGE: Action = {
    "usage": {"input": 1000, "output": 42, "cached": 300}
}  # what came out of a cache not included
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}

BOTH = pytest.mark.parametrize("name", ["claude", "codex"])


def script(*scenes: tuple[str, list[Action]]) -> dict[str, Any]:
    """What the model does for the prompts that hold these words."""
    return {"name": "native", "scenes": [{"when": [words], "do": actions} for words, actions in scenes]}


class RealRoom(Room):
    """A room in which the real programs are asked."""

    def __init__(self, directory: Path, programs: Mapping[str, Path]) -> None:
        super().__init__(directory)
        self.programs = programs
        self.confined = False

    def furnished(
        self, name: str, server: str, access: Access = Access.WRITE, model: str | None = None
    ) -> Furnished:
        """The home of a program, pointed at the server; one that is not installed ends the test here."""
        assert self.programs[name].exists()
        return homes.prepare(
            self.home,
            KNOWN[f"{name}-cli"],
            access=access,
            root=self.cwd,
            cwd=self.cwd,
            model=MODELS[name] if model is None else model,
            endpoint=server,
            confined=self.confined,
        )

    def real(
        self,
        name: str,
        server: ModelServer | str,
        task: Task,
        *,
        cancel_when: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> AgentAnswer:
        """Put the task to the real program."""
        url = server if isinstance(server, str) else server.url
        found = self.furnished(name, url, task.access)
        return self.ask(
            name,
            found.argv,
            task,
            env={**found.env, **(env or {})},
            profile=found.profile,
            cancel_when=cancel_when,
        )


@pytest.fixture
def room(tmp_path: Path, programs: Any, monkeypatch: pytest.MonkeyPatch) -> RealRoom:
    monkeypatch.setenv("PATH", programs.path)
    return RealRoom(tmp_path, programs)


@BOTH
@pytest.mark.check("writes a file, says its text, reports its usage")
def test_a_file_is_written_the_text_is_captured_and_the_usage_is_right(
    name: str, room: RealRoom, server: Server
) -> None:
    write: Action = {"write": {"path": "hello.txt", "text": "hello\n"}}
    does = [USAGE, write, USAGE, {"say": "FINAL"}]
    answer = room.real(name, server(script(("hello", does))), asked("hello"))
    assert (room.cwd / "hello.txt").read_text() == "hello\n"
    assert (answer.text, answer.stop_reason) == ("FINAL", "end_turn")
    assert answer.usage == Usage(input_tokens=2600, output_tokens=84, cached_tokens=600)
    assert answer.session
    assert answer.tool_calls >= 1
    assert any(heard for heard in room.heard if "hello.txt" in heard)
    assert (answer.money is not None) == (name == "claude")


@BOTH
@pytest.mark.check("goes on with a conversation, and counts only what is new")
def test_a_conversation_that_is_gone_on_with_has_its_history_and_its_own_usage(
    name: str, room: RealRoom, server: Server
) -> None:
    model = server(script(("first", [USAGE, {"say": "ONE"}]), ("second", [USAGE, {"say": "TWO"}])))
    first = room.real(name, model, asked("the first question"))
    before = room.furnished(name, model.url)
    second = room.ask(
        name,
        before.argv,
        asked("the second question", session=first.session),
        env=before.env,
        profile=before.profile,
    )
    assert (second.text, second.session) == ("TWO", first.session)
    assert first.usage == second.usage == Usage(input_tokens=1300, output_tokens=42, cached_tokens=300)
    assert first.money == second.money
    history = "\n".join([request for request in model.requests if not request.aside][-1].history)
    assert "the first question" in history
    assert "ONE" in history


@BOTH
@pytest.mark.check("goes on with a conversation, and counts only what is new")
def test_a_conversation_that_is_not_there_has_failed(name: str, room: RealRoom, server: Server) -> None:
    model = server(script(("", [{"say": "HI"}])))
    gone = asked(session="00000000-0000-4000-8000-000000000000")
    with pytest.raises(AgentFailed, match=r"No conversation found|no rollout found"):
        room.real(name, model, gone)
    assert model.requests == []


@BOTH
@pytest.mark.check("refuses to write where it may only read")
def test_one_that_may_only_read_neither_writes_nor_runs(name: str, room: RealRoom, server: Server) -> None:
    by_tool = {"claude": {"tool": "Write", "input": {"file_path": str(room.cwd / "a"), "content": "x"}}}
    shell = {
        "claude": {"tool": "Bash", "input": {"command": "echo x > b", "description": "write"}},
        "codex": {"tool": "exec_command", "input": {"cmd": "echo x > b"}},
    }
    does: list[Action] = [
        by_tool.get(name, {"write": {"path": "a", "text": "x"}}),
        shell[name],
        {"say": "TRIED"},
    ]
    task = asked("write it", access=Access.READ)
    answer = room.real(name, server(script(("write it", does))), task)
    assert answer.text == "TRIED"
    assert list(room.cwd.iterdir()) == []


@BOTH
@pytest.mark.check("is confined by our sandbox, and works")
@pytest.mark.parametrize("access", [Access.WRITE, Access.READ])
def test_in_our_sandbox_it_works_and_stays_inside(
    name: str, access: Access, room: RealRoom, server: Server, tmp_path: Path
) -> None:
    if not sandbox.tried(Level.BUBBLEWRAP).works:
        pytest.skip("bubblewrap does not work here")
    confine = sandbox.reading if access is Access.READ else sandbox.writing
    installed = room.programs[name].resolve().parents[2]
    room.policy = confine(room.cwd, own=[room.home], visible=[installed])
    room.level, room.confined = Level.BUBBLEWRAP, True
    outside = tmp_path / "outside"
    outside.mkdir()
    command = f"echo x > inside.txt; echo x > {outside}/there.txt"
    shell = {
        "claude": {"tool": "Bash", "input": {"command": command, "description": "write"}},
        "codex": {"tool": "exec_command", "input": {"cmd": command}},
    }
    answer = room.real(name, server(script(("go", [shell[name], {"say": "DONE"}]))), asked(access=access))
    assert answer.text == "DONE"
    assert list(outside.iterdir()) == []
    assert (room.cwd / "inside.txt").exists() == (access is Access.WRITE)


@BOTH
@pytest.mark.check("answers in the form that was asked for")
def test_an_answer_has_the_form_that_was_asked_for(name: str, room: RealRoom, server: Server) -> None:
    model = server(script(("a form", [{"say": '{"name": "x", "n": 3}'}])))
    answer = room.real(name, model, asked("a form, please", schema=json.dumps(SCHEMA)))
    assert json.loads(answer.output) == {"name": "x", "n": 3}
    again = room.real(name, model, asked("a form again", schema=json.dumps(SCHEMA), session=answer.session))
    assert json.loads(again.output) == {"name": "x", "n": 3}
    assert list(room.home.glob("schema-*")) == []


@BOTH
@pytest.mark.check("is cancelled in the middle of a tool, and leaves no process")
def test_one_that_is_cancelled_in_the_middle_of_a_tool_leaves_nothing(
    name: str, room: RealRoom, server: Server
) -> None:
    mark = room.cwd / "mark"
    work = {"run": ["sh", "-c", f"touch {mark}; exec tail -f /dev/null"]}
    with pytest.raises(asyncio.CancelledError):
        room.real(name, server(script(("go", [work, {"say": "no"}]))), asked(), cancel_when=mark)
    assert mark.exists()


@BOTH
@pytest.mark.check("is ended by our deadline when the service hangs")
@pytest.mark.parametrize("idle", [False, True])
def test_one_whose_service_hangs_is_ended_by_our_deadline(
    name: str, idle: bool, room: RealRoom, server: Server
) -> None:
    task = asked(idle_seconds=4.0) if idle else asked(seconds=4.0)
    with pytest.raises(AgentTimedOut):
        room.real(name, server(script(("go", [{"hang": True}]))), task)
    assert room.seconds < 15


@BOTH
@pytest.mark.check("says what kind of failure it was")
@pytest.mark.parametrize(
    ("does", "kind"),
    [
        ({"http": {"status": 401, "message": "no"}}, AgentUnauthenticated),
        ({"http": {"status": 429, "message": "slow down"}}, AgentLimited),
        ({"http": {"status": 500, "message": "oh"}}, AgentFailed),
        ({"truncate": True}, AgentFailed),
        ({"drop": True}, AgentFailed),
    ],
    ids=["401", "429", "500", "truncated", "dropped"],
)
def test_a_failure_of_the_service_is_told_apart(
    name: str,
    does: Action,
    kind: type[PlanforgeError],
    room: RealRoom,
    server: Server,
) -> None:
    with pytest.raises(PlanforgeError) as caught:
        room.real(name, server(script(("go", [does, {"say": "no"}]))), asked(seconds=60.0))
    assert type(caught.value) is kind, caught.value


@pytest.mark.check("says until when its limit lasts")
def test_a_limit_of_a_plan_says_until_when(room: RealRoom, server: Server) -> None:
    resets = int(time.time()) + 3600
    refusal = {"http": {"status": 429, "message": "limit", "reset": 3600}}
    with pytest.raises(AgentLimited) as caught:
        # It looks at when a limit ends only with a person's plan; what stands for one here is no key at all.
        room.real(
            "claude",
            server(script(("go", [refusal]))),
            asked(),
            env={"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "scripted"},
        )
    assert abs(datetime.fromisoformat(caught.value.until).timestamp() - resets) < 120


@BOTH
@pytest.mark.check("says what kind of failure it was")
def test_a_service_that_is_not_there_is_unavailable(name: str, room: RealRoom) -> None:
    with pytest.raises(AgentUnavailable):
        room.real(name, "http://127.0.0.1:9", asked(seconds=120.0))


@BOTH
@pytest.mark.check("says what kind of failure it was")
def test_one_that_says_nothing_is_empty(name: str, room: RealRoom, server: Server) -> None:
    with pytest.raises(AgentEmpty):
        room.real(name, server(script(("", [{"say": ""}]))), asked())


@BOTH
@pytest.mark.check("hands over when its context is nearly full")
def test_one_whose_context_is_nearly_full_hands_over(name: str, room: RealRoom, server: Server) -> None:
    large = {"usage": {"input": 90_000, "output": 42, "cached": 300}}
    work = {"run": ["sh", "-c", "echo begun; exec tail -f /dev/null"]}
    answer = room.real(name, server(script(("go", [large, work, {"say": "no"}]))), asked(threshold=80_000))
    assert answer.stop_reason == HANDED_OVER
    assert answer.context is not None
    assert not answer.context.estimated
    assert answer.context.used >= 80_000
    assert answer.usage is not None
    assert answer.session


@BOTH
@pytest.mark.check("takes a prompt of a megabyte")
def test_a_prompt_of_a_megabyte_gets_there_whole(name: str, room: RealRoom, server: Server) -> None:
    prompt = "go\n" + "ü" * 500_000 + "\nthe end"
    model = server(script(("the end", [{"say": "READ"}])))
    assert room.real(name, model, asked(prompt)).text == "READ"
    assert "ü" * 500_000 in "\n".join(model.wait()[-1].history)


@BOTH
@pytest.mark.check("takes a prompt for words, not for a command")
def test_a_prompt_that_begins_like_a_command_is_taken_for_words(
    name: str, room: RealRoom, server: Server
) -> None:
    model = server(script(("/init is a path", [{"say": "READ"}])))
    assert room.real(name, model, asked("/init is a path, not a command")).text == "READ"
