"""
Links in a worktree that lead out of it, by name or by sharing a file.

A symbolic link leads out if what it means, once every link on the way is followed, is
not in the worktree. A file shares with the outside if it has more names than the
worktree has of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from planforge.workspace.files import copies
from planforge.workspace.files.beneath import Directory

MOST = 2_000_000
"""How many entries of a worktree are looked at."""

Inode = tuple[int, int]


class Leading(msgspec.Struct, frozen=True, kw_only=True):
    """A link that leads out."""

    path: bytes
    """Relative to the worktree."""
    to: bytes
    """Where a symbolic link leads, once all is followed; empty for a hard link."""
    inode: Inode
    """Device and number of the file that a hard link shares."""


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    leading: tuple[Leading, ...]
    unread: tuple[bytes, ...] = ()
    """Directories that could not be looked into."""
    complete: bool = True
    """Whether there were few enough entries to look at all of them."""


def leading_out(worktree: Path) -> Links:
    """The links in a worktree that lead out of it; nothing behind them is opened."""
    top = os.fsencode(worktree.resolve())
    names: dict[Inode, tuple[int, list[bytes]]] = {}
    found: list[Leading] = []
    unread: list[bytes] = []
    for seen, (path, entry) in enumerate(_entries(top, unread)):
        if seen >= MOST:
            return Links(leading=tuple(found), unread=tuple(unread), complete=False)
        if entry.is_symlink():
            to = _meaning(top + b"/" + path)
            if to != top and not to.startswith(top + b"/"):
                found.append(Leading(path=path, to=to, inode=(0, 0)))
        elif entry.is_file(follow_symlinks=False):
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if status.st_nlink > 1:
                    inode = (status.st_dev, status.st_ino)
                    names.setdefault(inode, (status.st_nlink, []))[1].append(path)
    for inode, (number, paths) in names.items():
        if number > len(paths):
            found += [Leading(path=path, to=b"", inode=inode) for path in paths]
    return Links(leading=tuple(sorted(found, key=lambda link: link.path)), unread=tuple(unread))


def separate(worktree: Path) -> int:
    """Give the worktree a file of its own for each that it shares with the outside; how many there were."""
    hard = [link.path for link in leading_out(worktree).leading if not link.to]
    with Directory.at(worktree) as top:
        for path in hard:
            parent, _, name = path.rpartition(b"/")
            with top.enter(parent or b".") as directory:
                part = b"." + os.urandom(8).hex().encode() + b".part"
                try:
                    copies.file(directory, directory, name, part)
                    os.replace(part, name, src_dir_fd=directory.handle, dst_dir_fd=directory.handle)
                except BaseException:
                    with suppress(OSError):
                        os.unlink(part, dir_fd=directory.handle)
                    raise
    return len(hard)


def _entries(top: bytes, unread: list[bytes]) -> Iterator[tuple[bytes, os.DirEntry[bytes]]]:
    """Everything in a directory but its own `.git`, with its path."""
    waiting = [b""]
    while waiting:
        prefix = waiting.pop()
        try:
            with os.scandir(top + b"/" + prefix) as listing:
                inside = list(listing)
        except FileNotFoundError:
            continue
        except OSError:
            unread.append(prefix.removesuffix(b"/"))
            continue
        for entry in inside:
            path = prefix + entry.name
            if path != b".git":
                yield path, entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path + b"/")


def _meaning(link: bytes) -> bytes:
    try:
        return os.path.realpath(link)
    except OSError:  # it changes while we look, so whoever made it is still at it
        return b"?"
