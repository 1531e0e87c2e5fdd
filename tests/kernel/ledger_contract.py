"""
What every ledger must do, whatever it is kept in.

A store is tested by inheriting `LedgerContract` and giving it a `ledger` fixture:
an empty ledger whose clock is the `clock` fixture.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from threading import Barrier, Thread

import pytest

from kernel.histories import EXAMPLES, STORY, Clock
from planforge.errors import Conflict, LeaseHeld, LedgerUnreadable, LedgerUnwritable
from planforge.kernel.events import (
    EVENTS,
    AttemptRejected,
    Event,
    ItemOpened,
    Payload,
    Recorded,
    RunParked,
    RunStarted,
)
from planforge.kernel.ledger import Ledger, Write
from planforge.kernel.projections import NAMES


def parked(reason: str, run: str = "run-001") -> RunParked:
    return RunParked(run=run, reason=reason)


def started(run: str) -> RunStarted:
    return RunStarted(run=run, flow="forge", flow_version=1, subject="plan-001", request=Payload())


def tell(ledger: Ledger, story: tuple[tuple[str, Event], ...] = STORY) -> list[Recorded]:
    """Append a story event by event."""
    return [
        recorded
        for stream, event in story
        for recorded in ledger.append(stream, [event], expected=ledger.version(stream))
    ]


def tables(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all projections."""
    return {name: sorted(ledger.query(f"SELECT * FROM {name}"), key=repr) for name in NAMES}  # noqa: S608


def reasons(recorded: list[Recorded] | Iterator[Recorded]) -> list[str]:
    return [item.event.reason for item in recorded if isinstance(item.event, RunParked)]


