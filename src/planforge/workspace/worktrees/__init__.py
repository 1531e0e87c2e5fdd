"""
Worktrees that agents and checks work in, made at an explicit commit and never lost.

A worktree lies in `.planforge/worktrees/<run>/<name>`, on a branch of its own,
`planforge/work/<run>/<name>`. Before the directory goes, what an agent left in it
and every commit that it made are kept under `refs/planforge/archive/<run>/…`; what
git cannot or must not hold goes into `.planforge/quarantine`. The person's own
checkout is never written to.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from planforge.errors import GitFailed, SecretFound
from planforge.kernel.effects import Checkout, Patch
from planforge.kernel.locks import held
from planforge.kernel.objects import write_atomically
from planforge.workspace.archive import Archive, free, refs, slug
from planforge.workspace.archive.quarantine import Quarantine
from planforge.workspace.git import Git, checkouts, patches
from planforge.workspace.git.objects import NAME
from planforge.workspace.keeping import Keeping, Leaving, contents, directories, entries, leftovers
from planforge.workspace.keeping.contents import Finder
from planforge.workspace.keeping.leftovers import Opened

FRESH = "check-"
"""How the names of checkouts begin in which checks run."""
GONE = ".gone-"
"""…and those of directories that are being removed."""
TRIES = 5


@contextmanager
def changing(git: Git) -> Iterator[None]:
    """Hold the lock under which worktrees, and the refs that keep them, change: one for the repository."""
    with held(git.git_dir / "planforge-worktrees.lock", "a change of worktrees", wait=True):
        yield


class Worktrees:
    """
    The worktrees of one run.

    Given a finder of secrets, no file in which it finds one gets into git from a worktree that is
    put away.
    """

    def __init__(self, git: Git, state: Path, run: str, *, secret: Finder | None = None) -> None:
        self._git = git
        self._directory = state / "worktrees" / run
        self._archive = Archive(git, run)
        self._keeping = Keeping(git, self._archive, Quarantine(state, run), secret)
        self._secret = secret
        self._commits: set[str] = set()
        self.not_kept: list[str] = []
        """What could not be kept in the archive, and what became of it instead."""

    def path(self, name: str) -> Path:
        """Where the worktree `name` is or would be."""
        if not name or name.startswith((".", FRESH)) or "/" in name:
            raise GitFailed(f"`{name}` cannot name a worktree")
        return self._directory / name

    def opened(self, name: str) -> Opened | None:
        """What was noted when the worktree was made, if the note is to be believed."""
        with suppress(OSError, UnicodeDecodeError):
            commit, _, rest = self._note(name).read_text().partition("\n")
            if not self._is_commit(commit):
                return None
            with suppress(msgspec.DecodeError):
                opened = msgspec.json.decode(rest, type=Opened)
                if opened.commit == commit and (
                    not opened.branch or opened.branch.startswith(self._stem(name))
                ):
                    return opened
            return Opened(commit=commit)
        return None

    def _is_commit(self, name: str) -> bool:
        """Whether a commit exists; a positive answer is cached."""
        if name not in self._commits and NAME.fullmatch(name) and self._git.ref(f"{name}^{{commit}}") == name:
            self._commits.add(name)
        return name in self._commits

    def open(self, name: str, commit: str) -> Checkout:
        """Make the worktree `name` at `commit`; one that is there already is archived and made anew."""
        commit = self._git.commit_of(commit)
        path = self.path(name)
        with changing(self._git):
            gone = self._put_away(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            opened = self._begin(name, commit)
            self._add(path, opened.branch.removeprefix("refs/heads/"))
            entry = next((found.name for found in entries.at(self._git, path)), "")
            self._write_note(name, msgspec.structs.replace(opened, entry=entry, ready=True))
        _remove_all(gone)
        return Checkout(commit=commit, tree=self._git.tree_of(commit))

    def close(self, name: str) -> None:
        """Remove the worktree `name`, archiving it first."""
        self.path(name)
        with changing(self._git):
            gone = self._put_away(name)
        _remove_all(gone)

    def tree(self, name: str) -> str:
        """The tree of everything in the worktree that git does not ignore."""
        path, opened = self.path(name), self.opened(name)
        if opened is None or path.is_symlink():
            raise GitFailed(f"`{path}` is not the worktree that was made there")
        found: list[object] = []

        def search(path: str, content: bytes) -> Sequence[object]:
            seen = self._secret(path, content) if self._secret else ()
            found.extend(seen)
            return seen

        finder = search if self._secret else None
        tree = contents.take(self._git, path, opened.commit, secret=finder).tree
        if found:
            shown = ", ".join(map(str, found[:3])) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
            raise SecretFound(f"it holds what looks like a secret: {shown}")
        return tree

    def commit(self, name: str, parent: str, message: str, label: str, at: str) -> Patch:
        """Commit what is in the worktree on top of `parent` and keep it as `label`."""
        return self.keep(self.tree(name), parent, message, label, at)

    def keep(self, tree: str, parent: str, message: str, label: str, at: str) -> Patch:
        """Commit `tree` on top of `parent` and keep it as `label`, whatever becomes of it."""
        commit = self._git.commit_tree(tree, [parent], message, at)
        with changing(self._git):
            self._archive.keep([(label, commit)])
        return patches.patch(self._git, commit, tree, parent)

    def rebase(self, commit: str, onto: str, label: str, at: str) -> Patch:
        """Make the change of `commit` on top of `onto` without any work tree."""
        return patches.rebase(
            self._git, commit, onto, lambda tree, message: self.keep(tree, onto, message, label, at)
        )

    def make_fresh(self, commit: str) -> Path:
        """A checkout of `commit` that nobody has worked in."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix=FRESH, dir=self._directory))
        try:
            with changing(self._git):
                self._add(path, commit, "--detach")
        except BaseException:
            self.discard(path)
            raise
        return path

    def discard(self, checkout: Path) -> None:
        """Remove a checkout that `make_fresh` made; nobody has worked in it."""
        with changing(self._git):
            gone = self._take_away(checkout)
        _remove_all(gone)

    def discard_checks(self) -> None:
        """Remove the fresh checkouts that a process which died has left."""
        for path in self.left():
            if path.name.startswith(FRESH):
                self.discard(path)

    def sweep(self) -> None:
        """Remove every worktree of this run, archiving what agents left in them."""
        self.discard_checks()
        for path in self.left():
            if not path.name.startswith(FRESH):
                self.close(path.name)
        self._put_away_branches()
        self.forget()

    def forget(self) -> None:
        """Remove the directory of this run if it is empty."""
        for trash in (*self._directory.glob(f"{GONE}*"), *self._directory.glob(".*.part")):
            _remove_all([trash])
        with suppress(OSError):  # something that is not ours lies there
            self._directory.rmdir()

    def left(self) -> list[Path]:
        """The worktrees of this run that have left files, an entry of git's, or a note of ours."""
        found = {path for path in self._directory.glob("[!.]*") if path.is_dir()}
        found |= {path.with_name(path.name[1:-5]) for path in self._directory.glob(".?*.base")}
        ours = self._directory.resolve()
        found |= {
            self._directory / place.name for _, place in checkouts.entries(self._git) if place.parent == ours
        }
        return sorted(found)

    # The note beside a worktree

    def _note(self, name: str) -> Path:
        return self._directory / f".{name}.base"

    def _write_note(self, name: str, opened: Opened) -> None:
        # The commit in a line of its own, so that it can be read whatever is the matter with the rest.
        body = msgspec.json.encode(opened)
        write_atomically(self._note(name), opened.commit.encode() + b"\n" + body)

    def _stem(self, name: str) -> str:
        return f"{self._archive.work}/{slug(name)}"

    def _own(self, name: str, known: Iterable[str]) -> list[str]:
        """The branches that were made for the worktree `name`."""
        stem = self._stem(name)
        return [ref for ref in known if ref == stem or re.fullmatch(re.escape(stem) + r"\.\d+", ref)]

    # Making

    def _begin(self, name: str, commit: str) -> Opened:
        """Give the worktree a branch, and see to it that where it begins is never lost."""
        for _ in range(TRIES):
            there = refs(self._git)
            taken = {ref: found for ref, found in there.items() if ref in self._own(name, there)}
            # A branch of ours that somebody has checked out elsewhere is theirs now.
            taken |= dict.fromkeys(self._own(name, entries.checked_out(self._git, [])), "elsewhere")
            branch = free(taken, self._stem(name), commit="")
            base = free(there, f"{self._archive.bases}/{slug(name)}", commit)
            opened = Opened(
                commit=commit,
                branch=branch,
                ready=False,
                at=datetime.now(UTC).isoformat(),
                refs=leftovers.of_the_person(there),
                stashes=leftovers.stashes(self._git),
            )
            self._write_note(name, opened)
            if self._archive.change(create={branch: commit} | ({} if base in there else {base: commit})):
                return opened
        raise GitFailed(f"cannot make a branch for worktree `{name}`: somebody else keeps taking its name")

    def _add(self, path: Path, revision: str, *options: str) -> None:
        self._git.run("worktree", "add", "--quiet", "--force", *options, str(path), revision)

    # Putting away

    def _put_away(self, name: str) -> list[Path]:
        """Archive the worktree, then move it away; returns the directories that remain to be deleted."""
        path = self.path(name)
        for _ in range(TRIES):
            leaving = self._leaving(name)
            if leaving is None:
                return []
            self.not_kept += [said for said in self._keeping.keep(leaving) if said not in self.not_kept]
            elsewhere = entries.checked_out(self._git, entries.at(self._git, path))
            gone = self._take_away(path)
            delete = {ref: leaving.refs[ref] for ref in leaving.own if ref not in elsewhere}
            if not delete or self._archive.change(create={}, delete=delete):
                self._note(name).unlink(missing_ok=True)
                return gone
            _remove_all(gone)  # its branch moved meanwhile, so there is something new to keep
        raise GitFailed(f"somebody keeps working on the branch of worktree `{name}`")

    def _put_away_branches(self) -> None:
        """Keep and delete branches of this run that belong to no worktree any more."""
        with changing(self._git):
            there = refs(self._git)
            elsewhere = entries.checked_out(self._git, [])
            for ref in there:
                if ref.startswith(f"{self._archive.work}/") and ref not in elsewhere:
                    name = ref.removeprefix(f"{self._archive.work}/")
                    leaving = Leaving(
                        name=name, directories=(), places=(), own=(ref,), opened=None, refs=there
                    )
                    self.not_kept += self._keeping.keep(leaving)
                    self._archive.change(create={}, delete={ref: there[ref]})

    def _leaving(self, name: str) -> Leaving | None:
        """Everything that belongs to a worktree; `None` if nothing is left of it."""
        path, there = self.path(name), refs(self._git)
        places, own = entries.at(self._git, path), self._own(name, there)
        noted = self._note(name).exists()
        if not (places or own or noted or os.path.lexists(path)):
            return None
        opened = self.opened(name)
        moved = entries.moved(self._git, opened.entry, path) if opened else None
        if moved and opened:
            places.append(self._git.git_dir / "worktrees" / opened.entry)
        return Leaving(
            name=name,
            directories=tuple(place for place in (path, moved) if place and _is_directory(place)),
            places=tuple(places),
            own=tuple(own),
            opened=opened,
            refs=there,
        )

    def _take_away(self, path: Path) -> list[Path]:
        """
        Remove git's entry for `path` and move it away; returns the directories to be deleted.

        A directory gets another name first: of one that is half removed when we die, the rest
        would look as if an agent had left it so.
        """
        gone = []
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            trash = path.with_name(f"{GONE}{os.urandom(8).hex()}")
            try:
                path.rename(trash)
            except OSError:
                directories.remove(path)
            else:
                gone = [trash]
        for entry in entries.at(self._git, path):
            directories.remove(entry)
        return gone


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _remove_all(paths: Iterable[Path]) -> None:
    for path in paths:
        if _is_directory(path):
            directories.remove(path)
        else:
            path.unlink(missing_ok=True)
