"""
The files of a commit, listed and read from git's objects, without any work tree.

The files of a checkout may change while an agent works there; a commit does not change.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from planforge.errors import GitFailed
from planforge.workspace.git import Git, objects
from planforge.workspace.git.objects import LINK

FILES = ("100644", "100755", LINK)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file, or one link."""

    mode: str
    blob: str
    size: int

    @property
    def link(self) -> bool:
        """Whether its content is the path of something else."""
        return self.mode == LINK


class Listing:
    """What a commit holds."""

    def __init__(self, git: Git, commit: str) -> None:
        self._git = git
        output = git.run("ls-tree", "-r", "-z", "--long", "--full-tree", commit).stdout
        self.entries = dict(_entry(line) for line in output.split(b"\0") if line.startswith(b"1"))

    def read(self, paths: Iterable[str], limit: int) -> dict[str, bytes]:
        """The contents of those paths that are files of at most `limit` bytes."""
        wanted = [path for path in paths if path in self.entries and self.entries[path].size <= limit]
        found = objects.contents(self._git, (self.entries[path].blob for path in wanted))
        if lost := next((path for path in wanted if self.entries[path].blob not in found), None):
            raise GitFailed(f"`{lost}` cannot be read: {self.entries[lost].blob} is missing")
        return {path: found[self.entries[path].blob][1] for path in wanted}


def _entry(line: bytes) -> tuple[str, Entry]:
    meta, _, path = line.partition(b"\t")
    mode, _, blob, size = meta.decode().split()
    known = int(size) if mode in FILES else 1 << 62  # a submodule has none and is never read
    return objects.text(path), Entry(mode=mode, blob=blob, size=known)
