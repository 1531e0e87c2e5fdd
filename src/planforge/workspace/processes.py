"""
Runs a program that is not trusted to end, to be quiet, or to be alone.

Output is bounded, time is bounded, and the program's whole process group goes
when it ends, is cancelled, or outlives its time. On Linux the program also dies
with us, after a `kill -9` of Planforge too; what it started itself may live on.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from planforge.errors import CannotPerform

OUTPUT_LIMIT = 4 * 1024 * 1024
"""How many bytes of output are kept: the first half and the last half of this."""

PASSED_ON = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")

GRACE = 1.0
"""How long output is waited for, in seconds, once a program ended and something it left holds its streams."""

PR_SET_PDEATHSIG = 1


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended and what it printed."""

    exit_code: int | None
    """None where it was ended by us because its time was up."""
    output: bytes
    seconds: float


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a program gets to see of our environment: a short list, and what it is given."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return kept | dict(extra or {})


def dies_with_parent() -> Callable[[], None] | None:
    """Something to run in a new process so that it ends when we do; None where that cannot be had."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def arrange() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before it was watched
            os._exit(1)

    return arrange


async def start(
    argv: Sequence[str], *, cwd: Path, extra: Mapping[str, str], stdin: int, stderr: int, limit: int = 65536
) -> asyncio.subprocess.Process:
    """Start `argv` at the head of its own process group."""
    if not argv:
        raise CannotPerform("cannot start a command that is empty")
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=environment(extra),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=limit,
            start_new_session=True,
            preexec_fn=dies_with_parent(),
        )
    except OSError as error:
        raise CannotPerform(f"cannot start `{argv[0]}`: {error.strerror or error}") from error
    except ValueError as error:  # a null byte
        raise CannotPerform(f"cannot start `{argv[0]!r}`: {error}") from error


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill a process that leads its own group, and everything that stayed in the group."""
    _kill_group(process)
    # Before the wait, which would last as long as anything that left the group holds a stream.
    for descriptor in range(3):
        pipe = process._transport.get_pipe_transport(descriptor)  # type: ignore[attr-defined]
        if pipe is not None and not pipe.is_closing():
            pipe.abort() if isinstance(pipe, asyncio.WriteTransport) else pipe.close()
    await process.wait()


def _kill_group(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def run(
    argv: Sequence[str], *, cwd: Path, seconds: float, extra: Mapping[str, str] | None = None
) -> Ended:
    """Run `argv` in `cwd` to its end, or to ours."""
    started = time.monotonic()
    streams = {"stdin": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.STDOUT}
    process = await start(argv, cwd=cwd, extra=extra or {}, **streams)
    kept = Kept()
    exit_code: int | None = None
    try:
        async with asyncio.timeout(seconds):
            exit_code = await _finish(process, kept)
    except TimeoutError:
        kept.add(f"\n[ended after {seconds:g} s]\n".encode())
    finally:
        await end(process)
    return Ended(exit_code=exit_code, output=kept.content(), seconds=time.monotonic() - started)


async def _finish(process: asyncio.subprocess.Process, kept: Kept) -> int | None:
    """Collect the output until the program ends; what it left running in its group ends then, too."""
    assert process.stdout is not None
    reading = asyncio.ensure_future(_drain(process.stdout, kept))
    ended = asyncio.ensure_future(exited(process))
    try:
        await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            return await process.wait()
        _kill_group(process)
        await asyncio.wait([reading], timeout=GRACE)
        return process.returncode
    finally:
        reading.cancel()
        ended.cancel()
        await asyncio.gather(reading, ended, return_exceptions=True)


async def _drain(stream: asyncio.StreamReader, kept: Kept) -> None:
    while chunk := await stream.read(65536):
        kept.add(chunk)


async def exited(process: asyncio.subprocess.Process) -> None:
    """Wait until the program itself has ended, whoever holds its streams."""
    while process.returncode is None:  # `process.wait` waits for the streams as well
        await asyncio.sleep(0.05)


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
