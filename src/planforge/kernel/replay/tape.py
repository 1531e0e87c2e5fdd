"""
A recorded run, and how a flow is driven from it: by `send`, with no event loop and nobody who performs.

The tape holds what the run's stream says of each key. Flows that ran together
are advanced in the order in which the recording has them, so that at any moment
what has been answered is what had happened; each is still answered by its own
keys alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import NamedTuple, Protocol, TypeVar, cast
from urllib.parse import quote

import msgspec

from planforge.actions import see
from planforge.errors import LedgerUnreadable, NotFound, PerformerFailed
from planforge.kernel.driver import outcome_type
from planforge.kernel.effects import Effect, Flow, Note, Together, close
from planforge.kernel.events import (
    EffectCompleted,
    EffectFailed,
    EffectIntended,
    Event,
    ItemMoved,
    Payload,
    Recorded,
    RunEnded,
    RunStarted,
    TaskEnded,
)
from planforge.kernel.hints import failure
from planforge.kernel.objects import address, encode
from planforge.kernel.wording import CANCELLED

Result = TypeVar("Result")
Outcome = EffectCompleted | EffectFailed


class Bodies(Protocol):
    """Where objects are."""

    def get(self, name: str) -> bytes:
        """The content kept under `name`, checked."""


class Recording(Protocol):
    """Where recorded runs are: a ledger, or a proof."""

    @property
    def objects(self) -> Bodies:
        """The bodies that are too large for an event."""

    def stream(self, name: str, /) -> Iterable[Recorded]:
        """The events of one stream, oldest first."""


class Asked(NamedTuple):
    """What a flow asks for, and where in the flow that is."""

    key: str
    what: Effect[object] | Note | Together[object]

    @property
    def name(self) -> str:
        """The name of the effect, as it is recorded."""
        return type(self.what).__name__

    @property
    def about(self) -> str:
        """What it is about, in a word."""
        return self.what.about if isinstance(self.what, Effect) else ""

    @property
    def body(self) -> bytes:
        """Its content, in the one encoding that fingerprints are made of."""
        match self.what:
            case Note(event=event):
                return encode(event)
            case Together(intent=intent):
                return encode(intent)
        return encode(self.what)

    @property
    def fingerprint(self) -> str:
        """The hash of its content."""
        return address(self.body)


class RecordingEnds(Exception):
    """The flow asks for something that the recording has no answer to."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.key)
        self.asked = asked


class Entry(msgspec.Struct):
    """What is recorded under one key, and at which versions of the stream."""

    intent: EffectIntended | None = None
    fact: Event | None = None
    outcome: Outcome | None = None
    first: int = 0
    last: int = 0


class Tape:
    """One run as it was recorded."""

    def __init__(self, recording: Recording, run: str) -> None:
        self.run = run
        self.entries: dict[str, Entry] = {}
        self.ended: RunEnded | None = None
        self.odd: list[Recorded] = []
        """Events that no driver records: twice under one key, after the end, or of a kind from elsewhere."""
        self._objects = recording.objects
        started: RunStarted | None = None
        for recorded in recording.stream(run):
            if started is None and isinstance(recorded.event, RunStarted) and recorded.event.run == run:
                started = recorded.event
            elif started is None:
                raise LedgerUnreadable(f"the stream of `{run}` does not begin with its start")
            elif not self._take(recorded):
                self.odd.append(recorded)
        if started is None:
            raise NotFound(f"there is no `{run}` here", see("status"))
        self.started = started

    def _take(self, recorded: Recorded) -> bool:
        event = recorded.event
        if self.ended is not None:
            return False
        if not recorded.key:
            if isinstance(event, RunEnded):
                self.ended = event
            if isinstance(event, ItemMoved | TaskEnded):  # which no driver records, but a cancellation does
                return event.reason.startswith(CANCELLED)
            return recorded.kind in ("DriverStarted", "RunParked", "RunEnded", "PlanEnded")
        entry = self.entries.setdefault(recorded.key, Entry(first=recorded.version))
        entry.last = recorded.version
        match event:
            case EffectIntended() if not (entry.intent or entry.fact or entry.outcome):
                entry.intent = event
            case EffectCompleted() | EffectFailed() if entry.intent and not entry.outcome:
                entry.outcome = event
                return event.effect == entry.intent.effect
            case EffectIntended() | EffectCompleted() | EffectFailed():
                return False
            case _ if not (entry.intent or entry.fact):
                entry.fact = event
            case _:
                return False
        return True

    def order(self, key: str) -> int:
        """Where in the recording `key` begins; after everything else if it is not there."""
        entry = self.entries.get(key)
        return entry.first if entry else 2**62

    def span(self, path: str) -> tuple[int, int] | None:
        """Where in the recording the flow with that path begins and where it ends, if it is there."""
        found = [entry for key, entry in self.entries.items() if key.startswith(f"{path}/")]
        if not found:
            return None
        return min(entry.first for entry in found), max(entry.last for entry in found)

    def body(self, payload: Payload) -> bytes:
        """An encoded body, wherever it is."""
        return self._objects.get(payload.object) if payload.object else bytes(payload.inline)

    def outcome(self, effect: Effect[object], outcome: Outcome) -> object:
        """What a recorded outcome is to the flow; a recorded failure is raised."""
        if isinstance(outcome, EffectFailed):
            raise failure(outcome)
        body = self.body(outcome.outcome)
        try:
            return msgspec.json.decode(body, type=outcome_type(effect))
        except msgspec.MsgspecError as error:
            raise LedgerUnreadable(
                f"the recorded outcome of `{outcome.effect}` cannot be read: {error}"
            ) from error


