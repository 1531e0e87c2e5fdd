"""
What nobody but its owner may change in a repository's own directory, kept as it is.

Settings and hooks decide what git runs, `info` and `alternates` what it sees, the
entries of worktrees where it looks: for the length of an attempt, all of them stay
what they were. Objects come and go as they please, and refs are compared by what
they mean, so packing them changes nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from planforge.workspace.git import Git

SINGLE = ("config", "config.worktree", "commondir", "gitdir")
ALTERNATES = ("objects/info/alternates", "objects/info/http-alternates")
WHOLE = ("hooks", "info", "branches", "remotes")
MADE_BY_GIT = ("info/refs",)
"""Written by git itself when it packs."""

BULKY = ("objects", "refs", "logs", "worktrees")
LARGEST = 1024 * 1024
MOST = 20_000

ENTRY = ("gitdir", "commondir", "config.worktree")

Marks = dict[str, str]
"""Paths, and something for each that changes with its content."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What git has on one linked worktree."""

    place: str
    """Where the worktree lies."""
    marks: Marks
    link: str
    """A mark of the `.git` file in the worktree."""


def mark(path: Path) -> str:
    """Something that changes with a file; empty if there is none."""
    try:
        status = path.lstat()
    except OSError as error:
        return "" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
    if stat.S_ISLNK(status.st_mode):
        return f"{path.readlink()} {_content(path)}"
    return f"{status.st_mode:o} {_content(path)}"


def _content(path: Path) -> str:
    """A mark of what a file or a link to one holds. Nothing is opened that is no plain file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "no file"
        if status.st_size > LARGEST:
            return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        return sha256(path.read_bytes()).hexdigest()
    except (OSError, RuntimeError) as error:  # links in a circle are a RuntimeError
        return f"cannot be read: {error}"


def marks(git_dir: Path) -> Marks:
    """Everything in a repository's own directory that decides what git does."""
    found = dict(_marks(git_dir, ""))
    for parent, names, _ in os.walk(git_dir / "modules"):
        if "objects" in names:
            inner = Path(parent)
            found |= dict(_marks(inner, f"{inner.relative_to(git_dir)}/"))
        names[:] = [name for name in names if name not in (*BULKY, *WHOLE)]
        if len(found) > MOST:
            break
    return found


def _marks(git_dir: Path, prefix: str) -> Iterator[tuple[str, str]]:
    for name in (*SINGLE, *ALTERNATES):
        if found := mark(git_dir / name):
            yield prefix + name, found
    for name in WHOLE:
        if (git_dir / name).is_symlink():
            yield prefix + name, mark(git_dir / name)
            continue
        for parent, _, files in os.walk(git_dir / name):
            for file in files:
                path = Path(parent, file)
                inner = str(path.relative_to(git_dir))
                if inner not in MADE_BY_GIT:
                    yield prefix + inner, mark(path)


def entries(git_dir: Path) -> dict[str, Entry]:
    """What git has on each linked worktree, by the name of the entry."""
    found = {}
    with suppress(OSError):
        for directory in sorted((git_dir / "worktrees").iterdir()):
            with suppress(OSError):
                said = os.fsdecode((directory / "gitdir").read_bytes()).removesuffix("\n")
                link = Path(os.path.normpath(directory / said))
                found[directory.name] = Entry(
                    place=str(link.parent),
                    marks={name: mark(directory / name) for name in ENTRY},
                    link=mark(link),
                )
    return found


def refs(git: Git) -> dict[str, str]:
    """All refs, and what each means."""
    output = git.run("for-each-ref", "--format=%(refname) %(objectname) %(symref)").stdout
    lines = output.decode("utf-8", "surrogateescape").splitlines()
    return {name: meaning for name, _, meaning in (line.partition(" ") for line in lines)}


def changed(before: Marks, now: Marks) -> Iterator[tuple[str, str]]:
    """The paths whose marks differ, and how."""
    for path in sorted(before.keys() | now.keys()):
        old, new = before.get(path, ""), now.get(path, "")
        if old != new:
            yield path, "was changed" if old and new else "appeared" if new else "disappeared"
