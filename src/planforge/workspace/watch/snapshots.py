"""
What lies where in a checkout, as the file system tells it, to be compared with later.

Nothing is read: a file counts as the same while its kind, number, size, times and
names are. Times of change cannot be set back, so a file whose other marks were put
right again is still noticed.

Looked at are all directories with tracked files in them, and one level of every other
directory there. What lies deeper in those, such as in `node_modules`, is not.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from planforge.workspace.git.checkouts import parents

MOST = 300_000
"""How many entries of one checkout are looked at."""

Seen = tuple[int, ...]
"""Mode, number, size, times of writing and of change, and how many names it has."""

DIRECTORY: Seen = (stat.S_IFDIR,)
"""Nothing but that it is one: what lies in it speaks for itself."""


class Snapshot(NamedTuple):
    """One checkout at one time."""

    top: bytes
    deep: frozenset[bytes]
    """The directories that are looked into, whatever lies there."""
    skipped: frozenset[bytes]
    entries: dict[bytes, Seen]
    complete: bool


class Difference(NamedTuple):
    """Something that is not as it was."""

    path: bytes
    how: str


def take(checkout: Path, tracked: Iterable[bytes], skipped: Collection[bytes]) -> Snapshot:
    """What lies in a checkout now, apart from what is `skipped` and everything in it."""
    return _taken(os.fsencode(checkout), frozenset(parents(tracked)), frozenset(skipped))


def again(before: Snapshot) -> Snapshot:
    """The same places as they are now."""
    return _taken(before.top, before.deep, before.skipped)


def differences(before: Snapshot, now: Snapshot) -> Iterator[Difference]:
    """Where two snapshots of one checkout differ; where one of them was cut short, only in what both have."""
    whole = before.complete and now.complete
    for path, seen in now.entries.items():
        known = before.entries.get(path)
        if known is None:
            if whole:
                yield Difference(path, "appeared")
        elif known != seen:
            yield Difference(path, _how(known, seen))
    if whole:
        for path in before.entries.keys() - now.entries.keys():
            yield Difference(path, "disappeared")


def _how(known: Seen, seen: Seen) -> str:
    if len(known) == len(seen) == 6 and known[:4] == seen[:4] and known[5] < seen[5]:
        return "got another name (a hard link)"
    if stat.S_IFMT(known[0]) == stat.S_IFMT(seen[0]) and known[1:4] == seen[1:4] and known[0] != seen[0]:
        return "got another mode"
    return "was changed"


def _taken(top: bytes, deep: frozenset[bytes], skipped: frozenset[bytes]) -> Snapshot:
    entries: dict[bytes, Seen] = {}
    waiting = [b""]
    while waiting:
        prefix = waiting.pop()
        within = not prefix or prefix[:-1] in deep
        try:
            listing = os.scandir(top + b"/" + prefix)
        except OSError:  # gone, or not to be looked into; both may be a difference already
            continue
        with listing:
            for entry in listing:
                path = prefix + entry.name
                if path in skipped:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    entries[path] = DIRECTORY
                    if within:
                        waiting.append(path + b"/")
                    continue
                with suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    times = found.st_mtime_ns, found.st_ctime_ns
                    entries[path] = (found.st_mode, found.st_ino, found.st_size, *times, found.st_nlink)
        if len(entries) > MOST:
            return Snapshot(top, deep, skipped, entries, complete=False)
    return Snapshot(top, deep, skipped, entries, complete=True)