class Watching:
    """Is told which of several flows run at once; subclasses override what they need."""

    def gathered(self, key: str, asked: Together[object]) -> None:
        """Flows are about to go at once."""

    def begins(self, path: str) -> None:
        """One of them begins."""

    def ends(self, path: str, last: str) -> None:
        """One of them has ended; `last` is the last key it asked under."""

    def stops(self, path: str) -> None:
        """One of them cannot go on: the recording ends in it."""


NOBODY = Watching()


def path_of(key: str, name: str) -> str:
    """The path of a flow that goes with others."""
    return f"{key}/{quote(name, safe='')}"


def drive(
    flow: Flow[Result],
    answer: Callable[[Asked], object],
    order: Callable[[str], int],
    watching: Watching = NOBODY,
) -> Result:
    """Run `flow` to its end with what `answer` returns or raises."""
    steps = _steps(flow, "", order, watching)
    try:
        asked = next(steps)
        while True:
            try:
                answered = answer(asked)
            except (PerformerFailed, RecordingEnds) as error:
                asked = steps.throw(error)
            else:
                asked = steps.send(answered)
    except StopIteration as stop:
        return cast(Result, stop.value)
    finally:
        steps.close()


Steps = Generator[Asked, object, Result]


def _steps(flow: Flow[Result], path: str, order: Callable[[str], int], watching: Watching) -> Steps[Result]:
    ordinal = 0
    answer: object = None
    failure: PerformerFailed | None = None
    try:
        while True:
            try:
                what = flow.throw(failure) if failure else flow.send(answer)
            except StopIteration as stop:
                return cast(Result, stop.value)
            asked = Asked(f"{path}/{ordinal}", what)
            ordinal += 1
            answer, failure = None, None
            try:
                if isinstance(what, Together):
                    answer = yield from _together(what, asked, order, watching)
                else:
                    answer = yield asked
            except PerformerFailed as error:
                failure = error
    finally:
        close(flow)


def _together(
    asked: Together[object], intent: Asked, order: Callable[[str], int], watching: Watching
) -> Generator[Asked, object, dict[str, object]]:
    """Go on with the flow that the recording goes on with next; one that cannot does not stop the others."""
    group = _Group(asked, intent.key, order, watching)
    try:
        yield intent
        group.begin()
        while group.waiting:
            name = min(group.waiting, key=lambda name: order(group.waiting[name].key))
            question = group.waiting.pop(name)
            try:
                answer = yield question
            except (PerformerFailed, RecordingEnds) as error:
                group.advance(name, partial(group.flows[name].throw, error), question.key)
            else:
                group.advance(name, partial(group.flows[name].send, answer), question.key)
            group.begin()
    finally:
        for steps in group.flows.values():
            steps.close()
        for flow in asked.flows.values():
            close(flow)
    return group.results()


class _Group:
    """Flows that go at once, as many as may; the others begin when those have ended that they wait for."""

    def __init__(
        self,
        asked: Together[object],
        key: str,
        order: Callable[[str], int],
        watching: Watching,
    ) -> None:
        self._paths = {name: path_of(key, name) for name in asked.flows}
        self.flows = {
            name: _steps(flow, self._paths[name], order, watching) for name, flow in asked.flows.items()
        }
        self.waiting: dict[str, Asked] = {}
        self._turns = asked.turns()
        self._watching = watching
        self._ended: dict[str, object] = {}
        watching.gathered(key, asked)

    def begin(self) -> None:
        """Have those begin whose turn it is."""
        while beginning := self._turns.begin():
            for name in beginning:
                self._watching.begins(self._paths[name])
                self.advance(name, self.flows[name].__next__)

    def advance(self, name: str, go: Callable[[], Asked], last: str = "") -> None:
        """Have a flow go on. One that has ended makes room; one whose recording ends would still be at it."""
        try:
            self.waiting[name] = go()
        except StopIteration as stop:
            self._end(name, stop.value, last)
        except PerformerFailed as error:
            self._end(name, error, last)
        except RecordingEnds as error:
            self._ended[name] = error
            self._watching.stops(self._paths[name])

    def _end(self, name: str, result: object, last: str) -> None:
        self._ended[name] = result
        self._watching.ends(self._paths[name], last)
        self._turns.end(name)

    def results(self) -> dict[str, object]:
        """What came of each; raises what one that did not end ended with, the recording's end first."""
        for kind in (RecordingEnds, PerformerFailed):
            for name in self.flows:
                if isinstance(result := self._ended.get(name), kind):
                    raise result
        return {name: self._ended[name] for name in self.flows}
