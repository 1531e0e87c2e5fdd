"""
Paths that a model gives, kept inside its worktree.

This keeps honest mistakes and plain attempts out. A command that swaps a directory for a link at the right
moment is stopped by the sandbox around the whole program, not here.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from planforge.agents.api.tools import Refused

GIT = ".git"


def inside(root: Path, path: str) -> Path:
    """The real path beneath `root` that `path` means; refused if it leads elsewhere."""
    if "\0" in path:
        raise Refused("a path cannot hold a NUL character")
    given = Path(path or ".")
    if ".." in given.parts:
        raise Refused(f"`{path}`: `..` is not allowed; give a path relative to the working directory")
    top = Path(os.path.realpath(root))
    # Of an absolute path only the name of the worktree itself may be one that links lead through.
    start = (
        top / given.relative_to(root) if given.is_absolute() and given.is_relative_to(root) else top / given
    )
    try:
        real = Path(os.path.realpath(start))
    except OSError as error:
        raise Refused(f"`{path}`: {error.strerror}") from error
    if not real.is_relative_to(top):
        raise Refused(f"`{path}` is outside the working directory")
    return real


def changeable(root: Path, path: str) -> Path:
    """As `inside`, for a file that is to be changed: nothing of git, no directory."""
    real = inside(root, path)
    if GIT in real.relative_to(os.path.realpath(root)).parts:
        raise Refused(f"`{path}` belongs to git")
    if real.is_dir():
        raise Refused(f"`{path}` is a directory")
    return real


def regular(path: Path, shown: str) -> int:
    """A descriptor to read the regular file at `path`; anything else is refused, without waiting for it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"`{shown}`: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused(f"`{shown}` is not a regular file")
    return descriptor
