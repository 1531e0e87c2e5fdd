"""
How everything around a worktree is at one time: the person's files, the repository, our own state.

Which files are looked at, and how closely, is said in `snapshots` and `guarded_files`. A
worktree of ours in which some process may be at work is not looked at: its files change
all the time, by those who may.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from planforge.errors import GitFailed
from planforge.kernel.locks import is_held
from planforge.workspace.git import Git, refs
from planforge.workspace.git.checkouts import tracked
from planforge.workspace.watch import guarded_files, snapshots
from planforge.workspace.watch.guarded_files import Entry, Marks
from planforge.workspace.watch.snapshots import Snapshot
from planforge.workspace.worktrees import FRESH

THREADS = 4


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How things are at one time."""

    checkouts: dict[str, Snapshot]
    """The person's checkouts and worktrees of runs that nobody drives, by where they are."""
    locks: dict[str, str]
    """For those worktrees a mark of their run's lock, which changes when somebody takes the run up."""
    marks: Marks
    """What decides what git does."""
    repository: tuple[int, int]
    """Which directory the repository's own is."""
    head: str
    refs: dict[str, str]
    broken: str
    """What git said if it could not tell the refs; empty if it could."""
    entries: dict[str, Entry]
    objects: Snapshot
    """The objects of the ledger, which never change."""
    state: Marks
    """What else of our own directory does not."""
    strays: frozenset[str]
    """What lies in our own directory and is not ours."""


class Surroundings:
    """What is around one worktree."""

    def __init__(
        self,
        git: Git,
        worktree: Path,
        state: Path,
        *,
        written: Sequence[str],
        checkouts: bool,
    ) -> None:
        self._git = git
        self._worktree = worktree.resolve()
        self._state = state.resolve()
        self._written = [os.fsencode(path.rstrip("/")) for path in written]
        self._checkouts = checkouts

    def look(self, before: Seen | None = None) -> Seen:
        """The state now; given the state `before`, of the same checkouts."""
        git_dir = self._git.git_dir
        entries = guarded_files.entries(git_dir)
        status = git_dir.stat()
        meant, broken = self._refs()
        return Seen(
            checkouts=self._snapshots(entries, before),
            locks={place: guarded_files.mark(self._lock(place)) for place in self._undriven(entries)},
            marks=guarded_files.marks(git_dir),
            repository=(status.st_dev, status.st_ino),
            head=guarded_files.mark(git_dir / "HEAD"),
            refs=meant,
            broken=broken,
            entries=entries,
            objects=snapshots.take(self._state / "objects", (), ()),
            state=self._own(),
            strays=frozenset(self._strays(entries)),
        )

    def is_ours(self, place: str) -> bool:
        """Whether a worktree is one that Planforge made."""
        return Path(place).is_relative_to(self._state / "worktrees") or Path(place).is_relative_to(
            self._worktree.parent
        )

    def _refs(self) -> tuple[dict[str, str], str]:
        try:
            return refs.every(self._git), ""
        except GitFailed as error:
            return {}, error.message

    def _snapshots(self, entries: dict[str, Entry], before: Seen | None) -> dict[str, Snapshot]:
        if not self._checkouts:
            return {}
        with ThreadPoolExecutor(THREADS) as pool:
            if before is not None:
                known = before.checkouts
                return dict(zip(known, pool.map(snapshots.again, known.values()), strict=True))
            places = list(self._places(entries))
            return dict(zip(map(str, places), pool.map(self._snapshot, places), strict=True))

    def _snapshot(self, place: Path) -> Snapshot:
        inside = [path for path in (self._state, self._worktree) if path.is_relative_to(place)]
        skipped = [os.fsencode(path.relative_to(place)) for path in inside]
        try:
            known = tracked(self._git, place)
        except GitFailed:  # a worktree of the person's that is broken is no reason not to start
            known = []
        return snapshots.take(place, known, [b".git", *skipped, *self._written])

    def _places(self, entries: dict[str, Entry]) -> Iterator[Path]:
        found = [self._git.top, *map(Path, self._undriven(entries))]
        if self._git.git_dir.name == ".git":
            found.append(self._git.git_dir.parent)
        found += [Path(entry.place) for entry in entries.values() if not self.is_ours(entry.place)]
        for place in dict.fromkeys(path.resolve() for path in found):
            if place != self._worktree and place.is_dir():
                yield place

    def _undriven(self, entries: dict[str, Entry]) -> list[str]:
        """Worktrees of ours whose run no process drives now; one without a lock never was driven."""
        ours = [entry.place for entry in entries.values() if self.is_ours(entry.place)]
        others = [place for place in ours if Path(place).parent != self._worktree.parent]
        return [place for place in others if self._lock(place).exists() and not is_held(self._lock(place))]

    def _lock(self, place: str) -> Path:
        return self._state / "locks" / f"{Path(place).parent.name}.lock"

    def _own(self) -> Marks:
        found = {".gitignore": guarded_files.mark(self._state / ".gitignore")}
        with suppress(FileNotFoundError):
            found["ledger.db"] = str((self._state / "ledger.db").stat().st_ino)
        return found

    def _strays(self, entries: dict[str, Entry]) -> Iterator[str]:
        """
        Files where Planforge puts none, on the way up from the worktree.

        They are what an agent leaves that writes to `../x` and so on.
        """
        known = {entry.place for entry in entries.values()}
        for directory in (self._worktree.parent, self._state / "worktrees", self._state):
            with suppress(OSError), os.scandir(directory) as listing:
                for entry in listing:
                    if entry.name.startswith((".", "ledger.", FRESH)):
                        continue
                    lowest = directory == self._worktree.parent
                    if not entry.is_dir(follow_symlinks=False) or (lowest and entry.path not in known):
                        yield entry.path
