"""
Runs a flow, and remembers.

For each effect the driver looks in the run's stream first. A recorded outcome is
sent straight back. Otherwise it records the intent, has the effect performed,
records the outcome, and goes on. So the same flow on the same ledger performs
nothing twice, and a crash costs at most the effects that were under way.

An effect's key is its path in the flow plus its ordinal; its fingerprint is the
hash of its content. A flow that asks for something else than what is recorded
under a key has diverged, which is reported and never patched over.

What is stored is redacted first, and a flow is sent what was stored, so that it sees
the same live and replayed. The fingerprint is that of the effect as it was asked for.

The stream's version is the fence: another driver that takes the run appends to
the stream, and from then on nothing more can be recorded by the one before it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TypeAlias, TypeVar, cast, get_args
from urllib.parse import quote

import msgspec

from planforge.errors import CannotPerform, Conflict, Diverged, Fenced, PerformerFailed
from planforge.kernel import hints
from planforge.kernel.effects import Effect, Flow, Note, Together, close
from planforge.kernel.events import (
    DriverStarted,
    EffectCompleted,
    EffectFailed,
    EffectIntended,
    Event,
    Recorded,
)
from planforge.kernel.ledger import Ledger
from planforge.kernel.objects import address, encode
from planforge.kernel.payloads import pack, unpack
from planforge.kernel.redaction import Redactor

Result = TypeVar("Result")

VERBATIM = frozenset({"ReadPlan", "WritePlan"})
"""
Effects whose outcome is stored as it is. A plan is its owner's document, is kept as an object anyway, and is
approved by the hash of its text, which the flow works out: with one character changed no approval would hold.
"""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a performer knows beside the effect: which call this is, and whether it was begun before."""

    run: str
    key: str
    intended_at: str
    """When the effect was first intended. The same for every try, so it can date a commit."""
    resumed: bool
    """An earlier try left no outcome: ask reality before trying again."""


Performer: TypeAlias = Callable[[Effect[object], Call], Awaitable[object]]
Performers: TypeAlias = Mapping[type[Effect[object]], Performer]


class _Memory(msgspec.Struct):
    """What the stream says of one key."""

    intent: EffectIntended | None = None
    intended_at: str = ""
    fact: Event | None = None
    outcome: EffectCompleted | EffectFailed | None = None


