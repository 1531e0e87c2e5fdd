"""
Runs a program that is not trusted to end, to be quiet, to be alone or to keep to its place.

Output, time, memory and processes are bounded. When the program ends, is cancelled or outlives its
time, everything that it started goes with it, into whatever session or to whatever parent that
went. With a policy it is confined as firmly as this machine can: see `sandbox`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import CannotPerform
from planforge.workspace import sandbox
from planforge.workspace.launch import trees
from planforge.workspace.processes import cookies, limits
from planforge.workspace.sandbox import Level, Policy

OUTPUT_LIMIT = 4 * 1024 * 1024
"""How many bytes of output are kept: the first half and the last half of this."""

LINE_LIMIT = 2000
"""How many characters of one line are shown to anybody."""

PASSED_ON = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")

GRACE = 1.0
"""How long output is waited for, in seconds, once a program ended and something it left holds its streams."""

GLANCE = 0.25
"""How often it is counted what a program uses, in seconds."""

SHARE = 20
"""Counting takes at most one part in this many of the time."""

SIGNALLED = 128
"""What bubblewrap adds to the number of the signal that ended a program, to make an exit code of it."""

ESCAPES = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?|\[[0-?]*[ -/]*[@-~]?|[@-Z\\-_]?)")
UNSEEN = re.compile(r"[^\S\n\t]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended and what it printed."""

    exit_code: int | None
    """None where it was ended by us; negative if it was killed by that signal."""
    output: bytes
    seconds: float
    sandbox: str = Level.NONE.value
    """The level at which it was confined."""
    why: str = ""
    """Why we ended it; empty if it ended by itself."""


class Care:
    """What we must know of a program to end it with all that it started."""

    def __init__(self, policy: Policy | None) -> None:
        self.level = Level.NONE
        self.policy = policy
        self.cookie = cookies.make()
        self.scratch: Path | None = None
        self.record: Path | None = None
        self.why = ""
        self.head: trees.Seen | None = None
        """The process that we started: the program's own, or the one it is confined by."""
        self.first: trees.Seen | None = None
        """The first process of its namespace, if it has one."""
        self.left = 0
        """How many of its processes were there when last looked for, and had to be killed."""
        self.watch: asyncio.Task[None] | None = None
        self.unwanted = False
        """Whether whoever wanted it was cancelled while it was started."""
        self.said = b""
        self.spoke = asyncio.Event()
        self._hears: int | None = None

    def listen(self, hears: int) -> None:
        """Take in what the process that confines the program says of it."""
        os.set_blocking(hears, False)
        self._hears = hears
        asyncio.get_running_loop().add_reader(hears, self.hear)

    def hear(self) -> None:
        """Take in what was said since."""
        if self._hears is None:
            return
        try:
            more = os.read(self._hears, 65536)
        except BlockingIOError:
            return
        self.said += more
        self.spoke.set()
        if self.level is Level.BUBBLEWRAP and self.first is None and b"\n" in self.said:
            self.first = _first(self.said)
        if not more:
            self.stop_listening()

    def stop_listening(self) -> None:
        """Nothing more is said, or of interest."""
        if self._hears is not None:
            asyncio.get_running_loop().remove_reader(self._hears)
            os.close(self._hears)
            self._hears = None

    def members(self) -> set[trees.Seen]:
        """Everything that belongs to the program and runs, except the process that we started."""
        if self.level is Level.NONE:
            return set()
        if self.level is Level.BUBBLEWRAP and not any(
            top and trees.runs(top) for top in (self.head, self.first)
        ):
            return set()  # the kernel has ended all others with these
        rows = trees.table()
        found = set()
        for top in (self.head, self.first):
            if top is not None and top[0] in rows and rows[top[0]].started == top[1]:
                found |= trees.descendants(top[0], rows) | ({top} if rows[top[0]].running else set())
        if self.level is not Level.BUBBLEWRAP:
            found |= trees.bearing(self.cookie)
        return found - {self.head} if self.head else found


