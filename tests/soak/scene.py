"""What a history plays in: a repository with worktrees, and who knows what about them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from repositories import git, repository, write

RUN = "run-001"
NESTED = ("crate", "a b/inner")


class Attempt:
    """A worktree that was opened, as far as the history knows."""

    def __init__(self, base: str, entry: Path, tracked: frozenset[bytes]) -> None:
        self.base = base
        self.entry = entry
        self.tracked = tracked
        self.made: set[str] = set()
        self.frozen = False
        """Its agent has ended: nobody but us changes it any more."""
        self.there = True
        self.number = 0


def template(directory: Path) -> Path:
    """The repository that every history starts from, and beside it one that agents make inside."""
    inner = repository(directory.with_name("inner"), {"lib.rs": "lib\n", "deep/lib.rs": "deep\n"})
    shutil.rmtree(inner / ".git" / "hooks")
    place = repository(
        directory,
        {
            "app.py": "one\ntwo\n",
            "docs/guide.md": "guide\n",
            ".gitignore": "*.log\nbuild/\n",
            "old.py": "old\n",
        },
    )
    write(place, {"kept.log": "tracked although ignored\n"})
    git(place, "add", "--force", "kept.log")
    git(place, "commit", "--quiet", "--message=keep a log")
    git(place, "branch", "feature", "HEAD~1")
    write(place, {".planforge/.gitignore": "*\n"})
    shutil.rmtree(place / ".git" / "hooks")
    return place


class Scene:
    """The repository of one history, and what happened in it so far."""

    def __init__(self, seed: int, origin: Path, directory: Path) -> None:
        self.seed = seed
        self.trace: list[str] = []
        self._random = random.Random(seed)
        self._origin = origin
        self._directory = directory
        self._place = directory / "place"
        shutil.copytree(origin, self._place, symlinks=True)
        self._state = self._place / ".planforge"
        self._attempts: dict[str, Attempt] = {}
        self._trees: dict[str, str] = {}
        """The trees that must be reachable in the end, and where they were."""
        self._aside: dict[Path, str] = {}
        """Worktrees that agents moved out of our reach, and their trees."""
        self._count = 0

    def _trace(self, text: str) -> None:
        self.trace.append(text)

    def _path(self, name: str) -> Path:
        return self._state / "worktrees" / RUN / name

    def _text(self) -> str:
        self._count += 1
        return f"{self.seed}-{self._count}\n" * self._random.randint(0, 3)
