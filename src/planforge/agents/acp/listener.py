"""
Our side of the conversation: takes in what the agent says and answers what it asks.

Files, terminals and everything else an agent might ask of its client are not offered: it works in its
worktree, and git tells what it did there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from planforge.agents.acp import permissions, quirks, updates
from planforge.agents.acp.parts import read
from planforge.agents.acp.quirks import Complaint, Quirk
from planforge.agents.acp.updates import (
    PERMISSION,
    UPDATE,
    Decision,
    InfoUpdate,
    MessageChunk,
    ModeUpdate,
    Notification,
    Option,
    Question,
    TextBlock,
    ThoughtChunk,
    ToolCallStart,
    ToolCallUpdate,
    Update,
    UsageUpdate,
)
from planforge.agents.acp.usage import Meter
from planforge.agents.faults import failure, one_line
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Place, Task
from planforge.agents.rpc import INVALID_PARAMS, METHOD_NOT_FOUND, Refusal
from planforge.agents.transcript import DENIED, TEXT_LIMIT, TOOLS_LISTED, Transcript
from planforge.errors import AgentFailed, AgentMalformed, AgentUnavailable, PlanforgeError
from planforge.kernel.effects import Access, ToolUse

MOST_COMPLAINTS = 3
"""How often an agent may say that it does not reach its service before it is not waited for any more."""

CALLS_APART, WORDS_APART = 0.2, 10.0
"""How often, in seconds, a person is told of another tool call, and that the agent is writing."""

SETTLED, SETTLING = 0.25, 10.0
"""A conversation has been told again when nothing more of it came for so long; and how long that may take."""


class Listener:
    """Hears one agent."""

    def __init__(self, name: str, profile: Profile, task: Task, place: Place) -> None:
        self.name = name
        self.profile = profile
        self.task = task
        self.place = place
        self.transcript = Transcript(task, place)
        self.session = ""
        """What belongs to other sessions is not heard."""
        self.asked = False
        """Until the task is put an agent may tell an earlier conversation again; that is no answer."""
        self.quirk: Quirk | None = None
        self.aside = ""
        """What its adapter said last."""
        self.failed = False
        """It says that the turn has failed, however it ends."""
        self.complaint: Complaint | None = None
        """What it complained of last, if it has done nothing since."""
        self._complaints = 0
        self.called_off = asyncio.Event()
        self.mode = ""
        """The mode that it must stay in; empty if it may change that."""
        self.meter = Meter(profile, task)
        self.stop = asyncio.Event()
        self.problem: PlanforgeError | None = None
        """Why it is stopped."""
        self.full = asyncio.Event()
        self.last_sign = time.monotonic()
        self.questions = 0
        """How many of its questions wait for an answer of ours."""
        self._chunks: list[str] = []
        self._size = 0
        self._apart = False
        self._message: str | None = None
        self._starts: dict[str, ToolCallUpdate] = {}
        """How the tool calls that are listed were announced."""
        self._told_at = {CALLS_APART: float("-inf"), WORDS_APART: float("-inf")}

    @property
    def text(self) -> str:
        """All that it said."""
        return "".join(self._chunks)

    async def settled(self) -> None:
        """Return when no more of an earlier conversation comes: some go on after they said that was all."""
        began = time.monotonic()
        while (now := time.monotonic()) < began + SETTLING and now - max(self.last_sign, began) < SETTLED:
            await asyncio.sleep(SETTLED / 5)

    # What the agent says

    def hear(self, method: str, params: object) -> None:
        """Take in one notification; raises `ValueError` if it is not valid."""
        if method != UPDATE:
            return
        notification = read(Notification, params)
        update = updates.news(notification.update)
        self.last_sign = time.monotonic()
        if notification.session_id != self.session:
            return
        if isinstance(update, UsageUpdate):
            self.meter.take(update, asked=self.asked)
            if self.asked:
                self.transcript.counted(None, self.meter.money)
        self._count(update, notification.update)
        if isinstance(update, ModeUpdate):
            self._watch_mode(update.current_mode_id)
        if self.asked:
            self._take(update)

    def _take(self, update: Update) -> None:
        if isinstance(update, ToolCallUpdate):
            self._take_call(update)
        elif isinstance(update, InfoUpdate):
            failed = quirks.trouble(update.meta)
            self.failed = self.failed if failed is None else failed
            self._take_complaint(quirks.complaint(update.meta))
        elif isinstance(update, MessageChunk) and isinstance(update.content, TextBlock):
            self._take_text(update.content.text, update.message_id)
        elif isinstance(update, ThoughtChunk):
            self._tell("is thinking", WORDS_APART)

    def _count(self, update: Update, raw: dict[str, Any]) -> None:
        """How full the agent's context is: as it says, or as we guess from what it was told and said."""
        transcript = self.transcript
        if isinstance(update, UsageUpdate):
            transcript.context = transcript.context.reported(update.used)
        elif isinstance(update, MessageChunk | ThoughtChunk | ToolCallUpdate):
            transcript.grew(len(msgspec.json.encode(raw).decode()))
        if transcript.context.is_due and self.asked:
            self.full.set()

    def _take_complaint(self, complaint: Complaint | None) -> None:
        """Codex waits for ever for a service that it does not reach, and says so each time that it tried."""
        if complaint is None:
            return
        self.complaint = complaint
        self._complaints += 1
        self._tell(one_line(complaint.said), CALLS_APART)
        if self._complaints >= MOST_COMPLAINTS:
            problem = failure(self.name, complaint.said, data=complaint.data, now=time.time())
            if isinstance(problem, AgentUnavailable):
                self._halt(problem)

    def _take_text(self, text: str, message: str | None) -> None:
        """Text that follows on a tool call, or belongs to another message, is set apart by an empty line."""
        if quirks.is_aside(self.quirk, text, message):
            self.aside = one_line(text)
            self._tell(self.aside, CALLS_APART)
            return
        if message != self._message and None not in (message, self._message):
            self._apart = True
        self._message, self.complaint, self._complaints = message, None, 0
        if self._apart and self._chunks and text.strip():
            self._keep("\n\n")
        self._apart = self._apart and not text.strip()
        self._keep(text)
        self._tell("is writing", WORDS_APART)

    def _keep(self, text: str) -> None:
        self._size += len(text)
        if self._size > TEXT_LIMIT:
            self._halt(
                AgentMalformed(f"agent `{self.name}` gave an answer of more than {TEXT_LIMIT} characters")
            )
        else:
            self._chunks.append(text)

    def _take_call(self, update: ToolCallUpdate) -> None:
        self._apart, self.complaint, self._complaints = True, None, 0
        begins = isinstance(update, ToolCallStart)
        if not begins and update.tool_call_id not in self._starts:
            return
        known = self._remember(update)
        if begins:
            self._tell(f"{known.kind}: {known.title}" if known.title else known.kind, CALLS_APART)

    def _remember(self, update: ToolCallUpdate) -> ToolUse:
        self._starts.setdefault(update.tool_call_id, update)
        if len(self._starts) > TOOLS_LISTED:
            self._starts.pop(next(iter(self._starts)))
        status = update.status if update.status in ("completed", "failed") else ""
        identity, kind, title = update.tool_call_id, update.kind or "", update.title or ""
        return self.transcript.used(identity, kind=kind, title=title, status=status)

    def _watch_mode(self, mode: str) -> None:
        if self.task.access is Access.READ and self.mode and mode != self.mode:
            left = f"left its mode `{self.mode}`, in which it only reads, for `{one_line(mode)}`"
            self._halt(AgentFailed(f"agent `{self.name}` {left}"))

    def _halt(self, problem: PlanforgeError) -> None:
        self.problem = self.problem or problem
        self.stop.set()

    def _tell(self, what: str, apart: float) -> None:
        now = time.monotonic()
        if now - self._told_at[apart] >= apart:
            self._told_at[apart] = now
            self.place.heard(what)

    # What the agent asks

    async def answer(self, method: str, params: object) -> Decision:
        """Allow what the role may do, once; deny the rest."""
        if method != PERMISSION:
            raise Refusal(METHOD_NOT_FOUND, "Method not found", {"method": method})
        try:
            question = read(Question, params)
        except ValueError as error:
            raise Refusal(INVALID_PARAMS, "Invalid params", {"details": one_line(error)}) from error
        return await self._permit(question.tool_call, question.options)

    async def _permit(self, call: ToolCallUpdate, options: Sequence[Option]) -> Decision:
        self.last_sign = time.monotonic()
        if self.called_off.is_set() or not self.asked:
            return permissions.void()
        known = self._remember(call)
        self.questions += 1
        try:
            asked = permissions.request(call, self._starts[call.tool_call_id])
            may = await self.place.permit(asked)
        finally:
            self.questions -= 1
            self.last_sign = time.monotonic()
        if self.called_off.is_set():
            return permissions.void()
        response = permissions.answer(options, may=may)
        if not may:
            self.transcript.used(call.tool_call_id, status=DENIED)
            self._tell(f"denied: {known.title or known.kind}", CALLS_APART)
        return response
