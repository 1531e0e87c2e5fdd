"""
Remembers what was started, so that what a crash left behind can be found and ended.

Every program carries a cookie that whatever it starts inherits. A record with the cookie is written before
a program is started and removed once nothing of it is left. A record whose writer has died
tells of a program that was never ended.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from functools import cache
from pathlib import Path

import msgspec

from planforge.workspace.launch import trees
from planforge.workspace.sandbox import RECORDS

BOOT = Path("/proc/sys/kernel/random/boot_id")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A program that is to be ended by whoever started it."""

    cookie: str
    program: str
    owner: tuple[int, int]
    """The process that started it."""
    boot: str
    """In which life of the machine; ids of processes mean nothing in another one."""
    scratch: str = ""
    """A directory that was made for it."""


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of a program that a crash had left."""

    program: str
    processes: int


def make() -> str:
    """A new cookie."""
    return secrets.token_hex(16)


def record(directory: Path, cookie: str, program: str, scratch: Path | None) -> Path | None:
    """Write down that a program is about to be started; None where that cannot be done."""
    own = trees.identity(os.getpid())
    if own is None:
        return None
    noted = Record(
        cookie=cookie, program=program, owner=own, boot=_boot(), scratch=str(scratch) if scratch else ""
    )
    path = directory / cookie
    directory.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(noted))
    return path


def forget(path: Path | None, scratch: Path | None) -> None:
    """Nothing is left of a program: remove its record, and what was made for it."""
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)
    if path is not None:
        path.unlink(missing_ok=True)


def sweep(state: Path) -> tuple[Swept, ...]:
    """End what programs have left that were started by processes which died; what there was of it."""
    found = []
    for path in sorted((state / RECORDS).glob("[0-9a-f]*")):
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            noted = msgspec.json.decode(path.read_bytes(), type=Record)
            if noted.cookie == path.name and not _is_cared_for(noted):
                found.append(_end(noted, path))
    return tuple(swept for swept in found if swept.processes)


def _end(noted: Record, path: Path) -> Swept:
    alone = noted.boot != _boot()
    count = 0 if alone else len(trees.bearing(noted.cookie))
    for _ in trees.ending(lambda: set() if alone else trees.bearing(noted.cookie)):
        time.sleep(trees.PAUSE)
    scratch = Path(noted.scratch) if noted.scratch else None
    forget(path, scratch if scratch and scratch.name.startswith("planforge-") else None)
    return Swept(program=noted.program, processes=count)


def _is_cared_for(noted: Record) -> bool:
    """Whether whoever started the program is still there to end it."""
    return noted.boot == _boot() and trees.runs(noted.owner)


@cache
def _boot() -> str:
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""
