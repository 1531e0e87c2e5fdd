"""The SQLite ledger: the contract, and what another client, a full disk or `kill -9` can do to the file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.another_client import another_client
from kernel.histories import Clock, any_event
from kernel.ledger_contract import LedgerContract, parked, reasons, started, tables, tell
from kernel.processes import child
from planforge.errors import LedgerUnreadable, LedgerUnwritable, Locked
from planforge.kernel.events import EVENTS, Event, RunParked
from planforge.kernel.ledger import Ledger, Write
from planforge.kernel.ledger.storage import FORMAT, GUARDS
from planforge.kernel.ledger.wal import PAGE_BYTES
from planforge.kernel.ledger.writer import ANCHORED
from tries import tries


class TestLedgerInSqlite(LedgerContract):
    @pytest.fixture
    def ledger(self, tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
        opened = Ledger.create(tmp_path, clock)
        yield opened
        opened.close()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    opened = Ledger.create(tmp_path, clock)
    yield opened
    opened.close()


@given(event=st.one_of([any_event(kind) for kind in EVENTS.values()]))
@settings(max_examples=tries(600), deadline=None)
def test_any_event_comes_back_as_it_went_in(tmp_path_factory: pytest.TempPathFactory, event: Event) -> None:
    ledger = Ledger.create(tmp_path_factory.mktemp("ledger"))
    appended = ledger.append("a", [event], expected=0)
    found = list(ledger.stream("a"))
    rows = tables(ledger)
    ledger.rebuild()
    assert (found, found[0].event, tables(ledger), list(ledger.faults())) == (appended, event, rows, [])
    ledger.close()


# Opening


def test_what_was_acknowledged_is_there_when_the_ledger_is_opened_again(tmp_path: Path) -> None:
    first = Ledger.create(tmp_path)
    told = tell(first)
    before = tables(first)
    first.close()
    again = Ledger.open(tmp_path)
    assert (list(again.since()), tables(again)) == (told, before)
    again.close()


def test_creating_a_ledger_where_there_is_one_opens_it(tmp_path: Path, ledger: Ledger) -> None:
    ledger.append("a", [parked("kept")], expected=0)
    again = Ledger.create(tmp_path)
    assert reasons(again.since()) == ["kept"]
    again.close()


def test_a_ledger_uses_the_real_time_unless_told_otherwise(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    (recorded,) = ledger.append("a", [parked("now")], expected=0)
    assert recorded.at.endswith("+00:00")
    assert recorded.at > "2026-"
    ledger.close()


def test_an_acknowledged_event_is_on_disk(ledger: Ledger) -> None:
    assert [*ledger.query("PRAGMA journal_mode")] == [("wal",)]
    assert [*ledger.query("PRAGMA synchronous")] == [(2,)]


def newer_format(directory: Path) -> None:
    another_client(directory, f"PRAGMA user_version = {FORMAT + 1}")


def not_a_ledger(directory: Path) -> None:
    (directory / "ledger.db").unlink()
    another_client(directory, "CREATE TABLE recipes(name TEXT)")


def garbage(directory: Path) -> None:
    (directory / "ledger.db").write_bytes(b"\xde\xad\xbe\xef" * 5000)


def a_few_words(directory: Path) -> None:
    (directory / "ledger.db").write_bytes(b"see the other folder\n")


def empty_file(directory: Path) -> None:
    (directory / "ledger.db").write_bytes(b"")


def truncated(directory: Path) -> None:
    path = directory / "ledger.db"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeroed(directory: Path) -> None:
    path = directory / "ledger.db"
    path.write_bytes(bytes(path.stat().st_size))


def missing(directory: Path) -> None:
    (directory / "ledger.db").unlink()


def a_folder(directory: Path) -> None:
    (directory / "ledger.db").unlink()
    (directory / "ledger.db").mkdir()


SPOILT: list[tuple[Callable[[Path], None], str]] = [
    (newer_format, f"has format {FORMAT + 1}, this Planforge reads format {FORMAT}"),
    (not_a_ledger, "is not a Planforge ledger"),
    (garbage, "is corrupt"),
    (a_few_words, "is corrupt"),
    (empty_file, "is not a Planforge ledger"),
    (truncated, "is corrupt"),
    (zeroed, "is corrupt"),
    (missing, "there is no ledger at"),
    (a_folder, "is not a file"),
]


def test_a_path_that_is_too_long_for_sqlite_is_said_so(tmp_path: Path) -> None:
    place = tmp_path / "/".join(["d" * 100] * 6)
    with pytest.raises(LedgerUnreadable, match=r"its path has \d+ bytes, and SQLite"):
        Ledger.create(place)


@pytest.mark.parametrize(("spoil", "problem"), SPOILT, ids=[spoil.__name__ for spoil, _ in SPOILT])
def test_a_file_that_is_no_ledger_of_ours_is_refused_in_one_line_and_left_alone(
    tmp_path: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    ledger = Ledger.create(tmp_path)
    tell(ledger)
    ledger.close()
    spoil(tmp_path)
    path = tmp_path / "ledger.db"
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerUnreadable) as refused:
        Ledger.open(tmp_path)
    assert problem in refused.value.message
    assert str(path) in refused.value.message
    assert "\n" not in refused.value.message
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize(
    "spoil", [newer_format, not_a_ledger, garbage, a_few_words, truncated, zeroed, a_folder]
)
def test_creating_a_ledger_never_overwrites_what_is_there(
    open_path: Path, spoil: Callable[[Path], None]
) -> None:
    ledger = Ledger.create(open_path)
    tell(ledger)
    ledger.close()
    spoil(open_path)
    path = open_path / "ledger.db"
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerUnreadable):
        Ledger.create(open_path)
    assert (path.read_bytes() if path.is_file() else None) == before


@contextmanager
def as_somebody_without_rights() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def mode(directory: Path, bits: int) -> Iterator[None]:
    """Give a directory other rights for a while."""
    before = directory.stat().st_mode
    directory.chmod(bits)
    try:
        yield
    finally:
        directory.chmod(before)


def test_a_ledger_out_of_reach_is_reported(open_path: Path) -> None:
    directory = open_path / ".planforge"
    Ledger.create(directory).close()
    with (
        mode(directory, 0o000),
        as_somebody_without_rights(),
        pytest.raises(LedgerUnreadable, match="cannot open the ledger"),
    ):
        Ledger.open(directory)


def test_where_nothing_can_be_written_a_ledger_can_be_read(open_path: Path) -> None:
    directory = open_path / ".planforge"
    ledger = Ledger.create(directory)
    told = tell(ledger)
    ledger.close()
    with mode(directory, 0o555), as_somebody_without_rights():
        again = Ledger.open(directory)
        assert (list(again.since()), list(again.faults())) == (told, [])
        with pytest.raises(LedgerUnwritable, match="can only be read"):
            again.append("a", [parked("1")], expected=0)
        again.close()


def test_what_is_still_in_the_log_is_read_or_the_ledger_is_refused(open_path: Path) -> None:
    directory = open_path / ".planforge"
    ledger = Ledger.create(directory)
    told = tell(ledger)  # and it stays open, so that the events are in the log alone
    (directory / "ledger.db-shm").chmod(0o644)
    with mode(directory, 0o555), as_somebody_without_rights():
        again = Ledger.open(directory)
        assert list(again.since()) == told
        again.close()
    copy = open_path / "copy"
    copy.mkdir()
    for name in ("ledger.db", "ledger.db-wal"):
        shutil.copyfile(directory / name, copy / name)
    with (
        mode(copy, 0o555),
        as_somebody_without_rights(),
        pytest.raises(LedgerUnreadable, match="the directory must be writable"),
    ):
        Ledger.open(copy)
    ledger.close()


def test_a_damaged_page_is_reported_by_whatever_reads_it(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    ledger.append("a", [parked("x" * 1500) for _ in range(20)], expected=0)
    ledger.close()
    path = tmp_path / "ledger.db"
    content = path.read_bytes()
    first = content.index(b"x" * 1500) // PAGE_BYTES * PAGE_BYTES
    path.write_bytes(content[:first] + b"\xff" * (len(content) - first))
    damaged = Ledger.open(tmp_path)
    with pytest.raises(LedgerUnreadable, match="corrupt") as refused:
        list(damaged.since())
    assert refused.value.hint is not None
    assert "cannot be read" in next(damaged.faults()).problem
    damaged.close()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("body = x'7b7d'", r"event 2 \(`RunParked`\) cannot be read"),
        ("body = x'00ff'", r"event 2 \(`RunParked`\) cannot be read"),
        ("kind = 'MoonRose'", "event 2 is of kind `MoonRose`, which this Planforge does not know"),
    ],
)
def test_an_event_that_makes_no_sense_is_named_and_not_skipped(
    tmp_path: Path, ledger: Ledger, change: str, problem: str
) -> None:
    ledger.append("a", [parked("1"), parked("2"), parked("3")], expected=0)
    another_client(tmp_path, f"UPDATE events SET {change} WHERE seq = 2", unguarded=True)  # noqa: S608
    with pytest.raises(LedgerUnreadable, match=problem):
        list(ledger.since())


# Earlier formats


def of_an_earlier_format(directory: Path) -> None:
    """A ledger whose projections are not those of today."""
    ledger = Ledger.create(directory)
    ledger.append("run-001", [started("run-001"), parked("old")], expected=0)
    ledger.append_all([], {"subscriber": 1})
    ledger.close()
    another_client(
        directory,
        "DROP TABLE runs",
        "DROP VIEW plans",
        "DROP TABLE items",
        f"PRAGMA user_version = {FORMAT - 1}",
    )


def test_a_ledger_of_an_earlier_format_is_brought_up_to_date_and_goes_on(tmp_path: Path) -> None:
    of_an_earlier_format(tmp_path)
    stored = another_client(tmp_path, "SELECT seq, kind, hex(body), hex(hash) FROM events")
    ledger = Ledger.open(tmp_path)
    assert [row[0] for row in tables(ledger)["runs"]] == ["run-001"]
    ledger.append("run-001", [parked("new")], expected=2)
    ledger.close()
    again = Ledger.open(tmp_path)
    assert (again.head(), again.cursor("subscriber"), list(again.faults())) == (3, 1, [])
    assert another_client(tmp_path, "PRAGMA user_version") == [[FORMAT]]
    kept = another_client(tmp_path, "SELECT seq, kind, hex(body), hex(hash) FROM events WHERE seq <= 2")
    assert kept == stored
    again.close()


def test_a_change_to_an_event_of_an_earlier_format_is_found_after_the_upgrade(tmp_path: Path) -> None:
    of_an_earlier_format(tmp_path)
    Ledger.open(tmp_path).close()
    another_client(tmp_path, "UPDATE events SET at = '2025-01-01' WHERE seq = 2", unguarded=True)
    ledger = Ledger.open(tmp_path)
    assert [(fault.seq, fault.problem) for fault in ledger.faults()] == [(2, HASH)]
    ledger.close()


def test_of_several_that_open_a_ledger_of_an_earlier_format_at_once_all_can(tmp_path: Path) -> None:
    of_an_earlier_format(tmp_path)
    with ExitStack() as stack:
        children = [stack.enter_context(child("create", tmp_path)) for _ in range(4)]
        assert [process.hear() for process in children] == ["ready"] * 4
        for process in children:
            process.tell()
        said = [line for process in children for line in process.end()]
    assert sorted(said) == ["1", "2", "3", "4"]


# Other clients


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = x'7b7d' WHERE seq = 1",
        "UPDATE events SET seq = 99 WHERE seq = 1",
        "DELETE FROM events",
        "DELETE FROM events WHERE seq = 2",
        "INSERT OR REPLACE INTO events "
        "SELECT seq, 'b', 1, kind, revision, key, at, body, hash FROM events WHERE seq = 1",
        "INSERT OR REPLACE INTO events "
        "SELECT seq + 10, stream, version, kind, revision, key, at, body, hash FROM events",
    ],
)
def test_another_client_can_add_but_not_change_or_remove(
    tmp_path: Path, ledger: Ledger, statement: str
) -> None:
    before = ledger.append("a", [parked("1"), parked("2")], expected=0)
    with pytest.raises(sqlite3.DatabaseError, match="IntegrityError: the ledger is append-only"):
        another_client(tmp_path, statement)
    assert list(ledger.since()) == before
    assert list(ledger.faults()) == []


def test_listeners_are_told_when_other_clients_can_see_the_event(tmp_path: Path, ledger: Ledger) -> None:
    seen: list[int] = []

    def look(_: object) -> None:
        seen.extend(count for (count,) in another_client(tmp_path, "SELECT count(*) FROM events"))

    ledger.listeners.append(look)
    ledger.append("a", [parked("1"), parked("2")], expected=0)
    assert seen == [2, 2]


def test_a_writer_that_does_not_get_its_turn_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planforge.kernel.ledger.storage.BUSY_MILLISECONDS", 1)
    ledger = Ledger.create(tmp_path)
    tell(ledger)
    rows = tables(ledger)
    with child("keep_busy", tmp_path) as other:
        assert other.hear() == "busy"
        with pytest.raises(Locked, match="another process keeps the ledger busy"):
            ledger.append("a", [parked("1")], expected=0)
        with pytest.raises(Locked, match="another process keeps the ledger busy"):
            ledger.rebuild()
        assert (ledger.version("a"), tables(ledger)) == (0, rows)
    ledger.append("a", [parked("1")], expected=0)
    ledger.close()


def test_a_reader_half_way_through_is_not_locked_out_by_another_writer(
    tmp_path: Path, ledger: Ledger
) -> None:
    ledger.append("a", [parked("1"), parked("2"), parked("3")], expected=0)
    half_way = ledger.since()
    next(half_way)
    other = Ledger.open(tmp_path)
    other.append("b", [parked("4")], expected=0)
    ledger.append("a", [parked("5")], expected=3)
    assert reasons(half_way)[:2] == ["2", "3"]
    assert reasons(ledger.since()) == ["1", "2", "3", "4", "5"]
    other.close()


def test_two_writers_that_do_not_care_about_versions_take_turns(tmp_path: Path, ledger: Ledger) -> None:
    other = Ledger.open(tmp_path)
    for _ in range(3):
        ledger.append("a", [parked("x")], expected=None)
        other.append("a", [parked("x"), parked("y")], expected=None)
        other.append("b", [parked("z")], expected=None)
    assert [item.seq for item in ledger.since()] == list(range(1, 13))
    assert [item.version for item in ledger.stream("a")] == list(range(1, 10))
    assert list(ledger.faults()) == []
    other.close()


# Tampering


HASH = "its content does not match its hash"
FORGED = (
    "INSERT INTO events SELECT 7, stream, 4, kind, revision, key, at, body, hash FROM events WHERE seq = 6"
)

ONE_BYTE = "UPDATE events SET body = CAST(replace(body, 'b0', 'c0') AS BLOB) WHERE seq = 2"
SWAP = [f"UPDATE events SET seq = {new} WHERE seq = {old}" for old, new in ((3, -1), (4, 3), (-1, 4))]  # noqa: S608

TAMPERINGS: dict[str, tuple[list[str], list[tuple[int, str]]]] = {
    "nothing": ([], []),
    "a byte of a body": ([ONE_BYTE], [(2, HASH)]),
    "a time": (["UPDATE events SET at = '2026-02-01T00:00:00.000000+00:00' WHERE seq = 3"], [(3, HASH)]),
    "a kind": (["UPDATE events SET kind = 'RunEnded' WHERE seq = 3"], [(3, HASH)]),
    "a stream": (["UPDATE events SET stream = 'c' WHERE seq = 3"], [(3, HASH)]),
    "a version": (["UPDATE events SET version = 9 WHERE seq = 3"], [(3, HASH)]),
    "a key": (["UPDATE events SET key = '/0' WHERE seq = 3"], [(3, HASH)]),
    "a border between fields": (
        ["UPDATE events SET key = substr(at, 1, 1), at = substr(at, 2) WHERE seq = 3"],
        [(3, HASH)],
    ),
    "a revision": (["UPDATE events SET revision = 2 WHERE seq = 3"], [(3, HASH)]),
    "the first": (["UPDATE events SET stream = 'c' WHERE seq = 1"], [(1, HASH)]),
    "the last": (["UPDATE events SET stream = 'c' WHERE seq = 6"], [(6, HASH)]),
    "two": (["UPDATE events SET stream = 'c' WHERE seq IN (2, 5)"], [(2, HASH), (5, HASH)]),
    "a hash": (["UPDATE events SET hash = x'00' WHERE seq = 3"], [(3, HASH), (4, HASH)]),
    "first removed": (["DELETE FROM events WHERE seq = 1"], [(2, "event 1 is missing")]),
    "middle removed": (["DELETE FROM events WHERE seq = 3"], [(4, "event 3 is missing")]),
    "several removed": (
        ["DELETE FROM events WHERE seq IN (2, 3, 5)"],
        [(4, "events 2 to 3 are missing"), (6, "event 5 is missing")],
    ),
    "last removed": (
        ["DELETE FROM events WHERE seq = 6"],
        [(5, "the ledger once ended at event 6, now at 5")],
    ),
    "all removed": (["DELETE FROM events"], [(0, "the ledger once ended at event 6, now at 0")]),
    "two swapped": (SWAP, [(3, HASH), (4, HASH), (5, HASH)]),
    "one added": ([FORGED], [(7, HASH)]),
    "the note of the end": (
        ["UPDATE head SET hash = x'00'"],
        [(6, "event 6 once had another hash")],
    ),
    "no note of the end": (["DELETE FROM head"], [(0, "the note of where the ledger ends is gone")]),
}


@pytest.mark.parametrize("change", TAMPERINGS)
def test_tampering_is_found_and_the_event_named(tmp_path: Path, ledger: Ledger, change: str) -> None:
    statements, faults = TAMPERINGS[change]
    for version in range(3):
        ledger.append_all([Write(stream, version, [parked(f"{stream}{version}")]) for stream in ("a", "b")])
    ledger.close()
    another_client(tmp_path, *statements, unguarded=True)
    again = Ledger.open(tmp_path)
    assert [(fault.seq, fault.problem) for fault in again.faults()] == faults
    again.close()


@pytest.mark.parametrize("count", [ANCHORED, ANCHORED + 1, 2 * ANCHORED + 5])
def test_a_missing_end_is_noticed_even_if_the_writer_never_closed_the_ledger(
    tmp_path: Path, ledger: Ledger, count: int
) -> None:
    for version in range(count):
        ledger.append("a", [parked("x")], expected=version)
    noted = count - count % ANCHORED
    another_client(tmp_path, f"DELETE FROM events WHERE seq >= {noted}", unguarded=True)  # noqa: S608
    problem = f"the ledger once ended at event {noted}, now at {noted - 1}"
    assert [(fault.seq, fault.problem) for fault in ledger.faults()] == [(noted - 1, problem)]


def test_a_fault_says_what_the_event_was(tmp_path: Path, ledger: Ledger) -> None:
    ledger.append("a", [parked("1"), parked("2")], expected=0)
    another_client(tmp_path, "UPDATE events SET at = 'never' WHERE seq = 2", unguarded=True)
    assert [(fault.seq, fault.stream, fault.kind) for fault in ledger.faults()] == [(2, "a", "RunParked")]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    "replacement",
    ["", "CREATE TRIGGER {guard} BEFORE UPDATE ON events BEGIN SELECT 1; END"],
    ids=["gone", "harmless"],
)
def test_a_guard_that_is_gone_or_harmless_is_a_fault(
    tmp_path: Path, ledger: Ledger, guard: str, replacement: str
) -> None:
    another_client(tmp_path, f"DROP TRIGGER {guard}", replacement.format(guard=guard))
    assert [fault.problem for fault in ledger.faults()] == [f"the guard `{guard}` is gone"]


def test_tables_that_another_client_changed_are_put_right(tmp_path: Path, ledger: Ledger) -> None:
    tell(ledger)
    before = tables(ledger)
    another_client(
        tmp_path,
        "UPDATE items SET status = 'DONE'",
        "DELETE FROM runs",
        "UPDATE steps SET status = 'done', reason = 'because'",
    )
    assert tables(ledger) != before
    ledger.rebuild()
    assert tables(ledger) == before


# Full disks


def small_disk(directory: Path) -> list[str]:
    """A command prefix that runs a program with a disk of 1 MB at `directory`, seen by nobody else."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root and `unshare`")
    script = 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"'
    wrapper = ["unshare", "--mount", "sh", "-c", script, str(directory)]
    if subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    return wrapper


