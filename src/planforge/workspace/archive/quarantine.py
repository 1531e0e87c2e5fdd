"""
What must not or cannot be kept in git: files with secrets, files that git cannot take in.

They lie in `.planforge/quarantine/<run>/<worktree>…/files`, readable by their owner
only, with a note of when and why. Nothing here is ever committed, and nothing is
removed except by `planforge cleanup`.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from planforge.errors import GitFailed
from planforge.workspace.archive import slug

ABOUT = "about.json"


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Some files of one worktree that are kept outside git."""

    run: str
    worktree: str
    at: str
    why: str
    paths: tuple[str, ...]
    """As they were in the worktree; what is not text is escaped."""
    commits: tuple[str, ...] = ()
    """The commits that are in `commits.pack` instead of in the repository."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A note and where it lies."""

    held: Held
    directory: Path


class Quarantine:
    """The quarantine of one run."""

    def __init__(self, state: Path, run: str) -> None:
        self._run = run
        self._directory = state / "quarantine" / run

    def copy(self, worktree: str, root: Path, paths: Sequence[bytes], why: str) -> Path | None:
        """Keep copies of files, unless the newest copies are the same; where they are then."""
        there = [path for path in dict.fromkeys(paths) if _may_be_read(root, path)]
        if not there:
            return None
        for kept in reversed(list(self._of(worktree))):
            if all(_same(root / os.fsdecode(path), kept / "files" / os.fsdecode(path)) for path in there):
                return kept
        place = self._place(worktree)
        for path in there:
            _copy(root / os.fsdecode(path), _target(place, path))
        self._note(place, worktree, why, there)
        return place

    def move(self, worktree: str, root: Path, paths: Sequence[bytes], why: str) -> Path | None:
        """Move files out of the worktree, which also works for unreadable ones."""
        there = [path for path in dict.fromkeys(paths) if os.path.lexists(root / os.fsdecode(path))]
        if not there:
            return None
        place = self._place(worktree)
        self._note(place, worktree, why, there)  # first, because from here on nobody else knows of them
        for path in there:
            source = root / os.fsdecode(path)
            try:
                source.rename(_target(place, path))
            except OSError as error:
                shown = path.decode("utf-8", "backslashreplace")
                raise GitFailed(
                    f"cannot keep `{shown}` of worktree `{worktree}`: {error.strerror or error}",
                    f"look at `{root}`, make the file readable or take it out, then try again",
                ) from error
        return place

    def pack(self, worktree: str, content: bytes, commits: Sequence[str], why: str) -> Path:
        """Keep commits as a pack outside the repository; `git unpack-objects` brings them back."""
        for kept in self._of(worktree):
            note = read(kept)
            if note is not None and note.commits == tuple(commits):
                return kept
        place = self._place(worktree)
        _write(place / "commits.pack", content)
        self._note(place, worktree, why, (), commits)
        return place

    def _of(self, worktree: str) -> Iterator[Path]:
        """What is held of a worktree, the oldest first."""
        found = [place for place in self._directory.glob(f"{slug(worktree)}.*") if (place / ABOUT).is_file()]
        yield from sorted(
            found, key=lambda place: int(place.suffix[1:]) if place.suffix[1:].isdecimal() else 0
        )

    def _place(self, worktree: str) -> Path:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._directory.chmod(stat.S_IRWXU)
        self._directory.parent.chmod(stat.S_IRWXU)
        for number in range(1, 10_000):
            place = self._directory / f"{slug(worktree)}.{number}"
            with suppress(FileExistsError):
                place.mkdir(mode=stat.S_IRWXU)
                return place
        raise GitFailed(f"no free name in `{self._directory}`")

    def _note(
        self, place: Path, worktree: str, why: str, paths: Sequence[bytes], commits: Sequence[str] = ()
    ) -> None:
        note = Held(
            run=self._run,
            worktree=worktree,
            at=datetime.now(UTC).isoformat(),
            why=why,
            paths=tuple(path.decode("utf-8", "backslashreplace") for path in paths),
            commits=tuple(commits),
        )
        _write(place / ABOUT, msgspec.json.encode(note))


def everything(state: Path) -> list[Kept]:
    """All that is in quarantine, of every run."""
    places = sorted((state / "quarantine").glob(f"*/*/{ABOUT}"))
    notes = ((read(place.parent), place.parent) for place in places)
    return [Kept(held=note, directory=place) for note, place in notes if note is not None]


def read(place: Path) -> Held | None:
    """The note of one place, if it has a proper one."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((place / ABOUT).read_bytes(), type=Held)
    return None


def _target(place: Path, path: bytes) -> Path:
    target = place / "files" / os.fsdecode(path)
    target.parent.mkdir(parents=True, exist_ok=True, mode=stat.S_IRWXU)
    return target


def _may_be_read(root: Path, path: bytes) -> bool:
    """Whether a path leads to a file inside `root` and not through a link out of it."""
    parts = os.fsdecode(path).split("/")
    if any(part in ("", ".", "..", ".git") for part in parts):
        return False
    at = root
    for part in parts[:-1]:
        at /= part
        if at.is_symlink() or not at.is_dir():
            return False
    last = at / parts[-1]
    return last.is_symlink() or last.is_file()


def _same(left: Path, right: Path) -> bool:
    with suppress(OSError):
        if left.is_symlink() or right.is_symlink():
            return left.is_symlink() and right.is_symlink() and left.readlink() == right.readlink()
        return left.read_bytes() == right.read_bytes()
    return False


def _copy(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    with source.open("rb") as file, os.fdopen(_create(target), "wb") as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fsync(copy.fileno())


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(_create(path), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR)
