"""
What a program may see and change, by the role of whoever runs it.

Whoever plans or reviews changes nothing. Whoever implements changes its worktree. A check
changes its checkout and has no network. The rest of the machine is there to be read, except
what is a person's own: homes, temporary files, running services, other worktrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from planforge.workspace.sandbox import home

MANY_PROCESSES = 2048
LARGE_FILE = 16 * 1024**3
SCRATCH = 4 * 1024**3
STATE = ".planforge"
RECORDS = "processes"


class Level(StrEnum):
    """How firmly a program is confined, the firmest first. docs/sandbox.md says what each one prevents."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    PROCESSES = "processes"
    NONE = "none"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a program may do. Paths hold for everything below them; the longest one that fits decides.

    What no path speaks about can be read, unless it lies in a home, in a directory for
    temporary files or among the sockets of services.
    """

    writable: tuple[Path, ...] = ()
    """What it may change, and sees wherever that lies."""
    read_only: tuple[Path, ...] = ()
    """What it may not change inside of what it may change."""
    visible: tuple[Path, ...] = ()
    """What it may read although it lies where nothing can be read."""
    hidden: tuple[Path, ...] = ()
    """What it may not even read."""
    network: bool = False
    memory_bytes: int | None = None
    """What it and all it started may use together; None for no limit."""
    processes: int | None = MANY_PROCESSES
    """How many processes it may have at once; None for no limit."""
    file_bytes: int | None = LARGE_FILE
    """How large a file may be that it writes; None for no limit."""
    scratch_bytes: int = SCRATCH
    """How much it may put into each of its private directories, which are kept in memory."""
    records: Path | None = None
    """Where is noted what was started, so that it can be found again after a crash; None for nowhere."""


class Beside(TypedDict, total=False):
    """What there is besides the place that a program works in."""

    state: Path | None
    """Our own directory, which is hidden; by default the one in the repository."""
    visible: Sequence[Path]


def reading(
    worktree: Path,
    *,
    repository: Path | None = None,
    own: Sequence[Path] = (),
    **beside: Unpack[Beside],
) -> Policy:
    """For planning and reviewing: nothing can be changed but `own`, the agent's own directories."""
    return _policy(worktree, repository, own, network=True, **beside)


def writing(
    worktree: Path,
    *,
    repository: Path | None = None,
    own: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    **beside: Unpack[Beside],
) -> Policy:
    """For implementing: the worktree can be changed, its `.git` cannot."""
    return _policy(worktree, repository, (worktree, *own, *writable), network=True, **beside)


def verifying(
    checkout: Path,
    *,
    repository: Path | None = None,
    writable: Sequence[Path] = (),
    network: bool = False,
    **beside: Unpack[Beside],
) -> Policy:
    """For checks: the checkout can be changed, and nothing is asked of the network."""
    return _policy(checkout, repository, (checkout, *writable), network=network, **beside)


def _policy(
    place: Path,
    repository: Path | None,
    writable: Sequence[Path],
    *,
    network: bool,
    state: Path | None = None,
    visible: Sequence[Path] = (),
) -> Policy:
    if state is None and repository is not None:
        state = repository / STATE
    git = git_directories(repository) if repository else ()
    whole = (repository,) if repository and not home.is_private(repository) else ()
    return Policy(
        writable=tuple(writable),
        read_only=(place / ".git", *git),
        visible=(place, *whole, *git, *visible),
        hidden=(state,) if state else (),
        network=network,
        records=state / RECORDS if state else None,
    )


def git_directories(repository: Path) -> tuple[Path, ...]:
    """Where the history of a person's repository lies: not always in its `.git`, nor in one place."""
    own = repository / ".git"
    if own.is_file():  # a worktree, a submodule, or one with its history elsewhere
        own = _pointed(own, "gitdir: ") or own
    common = _pointed(own / "commondir") or own
    found = [own, common]
    with suppress(OSError, UnicodeDecodeError):
        borrowed = (common / "objects" / "info" / "alternates").read_text()
        found += [common / "objects" / line for line in borrowed.splitlines() if line and line[0] != "#"]
    return tuple(dict.fromkeys(path for path in found if path.exists()))


def _pointed(file: Path, prefix: str = "") -> Path | None:
    """The directory whose name is in `file`."""
    with suppress(OSError, UnicodeDecodeError):
        text = file.read_text()
        if text.startswith(prefix):
            return (file.parent / text.removeprefix(prefix).strip()).resolve()
    return None
