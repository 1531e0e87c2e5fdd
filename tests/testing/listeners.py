"""Clients of the rehearsal agent by the real client library, which checks every message."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import acp
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)

from testing.wires import COMMAND, ENVIRONMENT, PATIENCE


class Listener:
    """A client that remembers what it hears and answers every question alike."""

    def __init__(self, choice: str = "allow_once") -> None:
        self.choice = choice
        self.updates: list[object] = []
        self.questions: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.heard = asyncio.Event()

    async def session_update(self, session_id: str, update: object, **_: Any) -> None:
        assert session_id.startswith("rehearsal-")
        self.updates.append(update)
        self.heard.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.questions.append((tool_call, options))
        self.heard.set()
        if self.choice == "never":
            await asyncio.Event().wait()
        if self.choice == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.choice))

    def chunks(
        self, kind: type[AgentMessageChunk] | type[AgentThoughtChunk] = AgentMessageChunk
    ) -> list[str]:
        contents = [update.content for update in self.updates if isinstance(update, kind)]
        return [content.text for content in contents if isinstance(content, TextContentBlock)]

    @property
    def said(self) -> str:
        return "".join(self.chunks())

    @property
    def started(self) -> list[ToolCallStart]:
        return [update for update in self.updates if isinstance(update, ToolCallStart)]

    @property
    def ended(self) -> list[ToolCallProgress]:
        return [update for update in self.updates if isinstance(update, ToolCallProgress)]


@contextlib.asynccontextmanager
async def connected(listener: Listener, path: Path, **variables: str) -> AsyncIterator[ClientSideConnection]:
    async with (
        asyncio.timeout(PATIENCE),
        acp.spawn_agent_process(
            listener,  # type: ignore[arg-type]
            *COMMAND,
            str(path),
            env={**ENVIRONMENT, **variables},
            transport_kwargs={"stderr": subprocess.DEVNULL},
        ) as (connection, _),
    ):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield connection


def converse(path: Path, room: Path, listener: Listener, prompt: str = "go") -> acp.PromptResponse:
    async def conversation() -> acp.PromptResponse:
        async with connected(listener, path) as agent:
            session = await agent.new_session(cwd=str(room), mcp_servers=[])
            return await agent.prompt(prompt=[acp.text_block(prompt)], session_id=session.session_id)

    return asyncio.run(conversation())


def cancelled_after_news(path: Path, room: Path, listener: Listener) -> acp.PromptResponse:
    async def conversation() -> acp.PromptResponse:
        async with connected(listener, path) as agent:
            session = await agent.new_session(cwd=str(room), mcp_servers=[])
            prompt = asyncio.ensure_future(
                agent.prompt(prompt=[acp.text_block("go")], session_id=session.session_id)
            )
            await listener.heard.wait()
            await agent.cancel(session_id=session.session_id)
            return await prompt

    return asyncio.run(conversation())