@pytest.mark.parametrize("disk", ["tmpfs", "limit"])
def test_a_full_disk_is_reported_and_costs_nothing_that_was_acknowledged(tmp_path: Path, disk: str) -> None:
    wrapper = small_disk(tmp_path) if disk == "tmpfs" else []
    with child("fill", tmp_path, "" if wrapper else 500_000, wrapper=wrapper) as filling:
        full, full_for_objects, found, faults, then = filling.end()
    assert full.startswith("unwritable: the ledger cannot be written")
    assert full_for_objects.startswith("unwritable: ")
    count = int(found.split()[1].rstrip(","))
    assert count > 10
    assert found == f"acknowledged {count}, found {count}, head {count}"
    assert faults == "faults []"
    assert then == "then 1, faults []"


# Several processes


@pytest.mark.dear
def test_processes_that_create_a_ledger_at_once_create_one(tmp_path: Path) -> None:
    for directory in (tmp_path / "a", tmp_path / "b", tmp_path / "c"):
        with ExitStack() as stack:
            children = [stack.enter_context(child("create", directory)) for _ in range(4)]
            assert [process.hear() for process in children] == ["ready"] * 4
            for process in children:
                process.tell()
            said = [line for process in children for line in process.end()]
        assert sorted(said) == ["1", "2", "3", "4"]


