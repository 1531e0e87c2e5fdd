"""
What an agent leaves to the one that goes on, built from the ledger and not from its conversation.

An agent's context is finite. When it is nearly full the agent is stopped, and the
next one gets a `HandoffSummary` and the answers to the queries in it, and nothing
else. `continuation` says from those what is to be done next.

A handoff is one transaction: what was in the worktree, the lease under its new
fence and the summary are all on record, or nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

import msgspec

from planforge.actions import see
from planforge.errors import NotFound, RefusedByGate
from planforge.kernel import continuation, events, leases
from planforge.kernel.continuation import Action, Failure, TouchedFile, VerifyResult
from planforge.kernel.events import (
    ArtifactKind,
    ArtifactRecorded,
    Event,
    HandoffEmitted,
    HandoffLoaded,
    StepStarted,
)
from planforge.kernel.filters import Filter, read
from planforge.kernel.graph import steps
from planforge.kernel.graph.answers import run_query
from planforge.kernel.graph.attempts import require_attempt
from planforge.kernel.graph.queries import (
    GraphQuery,
    Moments,
    Node,
    NodeView,
    QueryResult,
    StepView,
    Timeline,
)
from planforge.kernel.leases import rules as leasing
from planforge.kernel.leases import tables
from planforge.kernel.ledger import Ledger, Write
from planforge.kernel.objects import encode
from planforge.kernel.payloads import pack, unpack
from planforge.kernel.tokens import TokenState


class HandoffSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All that the next agent is told, but for the answers to `queries`."""

    plan: str
    step: str
    """The node of the step in the graph."""
    title: str
    goal: str
    attempt: int
    touched_files: tuple[TouchedFile, ...]
    verification_results: tuple[VerifyResult, ...]
    failures: tuple[Failure, ...]
    failing: tuple[str, ...]
    """Tests that were failing when this attempt began; what happened since is in the answers."""
    logs: tuple[str, ...]
    next_actions: tuple[Action, ...]
    """As they were when the agent was stopped."""
    queries: tuple[GraphQuery, ...]
    """What to ask the graph to go on; the answers come with the summary."""
    context: TokenState


class AgentContext(msgspec.Struct, frozen=True, kw_only=True):
    """All that a successor has: the summary, and the answers to the queries in it."""

    summary: HandoffSummary
    answers: tuple[QueryResult, ...]

    @property
    def scope(self) -> tuple[str, ...]:
        """The paths and globs that the step may change."""
        return self._step.files

    def next_actions(self) -> tuple[Action, ...]:
        """What to do next, from nothing but what is here; nothing if the plan goes on in another revision."""
        if self._node.superseded_by:
            return ()
        state = continuation.fold(self.history(), self.summary.failing)
        return continuation.next_actions(self.scope, state)

    def history(self) -> Iterator[Event]:
        """What happened to the step since the attempt began, as far as it matters for what is next."""
        for answer in self.answers:
            if isinstance(answer, Moments):
                yield from (item.event for item in answer.events if item.kind in continuation.TAKEN)

    @property
    def _node(self) -> NodeView:
        for answer in self.answers:
            if isinstance(answer, NodeView):
                return answer
        raise NotFound(f"the answers do not say what `{self.summary.step}` is")

    @property
    def _step(self) -> StepView:
        found = self._node.step
        if found is None:
            raise NotFound(f"`{self.summary.step}` is not a step")
        return found


# Handing over


def emit(
    ledger: Ledger,
    step: str,
    context: TokenState,
    *,
    holder: str,
    successor: str,
    fence: int = 0,
    ttl: timedelta = timedelta(minutes=10),
    passed: int = 0,
    files: Iterable[TouchedFile] = (),
) -> HandoffEmitted:
    """
    Record that `holder` hands the attempt under way at `step` to `successor`.

    The lease with `fence` goes to the successor under a new fence, for `ttl`; `passed` is the fence of one
    that was passed on already. `files` is what is in the worktree and not yet on record. Asking again after
    a crash finds what was recorded.
    """
    if not successor.strip() or successor == holder:
        raise RefusedByGate(f"`{holder}` must hand over to somebody else, not to `{successor}`")
    touched = tuple(files)
    before: HandoffEmitted | None = None

    def decide() -> list[Write]:
        nonlocal before
        view = steps.current(ledger, step)
        before = _newest(ledger, view)
        if before is not None and (before.holder, before.successor) == (holder, successor):
            return []
        # Only who is at the step hands it over; a run, which has no name there, may have several.
        require_attempt(ledger, view.node, max(view.attempts, 1), holder if view.holder else "")
        artifacts = [_artifact(view, file) for file in touched]
        given = _given(ledger, fence, holder, successor, ttl) if fence else None
        found = summarise(ledger, view, context, artifacts)
        event = HandoffEmitted(
            handoff=f"{view.node}#{len(emitted(ledger, view.node)) + 1}",
            plan=view.plan,
            step=view.step,
            holder=holder,
            successor=successor,
            fence=given.new_fence if given else passed,
            used=context.used,
            threshold=context.threshold,
            estimated=context.estimated,
            summary=pack(ledger, encode(found)),
        )
        leased = [Write(tables.STREAM, None, [given])] if given else []
        return [*leased, Write(view.plan, None, [*artifacts, event])]

    recorded = ledger.transact(decide)
    event = recorded[-1].event if recorded else before
    assert isinstance(event, HandoffEmitted)
    return event


