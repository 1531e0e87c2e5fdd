"""
The tour itself: what a new user types, from `init` to their own branch, and what must hold at each stop.

Whoever plays the agents is told by the settings, so that the same tour is taken with the rehearsal agent and
with real programs.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from programs import COMMAND, environment
from repositories import git
from tour import screens
from tour.screens import Screen
from tour.stories import Story, script

SECONDS = 300
PERSON = "You"
PLANS = "docs/plans"


class Shown(NamedTuple):
    """A stop of the tour: what the person does and why, and what they see."""

    words: str
    screen: str
    language: str = "console"


class Player(NamedTuple):
    """Who plays the agents: what the settings say about it, and what must be on the path."""

    default: str
    settings: str
    path: str = ""


def rehearsal(home: Path) -> Player:
    """The rehearsal agent, with its script beside the project."""
    place = home / "rehearsal"
    return Player(
        default="rehearsal",
        settings=f"""\
[agents.profiles.rehearsal]
writes = ["{place}"]

[agents.profiles.rehearsal.env]
PLANFORGE_REHEARSAL_SCRIPT = "{place}/script.json"

""",
    )


class Tour:
    """One project, one person, and all that the person has seen."""

    def __init__(self, story: Story, source: Path, home: Path) -> None:
        self.story = story
        self.home = home.resolve()
        self.root = self.home / "project"
        self.shown: list[Shown] = []
        self._path = ""
        shutil.copytree(source, self.root, symlinks=True)
        git(self.root, "init", "--quiet", "--initial-branch=main")
        for name, value in (("name", PERSON), ("email", "you@example.org")):
            git(self.root, "config", f"user.{name}", value)
        (self.root / ".git/info/exclude").write_text(".venv\nnode_modules\n__pycache__\n")
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", f"--message={story.project} as published")
        (self.home / "rehearsal").mkdir()
        (self.home / "rehearsal/script.json").write_text(script(story))

    def played_by(self, player: Player) -> None:
        """Have the settings say who the agents are, which a person does once."""
        self._path = player.path
        path = self.root / "planforge.toml"
        before = path.read_text()
        named = before.replace('# default = ""  ', f'default = "{player.default}"  ')
        tried = named.replace("# attempts = 3 ", "attempts = 2 ")
        assert before != named != tried
        path.write_text(f"{tried}{player.settings}{self.story.settings}")

    # What the person does

    def types(self, words: str, *command: str, code: int = 0) -> str:
        """Type a command, see how it ends, and go on."""
        process = self.started(*command)
        printed, _ = process.communicate(timeout=SECONDS)
        return self._seen(words, command, printed, process.returncode, code)

    def edits_meanwhile(self, words: str, *command: str, sign: str, code: int) -> str:
        """Type a command, and edit the plan as soon as a line with `sign` appears."""
        printed = ""
        with self.started(*command) as process:
            assert process.stdout is not None
            for line in process.stdout:
                printed += line
                if sign in line:
                    self.adds_a_file()
        return self._seen(words, command, printed, process.returncode, code)

    def edits(self, words: str, old: str, new: str) -> None:
        """Edit the plan by hand."""
        before = self.plan.read_text()
        assert before.count(old) == 1, f"the plan does not say `{old}` once"
        self.plan.write_text(before.replace(old, new))
        self.shown.append(Shown(words, _diff(before, self.plan.read_text()), "diff"))

    def adds_a_file(self) -> None:
        """Think of one more thing."""
        last = f"- `{self.story.parts[-1].test}` — its tests."
        more = f"- `{self.story.readme}` — {self.story.readme_asks}"
        before = self.plan.read_text()
        assert before.count(last) == 1
        self.plan.write_text(before.replace(last, f"{last}\n{more}"))

    def stops(self, *following: str) -> None:
        """At each stop `planforge status` says what can be typed next."""
        found = self.document("status")["next"]
        assert tuple(found) == following, f"status says {found}"

    # What there is

    @property
    def plan(self) -> Path:
        """The file of the plan."""
        (path,) = (each for each in (self.root / PLANS).glob("plan-001-*.md") if "phases" not in each.name)
        return path

    def document(self, *command: str) -> Any:
        """What a command says to programs."""
        process = self.started(*command, "--json", quiet=True)
        printed, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, printed
        return json.loads(printed)

    def at_work(self) -> list[str]:
        """The agents whose changes were looked at, one for each attempt."""
        process = self.started("log", "-n", "0", "--kind", "PatchProposed", "--json", quiet=True)
        printed, _ = process.communicate(timeout=SECONDS)
        return [json.loads(line)["event"]["agent"] for line in printed.splitlines()]

    def checkout(self) -> dict[str, str]:
        """All that is the person's own: their files, their index, their branch."""
        own = {name: _hash(self.root / name) for name in git(self.root, "ls-files").splitlines()}
        return own | {
            "HEAD": git(self.root, "rev-parse", "HEAD"),
            "status": git(self.root, "status", "--porcelain", "--untracked-files=all", "--", f":!{PLANS}"),
        }

    def environment(self) -> dict[str, str]:
        """That of the person's shell."""
        return environment({"PATH": self._path} if self._path else None)

    def started(self, *command: str, quiet: bool = False) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *command],
            cwd=self.root,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else subprocess.STDOUT,
            text=True,
        )

    def _seen(self, words: str, command: tuple[str, ...], printed: str, code: int, expected: int) -> str:
        typed = "planforge " + " ".join(f'"{word}"' if " " in word else word for word in command)
        assert code == expected, f"`{typed}` ended with {code} and not with {expected}:\n{printed}"
        screen = Screen(typed, screens.settled(printed, self.home), code)
        self.shown.append(Shown(words, screen.text()))
        return printed


