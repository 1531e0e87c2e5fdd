"""
Removes what nobody needs any more, and only that.

A survey says what there is and whether it may go; removing looks again. Worktrees
are archived before they go. Work in the archive goes only when a branch or a tag
reaches it, or when the person asks for just that. Nothing of a run that is being
driven is touched, and nothing that is not ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import GitFailed
from planforge.workspace.archive import ARCHIVE, BASES, WORK, Archive, catalogue, quarantine, refs
from planforge.workspace.git import Git, checkouts
from planforge.workspace.keeping import directories, entries
from planforge.workspace.keeping.contents import Finder
from planforge.workspace.keeping.leftovers import beyond
from planforge.workspace.worktrees import FRESH, GONE, Worktrees, changing


class Standing(StrEnum):
    """How things are with a run."""

    ENDED = "ended"
    INTERRUPTED = "interrupted"
    """Nobody drives it, and it can be resumed."""
    DRIVEN = "driven"


class Kind(StrEnum):
    """What a thing is."""

    WORKTREE = "worktree"
    CHECKOUT = "checkout"
    """A fresh checkout for a check."""
    REMAINS = "remains"
    """Files of a worktree that was being removed."""
    BRANCH = "branch"
    ARCHIVE = "archive"
    BASE = "base"
    """The mark of where a worktree began."""
    QUARANTINE = "quarantine"
    HOME = "home"
    """The private home of an agent, which is not among what `survey` finds."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that could go."""

    kind: Kind
    name: str
    run: str
    goes: bool
    reason: str
    bytes: int = 0
    commit: str = ""
    unarchived: bool = False
    """It stays because it is kept nowhere else."""


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What the person wants to be rid of."""

    before: datetime | None = None
    """Archived work that is older than this may go, if it has landed."""
    archived: bool = False
    """…and also if it has not landed."""
    interrupted: bool = False
    """The worktrees of interrupted runs may go; when such a run is resumed, its attempt starts over."""


Standings = Callable[[str], Standing]
Moments = Callable[[str], datetime | None]
"""When a run was last heard of."""


def survey(git: Git, state: Path, standing: Standings, last: Moments, wishes: Wishes) -> list[Item]:
    """Everything that is there, and whether it goes."""
    found = [*_places(git, state, standing, wishes), *_branches(git, state, standing, wishes)]
    if (before := wishes.before) is not None:
        found += _archived(git, standing, last, before, also=wishes.archived)
        found += _quarantined(state, standing, before, also=wishes.archived)
        found += _bases(git, state, standing, last, before)
    return found


def _places(git: Git, state: Path, standing: Standings, wishes: Wishes) -> Iterator[Item]:
    for run in _runs(git, state):
        for path in Worktrees(git, state, run).left():
            kind = Kind.CHECKOUT if path.name.startswith(FRESH) else Kind.WORKTREE
            yield _place(kind, run, path, standing(run), wishes)
        for path in sorted((state / "worktrees" / run).glob(f"{GONE}*")):
            yield _place(Kind.REMAINS, run, path, standing(run), wishes)


def _runs(git: Git, state: Path) -> list[str]:
    """The runs that have worktrees of ours, also if only git remembers them."""
    home = (state / "worktrees").resolve()
    found = {path.name for path in home.glob("*") if path.is_dir() and not path.is_symlink()}
    found |= {path.parent.name for _, path in checkouts.entries(git) if path.parent.parent == home}
    return sorted(found)


def _place(kind: Kind, run: str, path: Path, standing: Standing, wishes: Wishes) -> Item:
    goes, reason = _of_run(run, standing, wishes)
    if standing is Standing.INTERRUPTED and kind is not Kind.WORKTREE:
        goes, reason = True, "left by a process that died"
    weight = 0 if path.is_symlink() else directories.size(path)
    return Item(kind=kind, name=f"{run}/{path.name}", run=run, goes=goes, reason=reason, bytes=weight)


def _of_run(run: str, standing: Standing, wishes: Wishes) -> tuple[bool, str]:
    if standing is Standing.DRIVEN:
        return False, f"`{run}` is being driven"
    if standing is Standing.INTERRUPTED and not wishes.interrupted:
        return False, f"`{run}` can be resumed; `--interrupted` starts its attempt over"
    return True, "archived first"


def _branches(git: Git, state: Path, standing: Standings, wishes: Wishes) -> Iterator[Item]:
    there = refs(git)
    elsewhere = _checked_out(git, state)
    for ref, commit in there.items():
        if not ref.startswith(f"{WORK}/"):
            continue
        run = ref.removeprefix(f"{WORK}/").partition("/")[0]
        goes, reason = _of_run(run, standing(run), wishes)
        unarchived = False
        if goes and ref in elsewhere:
            goes, reason = False, f"it is checked out in `{elsewhere[ref]}`"
        elif goes and not _has_worktree(state, ref) and (count := _unarchived(git, commit, there)):
            goes, unarchived = False, True
            reason = (
                f"{count} of its commits are archived nowhere; `git branch -D` it yourself if you are sure"
            )
        elif goes:
            reason = "everything on it is archived"
        name = ref.removeprefix("refs/heads/")
        yield Item(
            kind=Kind.BRANCH,
            name=name,
            run=run,
            goes=goes,
            reason=reason,
            commit=commit,
            unarchived=unarchived,
        )


def _checked_out(git: Git, state: Path) -> dict[str, str]:
    """The branches that are checked out in the person's own worktrees, and where."""
    home = (state / "worktrees").resolve()
    found = {entries.head(git.git_dir).removeprefix("ref: "): str(git.top)}
    for entry, path in checkouts.entries(git):
        if not path.is_relative_to(home):
            found[entries.head(entry).removeprefix("ref: ")] = str(path)
    return found


