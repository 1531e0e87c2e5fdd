"""
Our side of the conversation: takes in what the agent says and answers what it asks.

Files, terminals and everything else an agent might ask of its client are not offered: it works in its
worktree, and git tells what it did there.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
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
from planforge.errors import AgentFailed, AgentMalformed, AgentUnavailable, PlanforgeError
from planforge.kernel.effects import Access, ToolUse
from planforge.kernel.tokens import TokenState, estimate

TEXT_LIMIT = 1024 * 1024
"""How many characters of an answer are kept; a longer one is refused, not cut."""

TOOLS_KEPT = 200
"""How many tool calls are on record, the last ones."""

TITLE_LIMIT = 200

MOST_COMPLAINTS = 3
"""How often an agent may say that it does not reach its service before it is not waited for any more."""

CALLS_APART, WORDS_APART = 0.2, 10.0
"""How often, in seconds, a person is told of another tool call, and that the agent is writing."""

SETTLED, SETTLING = 0.25, 10.0
"""A conversation has been told again when nothing more of it came for so long; and how long that may take."""


class Call:
    """What is known of one tool call."""

    def __init__(self, start: ToolCallUpdate) -> None:
        self.start = start
        self.kind: str = start.kind or "other"
        self.title = one_line(start.title or "")[:TITLE_LIMIT]
        self.status = ""

    def take(self, update: ToolCallUpdate) -> None:
        """Take in an update of it."""
        self.kind = update.kind or self.kind
        self.title = one_line(update.title or "")[:TITLE_LIMIT] or self.title
        if update.status in ("completed", "failed") and self.status != "denied":
            self.status = update.status


class Listener:
    """Hears one agent."""

    def __init__(self, name: str, profile: Profile, task: Task, place: Place) -> None:
        self._name = name
        self._task = task
        self._place = place
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
        self.tool_calls = 0
        self.stop = asyncio.Event()
        self.problem: PlanforgeError | None = None
        """Why it is stopped."""
        self.context = TokenState(used=estimate(len(task.prompt)), threshold=task.threshold, estimated=True)
        self.full = asyncio.Event()
        self.last_sign = time.monotonic()
        self.questions = 0
        """How many of its questions wait for an answer of ours."""
        self._characters = len(task.prompt)
        self._chunks: list[str] = []
        self._size = 0
        self._apart = False
        self._message: str | None = None
        self._calls: OrderedDict[str, Call] = OrderedDict()
        self._told_at = {CALLS_APART: float("-inf"), WORDS_APART: float("-inf")}

    @property
    def text(self) -> str:
        """All that it said."""
        return "".join(self._chunks)

    @property
    def tools(self) -> tuple[ToolUse, ...]:
        """What it did, the last of it."""
        return tuple(
            ToolUse(kind=call.kind, title=call.title, status=call.status) for call in self._calls.values()
        )

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
                self._place.noted(money=self.meter.money)
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
        if isinstance(update, UsageUpdate):
            self.context = self.context.reported(update.used)
        elif isinstance(update, MessageChunk | ThoughtChunk | ToolCallUpdate):
            self._characters += len(msgspec.json.encode(raw).decode())
            self.context = self.context.guessed(self._characters)
        if self.context.is_due and self.asked:
            self.full.set()

    def _take_complaint(self, complaint: Complaint | None) -> None:
        """Codex waits for ever for a service that it does not reach, and says so each time that it tried."""
        if complaint is None:
            return
        self.complaint = complaint
        self._complaints += 1
        self._tell(one_line(complaint.said), CALLS_APART)
        if self._complaints >= MOST_COMPLAINTS:
            problem = failure(self._name, complaint.said, data=complaint.data, now=time.time())
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
                AgentMalformed(f"agent `{self._name}` gave an answer of more than {TEXT_LIMIT} characters")
            )
        else:
            self._chunks.append(text)

    def _take_call(self, update: ToolCallUpdate) -> None:
        self._apart, self.complaint, self._complaints = True, None, 0
        known = self._calls.get(update.tool_call_id)
        if known is not None:
            known.take(update)
        elif isinstance(update, ToolCallStart):
            known = self._remember(update)
        if isinstance(update, ToolCallStart) and known is not None:
            self._tell(f"{known.kind}: {known.title}" if known.title else known.kind, CALLS_APART)

    def _remember(self, update: ToolCallUpdate) -> Call:
        self.tool_calls += 1
        call = self._calls[update.tool_call_id] = Call(update)
        call.take(update)
        while len(self._calls) > TOOLS_KEPT:
            self._calls.popitem(last=False)
        return call

    def _watch_mode(self, mode: str) -> None:
        if self._task.access is Access.READ and self.mode and mode != self.mode:
            left = f"left its mode `{self.mode}`, in which it only reads, for `{one_line(mode)}`"
            self._halt(AgentFailed(f"agent `{self._name}` {left}"))

    def _halt(self, problem: PlanforgeError) -> None:
        self.problem = self.problem or problem
        self.stop.set()

    def _tell(self, what: str, apart: float) -> None:
        now = time.monotonic()
        if now - self._told_at[apart] >= apart:
            self._told_at[apart] = now
            self._place.heard(what)

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
        known = self._calls.get(call.tool_call_id) or self._remember(call)
        known.take(call)
        self.questions += 1
        try:
            asked = permissions.request(call, known.start)
            may = await self._place.permit(asked)
        finally:
            self.questions -= 1
            self.last_sign = time.monotonic()
        if self.called_off.is_set():
            return permissions.void()
        response = permissions.answer(options, may=may)
        if not may:
            known.status = "denied"
            self._tell(f"denied: {known.title or known.kind}", CALLS_APART)
        return response
