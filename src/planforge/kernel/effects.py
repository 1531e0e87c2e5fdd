"""
What a flow may ask for.

An effect is a frozen structure that can be awaited: `answer = await RunAgent(...)`
hands it to whoever drives the flow and is typed by the effect's outcome. Nothing
here does anything; performers do, and the driver remembers.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Generator, Mapping
from enum import StrEnum
from typing import ClassVar, Generic, TypeVar

import msgspec
from msgspec.structs import asdict

from planforge.kernel.events import (
    Choice,
    ConflictedPath,
    ContextSource,
    Event,
    ForeseenConflict,
    Judged,
    RecordedFinding,
)
from planforge.kernel.evidence import Evidence
from planforge.kernel.tokens import TokenState
from planforge.kernel.turns import Turns, waiting
from planforge.kernel.wording import counted

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

    ABOUT: ClassVar[str] = ""
    """The fields that tell people what it is about, as a format such as `{step}-{attempt}`."""

    @property
    def about(self) -> str:
        """What it is about, in a word, for people."""
        return self.ABOUT.format(**asdict(self))

    def __await__(self) -> Generator[Effect[Outcome], Outcome, Outcome]:
        return (yield self)


class Note:
    """Record a fact. Its own outcome: nothing is performed."""

    def __init__(self, event: Event) -> None:
        self.event = event

    def __await__(self) -> Generator[Note, None, None]:
        return (yield self)


class Together(Generic[Result]):
    """
    Run named flows at once, at most `limit` of them at a time, and collect what each returns.

    `after` names those that must have ended, well or not, before one begins. Such a flow may look at what
    they came to and at nothing else of its siblings: how far those are is another thing each time.
    """

    def __init__(
        self,
        flows: Mapping[str, Flow[Result]],
        limit: int | None = None,
        after: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.flows = dict(flows)
        self.limit = limit or max(len(self.flows), 1)
        try:
            if self.limit < 0:
                raise ValueError(f"at most {self.limit} flows at a time are none at all")
            self.after = waiting(self.flows, after)
        except ValueError:
            for flow in self.flows.values():
                close(flow)
            raise

    @property
    def intent(self) -> object:
        """What is on record of it: whose flows, and which of them wait for which; not how many at a time."""
        names = sorted(self.flows)
        return {"flows": names, "after": self.after} if self.after else names

    def turns(self) -> Turns:
        """Whose turn it is."""
        return Turns(self.flows, self.limit, self.after)

    def __await__(self) -> Generator[Together[Result], dict[str, Result], dict[str, Result]]:
        return (yield self)


# Agents and people


class Access(StrEnum):
    """What an agent may do to its worktree."""

    READ = "read"
    WRITE = "write"


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of one call, whoever counted them."""

    input_tokens: int
    """All that the model read, what came out of a cache included."""
    output_tokens: int
    """All that it wrote, its reasoning included."""
    cached_tokens: int = 0
    """How many of the input tokens came out of a cache."""
    source: str = "reported"
    """`reported` by the agent, or `estimated` by us; what is unknown has no `Usage` at all."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something an agent did, or was kept from doing, as far as it says."""

    kind: str
    """read, edit, execute, … as the Agent Client Protocol has them."""
    title: str
    """What it was, in a line."""
    status: str = ""
    """completed, failed or denied; empty if the agent did not say."""


