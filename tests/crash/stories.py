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
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import standby
from crash.boundaries import CRASH, STEPS, Cut, cuts
from crash.records import Record, differences, record
from planforge.app.project import Project
from planforge.errors import InvalidInput, RefusedByGate
from planforge.kernel.events import PatchApplied, Recorded, RunEnded, RunStarted
from programs import environment
from repositories import commit, repository
from texts import BLOCKED, CHECK, CLEAN, PLAN, SETTINGS, Scene, says, writes

LISTENED_TO = standby.Standby(
    "crash.boundaries",
    "soak.crashing",
    "planforge.agents.acp.conversation",
    "planforge.app.compose",
    *standby.modules("planforge.interfaces.cli"),
    *standby.modules("planforge.interfaces.cli.commands"),
)

PATIENCE = 120.0
TELLINGS = 3
"""How often a story is told that comes out in another order."""
REFUSED = (InvalidInput.exit_code, RefusedByGate.exit_code)


class Act(NamedTuple):
    """One command, how it ends, and what agents do from then on, if that changes."""

    words: tuple[str, ...]
    code: int = 0
    scenes: tuple[Scene, ...] = ()


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
        self._steps = place / "steps"
        self.root = self._here / "workshop"
        self.cuts: list[Cut] = []
        self.whole: list[Record] = []
        """What each act left, when nothing was cut."""
        self._set()
        self._tell()

    def _set(self) -> None:
        root = repository(
            self.root, {"one/old.txt": "old\n", "check.sh": CHECK, ".gitignore": "/docs/plans/\n"}
        )
        (root / "planforge.toml").write_text(SETTINGS.format(place=self._here) + self.story.settings)
        commit(root, {}, "settings")
        (self._here / "rehearsal").mkdir()
        Project.create(root).ledger.close()

    def _tell(self) -> None:
        """The story without a crash, which says where it can be cut and how it ends."""
        for number, act in enumerate(self.story.acts):
            self._prepare(act)
            shutil.copytree(self._here, self._saved / str(number), symlinks=True)
            before = len(self.events())
            self._steps.write_text("")
            ran = self.command(*act.words, extra={STEPS: str(self._steps)})
            assert ran.code == act.code, f"`{' '.join(act.words)}` ended with {ran.code}:\n{ran.said}"
            counted = (line.rsplit(" ", 1) for line in self._steps.read_text().splitlines())
            steps = {name: int(count) for name, count in counted}
            self.cuts += cuts(number, self.events()[before:], steps)
            self.whole.append(record(self.root))
        self._landed = _landed(self.events())

    def _prepare(self, act: Act) -> None:
        if act.scenes:
            told = [{"when": list(when), "do": do} for when, do in act.scenes]
            (self._here / "rehearsal" / "script.json").write_text(json.dumps({"name": "it", "scenes": told}))

    def events(self) -> list[Recorded]:
        """All that is on record."""
        with contextlib.closing(Project(self.root).ledger) as ledger:
            return list(ledger.since())

    def command(self, *words: str, extra: Mapping[str, str] | None = None) -> Ran:
        """Run a command as a process of its own."""
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

    def cut(self, cut: Cut, *, to_the_end: bool = False) -> list[str]:
        """
        In what the story differs if it is cut there and taken up again: after the act that was cut, and if
        that is wanted after each that follows.

        Of two phases at once either may land first, and the other one is then moved: with a crash or without,
        that is another story. One in which they came the other way round is told again.
        """
        for _ in range(TELLINGS):
            found = self._cut(cut, to_the_end)
            if not found or self._is_in_order():
                break
        return found

    def _is_in_order(self) -> bool:
        landed = _landed(self.events())
        return landed == self._landed[: len(landed)]

    def _cut(self, cut: Cut, to_the_end: bool) -> list[str]:
        self.restore(cut.act)
        act = self.story.acts[cut.act]
        before = len(self.events())
        killed = self.command(*act.words, extra={CRASH: cut.told})
        if killed.code != -signal.SIGKILL:
            return [f"it was to be killed, and ended with {killed.code}:\n{killed.said}"]
        ended = self._taken_up(act, before)
        if ended.code != act.code:
            return [f"taken up, it ended with {ended.code} and not with {act.code}:\n{ended.said}"]
        found = differences(self.whole[cut.act], record(self.root))
        for number in range(cut.act + 1, len(self.story.acts) if to_the_end and not found else 0):
            later = self.story.acts[number]
            self._prepare(later)
            ran = self.command(*later.words)
            if ran.code != later.code:
                return [f"`{' '.join(later.words)}` ended with {ran.code}:\n{ran.said}"]
            found += differences(self.whole[number], record(self.root))
        return found

    def _taken_up(self, act: Act, before: int) -> Ran:
        """What somebody does who finds what the crash left, by what the ledger says and nothing else."""
        happened = [item.event for item in self.events()[before:]]
        if not any(isinstance(event, RunStarted) for event in happened):
            again = self.command(*act.words)  # it had begun nothing, or is not a run: once more
            # Where that is refused although it was not before, it was done, and is on record.
            return Ran(act.code, again.said) if happened and again.code in REFUSED else again
        for event in happened:
            if isinstance(event, RunEnded):
                return Ran(event.exit_code, event.reason)  # all was done: nothing is left to resume
        return self.command("resume")


