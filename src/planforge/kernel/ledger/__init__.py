"""
What happened, in order, for good.

One SQLite file: an append-only table of events in streams, chained by hash, and
the projections folded from them in the same transaction. A writer says which
version of a stream it has seen; if the stream has moved on, nothing is written.
An acknowledged event is on disk (`synchronous=FULL`). Writers in one process that
wait at the same time share a commit; each still gets its own yes or no.
"""

from __future__ import annotations

import os
import sys
import threading
from _weakrefset import WeakSet  # `weakref` has it too, but takes longer to load
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args, get_origin

import apsw
import msgspec

from planforge.actions import Action, Advice
from planforge.errors import LedgerUnreadable, LedgerUnwritable, Locked
from planforge.kernel.ledger import storage
from planforge.kernel.ledger.shapes import Fault, Write
from planforge.kernel.ledger.storage import FORMAT, GUARDS, Opened, in_a_line
from planforge.kernel.objects import Objects

if TYPE_CHECKING:
    from planforge.kernel.events import Event, Recorded
    from planforge.kernel.ledger.committer import Committer
    from planforge.kernel.ledger.writer import Writer

__all__ = ["PAGE", "Fault", "Ledger", "Write"]

PAGE = 1000
"""How many events are read at a time. Between two pages a reader is in nobody's way."""

LONGEST_PATH = 490
"""SQLite opens no file whose path has more than 512 bytes, and its journal has a longer name."""

Row = TypeVar("Row", bound=msgspec.Struct)


