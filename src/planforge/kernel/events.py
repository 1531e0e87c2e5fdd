"""
The facts a ledger holds: one frozen structure each, in the past tense.

The union is closed. A fact's name is its class name; how it looks on disk is its
fields as JSON. The revision of that shape is written beside each fact, and
`upcasts` turns an earlier shape into today's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, get_args

import msgspec

from planforge.kernel.evidence import Evidence
from planforge.kernel.scores import StepScore


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened."""


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """A body that is either here or, if large, an object of the ledger."""

    inline: msgspec.Raw = msgspec.Raw(b"null")
    object: str | None = None


# Runs and their effects


class RunStarted(Event, frozen=True, kw_only=True):
    """A flow was asked for."""

    run: str
    flow: str
    flow_version: int
    subject: str
    """What the run is about, such as a plan."""
    request: Payload


class DriverStarted(Event, frozen=True, kw_only=True):
    """A process took the run; whoever had it before can record nothing more."""

    run: str
    fence: int
    process: int


class EffectIntended(Event, frozen=True, kw_only=True):
    """An effect is about to be performed."""

    effect: str
    about: str = ""
    """What the effect is about, in a word, for people."""
    fingerprint: str
    body: Payload


class EffectCompleted(Event, frozen=True, kw_only=True):
    """An effect was performed, with this outcome."""

    effect: str
    outcome: Payload


class RecordedAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action (`actions.py`) in a fact."""

    verb: str
    items: tuple[str, ...] = ()
    options: dict[str, str | int | bool] = {}
    blanks: tuple[str, ...] = ()
    """Those of its items and values that a person fills in."""


class EffectFailed(Event, frozen=True, kw_only=True):
    """An effect was tried and the world said no."""

    effect: str
    error: str
    message: str
    hint: tuple[str | RecordedAction, ...] | None = None
    """What to do next: texts and actions, to be read one after the other."""


class RunParked(Event, frozen=True, kw_only=True):
    """The run waits: for a person, or until a time."""

    run: str
    reason: str
    until: str = ""
    """From when on it can be taken up, if it waits for an agent's limit; empty if it waits for a person."""


class CancelRequested(Event, frozen=True, kw_only=True):
    """Somebody wants a run to end that another process drives; that process hears of it and ends it."""

    run: str
    actor: str
    reason: str
    with_plan: bool = False
    """Whether the plan that the run is about is cancelled with it."""


class RunEnded(Event, frozen=True, kw_only=True):
    """The flow returned, or failed for good."""

    run: str
    succeeded: bool
    reason: str
    exit_code: int


# What plans are made of


class RecordedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as it stood when it was recorded."""

    severity: str
    title: str
    location: str = ""


class PlannedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a plan as it was planned; it never changes, a changed plan has new ones."""

    step: str
    title: str
    kind: str
    files: tuple[str, ...]
    """The paths and globs it may change."""
    depends_on: tuple[str, ...]
    gates: tuple[str, ...] = ()
    """Gates a person must open before it starts."""
    weight: int = 1
    """How long it is thought to take against other steps, for the critical path."""


class KeptStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of new phases that need not be done again."""

    step: str
    was: str
    """Its name among the phases before."""
    status: str
    """done or skipped"""
    commit: str = ""
    """What it landed as; empty if it changed nothing."""


class PlannedRisk(msgspec.Struct, frozen=True, kw_only=True):
    """What may go wrong, and which steps must wait until it is settled."""

    risk: str
    description: str
    severity: str
    blocks: tuple[str, ...] = ()


class OfStep(Event, frozen=True, kw_only=True):
    """What all facts of a step say: whose it is, and its name there."""

    plan: str
    step: str


class OfAttempt(OfStep, frozen=True, kw_only=True):
    """What all facts of an attempt at a step say."""

    attempt: int


# Items: what people work on


class ItemOpened(Event, frozen=True, kw_only=True):
    """Somebody wants something: an item has its number, and a plan its steps if they are known."""

    item: str
    """Its name, which says what kind it is."""
    title: str
    request: str
    """The goal."""
    path: str = ""
    """The document, or the directory of documents; empty for an item that is kept in the ledger alone."""
    parent: str = ""
    """What it is a part of, such as the task that a plan is for; empty is the one that is the plan's own."""
    description: str = ""
    """The beginning of what was given with the request."""
    pipeline: str = ""
    """The pipeline that a task goes through."""
    constraints: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    """What must hold when it is done."""
    steps: tuple[PlannedStep, ...] = ()
    risks: tuple[PlannedRisk, ...] = ()