def _newest(ledger: Ledger, view: StepView) -> HandoffEmitted | None:
    """The newest handoff of the attempt under way; whoever makes the next attempt may have the same name."""
    latest: HandoffEmitted | None = None
    for item in steps.happened(ledger, view.node):
        if item.kind == StepStarted.__name__:
            latest = None
        elif item.kind == HandoffEmitted.__name__ and isinstance(found := item.event, HandoffEmitted):
            latest = found
    return latest


def _given(ledger: Ledger, fence: int, holder: str, successor: str, ttl: timedelta) -> events.LeasePassed:
    lease = leases.require(ledger, fence, (), holder)
    decision = leasing.transfer(lease, tables.scene(ledger), successor, ttl)
    (event,) = decision.events
    assert isinstance(event, events.LeasePassed)
    return event


def _artifact(view: StepView, file: TouchedFile) -> ArtifactRecorded:
    return ArtifactRecorded(
        plan=view.plan,
        step=view.step,
        attempt=view.attempts,
        kind=ArtifactKind.FILE,
        name=file.path,
        hash=file.hash,
    )


def summarise(
    ledger: Ledger, view: StepView, context: TokenState, news: Iterable[Event] = ()
) -> HandoffSummary:
    """What is on record about a step, and what is about to be, in the form that its next agent gets."""
    recorded = [item for item in steps.happened(ledger, view.node) if item.kind in continuation.TAKEN]
    history = [*(item.event for item in recorded), *news]
    began = max((at for at, event in enumerate(history) if isinstance(event, StepStarted)), default=0)
    state = continuation.fold(history)
    after = recorded[began].seq - 1 if recorded else 0
    return HandoffSummary(
        plan=view.plan,
        step=view.node,
        title=view.title,
        goal=next((opened.request for opened in steps.facts(ledger, view.plan, events.ItemOpened)), ""),
        attempt=state.attempt,
        touched_files=tuple(
            TouchedFile(path=path, hash=found) for path, found in sorted(state.touched.items())
        ),
        verification_results=tuple(state.results),
        failures=tuple(state.failures),
        failing=continuation.fold(history[:began]).failing,
        logs=tuple(state.logs),
        next_actions=continuation.next_actions(view.files, state),
        queries=(Node(id=view.node), Timeline(node=view.node, after=after)),
        context=context,
    )


# Taking over


def load(ledger: Ledger, name: str, holder: str = "") -> AgentContext:
    """What the successor gets. With `holder`, who must be the successor, it is recorded that they took it."""
    event = find(ledger, name)
    summary = msgspec.json.decode(unpack(ledger, event.summary), type=HandoffSummary)
    if holder:
        _take_up(ledger, event, holder)
    return answered(ledger, summary)


def answered(ledger: Ledger, summary: HandoffSummary) -> AgentContext:
    """A summary with the answers to its queries."""
    return AgentContext(summary=summary, answers=tuple(_answer(ledger, query) for query in summary.queries))


def _take_up(ledger: Ledger, event: HandoffEmitted, holder: str) -> None:
    if holder != event.successor:
        raise RefusedByGate(f"`{event.handoff}` is for `{event.successor}`, not for `{holder}`")
    loaded = HandoffLoaded(handoff=event.handoff, plan=event.plan, step=event.step, holder=holder)
    node = event.handoff.rpartition("#")[0]

    def decide() -> list[Write]:
        known = steps.facts(ledger, node, HandoffLoaded)
        return [] if loaded in known else [Write(event.plan, None, [loaded])]

    ledger.transact(decide)


def _answer(ledger: Ledger, query: GraphQuery) -> QueryResult:
    """The whole answer, however many pages it has."""
    found = run_query(ledger, query)
    while isinstance(found, Moments) and isinstance(query, Timeline) and found.next is not None:
        more = run_query(ledger, msgspec.structs.replace(query, after=found.next))
        assert isinstance(more, Moments)
        found = msgspec.structs.replace(found, events=(*found.events, *more.events), next=more.next)
    return found


def fence_of(ledger: Ledger, name: str) -> int:
    """The fence that the successor works under, 0 where no files are leased; `StaleFence` if it is gone."""
    event = find(ledger, name)
    if event.fence:
        leases.require(ledger, event.fence, (), event.successor)
    return event.fence


def find(ledger: Ledger, name: str) -> HandoffEmitted:
    """The handoff called `name`, such as `plan-001/phase-1#1`."""
    step, _, number = name.rpartition("#")
    for event in emitted(ledger, step) if step else ():
        if event.handoff == f"{steps.exact(step)}#{number}":
            return event
    raise NotFound(f"there is no handoff `{name}` here", see("handoff list"))


def emitted(ledger: Ledger, step: str = "") -> list[HandoffEmitted]:
    """The handoffs of a step, or of all, oldest first."""
    if step:
        return list(steps.facts(ledger, steps.exact(step), HandoffEmitted))
    every = (item.event for item in read(ledger, Filter(kinds=(HandoffEmitted.__name__,))))
    return [event for event in every if isinstance(event, HandoffEmitted)]
