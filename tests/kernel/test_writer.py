"""Who commits for whom: threads that wait for each other, are interrupted, or come too late."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, main_thread

import apsw
import pytest

from kernel.ledger_contract import parked, reasons, started
from planforge.errors import LedgerUnwritable
from planforge.kernel.ledger import Ledger, Write
from planforge.kernel.ledger.writer import Writer

PATIENCE = 30


def writer(ledger: Ledger) -> Writer:
    return ledger._begin_to_write()


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that other threads do; whether it comes about does not depend on how long."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.001)


def counted(database: apsw.Connection) -> list[bool]:
    """Grows by one with every commit."""
    commits: list[bool] = []

    def hook() -> bool:
        commits.append(True)
        return False

    database.set_commit_hook(hook)
    return commits


def decided(reason: str) -> list[Write]:
    return [Write("a", None, [parked(reason)])]


@contextmanager
def somebody_deciding(ledger: Ledger) -> Iterator[Callable[[], None]]:
    """A thread that has the turn until it is told to go on."""
    begun, go_on = Event(), Event()

    def decide() -> list[Write]:
        begun.set()
        assert go_on.wait(PATIENCE)
        return decided("first")

    thread = Thread(target=ledger.transact, args=(decide,), daemon=True)
    thread.start()
    assert begun.wait(PATIENCE)
    yield go_on.set
    go_on.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def in_the_background(ledger: Ledger, reason: str, waiting: int) -> Thread:
    """A thread that appends, once it is the last of so many who wait."""
    appending = {"expected": None}
    thread = Thread(target=ledger.append, args=("a", [parked(reason)]), kwargs=appending, daemon=True)
    thread.start()
    until(lambda: len(writer(ledger)._waiting) == waiting)
    return thread


def test_those_who_wait_share_one_commit(ledger: Ledger) -> None:
    commits = counted(writer(ledger).db)
    with somebody_deciding(ledger) as go_on:
        threads = [in_the_background(ledger, str(number), number) for number in range(1, 21)]
        go_on()
        for thread in threads:
            thread.join(PATIENCE)
    assert len(commits) == 2
    assert reasons(ledger.since()) == ["first", *(str(number) for number in range(1, 21))]


def test_a_lone_writer_waits_for_nobody(ledger: Ledger) -> None:
    commits = counted(writer(ledger).db)
    for version in range(5):
        ledger.append("a", [parked("x")], expected=version)
    assert len(commits) == 5


def test_a_leader_that_is_interrupted_leaves_the_others_to_the_next(ledger: Ledger) -> None:
    def interrupted() -> list[Write]:
        signal.raise_signal(signal.SIGINT)
        return decided("never")

    threads: list[Thread] = []
    with somebody_deciding(ledger) as go_on:

        def join_the_line() -> None:
            until(lambda: len(writer(ledger)._waiting) == 1)
            threads.extend(in_the_background(ledger, str(number), number + 1) for number in (1, 2, 3))
            go_on()

        joining = Thread(target=join_the_line, daemon=True)
        joining.start()
        with pytest.raises(KeyboardInterrupt):
            ledger.transact(interrupted)
        joining.join(PATIENCE)
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert reasons(ledger.since()) == ["first", "1", "2", "3"]
    assert list(ledger.faults()) == []


def test_somebody_who_is_interrupted_while_waiting_holds_up_nobody(ledger: Ledger) -> None:
    with somebody_deciding(ledger) as go_on:

        def interrupt() -> None:
            until(lambda: len(writer(ledger)._waiting) == 1)
            signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

        interrupting = Thread(target=interrupt, daemon=True)
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            ledger.append("a", [parked("never")], expected=None)
        interrupting.join(PATIENCE)
        assert len(writer(ledger)._waiting) == 0
        go_on()
    ledger.append("a", [parked("then")], expected=None)
    assert reasons(ledger.since()) == ["first", "then"]


def test_whoever_still_waits_when_a_ledger_is_closed_is_told(ledger: Ledger) -> None:
    told: list[str] = []

    def late() -> None:
        try:
            ledger.append("a", [parked("late")], expected=None)
        except LedgerUnwritable as error:
            told.append(error.message)

    with somebody_deciding(ledger) as go_on:
        threads = [Thread(target=work, daemon=True) for work in (ledger.close, late, late)]
        for count, thread in enumerate(threads, start=1):
            thread.start()
            until(lambda count=count: len(writer(ledger)._waiting) == count)  # type: ignore[misc]
        go_on()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
    assert told == ["the ledger is closed"] * 2
    with pytest.raises(LedgerUnwritable, match="the ledger is closed"):
        ledger.append("a", [parked("later")], expected=None)
    ledger.close()
    again = Ledger.open(ledger.directory)
    assert reasons(again.since()) == ["first"]
    again.close()


def test_a_thread_that_ends_leaves_no_connection_behind(ledger: Ledger) -> None:
    ledger.append("a", [parked("x")], expected=0)

    def files() -> int:
        return sum(1 for handle in Path("/proc/self/fd").iterdir() if _leads_to(handle, ledger.directory))

    def read() -> None:
        assert ledger.head() == 1

    before = files()
    for _ in range(10):
        thread = Thread(target=read)
        thread.start()
        thread.join(PATIENCE)
    assert files() <= before + 1


def _leads_to(handle: Path, directory: Path) -> bool:
    try:
        return str(directory) in str(handle.readlink())
    except OSError:
        return False


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = x'7b7d' WHERE seq = 1",
        "DELETE FROM events",
        "DELETE FROM events WHERE seq = 1",
        "DROP TABLE events",
    ],
)
def test_the_writing_connection_can_add_but_not_change_or_remove(ledger: Ledger, statement: str) -> None:
    ledger.append("a", [parked("1")], expected=0)
    with pytest.raises(apsw.AuthError):
        writer(ledger).db.execute(statement)
    assert reasons(ledger.since()) == ["1"]


def test_rows_of_the_writing_connection_are_not_mixed_up(ledger: Ledger) -> None:
    ledger.append("a", [parked(str(number)) for number in range(5)], expected=0)
    found = []

    def decide() -> list[Write]:
        database = writer(ledger).db
        for (seq,) in database.execute("SELECT seq FROM events ORDER BY seq"):
            database.execute("INSERT INTO cursors VALUES (?, ?)", (str(seq), seq))
            found.append(seq)
        returned = database.execute("UPDATE cursors SET seq = 9 WHERE subscriber > '2' RETURNING subscriber")
        for (subscriber,) in returned:
            database.execute("DELETE FROM cursors WHERE subscriber = ?", (subscriber,))
            found.append(int(subscriber))
        return []

    ledger.transact(decide)
    assert found == [1, 2, 3, 4, 5, 3, 4, 5]


def test_a_failure_in_the_middle_leaves_the_next_append_as_it_should_be(ledger: Ledger) -> None:
    ledger.append("run-001", [started("run-001")], expected=0)
    for _ in range(2):
        with pytest.raises(LedgerUnwritable, match="cannot be written"):
            ledger.append("b", [parked("never"), started("run-001")], expected=0)
    ledger.append("b", [parked("2")], expected=0)
    assert reasons(ledger.since()) == ["2"]
    assert list(ledger.faults()) == []
