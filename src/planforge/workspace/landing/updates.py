"""
Brings what has landed into a checkout of the person's: the branch, the index and the files, or none of it.

This is the one place that writes to a checkout of theirs, because they told it to.
It goes ahead only where nothing of theirs can be lost. While it is at work it
holds the checkout's `index.lock`, so that no other git changes anything there, and
a note of what goes from where to where is on disk. A process that dies half-way
leaves both; the next update finds the note, takes back what was half done, and
does it again. The caller holds the lock of the landing queue of the branch.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import GitFailed, Locked, RefusedByGate
from planforge.kernel.effects import CheckoutChange
from planforge.kernel.objects import write_atomically
from planforge.workspace.git import Git
from planforge.workspace.git.objects import Difference, scratch_index
from planforge.workspace.landing.clearance import (
    changes_between,
    is_clean,
    is_ours,
    listed,
    require_clean,
    require_forward,
    require_no_operation,
    require_possible,
)
from planforge.workspace.landing.places import Place, using

OURS = b"Planforge updates this checkout. If that was interrupted: planforge land --update-checkout\n"
"""What `index.lock` says while it is held here; git's own is an index, or empty."""


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The note of an update that is under way."""

    branch: str
    old: str
    new: str


def look(git: Git, branch: str, commit: str, besides: Collection[str] = ()) -> None:
    """Refuse now what `update` would refuse, without changing anything; `besides` are documents of ours."""
    place = _place(git, branch)
    if place is None:
        require_forward(git, branch, git.commit_of(f"refs/heads/{branch}"), commit)
    elif _noted(place, branch) is None:
        old = git.commit_of(f"refs/heads/{branch}")
        with scratch_index(place.own / "index") as index:
            require_possible(place, index, branch, old, commit)
            require_clean(place, index, old, changes_between(git, old, commit), besides)


def is_begun(git: Git, branch: str) -> bool:
    """Whether an update of the checkout of `branch` was begun and not finished."""
    place = _place(git, branch)
    if place is None:
        return False
    return _noted(place, branch) is not None or _says_ours(place.own / "index.lock")


def update(git: Git, branch: str, commit: str, besides: Collection[str] = ()) -> CheckoutChange:
    """Move `branch` forward to `commit`, with the files of the checkout that is on it, if there is one."""
    was = git.commit_of(f"refs/heads/{branch}")
    place = _place(git, branch)
    if place is None:
        require_forward(git, branch, was, commit)
        if was != commit and not git.move_ref(f"refs/heads/{branch}", commit, was):
            raise _moved(branch)
        return CheckoutChange(place="", was=was, now=commit, files=0)
    try:
        with _locked(place):
            if begun := _noted(place, branch):
                was = begun.old
                _finish(git, place, begun, besides)
            _bring(git, place, branch, commit, besides)
    except OSError as error:
        raise RefusedByGate(f"cannot update `{place.path}`: {error.strerror or error}") from error
    return CheckoutChange(
        place=str(place.path), was=was, now=commit, files=len(changes_between(git, was, commit))
    )


def _bring(git: Git, place: Place, branch: str, commit: str, besides: Collection[str]) -> None:
    old = git.commit_of(f"refs/heads/{branch}")
    if old == commit:
        return
    changes = changes_between(git, old, commit)
    with scratch_index(place.own / "index") as index:
        require_possible(place, index, branch, old, commit)
        require_clean(place, index, old, changes, besides)
        begun = Begun(branch=branch, old=old, new=commit)
        note = _note(place)
        write_atomically(note, msgspec.json.encode(begun))
        _carry_out(git, place, index, begun, note)


def _finish(git: Git, place: Place, begun: Begun, besides: Collection[str]) -> None:
    """Take up an update that was begun: take back what it had done to the files, and do it again."""
    changes = changes_between(git, begun.old, begun.new)
    require_no_operation(place)
    note = _note(place)
    if is_clean(place, git.commit_of(f"refs/heads/{begun.branch}"), changes, besides):
        note.unlink()  # it had not changed anything yet, or all of it, or was put right by hand
        return
    with scratch_index(place.own / "index") as index:
        require_clean(place, index, begun.old, changes, besides, half_done=True)
        for change in reversed(changes):  # what is in a directory before the directory
            _take_back(place, change)
        _carry_out(git, place, index, begun, note)


def _carry_out(git: Git, place: Place, index: Path, begun: Begun, note: Path) -> None:
    """The files, then the branch, then the index: until that is there, nobody can commit anything here."""
    ref = f"refs/heads/{begun.branch}"
    try:
        _switch(place, index, begun.old, begun.new)
        moved = git.ref(ref) == begun.new or place.git.move_ref(ref, begun.new, begun.old)
        if not moved:
            _switch(place, index, begun.new, begun.old)
    except GitFailed as error:
        raise _stopped(git, place, begun, note, error) from error
    if moved:
        _install(index, place.own / "index")
    note.unlink()
    if not moved:
        raise _moved(begun.branch)


def _switch(place: Place, index: Path, old: str, new: str) -> None:
    place.git.run("read-tree", "-m", "-u", old, new, work_tree=place.path, index=index)


def _install(index: Path, place: Path) -> None:
    """Put a new index in the place of the old one, with its time, as a crash leaves one or the other."""
    written = index.stat()
    temporary = place.with_name(f"planforge-{os.getpid()}.index")
    with temporary.open("wb") as file:
        file.write(index.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    os.utime(temporary, ns=(written.st_atime_ns, written.st_mtime_ns))
    temporary.replace(place)


def _moved(branch: str) -> RefusedByGate:
    return RefusedByGate(f"`{branch}` moved meanwhile", Advice("run {} again", Action("land")))


def _stopped(git: Git, place: Place, begun: Begun, note: Path, error: GitFailed) -> RefusedByGate:
    """What git refused; the note goes unless git had begun to change files."""
    if is_clean(place, begun.old, changes_between(git, begun.old, begun.new)):
        note.unlink()
        return RefusedByGate(f"`{place.path}` cannot be updated: {error.message}")
    again = Advice("fix that, then run {} again", Action("land", update_checkout=True))
    return RefusedByGate(f"the update of `{place.path}` stopped half-way: {error.message}", again)


def _take_back(place: Place, change: Difference) -> None:
    full = place.path / os.fsdecode(change.path)
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(full.lstat().st_mode):
            for directory, _, _ in os.walk(full, topdown=False):
                with suppress(OSError):  # something is in it
                    Path(directory).rmdir()
        elif is_ours(place, change):
            full.unlink()


# The checkout, its lock, and the note


def _place(git: Git, branch: str) -> Place | None:
    """The one checkout that is on the branch, if any is."""
    found = using(git, f"refs/heads/{branch}")
    if len(found) > 1:
        names = listed([os.fsencode(place.path) for place in found])
        raise RefusedByGate(f"`{branch}` is checked out in several places: {names}")
    if found and not found[0].path.is_dir():
        gone = found[0].path
        raise RefusedByGate(
            f"`{branch}` is checked out in `{gone}`, which is gone", "run `git worktree prune`"
        )
    return found[0] if found else None


@contextmanager
def _locked(place: Place) -> Iterator[None]:
    """Keep every other git from changing the index; a lock that an update left when it died is taken over."""
    lock = place.own / "index.lock"
    own = lock.with_name(f"planforge-{os.getpid()}.lock")
    own.write_bytes(OURS)
    try:
        os.link(own, lock)  # with its content, or not at all
    except FileExistsError:
        if not _says_ours(lock):
            hint = "wait for it; if none is, remove that file"
            raise Locked(f"another git command is at work in `{place.path}` (`{lock}`)", hint) from None
    finally:
        own.unlink()
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _says_ours(lock: Path) -> bool:
    with suppress(OSError):
        return lock.read_bytes() == OURS
    return False


def _note(place: Place) -> Path:
    return place.own / "planforge-update.json"


def _noted(place: Place, branch: str) -> Begun | None:
    """The update of this checkout that was begun and not finished."""
    try:
        begun = msgspec.json.decode(_note(place).read_bytes(), type=Begun)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    return begun if begun.branch == branch else None
