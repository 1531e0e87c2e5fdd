"""
What nobody but its owner may change in a repository's own directory, kept as it is.

Settings and hooks decide what git runs, `info` and `alternates` what it sees, the
entries of worktrees where it looks: for the length of an attempt, all of them stay
what they were. Objects come and go as they please, and refs are compared by what
they mean, so packing them changes nothing.
"""

# Not by `pathlib`, which takes its time: this is asked before and after every call of an agent.
# ruff: noqa: PTH114, PTH115, PTH116, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

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


def mark(path: Path | str) -> str:
    """Something that changes with a file; empty if there is none."""
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        return "" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
    told = os.readlink(path) if stat.S_ISLNK(mode) else f"{mode:o}"
    return f"{told} {_content(path)}"


def _content(path: Path | str) -> str:
    """A mark of what a file or a link to one holds. Nothing is opened that is no plain file."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return "no file"
        if status.st_size > LARGEST:
            return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        with open(path, "rb") as file:
            return sha256(file.read()).hexdigest()
    except OSError as error:
        return f"cannot be read: {error}"


def marks(git_dir: Path) -> Marks:
    """Everything in a repository's own directory that decides what git does."""
    top = str(git_dir)
    found = dict(_marks(top, ""))
    for inner, names, _ in os.walk(f"{top}/modules"):
        if "objects" in names:
            found |= dict(_marks(inner, f"{inner.removeprefix(top)[1:]}/"))
        names[:] = [name for name in names if name not in (*BULKY, *WHOLE)]
        if len(found) > MOST:
            break
    return found


def _marks(git_dir: str, prefix: str) -> Iterator[tuple[str, str]]:
    for name in (*SINGLE, *ALTERNATES):
        if found := mark(f"{git_dir}/{name}"):
            yield prefix + name, found
    for name in WHOLE:
        if os.path.islink(f"{git_dir}/{name}"):
            yield prefix + name, mark(f"{git_dir}/{name}")
            continue
        for parent, _, files in os.walk(f"{git_dir}/{name}"):
            for file in files:
                path = f"{parent}/{file}"
                inner = path.removeprefix(git_dir)[1:]
                if inner not in MADE_BY_GIT:
                    yield prefix + inner, mark(path)


def entries(git_dir: Path) -> dict[str, Entry]:
    """What git has on each linked worktree, by the name of the entry."""
    found = {}
    with suppress(OSError):
        for name in sorted(os.listdir(git_dir / "worktrees")):
            directory = f"{git_dir}/worktrees/{name}"
            with suppress(OSError):
                with open(f"{directory}/gitdir", "rb") as file:
                    said = os.fsdecode(file.read()).removesuffix("\n")
                link = os.path.normpath(os.path.join(directory, said))
                found[name] = Entry(
                    place=os.path.dirname(link),
                    marks={part: mark(f"{directory}/{part}") for part in ENTRY},
                    link=mark(link),
                )
    return found


def changed(before: Marks, now: Marks) -> Iterator[tuple[str, str]]:
    """The paths whose marks differ, and how."""
    for path in sorted(before.keys() | now.keys()):
        old, new = before.get(path, ""), now.get(path, "")
        if old != new:
            yield path, "was changed" if old and new else "appeared" if new else "disappeared"