def _first(said: bytes) -> trees.Seen | None:
    """The first process of a namespace, if it is there still."""
    with contextlib.suppress(ValueError, KeyError, OSError):
        told = json.loads(said.partition(b"\n")[0])
        found = trees.identity(told["child-pid"])
        own = Path(f"/proc/{told['child-pid']}/ns/pid_for_children").readlink().name
        if own == f"pid:[{told['pid-namespace']}]":
            return found
    return None


_cared_for: WeakKeyDictionary[asyncio.subprocess.Process, Care] = WeakKeyDictionary()


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a program gets to see of our environment: a short list, and what it is given."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return kept | dict(extra or {})


# Starting


async def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    extra: Mapping[str, str],
    stdin: int,
    stderr: int,
    limit: int = 65536,
    policy: Policy | None = None,
    level: Level | None = None,
) -> asyncio.subprocess.Process:
    """
    Start `argv`, confined by `policy` at `level`, or at the firmest one that works.

    Without a policy it is only seen to that nothing of it is left behind. Whoever starts a program must
    `end` it, also if it has ended by itself.
    """
    if not argv:
        raise CannotPerform("cannot start a command that is empty")
    care = Care(policy)
    process = await _spawned(argv, care, level, cwd, environment(extra), stdin, stderr, limit)
    _cared_for[process] = care
    try:
        if care.unwanted:
            raise asyncio.CancelledError
        await _require_started(argv[0], care)
    except BaseException:
        await end(process)
        raise
    if policy is not None and care.level is not Level.NONE:
        care.watch = asyncio.create_task(_watch(process, care, policy))
    return process


def _settled(policy: Policy | None, level: Level | None) -> Level:
    """The level to start at, which works."""
    if policy is None:
        found = sandbox.tried(Level.PROCESSES).works and level is not Level.NONE
        return Level.PROCESSES if found else Level.NONE
    level = level or sandbox.strongest()
    found_out = sandbox.tried(level)
    if not found_out.works:
        raise CannotPerform(
            f"sandbox level `{level}` does not work here: {found_out.why}", Advice("run {}", Action("doctor"))
        )
    return level


async def _spawned(
    argv: Sequence[str],
    care: Care,
    level: Level | None,
    cwd: Path,
    env: dict[str, str],
    stdin: int,
    stderr: int,
    limit: int,
) -> asyncio.subprocess.Process:
    """The process that becomes the program, or starts it."""
    env |= {trees.COOKIE: care.cookie}
    hears, tells = os.pipe()
    try:
        confined = await asyncio.to_thread(_confined, argv, care, level, cwd, env, tells)
        starting = asyncio.create_subprocess_exec(
            *confined.argv,
            cwd=cwd,
            env=confined.env,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=limit,
            start_new_session=True,
            pass_fds=(tells,),
        )
        process = await _let_start(asyncio.ensure_future(starting), care)
    except BaseException as error:
        os.close(hears)
        cookies.forget(care.record, care.scratch)
        if isinstance(error, OSError):
            raise CannotPerform(f"cannot start `{argv[0]}`: {error.strerror or error}") from error
        if isinstance(error, ValueError):  # a null byte
            raise CannotPerform(f"cannot start `{argv[0]!r}`: {error}") from error
        raise
    finally:
        os.close(tells)
    care.head = trees.identity(process.pid)
    care.listen(hears)
    return process


async def _let_start(
    starting: asyncio.Future[asyncio.subprocess.Process], care: Care
) -> asyncio.subprocess.Process:
    """Have it started, wanted or not: asyncio waits for ever for a process whose start was cancelled."""
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        care.unwanted = True
        return await starting


