"""
One command run in the worktree, and nothing of it left.

A command has a session of its own and a mark in its environment. When it ends, is cancelled or has had its
time, everything is killed that is in its session, bears its mark or descends from something that does;
whoever has left all of these comes back to us, because we are made the parent of orphans.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import secrets
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

KEPT = 15_000
"""How many bytes are kept of the beginning of what a command says, and how many of its end."""

MARK = "PLANFORGE_COMMAND"
"""The variable that a command and all that it starts are known by."""

ROUNDS = 50
"""How often what a command left is looked for; it may be starting more meanwhile."""

LINUX = sys.platform == "linux"
_PR_SET_CHILD_SUBREAPER = 36


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended and what it said."""

    code: int
    output: str
    timed_out: bool = False


def adopt_orphans() -> None:
    """Become the parent of every process whose own parents, started by us, have ended (on Linux)."""
    if LINUX:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


async def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], seconds: float) -> Ended:
    """Run a command to its end, or until it has had its time; both streams are one."""
    mark = secrets.token_hex(8)
    # A pipe of our own: one of asyncio's would have us wait for everything that holds its other end.
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0) as stream:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env={**env, MARK: mark},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        kept = Kept()
        reading = asyncio.ensure_future(_read(stream, kept))
        timed_out = False
        try:
            await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            timed_out = True
        finally:
            _end_all(process.pid, mark)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
            await asyncio.wait([reading], timeout=1.0)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
    code = process.returncode if process.returncode is not None else -1
    return Ended(code=code, output=kept.text, timed_out=timed_out)


class Kept:
    """The beginning and the end of a stream."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0

    def add(self, data: bytes) -> None:
        """Take in some more of it."""
        self._size += len(data)
        room = KEPT - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[:-KEPT]

    @property
    def text(self) -> str:
        """What was kept, and how much was left out between."""
        left_out = self._size - len(self._head) - len(self._tail)
        between = f"\n… {left_out} bytes left out …\n".encode() if left_out else b""
        return (
            bytes(self._head + between + self._tail)
            .decode(errors="replace")
            .replace("\0", "\N{REPLACEMENT CHARACTER}")
        )


async def _read(stream: IO[bytes], kept: Kept) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stream)
    try:
        while data := await reader.read(65536):
            kept.add(data)
    finally:
        transport.close()


def _end_all(session: int, mark: str) -> None:
    """Kill every process of a command, until none is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    for _ in range(ROUNDS):
        found = _members(session, mark)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            if pid != session:  # the command itself is waited for by whoever started it
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


def _members(session: int, mark: str) -> set[int]:
    """The processes of a command that still live, as far as `/proc` tells."""
    wanted = f"{MARK}={mark}".encode()
    parents: dict[int, int] = {}
    members: set[int] = set()
    for pid in _processes():
        if (known := _status(pid)) is None:
            continue
        state, parent, its_session = known
        parents[pid] = parent
        if state not in "ZX" and (its_session == session or wanted in _environment(pid)):
            members.add(pid)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in members and pid not in members}
        members |= more
        grown = bool(more)
    return members - {pid for pid in members if (known := _status(pid)) is None or known[0] in "ZX"}


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()] if LINUX else []


def _status(pid: int) -> tuple[str, int, int] | None:
    """A process's state, parent and session."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[0].decode(), int(fields[1]), int(fields[3])


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