class ItemMoved(Event, frozen=True, kw_only=True):
    """An item has another status, along a row of the table of its kind."""

    item: str
    by: str
    """What happened to it, as the table calls it."""
    status: str
    actor: str = ""
    """The person who made it happen, if one did."""
    reason: str = ""
    override: bool = False
    """A plan was closed although no evidence says that it is done."""
    unlanded: str = ""
    """The commit on its branch that had not landed."""


class ItemLinked(Event, frozen=True, kw_only=True):
    """What an item comes after, in place of what was said before: it waits until all of that is over."""

    item: str
    after: tuple[str, ...] = ()
    actor: str


# Plans


class PlanRescoped(Event, frozen=True, kw_only=True):
    """The plan got a new revision, which supersedes the one before."""

    plan: str
    revision: int
    reason: str
    steps: tuple[PlannedStep, ...]
    risks: tuple[PlannedRisk, ...] = ()
    kept: tuple[str, ...] = ()
    """Steps that are done and need not be done again."""


class RiskRaised(Event, frozen=True, kw_only=True):
    """Something that may go wrong was found after the plan was made."""

    plan: str
    risk: str
    description: str
    severity: str
    blocks: tuple[str, ...]


class RiskSettled(Event, frozen=True, kw_only=True):
    """A risk holds nothing back any more, and why."""

    plan: str
    risk: str
    reason: str
    actor: str


class GateOpened(OfStep, frozen=True, kw_only=True):
    """A person let a step through a gate, as it is planned now."""

    gate: str
    content: str
    """The hash of the planned step; a step that is planned anew has another."""
    actor: str


class PlanWritten(Event, frozen=True, kw_only=True):
    """The plan file was drafted or revised."""

    plan: str
    round: int
    cause: Literal["draft", "audit", "revision"]
    title: str
    content: str
    """The hash an approval of this text would be bound to."""
    object: str
    """The whole text, kept in the ledger."""


class AuditRecorded(Event, frozen=True, kw_only=True):
    """One round of audit, what it found, and what that led to."""

    plan: str
    step: str = ""
    """The audit step of a plan's run; empty for an audit of the plan itself."""
    round: int
    by: str
    verdict: str
    reason: str
    findings: tuple[RecordedFinding, ...]
    decision: str
    decision_reason: str


class PlanForged(Event, frozen=True, kw_only=True):
    """The draft, audit, revise loop ended; a person reviews what it left."""

    plan: str
    content: str
    rounds: int
    reason: str
    clean: bool
    """Whether it ended because nothing blocks, and not for any other reason."""
    warning: str = ""
    """What is wrong with the form of the plan although nothing blocks."""


class PhasesGenerated(Event, frozen=True, kw_only=True):
    """A plan was cut into steps; what is not kept is still to be done, or to be done again."""

    plan: str
    content: str
    """The content of the plan that they were made from; with any other they are stale."""
    parallel: bool
    max_files: int
    steps: tuple[PlannedStep, ...]
    signatures: dict[str, str]
    """What each step says, as a hash, to be known again by whatever it is called."""
    kept: tuple[KeptStep, ...] = ()
    """Steps that were done or skipped before and are the same now."""
    actor: str = ""
    """Whoever had them made anew; empty for the first ones."""
    present: tuple[str, ...] = ()
    """Which names in the plan were taken for files because the repository had them."""


