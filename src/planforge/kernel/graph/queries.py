"""
Questions to the plan graph and their answers, as data.

One closed set of queries for the command line, for handoffs and for other programs:
each is a structure that can be written down as JSON (`{"query": "next_steps",
"plan": "plan-001"}`) and asked later. Where a plan is asked for, `plan-001` means
its newest revision and `plan-001.r1` exactly the first; a node is always exact.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from planforge.errors import InvalidInput
from planforge.kernel.events import Event, RecordedAction
from planforge.kernel.ledger.rows import read_event

Limit = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Depth = Annotated[int, msgspec.Meta(ge=1)]
Direction = Literal["up", "down"]
"""Up: what it depends on. Down: what depends on it."""

EdgeKind = Literal[
    "PLAN_HAS_STEP",
    "STEP_DEPENDS_ON",
    "STEP_TOUCHES_FILE",
    "STEP_PRODUCES_PATCH",
    "STEP_BLOCKED_BY",
    "STEP_RECORDS",
    "PLAN_SUPERSEDES",
]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


class Query(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="query", tag=_snake, forbid_unknown_fields=True
):
    """A question to the graph."""


class Plan(Query, frozen=True, kw_only=True):
    """A plan with its steps, what they depend on, and its risks."""

    plan: str


class NextSteps(Query, frozen=True, kw_only=True):
    """The steps that can start now, in the order of the plan."""

    plan: str
    limit: Limit = 20


class Blocked(Query, frozen=True, kw_only=True):
    """Everything that keeps a step from being started."""

    step: str


class Closure(Query, frozen=True, kw_only=True):
    """All steps that a step depends on, or that depend on it, at one remove or more."""

    node: str
    direction: Direction
    depth: Depth | None = None


class CriticalPath(Query, frozen=True, kw_only=True):
    """The heaviest chain of steps: of what is left, and of the whole plan."""

    plan: str


class Difference(Query, frozen=True, kw_only=True):
    """What changed between two revisions of a plan; both are exact nodes."""

    before: str
    after: str


class Timeline(Query, frozen=True, kw_only=True):
    """What happened to a plan (`plan-001`), to one revision of it (`plan-001.r2`) or to a step, in order."""

    node: str
    after: int = 0
    limit: Limit = 100


class Custody(Query, frozen=True, kw_only=True):
    """From the goal to what landed: steps, attempts, patches, evidence, approvals."""

    node: str


class WithoutEvidence(Query, frozen=True, kw_only=True):
    """Steps that are done or landed although no check of ours passed."""

    plan: str


class Neighbours(Query, frozen=True, kw_only=True):
    """The edges of a node: `out` of it, `in` to it, or both."""

    node: str
    edge: EdgeKind | None = None
    direction: Literal["in", "out", "both"] = "both"


class Node(Query, frozen=True, kw_only=True):
    """One node."""

    id: str


GraphQuery = (
    Plan
    | NextSteps
    | Blocked
    | Closure
    | CriticalPath
    | Difference
    | Timeline
    | Custody
    | WithoutEvidence
    | Neighbours
    | Node
)


# Answers


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag=_snake):
    """What the graph says."""


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """A step as it was planned and as far as it has come."""

    node: str
    plan: str
    revision: int
    step: str
    title: str
    kind: str
    status: str
    """pending, in-progress, done or failed"""
    attempts: int
    landed: str
    score: int | None
    reason: str
    weight: int
    waiting: int
    """How many dependencies, risks and gates it waits for."""
    files: tuple[str, ...]
    holder: str | None
    """Who is at it; None if nobody is, empty if it is a run."""
    verified: int | None
    """The event that says that the newest attempt passed our check."""
    completed: int | None
    """The event that completed it."""
    depends_on: tuple[str, ...] = ()


class RiskView(msgspec.Struct, frozen=True, kw_only=True):
    """A risk and what became of it."""

    node: str
    risk: str
    description: str
    severity: str
    open: bool
    reason: str
    actor: str


class PlanView(Answer, frozen=True, kw_only=True):
    """A revision of a plan."""

    node: str
    plan: str
    revision: int
    title: str
    status: str
    supersedes: str
    superseded_by: str
    reason: str
    """Why this revision was made."""
    steps: tuple[StepView, ...]
    risks: tuple[RiskView, ...]


class StepList(Answer, frozen=True, kw_only=True):
    """Some steps of a plan."""

    plan: str
    """The node of the revision."""
    superseded_by: str
    """The newer revision, in which work goes on; empty if this is the newest."""
    steps: tuple[StepView, ...]


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that keeps a step from being started."""

    kind: Literal["status", "dependency", "risk", "gate", "lease", "budget"]
    name: str
    """The step, risk, gate, path or scope."""
    reason: str
    help: RecordedAction | None = None
    """What to do about it, if anything."""


