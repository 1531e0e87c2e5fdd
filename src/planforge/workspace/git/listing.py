"""
The files of a commit, listed and read from git's objects, without any work tree.

The files of a checkout may change while an agent works there; a commit does not change.
"""

from __future__ import annotations

from collections.abc import Iterable

from planforge.errors import GitFailed
from planforge.workspace.git import Git, objects


class Listing:
    """What a commit holds."""

    def __init__(self, git: Git, commit: str) -> None:
        self._git = git
        self.entries = {objects.text(entry.path): entry for entry in objects.entries(git, commit, "-l")}

    def read(self, paths: Iterable[str], limit: int) -> dict[str, bytes]:
        """The contents of those paths that are files of at most `limit` bytes."""
        wanted = [path for path in paths if path in self.entries and self.entries[path].size <= limit]
        found = objects.contents(self._git, (self.entries[path].blob for path in wanted))
        if lost := next((path for path in wanted if self.entries[path].blob not in found), None):
            raise GitFailed(f"`{lost}` cannot be read: {self.entries[lost].blob} is missing")
        return {path: found[self.entries[path].blob][1] for path in wanted}