class PlanStarted(Event, frozen=True, kw_only=True):
    """A run began to carry out the plan."""

    plan: str
    run: str
    content: str
    branch: str
    base: str
    steps: tuple[PlannedStep, ...]
    kept: tuple[str, ...]
    """Steps that an earlier run of the same content had landed."""
    skipped: tuple[str, ...] = ()
    """Steps that a person had left out before."""


class PlanPaused(Event, frozen=True, kw_only=True):
    """A run of a plan ended and the plan did not: something failed, or not all was asked for."""

    plan: str
    run: str
    reason: str
    failed: tuple[str, ...]
    left: tuple[str, ...]
    """Steps that are neither done nor skipped, those that failed among them."""
    branch: str
    commit: str


class PlanEnded(Event, frozen=True, kw_only=True):
    """All steps are done, or the plan cannot go on."""

    plan: str
    run: str
    succeeded: bool
    reason: str
    branch: str
    commit: str


# Lessons


class LessonDecided(Event, frozen=True, kw_only=True):
    """A person said what becomes of what a plan has taught."""

    plan: str
    """The plan, or the task."""
    decision: Literal["update", "add", "none"]
    """A lesson that there was is updated, one that nobody had is added, or none is needed."""
    lesson: str
    """The lesson's name in the file; empty if none is needed."""
    actor: str
    reason: str = ""


# Decisions of people


DecisionKind = Literal["approval", "gate", "question"]


class Choice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer that a person may give, with what they should know before they give it."""

    name: str
    cost: str = ""
    """What it costs, in words, as far as that is known."""
    consequence: str = ""
    """What comes of it."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A document that a decision is about, as it was on disk."""

    path: str
    object: str
    """The hash of its bytes; empty if there was none."""


class OfDecision(Event, frozen=True, kw_only=True):
    """What all facts of a decision say: which one it is, and what it is about."""

    kind: DecisionKind
    number: int
    """Of its kind; what is written again under a number that is taken says nothing."""
    subject: str
    """What it is about, such as a plan or a task."""
    name: str
    """What is decided there; the newest of a name takes the place of those before."""
    content: str = ""
    """The plan, the tree or the document that it is about, by its hash; empty if nothing exact."""

    @property
    def plan(self) -> str:
        """The subject, by the name that it has in other facts."""
        return self.subject


class DecisionAsked(OfDecision, frozen=True, kw_only=True):
    """A person is to decide about exact content: let a plan run, let a change land, or choose."""

    run: str = ""
    """The run that waits for it, if one does."""
    step: str = ""
    attempt: int = 0
    text: str = ""
    reasons: tuple[str, ...] = ()
    choices: tuple[Choice, ...]
    commit: str = ""
    base: str = ""
    diff: str = ""
    """What a person is to look at, an object of the ledger, without secrets."""
    documents: tuple[Judged, ...] = ()
    """What has to be the same on disk when somebody decides, and when a run acts on it."""
    hash: str = ""
    """The hash of all that is asked, but for the number."""


class DecisionMade(OfDecision, frozen=True, kw_only=True):
    """A person chose, about exactly what was asked."""

    hash: str
    """The hash of what was asked: an answer to anything else opens nothing."""
    choice: str
    actor: str
    reason: str = ""

    @property
    def approves(self) -> bool:
        """Whether it is a yes, and not a no or the answer to a question."""
        return self.kind != "question" and self.choice == "approve"


class DecisionUsed(OfDecision, frozen=True, kw_only=True):
    """A run took a yes; it opens nothing for any other."""

    run: str
    continues: str = ""
    """The run that used it before, if this one goes on under the same yes."""


# Steps


class StepStarted(OfAttempt, frozen=True, kw_only=True):
    """An attempt at a step began at an explicit commit."""

    base: str
    holder: str = ""
    """Who makes the attempt."""
    fence: int = 0
    """The lease it is made under; 0 where no files are leased."""


