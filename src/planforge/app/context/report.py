"""
What the agents of a run were told, from the recording: part by part, and against telling them everything.

The history that a call is held against is what a single conversation would hold by then: all prompts and all
answers of the run before it. What agents read and did on the way is in no recording, so a real history would
be longer still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from planforge.actions import see
from planforge.app import runs
from planforge.errors import NotFound
from planforge.kernel.effects import AgentAnswer, RunAgent
from planforge.kernel.events import ContextComposed, ContextPart, EffectCompleted
from planforge.kernel.replay.tape import Entry, Recording, Tape
from planforge.kernel.tokens import estimate

if TYPE_CHECKING:
    from planforge.app.project import Project


class ContextCall(msgspec.Struct, frozen=True, kw_only=True):
    """One question to an agent."""

    key: str
    """Which effect of the run it was."""
    role: str
    worktree: str
    tokens: int
    """What it was told."""
    whole: int
    """What it would have been told with the whole history."""
    answer: int
    """What it said."""
    session: str = ""
    """The conversation that it was part of: what was said there before, the agent may still have had."""
    simplified: bool = False
    parts: tuple[ContextPart, ...] = ()


class ContextReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the agents of a run were told. Tokens are counted by our guess, a quarter of the characters."""

    schema_version: int = 1
    run: str
    calls: tuple[ContextCall, ...]
    tokens: int
    whole: int
    ratio: float | None
    """How many times more the whole history would have been; None where nobody was asked."""


def report(project: Project, run: str | None) -> ContextReport:
    """The contexts of a run; without a name, of the newest one in which an agent was asked."""
    if run is not None:
        return reported(project.ledger, run)
    for row in reversed(runs.rows(project)):
        found = reported(project.ledger, row.run)
        if found.calls:
            return found
    raise NotFound("no agent has been asked here yet", see("status"))


def reported(recording: Recording, run: str) -> ContextReport:
    """The contexts of a recorded run."""
    tape = Tape(recording, run)
    calls: list[ContextCall] = []
    history = 0
    for key, entry in _asked(tape):
        call = _call(tape, key, entry, history)
        history += call.tokens + call.answer
        calls.append(call)
    tokens, whole = sum(call.tokens for call in calls), sum(call.whole for call in calls)
    ratio = round(whole / tokens, 2) if tokens else None
    return ContextReport(run=run, calls=tuple(calls), tokens=tokens, whole=whole, ratio=ratio)


def _asked(tape: Tape) -> list[tuple[str, Entry]]:
    """The questions, in the order in which they were asked."""
    name = RunAgent.__name__
    found = [
        (key, entry) for key, entry in tape.entries.items() if entry.intent and entry.intent.effect == name
    ]
    return sorted(found, key=lambda item: tape.order(item[0]))


def _call(tape: Tape, key: str, entry: Entry, history: int) -> ContextCall:
    assert entry.intent is not None
    effect = msgspec.json.decode(tape.body(entry.intent.body), type=RunAgent)
    tokens, answer = estimate(len(effect.prompt)), 0
    if isinstance(entry.outcome, EffectCompleted):
        said = msgspec.json.decode(tape.body(entry.outcome.outcome), type=AgentAnswer)
        answer = estimate(len(said.text))
    composed = _composed(tape, key)
    return ContextCall(
        key=key,
        role=effect.role,
        worktree=effect.worktree,
        tokens=tokens,
        whole=history + tokens,
        answer=answer,
        session=effect.session,
        simplified=composed.simplified if composed else False,
        parts=composed.parts if composed else (),
    )


def _composed(tape: Tape, key: str) -> ContextComposed | None:
    """What was noted about a question just after it was answered."""
    path, _, ordinal = key.rpartition("/")
    entry = tape.entries.get(f"{path}/{int(ordinal) + 1}")
    return entry.fact if entry and isinstance(entry.fact, ContextComposed) else None
