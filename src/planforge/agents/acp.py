"""
Puts one task to one agent over the Agent Client Protocol, and takes nothing for granted.

An answer counts only if the agent ended its turn properly and said something.
Files, terminals and everything else an agent might ask of its client are not
offered: it works in its worktree, and git tells what it did there.

An agent whose context is nearly full is stopped, so that a successor can go on
from what the ledger says instead of from a conversation that is being cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Protocol

import acp
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    Implementation,
    PermissionOption,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
)

from planforge import __version__
from planforge.agents.profiles import Profile
from planforge.agents.wire import Wire
from planforge.errors import AgentFailed, NoAgent
from planforge.kernel.effects import HANDED_OVER, Access, AgentAnswer, Usage
from planforge.kernel.tokens import TokenState, estimate

TEXT_LIMIT = 1024 * 1024
"""How many characters of an answer are kept; a longer one is refused, not cut."""

GRACE = 1.0
"""How long, in seconds, an agent may take to end once it is let go, and how long one that has ended is
listened to if something it left holds its streams."""

NOT_LOGGED_IN = -32000
"""The protocol's code for an agent that wants its user to log in first."""

LOOKS = 100
"""How often in that time we look whether it has ended."""

MOST_MONEY = 1e9
"""An agent that says it cost more than this is not believed."""

READING = frozenset({"read", "search", "think", "fetch"})
"""The kinds of tool call that a reading role may be allowed."""


class Launch(Protocol):
    """Starts a program the way Planforge starts programs."""

    def __call__(self, profile: Profile, cwd: Path) -> Awaitable[asyncio.subprocess.Process]:
        """Start the profile's command in `cwd` with its streams as pipes."""


class End(Protocol):
    """Ends a program and everything it started."""

    def __call__(self, process: asyncio.subprocess.Process) -> Awaitable[None]:
        """End it."""


def _not_the_librarys(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(tuple(acp.__path__))


# The library reports each oddity of an agent to the root logger, with a traceback, on standard error.
logging.getLogger().addFilter(_not_the_librarys)


class Listener:
    """Our side of the conversation: collects what is said, answers what is asked."""

    def __init__(self, access: Access, prompt: str, threshold: int) -> None:
        self._access = access
        self.chunks: list[str] = []
        self.size = 0
        self.tool_calls = 0
        self.too_long = asyncio.Event()
        self.context = TokenState(used=estimate(len(prompt)), threshold=threshold, estimated=True)
        self.full = asyncio.Event()
        self.money: int | None = None
        self._characters = len(prompt)

    def _count(self, update: object) -> None:
        """How full the agent's context is: as it says, or as we guess from what it was told and said."""
        if isinstance(update, UsageUpdate):
            self.context = self.context.reported(update.used)
            if update.cost and 0 <= update.cost.amount < MOST_MONEY:
                self.money = round(update.cost.amount * 1_000_000)
        elif isinstance(update, AgentMessageChunk | AgentThoughtChunk | ToolCallStart | ToolCallProgress):
            self._characters += len(update.model_dump_json(exclude_none=True))
            self.context = self.context.guessed(self._characters)
        if self.context.is_due:
            self.full.set()

    async def session_update(self, session_id: str, update: object, **_: Any) -> None:
        """Take in one piece of news from the agent."""
        del session_id
        self._count(update)
        if isinstance(update, ToolCallStart):
            self.tool_calls += 1
        elif isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContentBlock):
            self.size += len(update.content.text)
            if self.size > TEXT_LIMIT:
                self.too_long.set()
            else:
                self.chunks.append(update.content.text)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Allow what the role may do, once; deny the rest."""
        del session_id
        if self._access is Access.WRITE or tool_call.kind in READING:
            for option in options:
                if option.kind == "allow_once":
                    chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                    return RequestPermissionResponse(outcome=chosen)
        for option in options:
            if option.kind == "reject_once":
                chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=chosen)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


class Question(Protocol):
    """What is asked: see `planforge.kernel.effects.RunAgent`."""

    @property
    def prompt(self) -> str:
        """The task."""

    @property
    def access(self) -> Access:
        """What the agent may do."""


async def ask(
    name: str,
    profile: Profile,
    question: Question,
    *,
    cwd: Path,
    seconds: float,
    launch: Launch,
    end: End,
    threshold: int = 0,
) -> AgentAnswer:
    """
    Start the agent, put the question, and return its answer or raise `AgentFailed`.

    An agent that is not logged in has not failed: that is `NoAgent`, no outcome, and can be mended. One whose
    context reaches `threshold` tokens (0: none does) is stopped, and its answer says so.
    """
    process = await launch(profile, cwd)
    last_words = bytearray()
    complaints = asyncio.create_task(_drain(process, last_words))
    wire = Wire(process)
    listener = Listener(question.access, question.prompt, threshold)
    try:
        async with asyncio.timeout(seconds):
            response = await _watched(process, wire, listener, question, cwd)
        return _answer(name, listener, response) if response else _handed_over(name, listener)
    except TimeoutError:
        raise AgentFailed(f"agent `{name}` did not answer within {seconds:g} s") from None
    except acp.RequestError as error:
        if error.code == NOT_LOGGED_IN:
            hint = "log in with the agent's own command, then run `planforge resume`"
            raise NoAgent(f"agent `{name}` is not logged in ({_one_line(error)})", hint) from error
        raise AgentFailed(f"agent `{name}` failed: {_one_line(f'{error}{_detail(error)}')}") from error
    except ConnectionError as error:
        if not wire.fault:
            await asyncio.wait([complaints], timeout=GRACE)
        await end(process)
        what = wire.fault or f"ended without an answer{_ending(process, last_words)}"
        raise AgentFailed(f"agent `{name}` {what}") from error
    except ValueError as error:  # the library could make nothing of what the agent answered
        why = _one_line(str(error).partition("[type=")[0])
        raise AgentFailed(f"agent `{name}` broke the Agent Client Protocol: {why}") from error
    finally:
        try:
            await _let_go(process)
        finally:
            await end(process)
        complaints.cancel()
        await asyncio.gather(complaints, return_exceptions=True)


async def _watched(
    process: asyncio.subprocess.Process, wire: Wire, listener: Listener, question: Question, cwd: Path
) -> acp.PromptResponse | None:
    """Converse while the agent is there and its answer is not too long; None if its context is full."""
    connection = acp.connect_to_agent(listener, wire)  # type: ignore[arg-type]
    talk = asyncio.ensure_future(_converse(connection, question, cwd))
    waits = (listener.too_long.wait(), listener.full.wait(), _gone(process))
    alarms = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait([talk, *alarms], return_when=asyncio.FIRST_COMPLETED)
        if listener.too_long.is_set():
            wire.fault = f"gave an answer of more than {TEXT_LIMIT} characters"
        if listener.full.is_set() and not talk.done():  # it may have been at its last word
            await asyncio.wait([talk], timeout=GRACE)
        if not wire.fault and listener.full.is_set() and not talk.done():
            return None  # it is ended as every agent is; what it did is in its worktree
        if wire.fault or not talk.done():
            raise ConnectionError("nothing more is expected of the agent")
        return await talk
    finally:
        for task in (talk, *alarms):
            task.cancel()
        await asyncio.gather(talk, *alarms, return_exceptions=True)
        with contextlib.suppress(ConnectionError):
            await connection.close()


async def _converse(connection: ClientSideConnection, question: Question, cwd: Path) -> acp.PromptResponse:
    hello = await connection.initialize(
        protocol_version=acp.PROTOCOL_VERSION,
        client_capabilities=ClientCapabilities(
            fs=FileSystemCapabilities(read_text_file=False, write_text_file=False), terminal=False
        ),
        client_info=Implementation(name="planforge", version=__version__),
    )
    if hello.protocol_version != acp.PROTOCOL_VERSION:
        raise ValueError(f"it speaks version {hello.protocol_version}, Planforge {acp.PROTOCOL_VERSION}")
    session = await connection.new_session(cwd=str(cwd), mcp_servers=[])
    return await connection.prompt(prompt=[acp.text_block(question.prompt)], session_id=session.session_id)


async def _let_go(process: asyncio.subprocess.Process) -> None:
    """Let the agent end by itself for a moment: it knows of children that have left its group."""
    assert process.stdin is not None
    process.stdin.close()
    # Not `asyncio.timeout`, whose end an early Python 3.11 takes for the cancellation of a cancelled task.
    for _ in range(LOOKS):
        if process.returncode is not None:
            return
        await asyncio.sleep(GRACE / LOOKS)


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Return when the agent has ended and nothing more is to be expected of it."""
    while process.returncode is None:
        await asyncio.sleep(0.1)
    await asyncio.sleep(GRACE)


