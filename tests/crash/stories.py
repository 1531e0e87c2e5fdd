"""
Stories that are told from the first command to the last, whole or cut somewhere and taken up again.

A story is a list of commands, each with what its agents do. It is told in one place, always the same, so that
no path differs; before each command the place is saved, and a story that is cut in a command begins there.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import standby
from crash.boundaries import CRASH, Cut, cuts
from crash.records import Record, record
from planforge.app.project import Project
from planforge.kernel.events import Recorded
from programs import environment
from rehearsals import Actions
from repositories import commit, repository
from texts import BLOCKED, CHECK, CLEAN, PLAN, SETTINGS, Scene, says, writes

LISTENED_TO = standby.Standby(
    "crash.boundaries",
    "soak.crashing",
    "planforge.agents.acp.conversation",
    "planforge.app.compose",
    *standby.modules("planforge.interfaces.cli"),
)

PATIENCE = 120.0


class Act(NamedTuple):
    """One command, how it ends, and what agents do from then on, if that changes."""

    words: tuple[str, ...]
    code: int = 0
    scenes: tuple[Scene, ...] = ()
    before: Callable[[Path], None] | None = None
    """What a person does to the repository first."""


class Story(NamedTuple):
    """A repository and what is done in it."""

    name: str
    acts: tuple[Act, ...]
    settings: str = ""


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    said: str


class Stage:
    """The place where one story is told, again and again."""

    def __init__(self, story: Story, place: Path) -> None:
        self.story = story
        self._here = place / "here"
        self._saved = place / "saved"
        self.root = self._here / "workshop"
        self._set()
        self.cuts: list[Cut] = []
        self.whole = self._tell()

    def _set(self) -> None:
        root = repository(
            self.root, {"one/old.txt": "old\n", "check.sh": CHECK, ".gitignore": "/docs/plans/\n"}
        )
        (root / "planforge.toml").write_text(SETTINGS.format(place=self._here) + self.story.settings)
        commit(root, {}, "settings")
        (self._here / "rehearsal").mkdir()
        Project.create(root).ledger.close()

    def _tell(self) -> Record:
        """The story without a crash, which says where it can be cut and how it ends."""
        for number, act in enumerate(self.story.acts):
            self._prepare(act)
            shutil.copytree(self._here, self._saved / str(number), symlinks=True)
            before = len(self.events())
            ran = self.command(*act.words)
            assert ran.code == act.code, f"`{' '.join(act.words)}` ended with {ran.code}:\n{ran.said}"
            self.cuts += cuts(number, self.events()[before:], self.halves)
        return record(self.root)

    halves = (0,)

    def _prepare(self, act: Act) -> None:
        if act.scenes:
            told = [{"when": list(when), "do": do} for when, do in act.scenes]
            (self._here / "rehearsal" / "script.json").write_text(json.dumps({"name": "it", "scenes": told}))
        if act.before:
            act.before(self.root)

    def events(self) -> list[Recorded]:
        """All that is on record."""
        with contextlib.closing(Project(self.root).ledger) as ledger:
            return list(ledger.since())

    def command(self, *words: str, crash: str = "") -> Ran:
        """Run a command as a process of its own."""
        extra = {CRASH: crash} if crash else {}
        process = LISTENED_TO.open("crash", words, cwd=self.root, env=environment(extra), told=True)
        try:
            out, err = process.communicate("", PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return Ran(process.returncode, out + err)

    def restore(self, act: int) -> None:
        """Put everything where it was before an act."""
        shutil.rmtree(self._here)
        shutil.copytree(self._saved / str(act), self._here, symlinks=True)

    def cut(self, cut: Cut) -> Record:
        """The story as it ends if it is cut there and taken up again."""
        self.restore(cut.act)
        act, *rest = self.story.acts[cut.act :]
        killed = self.command(*act.words, crash=cut.told)
        assert killed.code == -signal.SIGKILL, f"it was to be killed at {cut}, and ended:\n{killed.said}"
        resumed = self.command("resume")
        if "nothing to resume" not in resumed.said:
            assert resumed.code == act.code, f"resumed after {cut}:\n{resumed.said}"
        for later in rest:
            self._prepare(later)
            ran = self.command(*later.words)
            assert ran.code == later.code, f"`{' '.join(later.words)}` after {cut}:\n{ran.said}"
        return record(self.root)


TWO = PLAN.replace("- `one/a.txt` — a text.", "- `one/a.txt` — a text.\n- `two/b.txt` — another.\n")
FINE: Actions = writes("one/a.txt")

FORGE_AND_RUN = Story(
    "forge and run",
    (
        Act(
            ("forge", "Some texts"),
            scenes=(
                (("Role: drafter",), says(PLAN)),
                (("Role: auditor", "Round: 1"), says(BLOCKED)),
                (("Role: reviser",), says(TWO)),
                (("Role: auditor", "Step: "), says(CLEAN)),
                (("Role: auditor",), says(CLEAN)),
                (("Role: developer", "one/a.txt", "Attempt: 1"), writes("one/a.txt", text="wrong\n")),
                (("Role: developer", "one/a.txt"), writes("one/a.txt")),
                (("Role: developer", "two/b.txt"), writes("two/b.txt")),
            ),
        ),
        Act(("plan", "approve", "1")),
        Act(("plan", "run", "1", "--parallel")),
        Act(("land",)),
    ),
)