def _confined(
    argv: Sequence[str], care: Care, level: Level | None, cwd: Path, env: dict[str, str], tells: int
) -> sandbox.Confined:
    """The command to start, and a record of it."""
    care.level = level = _settled(care.policy, level)
    policy = care.policy or Policy()
    within: Sequence[str] = ()
    if level is Level.BUBBLEWRAP:
        _require_program(argv[0], cwd, env)
        # Bubblewrap ties itself to us, then tells us so, and only then lets anything run: if we are gone by
        # then there is nobody to tell, of which it dies.
        within = limits.imposing(policy)
    kept = limits.told(care.policy)
    confined = sandbox.confine(argv, cwd=cwd, env=env, policy=policy, level=level, status=tells, limits=kept)
    care.scratch = confined.scratch
    if policy.records is not None:
        care.record = cookies.record(policy.records, care.cookie, argv[0], care.scratch)
    return msgspec.structs.replace(confined, argv=(*within, *confined.argv))


def _require_program(name: str, cwd: Path, env: Mapping[str, str]) -> None:
    """Say what starting a program would say that bubblewrap has to start."""
    if shutil.which(cwd / name if "/" in name else name, path=env.get("PATH")) is None:
        there = "/" in name and os.access(cwd / name, os.F_OK)
        raise PermissionError(13, os.strerror(13)) if there else FileNotFoundError(2, os.strerror(2))


async def _require_started(name: str, care: Care) -> None:
    if care.level is not Level.BUBBLEWRAP:
        await care.spoke.wait()
        if care.said.startswith(b"error "):
            why = care.said.removeprefix(b"error ").decode("utf-8", "replace")
            raise CannotPerform(f"cannot start `{name}`: {why}")


# Watching and ending


def why_ended(process: asyncio.subprocess.Process) -> str:
    """Why we ended a program that used too much; empty if we did not."""
    care = _cared_for.get(process)
    return care.why if care else ""


async def _watch(process: asyncio.subprocess.Process, care: Care, policy: Policy) -> None:
    """End the program when it uses more than it may."""
    pause = GLANCE
    while process.returncode is None:
        await asyncio.sleep(pause)
        began = time.monotonic()
        care.why = await asyncio.to_thread(limits.exceeded, process.pid, policy)
        if care.why:
            await _end_all(process, care)
            return
        pause = max(GLANCE, SHARE * (time.monotonic() - began))


async def _end_all(process: asyncio.subprocess.Process, care: Care) -> None:
    care.left = 0
    passes = trees.ending(care.members)
    while left := await asyncio.to_thread(next, passes, 0):  # with many processes, looking takes a while
        care.left = left
        await asyncio.sleep(trees.PAUSE)
    # Whatever confined it ends by itself now, and says how the program had ended if that was before us.
    if care.level is not Level.NONE:
        await exited(process, GRACE)
    _kill_group(process)


async def end(process: asyncio.subprocess.Process) -> None:
    """End a program that we started, and everything that it did."""
    care = _cared_for.get(process)
    if care is not None:
        if care.watch is not None:
            care.watch.cancel()
            await asyncio.gather(care.watch, return_exceptions=True)
        care.hear()
        await _end_all(process, care)
    _kill_group(process)
    # Before the wait, which would last as long as anything that left the group holds a stream.
    for descriptor in range(3):
        pipe = process._transport.get_pipe_transport(descriptor)  # type: ignore[attr-defined]
        if pipe is not None and not pipe.is_closing():
            pipe.abort() if isinstance(pipe, asyncio.WriteTransport) else pipe.close()
    await process.wait()
    if care is not None:
        care.hear()
        care.stop_listening()
        if not care.left or not care.members():  # what cannot be killed is left to the next sweep
            if care.scratch is None:
                cookies.forget(care.record, None)
            else:
                await asyncio.to_thread(cookies.forget, care.record, care.scratch)


