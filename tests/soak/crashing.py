"""
Does something in a process of its own, and kills that process in the middle.

The process counts what it asks of the system: programs it starts, files and
directories it makes, renames or removes. At the chosen one it is killed, with
SIGKILL: just before it happens, or while the git that was started is at work,
together with that git or leaving it an orphan.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from planforge.errors import PlanforgeError

BOUNDARIES = frozenset(
    {
        "os.chmod",
        "os.link",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.symlink",
        "os.truncate",
        "shutil.rmtree",
        "subprocess.Popen",
    }
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Manner(Enum):
    """How a process dies."""

    BEFORE = "before"
    WITH_GIT = "with git"
    WITHOUT_GIT = "without git"


class Crash(NamedTuple):
    """When and how a process dies."""

    at: int
    manner: Manner = Manner.BEFORE
    seconds: float = 0.0


class Outcome(NamedTuple):
    """How it went: `done`, `killed`, `refused` with what was said, or `broken` with a traceback."""

    word: str
    said: str = ""


def perform(action: Callable[[], object], crash: Crash | None, notes: Path) -> Outcome:
    """Do `action` in a child and say how that ended."""
    notes.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _be_the_child(action, crash, notes)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Outcome("killed")
    said = notes.read_text(errors="replace") if notes.exists() else ""
    return Outcome({0: "done", 2: "refused"}.get(os.WEXITSTATUS(status), "broken"), said)


def _be_the_child(action: Callable[[], object], crash: Crash | None, notes: Path) -> None:
    code = 0
    try:
        os.setpgid(0, 0)
        if crash is not None:
            sys.addaudithook(_Counter(crash).hear)
        action()
    except PlanforgeError as error:
        code = 2
        notes.write_text(f"{type(error).__name__}: {error.message}")
    except BaseException:  # noqa: BLE001  (it is told to the parent)
        code = 3
        notes.write_text(traceback.format_exc())
    finally:
        os._exit(code)


class _Counter:
    def __init__(self, crash: Crash) -> None:
        self._left = crash.at
        self._crash = crash

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not is_boundary(event, arguments):
            return
        self._left -= 1
        if self._left:
            return
        if event != "subprocess.Popen" or self._crash.manner is Manner.BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)
        target = os.getpid()
        if os.fork() == 0:
            os.setpgid(0, 0)  # so as not to be killed along
            time.sleep(self._crash.seconds)
            if self._crash.manner is Manner.WITH_GIT:
                os.killpg(target, signal.SIGKILL)
            else:
                os.kill(target, signal.SIGKILL)
            os._exit(0)


def is_boundary(event: str, arguments: tuple[object, ...]) -> bool:
    """Whether something is asked of the system that a crash can come before."""
    if event == "open":
        flags = arguments[2]
        return isinstance(flags, int) and bool(flags & WRITING)
    return event in BOUNDARIES
