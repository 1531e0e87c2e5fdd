"""
One program from its start to its last word.

The prompt goes in by standard input: an argument has a length limit and is there for everybody to read. The
program is listened to until it ends, until it has said its last word, or until it has been silent or at it
for too long. Whatever comes of it, nothing of it is left running.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from planforge.agents import exits, faults
from planforge.agents.native import lines
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Place, Task
from planforge.agents.transcript import SESSION, Transcript
from planforge.errors import (
    AgentCancelled,
    AgentEmpty,
    AgentFailed,
    AgentMalformed,
    AgentTimedOut,
    AgentUnavailable,
    CannotPerform,
    InvalidInput,
    PlanforgeError,
)

GRACE = 1.0
"""How long, in seconds, an agent with a full context may take for its last word, and how long one that has
ended is listened to if something that it left holds its streams."""

LEAVE = 5.0
"""How long one may take to end that has said its last word: it may be writing down the conversation."""

TICK = 0.05
TURN = 100
"""After how many messages others have their turn."""

SIGNALLED = frozenset({-2, -15, 130, 143})
"""Exit codes of a program that somebody stopped: SIGINT and SIGTERM, with and without a sandbox around it."""

BACKTRACE = re.compile(r"\s*\d+: |\s*at .*:\d+|\s*stack backtrace", re.IGNORECASE)


class Listener(Protocol):
    """Makes sense of one program's lines."""

    transcript: Transcript

    def take(self, line: bytes) -> bool:
        """Take in one line; False if it is not a message of the program."""

    def glance(self) -> None:
        """Look at other sources than lines; called repeatedly while the program runs."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How it came that nothing more was listened to."""

    exit_code: int | None
    """None if it had not ended by itself."""
    last_words: str
    """The end of what it printed on standard error."""
    messages: int = 0
    noise: int = 0
    """How many lines were messages, and how many were not."""
    fault: str = ""
    """What it did that it may not, as the end of a sentence about it."""
    full: bool = False
    """It was stopped, because its context was nearly full."""