class PatchProposed(OfAttempt, frozen=True, kw_only=True):
    """An agent left a change and said something about it."""

    commit: str
    tree: str
    files: tuple[str, ...]
    claim: str
    agent: str
    sandbox: str = ""
    """How the agent was confined, really."""


class AttemptInspected(OfAttempt, frozen=True, kw_only=True):
    """What was seen of a change before anything of it was run, where there was anything to see."""

    commit: str
    findings: tuple[RecordedFinding, ...]
    protected: tuple[str, ...]
    """Paths that need a person, each with the reason."""


class VerifyOk(OfAttempt, frozen=True, kw_only=True):
    """Planforge checked the tree and it passed."""

    evidence: Evidence


class VerifyFailed(OfAttempt, frozen=True, kw_only=True):
    """Planforge checked the tree and it failed, or could not tell."""

    evidence: Evidence


class AttemptRejected(OfAttempt, frozen=True, kw_only=True):
    """The attempt is not taken, and why."""

    reason: str


class PatchApplied(OfAttempt, frozen=True, kw_only=True):
    """The change landed on the plan's branch."""

    content: str
    """The content of the plan under which it landed."""
    scope: tuple[str, ...]
    """The files the step was allowed to change."""
    branch: str
    commit: str
    tree: str
    parent: str


class StepCompleted(OfStep, frozen=True, kw_only=True):
    """The step is done, and what its evidence is worth."""

    attempts: int
    score: StepScore | None
    """None for a step that changes nothing, such as an audit."""
    found: str = ""
    """The commit that had landed for it before, if nothing was left to change and the evidence holds."""


class StepFailed(OfStep, frozen=True, kw_only=True):
    """The step used up its attempts."""

    attempts: int
    reason: str


class ArtifactKind(StrEnum):
    """What a step can touch or leave."""

    FILE = "file"
    SYMBOL = "symbol"
    PATCH = "patch"
    TEST = "test"
    REPORT = "report"


class ArtifactRecorded(OfAttempt, frozen=True, kw_only=True):
    """A step touched or left something worth finding again."""

    kind: ArtifactKind
    name: str
    hash: str
    """The hash of its content, or its address among the objects."""


# Landing on the person's branch


class ConflictedPath(msgspec.Struct, frozen=True, kw_only=True):
    """A path that could not be merged, and its three contents in git; empty where a side has none."""

    path: str
    base: str = ""
    ours: str = ""
    """On the branch that it was to land on."""
    theirs: str = ""
    """On the plan's branch."""


class ForeseenConflict(msgspec.Struct, frozen=True, kw_only=True):
    """Two pieces of work that cannot both land as they are."""

    one: str
    other: str
    paths: tuple[str, ...]


class MergeChecked(Event, frozen=True, kw_only=True):
    """Planforge checked a commit of the landing queue: a merge, or the branch by itself."""

    branch: str
    plan: str
    """The plan that was merged; empty for the branch by itself, or with the person's own commits."""
    onto: str
    evidence: Evidence


class PlanLanded(Event, frozen=True, kw_only=True):
    """A finished plan is merged, and the merged tree has passed."""

    plan: str
    branch: str
    """The person's branch."""
    landing: str
    """The branch that was moved: the same, or the one beside it while that is checked out."""
    commit: str
    tree: str
    parent: str
    merged: str
    """The tip of the plan's branch."""


class LandingConflicted(Event, frozen=True, kw_only=True):
    """A plan cannot be merged; both sides are kept."""

    plan: str
    branch: str
    onto: str
    merged: str
    conflicts: tuple[ConflictedPath, ...]
    archive: str
    """The ref of a commit with both sides as its parents and the conflicts marked in its files."""


class LandingBroken(Event, frozen=True, kw_only=True):
    """Both sides pass and together they do not, and which commit that comes from, if it can be told."""

    plan: str
    branch: str
    onto: str
    merged: str
    commit: str
    """The merge of both."""
    failing: tuple[str, ...]
    culprit: str
    """Empty where it cannot be told."""
    culprit_plan: str
    culprit_step: str
    suspects: tuple[str, ...]
    """The commits one of which it is, where it cannot be told which."""
    checks: int
    reason: str


