"""
What must hold when an agent's attempt is over, whatever the agent says.

It is where it was put, on top of what it was given, and has changed nothing but its
worktree. `Watch.take` looks before, `Watch.problems` after. Where a sandbox confined
the agent, this finds what slipped through; where none could, it is the only guard
there is, and finds accidents and clumsy attacks: an agent that is out to deceive and
that nothing confines can put most traces right again.

Two sorts of changes are told apart. Nobody changes settings, hooks and the like while
an attempt runs, so such a change is always a problem. The person's files and branches
may be changed by the person: that is no problem where the sandbox kept the agent from
them, or where the settings allow it, and one that says so where neither is the case.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from planforge.errors import GitFailed, PlanforgeError
from planforge.kernel.directories import walk
from planforge.workspace.files import beneath, links
from planforge.workspace.files.links import Inode, Leading
from planforge.workspace.git import Git
from planforge.workspace.git.checkouts import ignored
from planforge.workspace.git.objects import NAME, entries, shown
from planforge.workspace.watch import guarded_files, snapshots
from planforge.workspace.watch.snapshots import Difference, Snapshot
from planforge.workspace.watch.surroundings import Seen, Surroundings

OURS = ("refs/planforge/", "refs/heads/planforge/")
KEPT = "refs/planforge/archive/"
REPLACED = "refs/replace/"
PER_WORKTREE = ("refs/bisect/", "refs/rewritten/", "refs/worktree/")

HEAD_BYTES = 4096

SHOWN = 10
"""How many changes of one kind are told one by one."""

COMPARED_BYTES = 1024 * 1024
COMPARED_FILES = 50
"""Which of the person's files are compared with what the agent wrote: so many, each up to so large."""

HINT = 'if it was you: `own_changes = "allow"` under `[workspace]` in planforge.toml'