class Driver:
    """Drives one run. Only one driver at a time can record anything."""

    def __init__(
        self,
        ledger: Ledger,
        run: str,
        performers: Performers,
        *,
        redact: Redactor | None = None,
        admit: Callable[[Event], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._admit = admit
        """Refuses a fact that must not be, by raising, before it is recorded."""
        self._given_redactor = redact
        self._run = run
        self._performers = performers
        self._memory: dict[str, _Memory] = {}
        self._version = 0
        fences = 0
        for recorded in ledger.stream(run):
            self._version = recorded.version
            fences += isinstance(recorded.event, DriverStarted)
            self._remember(recorded)
        self.record(DriverStarted(run=run, fence=fences + 1, process=os.getpid()))

    @cached_property
    def _redact(self) -> Redactor:
        return self._given_redactor or Redactor.of_environment()

    async def drive(self, flow: Flow[Result]) -> Result:
        """Run `flow` to its end and return what it returns."""
        return await self._advance(flow, "")

    def record(self, event: Event, key: str = "") -> None:
        """Append one event to the run's stream."""
        if (
            not key
        ):  # what a flow notes comes from what it was sent, which was redacted; the rest comes from us
            event = self._redact.struct(event)
        try:
            (recorded,) = self._ledger.append(self._run, [event], expected=self._version, key=key)
        except Conflict as error:
            raise Fenced(f"`{self._run}` was taken over by another process") from error
        self._version = recorded.version
        self._remember(recorded)

    def _remember(self, recorded: Recorded) -> None:
        if not recorded.key:
            return
        memory = self._memory.setdefault(recorded.key, _Memory())
        match recorded.event:
            case EffectIntended() as intent:
                memory.intent, memory.intended_at = intent, recorded.at
            case EffectCompleted() | EffectFailed() as outcome:
                memory.outcome = outcome
            case fact:
                memory.fact = fact

    async def _advance(self, flow: Flow[Result], path: str) -> Result:
        ordinal = 0
        answer: object = None
        failure: PerformerFailed | None = None
        try:
            while True:
                try:
                    asked = flow.throw(failure) if failure else flow.send(answer)
                except StopIteration as stop:
                    return cast(Result, stop.value)
                key = f"{path}/{ordinal}"
                ordinal += 1
                answer, failure = None, None
                try:
                    answer = await self._answer(asked, key)
                except PerformerFailed as error:
                    failure = error
        finally:
            close(flow)

    async def _answer(self, asked: object, key: str) -> object:
        match asked:
            case Note():
                self._note(asked.event, key)
                return None
            case Together():
                return await self._together(asked, key)
            case Effect():
                return await self._effect(asked, key)
        raise TypeError(f"a flow may await effects only, not `{type(asked).__name__}`")

    def _note(self, event: Event, key: str) -> None:
        memory = self._memory.get(key)
        if memory is None:
            if self._admit is not None:
                self._admit(event)
            self.record(event, key)
        elif memory.fact != event:
            raise Diverged(key, _describe(memory), f"`Note` of {event}")

    async def _together(self, asked: Together[object], key: str) -> dict[str, object]:
        turns = asked.turns()
        found: dict[str, object] = {}

        async def advance(name: str) -> None:
            try:
                found[name] = await self._advance(asked.flows[name], f"{key}/{quote(name, safe='')}")
            except PerformerFailed as error:
                found[name] = error  # a flow that failed must not stop its siblings half-way
            except BaseException:
                turns.stop()  # after any other error nothing new may begin
                raise
            turns.end(name)
            begin()

        def begin() -> None:
            for name in turns.begin():
                group.create_task(advance(name))

        try:
            self._intend("Together", " ".join(asked.flows), encode(asked.intent), key)
            async with asyncio.TaskGroup() as group:
                begin()
        except BaseExceptionGroup as errors:
            raise _first(errors) from errors
        finally:
            for flow in asked.flows.values():
                close(flow)
        results = {name: found[name] for name in asked.flows}
        for result in results.values():
            if isinstance(result, PerformerFailed):
                raise result
        return results

    async def _effect(self, effect: Effect[object], key: str) -> object:
        name = type(effect).__name__
        resumed = self._intend(name, effect.about, encode(effect), key)
        memory = self._memory[key]
        if memory.outcome is None:
            call = Call(run=self._run, key=key, intended_at=memory.intended_at, resumed=resumed)
            try:
                outcome = await self._performers[type(effect)](effect, call)
            except CannotPerform as error:
                self.record(self._redact.struct(hints.failed(name, error)), key)
            else:
                body = self._cleaned(effect, _checked(effect, encode(outcome)))
                self.record(EffectCompleted(effect=name, outcome=pack(self._ledger, body)), key)
        match memory.outcome:
            case EffectCompleted(outcome=payload):
                return msgspec.json.decode(unpack(self._ledger, payload), type=outcome_type(effect))
            case EffectFailed() as failed:
                raise hints.failure(failed)
        raise AssertionError(f"`{key}` has no outcome after it was recorded")

    def _cleaned(self, effect: Effect[object], body: bytes) -> bytes:
        """An encoded outcome as it is stored."""
        if type(effect).__name__ in VERBATIM:
            return body
        cleaned = self._redact.json(body)
        return body if cleaned is body else _checked(effect, cleaned)

    def _intend(self, name: str, about: str, body: bytes, key: str) -> bool:
        """Record the intent unless it is on record; whether it was."""
        fingerprint = address(body)
        memory = self._memory.get(key)
        if memory is None:
            packed = pack(self._ledger, self._redact.json(body))
            intended = EffectIntended(
                effect=name, about=self._redact.text(about), fingerprint=fingerprint, body=packed
            )
            self.record(intended, key)
            return False
        if memory.intent is None or (memory.intent.effect, memory.intent.fingerprint) != (name, fingerprint):
            raise Diverged(key, _describe(memory), f"`{name}` {fingerprint[:12]}")
        return True


def outcome_type(effect: Effect[object]) -> object:
    """The type that an effect's outcome has, from `class RunAgent(Effect[AgentAnswer])`."""
    for base in getattr(type(effect), "__orig_bases__", ()):
        for argument in get_args(base):
            if not isinstance(argument, TypeVar):
                return argument
    raise TypeError(f"`{type(effect).__name__}` does not say what its outcome is")


def _checked(effect: Effect[object], body: bytes) -> bytes:
    """The encoded outcome, if `effect` can have it: any other, once recorded, would stop the run for good."""
    try:
        msgspec.json.decode(body, type=outcome_type(effect))
    except msgspec.ValidationError as error:
        raise TypeError(f"the performer of `{type(effect).__name__}` gave something else: {error}") from error
    return body


def _describe(memory: _Memory) -> str:
    if memory.intent is not None:
        return f"`{memory.intent.effect}` {memory.intent.fingerprint[:12]}"
    return f"`Note` of {memory.fact}"


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
