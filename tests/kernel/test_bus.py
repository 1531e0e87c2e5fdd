"""Subscriptions: in order, each event once, across processes, and in no writer's way."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kernel.another_client import another_client
from kernel.bus_children import running, runtime_directory
from kernel.histories import Clock
from kernel.ledger_contract import parked, tell
from planforge.errors import Conflict, LedgerUnreadable
from planforge.kernel.bus import INTERVAL, Subscription, subscribe
from planforge.kernel.events import Recorded, RunEnded
from planforge.kernel.filters import Filter
from planforge.kernel.ledger import PAGE, Ledger, Write
from planforge.kernel.wakeups import UNSEEN_SECONDS

PATIENCE = 30
"""Seconds within which happens what happens at once, also on a busy machine."""


@pytest.fixture(autouse=True)
def runtime() -> Iterator[None]:
    """Whoever is killed here leaves a socket in a directory that goes with the test."""
    with runtime_directory():
        yield


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    opened = Ledger.create(tmp_path, clock)
    yield opened
    opened.close()


def put(ledger: Ledger, *reasons: str, stream: str = "a") -> list[Recorded]:
    return ledger.append(stream, [parked(reason) for reason in reasons], expected=None)


def seqs(recorded: list[Recorded]) -> list[int]:
    return [item.seq for item in recorded]


# In one process


def test_what_is_on_record_comes_first_then_what_is_new_in_order_and_once(ledger: Ledger) -> None:
    told = tell(ledger)
    with subscribe(ledger) as events:
        assert events.poll() == told
        assert events.poll() == []
        new = put(ledger, "1", "2")
        assert [events.next(5), events.next(5)] == new
        assert events.next(0) is None


def test_a_subscription_begins_after_a_sequence_number(ledger: Ledger) -> None:
    put(ledger, "1", "2", "3")
    assert seqs(subscribe(ledger, after=2).poll()) == [3]
    assert seqs(subscribe(ledger, Filter(after=1)).poll()) == [2, 3]
    assert seqs(subscribe(ledger, after=3).poll()) == []


def test_only_what_matches_comes(ledger: Ledger) -> None:
    told = tell(ledger)
    wanted = Filter(kinds=("StepStarted",), plan="plan-001", streams=("run-002",))
    expected = [item for item in told if wanted.matches(item)]
    by_keywords = subscribe(ledger, kinds=["StepStarted"], plan="plan-001", streams=["run-002"])
    assert by_keywords.poll() == subscribe(ledger, wanted).poll() == expected != []
    with pytest.raises(TypeError, match="not both"):
        subscribe(ledger, wanted, plan="plan-001")


def test_more_than_a_page_comes_whole_and_polling_is_bounded(ledger: Ledger) -> None:
    put(ledger, *map(str, range(2 * PAGE + 5)))
    events = subscribe(ledger)
    assert seqs(events.poll(limit=3)) == [1, 2, 3]
    assert seqs(events.poll()) == list(range(4, PAGE + 4))
    assert seqs(events.poll(limit=10**6)) == list(range(PAGE + 4, 2 * PAGE + 6))


def test_waiting_ends_with_the_time_allowed(ledger: Ledger) -> None:
    with subscribe(ledger) as events:
        began = time.monotonic()
        assert events.next(0.2) is None
        assert 0.15 < time.monotonic() - began < PATIENCE


def test_closing_ends_whoever_waits_in_another_thread(ledger: Ledger) -> None:
    put(ledger, "1")
    events = subscribe(ledger)
    heard: list[Recorded] = []
    listener = threading.Thread(target=lambda: heard.extend(events))
    listener.start()
    while not heard:
        time.sleep(0.001)
    put(ledger, "2")
    while len(heard) < 2:
        time.sleep(0.001)
    events.close()
    listener.join(30)
    assert not listener.is_alive()
    assert seqs(heard) == [1, 2]
    assert events.next() is None
    events.close()


def test_closing_does_not_wait_for_the_next_look(ledger: Ledger) -> None:
    delays = []
    for _ in range(5):
        events = subscribe(ledger)
        listener = threading.Thread(target=events.next)
        listener.start()
        while events.looks < 2:
            time.sleep(0.001)
        began = time.monotonic()
        events.close()
        listener.join()
        delays.append(time.monotonic() - began)
    assert statistics.median(delays) < 0.5 * INTERVAL


def test_who_is_not_called_looks_once_a_second_however_often_it_asks(ledger: Ledger) -> None:
    with subscribe(ledger) as events:
        assert events.next(0) is None
        time.sleep(2 * UNSEEN_SECONDS)
        assert events.next(0.01) is None  # it looks once more when every writer is sure to call
        first = events.looks
        began = time.monotonic()
        while time.monotonic() - began < 2.2 * INTERVAL:
            assert events.next(0.01) is None
        assert 1 <= events.looks - first <= (time.monotonic() - began) / INTERVAL + 1


def test_who_comes_just_after_a_writer_saw_nobody_is_not_late(ledger: Ledger) -> None:
    delays = []
    for _ in range(9):
        put(ledger, "nobody hears this")
        time.sleep(2 * UNSEEN_SECONDS)
        with subscribe(ledger, after=ledger.head()) as events:
            put(ledger, "nobody listens yet")
            assert events.next(0) is not None
            assert events.next(0) is None  # from here on it has an ear, which the writer has not seen
            began = time.monotonic()
            put(ledger, "now")
            assert events.next(5) is not None
            delays.append(time.monotonic() - began)
    assert statistics.median(delays) < 0.5 * INTERVAL


def test_an_event_costs_one_look_and_many_at_once_not_more(ledger: Ledger) -> None:
    with subscribe(ledger) as events:
        assert events.next(0) is None
        before = events.looks
        began = time.monotonic()
        for _ in range(50):
            put(ledger, "x")
            assert events.next(5) is not None
        put(ledger, *map(str, range(100)))
        assert len([events.next(5) for _ in range(100)]) == 100
        assert events.looks - before <= 51 + (time.monotonic() - began) / INTERVAL


def test_without_a_call_what_is_new_is_found_within_a_second(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    with subscribe(ledger) as events:
        assert events.next(0) is None
        put(ledger, "1")
        began = time.monotonic()
        found = events.next(30)
        assert found is not None
        assert time.monotonic() - began < PATIENCE


def test_an_event_that_cannot_be_read_is_an_error_and_is_never_skipped(
    ledger: Ledger, tmp_path: Path
) -> None:
    put(ledger, *map(str, range(PAGE + 20)))
    bad = PAGE + 10
    spoil = f"UPDATE events SET body = CAST('{{' AS BLOB) WHERE seq = {bad}"  # noqa: S608
    another_client(tmp_path, spoil, unguarded=True)
    events = subscribe(ledger)
    assert len(events.poll()) == PAGE
    for _ in range(3):
        with pytest.raises(LedgerUnreadable, match=f"event {bad} "):
            events.poll()


# In an event loop


def test_events_come_to_a_task_as_they_happen(ledger: Ledger) -> None:
    async def listen(events: Subscription, count: int) -> list[int]:
        heard = []
        async for recorded in events:
            heard.append(recorded.seq)
            if len(heard) == count:
                break
        return heard

    async def main() -> list[int]:
        put(ledger, "1", "2")
        with subscribe(ledger) as events:
            listening = asyncio.create_task(listen(events, 5))
            for reason in "345":
                await asyncio.sleep(0.05)
                put(ledger, reason)
            return await asyncio.wait_for(listening, 30)

    assert asyncio.run(main()) == [1, 2, 3, 4, 5]


def test_closing_ends_a_task_that_waits(ledger: Ledger) -> None:
    async def main() -> list[Recorded]:
        events = subscribe(ledger)

        async def listen() -> list[Recorded]:
            return [recorded async for recorded in events]

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0.1)
        events.close()
        return await asyncio.wait_for(listening, 30)

    assert asyncio.run(main()) == []


def test_a_cancelled_task_loses_nothing(ledger: Ledger) -> None:
    async def main() -> list[Recorded]:
        with subscribe(ledger) as events:
            waiting = asyncio.ensure_future(anext(aiter(events)))
            await asyncio.sleep(0.1)
            waiting.cancel()
            put(ledger, "1", "2")
            return [await asyncio.wait_for(anext(aiter(events)), 30) for _ in range(2)]

    assert seqs(asyncio.run(main())) == [1, 2]


def test_others_have_their_turn_while_a_long_record_is_read(ledger: Ledger) -> None:
    put(ledger, *map(str, range(4 * PAGE)))

    async def main() -> int:
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        others = asyncio.create_task(take_turns())
        async for recorded in subscribe(ledger):
            if recorded.seq == 4 * PAGE:
                break
        others.cancel()
        return turns

    assert asyncio.run(main()) >= 3


# With a name


def test_who_comes_back_goes_on_after_what_it_acknowledged(ledger: Ledger) -> None:
    put(ledger, "1", "2", "3")
    with subscribe(ledger, name="indexer") as events:
        first, second, _ = events.poll()
        events.acknowledge(first)
        events.acknowledge(second)
        events.acknowledge(first)
    assert ledger.cursor("indexer") == 2
    assert seqs(subscribe(ledger, name="indexer").poll()) == [3]
    assert seqs(subscribe(ledger, name="another").poll()) == [1, 2, 3]
    assert seqs(subscribe(ledger, name="indexer", after=3).poll()) == []


def test_without_a_name_there_is_nothing_to_acknowledge(ledger: Ledger) -> None:
    (recorded,) = put(ledger, "1")
    with pytest.raises(TypeError, match="without a name"):
        subscribe(ledger).acknowledge(recorded)


def test_the_cursor_moves_past_what_does_not_match(ledger: Ledger) -> None:
    put(ledger, "1", stream="a")
    put(ledger, "2", "3", stream="b")
    put(ledger, "4", stream="a")
    put(ledger, "5", stream="b")
    events = subscribe(ledger, streams=["a"], name="indexer")
    first = events.next(0)
    assert first is not None
    events.acknowledge(first)
    assert ledger.cursor("indexer") == 3
    second = events.next(0)
    assert second is not None
    events.acknowledge(second)
    assert ledger.cursor("indexer") == 5


def test_the_cursor_never_passes_an_event_that_was_handed_out_and_not_acknowledged(ledger: Ledger) -> None:
    put(ledger, "1", stream="a")
    events = subscribe(ledger, streams=["a"], name="indexer")
    assert seqs(events.poll()) == [1]
    put(ledger, *map(str, range(2 * PAGE)), stream="b")
    assert events.poll() == []
    assert ledger.cursor("indexer") == 0


def test_the_cursor_moves_on_now_and_then_while_nothing_matches(ledger: Ledger) -> None:
    events = subscribe(ledger, streams=["a"], name="indexer")
    put(ledger, *map(str, range(PAGE - 1)), stream="b")
    assert events.poll() == []
    assert ledger.cursor("indexer") == 0
    put(ledger, "one more", stream="b")
    assert events.poll() == []
    assert ledger.cursor("indexer") == PAGE


def test_answer_and_cursor_are_recorded_together_and_once(ledger: Ledger) -> None:
    put(ledger, "1", "2")
    old = subscribe(ledger, kinds=["RunParked"], name="answerer")
    new = subscribe(ledger, kinds=["RunParked"], name="answerer")
    (first, second), (again, _) = old.poll(), new.poll()
    reply = Write("answers", None, [RunEnded(run="r", succeeded=True, reason="1", exit_code=0)])
    new.answer(again, [reply])
    with pytest.raises(Conflict, match="`answerer` has dealt with event 1 already"):
        old.answer(first, [reply])
    with pytest.raises(Conflict):
        old.answer(second, [reply, Write("a", 99, [parked("late")])])
    assert ledger.cursor("answerer") == 1
    assert ledger.version("answers") == 1


# In several processes


def test_another_process_hears_at_once(ledger: Ledger, tmp_path: Path) -> None:
    put(ledger, "old")
    delays = []
    with running("hear", tmp_path, 1) as listener:
        assert listener.hear() == "ready"
        for _ in range(20):
            (recorded,) = put(ledger, "x")
            done = time.monotonic()
            seq, heard = listener.hear().split()
            assert int(seq) == recorded.seq
            delays.append(float(heard) - done)
    assert statistics.median(delays) < 0.3 * INTERVAL


def test_a_stopped_subscriber_stops_no_writer_and_misses_nothing(ledger: Ledger, tmp_path: Path) -> None:
    number = 500
    with running("hear", tmp_path, ledger.head()) as listener:
        assert listener.hear() == "ready"
        os.kill(listener.pid, signal.SIGSTOP)
        first = ledger.head() + 1
        writer = threading.Thread(target=lambda: [put(ledger, str(each)) for each in range(number)])
        writer.start()
        writer.join(10 * PATIENCE)
        stuck = writer.is_alive()
        os.kill(listener.pid, signal.SIGCONT)
        assert not stuck
        heard = [int(listener.hear().split()[0]) for _ in range(number)]
        writer.join()
    assert heard == list(range(first, first + number))


@pytest.mark.dear
def test_a_subscriber_killed_at_any_moment_misses_nothing_and_answers_nothing_twice(
    ledger: Ledger, tmp_path: Path
) -> None:
    questions, kills = 400, 15
    moments = random.Random(3)
    with ExitStack() as stack:
        writers = [stack.enter_context(running("ask", tmp_path, name, questions)) for name in ("x", "y")]
        for _ in range(kills):
            with running("answer", tmp_path) as answerer:
                answerer.hear()
                time.sleep(moments.random() * 0.03)
                answerer.kill()
        assert [writer.hear() for writer in writers] == ["asked", "asked"]
    asked = [item.seq for item in ledger.since() if item.stream in ("x", "y")]
    answered = ledger.version("answers")
    with running("answer", tmp_path) as answerer:
        for _ in range(len(asked) - answered):
            answerer.hear()
    answers = [item.event.reason for item in ledger.stream("answers") if isinstance(item.event, RunEnded)]
    assert answers == list(map(str, asked))
    assert len(asked) == 2 * questions