def taken(tour: Tour, player: Player) -> None:
    """Take the whole tour."""
    story, types = tour.story, tour.types
    types("Set up the repository. Planforge finds your tests.", "init")
    tour.played_by(player)
    git(tour.root, "add", "planforge.toml")
    git(tour.root, "commit", "--quiet", "--message=settings of Planforge")
    tour.stops('planforge forge "what you want"')
    untouched = tour.checkout()

    _forged(tour)
    _first_run(tour)
    _retried_and_skipped(tour)
    _edited_meanwhile(tour)
    assert tour.checkout() == untouched, "nothing of the person's own was touched"
    _landed(tour, untouched)
    _afterwards(tour)
    for check in story.checks:
        _passes(tour, check)


def _forged(tour: Tour) -> None:
    types, story = tour.types, tour.story
    types(
        "Say what you want. One agent drafts a plan, another audits it; the first draft has a hole.",
        *("forge", story.request),
    )
    tour.stops("planforge plan show plan-001", "planforge plan approve plan-001")
    types("Read it: it is a Markdown file.", "plan", "show", "1")
    tour.edits("You can edit it; here one sentence becomes clearer.", *story.by_hand)
    types("Show what you changed since the audit.", "plan", "diff", "1")
    types("Approve exactly this text.", "plan", "approve", "1")
    tour.stops("planforge plan run plan-001")


def _first_run(tour: Tour) -> None:
    types = tour.types
    types("Show its phases.", "plan", "phases", "1")
    types(
        "Run it, three phases at once. The agent of phase-3 says that all tests pass; one does not.",
        *("plan", "run", "1", "--parallel", "--jobs", "3"),
        code=1,
    )
    tour.stops("planforge plan retry plan-001 phase-3", "planforge plan skip plan-001 phase-3 --reason TEXT")
    types("What is the state, and what can you do next?", "status")
    types("What is the status of each phase?", "plan", "phases", "1")


