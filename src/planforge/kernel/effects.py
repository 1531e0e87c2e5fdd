"""
What a flow may ask for.

An effect is a frozen structure that can be awaited: `answer = await RunAgent(...)`
hands it to whoever drives the flow and is typed by the effect's outcome. Nothing
here does anything; performers do, and the driver remembers.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from planforge.kernel.events import Event
from planforge.kernel.evidence import Evidence
from planforge.kernel.tokens import TokenState

Outcome = TypeVar("Outcome")
Result = TypeVar("Result")

Flow = Coroutine["Effect[object] | Together[object] | Note", object, Result]
"""An `async def` that awaits effects and nothing else."""


PATIENCE = 100
"""How many more effects a flow may ask for after it was told to stop, before it is left as it is."""


def close(flow: Flow[object]) -> None:
    """Stop a flow where it is. One that awaits effects on its way out is stopped at each of them."""
    for _ in range(PATIENCE):
        try:
            return flow.close()
        except RuntimeError:  # which says that it went on to another effect
            continue
    return None


class Effect(msgspec.Struct, Generic[Outcome], frozen=True, kw_only=True, omit_defaults=True):
    """
    Something to be performed once, whose outcome is remembered.

    A field that has its default is not part of the fingerprint, so an effect can get another one and runs
    that were recorded without it still replay.
    """

    @property
    def about(self) -> str:
        """What it is about, in a word, for people."""
        return ""

    def __await__(self) -> Generator[Effect[Outcome], Outcome, Outcome]:
        return (yield self)


class Note:
    """Record a fact. Its own outcome: nothing is performed."""

    def __init__(self, event: Event) -> None:
        self.event = event

    def __await__(self) -> Generator[Note, None, None]:
        return (yield self)


class Together(Generic[Result]):
    """Run named flows at once, at most `limit` of them at a time, and collect what each returns."""

    def __init__(self, flows: Mapping[str, Flow[Result]], limit: int | None = None) -> None:
        self.flows = dict(flows)
        self.limit = limit or max(len(self.flows), 1)

    def __await__(self) -> Generator[Together[Result], dict[str, Result], dict[str, Result]]:
        return (yield self)


# Agents and people


class Access(StrEnum):
    """What an agent may do to its worktree."""

    READ = "read"
    WRITE = "write"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the agent reported them."""

    input_tokens: int
    output_tokens: int


HANDED_OVER = "handed_over"
"""The stop reason of an agent whose context was nearly full: another one is to go on."""


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent said; nothing in it is believed."""

    agent: str
    text: str
    stop_reason: str
    tool_calls: int
    usage: Usage | None
    """None where the agent reported none: unknown, not zero."""
    context: TokenState | None = None
    """How full its context was, where it was stopped for that."""
    money: int | None = None
    """What it cost in millionths of the currency, as the agent reported it; None is unknown, not nothing."""


class RunAgent(Effect[AgentAnswer], frozen=True, kw_only=True):
    """Put a task to an agent in a worktree."""

    role: str
    access: Access
    worktree: str
    base: str
    """The commit the worktree was made at, so that it can be made again."""
    prompt: str
    lease: Leased | None = None
    """The lease that it works under, if the run has leases."""
    turn: int = 0
    """Which agent of one attempt it is; 0 if another one cannot go on where its context ends."""

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.role


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A person's answer."""

    answer: str
    actor: str


class AskHuman(Effect[Reply], frozen=True, kw_only=True):
    """Put a question to a person; the run waits without a process if need be."""

    question: str
    options: tuple[str, ...]


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A person's yes to exact content."""

    actor: str
    content: str


class GiveApproval(Effect[Approval], frozen=True, kw_only=True):
    """Record a person's yes to the plan as it is now."""

    plan: str
    gate: str
    content: str
    actor: str


class TakeApproval(Effect[Approval], frozen=True, kw_only=True):
    """Use up the approval that this content needs to pass the gate."""

    plan: str
    gate: str
    content: str


# Documents


class PlanText(msgspec.Struct, frozen=True, kw_only=True):
    """A plan file as it is on disk."""

    text: str
    object: str
    """The address of the text among the ledger's objects."""


class ReadPlan(Effect[PlanText], frozen=True, kw_only=True):
    """Read the plan file."""

    plan: str

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.plan


