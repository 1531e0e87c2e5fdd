"""
What git remembers of worktrees: a directory of its own for each, in `.git/worktrees/`.

Read as files, so that an entry that is broken, or that an agent bent, is met like
any other. `git worktree prune` is never used: it would also forget worktrees of
the person's own that lie on a disk which is not mounted now.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from planforge.workspace.git import Git, checkouts

NAMES = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")
STATE_OF_A_REBASE = ("rebase-merge", "rebase-apply")
LARGEST = 64 * 1024 * 1024


def at(git: Git, path: Path) -> list[Path]:
    """The entries of worktrees that lie at `path` or somewhere beneath it."""
    ours = path.parent.resolve() / path.name
    return [entry for entry, place in checkouts.entries(git) if place.is_relative_to(ours)]


def moved(git: Git, name: str, path: Path) -> Path | None:
    """Where the worktree with the entry `name` is now, if somebody moved it away from `path`."""
    entry = git.git_dir / "worktrees" / name
    place = next((place for found, place in checkouts.entries(git) if name and found == entry), None)
    if place is None or place == path.parent.resolve() / path.name:
        return None
    with suppress(OSError):
        # Only a directory that itself says that it is this worktree: an entry is easily bent.
        back = (place / ".git").read_bytes().removesuffix(b"\n")
        if not place.is_symlink() and back == b"gitdir: " + os.fsencode(entry.resolve()):
            return place
    return None


def head(directory: Path) -> str:
    """What the HEAD of a worktree or a repository says: a commit, or `ref: ` and a name."""
    with suppress(OSError, UnicodeDecodeError):
        return (directory / "HEAD").read_text().strip()
    return ""


def checked_out(git: Git, besides: list[Path]) -> set[str]:
    """The branches that are checked out anywhere but in the entries `besides`."""
    places = [git.git_dir, *(entry for entry, _ in checkouts.entries(git) if entry not in besides)]
    return {head(place).removeprefix("ref: ") for place in places}


def named(entry: Path) -> list[str]:
    """Every object that an entry names, the newest first: by reflog, ORIG_HEAD, a rebase under way."""
    found: list[str] = []
    for file in _telling(entry):
        with suppress(OSError):
            if file.is_file() and not file.is_symlink() and file.stat().st_size <= LARGEST:
                found += [name.decode() for name in reversed(NAMES.findall(file.read_bytes()))]
    return [name for name in dict.fromkeys(found) if name.strip("0")]


def _telling(entry: Path) -> Iterator[Path]:
    yield entry / "HEAD"
    yield from sorted(entry.glob("*_HEAD"))
    yield entry / "logs" / "HEAD"
    yield from sorted((entry / "refs").rglob("*"))
    yield from sorted((entry / "logs" / "refs").rglob("*"))
    for name in STATE_OF_A_REBASE:
        yield from sorted((entry / name).glob("*"))
