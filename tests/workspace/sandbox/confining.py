"""
A home with secrets, a repository in it, two worktrees, and a program that attacks all of them.

`python confining.py LEVEL DIRECTORY PYTHON` makes them in DIRECTORY, lets the program at them at that level,
and writes down there what came of it: for those who must try it as somebody else.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from planforge.workspace import processes, sandbox
from planforge.workspace.processes import Ended
from planforge.workspace.sandbox import Level, Policy, bubblewrap
from repositories import git, repository

PATIENCE = 60.0
"""How long a test waits for what must happen at once, so that a slow machine does not fail it."""

SECRETS = {
    ".ssh/id_ed25519": "PRIVATE-KEY",
    ".aws/credentials": "AWS-SECRET",
    ".bash_history": "HISTORY-SECRET",
    ".netrc": "NETRC-SECRET",
    ".config/gh/hosts.yml": "GH-TOKEN",
    ".cargo/credentials.toml": "CARGO-TOKEN",
}

ATTACK = """
import json, os, sys
came = {}
def attempt(name, act):
    try:
        came[name] = act() or "done"
    except OSError as error:
        came[name] = error.strerror
def write(path):
    with open(path, "a") as file:
        file.write("ATTACKED")
def read(path):
    with open(path, errors="replace") as file:
        return file.read()
for name, path in json.loads(sys.argv[1]).items():
    attempt("write " + name, lambda: write(path))
    attempt("read " + name, lambda: read(path))
    attempt("replace " + name, lambda: os.replace("planted", path) if os.path.exists(path) else None)
    attempt("chmod " + name, lambda: os.chmod(path, 0o777))
    attempt("link " + name, lambda: os.link(path, "link-" + name))
print(json.dumps(came))
"""


def required(level: Level) -> None:
    """Skip what needs a level that does not work here, and say why it does not."""
    found = sandbox.tried(level)
    if not found.works:
        pytest.skip(f"sandbox level `{level}` does not work here: {found.why}")


def forget_levels() -> None:
    """Have every level tried again, on another PATH."""
    sandbox.tried.cache_clear()
    bubblewrap.found.cache_clear()


class World(NamedTuple):
    """What is attacked."""

    home: Path
    repository: Path
    worktree: Path
    other: Path

    @property
    def state(self) -> Path:
        return self.repository / ".planforge"

    @property
    def targets(self) -> dict[str, Path]:
        """What nobody may change from inside the worktree."""
        return {
            "beside": self.worktree.parent / "beside",
            "home": self.home / "planted",
            "profile": self.home / ".profile",
            "above": self.home.parent / "planted",
            "main tree": self.repository / "README.md",
            "hook": self.repository / ".git" / "hooks" / "pre-commit",
            "config": self.repository / ".git" / "config",
            "entry": self.repository / ".git" / "worktrees" / self.worktree.name / "HEAD",
            "other worktree": self.other / "app.py",
            "ledger": self.state / "ledger.db",
        } | {name: self.home / name for name in SECRETS}

    @property
    def own_git(self) -> Path:
        return self.worktree / ".git"

    def policy(self) -> Policy:
        return sandbox.writing(self.worktree, repository=self.repository)

    def seen(self) -> dict[str, bytes | None]:
        """What is where an attack would leave something."""
        return {name: _content(path) for name, path in self.targets.items()}

    def modes(self) -> dict[str, int]:
        """Who may do what with the files that are there."""
        return {name: path.stat().st_mode for name, path in self.targets.items() if path.exists()}

    def run(
        self, argv: Sequence[str], level: Level, policy: Policy | None = None, seconds: float = PATIENCE
    ) -> Ended:
        """Run a program in the worktree."""
        return asyncio.run(
            processes.run(
                argv,
                cwd=self.worktree,
                seconds=seconds,
                extra={"HOME": str(self.home)},
                policy=policy or self.policy(),
                level=level,
            )
        )

    def attack(
        self, level: Level, policy: Policy | None = None, python: str = sys.executable
    ) -> dict[str, str]:
        """Let the program at everything; what came of each attempt."""
        targets = {name: str(path) for name, path in self.targets.items()} | {"own git": str(self.own_git)}
        ended = self.run([python, "-c", ATTACK, json.dumps(targets)], level, policy)
        assert ended.exit_code == 0, ended.output.decode()
        assert ended.sandbox == level
        came: dict[str, str] = json.loads(ended.output)
        return came


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def world(directory: Path, *, home: str = "home", project: str = "home/projects/thing") -> World:
    """Make all of it in `directory`."""
    root = directory / home
    for name, text in SECRETS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / ".profile").write_text("export TOKEN=PROFILE-SECRET\n")
    repo = repository(directory / project)
    (repo / ".git" / "info" / "exclude").write_text("/.planforge/\n")
    worktrees = repo / ".planforge" / "worktrees" / "run-001"
    worktrees.mkdir(parents=True)
    (repo / ".planforge" / "ledger.db").write_text("LEDGER")
    for name in ("step-1", "step-2"):
        git(repo, "worktree", "add", "--quiet", "--detach", str(worktrees / name))
    return World(root, repo, worktrees / "step-1", worktrees / "step-2")


def main() -> None:
    """Attack, and write down what came of it and what is there afterwards."""
    level = Level(sys.argv[1])
    made = world(Path(sys.argv[2]))
    before = made.seen()
    status = made.run(["git", "status", "--short"], level)
    came = made.attack(level, python=sys.argv[3])
    answer = {
        "works": sandbox.tried(level).works,
        "came": came,
        "changed": [name for name, content in made.seen().items() if content != before[name]],
        "git": [status.exit_code, status.output.decode()],
        "user": os.getuid(),
    }
    Path(sys.argv[2], "answer").write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
