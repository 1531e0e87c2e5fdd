"""What is kept of a run in a real repository, looked at with the git command and nothing of Planforge's."""

from __future__ import annotations

from pathlib import Path

from repositories import git

ARCHIVE = "refs/planforge/archive"


def archived(place: Path, run: str = "run-1") -> dict[str, str]:
    """The names under which work of the run is kept, and the commits."""
    lines = git(place, "for-each-ref", "--format=%(refname) %(objectname)", f"{ARCHIVE}/{run}").splitlines()
    return {ref.removeprefix(f"{ARCHIVE}/{run}/"): found for ref, found in (line.split() for line in lines)}


def content(place: Path, revision: str, path: str) -> str:
    """What a file says in a commit."""
    return git(place, "show", f"{revision}:{path}")


def listing(place: Path, revision: str) -> list[str]:
    """The files of a commit."""
    return git(place, "ls-tree", "-r", "--name-only", revision).splitlines()


def registered(place: Path) -> list[str]:
    """Where git says that worktrees are."""
    lines = git(place, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]
