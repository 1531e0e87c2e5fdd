"""
Reads what a commit changes, as texts before and after, without any work tree.

Large and binary files are named and not read: whoever looks at a change has to be
able to say what it did not look at.
"""

from __future__ import annotations

import msgspec

from planforge.errors import GitFailed
from planforge.workspace.git import Git, objects
from planforge.workspace.git.objects import GITLINK, Difference

TEXT_LIMIT = 1024 * 1024
"""How many bytes of one file are looked at; a longer one is not read."""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One path that differs between two commits."""

    path: str
    before: bytes | None
    """None where there was no file, or it was not read."""
    after: bytes | None
    unread: str = ""
    """Why one side was not read: too large, or a submodule."""

    @property
    def binary(self) -> bool:
        """Whether either side is no text."""
        return any(b"\0" in side[:8192] for side in (self.before, self.after) if side)


def changed(git: Git, old: str, new: str) -> tuple[Changed, ...]:
    """Every path that differs between two commits, in order of its name."""
    found = objects.differences(git, old, new)
    wanted = {side.blob for _, *sides in found for side in sides if side.is_file}
    sizes = objects.sizes(git, sorted(wanted))
    small = [blob for blob in sorted(wanted) if sizes.get(blob, 0) <= TEXT_LIMIT]
    read = objects.contents(git, small)
    if lost := next((blob for blob in small if blob not in read), None):
        raise GitFailed(f"object `{lost[:12]}` cannot be read")
    contents = {blob: read[blob][1] if blob in read else None for blob in wanted}
    return tuple(sorted((_changed(each, contents) for each in found), key=lambda change: change.path))


def _changed(found: Difference, contents: dict[str, bytes | None]) -> Changed:
    sides = (found.old, found.new)
    before, after = (contents[side.blob] if side.is_file else None for side in sides)
    unread = ""
    if GITLINK in (found.old.mode, found.new.mode):
        unread = "a submodule"
    elif any(side.is_file and contents[side.blob] is None for side in sides):
        unread = f"larger than {TEXT_LIMIT // 1024} KiB"
    return Changed(path=objects.text(found.path), before=before, after=after, unread=unread)