def _retried_and_skipped(tour: Tour) -> None:
    types = tour.types
    types(
        "Retry it: the next agent is told why the last attempt was rejected.",
        *("plan", "retry", "1", "phase-3"),
    )
    tour.stops("planforge plan run plan-001")
    types("Run only the next phase. It fails.", "plan", "run-one", "1", code=1)
    tour.stops("planforge plan retry plan-001 phase-4", "planforge plan skip plan-001 phase-4 --reason TEXT")
    types(
        "Skip it. Phases that wait for it can run, and your reason is recorded.",
        *("plan", "skip", "1", "phase-4", "--reason", tour.story.reason),
    )
    tour.stops("planforge plan run plan-001")


def _edited_meanwhile(tour: Tour) -> None:
    types = tour.types
    before = tour.plan.read_text()
    types_and_edits = tour.edits_meanwhile(
        "Continue, and edit the plan while phase-5 is running. Running work is finished; nothing new starts.",
        *("plan", "run", "1"),
        sign="phase-5   attempt 1 begins",
        code=5,
    )
    assert "it was edited after it was approved" in types_and_edits
    tour.shown.append(Shown("This was the edit.", _diff(before, tour.plan.read_text()), "diff"))
    again = "planforge plan phases plan-001 --regenerate"
    tour.stops(f"{again} --keep-done", again)
    said = types("Nothing runs until the phases match the plan again.", "plan", "run", "1", code=5)
    assert f"{again} --keep-done" in said, "the refusal names the remedy"
    types(
        "Regenerate the phases. Finished phases that are unchanged are kept.",
        *("plan", "phases", "1", "--regenerate", "--keep-done"),
    )
    tour.stops("planforge plan approve plan-001")
    said = types("The new text needs its own approval.", "plan", "run", "1", code=5)
    assert "planforge plan approve plan-001" in said
    types("Approve the new text.", "plan", "approve", "1")
    tour.stops("planforge plan run plan-001")
    types("Run the rest: the new phases, and the audit of the finished work.", "plan", "run", "1")
    tour.stops("planforge land")
    phases = {phase["id"]: phase["status"] for phase in tour.document("plan", "phases", "1")["phases"]}
    done = dict.fromkeys(phases, "done") | {"phase-4": "skipped"}
    assert phases == done
    assert len(phases) == 7


def _landed(tour: Tour, untouched: Mapping[str, str]) -> None:
    types = tour.types
    types("Preview the landing.", "land", "--dry-run")
    types(
        "Merge it with your branch and run the tests again on the result. Your branch is checked out, "
        "so it is not moved.",
        "land",
    )
    tour.stops("planforge land --update-checkout")
    assert tour.checkout() == untouched, "landing beside the branch touches nothing"
    types("Update your branch and your files.", "land", "--update-checkout")
    tour.stops('planforge forge "what you want"')
    assert git(tour.root, "rev-parse", "HEAD") != untouched["HEAD"]
    for number, part in enumerate(tour.story.parts):
        assert (tour.root / part.module).exists() == (number != 3), part.module
    assert tour.story.readme_edit[1] in (tour.root / tour.story.readme).read_text()


def _afterwards(tour: Tour) -> None:
    types = tour.types
    types("Show the final state.", "status")
    types("Replay the run: every decision follows from the record.", "replay", "run-002")
    for run in tour.document("status")["runs"]:
        replayed = tour.started("replay", run["run"])
        printed, _ = replayed.communicate(timeout=SECONDS)
        assert replayed.returncode == 0, f"{run['run']} does not replay:\n{printed}"
    types("Verify that the record is unchanged.", "verify")
    assert not _left(tour.home), "no process is left"


def _passes(tour: Tour, check: tuple[str, ...]) -> None:
    """What landed passes the project's own tests."""
    done = subprocess.run(
        list(check), cwd=tour.root, env=tour.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _left(home: Path) -> list[str]:
    """The processes that are at work in the project or beside it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place = str((process / "cwd").readlink())
        except OSError:
            continue  # it has ended, or is another person's
        if place.startswith(str(home)):
            found.append(f"{process.name} in {place}")
    return found


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _diff(before: str, after: str) -> str:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
    return "\n".join(lines[2:]) + "\n"
