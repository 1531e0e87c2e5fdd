"""
The file that a ledger is kept in: its layout, how it is opened, and why it is not.

A file that is not ours, too new or damaged is refused in one line and left as it
is. Where nothing can be written it is opened for reading, if SQLite can do that
without leaving out what is still in its write-ahead log.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from planforge.errors import LedgerUnreadable
from planforge.kernel.ledger.wal import PAGE_BYTES, unread

FORMAT = 9
"""The layout of the file, projections included. An earlier one is brought up to date when it is opened; a
later one is refused, never guessed at."""

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
CREATE TABLE cursors(subscriber TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""

GUARDS = {
    "events_are_not_changed": """\
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
    "events_are_not_removed": """\
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
    "events_are_not_replaced": """\
CREATE TRIGGER events_are_not_replaced BEFORE INSERT ON events
  WHEN NEW.seq <= (SELECT coalesce(max(seq), 0) FROM events)
    OR EXISTS (SELECT 1 FROM events WHERE stream = NEW.stream AND version = NEW.version)
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
}
"""The triggers that keep every client from changing what is recorded; our own writer has a cheaper guard."""

Connected = TypeVar("Connected", bound=apsw.Connection)

WAYS = ("", "?mode=ro", "?immutable=1")
"""How a file may be opened: to read and write; beside a writer; or, if nobody can be writing, as it is."""


OUT_OF_REACH = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError, apsw.FullError)
"""What SQLite says where it cannot make the files that it needs beside the ledger's."""


def make(path: Path) -> None:
    """Make the tables, if the file is new. Somebody else's database is not touched."""
    from planforge.kernel import projections

    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    if not number(connection, "SELECT count(*) FROM sqlite_schema"):
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(TABLES)
        connection.execute(";\n".join(GUARDS.values()))
        projections.create(connection, GUARDS)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    connection.close()


def connect(path: Path, way: str = "") -> apsw.Connection:
    """Another connection to a ledger, to read from it."""
    address = f"file:{_quoted(path)}{way}" if way else str(path)
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI if way else apsw.SQLITE_OPEN_READWRITE
    return _prepared(apsw.Connection(address, flags=flags))


def _prepared(connection: Connected) -> Connected:
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


class WritingConnection(apsw.Connection):
    """
    The connection that writes, as cheap as it can be.

    Statements that give no rows use one cursor again: a new one for each would cost about as much as the
    statement. Instead of triggers, which run with every insert, it has an authorizer, which is asked once
    for each statement that is prepared. It may add events and do nothing else to them.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        self._cursor = self.cursor()
        self._rowless: dict[str, bool] = {}
        """For each statement, whether it gives no rows."""
        _prepared(self)
        self.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        self.set_authorizer(_only_added)

    def execute(self, statements: str, bindings: Any = None, **options: Any) -> apsw.Cursor:
        """As any connection does."""
        rowless = self._rowless.get(statements)
        if rowless is None:
            changes = statements.startswith(("INSERT ", "UPDATE ", "DELETE "))
            rowless = self._rowless[statements] = changes and "RETURNING" not in statements
        if rowless:
            return self._cursor.execute(statements, bindings)
        return super().execute(statements, bindings, **options)


def _only_added(
    action: int, table: str | None, _column: str | None, _database: str | None, _trigger: str | None
) -> int:
    kept = action in (apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE, apsw.SQLITE_DROP_TABLE) and table == "events"
    return apsw.SQLITE_DENY if kept else apsw.SQLITE_OK


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A ledger's file, open."""

    connection: apsw.Connection
    way: str
    format: int
    problem: str
    """Why it can only be read, if so."""


def opened(path: Path) -> Opened:
    """A connection to the ledger at `path`."""
    if not path.exists():
        raise LedgerUnreadable(f"there is no ledger at `{path}`")
    for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if each.exists() and not each.is_file():  # one that waits for a writer would be waited for
            raise LedgerUnreadable(f"`{each}` is not a file")
    problem: apsw.Error | None = None
    for way in WAYS:
        if way == WAYS[2] and _log(path):  # which would be left out
            break
        try:
            connection = connect(path, way)
            owner = number(connection, "PRAGMA application_id")
            found = number(connection, "PRAGMA user_version")
        except apsw.Error as error:
            problem = problem or error
            if not isinstance(problem, OUT_OF_REACH):
                raise LedgerUnreadable(f"the ledger at `{path}` is corrupt: {in_a_line(error)}") from error
        else:
            _check(connection, path, owner, found)
            why = in_a_line(problem) if problem else ""
            return Opened(connection=connection, way=way, format=found, problem=why)
    raise LedgerUnreadable(
        f"cannot open the ledger at `{path}`: the directory must be writable ({in_a_line(problem)})"
    ) from problem


def streams(path: Path, pattern: str) -> list[str]:
    """The names of streams in another ledger that match a glob; none where it is not there or unreadable."""
    try:
        connection = opened(path).connection
        names = connection.execute("SELECT DISTINCT stream FROM events WHERE stream GLOB ?", (pattern,))
        found = [name for (name,) in names]
        connection.close()
    except (LedgerUnreadable, apsw.Error, OSError):
        return []
    return found


def in_a_line(error: BaseException | None) -> str:
    """What an error says. Some of SQLite's go over several lines."""
    return " ".join(str(error).split())


def _check(connection: apsw.Connection, path: Path, owner: int, found: int) -> None:
    try:
        if owner != APPLICATION_ID:
            raise LedgerUnreadable(f"`{path}` is not a Planforge ledger")
        if found > FORMAT:
            raise LedgerUnreadable(
                f"the ledger at `{path}` has format {found}, this Planforge reads format {FORMAT}",
                "use the Planforge version that wrote it",
            )
        if not connection.readonly("main") and _log(path) and (count := unread(connection, path)):
            raise LedgerUnreadable(
                f"`{path}-wal` is damaged: {count} transactions in it cannot be read",
                "restore `.planforge` from a backup; nothing here has been changed",
            )
    except LedgerUnreadable:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # leave the files as they are
        connection.close()
        raise


def number(connection: apsw.Connection, statement: str) -> int:
    """The one number that a statement gives."""
    ((value,),) = connection.execute(statement)
    return int(value)


def _log(path: Path) -> bool:
    """Whether there is anything in the write-ahead log."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path.absolute()))
