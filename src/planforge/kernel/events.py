"""
The facts a ledger holds: one frozen structure each, in the past tense.

The union is closed. A fact's name is its class name; how it looks on disk is its
fields as JSON. `REVISION` is written beside each fact, so that a later shape can
read an earlier one.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from planforge.kernel.evidence import Evidence
from planforge.kernel.scores import StepScore

REVISION = 1


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


class EffectFailed(Event, frozen=True, kw_only=True):
    """An effect was tried and the world said no."""

    effect: str
    error: str
    message: str
    hint: str | None = None


class RunParked(Event, frozen=True, kw_only=True):
    """The run waits for a person."""

    run: str
    reason: str


class RunEnded(Event, frozen=True, kw_only=True):
    """The flow returned, or failed for good."""

    run: str
    succeeded: bool
    reason: str
    exit_code: int


# Plans


class RecordedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as it stood when it was recorded."""

    severity: str
    title: str
    location: str = ""


class PlanCreated(Event, frozen=True, kw_only=True):
    """A plan got its number."""

    plan: str
    title: str
    request: str
    path: str


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


class PlanApproved(Event, frozen=True, kw_only=True):
    """A person said yes to exactly this content."""

    plan: str
    gate: str
    content: str
    actor: str


class ApprovalUsed(Event, frozen=True, kw_only=True):
    """A run took the approval; it opens no second gate."""

    plan: str
    gate: str
    content: str
    run: str


class PlannedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a plan as it was when the run began."""

    step: str
    title: str
    kind: str
    files: tuple[str, ...]
    depends_on: tuple[str, ...]


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


class PlanEnded(Event, frozen=True, kw_only=True):
    """All steps are done, or the plan cannot go on."""

    plan: str
    run: str
    succeeded: bool
    reason: str
    branch: str
    commit: str


# Steps


class StepStarted(Event, frozen=True, kw_only=True):
    """An attempt at a step began at an explicit commit."""

    plan: str
    step: str
    attempt: int
    base: str


class PatchProposed(Event, frozen=True, kw_only=True):
    """An agent left a change and said something about it."""

    plan: str
    step: str
    attempt: int
    commit: str
    tree: str
    files: tuple[str, ...]
    claim: str
    agent: str


class VerifyOk(Event, frozen=True, kw_only=True):
    """Planforge checked the tree and it passed."""

    plan: str
    step: str
    attempt: int
    evidence: Evidence


class VerifyFailed(Event, frozen=True, kw_only=True):
    """Planforge checked the tree and it failed, or could not tell."""

    plan: str
    step: str
    attempt: int
    evidence: Evidence


class AttemptRejected(Event, frozen=True, kw_only=True):
    """The attempt is not taken, and why."""

    plan: str
    step: str
    attempt: int
    reason: str


class PatchApplied(Event, frozen=True, kw_only=True):
    """The change landed on the plan's branch."""

    plan: str
    step: str
    attempt: int
    content: str
    """The content of the plan under which it landed."""
    scope: tuple[str, ...]
    """The files the step was allowed to change."""
    branch: str
    commit: str
    tree: str
    parent: str


class StepCompleted(Event, frozen=True, kw_only=True):
    """The step is done, and what its evidence is worth."""

    plan: str
    step: str
    attempts: int
    score: StepScore | None
    """None for a step that changes nothing, such as an audit."""


class StepFailed(Event, frozen=True, kw_only=True):
    """The step used up its attempts."""

    plan: str
    step: str
    attempts: int
    reason: str


AnyEvent = (
    RunStarted
    | DriverStarted
    | EffectIntended
    | EffectCompleted
    | EffectFailed
    | RunParked
    | RunEnded
    | PlanCreated
    | PlanWritten
    | AuditRecorded
    | PlanForged
    | PlanApproved
    | ApprovalUsed
    | PlanStarted
    | PlanEnded
    | StepStarted
    | PatchProposed
    | VerifyOk
    | VerifyFailed
    | AttemptRejected
    | PatchApplied
    | StepCompleted
    | StepFailed
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
