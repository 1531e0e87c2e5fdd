"""
The checkouts of a repository: where each is, which branch it is on, what is under way in it.

A branch that somebody rebases or bisects is on no HEAD for that time and still theirs.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from planforge.workspace.git import Git, checkouts

UNDER_WAY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_START": "a bisect",
    "sequencer": "a sequence of picks or reverts",
}
"""What git leaves in its directory of a checkout while something is not finished there."""


class Place:
    """One checkout."""

    def __init__(self, git: Git, own: Path, path: Path) -> None:
        self.path = path
        self.own = own
        """The directory that git has for this checkout alone, with its HEAD and its index."""
        self.git_dir = git.git_dir
        query = ("symbolic-ref", "--quiet", "HEAD")
        found = git.run(*query, extra={"GIT_DIR": str(own)}, accept=(0, 1, 128)).stdout
        self.ref = os.fsdecode(found.rstrip(b"\n"))
        """The branch it is on; empty if it is on none."""
        self.comes_back_to = _begun_on(own)
        """The branch that a rebase or a bisect began on, if one is under way."""

    @cached_property
    def git(self) -> Git:
        """The repository as this checkout sees it."""
        return Git(self.git_dir, self.path, own=self.own)

    @property
    def under_way(self) -> str | None:
        """The operation of git that is in progress here, if any."""
        return next((what for name, what in UNDER_WAY.items() if (self.own / name).exists()), None)


def places(git: Git) -> list[Place]:
    """All checkouts, the main one first."""
    return [Place(git, own, path) for own, path in (*_main(git), *checkouts.entries(git))]


def here(git: Git) -> Place:
    """The checkout that the person works in."""
    return Place(git, git.own, git.top)


def using(git: Git, ref: str) -> list[Place]:
    """The checkouts that are on the branch `ref`, or return to it after a rebase or bisect."""
    return [place for place in places(git) if ref in (place.ref, place.comes_back_to)]


def _main(git: Git) -> list[tuple[Path, Path]]:
    """The checkout that is not a linked one; a bare repository has none."""
    if git.own.resolve() == git.git_dir.resolve():
        return [(git.git_dir, git.top)]
    listed = git.run("worktree", "list", "--porcelain", "-z").stdout
    first, *rest = listed.partition(b"\0\0")[0].split(b"\0")
    path = Path(os.fsdecode(first.removeprefix(b"worktree ")))
    return [] if b"bare" in rest else [(git.git_dir, path)]


def _begun_on(directory: Path) -> str:
    for name in ("rebase-merge/head-name", "rebase-apply/head-name"):
        with suppress(OSError):
            return os.fsdecode((directory / name).read_bytes().strip())
    with suppress(OSError):
        return "refs/heads/" + os.fsdecode((directory / "BISECT_START").read_bytes().strip())
    return ""
