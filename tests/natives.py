"""
Agents with a command line of their own, asked the way Planforge asks them: real processes, real pipes.

A `Room` knows every program that was started in it and sees that nothing of it is left. The programs of a
`Played` one are scripts in Python, written by the test, which print what an agent would, or what none should.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from planforge.agents.native import claude, codex
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Adapter, Place, Task, ToolRequest
from planforge.kernel.effects import Access, AgentAnswer, Usage
from planforge.workspace import processes
from planforge.workspace.sandbox import Level, Policy

PATIENCE = 30.0
"""How long a program may take that is expected to answer or to fail by itself."""

ADAPTERS: dict[str, Adapter] = {"claude": claude.ask, "codex": codex.ask}

PROFILE = Profile(command=("agent",), login_command="agent login", install="install the agent")


class Noted(NamedTuple):
    """What was known of a call while it went on."""

    session: str
    usage: Usage | None
    money: int | None


class Room:
    """Where agents are asked."""

    def __init__(self, directory: Path) -> None:
        self.cwd = directory / "worktree"
        self.home = directory / "home"
        for place in (self.cwd, self.home):
            place.mkdir(parents=True)
        self.heard: list[str] = []
        self.noted: list[Noted] = []
        self.started: list[int] = []
        self.commands: list[tuple[str, ...]] = []
        self.policy: Policy | None = None
        self.level: Level | None = None
        self.seconds = 0.0
        """How long the last question took."""

    def ask(
        self,
        speaks: str,
        argv: Sequence[str],
        task: Task,
        *,
        env: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        profile: Profile = PROFILE,
        cancel_when: Path | None = None,
    ) -> AgentAnswer:
        """Put the task, and see that nothing of the conversation is left whatever came of it."""
        place = Place(
            cwd=self.cwd,
            home=self.home,
            argv=tuple(argv),
            env=env or {},
            variables=variables or {},
            launch=self._launch,
            end=processes.end,
            permit=_never,
            heard=self._hear,
            noted=self._note,
        )

        async def conversation() -> AgentAnswer:
            asking = asyncio.ensure_future(ADAPTERS[speaks]("it", profile, task, place))
            try:
                while cancel_when is not None and not asking.done():
                    if cancel_when.exists():
                        asking.cancel()
                        break
                    await asyncio.sleep(0.01)
                return await asking
            finally:
                assert asyncio.all_tasks() == {asyncio.current_task()}

        began = time.monotonic()
        try:
            return asyncio.run(conversation())
        finally:
            self.seconds = time.monotonic() - began
            assert self.left() == []

    def left(self) -> list[str]:
        """What still runs of the programs that were started, or was started by them and bears their mark."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended while we looked
                state, _, group = (path / "stat").read_text().rpartition(")")[2].split()[:3]
                marked = self._mark in (path / "environ").read_bytes()
                if state != "Z" and (int(group) in self.started or marked):
                    found.append((path / "cmdline").read_bytes().decode())
        return found

    @property
    def _mark(self) -> bytes:
        return f"PLANFORGE_TEST_ROOM={self.home}".encode()

    async def _launch(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path
    ) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        extra = {**env, "PLANFORGE_TEST_ROOM": str(self.home)}
        self.commands.append(tuple(argv))
        process = await processes.start(
            argv, cwd=cwd, extra=extra, stdin=pipe, stderr=pipe, policy=self.policy, level=self.level
        )
        self.started.append(process.pid)
        return process

    def _hear(self, what: str) -> None:
        self.heard.append(what)

    def _note(self, *, session: str = "", usage: Usage | None = None, money: int | None = None) -> None:
        self.noted.append(Noted(session, usage, money))


class Played(Room):
    """A room whose programs are scripts of the test."""

    def play(self, speaks: str, script: str, /, task: Task | None = None, **more: Any) -> AgentAnswer:
        """Ask a program that is this script; in it `say(event)` prints an event and `put(data)` anything."""
        program = self.home / "program.py"
        program.write_text(PRELUDE + textwrap.dedent(script))
        return self.ask(speaks, [sys.executable, str(program)], task or asked(), **more)

    def tell(
        self, speaks: str, *events: dict[str, Any], task: Task | None = None, code: int = 0
    ) -> AgentAnswer:
        """Ask a program that prints these events and ends with this code."""
        lines = "".join(json.dumps(event) + "\n" for event in events)
        return self.play(speaks, f"put({lines.encode()!r})\nsys.exit({code})", task)


PRELUDE = """\
import json, os, signal, subprocess, sys, time

def put(data):
    while data:
        data = data[os.write(1, data):]

def say(event):
    put(json.dumps(event).encode() + b"\\n")

"""


def asked(prompt: str = "go", **more: Any) -> Task:
    """A task."""
    return msgspec.structs.replace(Task(prompt=prompt, access=Access.WRITE, seconds=PATIENCE), **more)


async def _never(request: ToolRequest) -> bool:
    raise AssertionError(f"nobody was to be asked about {request}")


def resident() -> int:
    """The most memory that this process has had so far, in bytes."""
    status = Path(f"/proc/{os.getpid()}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