class Program(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The program that was started, so that an impostor is seen."""

    path: str
    hash: str = ""
    """SHA-256 of the file that was started."""
    version: str = ""


HANDED_OVER = "handed_over"
"""The stop reason of an agent whose context was nearly full: another one is to go on."""


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    money_source: str = ""
    """`reported` by the agent, or `estimated` by a table of prices."""
    sandbox: str = ""
    """How it was confined, really."""
    model: str = ""
    """The model that was asked for or that the agent named; empty is the agent's own choice."""
    tier: str = ""
    """The tier that the model stands for."""
    session: str = ""
    """The agent's own name for the conversation, if it can be taken up again."""
    output: str = ""
    """What it said in the form that was asked for, as JSON."""
    tools: tuple[ToolUse, ...] = ()
    """What it did, the last of it if it was much."""
    program: Program | None = None


class RunAgent(Effect[AgentAnswer], frozen=True, kw_only=True):
    """Put a task to an agent in a worktree."""

    ABOUT = "{role}"
    role: str
    access: Access
    worktree: str
    base: str
    """The commit the worktree was made at, so that it can be made again."""
    prompt: str
    lease: Leased | None = None
    """The lease that it works under, if it changes files."""
    turn: int = 0
    """Which agent of one attempt it is; 0 if another one cannot go on where its context ends."""
    session: str = ""
    """The conversation that this is part of, such as `forge:plan-001:auditor`; empty is a new one."""
    tier: str = ""
    """Another tier than the role's, such as after a stall."""
    output: str = ""
    """The name of the form that the answer is to have; see `planforge.agents.forms`."""
    model: str = ""
    """The model that is asked for, whatever the tier; empty is the tier's."""


class GatheredPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One part of a context, cut to its budget."""

    name: str
    text: str
    left_out: str = ""
    """What was left out of it, in words."""
    sources: tuple[ContextSource, ...] = ()


class DoneStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an earlier step of the plan did."""

    step: str
    title: str
    files: tuple[str, ...]
    claim: str = ""
    """What its agent said about it."""
    evidence: str = ""
    """What we measured."""


class Gathered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent is to know besides its task."""

    tier: str
    """The tier of the role."""
    output: str = ""
    """The form of the role's answers."""
    parts: tuple[GatheredPart, ...] = ()
    """The role block first, then what the repository says of itself."""
    summaries: str = "none"
    """What the role hears of steps that its own does not depend on: none, delta or all."""
    steps: tuple[DoneStep, ...] = ()
    """What earlier steps did, in the order in which they were asked for."""
    budgets: dict[str, int] = {}
    """How many tokens each part may have that the flow itself puts together."""
    tools: bool = True
    """Whether the role's agent can read files; one that cannot is shown those that its task is about."""


class GatherContext(Effect[Gathered], frozen=True, kw_only=True):
    """Read what an agent is to know, from the tree of a commit and from the ledger."""

    ABOUT = "{role}"
    role: str
    plan: str
    base: str
    """The commit whose tree is read, whatever is in any checkout."""
    files: tuple[str, ...] = ()
    """What the work is about, if it is about files."""
    steps: tuple[str, ...] = ()
    """Earlier steps that may be told of."""
    architecture: bool | None = None
    """Whether the architecture is part of it; None is as the role has it."""


class Surveyed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Files that a text may be about."""

    terms: tuple[str, ...] = ()
    """The words that were looked for."""
    paths: tuple[str, ...] = ()
    """The best first; none of them is to be gone beyond."""


class Survey(Effect[Surveyed], frozen=True, kw_only=True):
    """Find the files of a commit that a text may be about."""

    base: str
    text: str
    files: tuple[str, ...] = ()
    """Files that matter in any case, if they are there."""


class ReadFiles(Effect[GatheredPart], frozen=True, kw_only=True):
    """Read files of a commit for an agent that is to see them, within their budget."""

    base: str
    paths: tuple[str, ...]

    @property
    def about(self) -> str:
        """How many there are."""
        return counted(len(self.paths), "file")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A person's answer."""

    answer: str
    actor: str
    reason: str = ""
    """What they said besides: why, or what to do in their own words."""


class AskHuman(Effect[Reply], frozen=True, kw_only=True):
    """Put a question to a person; the run waits, for days and without a process if need be."""

    question: str
    options: tuple[str, ...] = ()
    """The answers there are, where none of them comes with a cost."""
    resumed: str = ""
    """Which of the options it means if the run is taken up again; empty if it means none of them."""
    choices: tuple[Choice, ...] = ()
    """The answers there are, with what each costs and leads to; in the place of `options`."""
    content: str = ""
    """The hash of what the question is about, if it is about something exact."""
    subject: str = ""
    """What it is about, in a word; empty is what the run is about."""

    @property
    def answers(self) -> tuple[Choice, ...]:
        """Each answer there is, whichever way it was given."""
        return self.choices or tuple(Choice(name=option) for option in self.options)


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


class DocumentText(msgspec.Struct, frozen=True, kw_only=True):
    """A plan file, or a document of a task, as it is on disk; empty if there is none."""

    text: str
    object: str
    """The address of the text among the ledger's objects."""


class ReadPlan(Effect[DocumentText], frozen=True, kw_only=True):
    """Read the plan file."""

    ABOUT = "{plan}"
    plan: str


class WritePlan(Effect[DocumentText], frozen=True, kw_only=True):
    """Write the plan file, unless somebody changed what Planforge last left there."""

    ABOUT = "{plan}"
    plan: str
    text: str
    replaces: str | None
    """The address of the text that is expected on disk; None for a new file."""


class MarkPlan(Effect[None], frozen=True, kw_only=True):
    """Say in the plan file what the plan's status is now, changing nothing else in it."""

    ABOUT = "{status}"
    plan: str
    status: str


class ShowPhases(Effect[None], frozen=True, kw_only=True):
    """Write the phases file as the ledger has them now; people read it and nobody parses it."""

    plan: str


class KnownPhases(msgspec.Struct, frozen=True, kw_only=True):
    """How far each phase of a plan has come before this run."""

    statuses: dict[str, str]
    """By step; what is done is on the plan's branch still."""
    problems: dict[str, str] = {}
    """Why those failed that did."""
    changed: dict[str, tuple[str, ...]] = {}
    """Which files of those that failed were changed since."""
    parallel: bool = False
    max_files: int = 5
    """How the plan was cut into them."""
    present: tuple[str, ...] = ()
    """Which names in the plan were taken for files because the repository had them."""
    landed: dict[str, str] = {}
    """What is on the plan's branch of steps that are to be done again, as the commit that landed for each."""


class ReadPhases(Effect[KnownPhases], frozen=True, kw_only=True):
    """Look up the phases of exactly this content; made if there are none, refused if they are stale."""

    plan: str
    content: str
    parallel: bool
    max_files: int


class ReadDocument(Effect[DocumentText], frozen=True, kw_only=True):
    """Read a document of a task, whoever has changed it since."""

    ABOUT = "{name}"
    task: str
    name: str


class WriteDocument(Effect[DocumentText], frozen=True, kw_only=True):
    """Write a document of a task; one that a person has edited meanwhile is not overwritten."""

    ABOUT = "{name}"
    task: str
    name: str
    text: str
    replaces: str = ""
    """The object of what is there now, as far as we know; empty if nothing is."""


class FoundFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What gates are held against."""

    sizes: dict[str, int] = {}
    """How many bytes each file has; what is not there is not in it."""
    unreadable: dict[str, str] = {}
    """Why a path cannot be looked at, such as a link that leads out of the project."""
    fields: dict[str, str | None] = {}
    """What records say; a field that no record has is not in it."""
    verdicts: dict[str, str] = {}
    """What each stage came to last, if it gives a verdict."""


class ReadFacts(Effect[FoundFacts], frozen=True, kw_only=True):
    """Look up what the gates of a stage ask for."""

    ABOUT = "{task}"
    task: str
    paths: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


# Worktrees, commits, checks, landing


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree at an explicit commit."""

    commit: str
    tree: str


class OpenWorktree(Effect[Checkout], frozen=True, kw_only=True):
    """Make a worktree of this run at `commit`."""

    ABOUT = "{name}"
    name: str
    commit: str


class CloseWorktree(Effect[None], frozen=True, kw_only=True):
    """Remove a worktree, keeping whatever is in it that no commit holds."""

    ABOUT = "{name}"
    name: str


class Tip(msgspec.Struct, frozen=True, kw_only=True):
    """Where a branch points."""

    commit: str


class OpenBranch(Effect[Tip], frozen=True, kw_only=True):
    """Make the branch at `commit` if it does not exist, and say where it points."""

    ABOUT = "{branch}"
    branch: str
    commit: str


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

    ABOUT = "{step}-{attempt}"
    worktree: str
    parent: str
    message: str
    step: str
    attempt: int


class Rebase(Effect[Patch], frozen=True, kw_only=True):
    """Make the same change on top of another commit."""

    ABOUT = "{step}-{attempt}"
    commit: str
    onto: str
    step: str
    attempt: int


class RunCheck(Effect[Evidence], frozen=True, kw_only=True):
    """Run the project's check in a fresh checkout of a commit."""

    ABOUT = "{commit:.12}"
    commit: str
    tree: str


class RunFormerTests(Effect[Evidence], frozen=True, kw_only=True):
    """Run the project's check on what a commit holds, with these files as they were in its parent."""

    ABOUT = "{commit:.12}"
    commit: str
    parent: str
    files: tuple[str, ...]


class Inspection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What can be seen of a change without running it."""

    findings: tuple[RecordedFinding, ...] = ()
    """What is wrong with it, or may be; a blocking one refuses the attempt."""
    protected: tuple[str, ...] = ()
    """Each protected path that it changes, and why that needs a person."""
    former: tuple[str, ...] = ()
    """The files of tests that it did more to than add tests: those that were there are run as well."""


class Inspect(Effect[Inspection], frozen=True, kw_only=True):
    """Look at what a commit changes: tests, scope, size, paths that need a person."""

    ABOUT = "{commit:.12}"
    commit: str
    parent: str
    files: tuple[str, ...]
    """What the step may change; nothing is any file."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a person decided about exact content."""

    approved: bool
    actor: str
    reason: str
    void: bool = False
    """Whether a document was edited meanwhile, so that it has to be asked again; nobody decided then."""


class PassGate(Effect[Decision], frozen=True, kw_only=True):
    """Have a person decide whether exactly this tree may land; the run waits until somebody has."""

    ABOUT = "{gate}"
    plan: str
    step: str
    attempt: int
    gate: str
    commit: str
    tree: str
    parent: str
    reasons: tuple[str, ...]
    documents: tuple[Judged, ...] = ()
    """What the person is to read besides, as it is on disk now."""


class Leased(msgspec.Struct, frozen=True, kw_only=True):
    """The right to change some paths, under a fence that tells it from every other."""

    holder: str
    fence: int


class ClaimLease(Effect[Leased], frozen=True, kw_only=True):
    """Take all of `paths`, waiting for whoever has some of them."""

    ABOUT = "{holder}"
    holder: str
    paths: tuple[str, ...]


class ReleaseLease(Effect[None], frozen=True, kw_only=True):
    """Give a lease back; all right if it is gone."""

    ABOUT = "{lease.holder}"
    lease: Leased
    reason: str


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """What the next agent is told, and under which lease it works."""

    handoff: str
    text: str
    """The summary and the answers to its queries, as JSON."""
    commit: str
    """What the agent before it had left in the worktree."""
    lease: Leased


class HandOver(Effect[Handover], frozen=True, kw_only=True):
    """Keep what an agent has done so far and say from the ledger what its successor needs to know."""

    ABOUT = "{step}-{attempt}"
    plan: str
    step: str
    attempt: int
    turn: int
    worktree: str
    parent: str
    lease: Leased
    context: TokenState


class Landing(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the branch was moved, and where it is now."""

    landed: bool
    tip: str


class Land(Effect[Landing], frozen=True, kw_only=True):
    """Move the branch from `expected` to `commit`, if it still is where it is expected."""

    ABOUT = "{commit:.12}"
    branch: str
    commit: str
    expected: str
    lease: Leased
    """The lease that it lands under."""
    files: tuple[str, ...]
    """What it changes; every path must be covered by the lease."""


# The landing queue: finished plans on their way to the person's branch


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The person's branch, and the one that is moved for it."""

    branch: str
    landing: str
    """The branch itself; while that is checked out somewhere, one of ours beside it."""
    tip: str
    tree: str
    branch_at: str
    missing: bool
    """The person's branch has commits that `landing` does not have."""
    foreign: str = ""
    """A commit on `landing` that is neither of our making nor on the branch."""
    checkout: str = ""
    """Where the branch is checked out, if it is."""


class OpenTarget(Effect[Target], frozen=True, kw_only=True):
    """Find out where plans land for `branch`; make that branch, or move it forward, where nothing is lost."""

    ABOUT = "{branch}"
    branch: str


class QueuedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a finished plan, and the files that it changed."""

    step: str
    files: tuple[str, ...]


class QueuedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A finished plan that may land."""

    plan: str
    title: str
    branch: str
    commit: str
    after: tuple[str, ...]
    """The plans it is built on that have not landed."""
    steps: tuple[QueuedStep, ...]
    status: str = ""
    """The status of a task; empty if it is a plan."""


class HeldPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that may not land, and why."""

    plan: str
    reason: str


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """The plans that are to land on a branch, the next one first."""

    ready: tuple[QueuedPlan, ...]
    held: tuple[HeldPlan, ...]
    landed: tuple[str, ...]
    """Plans that are on it."""


class ReadQueue(Effect[Queue], frozen=True, kw_only=True):
    """Which plans may land on `tip`, in which order."""

    ABOUT = "{branch}"
    branch: str
    tip: str
    plans: tuple[str, ...]
    """These alone; nothing is all of them."""


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """A merge that was made without a work tree."""

    commit: str
    """With both sides as its parents; where there are conflicts, with those marked in its files."""
    tree: str
    clean: bool
    conflicts: tuple[ConflictedPath, ...] = ()
    archive: str = ""
    """The ref that the commit is kept under."""


class Merge(Effect[Merged], frozen=True, kw_only=True):
    """Merge two commits; the result is kept even if it never lands."""

    ABOUT = "{label}"
    ours: str
    theirs: str
    message: str
    label: str
    """The name that the result is kept under."""
    base: str = ""
    """What both sides are compared with; empty takes what git finds."""


class AdvanceBranch(Effect[Landing], frozen=True, kw_only=True):
    """Move `landing` from `expected` to `commit`, if it and the person's branch still are where they were."""

    ABOUT = "{landing}"
    branch: str
    branch_at: str
    landing: str
    commit: str
    expected: str
    item: str = ""
    """The plan, fix or task that lands by this; refused if a person has given it up meanwhile."""


class Restarted(msgspec.Struct, frozen=True, kw_only=True):
    """Where the branch beside the person's is now, and where its former tip is kept."""

    tip: str
    archive: str


class RestartLanding(Effect[Restarted], frozen=True, kw_only=True):
    """Archive what has landed beside the person's branch, and begin again at that branch."""

    ABOUT = "{landing}"
    branch: str
    landing: str
    expected: str
    to: str


class Commits(msgspec.Struct, frozen=True, kw_only=True):
    """Commits, the oldest first."""

    commits: tuple[str, ...]


class ReadCommits(Effect[Commits], frozen=True, kw_only=True):
    """What came to `until`, one first parent after the other, that none of `since` has."""

    ABOUT = "{until:.12}"
    since: tuple[str, ...]
    until: str


class CommitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit says of itself."""

    parents: tuple[str, ...]
    subject: str
    author: str
    plan: str
    """The plan that it landed, by its trailers; empty if it does not say."""
    step: str


class ReadCommit(Effect[CommitFacts], frozen=True, kw_only=True):
    """Who made a commit, and for which plan."""

    ABOUT = "{commit:.12}"
    commit: str


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """What would conflict if it were all to land now."""

    onto: str
    items: tuple[str, ...]
    """The work that was looked at: plans, and steps of plans under way."""
    conflicts: tuple[ForeseenConflict, ...]
    merges: int
    """How many pairs touch the same paths and were merged to see."""
    left_out: int = 0
    """How many more there were than are looked at in one go."""


class Probe(Effect[Probed], frozen=True, kw_only=True):
    """Merge work that has not landed with `branch`, and each with each, to see what conflicts."""

    ABOUT = "{branch}"
    branch: str
    onto: str


class CheckoutChange(msgspec.Struct, frozen=True, kw_only=True):
    """A checkout that was brought up to date."""

    place: str
    was: str
    now: str
    files: int


class UpdateCheckout(Effect[CheckoutChange], frozen=True, kw_only=True):
    """Move `branch` forward to `commit` together with the files of the checkout that is on it."""

    ABOUT = "{branch}"
    branch: str
    commit: str
