"""The driver: what was done is not done again, by whoever drives the run, whatever became of the last one."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from kernel.histories import FAILED, PASSED, Clock
from kernel.processes import child
from planforge.actions import Action
from planforge.errors import CannotPerform, Diverged, Fenced, GitFailed, NeedsPerson, PerformerFailed
from planforge.interfaces.cli.typed import text
from planforge.kernel.driver import Call, Driver, outcome_type
from planforge.kernel.effects import DocumentText, Effect, Flow, Note, ReadPlan, RunCheck, Together
from planforge.kernel.events import (
    DriverStarted,
    EffectCompleted,
    EffectFailed,
    EffectIntended,
    Event,
    RunParked,
)
from planforge.kernel.evidence import Evidence
from planforge.kernel.ledger import Ledger
from planforge.kernel.objects import address, encode
from planforge.kernel.payloads import INLINE_LIMIT, unpack
from planforge.kernel.redaction import Redactor

RUN = "run-001"
Result = TypeVar("Result")


class Said(msgspec.Struct, frozen=True, kw_only=True):
    words: str
    length: int | None = None
    pair: tuple[str, ...] = ()


class Say(Effect[Said], frozen=True, kw_only=True):
    words: str


class Shout(Effect[Said], frozen=True, kw_only=True):
    words: str


class Forget(Effect[None], frozen=True, kw_only=True):
    pass


class Room:
    """Performers that do as they are told, and remember each call."""

    def __init__(self, said: Callable[[str, Call], Awaitable[object] | object] | None = None) -> None:
        self.calls: list[Call] = []
        self.heard: list[str] = []
        self._said = said or (lambda words, _: Said(words=words, length=len(words), pair=(words, words)))
        self.performers: dict[Any, Any] = {Say: self._say, Shout: self._say, Forget: self._forget}

    async def _say(self, effect: Say, call: Call) -> object:
        self.calls.append(call)
        self.heard.append(effect.words)
        said = self._said(effect.words, call)
        return await said if isinstance(said, Awaitable) else said

    async def _forget(self, _: Forget, call: Call) -> None:
        self.calls.append(call)
        self.heard.append("forgotten")


def drive(ledger: Ledger, flow: Flow[Result], room: Room | None = None) -> Result:
    """Drive a flow as a new driver, and see to it that nothing is left that somebody forgot to await."""
    driver = Driver(ledger, RUN, (room or Room()).performers)

    async def bounded(flow: Flow[Result]) -> Result:
        async with asyncio.timeout(30):
            return await driver.drive(flow)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            return asyncio.run(bounded(flow))
        finally:
            del flow
            gc.collect()
            assert [str(warning.message) for warning in seen] == []


def kinds(ledger: Ledger) -> list[str]:
    return [item.kind for item in ledger.stream(RUN) if not isinstance(item.event, DriverStarted)]


def parked(reason: str) -> RunParked:
    return RunParked(run=RUN, reason=reason)


async def say(*words: str) -> list[Said]:
    return [await Say(words=word) for word in words]


# Once


def test_an_effect_is_performed_once_and_its_outcome_remembered(ledger: Ledger) -> None:
    first, second = Room(), Room()
    live = drive(ledger, say("one", "two"), first)
    replayed = drive(ledger, say("one", "two"), second)
    assert (first.heard, second.heard) == (["one", "two"], [])
    assert live == replayed == [Said(words=word, length=3, pair=(word, word)) for word in ("one", "two")]
    assert kinds(ledger) == ["EffectIntended", "EffectCompleted"] * 2


def test_a_flow_goes_on_where_the_last_driver_stopped(ledger: Ledger) -> None:
    drive(ledger, say("one"))
    room = Room()
    assert [said.words for said in drive(ledger, say("one", "two"), room)] == ["one", "two"]
    assert room.heard == ["two"]


def test_an_outcome_of_nothing_is_an_outcome(ledger: Ledger) -> None:
    async def flow() -> None:
        return await Forget()

    room = Room()
    for _ in range(2):
        assert drive(ledger, flow(), room) is None
    assert room.heard == ["forgotten"]


@pytest.mark.parametrize("evidence", [PASSED, FAILED], ids=["passed", "failed"])
def test_an_outcome_from_the_ledger_has_the_type_it_had_live(ledger: Ledger, evidence: Evidence) -> None:
    async def perform(_: object, __: Call) -> Evidence:
        return evidence

    async def flow() -> Evidence:
        return await RunCheck(commit="c0ffee", tree="7ree")

    performers: dict[Any, Any] = {RunCheck: perform}
    live = asyncio.run(Driver(ledger, RUN, performers).drive(flow()))
    replayed = asyncio.run(Driver(ledger, RUN, {}).drive(flow()))
    assert live == replayed == evidence
    assert type(replayed.outcome) is type(evidence.outcome)


def test_a_note_is_recorded_once(ledger: Ledger) -> None:
    async def flow() -> str:
        await Note(parked("a"))
        await Say(words="x")
        await Note(parked("b"))
        return "end"

    assert [drive(ledger, flow()) for _ in range(3)] == ["end"] * 3
    assert kinds(ledger) == ["RunParked", "EffectIntended", "EffectCompleted", "RunParked"]


def test_a_call_knows_its_run_its_key_and_when_it_was_intended(ledger: Ledger, clock: Clock) -> None:
    room = Room()
    drive(ledger, say("one", "two"), room)
    intents = [item for item in ledger.stream(RUN) if isinstance(item.event, EffectIntended)]
    assert room.calls == [
        Call(run=RUN, key=key, intended_at=intent.at, resumed=False)
        for key, intent in zip(["/0", "/1"], intents, strict=True)
    ]


def test_an_intent_is_on_record_before_the_effect_is_performed(ledger: Ledger) -> None:
    def said(words: str, _: Call) -> Said:
        assert kinds(ledger)[-1] == "EffectIntended"
        return Said(words=words)

    drive(ledger, say("one"), Room(said))


# Again


def test_an_intent_without_an_outcome_is_performed_again_and_the_performer_told(ledger: Ledger) -> None:
    def crash(words: str, _: Call) -> Said:
        raise KeyboardInterrupt(words)

    rooms = [Room(crash), Room(crash), Room()]
    for room in rooms[:2]:
        with pytest.raises(KeyboardInterrupt):
            drive(ledger, say("one"), room)
    drive(ledger, say("one"), rooms[2])
    calls = [call for room in rooms for call in room.calls]
    assert [call.resumed for call in calls] == [False, True, True]
    assert {call.intended_at for call in calls} == {calls[0].intended_at}
    assert {call.key for call in calls} == {"/0"}
    assert kinds(ledger) == ["EffectIntended", "EffectCompleted"]


@pytest.mark.parametrize("error", [RuntimeError("a bug"), NeedsPerson("approve?"), OSError(28, "full")])
def test_an_error_that_is_no_outcome_is_not_recorded_and_the_run_goes_on_later(
    ledger: Ledger, error: Exception
) -> None:
    def fail(words: str, _: Call) -> Said:
        if words == "two":
            raise error
        return Said(words=words)

    with pytest.raises(type(error)) as raised:
        drive(ledger, say("one", "two", "three"), Room(fail))
    assert raised.value is error
    assert kinds(ledger) == ["EffectIntended", "EffectCompleted", "EffectIntended"]
    room = Room()
    drive(ledger, say("one", "two", "three"), room)
    assert room.heard == ["two", "three"]


@pytest.mark.parametrize(
    "wrong",
    [Said(words=7), "words", None, float("nan")],  # type: ignore[arg-type]
)
def test_an_outcome_of_the_wrong_type_is_not_recorded(ledger: Ledger, wrong: object) -> None:
    with pytest.raises(TypeError, match="`Say`"):
        drive(ledger, say("one"), Room(lambda *_: wrong))
    assert kinds(ledger) == ["EffectIntended"]
    assert drive(ledger, say("one")) == [Said(words="one", length=3, pair=("one", "one"))]


def test_one_driver_can_drive_again_after_an_error(ledger: Ledger) -> None:
    failing = [RuntimeError("once")]

    def fail_once(words: str, _: Call) -> Said:
        if failing:
            raise failing.pop()
        return Said(words=words)

    driver = Driver(ledger, RUN, Room(fail_once).performers)
    with pytest.raises(RuntimeError, match="once"):
        asyncio.run(driver.drive(say("one")))
    assert asyncio.run(driver.drive(say("one"))) == [Said(words="one")]


# Failures that are outcomes


async def try_to_say(word: str) -> str:
    try:
        return (await Say(words=word)).words
    except PerformerFailed as error:
        return f"{error.error}: {error.message} (hint: {text(error.hint)})"


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (GitFailed("no such ref", "fetch it"), "GitFailed: no such ref (hint: fetch it)"),
        (CannotPerform("no"), "CannotPerform: no (hint: )"),
        (CannotPerform("no", Action("status")), "CannotPerform: no (hint: `planforge status`)"),
    ],
)
def test_a_failure_is_recorded_and_met_by_the_flow_the_same_live_and_replayed(
    ledger: Ledger, error: CannotPerform, seen: str
) -> None:
    def fail(_: str, __: Call) -> Said:
        raise error

    room = Room(fail)
    assert [drive(ledger, try_to_say("one"), room) for _ in range(3)] == [seen] * 3
    assert room.heard == ["one"]
    assert kinds(ledger) == ["EffectIntended", "EffectFailed"]


def test_a_failure_that_the_flow_does_not_expect_ends_it_each_time(ledger: Ledger) -> None:
    def fail(_: str, __: Call) -> Said:
        raise GitFailed("no such ref")

    room = Room(fail)
    for _ in range(2):
        with pytest.raises(PerformerFailed, match="no such ref") as failed:
            drive(ledger, say("one", "two"), room)
        assert failed.value.error == "GitFailed"
    assert room.heard == ["one"]


# Divergence


async def note(reason: str) -> None:
    await Note(parked(reason))


async def shout(words: str) -> Said:
    return await Shout(words=words)


async def together(*names: str) -> dict[str, list[Said]]:
    return await Together({name: say(name) for name in names})


DIVERGENCES: dict[str, tuple[Callable[[], Flow[Any]], Callable[[], Flow[Any]], str, str]] = {
    "another effect": (lambda: say("a"), lambda: shout("a"), "`Say` ", "`Shout` "),
    "another content": (lambda: say("a"), lambda: say("b"), "`Say` ", "`Say` "),
    "another fact": (lambda: note("a"), lambda: note("b"), "reason='a'", "reason='b'"),
    "a fact for an effect": (lambda: say("a"), lambda: note("b"), "`Say` ", "`Note` of RunParked"),
    "an effect for a fact": (lambda: note("a"), lambda: say("b"), "`Note` of RunParked", "`Say` "),
    "other names": (lambda: together("a", "b"), lambda: together("a", "c"), "`Together` ", "`Together` "),
    "fewer names": (lambda: together("a", "b"), lambda: together("a"), "`Together` ", "`Together` "),
    "several for one": (lambda: say("a"), lambda: together("a"), "`Say` ", "`Together` "),
    "one for several": (lambda: together("a"), lambda: say("a"), "`Together` ", "`Say` "),
}


@pytest.mark.parametrize("change", DIVERGENCES)
def test_a_flow_that_asks_for_something_else_has_diverged_and_both_sides_are_shown(
    ledger: Ledger, change: str
) -> None:
    before, after, recorded, asked = DIVERGENCES[change]
    drive(ledger, before())
    events = kinds(ledger)
    room = Room()
    with pytest.raises(Diverged) as diverged:
        drive(ledger, after(), room)
    assert diverged.value.key == "/0"
    assert recorded in diverged.value.recorded
    assert asked in diverged.value.asked
    assert diverged.value.recorded != diverged.value.asked
    assert room.heard == []
    assert kinds(ledger) == events


def test_a_divergence_is_not_something_a_flow_can_catch(ledger: Ledger) -> None:
    drive(ledger, say("one"))

    async def careless() -> str:
        try:
            return (await Say(words="other")).words
        except PerformerFailed:
            return "caught"

    with pytest.raises(Diverged):
        drive(ledger, careless())


def test_the_same_names_in_another_order_are_the_same(ledger: Ledger) -> None:
    drive(ledger, together("a", "b"))
    room = Room()
    assert list(drive(ledger, together("b", "a"), room)) == ["b", "a"]
    assert room.heard == []


# Together


def test_flows_run_at_once(ledger: Ledger) -> None:
    here = {"left": asyncio.Event(), "right": asyncio.Event()}
    other = {"left": "right", "right": "left"}

    async def meet(words: str, _: Call) -> Said:
        here[words].set()
        await here[other[words]].wait()
        return Said(words=words)

    async def flow() -> dict[str, list[Said]]:
        return await Together({"left": say("left"), "right": say("right")})

    found = drive(ledger, flow(), Room(meet))
    assert found == {"left": [Said(words="left")], "right": [Said(words="right")]}
    assert drive(ledger, flow()) == found


def test_no_more_flows_than_the_limit_run_at_once(ledger: Ledger) -> None:
    running: set[str] = set()
    most: list[int] = []
    pairs: list[asyncio.Barrier] = []

    async def meet(words: str, _: Call) -> Said:
        pairs.extend([asyncio.Barrier(2)] if not pairs else [])
        running.add(words)
        most.append(len(running))
        await pairs[0].wait()
        running.remove(words)
        return Said(words=words)

    async def flow() -> dict[str, list[Said]]:
        return await Together({name: say(name) for name in "abcdef"}, limit=2)

    assert list(drive(ledger, flow(), Room(meet))) == list("abcdef")
    assert max(most) == 2


def test_with_a_limit_of_one_flows_run_one_after_another(ledger: Ledger) -> None:
    async def flow() -> dict[str, list[Said]]:
        return await Together({name: say(f"{name}1", f"{name}2") for name in "ab"}, limit=1)

    room = Room()
    drive(ledger, flow(), room)
    assert room.heard == ["a1", "a2", "b1", "b2"]


def test_no_flows_at_all_are_no_trouble(ledger: Ledger) -> None:
    assert drive(ledger, together()) == {}
    assert drive(ledger, together()) == {}


def test_a_limit_below_nought_leaves_no_flow_behind(ledger: Ledger) -> None:
    async def flow() -> dict[str, list[Said]]:
        return await Together({"a": say("a")}, limit=-1)

    with pytest.raises(ValueError, match="none at all"):
        drive(ledger, flow())


def test_a_flow_that_fails_lets_its_siblings_finish(ledger: Ledger) -> None:
    failed: list[asyncio.Event] = []

    async def perform(words: str, _: Call) -> Said:
        failed.extend([asyncio.Event()] if not failed else [])
        if words == "bad":
            failed[0].set()
            raise GitFailed("no such ref")
        await failed[0].wait()
        return Said(words=words)

    async def flow() -> str:
        try:
            await Together({"a": say("one", "two"), "b": say("bad"), "c": say("three")})
        except PerformerFailed as error:
            return f"{error.error}: {error.message}"
        return "nothing failed"

    room, second = Room(perform), Room(perform)
    assert drive(ledger, flow(), room) == "GitFailed: no such ref"
    assert sorted(room.heard) == ["bad", "one", "three", "two"]
    assert drive(ledger, flow(), second) == "GitFailed: no such ref"
    assert second.heard == []


def test_of_several_failures_the_flow_meets_the_first_by_place_not_by_time(ledger: Ledger) -> None:
    second_failed: list[asyncio.Event] = []

    async def perform(words: str, _: Call) -> Said:
        second_failed.extend([asyncio.Event()] if not second_failed else [])
        if words == "second":
            second_failed[0].set()
        await second_failed[0].wait()
        raise GitFailed(words)

    async def flow() -> str:
        try:
            await Together({"a": say("first"), "b": say("second")})
        except PerformerFailed as error:
            return error.message
        return "nothing failed"

    assert [drive(ledger, flow(), Room(perform)) for _ in range(2)] == ["first", "first"]


def test_an_unexpected_error_in_a_flow_stops_its_siblings_and_leaves_nothing_behind(ledger: Ledger) -> None:
    stopped: list[str] = []
    waiting: list[asyncio.Event] = []

    async def perform(words: str, _: Call) -> Said:
        waiting.extend([asyncio.Event()] if not waiting else [])
        if words == "bug":
            await waiting[0].wait()
            raise RuntimeError("a bug")
        try:
            waiting[0].set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(words)
            raise
        raise AssertionError("nobody stops waiting for ever")

    async def flow() -> dict[str, list[Said]]:
        flows = {"a": say("one", "two"), "b": say("bug"), "c": say("never begun"), "d": say("nor this")}
        return await Together(flows, limit=2)

    with pytest.raises(RuntimeError, match="a bug"):
        drive(ledger, flow(), Room(perform))
    assert stopped == ["one"]
    assert kinds(ledger) == ["EffectIntended"] * 3
    room = Room()
    assert set(drive(ledger, flow(), room)) == set("abcd")
    resumed = {call.key for call in room.calls if call.resumed}
    assert resumed == {"/0/a/0", "/0/b/0"}


def test_flows_may_run_flows_together(ledger: Ledger) -> None:
    async def outer(name: str) -> dict[str, list[Said]]:
        await Say(words=name)
        return await Together({inner: say(f"{name}{inner}") for inner in "xy"})

    async def flow() -> dict[str, dict[str, list[Said]]]:
        return await Together({name: outer(name) for name in "ab"})

    room = Room()
    found = drive(ledger, flow(), room)
    assert [found[name][inner][0].words for name in "ab" for inner in "xy"] == ["ax", "ay", "bx", "by"]
    assert {call.key for call in room.calls} == {
        *("/0/a/0", "/0/a/1/x/0", "/0/a/1/y/0"),
        *("/0/b/0", "/0/b/1/x/0", "/0/b/1/y/0"),
    }
    again = Room()
    assert drive(ledger, flow(), again) == found
    assert again.heard == []


def test_an_error_deep_down_comes_out_as_it_is(ledger: Ledger) -> None:
    def fail(words: str, _: Call) -> Said:
        raise NeedsPerson(f"approve {words}?")

    async def flow() -> object:
        return await Together({"a": together("b")})

    with pytest.raises(NeedsPerson, match="approve b"):
        drive(ledger, flow(), Room(fail))


def test_names_that_look_like_paths_are_not_taken_for_them(ledger: Ledger) -> None:
    async def flow() -> dict[str, object]:
        deep: dict[str, Flow[object]] = {"a": together("b"), "a/0/b": say("other"), "a%2F0%2Fb": say("third")}
        return await Together(deep)

    room = Room()
    found = drive(ledger, flow(), room)
    assert sorted(room.heard) == ["b", "other", "third"]
    assert len({call.key for call in room.calls}) == 3
    assert drive(ledger, flow()) == found


# Ends


async def tidy() -> None:
    try:
        try:
            await Say(words="one")
        finally:
            await Say(words="clean up")
    finally:
        await Say(words="and lock up")


async def both_tidy() -> None:
    await Together({"a": tidy(), "b": tidy()})


@pytest.mark.parametrize("flow", [tidy, both_tidy])
def test_a_flow_that_cleans_up_does_not_hide_why_it_was_stopped(
    ledger: Ledger, flow: Callable[[], Flow[None]]
) -> None:
    def fail(_: str, __: Call) -> Said:
        raise NeedsPerson("approve?")

    room = Room(fail)
    with pytest.raises(NeedsPerson, match="approve"):
        drive(ledger, flow(), room)
    assert "clean up" not in room.heard


def test_a_flow_may_await_effects_and_nothing_else(ledger: Ledger) -> None:
    async def impatient() -> None:
        await asyncio.sleep(0)

    async def foreign() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(TypeError, match="a flow may await effects only, not `NoneType`"):
        drive(ledger, impatient())
    with pytest.raises(TypeError, match="a flow may await effects only, not `Future`"):
        drive(ledger, foreign())
    assert kinds(ledger) == []


def test_an_effect_must_say_what_its_outcome_is() -> None:
    class Vague(Effect, frozen=True, kw_only=True):  # type: ignore[type-arg]
        pass

    class Louder(Say, frozen=True, kw_only=True):
        pass

    assert outcome_type(Say(words="")) is Said  # type: ignore[arg-type]
    assert outcome_type(Louder(words="")) is Said  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`Vague` does not say"):
        outcome_type(Vague())


def test_large_bodies_are_objects_and_small_ones_are_not(ledger: Ledger) -> None:
    small, large = "s", "l" * INLINE_LIMIT
    room = Room()
    found = drive(ledger, say(small, large), room)
    bodies = [
        payload
        for item in ledger.stream(RUN)
        if isinstance(item.event, EffectIntended | EffectCompleted)
        for payload in [item.event.body if isinstance(item.event, EffectIntended) else item.event.outcome]
    ]
    assert [body.object is not None for body in bodies] == [False, False, True, True]
    assert large.encode() in ledger.objects.get(bodies[3].object or "")
    assert drive(ledger, say(small, large)) == found


# One driver at a time


def test_a_second_driver_makes_the_first_ones_next_record_fail(ledger: Ledger) -> None:
    first = Room(lambda words, _: (Driver(ledger, RUN, {}), Said(words=words))[1])
    with pytest.raises(Fenced, match="`run-001` was taken over"):
        drive(ledger, say("one", "two"), first)
    assert first.heard == ["one"]
    assert kinds(ledger) == ["EffectIntended"]
    third = Room()
    drive(ledger, say("one", "two"), third)
    assert [call.resumed for call in third.calls] == [True, False]


def test_a_driver_that_was_fenced_can_record_no_note_and_no_failure(ledger: Ledger) -> None:
    async def flow() -> None:
        await Note(parked("late"))

    driver = Driver(ledger, RUN, {})
    Driver(ledger, RUN, {})
    with pytest.raises(Fenced):
        asyncio.run(driver.drive(flow()))
    with pytest.raises(Fenced):
        driver.record(parked("late"))

    def fail(_: str, __: Call) -> Said:
        Driver(ledger, RUN, {})
        raise GitFailed("no")

    with pytest.raises(Fenced):
        drive(ledger, say("one"), Room(fail))
    assert kinds(ledger) == ["EffectIntended"]


def test_being_fenced_while_flows_run_together_stops_them_all(ledger: Ledger) -> None:
    def take_over(words: str, _: Call) -> Said:
        Driver(ledger, RUN, {})
        return Said(words=words)

    with pytest.raises(Fenced):
        drive(ledger, together("a", "b", "c"), Room(take_over))


def test_each_driver_has_a_higher_fence(ledger: Ledger) -> None:
    for _ in range(3):
        drive(ledger, say("one"))
    fences = [item.event.fence for item in ledger.stream(RUN) if isinstance(item.event, DriverStarted)]
    assert fences == [1, 2, 3]


def test_facts_of_other_streams_and_facts_without_a_key_are_not_the_flows(ledger: Ledger) -> None:
    ledger.append("run-002", [parked("other")], expected=0, key="/0")
    ledger.append(RUN, [parked("from outside")], expected=0)
    room = Room()
    drive(ledger, say("one"), room)
    assert room.heard == ["one"]


def test_what_a_driver_records_is_what_the_flow_did_and_no_more(ledger: Ledger) -> None:
    def fail_two(words: str, _: Call) -> Said:
        if words == "two":
            raise GitFailed("no")
        return Said(words=words)

    async def flow() -> None:
        await Say(words="one")
        await Note(parked("between"))
        await try_to_say("two")

    drive(ledger, flow(), Room(fail_two))
    found: list[tuple[str, type[Event]]] = [(item.key, type(item.event)) for item in ledger.stream(RUN)]
    assert found == [
        ("", DriverStarted),
        ("/0", EffectIntended),
        ("/0", EffectCompleted),
        ("/1", RunParked),
        ("/2", EffectIntended),
        ("/2", EffectFailed),
    ]


# Real processes

NAMES = ["one", "two", "three", "four", "five", "six"]


@pytest.mark.parametrize(
    "points",
    [
        ["before one"],
        ["after one"],
        ["after two"],
        ["before three"],
        ["after three"],
        ["before four"],
        ["after four", "before five"],
        ["before six", "after six"],
    ],
    ids=" then ".join,
)
def test_a_run_killed_at_any_point_is_completed_by_the_next_process(
    tmp_path: Path, points: list[str]
) -> None:
    for point in points:
        with child("drive_six", tmp_path, point) as driving:
            assert driving.hear() == point
            assert driving.kill() == []
    with child("drive_six", tmp_path, "") as driving:
        assert driving.end() == [" ".join(NAMES).upper()]
    lines = (tmp_path / "lines").read_text().splitlines()
    assert lines == list(_expected(points))
    ledger = Ledger.open(tmp_path)
    assert list(ledger.faults()) == []
    ledger.close()


def _expected(points: list[str]) -> Iterator[str]:
    """One line for each effect, and one more for each kill between the doing and the record of it."""
    for name in NAMES:
        begun = False
        for point in points:
            if point == f"after {name}":
                yield f"{name} again" if begun else name
            begun |= point.endswith(f" {name}")
        yield f"{name} again" if begun else name


# Secrets

SECRET = "-".join(("open", "sesame", "4711"))
REDACTOR = Redactor({"DOOR_TOKEN": SECRET})
MARK = "[redacted:DOOR_TOKEN]"


def drive_redacted(ledger: Ledger, flow: Flow[Result], room: Room) -> Result:
    return asyncio.run(Driver(ledger, RUN, room.performers, redact=REDACTOR).drive(flow))


def everything(ledger: Ledger) -> bytes:
    """All bytes on disk, the write-ahead log and the objects included."""
    return b"".join(path.read_bytes() for path in ledger.directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("padding", [0, 2 * INLINE_LIMIT])
def test_a_secret_is_stored_in_no_intent_and_no_outcome_however_large(ledger: Ledger, padding: int) -> None:
    words = f"say {SECRET} {'x' * padding}"
    room = Room()
    (live,) = drive_redacted(ledger, say(words), room)
    (replayed,) = drive_redacted(ledger, say(words), Room())
    assert room.heard == [words]
    assert live == replayed
    assert live.words == live.pair[0] == words.replace(SECRET, MARK)
    assert SECRET.encode() not in everything(ledger)
    assert MARK.encode() in everything(ledger)


def test_the_fingerprint_is_that_of_the_effect_as_it_was_asked_for(ledger: Ledger) -> None:
    drive_redacted(ledger, say(SECRET), Room())
    (intent,) = [item.event for item in ledger.stream(RUN) if isinstance(item.event, EffectIntended)]
    assert intent.fingerprint == address(encode(Say(words=SECRET)))
    assert unpack(ledger, intent.body) == encode(Say(words=MARK))
    with pytest.raises(Diverged):
        drive_redacted(ledger, say(MARK), Room())


def test_a_flow_replays_where_the_secret_is_not_known_any_more(ledger: Ledger) -> None:
    live = drive_redacted(ledger, say(SECRET, "and more"), Room())
    assert drive(ledger, say(SECRET, "and more")) == live


def test_a_failure_is_recorded_and_met_without_its_secrets(ledger: Ledger) -> None:
    def fail(words: str, _: Call) -> object:
        raise GitFailed(f"cannot push with {SECRET}", f"try {SECRET} again")

    for room in (Room(fail), Room()):
        with pytest.raises(PerformerFailed) as failed:
            drive_redacted(ledger, say("one"), room)
        assert (failed.value.message, text(failed.value.hint)) == (
            f"cannot push with {MARK}",
            f"try {MARK} again",
        )
    assert SECRET.encode() not in everything(ledger)


def test_what_a_driver_records_of_the_run_is_redacted_too(ledger: Ledger) -> None:
    Driver(ledger, RUN, {}, redact=REDACTOR).record(parked(f"is {SECRET} right?"))
    assert ledger.last(1)[0].event == parked(f"is {MARK} right?")


def test_a_plan_is_stored_as_its_owner_wrote_it_for_its_approval_is_of_that_text(ledger: Ledger) -> None:
    async def flow() -> DocumentText:
        return await ReadPlan(plan="plan-001")

    async def read(effect: ReadPlan, call: Call) -> DocumentText:
        return DocumentText(text=f"# Plan\n\n{SECRET}\n", object="0" * 64)

    room = Room()
    room.performers[ReadPlan] = read
    for _ in range(2):
        assert drive_redacted(ledger, flow(), room).text == f"# Plan\n\n{SECRET}\n"


def test_without_a_redactor_the_secrets_are_those_of_the_environment(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOOR_TOKEN", SECRET)
    (said,) = drive(ledger, say(SECRET))
    assert said.words == MARK
    assert SECRET.encode() not in everything(ledger)
