"""
One process at a time, told apart from a process that died.

A lock is `flock` on a file: the operating system lets go of it when its holder
dies, `kill -9` included, so a lock is never stale. The file says who holds it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planforge.errors import LedgerUnwritable, Locked


@contextmanager
def held(path: Path, purpose: str, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock at `path`, or raise `Locked` naming who does (or wait for them)."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise LedgerUnwritable(f"cannot lock `{path}`: {error.strerror}") from error
    try:
        if wait:
            fcntl.flock(handle, fcntl.LOCK_EX)
        elif not _taken(handle):
            raise Locked(f"{purpose} is under way in {_holder(handle)}")
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether some process holds the lock at `path` now."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who look must not see each other
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    # A few tries, because `is_held` takes the lock for a moment to look.
    for _ in range(5):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def _holder(handle: int) -> str:
    return os.pread(handle, 100, 0).decode("utf-8", "replace") or "another process"
