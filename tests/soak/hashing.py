"""
The tree that a directory makes, computed without git and without anything of Planforge's.

A second opinion on what was there: blobs, links and trees are hashed as git does it,
and what git ignores is left out by the two rules that the generated repositories have in their
`.gitignore`. A worktree without that file, as one that was made at a commit of a repository inside
another one, ignores nothing.
"""

from __future__ import annotations

import os
import stat
from hashlib import sha1
from pathlib import Path

IGNORED_SUFFIX = b".log"
IGNORED_DIRECTORY = b"build"


def tree_of(directory: Path, tracked: frozenset[bytes] = frozenset()) -> str:
    """The tree of everything in a directory but what is ignored; `tracked` is in although it is ignored."""
    ruled = (directory / ".gitignore").exists()
    found = _tree(os.fsencode(directory), b"", tracked, inside=not ruled)
    return (found or _object(b"tree", b"")).hex()


def _tree(directory: bytes, prefix: bytes, tracked: frozenset[bytes], *, inside: bool) -> bytes | None:
    """The tree of a directory; None if nothing is in it. `inside` a repository without rules none count."""
    entries = []
    for item in os.scandir(directory):
        name, mode = item.name, item.stat(follow_symlinks=False).st_mode
        path = prefix + name
        if name == b".git" or (not inside and path not in tracked and _ignored(name, mode)):
            continue
        if stat.S_ISDIR(mode):
            nested = inside or os.path.lexists(item.path + b"/.git")
            if found := _tree(item.path, path + b"/", tracked, inside=nested):
                entries.append((name + b"/", b"40000 " + name, found))
        elif stat.S_ISLNK(mode):
            target = os.readlink(item.path)  # noqa: PTH115  (bytes, which need not be text)
            entries.append((name, b"120000 " + name, _object(b"blob", target)))
        elif stat.S_ISREG(mode):
            kind = b"100755 " if mode & stat.S_IXUSR else b"100644 "
            entries.append((name, kind + name, _object(b"blob", Path(os.fsdecode(item.path)).read_bytes())))
    if not entries:
        return None
    return _object(b"tree", b"".join(head + b"\0" + found for _, head, found in sorted(entries)))


def _ignored(name: bytes, mode: int) -> bool:
    return name.endswith(IGNORED_SUFFIX) or (name == IGNORED_DIRECTORY and stat.S_ISDIR(mode))


def _object(kind: bytes, content: bytes) -> bytes:
    return sha1(kind + b" " + str(len(content)).encode() + b"\0" + content, usedforsecurity=False).digest()