def _answer(name: str, listener: Listener, response: acp.PromptResponse) -> AgentAnswer:
    text = "".join(listener.chunks)
    if response.stop_reason != "end_turn":
        raise AgentFailed(f"agent `{name}` stopped early: {response.stop_reason}")
    if not text.strip():
        raise AgentFailed(f"agent `{name}` gave an empty answer")
    usage = response.usage
    return AgentAnswer(
        agent=name,
        text=text,
        stop_reason=response.stop_reason,
        tool_calls=listener.tool_calls,
        usage=Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens) if usage else None,
        money=listener.money,
    )


def _handed_over(name: str, listener: Listener) -> AgentAnswer:
    return AgentAnswer(
        agent=name,
        text="".join(listener.chunks),
        stop_reason=HANDED_OVER,
        tool_calls=listener.tool_calls,
        usage=None,
        context=listener.context,
        money=listener.money,
    )


def _detail(error: acp.RequestError) -> str:
    match error.data:
        case {"details": str(detail)} | {"message": str(detail)} | str(detail):
            return f" ({detail})"
    return ""


def _ending(process: asyncio.subprocess.Process, last_words: bytearray) -> str:
    code = process.returncode
    how = f" (exit code {code})" if code is not None and code >= 0 else ""
    lines = last_words.decode("utf-8", "replace").strip().splitlines()
    return f"{how}: {_one_line(lines[-1])}" if lines else how


def _one_line(text: object) -> str:
    """What an agent said, fit to stand in a message of ours."""
    words = " ".join(str(text).split())
    return "".join(letter for letter in words if letter.isprintable())[:500]


async def _drain(process: asyncio.subprocess.Process, last_words: bytearray) -> None:
    """Read the agent's standard error to its end and keep the last of it."""
    assert process.stderr is not None
    while chunk := await process.stderr.read(65536):
        last_words += chunk
        del last_words[:-2000]