class Ledger:
    """
    An open ledger: the events, the projections and the objects of one `.planforge` directory.

    It may be used from several threads. Each reads through a connection of its own; one at a time writes.
    """

    def __init__(self, opened: Opened, directory: Path, now: Callable[[], datetime] | None) -> None:
        self.directory = directory
        self.objects = Objects(directory / "objects")
        self.listeners: list[Callable[[Recorded], None]] = []
        """Told of every event that this process appends, after it is on disk."""
        self._clock = now
        self._opened = opened
        self._local = threading.local()
        self._local.connection = opened.connection
        self._only_read = opened.connection.readonly("main")  # which no other thread may ask it
        self._connections = WeakSet([opened.connection])
        """Those that are open; a thread that ends takes its own with it."""
        self._opening = threading.Lock()
        self._writer: Writer | None = None
        self._committers: list[Committer] = []
        """One for each thread with an event loop that appends."""

    @classmethod
    def create(cls, directory: Path, now: Callable[[], datetime] | None = None) -> Self:
        """Open the ledger in `directory`, making it if there is none."""
        from planforge.kernel.locks import held

        try:
            directory.mkdir(parents=True, exist_ok=True)
            # SQLite does not wait for its turn to switch a file to WAL, so those who create take turns here.
            with held(directory / "locks" / "create.lock", "creating a ledger", wait=True):
                storage.make(directory / "ledger.db")
        except (apsw.Error, OSError, LedgerUnwritable) as error:
            why, length = in_a_line(error), len(os.fsencode(directory.absolute()))
            if length > LONGEST_PATH:
                why = f"its path has {length} bytes, and SQLite opens none with more than {LONGEST_PATH}"
            raise LedgerUnreadable(f"cannot create a ledger in `{directory}`: {why}") from error
        return cls.open(directory, now)

    @classmethod
    def open(cls, directory: Path, now: Callable[[], datetime] | None = None) -> Self:
        """Open the ledger that is in `directory`."""
        try:
            opened = storage.opened(directory / "ledger.db")
        except OSError as error:
            raise LedgerUnreadable(f"cannot open the ledger in `{directory}`: {error.strerror}") from error
        ledger = cls(opened, directory, now)
        if opened.format < FORMAT:
            ledger._bring_up_to_date()
        return ledger

    def _bring_up_to_date(self) -> None:
        def bring(db: apsw.Connection) -> None:
            if storage.number(db, "PRAGMA user_version") < FORMAT:
                db.execute(f"PRAGMA user_version = {FORMAT}")
                self._fold_anew(db)

        self._begin_to_write().alone(bring)

    def close(self) -> None:
        """Let go of the file."""
        self.stop_writing()
        for connection in list(self._connections):
            connection.close()

    def stop_writing(self) -> None:
        """Say where the ledger ends, if anything was written here; nothing more can be."""
        for committer in tuple(self._committers):
            self._end(committer)
        if self._writer is not None:
            self._writer.close()

    def _end(self, committer: Committer) -> None:
        committer.close()
        self._committers.remove(committer)

    @property
    def _connection(self) -> apsw.Connection:
        """The connection of this thread; the writing one while `transact` decides."""
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._another()
        return connection

    def _another(self) -> apsw.Connection:
        connection = storage.connect(self.directory / "ledger.db", self._opened.way)
        self._connections.add(connection)
        return connection

    def now(self) -> datetime:
        """What the clock says."""
        return datetime.now(UTC) if self._clock is None else self._clock().astimezone(UTC)

    def append(
        self, stream: str, events: Sequence[Event], *, expected: int | None, key: str = ""
    ) -> list[Recorded]:
        """Add `events` to `stream`, or raise `Conflict` if it is not at version `expected`."""
        writer = self._writer or self._begin_to_write()
        recorded = writer.append(stream, expected, events, key)
        return self._tell(recorded) if self.listeners else recorded

    async def append_async(
        self, stream: str, events: Sequence[Event], *, expected: int | None, key: str = ""
    ) -> list[Recorded]:
        """
        The same for a task, while its event loop goes on. Tasks that wait at the same time share a commit.

        A task that is cancelled meanwhile may find its events written all the same.
        """
        from asyncio import get_running_loop

        from planforge.kernel.ledger.committer import Committer
        from planforge.kernel.ledger.writer import Request

        committer: Committer | None = getattr(self._local, "committer", None)
        if committer is None or committer.loop is not get_running_loop():
            if committer is not None:
                self._end(committer)
            committer = self._local.committer = Committer(self._begin_to_write())
            self._committers.append(committer)
        return self._tell(await committer.submit(Request((Write(stream, expected, tuple(events), key),))))

    def append_all(
        self, writes: Iterable[Write], acknowledge: Mapping[str, int] | None = None
    ) -> list[Recorded]:
        """Add to several streams at once: all of it, or nothing."""
        from planforge.kernel.ledger.writer import Request

        request = Request(tuple(writes), acknowledge=acknowledge)
        return self._tell(self._begin_to_write().submit(request))

    def transact(
        self, decide: Callable[[], Iterable[Write]], acknowledge: Mapping[str, int] | None = None
    ) -> list[Recorded]:
        """
        Append what `decide` returns. While it decides nobody else writes, so what it reads here still holds.

        It may be called more than once, and in another thread; what counts is what it returns the last
        time. `acknowledge` moves cursors of subscribers in the same transaction.
        """
        from planforge.kernel.ledger.writer import Request

        request = Request(decide=decide, acknowledge=acknowledge)
        return self._tell(self._begin_to_write().submit(request))

    def _tell(self, recorded: list[Recorded]) -> list[Recorded]:
        for item in recorded:
            for listener in self.listeners:
                listener(item)
        return recorded

    def _begin_to_write(self) -> Writer:
        # Readers do not need these, and must be quick.
        from planforge.kernel.ledger.writer import Writer
        from planforge.kernel.wakeups import Waker

        with self._opening:
            if self._writer is None:
                if self._only_read:
                    why = f" ({self._opened.problem})" if self._opened.problem else ""
                    raise LedgerUnwritable(f"the ledger in `{self.directory}` can only be read{why}")
                connection = storage.WritingConnection(self.directory / "ledger.db")
                self._connections.add(connection)
                self._writer = Writer(connection, self._local, self._clock, Waker(self.directory).wake)
        return self._writer

    def query(self, statement: str, *values: str | int) -> Iterator[tuple[Any, ...]]:
        """Rows of a read-only statement, for the projections."""
        try:
            yield from self._connection.execute(statement, values)
        except apsw.BusyError as error:
            raise Locked("another process keeps the ledger busy") from error
        except apsw.ConnectionClosedError as error:
            raise LedgerUnreadable("the ledger is closed") from error
        except (apsw.Error, UnicodeDecodeError) as error:
            hint = Advice("run {}, and restore `.planforge` from a backup", Action("verify"))
            raise LedgerUnreadable(f"the ledger is corrupt: {in_a_line(error)}", hint) from error

    def select(self, kind: type[Row], rest: str, *values: str | int) -> list[Row]:
        """Rows of a projection as structures whose fields are named like its columns."""
        readers = _readers(kind)
        rows = self.query(f"SELECT {', '.join(readers)} FROM {rest}", *values)  # noqa: S608  (constants)
        return [
            kind(**{name: readers[name](value) for name, value in zip(readers, row, strict=True)})
            for row in rows
        ]

    def version(self, stream: str) -> int:
        """How many events `stream` has."""
        ((found,),) = self.query("SELECT coalesce(max(version), 0) FROM events WHERE stream = ?", stream)
        return int(found)

    def stream(self, name: str, after: int = 0) -> Iterator[Recorded]:
        """The events of one stream, oldest first, after version `after`."""
        while True:
            where = "WHERE stream = ? AND version > ? ORDER BY version LIMIT ?"
            page = list(self.read(where, name, after, PAGE))
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].version

    def since(self, seq: int = 0, limit: int = -1) -> Iterator[Recorded]:
        """All events after sequence number `seq`, oldest first."""
        left = limit if limit >= 0 else sys.maxsize
        while take := min(left, PAGE):
            page = list(self.read("WHERE seq > ? ORDER BY seq LIMIT ?", seq, take))
            yield from page
            if len(page) < take:
                return
            seq, left = page[-1].seq, left - take

    def last(self, count: int, stream: str | None = None) -> list[Recorded]:
        """The newest `count` events, oldest first."""
        where = "" if stream is None else "WHERE stream = ?"
        order = "version" if stream else "seq"
        values: tuple[str | int, ...] = (count,) if stream is None else (stream, count)
        return list(self.read(f"{where} ORDER BY {order} DESC LIMIT ?", *values))[::-1]

    def head(self) -> int:
        """The sequence number of the newest event."""
        ((seq,),) = self.query("SELECT coalesce(max(seq), 0) FROM events")
        return int(seq)

    def rebuild(self) -> None:
        """Rebuild the projections from the events."""
        self._begin_to_write().alone(self._fold_anew)

    def _fold_anew(self, db: apsw.Connection) -> None:
        from planforge.kernel import projections

        projections.rebuild(db, self.since(), GUARDS)

    def cursor(self, subscriber: str) -> int:
        """The newest event that `subscriber` has acknowledged."""
        for (seq,) in self.query("SELECT seq FROM cursors WHERE subscriber = ?", subscriber):
            return int(seq)
        return 0

    def faults(self) -> Iterator[Fault]:
        """Everything that is not what was written, as far as it can be told."""
        from planforge.kernel.ledger.faults import faults

        return faults(self.query)

    def read(self, where: str, *values: str | int) -> Iterator[Recorded]:
        """The events that a condition selects; ask for a page at a time if there may be many."""
        # Whoever looks at the tables alone need not load every kind of event.
        from planforge.kernel.ledger.rows import COLUMNS, recorded

        statement = f"SELECT {COLUMNS} FROM events {where}"  # noqa: S608  (constants)
        return (recorded(*row) for row in self.query(statement, *values))


@cache
def _readers(kind: type[msgspec.Struct]) -> dict[str, Callable[[Any], Any]]:
    """What makes of each column the field of that name."""
    return {field.name: _reader(field.type) for field in msgspec.structs.fields(kind)}


def _reader(kind: Any) -> Callable[[Any], Any]:
    """Lists and structures are stored as JSON; everything else as SQLite has it."""
    if kind is bool or kind is msgspec.Raw:
        return kind
    parts = [part for part in (kind, *get_args(kind)) if isinstance(part, type)]
    if get_origin(kind) is not tuple and not any(issubclass(part, msgspec.Struct) for part in parts):
        return lambda stored: stored
    decode = msgspec.json.Decoder(kind).decode
    return lambda stored: None if stored is None else decode(stored)
