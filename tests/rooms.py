"""Where agents are asked over the Agent Client Protocol, and it is seen that nothing of them is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from planforge.agents import acp
from planforge.agents.known import KNOWN
from planforge.agents.profiles import REHEARSAL, Profile
from planforge.agents.protocol import Place, Task, ToolRequest
from planforge.app.agents.workplace import BUFFER
from planforge.errors import PlanforgeError
from planforge.kernel.effects import Access, AgentAnswer, Usage
from planforge.workspace import processes

PATIENCE = 30.0
"""How long an agent may take that is expected to answer or to fail by itself."""

Action = dict[str, Any]

TASK = Task(prompt="go", access=Access.WRITE, seconds=PATIENCE)

AGENT = """
import json, os, signal, subprocess, sys, time

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def update(news, session="s", /, **fields):
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": news, **fields}})

def say(text, session="s", **fields):
    update("agent_message_chunk", session, content={"type": "text", "text": text}, **fields)

def hear():
    return json.loads(sys.stdin.readline())

def begin(hello={}, **session):
    send(id=hear()["id"], result={"protocolVersion": 1, **hello})
    send(id=hear()["id"], result={"sessionId": "s", **session})

def end(prompt, stop="end_turn", **fields):
    send(id=prompt, result={"stopReason": stop, **fields})

"""


def agent(body: str) -> tuple[str, ...]:
    """An agent of a few lines, for what no script can say."""
    return (sys.executable, "-c", AGENT + body)


class Room:
    """Knows every program that was started, what was noted and heard, and who asked for what."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: list[int] = []
        self.unhandled: list[dict[str, Any]] = []
        self.heard: list[str] = []
        self.sessions: list[str] = []
        self.usages: list[Usage] = []
        self.money: list[int] = []
        self.requests: list[ToolRequest] = []
        self.permits = True
        self.permitting = 0.0
        """How long it takes to permit something."""

    def ask(self, profile: Profile, task: Task = TASK, *, cancel_when: Path | None = None) -> AgentAnswer:
        """Put the task, and see that nothing of the conversation is left whatever came of it."""

        async def conversation() -> AgentAnswer:
            asyncio.get_running_loop().set_exception_handler(lambda _, found: self.unhandled.append(found))
            asking = asyncio.ensure_future(acp.ask("the agent", profile, task, self.place(profile)))
            try:
                if cancel_when is not None:
                    while not cancel_when.exists():
                        await asyncio.sleep(0.01)
                    asking.cancel()
                return await asking
            finally:
                assert asyncio.all_tasks() == {asyncio.current_task()}

        return asyncio.run(conversation())

    def place(self, profile: Profile) -> Place:
        """This place."""
        return Place(
            cwd=self.directory,
            home=self.directory.parent,
            argv=profile.command,
            env=profile.env,
            launch=self.launch,
            end=processes.end,
            permit=self.permit,
            heard=self.hear,
            noted=self.note,
        )

    async def launch(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path
    ) -> asyncio.subprocess.Process:
        """Start a program as `planforge.app.agents.workplace` does."""
        pipe = asyncio.subprocess.PIPE
        process = await processes.start(
            argv, cwd=cwd, extra=env, stdin=pipe, stderr=pipe, limit=BUFFER["acp"]
        )
        self.started.append(process.pid)
        return process

    async def permit(self, request: ToolRequest) -> bool:
        """Permit, or not."""
        self.requests.append(request)
        await asyncio.sleep(self.permitting)
        return self.permits

    def hear(self, what: str) -> None:
        """Remember a sign of life."""
        self.heard.append(what)

    def note(self, *, session: str = "", usage: Usage | None = None, money: int | None = None) -> None:
        """Remember what a call is known to have come to."""
        self.sessions += [session] if session else []
        self.usages += [usage] if usage else []
        self.money += [money] if money is not None else []

    def rehearse(self, *actions: Action, task: Task = TASK, profile: Profile | None = None) -> AgentAnswer:
        """Ask the rehearsal agent, which does `actions`."""
        script = self.directory.parent / "script.json"
        script.write_text(json.dumps({"name": "test", "scenes": [{"when": [], "do": list(actions)}]}))
        command = (*KNOWN[REHEARSAL].command, str(script))
        return self.ask(msgspec.structs.replace(profile or KNOWN[REHEARSAL], command=command), task)

    def failure(
        self, kind: type[PlanforgeError], *actions: Action, task: Task = TASK, profile: Profile | None = None
    ) -> str:
        """The message with which asking the rehearsal agent fails."""
        with pytest.raises(kind) as caught:
            self.rehearse(*actions, task=task, profile=profile)
        return one_line(caught.value, kind)

    def failure_of(self, kind: type[PlanforgeError], *command: str, task: Task = TASK) -> str:
        """The message with which asking some other program fails."""
        with pytest.raises(kind) as caught:
            self.ask(Profile(command=command), task)
        return one_line(caught.value, kind)


def one_line(error: PlanforgeError, kind: type[PlanforgeError]) -> str:
    """A message that is fit to be shown, of an error of exactly this kind."""
    assert type(error) is kind
    assert error.message.isprintable()
    assert len(error.message) < 700
    return error.message


def members(groups: list[int]) -> list[str]:
    """The processes that run in any of these groups; those that ended and were not collected do not run."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended while we looked
            state, _, group = (path / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(group) in groups and state != "Z":
                found.append(path.name)
    return found
