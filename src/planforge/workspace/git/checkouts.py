"""
What git knows about checkouts, without asking the checkouts.

A checkout's own `.git` is a file in a place where an agent may write, so it is never
followed: the entry that git made for it in the common directory says where it lies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from planforge.workspace.git import Git


def entries(git: Git) -> Iterator[tuple[Path, Path]]:
    """Each linked worktree: git's own directory for it, and where its files are."""
    for file in sorted((git.git_dir / "worktrees").glob("*/gitdir")):
        with suppress(OSError):  # it may be removed meanwhile
            place = file.read_bytes().removesuffix(b"\n").removesuffix(b"/.git")
            # Relative with `worktree.useRelativePaths`, then to the entry.
            yield file.parent, Path(os.path.normpath(file.parent / os.fsdecode(place)))


def entry_of(git: Git, checkout: Path) -> Path | None:
    """Git's own directory for a linked worktree; None for the main one."""
    real = checkout.resolve()
    return next((entry for entry, place in entries(git) if place.resolve() == real), None)


def index_of(git: Git, checkout: Path) -> Path:
    """The index of a checkout."""
    return (entry_of(git, checkout) or git.git_dir) / "index"


def tracked(git: Git, checkout: Path) -> list[bytes]:
    """The paths that the index of a checkout has."""
    index = index_of(git, checkout)
    if not index.exists():
        return []
    return git.run("ls-files", "-z", index=index).stdout.split(b"\0")[:-1]


def ignored(git: Git, checkout: Path, paths: Sequence[bytes]) -> set[bytes]:
    """Those of the paths that the ignore files of a checkout match now, tracked or not."""
    top = os.fsencode(checkout)
    # Git gives up on a path that goes through a link; for git, there is nothing there to ignore.
    linked = {parent for parent in parents(paths) if os.path.islink(top + b"/" + parent)}  # noqa: PTH114
    asked = [path for path in paths if not linked & parents([path])]
    if not asked:
        return set()
    query = ("check-ignore", "--stdin", "-z", "--no-index")
    plain = b"".join(b"./" + path + b"\0" for path in asked)  # or `:(glob)` would be more than a name
    found = git.run(*query, work_tree=checkout, stdin=plain, accept=(0, 1)).stdout
    return {path.removeprefix(b"./") for path in found.split(b"\0") if path}


def parents(paths: Iterable[bytes]) -> set[bytes]:
    """The directories that paths go through."""
    found: set[bytes] = set()
    for path in paths:
        parent = path.rstrip(b"/").rpartition(b"/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition(b"/")[0]
    return found