class WritePlan(Effect[PlanText], frozen=True, kw_only=True):
    """Write the plan file, unless somebody changed what Planforge last left there."""

    plan: str
    text: str
    replaces: str | None
    """The address of the text that is expected on disk; None for a new file."""

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.plan


class MarkPlan(Effect[None], frozen=True, kw_only=True):
    """Say in the plan file what the plan's status is now, changing nothing else in it."""

    plan: str
    status: str

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.status


class WritePhases(Effect[None], frozen=True, kw_only=True):
    """Write the phases file, which people read and nobody parses."""

    plan: str
    text: str


class LandedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step whose change is on the plan's branch."""

    step: str
    scope: tuple[str, ...]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """What earlier runs of the same content have landed."""

    landed: tuple[LandedStep, ...]


class ReadProgress(Effect[Progress], frozen=True, kw_only=True):
    """Which steps of this content have landed already."""

    plan: str
    content: str


# Worktrees, commits, checks, landing


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree at an explicit commit."""

    commit: str
    tree: str


class OpenWorktree(Effect[Checkout], frozen=True, kw_only=True):
    """Make a worktree of this run at `commit`."""

    name: str
    commit: str

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.name


class CloseWorktree(Effect[None], frozen=True, kw_only=True):
    """Remove a worktree, keeping whatever is in it that no commit holds."""

    name: str

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.name


class Tip(msgspec.Struct, frozen=True, kw_only=True):
    """Where a branch points."""

    commit: str


class OpenBranch(Effect[Tip], frozen=True, kw_only=True):
    """Make the branch at `commit` if it does not exist, and say where it points."""

    branch: str
    commit: str

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.branch


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of ours and what it changes against its parent."""

    commit: str
    tree: str
    parent: str
    files: tuple[str, ...]
    changed_lines: int
    conflicts: tuple[str, ...] = ()
    """Paths that could not be merged; the commit is then the unmerged one."""


class Commit(Effect[Patch], frozen=True, kw_only=True):
    """Commit all that is in a worktree on top of `parent`; the commit is kept even if it never lands."""

    worktree: str
    parent: str
    message: str
    step: str
    attempt: int

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return f"{self.step}-{self.attempt}"


class Rebase(Effect[Patch], frozen=True, kw_only=True):
    """Make the same change on top of another commit."""

    commit: str
    onto: str
    step: str
    attempt: int

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return f"{self.step}-{self.attempt}"


class RunCheck(Effect[Evidence], frozen=True, kw_only=True):
    """Run the project's check in a fresh checkout of a commit."""

    commit: str
    tree: str

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.commit[:12]


class Leased(msgspec.Struct, frozen=True, kw_only=True):
    """The right to change some paths, under a fence that tells it from every other."""

    holder: str
    fence: int


class ClaimLease(Effect[Leased], frozen=True, kw_only=True):
    """Take all of `paths`, waiting for whoever has some of them."""

    holder: str
    paths: tuple[str, ...]

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.holder


class ReleaseLease(Effect[None], frozen=True, kw_only=True):
    """Give a lease back; all right if it is gone."""

    lease: Leased
    reason: str

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.lease.holder


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """What the next agent is told, and under which lease it works."""

    handoff: str
    text: str
    """The summary and the answers to its queries, as JSON."""
    commit: str
    """What the agent before it had left in the worktree."""
    lease: Leased | None


class HandOver(Effect[Handover], frozen=True, kw_only=True):
    """Keep what an agent has done so far and say from the ledger what its successor needs to know."""

    plan: str
    step: str
    attempt: int
    turn: int
    worktree: str
    parent: str
    lease: Leased | None
    context: TokenState

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return f"{self.step}-{self.attempt}"


class Landing(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the branch was moved, and where it is now."""

    landed: bool
    tip: str


class Land(Effect[Landing], frozen=True, kw_only=True):
    """Move the branch from `expected` to `commit`, if it still is where it is expected."""

    branch: str
    commit: str
    expected: str
    lease: Leased | None = None
    """The lease that it lands under, if the run has leases."""
    files: tuple[str, ...] = ()
    """What it changes; every path must be covered by the lease."""

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.commit[:12]
