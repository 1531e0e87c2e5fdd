"""
The refs that keep work: `refs/planforge/archive/<run>/…`, and where each worktree began.

A name once given is never moved; other work gets the next free name. Several are
given at once or not at all. Whoever removes something asks first whether all that
a commit needs is really there, because somebody may be pruning the repository.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from planforge.errors import GitFailed
from planforge.workspace.git import Git, said_by, stale_locks

ARCHIVE = "refs/planforge/archive"
BASES = "refs/planforge/base"
WORK = "refs/heads/planforge/work"
ODD = re.compile("[^A-Za-z0-9-]+")
TRIES = 20
PATIENCE = 5.0
"""How many seconds to wait for a git whose parent was killed."""

STALE_SECONDS = 60.0
"""A lock of git's on a ref of ours that is older is taken for dead where processes cannot be looked at."""


def slug(name: str) -> str:
    """The name of a worktree as part of a ref; two names never share one."""
    plain = ODD.sub("-", name).strip("-")
    if plain == name:
        return plain
    return f"{plain or 'odd'}-{sha256(os.fsencode(name)).hexdigest()[:8]}"


def refs(git: Git, *patterns: str) -> dict[str, str]:
    """The refs there are, or those under `patterns`, and the objects they point at."""
    output = git.run("for-each-ref", "--format=%(objectname) %(refname)", *patterns).stdout.decode(
        "utf-8", "surrogateescape"
    )
    return {name: found for found, _, name in (line.partition(" ") for line in output.splitlines())}


def free(taken: Mapping[str, str], ref: str, commit: str) -> str:
    """The first of `ref`, `ref.2`, `ref.3`… that is not taken, or that points at `commit` already."""
    for number in range(1, 10_000):
        name = ref if number == 1 else f"{ref}.{number}"
        if taken.get(name, commit) == commit:
            return name
    raise GitFailed(f"no free name to keep `{ref}` under")


class Archive:
    """What is kept of one run. The caller holds the lock on changes of worktrees."""

    def __init__(self, git: Git, run: str) -> None:
        self._git = git
        self.run = run
        self.prefix = f"{ARCHIVE}/{run}"
        self.bases = f"{BASES}/{run}"
        self.work = f"{WORK}/{run}"

    def keep(self, wanted: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """Keep commits under labels, all at once; the refs that they have then."""
        pairs = list(wanted)
        for _ in range(TRIES):
            taken = refs(self._git, self.prefix)
            names: list[str] = []
            new: dict[str, str] = {}
            for label, commit in pairs:
                name = free(taken | new, f"{self.prefix}/{label}", commit)
                names.append(name)
                if name not in taken:
                    new[name] = commit
            if not new or self.change(create=new):
                return tuple(names)
        labels = ", ".join(f"`{label}`" for label, _ in pairs)
        raise GitFailed(f"cannot keep {labels}: somebody else keeps taking the names")

    def trees(self) -> set[str]:
        """The trees of the commits that are kept."""
        return set(self._git.run("for-each-ref", "--format=%(tree)", self.prefix).stdout.decode().split())

    def change(self, *, create: Mapping[str, str], delete: Mapping[str, str] | None = None) -> bool:
        """Make refs and delete refs that are as said, all or none; whether that was so."""
        asked = [f"create {name} {commit}\n" for name, commit in create.items()]
        asked += [f"delete {name} {commit}\n" for name, commit in (delete or {}).items()]
        self._clear()
        process = self._git.run(
            "update-ref", "--no-deref", "--stdin",
            stdin="".join(asked).encode("utf-8", "surrogateescape"),
            accept=(0, 1, 128),
        )  # fmt: skip
        if not process.returncode:
            return True
        now = refs(self._git, *create, *(delete or ()))
        if any(name in now for name in create) or any(
            now.get(name) != old for name, old in (delete or {}).items()
        ):
            return False
        said = said_by(process)
        hint = "rename the branch that is in the way" if "cannot create" in said else None
        raise GitFailed(f"cannot change refs: {said}", hint)

    def _clear(self) -> None:
        """
        Remove lock files that a killed git left on refs of this run.

        Nobody else changes these refs, and we hold the lock; only a git whose parent was killed may
        still be at it, for the moment it takes.
        """
        until = time.monotonic() + PATIENCE
        while (left := self._locks()) and time.monotonic() < until:
            stale_locks.remove(self._git, alone=True)
            for file in left if not stale_locks.PROCESSES.is_dir() else ():
                with suppress(OSError):
                    if time.time() - file.stat().st_mtime > STALE_SECONDS:
                        file.unlink()
            if self._locks():
                time.sleep(0.02)

    def _locks(self) -> list[Path]:
        prefixes = (self.prefix, self.bases, self.work)
        return [file for prefix in prefixes for file in (self._git.git_dir / prefix).glob("*.lock")]
