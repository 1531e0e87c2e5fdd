"""
Brings files of the person's checkout into a worktree: those that git does not have.

Only what git ignores in both places is brought, so none of it can be committed. It is
copied, never linked, and neither place is left on the way: a link is brought as a link
if it stays inside, and not at all if it does not.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from planforge.errors import CannotPerform
from planforge.kernel.wording import counted
from planforge.workspace.files import copies
from planforge.workspace.files.beneath import Directory, parts_of
from planforge.workspace.git import Git
from planforge.workspace.git.checkouts import ignored, index_of
from planforge.workspace.git.objects import listed
from planforge.workspace.preparation import NEVER

INCLUDE = ".worktreeinclude"
PATTERNS_LIMIT = 256 * 1024
CACHE_FILES = 1_000_000
MEGABYTE = 1_000_000
SHOWN = 5


def included(git: Git, source: Path) -> list[bytes]:
    """The files of a checkout that its `.worktreeinclude` names and that git ignores there."""
    try:
        with Directory.at(source) as there:
            patterns = there.read(INCLUDE, PATTERNS_LIMIT)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CannotPerform(f"cannot read `{INCLUDE}`: {error.strerror}") from error
    with tempfile.NamedTemporaryFile(prefix="planforge-include-") as file:
        file.write(patterns)
        file.flush()
        listing = ("ls-files", "--others", "--ignored", f"--exclude-from={file.name}", "-z")
        output = git.run(*listing, work_tree=source, index=index_of(git, source)).stdout
    # A repository inside the checkout is listed as a directory, and is nobody's to copy.
    named = [path for path in output.split(b"\0") if path and not path.endswith(b"/")]
    named = [path for path in named if not NEVER & set(path.split(b"/"))]
    known = ignored(git, source, named)
    return [path for path in named if path in known]


class Copier:
    """From one checkout into one worktree."""

    def __init__(self, git: Git, source: Path, worktree: Path) -> None:
        self._git = git
        self._source = source
        self._worktree = worktree
        self.copied: list[str] = []
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        self._from = Directory.at(self._source)
        self._to = Directory.at(self._worktree)
        return self

    def __exit__(self, *_: object) -> None:
        self._from.close()
        self._to.close()

    def include(self, most_files: int, megabytes: int) -> None:
        """Bring what `.worktreeinclude` names."""
        named = included(self._git, self._source)
        if len(named) > most_files:
            raise CannotPerform(
                f"`{INCLUDE}` names {counted(len(named), 'file')} that git ignores, more than {most_files}",
                "name fewer of them, or raise `include_files` under `[workspace]` in planforge.toml",
            )
        size = sum(map(self._size, named))
        if size > megabytes * MEGABYTE:
            raise CannotPerform(
                f"`{INCLUDE}` names files of {size // MEGABYTE} MB together, more than {megabytes}",
                "name fewer of them, or raise `include_megabytes` under `[workspace]` in planforge.toml",
            )
        wanted = ignored(self._git, self._worktree, named)
        self._leave([path for path in named if path not in wanted], "not ignored at the worktree's commit")
        outcomes: dict[str, list[bytes]] = {}
        for path in named:
            if path in wanted:
                outcomes.setdefault(self._bring(path), []).append(path)
        brought = outcomes.pop("", [])
        self.copied += map(os.fsdecode, brought)
        if brought:
            self.notes.append(f"copied {listed(brought, SHOWN)} from your checkout")
        for why, paths in outcomes.items():
            self._leave(paths, why)

    def cache(self, path: str, megabytes: int) -> None:
        """Bring a directory of installed or built things."""
        place = b"/".join(parts_of(path))
        try:
            inside = self._from.enter(place)
        except OSError as error:
            self.notes.append(f"no `{path}` was copied: your checkout has none ({error.strerror})")
            return
        with inside:
            _require_movable(inside, path)
        if place + b"/" not in ignored(self._git, self._worktree, [place + b"/"]):
            raise CannotPerform(
                f"`{path}` in `workspace.caches` is not ignored by git, so its files would be committed",
                f"ignore it, or take `{path}` out of `caches` in planforge.toml",
            )

        def allow(files: int, octets: int) -> None:
            if files > CACHE_FILES or octets > megabytes * MEGABYTE:
                raise CannotPerform(
                    f"`{path}` is too large to copy for each worktree: {counted(files, 'file')} and "
                    f"{octets // MEGABYTE} MB so far, on a file system that does not share blocks",
                    "raise `cache_megabytes` under `[workspace]`, or install with `setup` instead",
                )

        done = copies.tree(self._from, self._to, place, allow)
        self.copied.append(path)
        how = f"{done.octets // MEGABYTE} MB written" if done.octets else "sharing its blocks"
        self.notes.append(f"copied `{path}` from your checkout: {counted(done.files, 'file')}, {how}")
        self._leave(done.left_out, "a link that leads out of the worktree")

    def _size(self, path: bytes) -> int:
        with suppress(OSError):
            return os.stat(path, dir_fd=self._from.handle, follow_symlinks=False).st_size
        return 0

    def _bring(self, path: bytes) -> str:
        """Bring one file; if that cannot be, why not."""
        parent, _, name = path.rpartition(b"/")
        try:
            with self._from.enter(parent or b".") as there, self._to.make(parent or b".") as here:
                status = os.stat(name, dir_fd=there.handle, follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode):
                    moved = copies.link(there, here, name, depth=path.count(b"/"))
                    return "" if moved else "a link that leads out of your checkout"
                copies.file(there, here, name)
        except FileExistsError:
            return "the worktree has a file of that name"
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
            return str(error.strerror or error)
        return ""

    def _leave(self, paths: Sequence[bytes], why: str) -> None:
        if paths:
            self.notes.append(f"did not copy {listed(paths, SHOWN)}: {why}")


def _require_movable(inside: Directory, path: str) -> None:
    with suppress(FileNotFoundError):
        os.stat("pyvenv.cfg", dir_fd=inside.handle, follow_symlinks=False)
        raise CannotPerform(
            f"`{path}` is a Python environment; its programs and editable installs point into your checkout",
            f'make one in each worktree: `setup = ["uv", "sync"]` or the like, and no `{path}` in `caches`',
        )
