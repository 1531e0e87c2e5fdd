"""
The program `python -m planforge.agents.api`, asked over its streams by a client that notes everything.

It loads for seconds what asks models, so it is forked from a process that has done so, as it is once it has
started itself again without its key. A test of that start says `fresh`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import acp
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    RequestPermissionResponse,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
    UserMessageChunk,
)

import standby
from planforge.agents.api import keys

KEY = "sk-a-key-that-nobody-may-see"
PATIENCE = 180.0
"""How long, in seconds, the program may take: it loads much, and machines are busy."""

PROVIDERS = ("openai", "anthropic", "google", "openai-compatible")
DIALECTS = {"openai": "responses", "anthropic": "anthropic", "google": "gemini", "openai-compatible": "chat"}
KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "openai-compatible": "PLANFORGE_API_KEY",
}


def base_url(provider: str, server: str) -> str:
    """Where a provider's client finds a scripted server."""
    return f"{server}/v1" if provider.startswith("openai") else server


def command(provider: str, server: str, *arguments: str) -> list[str]:
    """The program, asking a scripted server."""
    program = [sys.executable, "-m", "planforge.agents.api", "--provider", provider, "--model", "scripted-1"]
    return [*program, "--base-url", base_url(provider, server), *arguments]


def environment(provider: str, home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the program is started with: a key and a home."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), KEYS[provider]: KEY} | dict(extra or {})


LOADED = standby.Standby(
    "planforge.agents.api.server",
    "planforge.agents.api.turns",
    "anyio._backends._asyncio",
    "genai_prices.data",
    "openai.resources.chat",
    "openai.resources.responses",
    "pydantic_ai.models.anthropic",
    "pydantic_ai.models.google",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai",
    "pydantic_ai.providers.openai_compatible",
)


class Client:
    """Notes what it is told, answers what it is asked."""

    def __init__(self, permit: bool = True) -> None:
        self._permit = permit
        self.updates: list[object] = []
        self.asked: list[ToolCallUpdate] = []
        self.heard = asyncio.Condition()

    async def session_update(self, session_id: str, update: object, **_: Any) -> None:
        async with self.heard:
            self.updates.append(update)
            self.heard.notify_all()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        chosen = "allow_once" if self._permit else "reject_once"
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def until(self, come: Callable[[object], bool]) -> None:
        async with asyncio.timeout(PATIENCE), self.heard:
            await self.heard.wait_for(lambda: any(come(update) for update in self.updates))

    @property
    def text(self) -> str:
        return "".join(u.content.text for u in self.updates if isinstance(u, AgentMessageChunk))

    @property
    def user_text(self) -> str:
        return "".join(u.content.text for u in self.updates if isinstance(u, UserMessageChunk))

    @property
    def tools(self) -> list[tuple[str, str | None]]:
        return [(u.title, u.kind) for u in self.updates if isinstance(u, ToolCallStart)]

    @property
    def ends(self) -> list[tuple[str | None, str]]:
        """How each tool ended, and what it answered."""
        return [
            (update.status, update.content[0].content.text if update.content else "")
            for update in self.updates
            if isinstance(update, ToolCallProgress) and update.status in ("completed", "failed")
        ]

    @property
    def contexts(self) -> list[int]:
        return [update.used for update in self.updates if isinstance(update, UsageUpdate)]


class Program:
    """One process of the program, for as long as its context lasts."""

    def __init__(
        self,
        argv: list[str],
        env: Mapping[str, str],
        cwd: Path,
        client: Client | None = None,
        *,
        fresh: bool = False,
    ) -> None:
        self._argv = argv
        self._env = env
        self._fresh = fresh or not standby.POSSIBLE
        self.cwd = cwd
        self.client = client or Client()
        self.connection: ClientSideConnection
        self.session = ""

    async def __aenter__(self) -> Program:
        ours, theirs = zip(*map(standby.pipe, range(2)), strict=True)
        try:
            self._process = await (self._started(theirs) if self._fresh else self._forked(theirs))
        finally:
            for number in theirs:
                os.close(number)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=50 * 1024 * 1024)
        said = os.fdopen(ours[1], "rb", 0)
        self._hearing, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), said)
        self._speaking, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(ours[0], "wb", 0)
        )
        writer = asyncio.StreamWriter(self._speaking, protocol, None, loop)
        self.connection = acp.connect_to_agent(self.client, writer, reader)  # type: ignore[arg-type]
        await self.connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._speaking.close()
        async with asyncio.timeout(PATIENCE):
            await self.ended()
        await self.connection.close()
        self._hearing.close()

    def terminate(self) -> None:
        """Tell the process to end."""
        self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Its exit code, once it has one."""
        process = self._process
        return await (
            asyncio.to_thread(process.wait) if isinstance(process, standby.Forked) else process.wait()
        )

    async def _started(self, streams: Sequence[int]) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._argv, env=dict(self._env), cwd=self.cwd, stdin=streams[0], stdout=streams[1]
        )

    async def _forked(self, streams: Sequence[int]) -> standby.Forked:
        _, _, module, _, provider, *_ = self._argv
        reading, writing = os.pipe()
        os.write(writing, self._env[KEYS[provider]].encode())
        os.close(writing)
        try:
            return await asyncio.to_thread(
                LOADED.start,
                module,
                self._argv[3:],
                cwd=self.cwd,
                env=keys.harmless(self._env),
                streams=(*streams, 2),
                passed={keys.PIPE_VARIABLE: reading},
            )
        finally:
            os.close(reading)

    async def begin(self, mode: str = "write", **meta: Any) -> None:
        """Begin a conversation."""
        made = await self.connection.new_session(cwd=str(self.cwd), mcp_servers=[], **meta)
        self.session = made.session_id
        await self.connection.set_session_mode(mode_id=mode, session_id=self.session)

    async def ask(self, prompt: str, **meta: Any) -> acp.PromptResponse:
        """Put a prompt."""
        async with asyncio.timeout(PATIENCE):
            return await self.connection.prompt(
                prompt=[acp.text_block(prompt)], session_id=self.session, **meta
            )