def _has_worktree(state: Path, ref: str) -> bool:
    """Whether a branch goes together with its worktree, which is archived then."""
    run, _, name = ref.removeprefix(f"{WORK}/").partition("/")
    return (state / "worktrees" / run / f".{name}.base").exists()


def _unarchived(git: Git, commit: str, there: dict[str, str]) -> int:
    known = {found for name, found in there.items() if not name.startswith(f"{WORK}/")}
    return len(beyond(git, [commit], known) or {})


def _archived(
    git: Git, standing: Standings, last: Moments, before: datetime, *, also: bool
) -> Iterator[Item]:
    """Work that is old enough; what has not landed goes if that is `also` asked for."""
    for work in catalogue.everything(git):
        if not _is_old(datetime.fromisoformat(work.at), last(work.run), before):
            continue
        goes, reason = False, "it has not landed"
        if standing(work.run) is not Standing.ENDED:
            reason = f"`{work.run}` has not ended"
        elif work.landed:
            goes, reason = True, "it has landed: a branch or a tag reaches it"
        elif also:
            goes, reason = True, "it has not landed, and you asked for that too"
        yield Item(
            kind=Kind.ARCHIVE, name=work.name, run=work.run, goes=goes, reason=reason, commit=work.commit
        )


def _is_old(at: datetime, heard: datetime | None, before: datetime) -> bool:
    """Whether work is older than asked for. An agent can date its commits; when its run ended is our word."""
    return max(at, heard or at) < before


def _quarantined(state: Path, standing: Standings, before: datetime, *, also: bool) -> Iterator[Item]:
    for found in quarantine.everything(state):
        if datetime.fromisoformat(found.held.at) < before:
            run = found.held.run
            goes = also and standing(run) is Standing.ENDED
            yield Item(
                kind=Kind.QUARANTINE,
                name=f"{run}/{found.directory.name}",
                run=run,
                goes=goes,
                reason="you asked for that too" if goes else "it is kept nowhere else",
                bytes=directories.size(found.directory),
            )


def _bases(git: Git, state: Path, standing: Standings, last: Moments, before: datetime) -> Iterator[Item]:
    """Marks that nothing needs: their runs ended long ago, and a branch or a tag reaches them."""
    there = refs(git, BASES)
    reached = catalogue.landed(git, there.values())
    for ref, commit in there.items():
        name = ref.removeprefix(f"{BASES}/")
        run = name.partition("/")[0]
        ended = standing(run) is Standing.ENDED and not (state / "worktrees" / run).exists()
        if ended and commit in reached and (last(run) or before) <= before:
            yield Item(
                kind=Kind.BASE, name=name, run=run, goes=True, reason="a branch reaches it", commit=commit
            )


def remove(git: Git, state: Path, item: Item, wishes: Wishes, secret: Finder | None = None) -> list[str]:
    """
    Remove one thing; raises `GitFailed` if it is not any more what the survey saw.

    What of a worktree the archive could not take is told, with where it is kept instead.
    """
    run, _, name = item.name.partition("/")
    worktrees = Worktrees(git, state, item.run, secret=secret)
    match item.kind:
        case Kind.WORKTREE:
            worktrees.close(name)
            worktrees.forget()
        case Kind.CHECKOUT:
            worktrees.discard(state / "worktrees" / run / name)
            worktrees.forget()
        case Kind.REMAINS:
            directories.remove(state / "worktrees" / run / name)
            worktrees.forget()
        case Kind.QUARANTINE:
            directories.remove(state / "quarantine" / run / name)
        case Kind.BRANCH | Kind.ARCHIVE | Kind.BASE:
            prefix = {Kind.BRANCH: "refs/heads", Kind.ARCHIVE: ARCHIVE, Kind.BASE: BASES}[item.kind]
            _delete(git, item, f"{prefix}/{item.name}", wishes)
    return worktrees.not_kept


def _delete(git: Git, item: Item, ref: str, wishes: Wishes) -> None:
    with changing(git):
        there = refs(git)
        if ref not in there and item.kind is Kind.BRANCH:
            return  # it went with its worktree
        asked = wishes.archived and item.kind is Kind.ARCHIVE
        if item.kind is Kind.BRANCH:
            safe = not _unarchived(git, item.commit, there)
        else:
            safe = asked or item.commit in catalogue.landed(git, [item.commit])
        if not safe or not Archive(git, item.run).change(create={}, delete={ref: item.commit}):
            raise GitFailed(
                f"`{item.name}` is not what it was a moment ago", Advice("look again: {}", Action("cleanup"))
            )
