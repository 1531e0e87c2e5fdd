"""Many holders, overlapping paths and globs and a clock that also runs back, against a plain model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kernel.ledger_contract import tables
from planforge.errors import LeaseHeld, NotFound, PlanforgeError, StaleFence, Unleased, WouldDeadlock
from planforge.kernel import leases
from planforge.kernel.events import LeaseGranted, LeasePassed
from planforge.kernel.leases.rules import Lease, Waiting
from planforge.kernel.ledger import Ledger
from planforge.kernel.paths import overlap
from tries import tries

FILES = {
    "a": {"a", "a/x.py"},
    "b": {"b", "b/a", "b/x.py"},
    "d": {"d/a", "d/b", "d/e/a", "d/x.py", "d/a/x.py", "d/a/a"},
    "d/a": {"d/a", "d/a/x.py", "d/a/a"},
    "d/*": {"d/a", "d/b", "d/x.py"},
    "d/**": {"d/a", "d/b", "d/e/a", "d/x.py", "d/a/x.py", "d/a/a"},
    "d/[!a]": {"d/b"},
    "**/a": {"a", "b/a", "d/a", "d/e/a", "d/a/a"},
    "*.py": {"x.py"},
    "**/*.py": {"x.py", "a/x.py", "b/x.py", "d/x.py", "d/a/x.py"},
    "[ab]": {"a", "b"},
}
"""Patterns, and what they stand for among a few paths: enough of them that whatever meets, meets in one."""

SURELY_COVERED = {"d": {"d/a"}, "d/**": {"d", "d/a"}}

EVERY_FILE = sorted(set().union(*FILES.values()))

HOLDERS = ("w1", "w2", "w3", "w4")
holders = st.sampled_from(HOLDERS)
pattern_sets = st.sets(st.sampled_from(sorted(FILES)), min_size=1, max_size=3).map(
    lambda found: tuple(sorted(found))
)
# Some run out at the next move of the clock, some outlast many.
seconds = st.integers(min_value=1, max_value=60) | st.integers(min_value=200, max_value=900)
spans = seconds.map(lambda number: timedelta(seconds=number))
picks = st.integers(min_value=0, max_value=10_000)


def test_the_model_and_the_code_agree_on_what_overlaps() -> None:
    for one, other in product(FILES, repeat=2):
        assert overlap(one, other) is meet((one,), (other,)), (one, other)


def meet(ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return any(FILES[one] & FILES[other] for one in ones for other in others)


class Grant(NamedTuple):
    holder: str
    paths: tuple[str, ...]
    until: datetime


class Place(NamedTuple):
    holder: str
    paths: tuple[str, ...]
    until: datetime


class Leasing(RuleBasedStateMachine):
    """The model has the leases that nobody has ended, the line and the time, and is asked first."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
        self.time = datetime(1970, 1, 1, tzinfo=UTC)  # nothing has been recorded yet
        self.grants: dict[int, Grant] = {}
        self.line: list[Place] = []
        self.fences: list[int] = []
        self.directory = Path(tempfile.mkdtemp())
        self.ledger = Ledger.create(self.directory, lambda: self.clock)

    def teardown(self) -> None:
        before = tables(self.ledger)
        self.ledger.rebuild()
        assert tables(self.ledger) == before
        assert list(self.ledger.faults()) == []
        self.ledger.close()
        shutil.rmtree(self.directory)

    # The model

    @property
    def now(self) -> datetime:
        return max(self.clock, self.time)

    def live(self) -> dict[int, Grant]:
        return {fence: grant for fence, grant in self.grants.items() if grant.until > self.now}

    def in_line(self) -> list[Place]:
        return [place for place in self.line if place.until > self.now]

    def before(self, holder: str, paths: tuple[str, ...], line: list[Place]) -> list[str]:
        """Whoever has one of the paths, or is before this holder in line for one that it has not."""
        found = [it.holder for it in self.live().values() if it.holder != holder and meet(it.paths, paths)]
        own = {path for it in self.live().values() if it.holder == holder for path in it.paths}
        own |= {path for outer in own for path in SURELY_COVERED.get(outer, ())}
        wanted = tuple(path for path in paths if path not in own)
        for place in line:
            if place[:2] == (holder, paths):
                break
            if place.holder != holder and meet(place.paths, wanted):
                found.append(place.holder)
        return found

    def would_wait_for_itself(self, holder: str, paths: tuple[str, ...]) -> bool:
        line = [place for place in self.in_line() if place.holder != holder or place.paths == paths]
        reached: set[str] = set()
        open_ = self.before(holder, paths, line)
        while open_:
            name = open_.pop()
            if name not in reached:
                reached.add(name)
                for place in line:
                    if place.holder == name:
                        open_ += self.before(name, place.paths, line)
        return holder in reached

    def sweep(self, paths: tuple[str, ...]) -> None:
        """Whoever asks for paths finds out what is over: leases in the way, and anybody's patience."""
        over = {fence for fence, it in self.grants.items() if it.until <= self.now and meet(it.paths, paths)}
        self.grants = {fence: it for fence, it in self.grants.items() if fence not in over}
        self.line = self.in_line()

    def grant(self, lease: Lease, holder: str, paths: tuple[str, ...], ttl: timedelta) -> None:
        own = {f: it for f, it in self.live().items() if it.holder == holder and meet(it.paths, paths)}
        every = tuple(sorted({*paths, *(path for it in own.values() for path in it.paths)}))
        until = max([self.now + ttl, *(it.until for it in own.values())])
        self.grants = {fence: it for fence, it in self.grants.items() if fence not in own}
        self.keep(lease, Grant(holder, every, until))

    def keep(self, lease: Lease, grant: Grant) -> None:
        assert (lease.holder, lease.paths) == grant[:2]
        assert datetime.fromisoformat(lease.until) == grant.until
        assert all(lease.fence > fence for fence in self.fences)
        self.grants[lease.fence] = grant
        self.fences.append(lease.fence)
        self.line = [
            place
            for place in self.line
            if place.holder != grant.holder or not set(place.paths) <= set(grant.paths)
        ]

    @contextmanager
    def told(self) -> Iterator[None]:
        """Time goes on to the newest event that what is done inside records, once it is done."""
        version = self.ledger.version("leases")
        yield
        for recorded in self.ledger.stream("leases", after=version):
            self.time = max(self.time, datetime.fromisoformat(recorded.at))

    # What can happen

    @initialize()
    def begin(self) -> None:
        self.fences = []

    @rule(seconds=st.integers(min_value=-60, max_value=120))
    def the_clock_is_set(self, seconds: int) -> None:
        self.clock += timedelta(seconds=seconds)

    @rule(holder=holders, paths=pattern_sets, ttl=spans)
    def claim(self, holder: str, paths: tuple[str, ...], ttl: timedelta) -> None:
        self.sweep_after_asking(paths, lambda: self.claims(holder, paths, ttl))

    def claims(self, holder: str, paths: tuple[str, ...], ttl: timedelta) -> None:
        before = self.before(holder, paths, self.in_line())
        if before:
            with pytest.raises(LeaseHeld) as refused:
                leases.claim(self.ledger, holder, paths, ttl=ttl)
            assert refused.value.holder in before
        else:
            self.grant(leases.claim(self.ledger, holder, paths, ttl=ttl), holder, paths, ttl)

    def sweep_after_asking(self, paths: tuple[str, ...], ask: Callable[[], None]) -> None:
        with self.told():
            self.sweep(paths)
            ask()

    @rule(holder=holders, paths=pattern_sets, ttl=spans, patience=spans)
    def line_up(self, holder: str, paths: tuple[str, ...], ttl: timedelta, patience: timedelta) -> None:
        self.sweep_after_asking(paths, lambda: self.lines_up(holder, paths, ttl, patience))

    def lines_up(self, holder: str, paths: tuple[str, ...], ttl: timedelta, patience: timedelta) -> None:
        before = self.before(holder, paths, self.in_line())
        if self.would_wait_for_itself(holder, paths):
            with pytest.raises(WouldDeadlock):
                leases.line_up(self.ledger, holder, paths, ttl=ttl, patience=patience)
            return
        found = leases.line_up(self.ledger, holder, paths, ttl=ttl, patience=patience)
        if isinstance(found, Lease):
            assert not before
            self.grant(found, holder, paths, ttl)
            return
        assert set(found.behind) == set(before)
        place = Place(holder, paths, self.now + patience)
        if any(other[:2] == (holder, paths) for other in self.line):
            self.line = [place if other.holder == holder else other for other in self.line]
        else:
            self.line = [*(other for other in self.line if other.holder != holder), place]

    @rule(holder=holders)
    def give_up(self, holder: str) -> None:
        with self.told():
            leases.give_up(self.ledger, holder, "no longer needed")
        self.line = [place for place in self.line if place.holder != holder]

    def under(
        self, pick: int, holder: str | None, do: Callable[[int, str], Lease], refusal: type[PlanforgeError]
    ) -> tuple[int, Lease] | None:
        """Do something under some fence there ever was, or one that never was; a stale one is refused."""
        fence = ([*self.fences, 0, 10_000])[pick % (len(self.fences) + 2)]
        grant = self.live().get(fence)
        name = holder or (grant.holder if grant else "w1")
        if grant is not None and name == grant.holder:
            return fence, do(fence, name)
        with self.told(), pytest.raises(refusal):
            do(fence, name)
        if fence not in self.live():
            self.grants.pop(fence, None)
        return None

    @rule(pick=picks, holder=st.none() | holders, ttl=spans)
    def renew(self, pick: int, holder: str | None, ttl: timedelta) -> None:
        with self.told():
            done = self.under(pick, holder, lambda f, h: leases.renew(self.ledger, h, f, ttl), StaleFence)
            if done:
                self.renewed(*done, ttl)

    def renewed(self, fence: int, lease: Lease, ttl: timedelta) -> None:
        until = max(self.grants[fence].until, self.now + ttl)
        self.grants[fence] = self.grants[fence]._replace(until=until)
        assert datetime.fromisoformat(lease.until) == until

    @rule(
        pick=picks,
        holder=st.none() | holders,
        files=st.sets(st.sampled_from(EVERY_FILE), max_size=3),
        grace=spans,
    )
    def admit(self, pick: int, holder: str | None, files: set[str], grace: timedelta) -> None:
        self.require(pick, holder, files)
        with self.told():
            try:
                done = self.under(
                    pick, holder, lambda f, h: leases.admit(self.ledger, f, h, files, grace), StaleFence
                )
            except Unleased:
                return
            if done:
                assert files <= set().union(*(FILES[path] for path in self.grants[done[0]].paths))
                self.renewed(*done, grace)

    def require(self, pick: int, holder: str | None, files: set[str]) -> None:
        fence = ([*self.fences, 0, 10_000])[pick % (len(self.fences) + 2)]
        grant = self.live().get(fence)
        name = holder or (grant.holder if grant else "w1")
        if grant is None or name != grant.holder:
            refusal: type[PlanforgeError] = StaleFence
        elif files <= set().union(*(FILES[path] for path in grant.paths)):
            assert leases.require(self.ledger, fence, files, name).fence == fence
            return
        else:
            refusal = Unleased
        with pytest.raises(refusal):
            leases.require(self.ledger, fence, files, name)

    @rule(pick=picks, holder=st.none() | holders)
    def release(self, pick: int, holder: str | None) -> None:
        with self.told():
            done = self.under(pick, holder, lambda f, h: leases.release(self.ledger, h, f), StaleFence)
            if done:
                del self.grants[done[0]]

    @rule(pick=picks)
    def force(self, pick: int) -> None:
        with self.told():
            done = self.under(
                pick, None, lambda f, _: leases.force(self.ledger, f, "Ada", "it hangs"), NotFound
            )
            if done:
                del self.grants[done[0]]

    @rule(pick=picks, successor=holders, ttl=spans)
    def transfer(self, pick: int, successor: str, ttl: timedelta) -> None:
        with self.told():
            done = self.under(
                pick, None, lambda f, _: leases.transfer(self.ledger, f, successor, ttl), StaleFence
            )
            if done:
                old = self.grants.pop(done[0])
                self.keep(done[1], Grant(successor, old.paths, self.now + ttl))

    @rule()
    def rebuild(self) -> None:
        before = tables(self.ledger)
        self.ledger.rebuild()
        assert tables(self.ledger) == before

    # What must always hold

    @invariant()
    def the_ledger_says_what_the_model_says(self) -> None:
        found = {
            it.fence: Grant(it.holder, it.paths, datetime.fromisoformat(it.until))
            for it in leases.held(self.ledger)
        }
        assert found == self.live()
        line = [
            Place(it.holder, it.paths, datetime.fromisoformat(it.until)) for it in leases.waiting(self.ledger)
        ]
        assert line == self.in_line()
        assert all(self.behind(place) for place in leases.waiting(self.ledger))

    def behind(self, place: Waiting) -> bool:
        return set(place.behind) == set(self.before(place.holder, place.paths, self.in_line()))

    @invariant()
    def no_two_leases_that_nobody_has_ended_overlap(self) -> None:
        rows = self.ledger.query("SELECT fence, path FROM lease_paths")
        covered = [(fence, file) for fence, path in rows for file in FILES[path]]
        assert len({file for _, file in covered}) == len(set(covered))

    @invariant()
    def a_file_has_the_lease_that_covers_it_and_no_other(self) -> None:
        for file in EVERY_FILE:
            lease = leases.of_path(self.ledger, file)
            holding = [f for f, it in self.live().items() if any(file in FILES[path] for path in it.paths)]
            assert holding == ([lease.fence] if lease else [])

    @invariant()
    def fences_rise_and_are_places_in_the_stream(self) -> None:
        granted = [
            (it.version, it.event.fence if isinstance(it.event, LeaseGranted) else it.event.new_fence)
            for it in self.ledger.stream("leases")
            if isinstance(it.event, LeaseGranted | LeasePassed)
        ]
        assert all(version == fence for version, fence in granted)
        assert [fence for _, fence in granted] == self.fences


TestLeasing = Leasing.TestCase
TestLeasing.settings = settings(max_examples=tries(100), stateful_step_count=30, deadline=None)