class PlanHeldBack(Event, frozen=True, kw_only=True):
    """A plan did not land, and why; it was not found wanting and stays as it is."""

    plan: str
    branch: str
    reason: str


class StepRetried(OfStep, frozen=True, kw_only=True):
    """A step that had failed is tried again, on top of what was changed meanwhile."""

    problem: str
    """Why it had failed."""
    changed: tuple[str, ...] = ()
    """Those of its files that were changed since; they are kept as they are."""


class StepSkipped(OfStep, frozen=True, kw_only=True):
    """A person had a step left out; what depends on it need not wait for it."""

    actor: str
    reason: str


class StepReopened(OfStep, frozen=True, kw_only=True):
    """What the step did cannot land as it is; the plan returns to review."""

    reason: str


class LandingCaughtUp(Event, frozen=True, kw_only=True):
    """The person's own commits were merged with what has landed beside their branch."""

    branch: str
    landing: str
    commit: str
    merged: str


class LandingRestarted(Event, frozen=True, kw_only=True):
    """What had landed beside the branch does not go with it any more: it is archived and queued again."""

    branch: str
    landing: str
    was: str
    now: str
    archive: str
    reason: str


class ConflictsForeseen(Event, frozen=True, kw_only=True):
    """Work under way conflicts with what has landed, or with other work, before any of it is to land."""

    branch: str
    onto: str
    conflicts: tuple[ForeseenConflict, ...]


class PullRequestOpened(Event, frozen=True, kw_only=True):
    """The person had a plan's branch pushed, and a pull request opened for it with its evidence."""

    plan: str
    url: str
    branch: str
    commit: str
    actor: str
    base: str = ""
    """The branch that it is to be merged into."""


class CheckoutUpdated(Event, frozen=True, kw_only=True):
    """The person had what landed brought into their checkout."""

    branch: str
    place: str
    """Empty where the branch was checked out nowhere."""
    was: str
    now: str
    files: int


# Leases


class LeaseGranted(Event, frozen=True, kw_only=True):
    """A holder may change these paths until then. All of them, or there is no such event."""

    holder: str
    paths: tuple[str, ...]
    fence: int
    until: str


class LeaseRenewed(Event, frozen=True, kw_only=True):
    """The lease lasts longer; its fence is the same."""

    holder: str
    fence: int
    until: str


class LeaseReleased(Event, frozen=True, kw_only=True):
    """The lease ended, by its holder or, forced, by somebody else."""

    holder: str
    fence: int
    forced: bool
    actor: str
    reason: str


class LeaseExpired(Event, frozen=True, kw_only=True):
    """A lease that had run out was found by somebody who wanted its paths."""

    holder: str
    fence: int
    until: str


class LeasePassed(Event, frozen=True, kw_only=True):
    """A lease went to a successor; whoever lands with the old fence is refused."""

    holder: str
    fence: int
    successor: str
    new_fence: int
    until: str


class LeaseAwaited(Event, frozen=True, kw_only=True):
    """Somebody waits in line for paths that are taken."""

    holder: str
    paths: tuple[str, ...]
    behind: tuple[str, ...]
    """The holders, and those before it in line, whom it waits for."""
    until: str
    """How long it is ready to wait."""


class LeaseWaitEnded(Event, frozen=True, kw_only=True):
    """Somebody stopped waiting without a lease."""

    holder: str
    reason: str


# Budgets


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """How much of each kind; None is unknown in what was spent, and no limit in what is allowed."""

    tokens: int | None = None
    money: int | None = None
    """In millionths of the currency."""
    seconds: int | None = None
    attempts: int | None = None


class BudgetSet(Event, frozen=True, kw_only=True):
    """What a scope may spend from now on, all that it has spent already included."""

    scope: str
    limits: Amounts
    actor: str