class _Pulse:
    """When something was last heard of a program, and what there was."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.words = bytearray()
        self.messages = 0
        self.noise = 0

    def beat(self) -> None:
        self.last = time.monotonic()


def require_session(task: Task) -> None:
    """Refuse a conversation whose name would be something else in a command."""
    if task.session and not SESSION.fullmatch(task.session):
        raise InvalidInput(f"`{faults.one_line(task.session)}` cannot be the name of a conversation")


async def converse(
    name: str, profile: Profile, task: Task, place: Place, argv: Sequence[str], listener: Listener
) -> Ending:
    """Start the program, put the prompt and listen to the end; raises only where it took too long."""
    process = await _started(name, profile, place, argv)
    pulse = _Pulse()
    assert process.stdout is not None
    assert process.stderr is not None
    tasks = (
        asyncio.ensure_future(_listen(process.stdout, listener, pulse)),
        asyncio.ensure_future(_feed(process, task.prompt)),
        asyncio.ensure_future(exits.drain(process.stderr, pulse.words, pulse.beat)),
    )
    try:
        late, full = await _watch(process, task, listener, pulse, tasks[0])
        if not (late or full or listener.transcript.hopeless or _fault(tasks[0])):
            await _let_go(process, tasks[2], LEAVE if listener.transcript.ended else GRACE)
        code = process.returncode
    finally:
        await place.end(process)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if late:
        raise _timed_out(name, profile, listener.transcript, late)
    return Ending(
        exit_code=code,
        last_words=_last_words(pulse.words),
        messages=pulse.messages,
        noise=pulse.noise,
        fault=_fault(tasks[0]),
        full=full,
    )


def unanswered(name: str, profile: Profile, ending: Ending, trouble: str = "") -> PlanforgeError:
    """The error to raise for a program that never said how its turn ended."""
    if ending.fault:
        return AgentMalformed(f"agent `{name}` {ending.fault}")
    code, words = ending.exit_code, trouble or ending.last_words
    if code in SIGNALLED:
        return AgentCancelled(f"agent `{name}` was stopped before it had answered")
    fault = faults.failure(name, words, now=time.time(), login=profile.login_command)
    if code or type(fault) is not AgentFailed:
        how = f" (exit code {code})" if code and code > 0 else f" (signal {-code})" if code else ""
        fault.message += how
        fault.args = (fault.message,)
        return fault
    said = f": {faults.one_line(words)}" if words else ""
    if ending.messages:
        return AgentMalformed(f"agent `{name}` ended without saying that it was done{said}")
    if ending.noise:
        return AgentMalformed(f"agent `{name}` did not print what it should{said}")
    return AgentEmpty(f"agent `{name}` ended without a word{said}")


# Starting and ending


async def _started(
    name: str, profile: Profile, place: Place, argv: Sequence[str]
) -> asyncio.subprocess.Process:
    try:
        return await place.launch(argv, env={**place.env, **place.variables}, cwd=place.cwd)
    except AgentFailed:
        raise
    except (CannotPerform, OSError) as error:
        raise AgentUnavailable(
            f"agent `{name}` cannot be started: {faults.one_line(error)}", profile.install or None
        ) from error


async def _let_go(
    process: asyncio.subprocess.Process, complaints: asyncio.Future[None], seconds: float
) -> None:
    """Let it end by itself, and hear its last complaints."""
    if await exits.ended(process, seconds):
        await asyncio.wait([complaints], timeout=GRACE)


def _timed_out(name: str, profile: Profile, transcript: Transcript, late: str) -> PlanforgeError:
    """What to say of a program that was ended for its silence or its slowness."""
    if not transcript.trouble:
        return AgentTimedOut(f"agent `{name}` {late}")
    # It was not thinking: it kept trying to reach somebody who refuses, and that is what it failed of.
    fault = faults.failure(name, transcript.trouble, now=time.time(), login=profile.login_command)
    if type(fault) is not AgentFailed:
        return fault
    return AgentTimedOut(f"agent `{name}` {late}; it said: {faults.one_line(transcript.trouble)}")


# Listening


async def _watch(
    process: asyncio.subprocess.Process,
    task: Task,
    listener: Listener,
    pulse: _Pulse,
    reading: asyncio.Future[None],
) -> tuple[str, bool]:
    """Wait until nothing more is to be expected: why it is too late, if it is, and whether it is full."""
    deadline = time.monotonic() + task.seconds
    transcript = listener.transcript
    since: dict[str, float] = {}

    def lasted(what: str, *, holds: bool, seconds: float) -> bool:
        now = time.monotonic()
        if not holds:
            since.pop(what, None)
            return False
        return now - since.setdefault(what, now) >= seconds

    while not reading.done():
        listener.glance()
        now = time.monotonic()
        if lasted("gone", holds=process.returncode is not None, seconds=GRACE):
            break
        if lasted("ended", holds=transcript.ended, seconds=LEAVE) or transcript.hopeless:
            break
        if lasted("full", holds=transcript.context.is_due and not transcript.ended, seconds=GRACE):
            return "", True  # what it did is in its worktree
        if now >= deadline and not transcript.ended:
            return f"did not answer within {task.seconds:g} s", False
        if 0 < task.idle_seconds <= now - pulse.last and not transcript.ended:
            return f"was silent for {task.idle_seconds:g} s", False
        await asyncio.wait([reading], timeout=TICK)
    return "", False


async def _listen(stream: asyncio.StreamReader, listener: Listener, pulse: _Pulse) -> None:
    async for line in lines.read(stream, pulse.beat):
        if listener.take(line):
            pulse.messages += 1
        else:
            pulse.noise += 1
        if pulse.noise > lines.NOISE_LIMIT:
            raise lines.Unreadable("does not print what it should: too many lines that are no messages")
        if pulse.messages > lines.MESSAGE_LIMIT:
            raise lines.Unreadable(f"printed more than {lines.MESSAGE_LIMIT} messages")
        if pulse.messages % TURN == 0:
            await asyncio.sleep(0)  # many small messages must not keep everybody else from their turn


def _fault(reading: asyncio.Future[None]) -> str:
    """What kept us from listening to the end."""
    if not reading.done() or reading.cancelled() or not (error := reading.exception()):
        return ""
    if isinstance(error, lines.Unreadable):
        return str(error)
    raise error


async def _feed(process: asyncio.subprocess.Process, prompt: str) -> None:
    """Give it the prompt; one that does not read it is no concern of ours."""
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError):
        process.stdin.write(prompt.encode("utf-8", "replace"))
        await process.stdin.drain()
    process.stdin.close()


def _last_words(words: bytearray) -> str:
    """The last lines that say something."""
    told = [line for line in words.decode("utf-8", "replace").splitlines() if line.strip()]
    return "\n".join([line for line in told if not BACKTRACE.match(line)][-3:])
