"""
One conversation with one agent that was started: to an answer, or to the reason why there is none.

An answer counts only if the agent ended its turn properly and said something. An agent whose time is up,
whose context is nearly full or whose task is called off is first asked to stop, so that it ends what it has
running.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from planforge.actions import see
from planforge.agents import exits, faults
from planforge.agents.acp import quirks, sessions
from planforge.agents.acp.answers import Ended
from planforge.agents.acp.connection import Connection
from planforge.agents.acp.listener import Listener
from planforge.agents.acp.quirks import QUIRKS
from planforge.agents.acp.requests import CANCEL, HELLO, INITIALIZE, PROMPT, PROTOCOL_VERSION, Cancel, Prompt
from planforge.agents.acp.sessions import Opened
from planforge.agents.acp.updates import TextBlock
from planforge.agents.acp.wire import Wire
from planforge.agents.faults import one_line, plain
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Place, Task
from planforge.agents.rpc import Refusal
from planforge.errors import (
    AgentCancelled,
    AgentEmpty,
    AgentFailed,
    AgentMalformed,
    AgentTimedOut,
    AgentUnavailable,
    PlanforgeError,
)
from planforge.kernel.effects import AgentAnswer, Usage

GRACE = 1.0
"""How long, in seconds, an agent may take to stop once it is asked to, and how long one that has ended is
listened to if something it left holds its streams."""

LOOKS = 10
"""How often in a second it is looked whether the agent is still there."""

STOPS = {
    "max_tokens": "reached the most tokens that one turn may have",
    "max_turn_requests": "made as many requests as one turn may have",
    "refusal": "refused to go on",
}


class Conversation:
    """With one agent, about one task."""

    def __init__(
        self, name: str, profile: Profile, task: Task, place: Place, process: asyncio.subprocess.Process
    ) -> None:
        self._name = name
        self._profile = profile
        self._task = task
        self._place = place
        assert process.stderr is not None
        self._process = process
        self._deadline = time.monotonic() + task.seconds
        self._wire = Wire(process)
        self._listener = Listener(name, profile, task, place)
        self._connection = Connection(self._wire, self._listener)
        self._spoke = False
        self._opened: Opened | None = None
        self._last_words = bytearray()
        self._complained = float("-inf")
        self._complaints = asyncio.create_task(exits.drain(process.stderr, self._last_words, self._complain))

    async def answer(self) -> AgentAnswer:
        """The agent's answer; a failure is raised."""
        try:
            response = await self._watched()
        except Refusal as error:
            said = f"{error}{_detail(error)}"
            raise self._failure(said, code=error.code, data=error.data) from error
        except ConnectionError as error:
            raise await self._gone() from error
        except ValueError as error:  # nothing can be made of what the agent answered
            message = f"agent `{self._name}` broke the Agent Client Protocol: {one_line(error)}"
            raise AgentMalformed(message) from error
        return self._handed_over() if response is None else self._answered(response)

    async def close(self) -> None:
        """Listen no more."""
        await self._connection.close()
        self._complaints.cancel()
        await asyncio.gather(self._complaints, return_exceptions=True)

    def _complain(self) -> None:
        self._complained = time.monotonic()

    async def _watched(self) -> Ended | None:
        """Converse while the agent is there and within its time; None if its context is full."""
        listener = self._listener
        talk = asyncio.ensure_future(self._converse())
        waits = (listener.stop.wait(), listener.full.wait(), _ended(self._process, self._wire))
        alarms: list[asyncio.Future[Any]] = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await self._first_of(talk, alarms)
            if listener.full.is_set() and not talk.done():  # it may have been at its last word
                await asyncio.wait([talk], timeout=GRACE)
            if listener.problem is not None:
                raise listener.problem
            if talk.done():
                return await talk
            if listener.full.is_set() and not self._wire.fault:
                return None  # what it did is in its worktree
            raise ConnectionError("nothing more is expected of the agent")
        finally:
            for alarm in alarms:
                alarm.cancel()
            await self._call_off(talk)
            await asyncio.gather(*alarms, return_exceptions=True)

    async def _first_of(self, talk: asyncio.Future[Ended], alarms: Sequence[asyncio.Future[Any]]) -> None:
        """Return when the talk is over or an alarm went off; raise if the agent's time is up before that."""
        while True:
            waited_for: list[asyncio.Future[Any]] = [talk, *alarms]
            done, _ = await asyncio.wait(
                waited_for, timeout=self._time_left(), return_when=asyncio.FIRST_COMPLETED
            )
            if done:
                return
            if time.monotonic() >= self._deadline:
                raise self._late(f"did not answer within {self._task.seconds:g} s")
            if self._idle_left() <= 0:
                raise self._late(f"gave no sign of life for {self._task.idle_seconds:g} s")

    def _late(self, how: str) -> PlanforgeError:
        """An agent that waits for its service does not say so, but may have complained of it."""
        said, data = "", None
        if complaint := self._listener.complaint:
            said, data = complaint.said, complaint.data
        elif self._complained > max(self._listener.last_sign, self._wire.last_sign):
            said = data = self._last_words.decode("utf-8", "replace")
        if faults.classify(said, data=data, now=time.time()).error not in (AgentFailed, AgentTimedOut):
            return self._failure(f"it {how}: {_last_line(said)}", data=data)
        return AgentTimedOut(f"agent `{self._name}` {how}")

    def _time_left(self) -> float:
        return max(min(self._deadline - time.monotonic(), self._idle_left()), 0.0)

    def _idle_left(self) -> float:
        """How long it may be silent still; as long as it likes while it waits for us."""
        idle = self._task.idle_seconds
        if not idle:
            return float("inf")
        if self._listener.questions:
            return idle
        last = max(self._listener.last_sign, self._wire.last_sign)
        return last + idle - time.monotonic()

    async def _call_off(self, talk: asyncio.Future[Ended]) -> None:
        """Have the agent stop, if it is at it, and give it a moment to end what it has running."""
        try:
            if not talk.done() and self._opened is not None and self._process.returncode is None:
                self._listener.called_off.set()
                asking = asyncio.ensure_future(
                    self._connection.tell(CANCEL, Cancel(session_id=self._opened.session))
                )
                await asyncio.wait([talk], timeout=GRACE)
                asking.cancel()  # one that does not read cannot be asked
                await asyncio.gather(asking, return_exceptions=True)
                self._note_usage(talk)
        finally:
            talk.cancel()
            await asyncio.gather(talk, return_exceptions=True)

    def _note_usage(self, talk: asyncio.Future[Ended]) -> None:
        """What a turn that was called off has used, if its agent says."""
        if talk.done() and not talk.cancelled() and talk.exception() is None:
            self._place.noted(usage=self._usage(talk.result()), money=self._listener.meter.money)

    async def _converse(self) -> Ended:
        hello = await self._connection.ask(INITIALIZE, HELLO)
        self._spoke = True
        if hello.protocol_version != PROTOCOL_VERSION:
            raise ValueError(f"it speaks version {hello.protocol_version}, Planforge {PROTOCOL_VERSION}")
        info = hello.agent_info
        self._listener.quirk = QUIRKS.get(info.name) if info else None
        self._opened = await sessions.open_session(self._connection, hello.agent_capabilities, self._listener)
        self._listener.asked = True
        # What goes into `_meta`: our own program for model APIs can be held to a form, others pass over it.
        form = {"planforge": {"schema": self._task.schema}} if self._task.schema else {}
        prompt = Prompt(
            session_id=self._opened.session, prompt=[TextBlock(text=self._task.prompt)], meta=form
        )
        return await self._connection.ask(PROMPT, prompt)

    # What came of it

    def _answered(self, response: Ended) -> AgentAnswer:
        name, listener, stop = self._name, self._listener, response.stop_reason
        transcript = listener.transcript
        transcript.counted(self._usage(response), listener.meter.money)
        if stop == "cancelled":
            raise AgentCancelled(f"agent `{name}` stopped before its end: cancelled")
        if stop != "end_turn":
            raise AgentFailed(f"agent `{name}` stopped early: it {STOPS.get(stop, stop)}")
        assert self._opened is not None
        if listener.failed:
            complaint = listener.complaint
            raise self._failure(listener.aside, data=complaint.data if complaint else None)
        transcript.text = plain(listener.text)
        if not transcript.text.strip():
            if error := quirks.logged_error(self._place.home, self._opened.session):
                raise self._failure(error)
            raise AgentEmpty(f"agent `{name}` gave an empty answer")
        transcript.model = self._opened.model
        transcript.session = self._opened.session if self._opened.lasting else ""
        return transcript.answer(name)

    def _usage(self, response: Ended) -> Usage | None:
        return self._listener.meter.read(response, tool_calls=self._listener.transcript.tool_calls)

    def _handed_over(self) -> AgentAnswer:
        transcript = self._listener.transcript
        transcript.text = plain(self._listener.text)
        transcript.model = self._opened.model if self._opened else ""
        return transcript.handed_over(self._name)

    def _failure(self, said: str, *, code: int | None = None, data: object = None) -> PlanforgeError:
        login = self._profile.login_command
        return faults.failure(self._name, said, code=code, data=data, now=time.time(), login=login)

    async def _gone(self) -> PlanforgeError:
        """What it means that the agent speaks no more."""
        name = self._name
        if self._wire.fault:
            return AgentMalformed(f"agent `{name}` {self._wire.fault}")
        await asyncio.wait([self._complaints], timeout=GRACE)
        await self._place.end(self._process)
        said = self._last_words.decode("utf-8", "replace")
        ending = _ending(self._process.returncode, said)
        if not self._spoke:
            return AgentUnavailable(
                f"agent `{name}` ended before it spoke the Agent Client Protocol{ending}",
                see("agent list"),
            )
        kind = faults.classify(said, now=time.time()).error if self._process.returncode else AgentFailed
        if kind is AgentFailed:
            return AgentFailed(f"agent `{name}` ended without an answer{ending}")
        return self._failure(said)


async def _ended(process: asyncio.subprocess.Process, wire: Wire) -> None:
    """Return when the agent has ended and its output has been read."""
    while process.returncode is None:
        await asyncio.sleep(1 / LOOKS)
    ended = time.monotonic()
    while time.monotonic() - max(ended, wire.last_sign) < GRACE:
        await asyncio.sleep(1 / LOOKS)


def _detail(error: Refusal) -> str:
    match error.data:
        case {"details": str(detail)} | {"message": str(detail)} | {"error": str(detail)} | str(detail):
            return f" ({detail})"
        case {"error": {"message": str(detail)}} | {"data": {"message": str(detail)}}:
            return f" ({detail})"
    return ""


def _ending(code: int | None, said: str) -> str:
    how = f" (exit code {code})" if code is not None and code >= 0 else ""
    last = _last_line(said)
    return f"{how}: {last}" if last else how


def _last_line(said: str) -> str:
    return next((words for line in reversed(said.splitlines()) if (words := one_line(line))), "")
