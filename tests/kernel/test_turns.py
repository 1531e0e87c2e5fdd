"""Whose turn it is: whoever is ready begins once there is a place, and nobody before those it waits for."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driven import driven
from kernel.recordings import RUN, Said, Say, begin, ending
from planforge.errors import GitFailed, PerformerFailed
from planforge.kernel.driver import Call, Driver
from planforge.kernel.effects import Effect, Note, Together
from planforge.kernel.events import RunParked
from planforge.kernel.ledger import Ledger
from planforge.kernel.replay import replay
from planforge.kernel.replay.backtest import backtest
from planforge.kernel.replay.tape import Tape
from planforge.kernel.turns import Turns, waiting
from tries import tries


def test_whoever_waits_for_nobody_begins_in_the_order_given() -> None:
    turns = Turns("cab", 2)
    assert turns.begin() == ["c", "a"]
    assert turns.begin() == []
    turns.end("a")
    assert turns.begin() == ["b"]


def test_whoever_waits_holds_no_place() -> None:
    turns = Turns("abc", 2, {"b": "a"})
    assert turns.begin() == ["a", "c"]
    turns.end("c")
    assert turns.begin() == []
    turns.end("a")
    assert turns.begin() == ["b"]


def test_of_those_that_are_ready_the_first_in_order_begins() -> None:
    turns = Turns("abcd", 1, {"b": "a"})
    assert turns.begin() == ["a"]
    turns.end("a")
    assert turns.begin() == ["b"]


def test_one_that_nobody_may_follow_lets_nobody_begin() -> None:
    turns = Turns("ab", 1)
    turns.begin()
    turns.stop()
    turns.end("a")
    assert turns.begin() == []


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"a": "x"}, "`a` is to begin after x: there is no `x`"),
        ({"x": "a"}, "`x` is to begin after a: there is no `x`"),
        ({"a": "a"}, "these would wait for each other for ever: a"),
        ({"a": "b", "b": "a", "c": "a"}, "these would wait for each other for ever: a, b, c"),
    ],
)
def test_what_could_never_begin_is_refused(after: Mapping[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        waiting("abc", after)


# Any number of flows, any of which wait for others


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    """Flows by name, which wait for which, how many at once, how long each takes, which fail."""

    names: tuple[str, ...]
    after: dict[str, tuple[str, ...]]
    limit: int
    pauses: dict[str, int]
    failing: frozenset[str]


@st.composite
def cases(draw: st.DrawFn) -> _Case:
    names = [f"n{number}" for number in range(draw(st.integers(1, 8)))]
    after = {
        name: tuple(draw(st.lists(st.sampled_from(names[:at]), unique=True)))
        for at, name in enumerate(names)
        if at and draw(st.booleans())
    }
    return _Case(
        names=tuple(draw(st.permutations(names))),
        after=after,
        limit=draw(st.integers(1, 4)),
        pauses={name: draw(st.integers(0, 4)) for name in names},
        failing=frozenset(draw(st.lists(st.sampled_from(names), max_size=2))),
    )


class _Watched:
    """The flows of a case, which say when they begin and end."""

    def __init__(self, case: _Case, stop_at: int | None = None) -> None:
        self._case = case
        self._stop_at = stop_at
        self.began: list[str] = []
        self.ended: list[str] = []
        self.performed: list[str] = []

    async def flow(self) -> str:
        """All of them together; what each came to."""
        flows = {name: self._one(name) for name in self._case.names}
        try:
            results = await Together(flows, self._case.limit, self._case.after)
        except PerformerFailed as error:
            return error.message
        return " ".join(f"{name}={said}" for name, said in sorted(results.items()))

    async def _one(self, name: str) -> str:
        self.began.append(name)
        assert set(self._case.after.get(name, ())) <= set(self.ended), f"{name} did not wait"
        assert len(self.began) - len(self.ended) <= self._case.limit
        try:
            said = (await Say(words=name)).words
            await Note(RunParked(run=RUN, reason=name))
            return said + (await Say(words=f"{name} again")).words
        finally:
            self.ended.append(name)

    async def say(self, effect: Say, _: Call) -> Said:
        """Take a while, and fail where the case says so."""
        self.performed.append(effect.words)
        if len(self.performed) == self._stop_at:
            raise KeyboardInterrupt
        name, *again = effect.words.split()
        for _pause in range(self._case.pauses[name]):
            await asyncio.sleep(0)
        if again and name in self._case.failing:
            raise GitFailed(f"{name} failed")
        return Said(words=effect.words.upper())

    def drive(self, ledger: Ledger) -> str:
        """Have the real driver drive them."""
        performers: dict[Any, Any] = {Say: self.say}
        driver = Driver(ledger, RUN, performers)
        return asyncio.run(driver.drive(self.flow()))

    @property
    def are_over(self) -> bool:
        """Whether each of them began and ended."""
        return sorted(self.began) == sorted(self.ended) == sorted(self._case.names)


@pytest.mark.dear
@settings(max_examples=tries(200), deadline=None)
@given(case=cases())
def test_each_begins_when_it_may_and_all_end_driven_replayed_and_told(case: _Case) -> None:
    live, again, shown, told, by_hand = (_Watched(case) for _ in range(5))
    with tempfile.TemporaryDirectory() as directory, closing(Ledger.create(Path(directory))) as ledger:
        begin(ledger)
        result = live.drive(ledger)
        assert again.drive(ledger) == result
        found = replay(Tape(ledger, RUN), shown.flow(), ending)
        backtested = backtest(Tape(ledger, RUN), told.flow(), ending)
    assert again.performed == []
    assert (found.difference, found.reason) == (None, f"the flow ends here ({result}); {NOT_YET}")
    assert (backtested.parted, backtested.ended) == (None, True)

    def answer(effect: Effect[Any]) -> object:
        assert isinstance(effect, Say)
        name, *again = effect.words.split()
        failing = again and name in case.failing
        return GitFailed(f"{name} failed") if failing else Said(words=effect.words.upper())

    assert driven(by_hand.flow(), answer).result == result
    assert all(one.are_over for one in (live, again, shown, told, by_hand))


NOT_YET = "the recording does not say so yet"


@pytest.mark.dear
@settings(max_examples=tries(120), deadline=None)
@given(case=cases(), stop_at=st.integers(1, 16))
def test_a_run_that_was_stopped_anywhere_goes_on_and_comes_to_the_same(case: _Case, stop_at: int) -> None:
    whole, stopped, resumed = _Watched(case), _Watched(case, stop_at), _Watched(case)
    with tempfile.TemporaryDirectory() as directory:
        with closing(Ledger.create(Path(directory) / "whole")) as ledger:
            begin(ledger)
            expected = whole.drive(ledger)
        with closing(Ledger.create(Path(directory) / "stopped")) as ledger:
            begin(ledger)
            if stop_at <= len(whole.performed):
                with pytest.raises(KeyboardInterrupt):
                    stopped.drive(ledger)
            assert replay(Tape(ledger, RUN), _Watched(case).flow(), ending).agrees
            assert resumed.drive(ledger) == expected
            assert replay(Tape(ledger, RUN), _Watched(case).flow(), ending).agrees
    assert resumed.are_over
