"""
What is to be done next at a step: a pure function of what is on record about it.

`fold` takes in the events of one step, in order; `next_actions` says what follows.
Neither reads anything else, so whoever has the same events, the agent that went on
or the one that took over, is told the same next things.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from planforge.errors import InvalidInput
from planforge.kernel import events
from planforge.kernel.events import Event
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.paths import exact, matches, normalise

NEXT = 3
"""How many actions are named."""

LOGS = 10
"""How many lines of what happened lately go along."""

THE_CHANGE = "the change"


class TouchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as the step has left it."""

    path: str
    hash: str
    """The hash of its content; empty where it was removed, or where only its name is known."""


class VerifyResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of the step's work said."""

    attempt: int
    outcome: Outcome
    reason: str
    tree: str
    counts: Counts | None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt was not taken, and the tests that failed by then."""

    attempt: int
    reason: str
    failing: tuple[str, ...]


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do next."""

    action: str
    """mend, change, propose, verify, land or finish"""
    target: str
    """A test, a path, a tree, or in words what is meant."""


class StepState(msgspec.Struct, kw_only=True):
    """What is on record about one step, as far as what to do next depends on it."""

    attempt: int = 0
    touched: dict[str, str] = {}
    tree: str = ""
    """The tree of the newest change; empty while there is none in this attempt."""
    evidence: Evidence | None = None
    """The newest evidence on that tree."""
    failing: tuple[str, ...] = ()
    """Tests that the newest failed check named, until a check passes."""
    landed: bool = False
    done: bool = False
    results: list[VerifyResult] = []
    failures: list[Failure] = []
    logs: list[str] = []


def fold(history: Iterable[Event], failing: tuple[str, ...] = ()) -> StepState:
    """
    Take in the events of one step, in order.

    From the first one on, or from the start of an attempt with the tests that were `failing` when it began.
    """
    state = StepState(failing=failing)
    for event in history:
        if _take(state, event):
            state.logs = [*state.logs, _line(event)][-LOGS:]
    return state


TAKEN = frozenset(
    kind.__name__
    for kind in (
        events.StepStarted,
        events.ArtifactRecorded,
        events.PatchProposed,
        events.VerifyOk,
        events.VerifyFailed,
        events.AttemptRejected,
        events.PatchApplied,
        events.StepCompleted,
        events.StepFailed,
    )
)
"""The kinds of events that `fold` looks at; all others change nothing."""


def _take(state: StepState, event: Event) -> bool:
    """Whether it was of any interest."""
    match event:
        case events.StepStarted(attempt=attempt):
            state.attempt, state.touched = attempt, {}
            state.tree, state.evidence, state.landed, state.done = "", None, False, False
        case events.ArtifactRecorded(kind=events.ArtifactKind.FILE, name=path, hash=found):
            state.touched[path] = found
        case events.PatchProposed(tree=tree, files=files):
            state.tree, state.evidence = tree, None
            state.touched |= {path: state.touched.get(path, "") for path in files}
        case events.VerifyOk(attempt=attempt, evidence=evidence):
            _check(state, attempt, evidence, ())
        case events.VerifyFailed(attempt=attempt, evidence=evidence):
            _check(state, attempt, evidence, evidence.failing)
        case (
            events.AttemptRejected(attempt=attempt, reason=reason)
            | events.StepFailed(attempts=attempt, reason=reason)
        ):
            state.failures.append(Failure(attempt=attempt, reason=reason, failing=state.failing))
            state.tree, state.evidence = "", None
        case events.PatchApplied():
            state.landed = True
        case events.StepCompleted():
            state.done = True
        case _:
            return False
    return True


def _check(state: StepState, attempt: int, evidence: Evidence, failing: tuple[str, ...]) -> None:
    state.failing = failing
    if evidence.tree == state.tree:  # about anything else it says nothing of the change
        state.evidence = evidence
    state.results.append(
        VerifyResult(
            attempt=attempt,
            outcome=evidence.outcome,
            reason=evidence.reason,
            tree=evidence.tree,
            counts=evidence.counts,
        )
    )


def _line(event: Event) -> str:
    """An event in a few words: what we measured and decided, never what an agent said."""
    what = getattr(event, "reason", "") or getattr(event, "name", "") or getattr(event, "tree", "")
    if isinstance(event, events.VerifyOk | events.VerifyFailed):
        what = event.evidence.reason
    return " ".join(f"{type(event).__name__} {what}".split())[:200]


def next_actions(scope: Iterable[str], state: StepState) -> tuple[Action, ...]:
    """What is to be done next within `scope`, most urgent first; nothing for a step that is done."""
    return tuple(_actions(scope, state))[:NEXT]


def _actions(scope: Iterable[str], state: StepState) -> Iterable[Action]:
    if state.done:
        return
    if state.landed:
        yield Action(action="finish", target="the step")
        return
    outcome = state.evidence.outcome if state.evidence else None
    if not state.tree or outcome is Outcome.FAIL:
        yield from _work(scope, state)
        yield Action(action="propose", target=THE_CHANGE)
        yield Action(action="verify", target=THE_CHANGE)
        yield Action(action="land", target=THE_CHANGE)
        return
    if outcome is not Outcome.PASS:
        yield Action(action="verify", target=state.tree)
    yield Action(action="land", target=state.tree)


def _work(scope: Iterable[str], state: StepState) -> Iterable[Action]:
    """What is to be changed before there is something new to propose."""
    for test in state.failing:
        yield Action(action="mend", target=test)
    if state.tree and not state.failing and state.evidence:
        yield Action(action="mend", target=state.evidence.reason)
    if not state.tree:
        for path in scope:
            if not any(_is_within(path, file) for file in state.touched):
                yield Action(action="change", target=path)


def _is_within(pattern: str, path: str) -> bool:
    try:
        return matches(normalise(pattern), exact(path))
    except InvalidInput:  # a plan file may name what nobody can lease
        return pattern == path
