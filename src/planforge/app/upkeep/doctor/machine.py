"""Installed programs and free disk space."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw

from planforge.actions import Action
from planforge.app.upkeep.doctor.findings import FAIL, OK, WARN, Finding, mebibytes
from planforge.workspace.git import MINIMUM, version
from planforge.workspace.sandbox import Level, explain

FREE_BYTES = 500 * 1024 * 1024
LEAST_BYTES = 50 * 1024 * 1024
FREE_FILES = 10_000

INSTALL = "install bubblewrap, such as `apt install bubblewrap`"
ELSEWHERE = (
    "work on Linux, such as in a container, or set `unconfined = true` under `[sandbox]` in planforge.toml"
)


def python(start: Path) -> Iterator[Finding]:
    """The Python that runs Planforge."""
    del start
    yield Finding(id="python", status=OK, evidence=sys.version.split()[0])


def sqlite(start: Path) -> Iterator[Finding]:
    """The SQLite that keeps the ledger; earlier ones can corrupt a file that several processes write."""
    del start
    found = apsw.sqlite_lib_version()
    safe = tuple(int(part) for part in found.split(".")) >= (3, 51, 3)
    fix = "" if safe else "pip install --upgrade apsw"
    evidence = f"{found}{'' if safe else ' can corrupt a shared ledger'}"
    yield Finding(id="sqlite", status=OK if safe else FAIL, evidence=evidence, fix=fix)


def git(start: Path) -> Iterator[Finding]:
    """The git on PATH."""
    del start
    found = version()
    enough = found >= MINIMUM
    evidence = ".".join(str(part) for part in found)
    needed = ".".join(str(part) for part in MINIMUM)
    fix = "" if enough else f"install git {needed} or later"
    yield Finding(id="git", status=OK if enough else FAIL, evidence=evidence, fix=fix)


def sandbox(start: Path) -> Iterator[Finding]:
    """The strongest sandbox that works here, found by trying."""
    del start
    tried = explain()
    best = next(item for item in tried if item.works)
    above = [f"{item.level} does not work: {item.why}" for item in tried[: tried.index(best)]]
    status = {Level.PROCESSES: WARN, Level.NONE: FAIL}.get(best.level, OK)
    yield Finding(
        id="sandbox",
        status=status,
        evidence="; ".join([f"{best.level}: {best.why}", *above]),
        fix="" if status == OK else INSTALL if sys.platform == "linux" else ELSEWHERE,
    )


def disk(start: Path) -> Iterator[Finding]:
    """The free space for worktrees and, if on another disk, for temporary files."""
    places = {"disk": start, "disk for temporary files": Path(tempfile.gettempdir())}
    seen: set[int] = set()
    for name, place in places.items():
        device = place.stat().st_dev
        if device in seen:
            continue
        seen.add(device)
        room = os.statvfs(place)
        free = room.f_bavail * room.f_frsize
        few = bool(room.f_files) and room.f_favail < FREE_FILES
        status = FAIL if free < LEAST_BYTES else WARN if few or free < FREE_BYTES else OK
        evidence = f"{mebibytes(free)} free at `{place}`" + (f", for {room.f_favail} files" if few else "")
        yield Finding(
            id=name, status=status, evidence=evidence, fix="" if status == OK else Action("cleanup")
        )
