"""Small runs, recorded by the real driver in a real ledger, and changed by hand where a test needs that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from planforge.errors import CannotPerform, RefusedByGate
from planforge.kernel.driver import Call, Driver
from planforge.kernel.effects import Effect, Flow, Note, Together
from planforge.kernel.events import (
    AttemptRejected,
    Event,
    Payload,
    Recorded,
    RunEnded,
    RunStarted,
    StepFailed,
)
from planforge.kernel.ledger import Ledger
from planforge.kernel.redaction import Redactor
from planforge.kernel.replay import Replay, replay
from planforge.kernel.replay.tape import Bodies, Tape

RUN = "run-001"
Result = TypeVar("Result")


class Said(msgspec.Struct, frozen=True, kw_only=True):
    words: str


class Say(Effect[Said], frozen=True, kw_only=True):
    ABOUT = "{words:.10}"
    words: str


class Forget(Effect[None], frozen=True, kw_only=True):
    words: str = ""


def fact(reason: str) -> Event:
    return AttemptRejected(plan="plan-001", step="phase-1", attempt=1, reason=reason)


async def talk(*words: str, noted: str = "so it was") -> str:
    """Say each word, note a fact, forget, and return what was said."""
    said = [(await Say(words=word)).words for word in words]
    await Note(fact(noted))
    await Forget()
    return " ".join(said)


async def choir(*names: str, lines: int = 2) -> str:
    """Several that talk at once, then a fact about what they said."""
    flows = {name: talk(*[f"{name}{line}" for line in range(lines)], noted=name) for name in names}
    said = await Together(flows)
    await Note(fact(", ".join(said.values())))
    return ", ".join(said.values())


def ending(result: object) -> RunEnded:
    return RunEnded(run=RUN, succeeded=True, reason=str(result), exit_code=0)


def begin(ledger: Ledger) -> None:
    started = RunStarted(run=RUN, flow="talk", flow_version=1, subject="", request=Payload())
    ledger.append(RUN, [started], expected=0)


def record(
    ledger: Ledger,
    flow: Flow[object],
    *,
    answer: Callable[[str], object] | None = None,
    order: Sequence[str] = (),
    end: bool = True,
    redact: Redactor | None = None,
) -> None:
    """Drive `flow` with a performer that fails as it is told; those named in `order` are answered in it."""
    begin(ledger)
    turns = {words: asyncio.Event() for words in order}

    async def say(effect: Say, _: Call) -> Said:
        said = answer(effect.words) if answer else None
        if effect.words in turns:
            before = list(order)[: list(order).index(effect.words)]
            for words in before:
                await turns[words].wait()
            turns[effect.words].set()
        if isinstance(said, Exception):
            raise said
        return Said(words=effect.words.upper())

    async def forget(_: Forget, __: Call) -> None:
        return None

    performers: dict[Any, Any] = {Say: say, Forget: forget}
    driver = Driver(ledger, RUN, performers, redact=redact)
    try:
        result = asyncio.run(driver.drive(flow))
    except (CannotPerform, RefusedByGate) as error:
        ended = RunEnded(run=RUN, succeeded=False, reason=error.message, exit_code=error.exit_code)
    else:
        ended = ending(result)
    if end:
        driver.record(ended)


def replayed(recording: Ledger | Changed, flow: Flow[Result]) -> Replay:
    return replay(Tape(recording, RUN), flow, ending)


class Changed:
    """A recording that somebody tampered with: other events, the same objects."""

    def __init__(self, ledger: Ledger, change: Callable[[list[Recorded]], Iterable[Recorded]]) -> None:
        self._events = list(change(list(ledger.stream(RUN))))
        self._objects = ledger.objects

    @property
    def objects(self) -> Bodies:
        return self._objects

    def stream(self, name: str, /) -> Iterable[Recorded]:
        return [item for item in self._events if item.stream == name]


def failed(attempts: int) -> Event:
    return StepFailed(plan="plan-001", step="phase-1", attempts=attempts, reason="none was taken")
