"""What a change is asked for with, what it goes through, and how it ends."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from planforge.kernel.effects import (
    AgentAnswer,
    Flow,
    GatherContext,
    Gathered,
    Inspection,
    Leased,
    Patch,
)
from planforge.kernel.evidence import Evidence
from planforge.rules.escalation import Reached
from planforge.workflows import asking
from planforge.workflows.asking import Question
from planforge.workflows.context import Prompt

EVERYTHING = ("**",)
"""What a change leases that does not say which files it touches."""

DEVELOPER = "developer"


def branch_of(item: str) -> str:
    """The branch that a plan, fix or task lands on."""
    return f"planforge/{item}"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is wanted: of what, within which files, how often it is tried, where it lands."""

    plan: str
    """The plan, fix or task that it belongs to."""
    run: str
    step: str
    title: str
    base: str
    """The commit that it is a change of."""
    files: tuple[str, ...] = ()
    """What it may touch; nothing is any file."""
    prompt: Callable[[int, str], Prompt]
    """What the agent of an attempt is asked, by its number and why the one before it was rejected."""
    content: str = ""
    """What was approved."""
    exact: bool = False
    """Whether only the tree that was proposed may land, because it was approved."""
    role: str = DEVELOPER
    tier: str = ""
    model: str = ""
    attempts: int = 3
    first: int = 1
    """The number of its first attempt."""
    handoffs: int = 0
    """How often the agent of one attempt may hand over."""
    escalate_after: int = 0
    """After how many attempts without progress the next one gets a heavy model, once; 0 is never."""
    earlier: tuple[str, ...] = ()
    """The steps that are done, in order."""
    closure: tuple[str, ...] = ()
    """The steps that this one depends on, directly or not."""
    problem: str = ""
    """Why an earlier run could not do it, if one tried."""
    landed: str = ""
    """The commit on the branch that landed for the same step before, if there is one."""
    gather: Callable[[GatherContext], Flow[Gathered]] | None = None
    """How its agent's context is gathered, if not as it is."""
    ask: Callable[[Question, Gathered], Flow[AgentAnswer]] = asking.ask

    @property
    def branch(self) -> str:
        """The branch that it lands on."""
        return branch_of(self.plan)

    @property
    def leases(self) -> tuple[str, ...]:
        """The paths that it leases."""
        return self.files or EVERYTHING


class Attempt(msgspec.Struct):
    """One attempt under way: where it begins, what its agent is told, and the lease that it has now."""

    change: Change
    number: int
    base: str
    gathered: Gathered
    tier: str
    """The tier of its agent, if it is not the role's own."""
    lease: Leased
    """A successor has another one: it changes when an agent hands over."""

    @property
    def worktree(self) -> str:
        """The name of its worktree."""
        return f"{self.change.step}-{self.number}"


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change that could land: inspected, and with evidence that passed if it was checked."""

    patch: Patch
    inspection: Inspection
    answer: AgentAnswer | None = None
    """What its agent said of it, if it was made in this run."""
    evidence: Evidence | None = None

    @property
    def reason(self) -> str:
        """Why it was taken."""
        return self.evidence.reason if self.evidence else "proposed"


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt was not taken, and where the branch was then."""

    reason: str
    tip: str
    reached: Reached = Reached.EVIDENCE
    """How far it came."""
    failing: int | None = None
    """How many tests failed, where that was counted."""
    person: bool = False
    """A person said no to it."""
    unchanged: Patch | None = None
    """What there is, if the agent changed nothing."""


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a step of a plan ended."""

    step: str
    done: bool
    tip: str
    reason: str
    notes: str = ""
    voided: bool = False
    """The approval no longer holds."""
    waiting: bool = False
    """It was not begun, because something that it depends on is not done."""
    person: bool = False
    """A person has to look at it."""
    files: tuple[str, ...] = ()
    """What the change that landed touches."""
    changed_lines: int = 0