def _landed(events: list[Recorded]) -> list[str]:
    """Which phases landed, in order."""
    return [item.event.step for item in events if isinstance(item.event, PatchApplied)]


THREE = PLAN.replace(
    "- `one/a.txt` — a text.",
    "\n".join(f"- `{name}` — a text." for name in ("one/a.txt", "two/b.txt", "three/c.txt")),
)

FORGING: tuple[Scene, ...] = (
    (("Role: drafter",), says(PLAN)),
    (("Role: auditor", "Step: ", "Round: 2"), says(CLEAN)),
    (("Role: auditor", "Step: "), says(BLOCKED)),
    (("Role: auditor", "Round: 1"), says(BLOCKED)),
    (("Role: auditor",), says(CLEAN)),
    (("Role: reviser",), says(THREE)),
)
WORKING: tuple[Scene, ...] = (
    (("Role: developer", "Fix: 1"), writes("one/a.txt", text="mended\n")),
    (("Role: developer", "Step: phase-1", "Attempt: 1"), writes("one/a.txt", text="wrong\n")),
    (("Role: developer", "Step: phase-1"), writes("one/a.txt")),
    (("Role: developer", "Step: phase-3"), writes("three/c.txt")),
)
FAILING: Scene = (("Role: developer", "Step: phase-2"), writes("two/b.txt", text="wrong\n"))
FINE: Scene = (("Role: developer", "Step: phase-2"), writes("two/b.txt"))

FORGE_AND_RUN = Story(
    "forge and run",
    (
        Act(("forge", "Some texts"), scenes=(*FORGING, *WORKING, FAILING)),
        Act(("plan", "approve", "1")),
        Act(("plan", "run", "1", "--parallel"), code=1),
        Act(("plan", "retry", "1"), scenes=(*FORGING, *WORKING, FINE)),
        Act(("plan", "run", "1")),
        Act(("land",)),
    ),
    settings="[run]\nattempts = 2\njobs = 2\n",
)

IN_PARTS = Story(
    "in parts",
    (
        Act(
            ("forge", "Some texts"),
            scenes=(
                (("Role: drafter",), says(THREE)),
                (("Role: auditor",), says(CLEAN)),
                *WORKING,
                FINE,
            ),
        ),
        Act(("plan", "approve", "1")),
        Act(("plan", "run-one", "1")),
        Act(("plan", "skip", "1", "phase-2", "--reason", "it is not needed")),
        Act(("plan", "skip-to", "1", "phase-4", "--reason", "nor is this")),
        Act(("plan", "phases", "1", "--regenerate", "--keep-done")),
        Act(("plan", "run", "1")),
        Act(("plan", "close", "1", "--unlanded", "--reason", "it was enough")),
    ),
)

STORIES = (FORGE_AND_RUN, IN_PARTS)