def _kill_group(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


# Running to the end


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    seconds: float,
    extra: Mapping[str, str] | None = None,
    policy: Policy | None = None,
    level: Level | None = None,
) -> Ended:
    """Run `argv` in `cwd` to its end, or to ours after `seconds`."""
    started = time.monotonic()
    streams = {"stdin": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.STDOUT}
    process = await start(argv, cwd=cwd, extra=extra or {}, policy=policy, level=level, **streams)
    kept = Kept()
    exit_code, why = None, ""
    try:
        async with asyncio.timeout(seconds):
            exit_code, why = await _finish(process, kept)
    except TimeoutError:
        why = f"it did not end within {seconds:g} s"
        kept.add(f"\n[ended after {seconds:g} s]\n".encode())
    finally:
        await end(process)
    care = _cared_for[process]
    if exit_code is not None:
        exit_code = _meant(argv[0], exit_code, care, kept)
    taken = time.monotonic() - started
    return Ended(exit_code=exit_code, output=kept.content(), seconds=taken, sandbox=care.level.value, why=why)


async def _finish(process: asyncio.subprocess.Process, kept: Kept) -> tuple[int | None, str]:
    """Collect the output until the program ends; what it left running ends then, too."""
    assert process.stdout is not None
    reading = asyncio.ensure_future(_drain(process.stdout, kept))
    ended = asyncio.ensure_future(exited(process))
    try:
        await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            await process.wait()  # which nothing holds up any more
        else:
            await _end_all(process, _cared_for[process])
            await asyncio.wait([reading], timeout=GRACE)
        if why := why_ended(process):
            kept.add(f"\n[ended: {why}]\n".encode())
            return None, why
        return process.returncode, ""
    finally:
        for task in (reading, ended):
            task.cancel()
        await asyncio.gather(reading, ended, return_exceptions=True)


async def _drain(stream: asyncio.StreamReader, kept: Kept) -> None:
    while chunk := await stream.read(65536):
        kept.add(chunk)


async def exited(process: asyncio.subprocess.Process, seconds: float = math.inf) -> None:
    """Wait until the program itself has ended, whoever holds its streams, or so many seconds are over."""
    # Not `asyncio.timeout`, whose end an early Python 3.11 takes for the cancellation of a cancelled task.
    until, pause = time.monotonic() + seconds, 0.001
    while (
        process.returncode is None and time.monotonic() < until
    ):  # `process.wait` waits for the streams, too
        await asyncio.sleep(pause)
        pause = min(0.05, pause * 1.5)


def _meant(name: str, exit_code: int, care: Care, kept: Kept) -> int:
    """The exit code of the program, which bubblewrap tells in its own way."""
    if care.level is not Level.BUBBLEWRAP:
        return exit_code
    if exit_code == 1 and b'"exit-code"' not in care.said:
        lines = plain(kept.content()).strip().splitlines() or ["it ended at once"]
        raise CannotPerform(f"cannot start `{name}` in the sandbox: {lines[-1].removeprefix('bwrap: ')}")
    signalled = exit_code - SIGNALLED
    return -signalled if signalled in set(map(int, signal.valid_signals())) else exit_code


# Output


class Kept:
    """The beginning and the end of a stream of bytes, within a limit."""

    def __init__(self, limit: int = OUTPUT_LIMIT) -> None:
        self._half = limit // 2
        self._first = bytearray()
        self._last = bytearray()
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        """Take in what came next."""
        room = self._half - len(self._first)
        self._first += chunk[:room]
        self._last += chunk[room:] if room < len(chunk) else b""
        excess = len(self._last) - self._half
        if excess > 0:
            self._dropped += excess
            del self._last[:excess]

    def content(self) -> bytes:
        """What was kept, with a line in the middle if something was not."""
        gap = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return bytes(self._first) + gap + bytes(self._last)


def plain(output: bytes, limit: int = LINE_LIMIT) -> str:
    """Output as it may be shown or sent: as text, without what moves a cursor, each line within a limit."""
    text = output.decode("utf-8", "replace").replace("\r\n", "\n")
    text = UNSEEN.sub(" ", ESCAPES.sub("", text))
    return "\n".join(
        line if len(line) <= limit else f"{line[:limit]} [{len(line) - limit} characters left out]"
        for line in text.split("\n")
    )
