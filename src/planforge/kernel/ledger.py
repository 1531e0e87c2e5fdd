"""
What happened, in order, for good.

One SQLite file: an append-only table of events in streams, chained by hash, and
the projections folded from them in the same transaction. A writer says which
version of a stream it has seen; if the stream has moved on, nothing is written.
An acknowledged event is on disk (`synchronous=FULL`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import apsw
import msgspec

from planforge.errors import Conflict, LedgerUnreadable, LedgerUnwritable, Locked
from planforge.kernel.events import EVENTS, REVISION, Event, Recorded
from planforge.kernel.objects import Objects

FORMAT = 1
"""The layout of the file. A ledger of a later layout is refused, never guessed at."""

APPLICATION_ID = 0x504C4647  # "PLFG"

BUSY_MILLISECONDS = 30_000
"""How long a writer waits for its turn."""

TABLES = """
CREATE TABLE events(
  seq INTEGER PRIMARY KEY, stream TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL,
  revision INTEGER NOT NULL, key TEXT NOT NULL, at TEXT NOT NULL, body BLOB NOT NULL, hash BLOB NOT NULL,
  UNIQUE(stream, version)
) STRICT;
CREATE TABLE head(one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
INSERT INTO head VALUES (1, 0, x'');
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER events_are_not_replaced BEFORE INSERT ON events
  WHEN NEW.seq <= (SELECT coalesce(max(seq), 0) FROM events)
    OR EXISTS (SELECT 1 FROM events WHERE stream = NEW.stream AND version = NEW.version)
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""

GUARDS = ("events_are_not_changed", "events_are_not_removed", "events_are_not_replaced")

PAGE = 1000
"""How many events are read at a time. Between two pages a reader is in nobody's way."""

COLUMNS = "seq, stream, version, kind, key, at, body, hash"

_encode = msgspec.json.Encoder(order="deterministic").encode


Row = TypeVar("Row", bound=msgspec.Struct)


class Write(NamedTuple):
    """Events to append to one stream, by a writer that has seen `expected` of them."""

    stream: str
    expected: int
    events: Sequence[Event]
    key: str = ""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Where a ledger is not what was written."""

    seq: int
    stream: str
    kind: str
    problem: str


class Ledger:
    """An open ledger: the events, the projections and the objects of one `.planforge` directory."""

    def __init__(self, connection: apsw.Connection, directory: Path, now: Callable[[], datetime]) -> None:
        self._connection = connection
        self.objects = Objects(directory / "objects")
        self.listeners: list[Callable[[Recorded], None]] = []
        """Told of every event that this process appends, after it is on disk."""
        self._now = now

    @classmethod
    def create(cls, directory: Path, now: Callable[[], datetime] | None = None) -> Self:
        """Open the ledger in `directory`, making it if there is none."""
        from planforge.kernel.locks import held

        try:
            directory.mkdir(parents=True, exist_ok=True)
            # SQLite does not wait for its turn to switch a file to WAL, so those who create take turns here.
            with held(directory / "locks" / "create.lock", "creating a ledger", wait=True):
                _make(directory / "ledger.db")
        except (apsw.Error, OSError, LedgerUnwritable) as error:
            raise LedgerUnreadable(f"cannot create a ledger in `{directory}`: {error}") from error
        return cls.open(directory, now)

    @classmethod
    def open(cls, directory: Path, now: Callable[[], datetime] | None = None) -> Self:
        """Open the ledger that is in `directory`."""
        path = directory / "ledger.db"
        try:
            if not path.exists():
                raise LedgerUnreadable(f"there is no ledger at `{path}`")
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            connection.execute("PRAGMA synchronous = FULL")
            found = _one(connection, "PRAGMA application_id"), _one(connection, "PRAGMA user_version")
        except (OSError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
            raise LedgerUnreadable(
                f"cannot open the ledger at `{path}`: the directory must be writable ({error})"
            ) from error
        except apsw.Error as error:
            raise LedgerUnreadable(f"the ledger at `{path}` is corrupt: {error}") from error
        if found[0] != APPLICATION_ID:
            raise LedgerUnreadable(f"`{path}` is not a Planforge ledger")
        if found[1] != FORMAT:
            raise LedgerUnreadable(
                f"the ledger at `{path}` has format {found[1]}, this Planforge reads format {FORMAT}",
                "use the Planforge version that wrote it",
            )
        return cls(connection, directory, now or (lambda: datetime.now(UTC)))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def append(self, stream: str, events: Sequence[Event], *, expected: int, key: str = "") -> list[Recorded]:
        """Add `events` to `stream`, or raise `Conflict` if it is not at version `expected`."""
        return self.append_all([Write(stream, expected, events, key)])

    def append_all(self, writes: Iterable[Write]) -> list[Recorded]:
        """Add to several streams at once: all of it, or nothing."""
        from planforge.kernel.projections import project  # readers never need it, and must be quick

        recorded: list[Recorded] = []
        with self._transaction():
            seq, previous = self._head()
            for write in writes:
                self._require(write)
                for version, event in enumerate(write.events, start=write.expected + 1):
                    seq += 1
                    item, previous = self._insert(seq, previous, write, version, event)
                    project(self._connection, item)
                    recorded.append(item)
            self._connection.execute("UPDATE head SET seq = ?, hash = ?", (seq, previous))
        for item in recorded:
            for listener in self.listeners:
                listener(item)
        return recorded

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All that is written inside, or nothing."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except apsw.BusyError as error:
            raise Locked("another process keeps the ledger busy") from error
        except apsw.Error as error:
            raise LedgerUnwritable(f"the ledger cannot be written: {error}") from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _require(self, write: Write) -> None:
        found = self.version(write.stream)
        if found != write.expected:
            raise Conflict(f"stream `{write.stream}` is at version {found}, not {write.expected}")

    def _insert(
        self, seq: int, previous: bytes, write: Write, version: int, event: Event
    ) -> tuple[Recorded, bytes]:
        kind, body = type(event).__name__, _encode(event)
        try:
            event = _event(seq, kind, body)
        except LedgerUnreadable as error:  # one such event would make the whole ledger unreadable, for good
            raise TypeError(f"`{kind}` cannot be recorded: {error.message}") from error
        at = self._now().astimezone(UTC).isoformat(timespec="microseconds")
        digest = _chain(previous, seq, write.stream, version, kind, REVISION, write.key, at, body)
        values = (seq, write.stream, version, kind, REVISION, write.key, at, body, digest)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        row = (seq, write.stream, version, kind, write.key, at, body, digest)
        return _recorded(row, event), digest

    def query(self, statement: str, *values: str | int) -> Iterator[tuple[Any, ...]]:
        """Rows of a read-only statement, for the projections."""
        try:
            yield from self._connection.execute(statement, values)
        except apsw.BusyError as error:
            raise Locked("another process keeps the ledger busy") from error
        except apsw.Error as error:
            hint = "run `planforge verify`, and restore `.planforge` from a backup"
            raise LedgerUnreadable(f"the ledger is corrupt: {error}", hint) from error

    def select(self, kind: type[Row], rest: str, *values: str | int) -> list[Row]:
        """Rows of a projection as structures whose fields are named like its columns."""
        fields = kind.__struct_fields__
        rows = self.query(f"SELECT {', '.join(fields)} FROM {rest}", *values)  # noqa: S608  (constants)
        return [kind(**dict(zip(fields, row, strict=True))) for row in rows]

    def version(self, stream: str) -> int:
        """How many events `stream` has."""
        ((found,),) = self.query("SELECT coalesce(max(version), 0) FROM events WHERE stream = ?", stream)
        return int(found)

    def stream(self, name: str, after: int = 0) -> Iterator[Recorded]:
        """The events of one stream, oldest first, after version `after`."""
        while True:
            where = "WHERE stream = ? AND version > ? ORDER BY version LIMIT ?"
            page = list(self._read(where, name, after, PAGE))
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].version

    def since(self, seq: int = 0, limit: int = -1) -> Iterator[Recorded]:
        """All events after sequence number `seq`, oldest first."""
        left = limit if limit >= 0 else sys.maxsize
        while take := min(left, PAGE):
            page = list(self._read("WHERE seq > ? ORDER BY seq LIMIT ?", seq, take))
            yield from page
            if len(page) < take:
                return
            seq, left = page[-1].seq, left - take

    def last(self, count: int, stream: str | None = None) -> list[Recorded]:
        """The newest `count` events, oldest first."""
        where = "" if stream is None else "WHERE stream = ?"
        order = "version" if stream else "seq"
        values: tuple[str | int, ...] = (count,) if stream is None else (stream, count)
        return list(self._read(f"{where} ORDER BY {order} DESC LIMIT ?", *values))[::-1]

    def head(self) -> int:
        """The sequence number of the newest event."""
        return self._head()[0]

    def rebuild(self) -> None:
        """Fold the projections anew from the events."""
        from planforge.kernel import projections

        with self._transaction():
            projections.rebuild(self._connection, self.since())

    def faults(self) -> Iterator[Fault]:
        """Every event that is not what was written, as far as the chain can tell."""
        triggers = self.query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        found = {name for name, sql in triggers if sql in TABLES}
        for guard in GUARDS:
            if guard not in found:
                yield Fault(seq=0, stream="", kind="", problem=f"the guard `{guard}` is gone")
        expected, previous = 0, b""
        for seq, stream, version, kind, revision, key, at, body, digest in self.query(
            "SELECT seq, stream, version, kind, revision, key, at, body, hash FROM events ORDER BY seq"
        ):
            expected += 1
            if seq != expected:  # then its own hash, which includes the one before, cannot be checked
                several = f"events {expected} to {seq - 1} are missing"
                problem = several if seq - expected > 1 else f"event {expected} is missing"
                yield Fault(seq=seq, stream=stream, kind=kind, problem=problem)
                expected = seq
            elif _chain(previous, seq, stream, version, kind, revision, key, at, body) != digest:
                yield Fault(seq=seq, stream=stream, kind=kind, problem="its content does not match its hash")
            previous = digest
        seq, digest = self._head()
        if (seq, digest) != (expected, previous):
            problem = f"the ledger once ended at event {seq}, now at {expected}"
            yield Fault(seq=expected, stream="", kind="", problem=problem)

    def _head(self) -> tuple[int, bytes]:
        for seq, digest in self.query("SELECT seq, hash FROM head"):
            return int(seq), bytes(digest)
        raise LedgerUnreadable("the ledger has no head")

    def _read(self, where: str, *values: str | int) -> Iterator[Recorded]:
        for row in self.query(f"SELECT {COLUMNS} FROM events {where}", *values):  # noqa: S608
            yield _recorded(row, _event(row[0], row[3], row[6]))


def _event(seq: int, kind: str, body: bytes) -> Event:
    if kind not in EVENTS:
        raise LedgerUnreadable(f"event {seq} is of kind `{kind}`, which this Planforge does not know")
    try:
        return msgspec.json.decode(body, type=EVENTS[kind])
    except msgspec.MsgspecError as error:
        raise LedgerUnreadable(
            f"event {seq} (`{kind}`) cannot be read: {error}",
            "run `planforge verify` to see what was changed",
        ) from error


def _recorded(row: tuple[Any, ...], event: Event) -> Recorded:
    seq, stream, version, _, key, at, _, digest = row
    return Recorded(seq=seq, stream=stream, version=version, at=at, key=key, event=event, hash=digest.hex())


def _chain(previous: bytes, *fields: int | str | bytes) -> bytes:
    import hashlib  # readers do not need it, and must be quick

    digest = hashlib.sha256(previous)
    for field in fields:
        content = field if isinstance(field, bytes) else str(field).encode()
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.digest()


def _make(path: Path) -> None:
    """Make the tables, if the file is new. Somebody else's database is not touched."""
    from planforge.kernel import projections

    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    if _is_empty(connection):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(TABLES)
        connection.execute(projections.TABLES)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    connection.close()


def _is_empty(connection: apsw.Connection) -> bool:
    return not _one(connection, "SELECT count(*) FROM sqlite_schema")


def _one(connection: apsw.Connection, statement: str) -> int:
    ((value,),) = connection.execute(statement)
    return int(value)
