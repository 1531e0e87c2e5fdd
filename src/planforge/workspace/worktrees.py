"""
Worktrees that agents and checks work in, made at an explicit commit and never lost.

A worktree lies in `.planforge/worktrees/<run>/<name>` and is detached, so no branch
of anybody's moves. What an agent leaves in it is committed to
`refs/planforge/archive/<run>/…` before the directory goes. The person's own
checkout is never written to.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from planforge.errors import GitFailed
from planforge.kernel.effects import Checkout, Patch
from planforge.kernel.locks import held
from planforge.workspace.git import Git

ARCHIVE = "refs/planforge/archive"
FRESH = "check-"
PLAIN = ("--no-renames", "--no-ext-diff", "--no-textconv")
HASH = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
ODD = re.compile("[^A-Za-z0-9-]+")
EPOCH = "1970-01-01T00:00:00+00:00"


class Worktrees:
    """The worktrees of one run."""

    def __init__(self, git: Git, state: Path, run: str) -> None:
        self._git = git
        self._run = run
        self._directory = state / "worktrees" / run
        self._lock = state / "locks" / "worktrees.lock"

    def path(self, name: str) -> Path:
        """Where the worktree `name` is or would be."""
        if not name or name.startswith((".", FRESH)) or "/" in name:
            raise GitFailed(f"`{name}` cannot name a worktree")
        return self._directory / name

    def open(self, name: str, commit: str) -> Checkout:
        """Make the worktree `name` at `commit`; one that is there already is archived and made anew."""
        commit = self._git.commit_of(commit)
        path = self.path(name)
        with held(self._lock, "a change of worktrees", wait=True):
            self._archive(name)
            self._remove(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._base(name).write_text(commit)
            self._add(path, commit)
        return Checkout(commit=commit, tree=self._git.tree_of(commit))

    def close(self, name: str) -> None:
        """Remove the worktree `name`, archiving it first."""
        path = self.path(name)
        with held(self._lock, "a change of worktrees", wait=True):
            self._archive(name)
            self._remove(path)
            self._base(name).unlink(missing_ok=True)

    def tree(self, name: str) -> str:
        """The tree of everything in the worktree that git does not ignore."""
        path, base = self.path(name), self._base_of(name)
        if base is None or path.is_symlink():
            raise GitFailed(f"`{path}` is not the worktree that was made there")
        return self._tree(path, base)

    def commit(self, name: str, parent: str, message: str, label: str, at: str) -> Patch:
        """Commit what is in the worktree on top of `parent` and keep it as `label`."""
        return self.keep(self.tree(name), parent, message, label, at)

    def keep(self, tree: str, parent: str, message: str, label: str, at: str) -> Patch:
        """Commit `tree` on top of `parent` and keep it as `label`, whatever becomes of it."""
        commit = self._git.commit_tree(tree, [parent], message, at)
        self._point(label, commit)
        files, changed_lines = self.changes(parent, commit)
        return Patch(commit=commit, tree=tree, parent=parent, files=files, changed_lines=changed_lines)

    def changes(self, old: str, new: str) -> tuple[tuple[str, ...], int]:
        """The paths that differ between two commits, and how many lines were added or removed."""
        output = self._git.run("diff-tree", "-r", "-z", "--numstat", *PLAIN, old, new).stdout
        files, lines = [], 0
        for record in output.split(b"\0"):
            if record:
                added, removed, path = record.split(b"\t", 2)
                lines += sum(int(count) for count in (added, removed) if count != b"-")
                files.append(path.decode("utf-8", "backslashreplace"))
        return tuple(sorted(files)), lines

    def hashes(self, old: str, new: str) -> tuple[tuple[str, str], ...]:
        """The paths that differ between two commits, each with the hash of its new content, if it has any."""
        output = self._git.run("diff-tree", "-r", "-z", "--raw", "--no-abbrev", *PLAIN, old, new).stdout
        parts = output.split(b"\0")
        found = []
        for meta, path in zip(parts[::2], parts[1::2], strict=False):
            hash_ = meta.split()[3].decode()
            found.append((path.decode("utf-8", "backslashreplace"), hash_.strip("0") and hash_))
        return tuple(sorted(found))

    def rebase(self, commit: str, onto: str, label: str, at: str) -> Patch:
        """Make the change of `commit` on top of `onto` without any work tree."""
        process = self._git.run(
            "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", onto, commit, accept=(0, 1)
        )
        tree, *conflicts = (
            part.decode("utf-8", "backslashreplace") for part in process.stdout.split(b"\0") if part
        )
        if process.returncode:
            parent = self._git.commit_of(f"{commit}^")
            files, lines = self.changes(parent, commit)
            kept = self._git.tree_of(commit)
            return Patch(
                commit=commit,
                tree=kept,
                parent=parent,
                files=files,
                changed_lines=lines,
                conflicts=tuple(conflicts),
            )
        _, _, message = self._git.run("cat-file", "commit", commit).stdout.partition(b"\n\n")
        return self.keep(tree, onto, message.decode("utf-8", "surrogateescape"), label, at)

    def make_fresh(self, commit: str) -> Path:
        """A checkout of `commit` that nobody has worked in."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix=FRESH, dir=self._directory))
        try:
            with held(self._lock, "a change of worktrees", wait=True):
                self._add(path, commit)
        except BaseException:
            self.discard(path)
            raise
        return path

    def discard(self, checkout: Path) -> None:
        """Remove a checkout that `make_fresh` made; there is nothing of anybody's in it."""
        with held(self._lock, "a change of worktrees", wait=True):
            self._remove(checkout)

    def discard_checks(self) -> None:
        """Remove the fresh checkouts that a process which died has left."""
        for path in self._left():
            if path.name.startswith(FRESH):
                self.discard(path)

    def sweep(self) -> None:
        """Remove every worktree of this run, archiving what agents left in them."""
        self.discard_checks()
        for path in self._left():
            if not path.name.startswith(FRESH):
                self.close(path.name)
        with suppress(OSError):  # something that is not ours lies there
            self._directory.rmdir()

    def _left(self) -> list[Path]:
        """The worktrees of this run of which something is left: files, git's entry, or our own."""
        found = {path for path in self._directory.glob("[!.]*") if path.is_dir()}
        found |= {path.with_name(path.name[1:-5]) for path in self._directory.glob(".?*.base")}
        ours = os.fsencode(self._directory.resolve())
        for _, place in self._entries():
            if os.path.dirname(place) == ours:  # noqa: PTH120  (bytes, which need not be text)
                found.add(self._directory / os.fsdecode(os.path.basename(place)))  # noqa: PTH119
        return sorted(found)

    def _base(self, name: str) -> Path:
        return self._directory / f".{name}.base"

    def _base_of(self, name: str) -> str | None:
        """The commit that the worktree `name` was made at, if that can be told."""
        with suppress(OSError, UnicodeDecodeError):
            text = self._base(name).read_text()
            return self._git.ref(f"{text}^{{commit}}") if HASH.fullmatch(text) else None
        return None

    def _tree(self, directory: Path, base: str | None, *, strict: bool = True) -> str:
        """
        The tree of a directory, whatever repositories an agent made in it.

        Git would take a repository inside the directory for a submodule, keep nothing of
        its files, and obey its settings. Its files are files like all others here. What
        is inside a submodule of the person's own is never looked at.
        """
        with self._scratch_index() as index:
            if base:  # starting from it keeps files that are tracked although they are ignored
                self._git.run("read-tree", base, index=index)
            known = self._git.run("ls-files", "--stage", "-z", index=index).stdout.split(b"\0")
            passed_over = [entry.split(b"\t", 1)[1] for entry in known if entry.startswith(b"160000 ")]
            listing = ("ls-files", "--others", "--exclude-standard", "-z")
            others = self._git.run(*listing, work_tree=directory, index=index).stdout.split(b"\0")
            nested = [entry.removesuffix(b"/") for entry in others if entry.endswith(b"/")]
            paths = [b".", *(b":(exclude,literal)" + path for path in (*passed_over, *nested))]
            self._git.run(
                *("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"),
                *(() if strict else ("--ignore-errors",)),
                work_tree=directory,
                index=index,
                stdin=b"\0".join(paths),
                accept=(0,) if strict else (0, 1),
            )
            for path in map(os.fsdecode, nested):
                tree = self._tree(directory / path, None, strict=strict)
                self._git.run("read-tree", f"--prefix={path}/", tree, index=index)
            return self._git.line("write-tree", index=index)

    def _archive(self, name: str) -> None:
        """Keep what is in the worktree, unless a commit that is kept already holds it."""
        path, base = self.path(name), self._base_of(name)
        if path.is_symlink() or not path.is_dir():
            return
        tree = self._tree(path, base, strict=False)
        kept = self._git.run("for-each-ref", "--format=%(tree)", f"{ARCHIVE}/{self._run}", "refs/heads")
        empty = not self._git.run("ls-tree", tree).stdout
        started = self._git.tree_of(base) if base else tree if empty else None
        if tree not in (started, *kept.stdout.decode().split()):
            parents = [base] if base else []
            commit = self._git.commit_tree(tree, parents, f"left in worktree {name} of {self._run}\n", EPOCH)
            self._point(f"{ODD.sub('-', name)}.left", commit)

    def _point(self, label: str, commit: str) -> None:
        """Keep `commit` under the first name of its own; a name once given is never moved."""
        for number in range(1, 1000):
            ref = f"{ARCHIVE}/{self._run}/{label}" + (f".{number}" if number > 1 else "")
            found = self._git.ref(ref)
            if found == commit or (found is None and self._git.move_ref(ref, commit, None)):
                return
        raise GitFailed(f"no free name to keep `{label}` under")

    def _add(self, path: Path, commit: str) -> None:
        self._git.run("worktree", "add", "--quiet", "--detach", "--force", str(path), commit)

    def _remove(self, path: Path) -> None:
        # Not `git worktree prune`, which would also forget worktrees of the person's own that are on a
        # disk not mounted now.
        ours = os.fsencode(path.parent.resolve() / path.name)
        for entry, place in self._entries():
            if place == ours:
                _remove_directory(entry)
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            _remove_directory(path)

    def _entries(self) -> Iterator[tuple[Path, bytes]]:
        """What git remembers of worktrees: its own directory for each, and where each lies."""
        for file in (self._git.git_dir / "worktrees").glob("*/gitdir"):
            with suppress(OSError):  # the person may remove one of theirs meanwhile
                yield file.parent, file.read_bytes().removesuffix(b"\n").removesuffix(b"/.git")

    @contextmanager
    def _scratch_index(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="planforge-index-") as directory:
            yield Path(directory) / "index"


def _remove_directory(path: Path) -> None:
    try:
        _open_up(path)
        for parent, names, _ in os.walk(path):
            for name in names:
                _open_up(Path(parent, name))
        shutil.rmtree(path)
    except OSError as error:
        raise GitFailed(f"cannot remove `{path}`: {error.strerror or error}") from error


def _open_up(directory: Path) -> None:
    """Take away what would keep us from removing what is in a directory, such as a module cache."""
    mode = directory.lstat().st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        directory.chmod(stat.S_IRWXU)
