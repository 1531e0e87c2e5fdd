"""
A repository that Planforge works in: where it is, its ledger, its settings.

Finding it starts no program, so that a read command answers at once; git is asked
only where there is something to explain or to do.
"""

from __future__ import annotations

import atexit
from _weakrefset import WeakSet  # `weakref` has it too, but takes longer to load
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from planforge.actions import Action, Advice
from planforge.app.places import STATE
from planforge.errors import LedgerUnreadable, NotInitialised
from planforge.kernel.ledger import Ledger

if TYPE_CHECKING:
    from planforge.app.settings import Settings
    from planforge.workspace.git import Git


OPEN: WeakSet[Ledger] = WeakSet()
"""The ledgers of projects; one that nobody has any more is gone, with its files."""


@atexit.register
def _stop_writing() -> None:
    for ledger in list(OPEN):
        ledger.stop_writing()


class Project:
    """An initialised repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / STATE

    @classmethod
    def find(cls, start: Path) -> Project:
        """The project that `start` is in."""
        for directory in (start, *start.parents):
            if (directory / STATE).is_dir():
                project = cls(directory)
                _ = project.ledger
                return project
            if (directory / ".git").exists():
                break
        from planforge.workspace.git import Git

        top = Git.find(start).top
        raise NotInitialised(
            f"`{top}` has no `{STATE}`", Advice("run {}, or see it work: {}", Action("init"), Action("demo"))
        )

    @classmethod
    def create(cls, start: Path) -> Project:
        """Make the state directory of the repository that `start` is in; all right if it is there."""
        from planforge.workspace.git import Git

        project = cls(Git.find(start).top)
        try:
            project.state.mkdir(exist_ok=True)
            ignore = project.state / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
        except OSError as error:
            raise LedgerUnreadable(f"cannot write in `{project.root}`: {error.strerror}") from error
        Ledger.create(project.state).close()
        return project

    @cached_property
    def ledger(self) -> Ledger:
        """The project's ledger, open; when the process ends, it is said where the ledger ended."""
        ledger = Ledger.open(self.state)
        OPEN.add(ledger)
        return ledger

    @cached_property
    def settings(self) -> Settings:
        """What `planforge.toml` says."""
        from planforge.app.settings import read

        return read(self.root)

    @cached_property
    def git(self) -> Git:
        """The project's repository."""
        from planforge.workspace.git import Git

        return Git.find(self.root)

    @cached_property
    def person(self) -> str:
        """Who is at the keyboard, as far as git knows."""
        name, email = self.git.identity()
        return f"{name} <{email}>"

    def lock(self, run: str) -> Path:
        """The lock that the driver of `run` holds."""
        return self.state / "locks" / f"{run}.lock"