class Blockers(Answer, frozen=True, kw_only=True):
    """Why a step has not started; nothing if it could."""

    step: StepView
    blockers: tuple[Blocker, ...]


class Reached(Answer, frozen=True, kw_only=True):
    """Steps in the order of the plan."""

    node: str
    direction: Direction
    steps: tuple[str, ...]


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of which each depends on the one before."""

    steps: tuple[str, ...]
    weight: int


class CriticalPaths(Answer, frozen=True, kw_only=True):
    """The heaviest chains of a plan."""

    plan: str
    left: Chain
    whole: Chain


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a planned step, before and after."""

    field: str
    before: str | int | tuple[str, ...]
    after: str | int | tuple[str, ...]


class StepChange(msgspec.Struct, frozen=True, kw_only=True):
    """A step that is planned differently."""

    step: str
    fields: tuple[FieldChange, ...]


class Differences(Answer, frozen=True, kw_only=True):
    """What became of each step."""

    before: str
    after: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[StepChange, ...]
    same: tuple[str, ...]


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One event, as it is stored."""

    seq: int
    at: str
    stream: str
    kind: str
    revision: int
    """The revision of the shape that the body has."""
    body: msgspec.Raw

    @property
    def event(self) -> Event:
        """The fact."""
        return read_event(self.seq, self.kind, self.revision, bytes(self.body))


class Moments(Answer, frozen=True, kw_only=True):
    """Events in order."""

    node: str
    events: tuple[Moment, ...]
    next: int | None
    """What to ask for with `after` to go on; None at the end."""


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A person's yes to exact content."""

    seq: int
    gate: str
    subject: str
    content: str
    actor: str
    used_by: str = ""


class PatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was proposed or landed."""

    seq: int
    commit: str
    tree: str
    agent: str
    files: tuple[str, ...]
    landed: bool


class EvidenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of ours saw."""

    seq: int
    check: str
    outcome: str
    reason: str
    tree: str
    output: str


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt with its patches and evidence."""

    attempt: int
    base: str
    holder: str
    patches: tuple[PatchRecord, ...]
    evidence: tuple[EvidenceRecord, ...]
    rejected: str
    """Why it was not taken; empty if it was."""


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A step and its attempts."""

    node: str
    title: str
    status: str
    kept_from: str
    """The step of an earlier revision whose work it keeps; empty if it has its own."""
    attempts: tuple[AttemptRecord, ...]
    approvals: tuple[Approval, ...]


class CustodyChain(Answer, frozen=True, kw_only=True):
    """How what landed follows from what was asked for."""

    node: str
    plan: str
    goal: str
    constraints: tuple[str, ...]
    criteria: tuple[str, ...]
    approvals: tuple[Approval, ...]
    """Approvals of the plan; those of a step are with the step."""
    steps: tuple[StepRecord, ...]


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """One edge."""

    kind: EdgeKind
    source: str
    target: str
    hash: str
    """The newest content that the source is known to have left at the target; empty if unknown."""
    seq: int


class Edges(Answer, frozen=True, kw_only=True):
    """Edges of a node."""

    node: str
    edges: tuple[Edge, ...]


class NodeView(Answer, frozen=True, kw_only=True):
    """A node; if it is a step or a risk, with its state."""

    id: str
    kind: str
    plan: str
    name: str
    hash: str
    seq: int
    superseded_by: str = ""
    step: StepView | None = None
    risk: RiskView | None = None


QueryResult = (
    PlanView
    | StepList
    | Blockers
    | Reached
    | CriticalPaths
    | Differences
    | Moments
    | CustodyChain
    | Edges
    | NodeView
)


def parse_query(text: str | bytes) -> GraphQuery:
    """A query written as JSON."""
    try:
        query: GraphQuery = msgspec.json.decode(text, type=GraphQuery)
    except msgspec.MsgspecError as error:
        raise InvalidInput(
            f"that is not a query: {error}", 'write it like `{"query": "next_steps", "plan": "plan-001"}`'
        ) from error
    return query