class BudgetReserved(Event, frozen=True, kw_only=True):
    """This much was put aside before the work began."""

    reservation: str
    scopes: tuple[str, ...]
    amounts: Amounts


class BudgetSpent(Event, frozen=True, kw_only=True):
    """This much is known to be gone while the work goes on."""

    reservation: str
    amounts: Amounts


class BudgetReconciled(Event, frozen=True, kw_only=True):
    """The work ended; what is unknown counts as what was reserved."""

    reservation: str
    spent: Amounts
    reason: str


# Handoffs


class HandoffEmitted(Event, frozen=True, kw_only=True):
    """An agent stopped at its token threshold and left what its successor needs."""

    handoff: str
    plan: str
    step: str
    holder: str
    successor: str
    fence: int
    """The successor's lease; 0 where none was held."""
    used: int
    threshold: int
    estimated: bool
    """The agent did not say how many tokens it had used; this is our estimate."""
    summary: Payload


class HandoffLoaded(Event, frozen=True, kw_only=True):
    """A successor took up the work."""

    handoff: str
    plan: str
    step: str
    holder: str


# Agents


class ContextSource(msgspec.Struct, frozen=True, kw_only=True):
    """A text that an agent was given, as it was then."""

    path: str
    hash: str
    """SHA-256 of the whole of it."""


class ContextPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of what an agent was told."""

    name: str
    """role, standards, architecture, lessons, overlay, closure, summaries or task."""
    tokens: int
    """How many it has, by our guess."""
    left_out: str = ""
    """What was left out of it, in words; empty if nothing was."""
    sources: tuple[ContextSource, ...] = ()


class ContextComposed(Event, frozen=True, kw_only=True):
    """What an agent was told, part by part."""

    plan: str
    step: str = ""
    attempt: int = 0
    role: str
    parts: tuple[ContextPart, ...]
    tokens: int
    """How many the whole prompt has, by our guess."""
    simplified: bool = False
    """It is the second try, after an answer that could not be used."""


class FilesChosen(Event, frozen=True, kw_only=True):
    """An agent chose the files that it plans from, out of those that it was offered."""

    plan: str
    role: str
    terms: tuple[str, ...]
    """The words by which Planforge looked for files."""
    offered: tuple[str, ...]
    chosen: tuple[str, ...]
    agent: str = ""


class TierEscalated(Event, frozen=True, kw_only=True):
    """The next call of a role gets a model of another tier, once."""

    plan: str
    step: str = ""
    attempt: int
    """The attempt or the round that gets it."""
    role: str
    tier: str
    instead_of: str
    reason: str


class SessionKept(Event, frozen=True, kw_only=True):
    """A conversation with an agent can be gone on with."""

    run: str
    conversation: str
    agent: str
    model: str
    session: str
    """The agent's own name of it."""
    home: str
    """The agent's private home, beneath the state directory."""
    began_at: str
    input_tokens: int = 0
    """What the whole conversation has used so far, as far as it is known."""
    output_tokens: int = 0
    cached_tokens: int = 0
    unfinished: bool = False
    """The agent was cut off by its limit: its worktree is as it left it, and the same task goes on."""


class SessionLost(Event, frozen=True, kw_only=True):
    """A conversation with an agent is over; the next call of its name begins a new one."""

    run: str
    conversation: str
    agent: str
    reason: str


class LimitReached(Event, frozen=True, kw_only=True):
    """An agent said that its usage limit is reached."""

    run: str
    agent: str
    until: str
    said: bool
    """Whether the agent said until when; otherwise it is our guess when to try again."""
    reason: str


class AgentSwitched(Event, frozen=True, kw_only=True):
    """Another agent does what one at its limit was to do."""

    run: str
    role: str
    agent: str
    successor: str
    until: str
    reason: str


# Tasks on their way through a pipeline


class StageStarted(Event, frozen=True, kw_only=True):
    """A stage of a pipeline begins."""

    task: str
    stage: str
    iteration: int
    role: str
    name: str
    """Whoever is asked, as `{task}:{persona}:{stage}:{iteration}`."""
    tier: str = ""


