"""
Drives a flow by hand: no event loop, no disk, no agents.

`driven(flow, answer)` sends each effect to `answer` and what comes back into the
flow. A failure that `answer` raises or returns reaches the flow as the driver
would put it there: as `PerformerFailed`. The flows of a `Together` run one after
another, in order of name, each to its end and after those it waits for, so that a
test always sees one order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from planforge.errors import CannotPerform, PerformerFailed
from planforge.kernel.effects import Effect, Flow, Note, Together
from planforge.kernel.events import Event
from planforge.kernel.turns import Turns

Result = TypeVar("Result")
Answer: TypeAlias = Callable[[Effect[Any]], object]


@dataclass(frozen=True, kw_only=True)
class Driven(Generic[Result]):
    """A flow that came to its end, and what it asked for and noted on the way."""

    effects: list[Effect[Any]]
    notes: list[Event]
    result: Result


def driven(flow: Flow[Result], answer: Answer) -> Driven[Result]:
    """Drive `flow` to its end; what it raises is raised here."""
    effects: list[Effect[Any]] = []
    notes: list[Event] = []
    result = _advanced(flow, answer, effects, notes)
    return Driven(effects=effects, notes=notes, result=result)


def _advanced(flow: Flow[Result], answer: Answer, effects: list[Effect[Any]], notes: list[Event]) -> Result:
    sent: object = None
    failure: PerformerFailed | None = None
    try:
        while True:
            try:
                asked = flow.throw(failure) if failure else flow.send(sent)
            except StopIteration as stop:
                return cast(Result, stop.value)
            match asked:
                case Note():
                    notes.append(asked.event)
                    sent = None
                case Together():
                    sent = _together(asked, answer, effects, notes)
                case Effect():
                    effects.append(asked)
                    sent = _answered(asked, answer)
                case _:
                    raise TypeError(f"a flow may await effects only, not `{type(asked).__name__}`")
            failure = sent if isinstance(sent, PerformerFailed) else None
    finally:
        flow.close()


def _answered(effect: Effect[Any], answer: Answer) -> object:
    try:
        found = answer(effect)
    except CannotPerform as error:
        found = error
    if isinstance(found, CannotPerform) and not isinstance(found, PerformerFailed):
        return PerformerFailed(type(found).__name__, found.message, found.hint)
    return found


def _together(
    asked: Together[object], answer: Answer, effects: list[Effect[Any]], notes: list[Event]
) -> dict[str, object] | PerformerFailed:
    """What each flow returns; or, when all have ended, the failure of the first that failed."""
    results: dict[str, object] = {}
    turns = Turns(sorted(asked.flows), 1, asked.after)
    try:
        while beginning := turns.begin():
            (name,) = beginning
            try:
                results[name] = _advanced(asked.flows[name], answer, effects, notes)
            except PerformerFailed as error:
                results[name] = error
            turns.end(name)
    finally:
        for flow in asked.flows.values():
            flow.close()
    in_order = {name: results[name] for name in asked.flows}
    return next((found for found in in_order.values() if isinstance(found, PerformerFailed)), in_order)
