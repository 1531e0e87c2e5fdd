"""
Claude Code by its own command line: `claude -p --output-format stream-json --verbose`.

Each line is an event. The last one is of type `result`, and its `is_error` says whether the turn failed;
its subtype says `success` either way, and the exit code is 0 also for a program that was interrupted. What
a call used is what the result says was used since the last one: totals go on counting where an earlier call
of the same conversation ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from planforge.agents import faults
from planforge.agents.native import claude_events as events
from planforge.agents.native import program
from planforge.agents.native.lines import decoded, inner
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Place, Task
from planforge.agents.transcript import Transcript
from planforge.agents.usage import millionths, together
from planforge.errors import AgentCancelled, AgentFailed, PlanforgeError
from planforge.kernel.effects import AgentAnswer, Usage
from planforge.kernel.tokens import estimate

KINDS = {
    **dict.fromkeys(("Read", "NotebookRead"), "read"),
    **dict.fromkeys(("Grep", "Glob", "LS", "ToolSearch"), "search"),
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), "edit"),
    **dict.fromkeys(("Bash", "BashOutput", "KillShell", "Monitor"), "execute"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "fetch"),
    **dict.fromkeys(("Task", "TodoWrite"), "think"),
}
"""The kinds of its tools, in the words of the Agent Client Protocol; all others are `other`."""

FORM = "StructuredOutput"
"""The tool by which it hands in an answer that has a form; nothing is done by it."""

STOPPED_EARLY = frozenset({"max_tokens", "refusal", "model_context_window_exceeded", "pause_turn"})
"""Why a model stopped that had more to say, or would not say it."""


async def ask(name: str, profile: Profile, task: Task, place: Place) -> AgentAnswer:
    """Put the task to Claude Code and return its answer, or raise what kind of failure it was."""
    program.require_session(task)
    task = msgspec.structs.replace(task, prompt=as_words(task.prompt))
    listener = Claude(task, place)
    ending = await program.converse(name, profile, task, place, command(task, place), listener)
    if ending.full:
        return listener.transcript.handed_over(name)
    if listener.result is None or not listener.transcript.ended or ending.fault:
        raise program.unanswered(name, profile, ending, listener.transcript.trouble)
    if error := listener.failure(name, profile, listener.result):
        raise error
    return listener.transcript.answer(name)


def command(task: Task, place: Place) -> list[str]:
    """The command for this task; the prompt is no part of it."""
    resumed = ["--resume", task.session] if task.session else []
    return [*place.argv, *resumed, *(["--json-schema", task.schema] if task.schema else [])]


def as_words(prompt: str) -> str:
    """The prompt, changed so that a `/` at its beginning is not read as a command."""
    return f"\n{prompt}" if prompt.startswith("/") else prompt


class Claude:
    """Makes sense of the events of Claude Code."""

    def __init__(self, task: Task, place: Place) -> None:
        self.transcript = Transcript(task, place)
        self.result: events.Result | None = None
        """How its last turn ended."""
        self._account = Account(resumed=bool(task.session))
        self._limit = events.Limit()
        self._understood: dict[str, tuple[msgspec.json.Decoder[Any], Callable[[Any, int], None]]] = {
            "system": (events.SYSTEM, self._system),
            "assistant": (events.SPOKEN, self._assistant),
            "user": (events.SPOKEN, self._user),
            "rate_limit_event": (events.RATE_LIMIT, self._rate_limit),
            "result": (events.RESULT, self._result),
        }
        """How each kind of event is read, and who takes it in with the length of its line."""

    def take(self, line: bytes) -> bool:
        """Take in one line; False if it is no event."""
        head = decoded(line, events.HEAD)
        if head is None or not head.type:
            return False
        self.transcript.named(head.session_id)
        if head.type not in self._understood:
            self.transcript.said(head.type)  # of another version
            return True
        shape, take = self._understood[head.type]
        event = decoded(line, shape)
        if event is not None:
            take(event, len(line))
        return event is not None

    def glance(self) -> None:
        """There is nothing to look at besides what it prints."""

    def failure(self, name: str, profile: Profile, result: events.Result) -> PlanforgeError | None:
        """The error to raise for how its turn ended; None if it ended with an answer."""
        transcript = self.transcript
        if (result.terminal_reason or "").startswith("aborted"):
            return AgentCancelled(f"agent `{name}` was stopped before it had answered")
        if result.is_error:
            errors = inner(result.errors, events.ERRORS) or []
            said = transcript.text or "; ".join(errors) or result.subtype or ""
            limit = {"resetsAt": self._limit.resets_at} if self._limit.status == "rejected" else None
            status, now, login = result.api_error_status, time.time(), profile.login_command
            return faults.failure(name, said, status=status, data=limit, now=now, login=login)
        if result.stop_reason in STOPPED_EARLY:
            return AgentFailed(f"agent `{name}` stopped early: {result.stop_reason}")
        return transcript.unusable(name)

    # Events

    def _system(self, event: events.System, _: int) -> None:
        if event.subtype == "init":
            self.transcript.model = faults.one_line(event.model or "") or self.transcript.model
            self.transcript.said("started")
        elif event.subtype == "permission_denied":
            self.transcript.finished(event.tool_use_id or "", "denied")
            self.transcript.said(f"may not use {event.tool_name}")
        elif event.subtype == "api_retry":
            self.transcript.trouble = f"API Error: {event.error_status or ''} {event.error or ''}"
            self.transcript.said(f"tries again after {self.transcript.trouble}")
        else:
            self.transcript.said(event.subtype or "system")

    def _assistant(self, event: events.Spoken, size: int) -> None:
        self.transcript.ended, self.transcript.trouble = False, ""
        written = 0
        for block in inner(event.message.content, events.BLOCKS) or []:
            written += len(block.text) + len(block.input)
            if block.type == "tool_use" and block.name != FORM:
                about = inner(block.input, events.INPUT)
                title = f"{block.name} {about.about}" if about else block.name
                self.transcript.began(block.id, KINDS.get(block.name, "other"), title)
            else:
                self.transcript.said(block.text or block.type)
        self._count(event, written, size)

    def _user(self, event: events.Spoken, size: int) -> None:
        for block in inner(event.message.content, events.BLOCKS) or []:
            if block.type == "tool_result":
                self.transcript.finished(block.tool_use_id, "failed" if block.is_error else "completed")
        self.transcript.said("goes on")
        if event.parent_tool_use_id is None:
            self.transcript.grew(size)

    def _rate_limit(self, event: events.RateLimit, _: int) -> None:
        self._limit = event.rate_limit_info
        self.transcript.said(f"limit: {self._limit.status}")

    def _result(self, result: events.Result, _: int) -> None:
        self.result, transcript = result, self.transcript
        transcript.ended, transcript.trouble = True, ""
        transcript.text = faults.plain(result.result or "")
        formed = bytes(result.structured_output)
        transcript.output = "" if formed == b"null" else formed.decode("utf-8", "replace")
        for denial in inner(result.permission_denials, events.DENIALS) or []:
            transcript.finished(denial.tool_use_id, "denied")
        self._account.settle(result)
        transcript.counted(self._account.used, self._account.money)
        transcript.said("has ended its turn")

    def _count(self, event: events.Spoken, written: int, size: int) -> None:
        message = event.message
        if message.usage is None:
            self.transcript.grew(size)
        elif not (message.model or "").startswith("<"):  # which are words of the program, not of a model
            used = self._account.add(message.id or "", message.usage, written)
            self.transcript.counted(self._account.used, self._account.money)
            if event.parent_tool_use_id is None:
                self.transcript.filled(used.input_tokens + used.output_tokens)


class Account:
    """
    What one call has used so far.

    A message says what it used when it begins, so what it comes to is a guess until its turn has ended.
    """

    def __init__(self, *, resumed: bool) -> None:
        self.money: int | None = None
        self._resumed = resumed
        self._settled: Usage | None = None
        self._earlier: Usage | None = None
        self._latest: Usage | None = None
        self._written = ("", 0)

    @property
    def used(self) -> Usage | None:
        """All of it; None if nothing is known."""
        return together(self._settled, self._earlier, self._latest)

    def add(self, identity: str, tokens: events.Tokens, written: int) -> Usage:
        """One part of a message, of so many characters; what the message comes to with it."""
        before, characters = self._written
        if identity == before:
            written += characters
        else:
            self._earlier = together(self._earlier, self._latest)
        self._written = (identity, written)
        begun = tokens.usage("estimated")
        output = max(begun.output_tokens, estimate(written))
        self._latest = msgspec.structs.replace(begun, output_tokens=output)
        return self._latest

    def settle(self, result: events.Result) -> None:
        """A turn has ended; that is what it used."""
        self._earlier = self._latest = None
        models = list((inner(result.model_usage_since_last_result, events.BY_MODEL) or {}).values())
        if models:
            usage = together(*(model.usage() for model in models))
            money = millionths(sum(model.cost or 0.0 for model in models))
        else:  # it used nothing, or is of a version that only has the total of the whole conversation
            usage = result.usage.usage() if result.usage else None
            money = None if self._resumed or self._settled else millionths(result.total_cost_usd)
        if usage and (usage.input_tokens or usage.output_tokens):
            self._settled = together(self._settled, usage)
        if money is not None:
            self.money = (self.money or 0) + money
