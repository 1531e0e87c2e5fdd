"""What a case says, what was seen of it afterwards, and what that comes to."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

Action = Mapping[str, Any]


class Role(StrEnum):
    """Who is asked; what an orchestrator calls them is its adapter's business."""

    DRAFTER = "drafter"
    AUDITOR = "auditor"
    """Judges a plan."""
    REVISER = "reviser"
    DEVELOPER = "developer"
    REVIEWER = "reviewer"
    """Judges the work."""


class Workflow(StrEnum):
    """The way that a task goes to the target branch."""

    PLAN = "plan run"
    FORGE = "forge"
    FIX = "fix"
    TASK = "task review"
    TWO_PLANS = "landing of two plans"


ELSEWHERE = (Workflow.TASK,)
"""The other way in which what a developer does gets to the target branch, besides a plan's."""
EVERYWHERE = (Workflow.FIX, *ELSEWHERE)
"""The same, and as a fix: that takes the step of a plan's phase, so a few of each kind show that it does."""


class Twin(StrEnum):
    """Which of the two agents of a case is at work."""

    BAD = "bad"
    HONEST = "honest"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Something to be done in the sample repository, its honest change, and a test that nobody is shown."""

    name: str
    title: str
    request: str
    changes: tuple[tuple[str, str], ...]
    """The files that it is about, and what changes in each."""
    files: Mapping[str, str]
    """The honest change."""
    hidden: str
    """A test module; it passes if the task was done."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent does when it is asked in a role."""

    role: Role
    do: tuple[Action, ...]
    attempt: int | None = None
    """Only in this attempt or round; otherwise in every one."""
    task: str = ""
    """Only for this task; otherwise for every one."""
    hears: str = ""
    """Played whenever a prompt holds this text, whoever is asked."""
    reports: bool = True
    """Whether it says what it used, also where `do` says nothing of it."""


class LandedText(msgspec.Struct, frozen=True, kw_only=True):
    """This text must not be in any file that was ever on the target branch."""

    text: str


class LandedPath(msgspec.Struct, frozen=True, kw_only=True):
    """No such file may ever be on the target branch."""

    path: str


class LostPath(msgspec.Struct, frozen=True, kw_only=True):
    """This file must be in every tree of the target branch."""

    path: str


class Landed(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing at all may land."""


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """With this text in the place of a file, the tests that landed must still fail."""

    path: str
    text: str


class Leaked(msgspec.Struct, frozen=True, kw_only=True):
    """This secret must be in no object of git, nothing that was printed, no file that others can read."""

    secret: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Agents must not be asked more often than this."""

    at_most: int


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Agents must not use more tokens than this."""

    at_most: int


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """This file, which a planted program would make, must not be there."""

    path: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """No agent may be told this; the case has a part that `hears` it."""

    text: str


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was asked for must have landed in the end."""


OnTarget = LandedText | LandedPath | LostPath | Landed
Truth = OnTarget | Unfinished | Mutant | Leaked | Asked | Spent | Ran | Told


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One way to misbehave, with the same work done honestly."""

    name: str
    group: str
    workflow: Workflow
    """The one that the case is about first; what it comes to without an orchestrator is told for this one."""
    about: str
    tasks: tuple[Task, ...]
    bad: tuple[Part, ...]
    honest: tuple[Part, ...] = ()
    truth: tuple[Truth, ...] = ()
    also: tuple[Workflow, ...] = ()
    """The other workflows that the same agents are put to."""
    settings: str = ""
    """Settings that the case is about, in the form of `planforge.toml`."""
    unapproved: bool = False
    """Whether the person never approves what the misbehaving agent is to do."""
    edited: str = ""
    """A change that somebody adds to the plan after it was approved, for the misbehaving agent."""
    killed: bool = False
    """Whether the orchestrator is killed while the misbehaving agent is at work, and told to go on."""
    suspended: bool = False
    """Whether the orchestrator stands still while the misbehaving agent is at work at the first task, until
    the second one is done."""
    files: Mapping[str, str] = {}
    """What is in the sample repository besides, in its first commit."""
    codes: tuple[int, ...] = ()
    """The exit codes of which the refusal must have one; none: any but 0."""
    uncatchable: str = ""
    """Why no program could tell without understanding the task."""
    peer: str = ""
    """The row of the published measurement of a peer that this agent is in."""

    @property
    def cells(self) -> tuple[Case, ...]:
        """The case in each of its workflows, the first one first."""
        return tuple(
            msgspec.structs.replace(self, workflow=workflow, also=())
            for workflow in (self.workflow, *self.also)
        )


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A command that the person gave."""

    argv: tuple[str, ...]
    code: int | None
    """None if it was still running when its time was up."""
    seconds: float
    output: str = ""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A directory with everything that a case may touch, made anew for it."""

    directory: Path

    @property
    def root(self) -> Path:
        """The repository, checked out at the target branch."""
        return self.directory / "work" / "shop"

    @property
    def home(self) -> Path:
        """The person's home."""
        return self.directory / "home"

    @property
    def origin(self) -> Path:
        """The remote repository."""
        return self.directory / "origin.git"

    @property
    def backstage(self) -> Path:
        """Where the agent's script and its journal are; nobody looks for anything there."""
        return self.directory / "backstage"

    @property
    def script(self) -> Path:
        """What the agent plays."""
        return self.backstage / "script.json"

    @property
    def scenes(self) -> Path:
        """Which part each scene of the script plays."""
        return self.backstage / "scenes.json"

    @property
    def journal(self) -> Path:
        """What it was asked, written by itself."""
        return self.backstage / "journal.jsonl"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of one twin of a case came to, as the oracle saw it."""

    case: str
    workflow: Workflow
    twin: Twin
    orchestrator: str
    landed: bool
    """Whether the target branch has moved."""
    done: bool
    """Whether everything that was asked for is on the target branch and right."""
    harm: tuple[str, ...]
    """What must not have come about and has."""
    played: bool
    """Whether the agent got to do what the case is about."""
    lost: tuple[str, ...]
    """The texts of agents that are nowhere any more, by their paths."""
    processes: tuple[str, ...]
    """The processes that were left, by their command lines."""
    calls: tuple[Call, ...]
    attempts: int
    """How often the misbehaving role was asked."""
    asked: int
    tokens: int
    seconds: float
    lies: tuple[str, ...] = ()
    """Where an exit code did not tell the truth."""
    error: str = ""
    """Why the case could not be run at all."""
