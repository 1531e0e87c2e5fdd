"""
Locks of git's that a process left behind, and whether that process is provably dead.

Git marks what it changes with a file `….lock` and removes it when it is done. A git
that was killed does not, and every later one fails. That nobody has the file open
proves nothing: `git commit` closes it while the person writes the message. So a lock
counts as left behind only if no process has it open, no git of its user that is older
than it works on this repository, and it is from before the machine was last started, or
it is one of Planforge's own while the caller keeps all other Planforges out. Everything
else is for the person to judge, with what we know.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from planforge.workspace.git import Git, checkouts

PROCESSES = Path("/proc")
OURS = ("refs/planforge/", "refs/heads/planforge/")
OWN_FILES = "planforge-"
"""How files begin in `.git` that Planforge locks in its own way, which die with their holder."""
SHARED_DISKS = (
    *("nfs", "cifs", "smb", "9p", "afs", "ceph"),
    *("fuse.sshfs", "glusterfs", "lustre", "ocfs2", "gfs2"),
)
MARGIN = 2.0
"""Seconds by which the time of a file and the start of a process may be off."""


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """A lock that is there now."""

    path: str
    name: str
    """What of the repository it locks, such as `index` or `refs/heads/main`."""
    seconds: float
    """How old it is."""
    dead: bool
    """Whether the process that made it is provably not there any more."""
    why: str
    mark: tuple[int, int]
    """Which file this is, so that another one of the same name is not taken for it."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process that is alive."""

    pid: int
    user: int
    name: str
    started: float
    files: frozenset[tuple[int, int]]
    here: bool
    """Whether it may be at work on this repository."""


def find(git: Git, *, alone: bool = False) -> tuple[Lock, ...]:
    """
    The locks in a repository.

    `alone`: the caller holds what every other Planforge would need to change refs and worktrees of ours.
    """
    files = sorted(_files(git.git_dir))
    if not files:
        return ()
    processes = tuple(_processes(git)) if PROCESSES.is_dir() else None
    return tuple(lock for file in files if (lock := _judged(git, file, processes, alone)))


def remove(git: Git, *, alone: bool = False) -> tuple[Lock, ...]:
    """Remove the locks whose owners are provably dead, and say which these were."""
    removed = []
    for lock in find(git, alone=alone):
        with suppress(OSError):
            if lock.dead and _mark(Path(lock.path).lstat()) == lock.mark:
                Path(lock.path).unlink()
                removed.append(lock)
    return tuple(removed)


def _files(git_dir: Path) -> Iterator[Path]:
    yield from (path for path in git_dir.glob("*.lock") if not path.name.startswith(OWN_FILES))
    for place in ("worktrees/*/*.lock", "info/*.lock", "objects/info/*.lock", "objects/pack/*.lock"):
        yield from git_dir.glob(place)
    for parent, _, names in os.walk(git_dir / "refs"):
        yield from (Path(parent, name) for name in names if name.endswith(".lock"))


def _judged(git: Git, file: Path, processes: Sequence[Process] | None, alone: bool) -> Lock | None:
    try:
        found = file.lstat()
    except FileNotFoundError:
        return None
    name = str(file.relative_to(git.git_dir)).removesuffix(".lock")
    dead, why = _verdict(name, found, processes, alone and _is_ours(file, name))
    if dead and _is_shared(found.st_dev):
        dead, why = False, "another machine may have made it, on a disk that is shared"
    return Lock(
        path=str(file),
        name=name,
        seconds=max(0.0, time.time() - found.st_mtime),
        dead=dead,
        why=why,
        mark=_mark(found),
    )


def _verdict(
    name: str, found: os.stat_result, processes: Sequence[Process] | None, ours: bool
) -> tuple[bool, str]:
    if processes is None:
        return False, "who has it open cannot be told on this system"
    for process in processes:
        if _mark(found) in process.files:
            return False, f"process {process.pid} (`{process.name}`) has it open"
    for process in processes:
        older = process.started <= found.st_mtime + MARGIN
        if process.here and older and process.user == found.st_uid:
            return False, f"process {process.pid} (`{process.name}`) may be at work on it"
    if found.st_mtime < _booted() - MARGIN:
        return True, "it is from before this machine was started"
    if ours:
        return True, "it is Planforge's own, and no other Planforge is at work"
    return False, f"no process has `{name}.lock` open, but a program that is no git may have made it"


def _is_ours(file: Path, name: str) -> bool:
    if name.startswith("worktrees/"):
        with suppress(OSError):
            return b"/.planforge/worktrees/" in (file.parent / "gitdir").read_bytes()
    return name.startswith(OURS)


def _processes(git: Git) -> Iterator[Process]:
    ticks, booted = os.sysconf("SC_CLK_TCK"), _booted()
    for entry in PROCESSES.glob("[0-9]*"):
        with suppress(OSError, ValueError):
            name, _, rest = (entry / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
            fields = rest.split()
            if fields[0] not in "ZX":
                yield Process(
                    pid=int(entry.name),
                    user=entry.stat().st_uid,
                    name=name,
                    started=booted + int(fields[19]) / ticks,
                    files=frozenset(_open_files(entry)),
                    here=name.startswith("git") and _may_be_here(git, entry),
                )


def _open_files(entry: Path) -> Iterator[tuple[int, int]]:
    with suppress(OSError):  # of another user, or gone
        for handle in os.scandir(entry / "fd"):
            with suppress(OSError):
                yield _mark(handle.stat())


def _may_be_here(git: Git, entry: Path) -> bool:
    """Whether a git works on this repository, or cannot be seen not to."""
    try:
        cwd = (entry / "cwd").readlink()
        told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
    except OSError:
        return True
    real = git.git_dir.resolve()
    places = (real, git.top.resolve(), *(place for _, place in checkouts.entries(git)))
    inside = any(cwd == place or place in cwd.parents for place in places)
    return inside or any(os.fsencode(place) in told for place in (git.git_dir, real))


def _is_shared(device: int) -> bool:
    """Whether a device is a disk that other machines write to as well."""
    number = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError):
        for line in (PROCESSES / "self" / "mountinfo").read_text(errors="replace").splitlines():
            words = line.split()
            if words[2] == number and words[words.index("-") + 1].startswith(SHARED_DISKS):
                return True
    return False


def _booted() -> float:
    for line in (PROCESSES / "stat").read_text().splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0


def _mark(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
