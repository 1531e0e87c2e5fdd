"""
Reads what a commit changes, as texts before and after, without any work tree.

Large and binary files are named and not read: whoever looks at a change has to be
able to say what it did not look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from planforge.errors import GitFailed
from planforge.workspace.git import Git

TEXT_LIMIT = 1024 * 1024
"""How many bytes of one file are looked at; a longer one is not read."""

LINK = "120000"
SUBMODULE = "160000"
NOTHING = "000000"


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


class _Side(msgspec.Struct, frozen=True, kw_only=True):
    mode: str
    blob: str


def changed(git: Git, old: str, new: str) -> tuple[Changed, ...]:
    """Every path that differs between two commits, in order of its name."""
    output = git.run("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", old, new).stdout
    parts = output.split(b"\0")
    found: list[tuple[str, _Side, _Side]] = []
    for meta, path in zip(parts[::2], parts[1::2], strict=False):
        modes = meta.decode().removeprefix(":").split()
        sides = (_Side(mode=modes[0], blob=modes[2]), _Side(mode=modes[1], blob=modes[3]))
        found.append((path.decode("utf-8", "backslashreplace"), *sides))
    wanted = {side.blob for _, *sides in found for side in sides if _is_file(side)}
    contents = dict(_contents(git, sorted(wanted)))
    return tuple(sorted((_changed(path, a, b, contents) for path, a, b in found), key=lambda c: c.path))


def _is_file(side: _Side) -> bool:
    return side.mode not in (NOTHING, SUBMODULE)


def _changed(path: str, old: _Side, new: _Side, contents: dict[str, bytes | None]) -> Changed:
    read = [contents[side.blob] if _is_file(side) else None for side in (old, new)]
    unread = ""
    if SUBMODULE in (old.mode, new.mode):
        unread = "a submodule"
    elif any(_is_file(side) and content is None for side, content in zip((old, new), read, strict=True)):
        unread = f"larger than {TEXT_LIMIT // 1024} KiB"
    return Changed(path=path, before=read[0], after=read[1], unread=unread)


def _contents(git: Git, blobs: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
    """Each blob's content, or None if it is too large."""
    if not blobs:
        return
    names = "\n".join(blobs).encode() + b"\n"
    sizes = git.run("cat-file", "--batch-check=%(objectsize)", stdin=names).stdout.split()
    small = [blob for blob, size in zip(blobs, sizes, strict=True) if int(size) <= TEXT_LIMIT]
    yield from ((blob, None) for blob in blobs if blob not in set(small))
    if not small:
        return
    output = git.run("cat-file", "--batch", stdin="\n".join(small).encode() + b"\n").stdout
    at = 0
    for blob in small:
        end = output.index(b"\n", at)
        words = output[at:end].split()
        if len(words) != 3:
            raise GitFailed(f"object `{blob[:12]}` cannot be read")
        size = int(words[2])
        yield blob, output[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