class StageEnded(Event, frozen=True, kw_only=True):
    """What a stage came to, put together by Planforge: of an agent there is only its judgement in it."""

    task: str
    stage: str
    iteration: int
    role: str
    name: str
    outcome: str
    """completed, approved, revision or escalated"""
    reason: str
    verdict: str = ""
    """approved, revision or unknown; empty if the stage gives none."""
    judged: str = ""
    """The hash of exactly what the verdict is about."""
    document: str = ""
    """The file that the stage left, beneath the task's directory."""
    object: str = ""
    findings: tuple[RecordedFinding, ...] = ()
    commit: str = ""
    """The commit of the change that there is now, if there is one."""
    agent: str = ""
    model: str = ""
    tokens: int | None = None
    """As far as the agent said; None is unknown, not zero."""


class TaskEnded(Event, frozen=True, kw_only=True):
    """A run of a task is over: it went through, or a person has to look."""

    task: str
    run: str
    succeeded: bool
    reason: str
    stage: str = ""
    """Where it stopped, if it did not go through."""
    refused: bool = False
    """Whether a gate stopped it."""
    document: str = ""
    """The file to look at first, if it stopped."""
    branch: str = ""
    commit: str = ""


class FrictionNoted(Event, frozen=True, kw_only=True):
    """Something about roles, skills or the run itself that stood in the way of the work."""

    task: str
    workflow: str
    persona: str
    issue: str
    """One of five tokens, or one of our own that begins with `x_`."""
    stage: str = ""
    iteration: int = 0
    skill: str = ""
    detail: str = ""
    agent: str = ""
    """Who noticed it; empty is Planforge itself."""
    model: str = ""


AnyEvent = (
    RunStarted
    | DriverStarted
    | EffectIntended
    | EffectCompleted
    | EffectFailed
    | RunParked
    | CancelRequested
    | RunEnded
    | ItemOpened
    | ItemMoved
    | ItemLinked
    | PlanWritten
    | AuditRecorded
    | PlanForged
    | PhasesGenerated
    | PlanStarted
    | PlanPaused
    | PlanEnded
    | LessonDecided
    | StepStarted
    | PatchProposed
    | AttemptInspected
    | VerifyOk
    | VerifyFailed
    | AttemptRejected
    | PatchApplied
    | StepCompleted
    | StepFailed
    | StepRetried
    | StepSkipped
    | PlanRescoped
    | RiskRaised
    | RiskSettled
    | GateOpened
    | DecisionAsked
    | DecisionMade
    | DecisionUsed
    | ArtifactRecorded
    | LeaseGranted
    | LeaseRenewed
    | LeaseReleased
    | LeaseExpired
    | LeasePassed
    | LeaseAwaited
    | LeaseWaitEnded
    | BudgetSet
    | BudgetReserved
    | BudgetSpent
    | BudgetReconciled
    | HandoffEmitted
    | HandoffLoaded
    | MergeChecked
    | PlanLanded
    | LandingConflicted
    | LandingBroken
    | PlanHeldBack
    | StepReopened
    | LandingCaughtUp
    | LandingRestarted
    | ConflictsForeseen
    | CheckoutUpdated
    | PullRequestOpened
    | ContextComposed
    | FilesChosen
    | TierEscalated
    | SessionKept
    | SessionLost
    | LimitReached
    | AgentSwitched
    | StageStarted
    | StageEnded
    | TaskEnded
    | FrictionNoted
)

EVENTS: dict[str, type[Event]] = {event.__name__: event for event in get_args(AnyEvent)}


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """An event as the ledger holds it."""

    seq: int
    stream: str
    version: int
    at: str
    key: str
    """The effect that it belongs to, if any."""
    event: Event
    hash: str

    @property
    def kind(self) -> str:
        """The name of the fact."""
        return type(self.event).__name__
