"""
Processes that outlive what started them.

Whoever calls `adopt` inherits every orphan among its descendants, also one that left its session and forgot
its environment, so nothing that a case started can get away unseen. What names the case's directory in its
environment, its command line or as its working directory is found as well, should it have got away after
all.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from planforge.errors import PlanforgeError

PROC = Path("/proc")
SUBREAPER = 36
GRACE_SECONDS = 1.0
"""How long a process may take to be gone after whoever started it has ended."""


def adopt() -> None:
    """Inherit the orphans among all that this process starts."""
    if not (PROC / "self" / "stat").exists():
        raise PlanforgeError("processes can only be looked for where there is `/proc`", hint="use Linux")
    if ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0):
        raise PlanforgeError("the system does not let this process look after orphans")


def left(directory: Path) -> dict[int, str]:
    """What is still there of a case, with command lines, after a moment in which it may end."""
    deadline = time.monotonic() + GRACE_SECONDS
    while (found := _found(directory)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def end(directory: Path) -> None:
    """Kill all that is left of a case, and what that starts meanwhile."""
    for _ in range(100):
        found = _found(directory)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        if not found:
            return
        time.sleep(0.02)


def end_tree(pid: int) -> None:
    """Kill a process and all that descends from it."""
    parents = {number: process.parent for number, process in _processes()}
    for each in (pid, *_descendants(pid, parents)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)


def _found(directory: Path) -> dict[int, str]:
    _reap()
    all_ = dict(_processes())
    parents = {pid: process.parent for pid, process in all_.items()}
    own, since = _ancestors(os.getpid(), parents), all_[os.getpid()].began
    named = {
        pid
        for pid, process in all_.items()
        if process.began >= since and pid not in own and _names(pid, directory)
    }
    return {pid: _command(pid) for pid in _descendants(os.getpid(), parents) | named if _lives(pid)}


def _ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    found = {pid}
    while (pid := parents.get(pid, 0)) and pid not in found:
        found.add(pid)
    return found


def _reap() -> None:
    """Take the ends of orphans; whatever somebody here waits for has been waited for by now."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class _Process(NamedTuple):
    parent: int
    began: int
    """In ticks since the machine did; what was there before us has nothing to do with a case."""


def _processes() -> Iterator[tuple[int, _Process]]:
    for entry in os.scandir(PROC):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), _Process(int(words[1]), int(words[19]))


def _descendants(pid: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    fresh = {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def _names(pid: int, directory: Path) -> bool:
    """Whether a process has to do with a directory."""
    text = os.fsencode(directory)
    with contextlib.suppress(OSError):
        if (PROC / str(pid) / "cwd").readlink().is_relative_to(directory):
            return True
    for name in ("cmdline", "environ"):
        with contextlib.suppress(OSError):
            if text in (PROC / str(pid) / name).read_bytes():
                return True
    return False


def _lives(pid: int) -> bool:
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return False


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        return " ".join(" ".join(os.fsdecode(word) for word in words).split())[:200]
    return f"process {pid}"
