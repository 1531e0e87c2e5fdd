"""
Git, by its command, in a way that an agent cannot turn against us.

Arguments are lists, never a shell line. The repository, the work tree and the
index are always said explicitly, so a `.git` that an agent planted is never
looked at. Hooks, file system monitors, external diffs, signing and the user's
aliases are off. Refs move by compare-and-swap, and what is committed is synced.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from planforge.errors import GitFailed, NoRepository

MINIMUM = (2, 38)
"""The first git that can merge without a work tree (`merge-tree --write-tree`)."""

HARDENED = (
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsync=committed",
    "-c", "core.untrackedCache=false",
    "-c", "core.quotePath=false",
    "-c", "core.safecrlf=false",
    "-c", "core.sparseCheckout=false",
    "-c", "core.filesRefLockTimeout=10000",
    "-c", "core.packedRefsTimeout=10000",
    "-c", "commit.gpgSign=false",
    "-c", "diff.external=",
    "-c", "diff.renames=false",
    "-c", "gc.auto=0",
    "-c", "i18n.commitEncoding=UTF-8",
    "-c", "maintenance.auto=false",
    "-c", "protocol.ext.allow=never",
    "-c", "submodule.recurse=false",
    "-c", "worktree.useRelativePaths=false",
    "-c", "advice.detachedHead=false",
)  # fmt: skip

FALLBACK_NAME = "Planforge"
FALLBACK_EMAIL = "planforge@localhost"


class Git:
    """One repository."""

    def __init__(self, git_dir: Path, top: Path) -> None:
        self.git_dir = git_dir
        self.top = top

    @classmethod
    def find(cls, start: Path) -> Git:
        """The repository that `start` is in."""
        query = ("rev-parse", "--is-bare-repository", "--path-format=absolute", "--git-common-dir")
        process = _start([*query], cwd=start, environment=_own_settings())
        if process.returncode:
            said = process.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
            raise NoRepository(
                f"no git repository at `{start}` ({said[0]})", "run `git init` first, or change directory"
            )
        bare, _, found = process.stdout.partition(b"\n")
        git_dir = os.fsdecode(found.removesuffix(b"\n"))
        if bare == b"true":
            raise NoRepository(
                f"`{git_dir}` is a bare repository, without files to work on", "use a clone of it"
            )
        process = _start(["rev-parse", "--show-toplevel"], cwd=start, environment=_own_settings())
        if process.returncode:
            raise NoRepository(f"`{start}` is inside `.git`, not among the files of a repository")
        return cls(Path(git_dir), Path(os.fsdecode(process.stdout.removesuffix(b"\n"))))

    def run(
        self,
        *arguments: str,
        work_tree: Path | None = None,
        index: Path | None = None,
        stdin: bytes | None = None,
        extra: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (0,),
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one git command on this repository, or raise `GitFailed` with what git said."""
        variables = environment() | {"GIT_DIR": str(self.git_dir)}
        if work_tree is not None:
            variables["GIT_WORK_TREE"] = str(work_tree)
        if index is not None:
            variables["GIT_INDEX_FILE"] = str(index)
        cwd = work_tree or self.git_dir
        if not cwd.is_dir():
            raise GitFailed(f"`{cwd}` is not there any more")
        process = _start(
            [*HARDENED, *arguments], cwd=cwd, environment=variables | dict(extra or {}), stdin=stdin
        )
        if process.returncode not in accept:
            said = process.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            raise GitFailed(f"`git {arguments[0]}` failed: {said[-1]}")
        return process

    def line(self, *arguments: str, work_tree: Path | None = None, index: Path | None = None) -> str:
        """What a git command prints, as one line."""
        return os.fsdecode(self.run(*arguments, work_tree=work_tree, index=index).stdout.rstrip(b"\n"))

    def commit_of(self, revision: str) -> str:
        """The full name of the commit that `revision` means."""
        found = self.ref(f"{revision}^{{commit}}")
        if found is None:
            raise GitFailed(f"there is no commit `{revision}`")
        return found

    def tree_of(self, revision: str) -> str:
        """The full name of the tree of a commit."""
        return self.line("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{tree}}")

    def has_commits(self) -> bool:
        """Whether HEAD points at a commit."""
        query = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return self.run(*query, accept=(0, 1, 128)).returncode == 0

    def ref(self, name: str) -> str | None:
        """The commit a ref points at, or None if there is no such ref."""
        process = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", name, accept=(0, 1, 128))
        return process.stdout.decode().strip() or None

    def move_ref(self, name: str, new: str, old: str | None) -> bool:
        """Point a ref at `new` if it is at `old` (None: does not exist); whether that was so."""
        expected = old or "0" * len(new)
        process = self.run("update-ref", "--no-deref", name, new, expected, accept=(0, 1, 128))
        if process.returncode and self.ref(name) == old:
            said = process.stderr.decode("utf-8", "replace").strip()
            raise GitFailed(f"cannot move `{name}`: {said}")
        return process.returncode == 0

    def checked_out(self, branch: str) -> Path | None:
        """The work tree that has `branch` checked out, if any."""
        path = b""
        for entry in self.run("worktree", "list", "--porcelain", "-z").stdout.split(b"\0"):
            if entry.startswith(b"worktree "):
                path = entry.removeprefix(b"worktree ")
            elif entry == b"branch " + os.fsencode(branch):
                return Path(os.fsdecode(path))
        return None

    def commit_tree(self, tree: str, parents: Sequence[str], message: str, at: str) -> str:
        """Make a commit object. The same arguments give the same commit."""
        who = self.identity()
        date = f"@{int(datetime.fromisoformat(at).timestamp())} +0000"
        variables = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        for role in ("AUTHOR", "COMMITTER"):
            variables |= {f"GIT_{role}_NAME": who[0], f"GIT_{role}_EMAIL": who[1]}
        arguments = ["commit-tree", tree, *(word for parent in parents for word in ("-p", parent))]
        process = self.run(*arguments, stdin=message.encode("utf-8", "surrogateescape"), extra=variables)
        return process.stdout.decode().strip()

    def identity(self) -> tuple[str, str]:
        """The name and e-mail address of the person whose repository this is."""
        found = [self._setting("user.name"), self._setting("user.email")]
        return found[0] or FALLBACK_NAME, found[1] or FALLBACK_EMAIL

    def _setting(self, name: str) -> str:
        process = _start(["config", "--get", name], cwd=self.top, environment=_own_settings())
        return process.stdout.decode("utf-8", "replace").strip()


def version() -> tuple[int, ...]:
    """The version of the git on PATH."""
    words = _start(["version"], cwd=Path("/"), environment=environment()).stdout.decode().split()
    return tuple(int(part) for part in words[2].split(".") if part.isdigit())


def environment() -> dict[str, str]:
    """The environment git is run in: the person's, without anything that steers git."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
    }


def _own_settings() -> dict[str, str]:
    # Where the person's own settings count: who they are, and which directories they trust. Neither
    # of the commands that need them runs anything that a setting could name.
    hidden = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
    return {name: value for name, value in environment().items() if name not in hidden}


def _start(
    arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env=dict(environment),
            input=stdin if stdin is not None else b"",
            capture_output=True,
            check=False,
        )
    except OSError as error:
        if not cwd.is_dir():
            raise NoRepository(f"there is no directory `{cwd}`") from None
        if isinstance(error, FileNotFoundError):
            raise NoRepository("`git` is not on PATH", "install git") from None
        raise NoRepository(f"cannot run `git`: {error.strerror}") from error