class Watch:
    """One worktree, and everything else that an agent in it has no business with."""

    def __init__(
        self,
        git: Git,
        worktree: Path,
        name: str = "",
        branch: str | None = None,
        *,
        base: str,
        state: Path,
        written: Sequence[str] = (),
        copied: Sequence[str] = (),
        confined: bool = False,
        allowed: bool = False,
    ) -> None:
        """
        Watch an attempt that starts in `worktree` at `base`, on `branch` or detached.

        `written` are paths of the checkout that Planforge itself writes, such as that of the plans; `copied`
        is what was brought into the worktree and must not be committed. `confined` means that a sandbox lets
        the agent write nowhere else, `allowed` that the person may change their checkout meanwhile.
        """
        self._git = git
        self._worktree = worktree.resolve()
        self._name = name or worktree.name
        self._branch = f"refs/heads/{branch.removeprefix('refs/heads/')}" if branch else ""
        self._base = base
        self._state = state.resolve()
        self._copied = [os.fsencode(path) for path in copied]
        self._confined = confined
        self._excused = confined or allowed
        self._around = Surroundings(git, worktree, state, written=written, checkouts=not confined)
        self._before: Seen | None = None
        self.notes: tuple[str, ...] = ()
        """What changed meanwhile and is not laid to the agent; known after `problems`."""

    def take(self) -> None:
        """Look how things are, before the agent starts."""
        self._before = self._around.look()

    def problems(self) -> tuple[str, ...]:
        """What does not hold, a sentence each. To be asked when the agent has ended."""
        before = self._before
        assert before is not None, "`take` comes first"
        told: list[str] = []
        theirs: list[str] = []
        try:
            now = self._around.look(before)
            told += self._repository(before, now)
            told += self._entries(before, now)
            told += self._own_state(before, now)
            if now.broken:
                raise GitFailed(now.broken)
            told += self._worktree_itself(before, now)
            theirs += self._persons_refs(before, now)
            changed = {place: self._changed(place, before, now) for place in before.checkouts}
            told += self._leaked(changed)
            theirs += self._persons_files(changed)
            told += self._links(now)
        except (PlanforgeError, OSError) as error:
            said = (
                error.message if isinstance(error, PlanforgeError) else f"{error.strerror}: {error.filename}"
            )
            told.append(f"the repository cannot be looked at any more: {said}")
        if self._excused:
            self.notes = tuple(theirs)
            return tuple(told)
        return (*told, *(f"{text}, and no sandbox kept the agent from it ({HINT})" for text in theirs))

    # What is always a problem

    def _repository(self, before: Seen, now: Seen) -> Iterator[str]:
        if before.repository != now.repository:
            yield f"`{self._git.git_dir}` is not the directory any more that it was"
        changes = [
            (f"{self._git.git_dir}/{path}", how)
            for path, how in guarded_files.changed(before.marks, now.marks)
        ]
        yield from _told(changes, "which decides what git does")
        for name, meaning in before.refs.items():
            if name.startswith(KEPT) and now.refs.get(name) != meaning and not now.broken:
                yield f"`{name}`, which keeps work, was moved or removed while the attempt ran"
        for name in now.refs.keys() - before.refs.keys():
            if name.startswith(REPLACED):
                yield f"`{name}` appeared while the attempt ran; it has git show one object for another"

    def _entries(self, before: Seen, now: Seen) -> Iterator[str]:
        """What git has on worktrees. Names of ours are given to others of ours."""
        ours = self._around.is_ours
        for name in sorted(before.entries.keys() & now.entries.keys()):
            old, new = before.entries[name], now.entries[name]
            moving = ours(old.place) and ours(new.place) and old.place != str(self._worktree)
            for file, how in guarded_files.changed(old.marks, new.marks):
                if not (moving and file == "gitdir"):
                    path = f"{self._git.git_dir}/worktrees/{name}/{file}"
                    yield f"`{path}`, which says where a worktree belongs, {how} while the attempt ran"
            if old.place == new.place and old.link and new.link and old.link != new.link:
                yield f"`{new.place}/.git` is not what git wrote there any more"

    def _own_state(self, before: Seen, now: Seen) -> Iterator[str]:
        for path, how in guarded_files.changed(before.state, now.state):
            yield f"`{self._state}/{path}` {how} while the attempt ran"
        for change in snapshots.differences(before.objects, now.objects):
            name = change.path.rpartition(b"/")[2]
            if change.how != "appeared" and not name.startswith(b"."):
                yield f"`{self._state}/objects/{shown(change.path)}` {change.how} while the attempt ran"
        for path in sorted(now.strays - before.strays):
            yield f"`{shown(path)}` appeared while the attempt ran; it is not in the worktree"

    # The worktree itself

    def _worktree_itself(self, before: Seen, now: Seen) -> Iterator[str]:
        entry = next((name for name, e in before.entries.items() if e.place == str(self._worktree)), None)
        if entry is None or entry not in now.entries:
            yield f"git has no entry for the worktree `{self._worktree}` any more"
            return
        if not guarded_files.mark(self._worktree / ".git"):
            yield f"`{self._worktree}/.git` disappeared while the attempt ran"
        if before.entries[entry].marks == now.entries[entry].marks:
            yield from self._position(self._git.git_dir / "worktrees" / entry, now.refs)
        if self._worktree.is_symlink() or not self._worktree.is_dir():
            yield f"`{self._worktree}` is no directory any more"
        elif self._copied:
            safe = ignored(self._git, self._worktree, self._copied)
            for path in self._copied:
                if path not in safe and os.path.lexists(os.fsencode(self._worktree) + b"/" + path):
                    yield f"`{shown(path)}` was copied from your checkout and is not ignored any more"

    def _position(self, entry: Path, refs: Mapping[str, str]) -> Iterator[str]:
        """Where the worktree's HEAD is, read from git's own directory for it, which was found unchanged."""
        try:
            said = beneath.read(entry, "HEAD", HEAD_BYTES).decode("utf-8", "surrogateescape").strip()
        except OSError as error:
            said = f"not to be read ({error.strerror})"
        branch = said.removeprefix("ref: ") if said.startswith("ref: ") else ""
        if branch != self._branch:
            expected = f"on `{self._branch}`" if self._branch else "detached"
            yield f"the worktree `{self._name}` is on `{shown(branch or 'no branch')}`, not {expected}"
        found = refs.get(branch, "").partition(" ")[0] if branch else said
        if self._confined and found == self._base:  # which it cannot have taken away
            return
        if not NAME.fullmatch(found) or self._git.ref(f"{found}^{{commit}}") is None:
            yield f"the HEAD of the worktree `{self._name}` is no commit any more"
            return
        query = ("merge-base", "--is-ancestor", self._base, found)
        if self._git.run(*query, accept=(0, 1, 128)).returncode:
            yield (
                f"the worktree `{self._name}` is at {found[:12]}, which does not build on "
                f"{self._base[:12]} that it was given"
            )

    # What may have been the person

    def _persons_refs(self, before: Seen, now: Seen) -> Iterator[str]:
        passed_over = (*OURS, *PER_WORKTREE, REPLACED)
        changes = guarded_files.changed(before.refs, now.refs)
        theirs = [(name, how) for name, how in changes if not name.startswith(passed_over)]
        yield from _told([(name, "was moved" if how == "was changed" else how) for name, how in theirs])
        if before.head != now.head:
            yield f"`{self._git.git_dir}/HEAD` was changed while the attempt ran"
        ours = self._around.is_ours
        for name in before.entries.keys() ^ now.entries.keys():
            place = (before.entries.get(name) or now.entries[name]).place
            if not ours(place):
                how = "appeared" if name in now.entries else "disappeared"
                yield f"the worktree `{place}` {how} while the attempt ran"

    def _changed(self, place: str, before: Seen, now: Seen) -> list[Difference]:
        """What changed in a checkout, without ignored files in subdirectories."""
        old, new = before.checkouts[place], now.checkouts[place]
        if before.locks.get(place) != now.locks.get(place) or self._was_removed(place, before, now):
            return []
        found = list(snapshots.differences(old, new))
        lower = [change.path for change in found if b"/" in change.path]
        tops = [change.path + b"/" for change in found if _is_directory(change, old, new)]
        unminded = (
            ignored(self._git, Path(place), [*lower, *tops]) if found and Path(place).is_dir() else set()
        )
        return [
            change
            for change in sorted(found)
            if change.path not in unminded and change.path + b"/" not in unminded
        ]

    def _was_removed(self, place: str, before: Seen, now: Seen) -> bool:
        """Whether a worktree was removed properly, together with what git has on it."""
        known = {entry.place for entry in before.entries.values()}
        return place in known and place not in {entry.place for entry in now.entries.values()}

    def _persons_files(self, changed: dict[str, list[Difference]]) -> Iterator[str]:
        for place, changes in changed.items():
            yield from _told([(f"{place}/{os.fsdecode(change.path)}", change.how) for change in changes])

    def _leaked(self, changed: dict[str, list[Difference]]) -> Iterator[str]:
        """The person's files that now have a content which the agent wrote in its worktree."""
        for place, changes in changed.items():
            for change in changes[:COMPARED_FILES]:
                if change.how != "disappeared" and self._is_agents(place, change.path):
                    yield f"`{place}/{shown(change.path)}` got what the agent wrote in its worktree"

    def _is_agents(self, place: str, path: bytes) -> bool:
        try:
            theirs = beneath.read(Path(place), path, COMPARED_BYTES)
            if not theirs or theirs != beneath.read(self._worktree, path, COMPARED_BYTES):
                return False
        except OSError:
            return False
        query = ("cat-file", "blob", f"{self._base}:{os.fsdecode(path)}")
        was = self._git.run(*query, accept=(0, 128))
        return was.returncode != 0 or was.stdout != theirs

    # Links

    def _links(self, now: Seen) -> Iterator[str]:
        found = links.leading_out(self._worktree)
        for path in found.unread:
            yield f"`{shown(path)}` in the worktree cannot be looked into"
        if not found.complete:
            yield f"the worktree holds more than {links.MOST} files, too many to look at"
        if not found.leading:
            return
        paths = [link.path for link in found.leading]
        harmless = ignored(self._git, self._worktree, paths) if self._worktree.is_dir() else set()
        given = self._given()
        holds = self._holding(now) if any(not link.to for link in found.leading) else set()
        told = [link for link in found.leading if self._matters(link, harmless, given, holds)]
        for link in told[:SHOWN]:
            how = f"leads out of it to `{shown(link.to)}`" if link.to else "shares a file with the outside"
            yield f"`{shown(link.path)}` in the worktree {how}"
        if len(told) > SHOWN:
            yield f"{len(told) - SHOWN} more links in the worktree lead out of it"

    def _matters(
        self, link: Leading, harmless: set[bytes], given: dict[bytes, str], holds: set[Inode]
    ) -> bool:
        """
        Whether a link that leads out is a problem.

        One that came with the commit is not. One that git ignores is not committed and usual for
        interpreters and package stores, as long as it does not lead to what must not be changed.
        """
        if link.to and link.path in given:
            leads_to = os.readlink(os.fsencode(self._worktree) + b"/" + link.path)  # noqa: PTH115  (bytes)
            known = self._git.run("hash-object", "--stdin", stdin=leads_to).stdout.decode().strip()
            return known != given[link.path]
        guards = [os.fsencode(path) for path in (self._git.top, self._git.git_dir, self._state)]
        inside = any(link.to == guard or link.to.startswith(guard + b"/") for guard in guards)
        return inside or link.inode in holds or link.path not in harmless

    def _given(self) -> dict[bytes, str]:
        """The symbolic links that the commit has, with the names of their contents."""
        found = entries(self._git, self._base)
        return {entry.path: entry.blob for entry in found if entry.link}

    def _holding(self, now: Seen) -> set[Inode]:
        """The files that must not be changed; only asked where the worktree shares a file with somebody."""
        others = {Path(entry.place) for entry in now.entries.values()} - {self._worktree}
        tops = {self._git.top, self._git.git_dir, self._state, *map(Path, now.checkouts), *others}
        return {inode for top in tops for inode in _inodes(top, besides=self._state / "worktrees")}


def _inodes(top: Path, besides: Path) -> Iterator[Inode]:
    for parent, names, files in walk(top):
        names[:] = [name for name in names if Path(parent, name) != besides]
        for file in files:
            with suppress(FileNotFoundError):
                status = Path(parent, file).lstat()
                yield status.st_dev, status.st_ino


def _is_directory(change: Difference, old: Snapshot, new: Snapshot) -> bool:
    return (new.entries.get(change.path) or old.entries.get(change.path)) == snapshots.DIRECTORY


def _told(changes: Sequence[tuple[str, str]], why: str = "") -> Iterable[str]:
    for path, how in changes[:SHOWN]:
        yield f"`{shown(path)}`{f', {why},' if why else ''} {how} while the attempt ran"
    if len(changes) > SHOWN:
        yield f"{len(changes) - SHOWN} more next to `{changes[0][0]}` changed while the attempt ran"