def work_together(work: Sequence[Callable[[], object]], *, times: int) -> None:
    """Do several things at once, each a number of times, and fail if one of them does."""
    ready = Barrier(len(work))
    errors: list[BaseException] = []

    def repeat(once: Callable[[], object]) -> None:
        try:
            ready.wait(30)
            for _ in range(times):
                once()
        except BaseException as error:  # noqa: BLE001  (raised below)
            errors.append(error)

    threads = [Thread(target=repeat, args=(once,), daemon=True) for once in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "somebody waits for ever"
    if errors:
        raise errors[0]


class LedgerContract:
    @pytest.fixture
    def ledger(self, clock: Clock) -> Iterator[Ledger]:
        raise NotImplementedError("a store gives its own ledger")

    # Appending

    def test_a_new_ledger_holds_nothing(self, ledger: Ledger) -> None:
        assert ledger.head() == 0
        assert ledger.version("run-001") == 0
        assert list(ledger.since()) == []
        assert list(ledger.faults()) == []

    def test_what_append_returns_is_what_is_read_back(self, ledger: Ledger) -> None:
        appended = ledger.append("run-001", [started("run-001"), parked("a")], expected=0, key="/0/a/1")
        assert list(ledger.stream("run-001")) == appended
        assert [item.key for item in appended] == ["/0/a/1", "/0/a/1"]

    def test_versions_count_in_a_stream_and_sequence_numbers_across_all(self, ledger: Ledger) -> None:
        ledger.append("a", [parked("1"), parked("2")], expected=0)
        ledger.append("b", [parked("3")], expected=0)
        ledger.append("a", [parked("4")], expected=2)
        found = [(item.seq, item.stream, item.version) for item in ledger.since()]
        assert found == [(1, "a", 1), (2, "a", 2), (3, "b", 1), (4, "a", 3)]
        assert (ledger.version("a"), ledger.version("b"), ledger.head()) == (3, 1, 4)

    @pytest.mark.parametrize("expected", [-1, 0, 1, 3, 99])
    def test_a_writer_that_saw_another_version_is_refused_and_nothing_is_written(
        self, ledger: Ledger, expected: int
    ) -> None:
        ledger.append("run-001", [started("run-001"), parked("here")], expected=0)
        before = list(ledger.since()), tables(ledger)
        with pytest.raises(Conflict, match=f"`run-001` is at version 2, not {expected}"):
            ledger.append("run-001", [parked("late")], expected=expected)
        assert (list(ledger.since()), tables(ledger)) == before

    def test_after_a_refusal_the_next_append_works(self, ledger: Ledger) -> None:
        with pytest.raises(Conflict):
            ledger.append("a", [parked("late")], expected=7)
        ledger.append("a", [parked("in time")], expected=0)
        assert reasons(ledger.since()) == ["in time"]
        assert list(ledger.faults()) == []

    def test_several_streams_are_written_at_once(self, ledger: Ledger) -> None:
        ledger.append("b", [parked("before")], expected=0)
        ledger.append_all(
            [Write("a", 0, [parked("1")]), Write("b", 1, [parked("2")], "/3"), Write("a", 1, [parked("3")])]
        )
        found = [(item.stream, item.version, item.key) for item in ledger.since(1)]
        assert found == [("a", 1, ""), ("b", 2, "/3"), ("a", 2, "")]

    def test_of_several_streams_none_is_written_if_one_has_moved_on(self, ledger: Ledger) -> None:
        ledger.append("b", [parked("before")], expected=0)
        with pytest.raises(Conflict, match="`b`"):
            ledger.append_all([Write("run-001", 0, [started("run-001")]), Write("b", 0, [parked("late")])])
        assert reasons(ledger.since()) == ["before"]
        assert tables(ledger)["runs"] == []
        assert ledger.head() == 1

    def test_an_event_that_no_table_can_take_is_not_written_either(self, ledger: Ledger) -> None:
        ledger.append("run-001", [started("run-001")], expected=0)
        with pytest.raises(LedgerUnwritable):
            ledger.append_all([Write("a", 0, [parked("first")]), Write("b", 0, [started("run-001")])])
        assert [item.stream for item in ledger.since()] == ["run-001"]
        assert list(ledger.faults()) == []

    def test_no_events_are_no_change(self, ledger: Ledger) -> None:
        assert ledger.append("a", [], expected=0) == []
        assert ledger.head() == 0

    def test_a_fact_outside_the_closed_union_is_refused(self, ledger: Ledger) -> None:
        class MoonRose(Event, frozen=True, kw_only=True):
            phase: str

        with pytest.raises(TypeError, match="MoonRose"):
            ledger.append("sky", [MoonRose(phase="full")], expected=0)
        assert list(ledger.since()) == []

    def test_a_fact_that_could_not_be_read_back_is_refused(self, ledger: Ledger) -> None:
        unnamed = ItemOpened(item="plan-001", title=None, request="", path="")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="ItemOpened"):
            ledger.append("plan-001", [unnamed], expected=0)
        assert list(ledger.since()) == []

    # Appending without a version

    def test_a_writer_that_does_not_care_appends_to_whatever_is_there(self, ledger: Ledger) -> None:
        ledger.append("a", [parked("1"), parked("2")], expected=None)
        ledger.append_all([Write("a", None, [parked("3")]), Write("b", None, [parked("4")])])
        assert [(item.stream, item.version) for item in ledger.since()] == [
            ("a", 1),
            ("a", 2),
            ("a", 3),
            ("b", 1),
        ]

    # Deciding

    def test_what_is_decided_is_appended(self, ledger: Ledger) -> None:
        ledger.append("a", [parked("1")], expected=0)
        appended = ledger.transact(lambda: [Write("a", ledger.version("a"), [parked("2")])])
        assert reasons(appended) == ["2"]
        assert reasons(ledger.since()) == ["1", "2"]

    def test_to_decide_on_nothing_changes_nothing(self, ledger: Ledger) -> None:
        assert ledger.transact(list) == []
        assert ledger.head() == 0

    def test_nobody_writes_between_what_is_read_and_what_is_appended(self, ledger: Ledger) -> None:
        def count() -> list[Write]:
            return [Write("a", None, [parked(str(ledger.version("a") + 1))])]

        work_together([lambda: ledger.transact(count)] * 8, times=25)
        assert reasons(ledger.since()) == [str(number) for number in range(1, 201)]
        assert list(ledger.faults()) == []

    def test_a_refusal_while_deciding_writes_nothing_and_reaches_whoever_asked(self, ledger: Ledger) -> None:
        def refuse() -> list[Write]:
            raise LeaseHeld("a.py", "somebody", "noon")

        with pytest.raises(LeaseHeld, match="somebody"):
            ledger.transact(refuse)
        ledger.append("a", [parked("1")], expected=0)
        assert reasons(ledger.since()) == ["1"]

    def test_what_is_read_half_way_is_not_what_others_see(self, ledger: Ledger) -> None:
        ledger.append("a", [parked("1")], expected=0)
        seen: list[int] = []

        def decide() -> list[Write]:
            looking = Thread(target=lambda: seen.append(ledger.head()))
            looking.start()
            looking.join()
            return [Write("a", 1, [parked("2")])]

        ledger.transact(decide)
        assert seen == [1]

    def test_whoever_decides_may_not_append(self, ledger: Ledger) -> None:
        def append() -> list[Write]:
            ledger.append("a", [parked("1")], expected=0)
            return []

        def rebuild() -> list[Write]:
            ledger.rebuild()
            return []

        for decide in (append, rebuild):
            with pytest.raises(RuntimeError, match="must return it"):
                ledger.transact(decide)
        assert ledger.head() == 0
        ledger.append("a", [parked("2")], expected=0)

    # Cursors

    def test_a_cursor_starts_at_nothing_and_moves_with_the_append(self, ledger: Ledger) -> None:
        assert ledger.cursor("board") == 0
        ledger.append_all([Write("a", 0, [parked("1")])], {"board": 1, "mail": 7})
        assert (ledger.cursor("board"), ledger.cursor("mail"), ledger.cursor("nobody")) == (1, 7, 0)

    def test_a_cursor_never_goes_back(self, ledger: Ledger) -> None:
        ledger.append_all([], {"board": 5})
        ledger.append_all([], {"board": 3})
        assert ledger.cursor("board") == 5

    def test_a_cursor_does_not_move_if_nothing_is_appended(self, ledger: Ledger) -> None:
        with pytest.raises(Conflict):
            ledger.append_all([Write("a", 9, [parked("1")])], {"board": 5})
        assert ledger.cursor("board") == 0

    def test_a_cursor_moves_with_what_is_decided(self, ledger: Ledger) -> None:
        ledger.transact(lambda: [Write("a", None, [parked("1")])], {"board": 4})
        assert ledger.cursor("board") == 4

    def test_cursors_outlast_a_rebuild(self, ledger: Ledger) -> None:
        ledger.append_all([], {"board": 5})
        ledger.rebuild()
        assert ledger.cursor("board") == 5

    # Threads

    def test_of_threads_that_append_at_once_each_gets_its_own_answer(self, ledger: Ledger) -> None:
        ledger.append("taken", [parked("before")], expected=0)
        conflicts: list[str] = []

        def append(name: str) -> Callable[[], None]:
            def once() -> None:
                ledger.append(name, [parked(name)], expected=ledger.version(name))
                try:
                    ledger.append_all(
                        [Write(f"{name}+", None, [parked("x")]), Write("taken", 0, [parked("x")])]
                    )
                except Conflict:
                    conflicts.append(name)

            return once

        names = [f"stream-{number}" for number in range(12)]
        work_together([append(name) for name in names], times=20)
        assert sorted(conflicts) == sorted(names * 20)
        assert {name: ledger.version(name) for name in names} == dict.fromkeys(names, 20)
        assert ledger.head() == 12 * 20 + 1
        assert list(ledger.faults()) == []

    def test_of_threads_that_want_the_same_version_one_gets_it(self, ledger: Ledger) -> None:
        won: list[int] = []

        def race() -> None:
            seen = ledger.version("race")
            try:
                won.append(ledger.append("race", [parked("x")], expected=seen)[0].version)
            except Conflict:
                return

        work_together([race] * 8, times=25)
        assert sorted(won) == list(range(1, ledger.version("race") + 1))
        assert list(ledger.faults()) == []

    def test_a_mistake_of_one_thread_is_not_the_mistake_of_another(self, ledger: Ledger) -> None:
        failed: list[str] = []

        def mistaken() -> None:
            unnamed = ItemOpened(item="plan-001", title=None, request="", path="")  # type: ignore[arg-type]
            try:
                ledger.append_all([Write("a", None, [parked("never")]), Write("b", None, [unnamed])])
            except TypeError:
                failed.append("type")

        def unable() -> None:
            try:
                ledger.append_all(
                    [Write("c", None, [parked("never")]), Write("d", None, [started("run-001")])]
                )
            except LedgerUnwritable:
                failed.append("unwritable")

        ledger.append("run-001", [started("run-001")], expected=0)
        fine = [lambda: ledger.append("fine", [parked("x")], expected=None)] * 6
        work_together([*fine, mistaken, unable], times=20)
        assert sorted(failed) == ["type"] * 20 + ["unwritable"] * 20
        assert (ledger.version("fine"), ledger.head()) == (120, 121)
        assert list(ledger.faults()) == []

    # Tasks

    def test_of_tasks_that_append_at_once_each_gets_its_own_answer(self, ledger: Ledger) -> None:
        told: list[int] = []
        ledger.listeners.append(lambda recorded: told.append(recorded.seq))

        async def task(name: str) -> int:
            refused = 0
            for number in range(20):
                (recorded,) = await ledger.append_async(name, [parked(name)], expected=number)
                assert (recorded.stream, recorded.version) == (name, number + 1)
                try:
                    await ledger.append_async(name, [parked("never")], expected=number)
                except Conflict:
                    refused += 1
            return refused

        async def together() -> list[int]:
            return await asyncio.gather(*(task(f"stream-{number}") for number in range(12)))

        assert asyncio.run(together()) == [20] * 12
        assert ledger.head() == 12 * 20
        assert sorted(told) == list(range(1, 241))
        assert list(ledger.faults()) == []

    def test_tasks_threads_and_another_loop_append_at_once(self, ledger: Ledger) -> None:
        async def tasks() -> None:  # in two threads, each of which has a new loop every time
            await asyncio.gather(
                *(ledger.append_async("tasks", [parked("x")], expected=None) for _ in range(10))
            )

        threads = [lambda: ledger.append("threads", [parked("x")], expected=None)] * 4
        work_together([*threads, *[lambda: asyncio.run(tasks())] * 2], times=10)
        assert (ledger.version("threads"), ledger.version("tasks")) == (40, 200)
        assert list(ledger.faults()) == []

    def test_a_task_that_gave_up_is_in_nobodys_way(self, ledger: Ledger) -> None:
        async def give_up() -> list[Recorded]:
            gone = asyncio.create_task(ledger.append_async("gone", [parked("x")], expected=None))
            await asyncio.sleep(0)
            gone.cancel()
            return await ledger.append_async("here", [parked("x")], expected=0)

        assert [item.stream for item in asyncio.run(give_up())] == ["here"]
        assert ledger.version("here") == 1

    def test_a_task_of_a_closed_ledger_is_refused(self, ledger: Ledger) -> None:
        async def late() -> None:
            await ledger.append_async("a", [parked("x")], expected=0)
            waiting = asyncio.create_task(ledger.append_async("a", [parked("x")], expected=1))
            await asyncio.sleep(0)
            ledger.stop_writing()
            with pytest.raises(LedgerUnwritable, match="closed"):
                await waiting
            with pytest.raises(LedgerUnwritable, match="closed"):
                await ledger.append_async("a", [parked("x")], expected=1)

        asyncio.run(late())
        assert ledger.version("a") == 1

    # Reading

    def test_a_stream_is_read_from_any_version_on(self, ledger: Ledger) -> None:
        ledger.append("a", [parked(str(number)) for number in range(1, 6)], expected=0)
        ledger.append("b", [parked("other")], expected=0)
        assert reasons(ledger.stream("a")) == ["1", "2", "3", "4", "5"]
        assert reasons(ledger.stream("a", after=3)) == ["4", "5"]
        assert reasons(ledger.stream("a", after=5)) == []
        assert reasons(ledger.stream("nobody")) == []

    def test_all_streams_are_read_from_any_event_on(self, ledger: Ledger) -> None:
        for number in range(1, 7):
            ledger.append(f"stream-{number % 2}", [parked(str(number))], expected=(number - 1) // 2)
        assert reasons(ledger.since()) == ["1", "2", "3", "4", "5", "6"]
        assert reasons(ledger.since(4)) == ["5", "6"]
        assert reasons(ledger.since(2, limit=3)) == ["3", "4", "5"]
        assert reasons(ledger.since(6)) == []

    def test_the_newest_events_are_read_oldest_first(self, ledger: Ledger) -> None:
        for number in range(1, 7):
            ledger.append(f"stream-{number % 2}", [parked(str(number))], expected=(number - 1) // 2)
        assert reasons(ledger.last(2)) == ["5", "6"]
        assert reasons(ledger.last(2, "stream-1")) == ["3", "5"]
        assert reasons(ledger.last(100)) == ["1", "2", "3", "4", "5", "6"]
        assert reasons(ledger.last(0)) == []

    def test_a_long_history_is_read_whole_and_in_order(self, ledger: Ledger) -> None:
        every = [str(number) for number in range(1, 2501)]
        ledger.append("a", [parked(number) for number in every], expected=0)
        assert reasons(ledger.stream("a")) == every
        assert reasons(ledger.since()) == every
        assert reasons(ledger.since(3, limit=2000)) == every[3:2003]

    def test_a_reader_half_way_through_holds_up_no_writer(self, ledger: Ledger) -> None:
        ledger.append("a", [parked(str(number)) for number in range(1, 6)], expected=0)
        half_way = ledger.stream("a")
        assert reasons([next(half_way), next(half_way)]) == ["1", "2"]
        with pytest.raises(Conflict):
            ledger.append("a", [parked("late")], expected=2)
        ledger.append("a", [parked("6")], expected=5)
        assert reasons(half_way)[:3] == ["3", "4", "5"]

    # Events

    def test_there_is_an_example_of_every_kind_of_event(self) -> None:
        assert set(EXAMPLES) == set(EVENTS)

    @pytest.mark.parametrize("kind", sorted(EVENTS))
    def test_an_event_comes_back_as_it_went_in(self, ledger: Ledger, kind: str) -> None:
        (appended,) = ledger.append("a", [EXAMPLES[kind]], expected=0)
        (found,) = ledger.stream("a")
        assert found == appended
        assert (found.kind, found.event) == (kind, EXAMPLES[kind])

    # Time

    def test_the_time_is_that_of_the_clock_in_utc(self, ledger: Ledger, clock: Clock) -> None:
        clock.time = datetime(2026, 3, 1, 1, 30, 0, 250, tzinfo=timezone(timedelta(hours=2)))
        (recorded,) = ledger.append("a", [parked("now")], expected=0)
        assert recorded.at == "2026-02-28T23:30:01.000250+00:00"

    def test_order_is_that_of_the_writing_even_if_the_clock_runs_back(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        ledger.append("a", [parked("first")], expected=0)
        clock.time = datetime(1999, 1, 1, tzinfo=UTC)
        ledger.append("a", [parked("second")], expected=1)
        assert reasons(ledger.since()) == ["first", "second"]
        assert reasons(ledger.last(1)) == ["second"]

    # Listeners

    def test_listeners_are_told_each_event_in_order_once_it_can_be_read(self, ledger: Ledger) -> None:
        told: list[tuple[str, int, list[str]]] = []
        for name in ("one", "two"):
            ledger.listeners.append(
                lambda item, name=name: told.append((name, item.seq, reasons(ledger.since())))  # type: ignore[misc]
            )
        ledger.append("a", [parked("1"), parked("2")], expected=0)
        both = ["1", "2"]
        assert told == [("one", 1, both), ("two", 1, both), ("one", 2, both), ("two", 2, both)]

    def test_listeners_are_not_told_of_what_was_refused(self, ledger: Ledger) -> None:
        told: list[Recorded] = []
        ledger.listeners.append(told.append)
        with pytest.raises(Conflict):
            ledger.append_all([Write("a", 0, [parked("1")]), Write("b", 5, [parked("2")])])
        assert told == []

    def test_a_listener_may_append(self, ledger: Ledger) -> None:
        def answer(item: Recorded) -> None:
            if item.stream == "question":
                ledger.append("answer", [parked("yes")], expected=ledger.version("answer"))

        ledger.listeners.append(answer)
        ledger.append("question", [parked("really?")], expected=0)
        assert reasons(ledger.since()) == ["really?", "yes"]

    # Objects

    def test_an_object_is_kept_under_its_content(self, ledger: Ledger) -> None:
        name = ledger.objects.put(b"a patch\x00\xff")
        assert ledger.objects.get(name) == b"a patch\x00\xff"
        assert ledger.objects.put(b"a patch\x00\xff") == name
        assert ledger.objects.put(b"another") != name

    def test_an_object_that_is_not_there_is_reported(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerUnreadable, match=r"object `a{12}` is missing"):
            ledger.objects.get("a" * 64)

    # Projections

    def test_the_tables_are_folded_anew_to_the_same_rows(self, ledger: Ledger) -> None:
        tell(ledger)
        before = tables(ledger)
        assert all(len(before[name]) for name in ("runs", "items", "steps"))
        ledger.rebuild()
        assert tables(ledger) == before
        assert list(ledger.faults()) == []

    def test_a_ledger_that_nobody_touched_has_no_faults(self, ledger: Ledger) -> None:
        tell(ledger)
        assert list(ledger.faults()) == []

    def test_no_two_events_have_the_same_hash(self, ledger: Ledger, clock: Clock) -> None:
        for version in range(3):
            clock.time = datetime(2026, 1, 1, tzinfo=UTC)
            same = AttemptRejected(plan="p", step="s", attempt=1, reason="")
            ledger.append("a", [same], expected=version)
        assert max(Counter(item.hash for item in ledger.since()).values()) == 1