def test_of_two_processes_exactly_one_wins_each_version(tmp_path: Path) -> None:
    wins = 60
    with ExitStack() as stack:
        children = [stack.enter_context(child("compete", tmp_path, name, wins)) for name in ("one", "two")]
        assert [process.hear() for process in children] == ["ready", "ready"]
        for process in children:
            process.tell()
        assert [process.end() for process in children] == [["done"], ["done"]]
    ledger = Ledger.open(tmp_path)
    recorded = list(ledger.stream("race"))
    winners = [item.event.run for item in recorded if isinstance(item.event, RunParked)]
    assert [item.version for item in recorded] == list(range(1, 2 * wins + 1))
    assert (winners.count("one"), winners.count("two")) == (wins, wins)
    assert list(ledger.faults()) == []
    ledger.close()


@pytest.mark.dear
def test_no_acknowledged_event_is_lost_to_kill_9(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    Ledger.create(tmp_path).append("run-001", [started("run-001")], expected=0)
    for attempt in range(20):
        with child("write_for_ever", tmp_path) as writer:
            acknowledged += [int(writer.hear()) for _ in range(1 + 7 * attempt % 23)]
            acknowledged += map(int, writer.kill())
        ledger = Ledger.open(tmp_path)
        assert {item.seq for item in ledger.since(1)} >= set(acknowledged)
        assert list(ledger.faults()) == []
        ledger.close()
    ledger = Ledger.open(tmp_path)
    assert [item.version for item in ledger.stream("run-001")] == list(range(1, ledger.head() + 1))
    before = tables(ledger)
    ledger.rebuild()
    assert tables(ledger) == before
    ledger.close()


def test_a_thread_begins_to_write_while_the_one_that_opened_the_ledger_is_reading(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    numbers = "SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3000000"
    count = f"WITH RECURSIVE n(x) AS ({numbers}) SELECT count(*) FROM n"  # noqa: S608  (constants)
    with ThreadPoolExecutor(1) as other:
        written = other.submit(ledger.append, "run-001", [parked("it waits")], expected=0)
        while not written.done():
            list(ledger.query(count))
    assert [item.kind for item in written.result()] == ["RunParked"]
    ledger.close()
