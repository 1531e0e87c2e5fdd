"""
Who holds which paths, what became of earlier leases, who waits, and how late it is.

A lease is in `leases` until an event ends it; whether its time has run out is for the
reader to see. `lease_time` is when the newest event about leases was recorded: time, for
leases, is never earlier than that.
"""

from __future__ import annotations

import apsw
import msgspec

from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.paths import is_glob
from planforge.kernel.projections.folding import Folds, text_of

TABLES = """
CREATE TABLE leases(
  fence INTEGER PRIMARY KEY, holder TEXT NOT NULL, paths TEXT NOT NULL, until TEXT NOT NULL,
  granted_at TEXT NOT NULL
) STRICT;
CREATE TABLE lease_paths(
  path TEXT NOT NULL, fence INTEGER NOT NULL, glob INTEGER NOT NULL, PRIMARY KEY(path, fence)
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_globs ON lease_paths(path) WHERE glob = 1;
CREATE INDEX lease_paths_by_fence ON lease_paths(fence);
CREATE TABLE ended_leases(
  fence INTEGER PRIMARY KEY, holder TEXT NOT NULL, fate TEXT NOT NULL, ended_at TEXT NOT NULL
) STRICT;
CREATE TABLE lease_waiters(
  holder TEXT PRIMARY KEY, place INTEGER NOT NULL, paths TEXT NOT NULL, until TEXT NOT NULL,
  since TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE lease_time(one INTEGER PRIMARY KEY CHECK (one = 1), at TEXT NOT NULL) STRICT;
"""

NAMES: tuple[str, ...] = ("leases", "lease_paths", "ended_leases", "lease_waiters", "lease_time")

folds = Folds()


@folds.of(events.LeaseGranted)
def _(db: apsw.Connection, event: events.LeaseGranted, recorded: Recorded) -> None:
    _pass_time(db, recorded)
    _grant(db, event.fence, event.holder, event.paths, event.until, recorded.at)


@folds.of(events.LeaseRenewed)
def _(db: apsw.Connection, event: events.LeaseRenewed, recorded: Recorded) -> None:
    _pass_time(db, recorded)
    db.execute("UPDATE leases SET until = ? WHERE fence = ?", (event.until, event.fence))


@folds.of(events.LeaseReleased)
def _(db: apsw.Connection, event: events.LeaseReleased, recorded: Recorded) -> None:
    how = f"was taken away by `{event.actor}`" if event.forced else "was released"
    _end(db, event.fence, event.holder, f"{how} ({event.reason})" if event.reason else how, recorded)


@folds.of(events.LeaseExpired)
def _(db: apsw.Connection, event: events.LeaseExpired, recorded: Recorded) -> None:
    _end(db, event.fence, event.holder, f"ran out at {event.until}", recorded)


@folds.of(events.LeasePassed)
def _(db: apsw.Connection, event: events.LeasePassed, recorded: Recorded) -> None:
    found = list(db.execute("SELECT paths FROM leases WHERE fence = ?", (event.fence,)))
    fate = f"passed to `{event.successor}` with fence {event.new_fence}"
    _end(db, event.fence, event.holder, fate, recorded)
    for (text,) in found:
        paths = msgspec.json.decode(text, type=tuple[str, ...])
        _grant(db, event.new_fence, event.successor, paths, event.until, recorded.at)


@folds.of(events.LeaseAwaited)
def _(db: apsw.Connection, event: events.LeaseAwaited, recorded: Recorded) -> None:
    _pass_time(db, recorded)
    # Whoever asks again for the same keeps its place; for anything else it goes to the end of the line.
    values = (event.holder, recorded.seq, text_of(event.paths), event.until, recorded.at)
    statement = "INSERT INTO lease_waiters VALUES (?, ?, ?, ?, ?) ON CONFLICT(holder) DO UPDATE SET"
    place = "CASE WHEN paths = excluded.paths THEN place ELSE excluded.place END"
    since = "CASE WHEN paths = excluded.paths THEN since ELSE excluded.since END"
    columns = f"until = excluded.until, place = {place}, since = {since}, paths = excluded.paths"
    db.execute(f"{statement} {columns}", values)


@folds.of(events.LeaseWaitEnded)
def _(db: apsw.Connection, event: events.LeaseWaitEnded, recorded: Recorded) -> None:
    _pass_time(db, recorded)
    db.execute("DELETE FROM lease_waiters WHERE holder = ?", (event.holder,))


def _grant(db: apsw.Connection, fence: int, holder: str, paths: tuple[str, ...], until: str, at: str) -> None:
    _drop(db, fence)
    db.execute("INSERT INTO leases VALUES (?, ?, ?, ?, ?)", (fence, holder, text_of(paths), until, at))
    for path in set(paths):
        db.execute("INSERT INTO lease_paths VALUES (?, ?, ?)", (path, fence, is_glob(path)))
    # A holder that has all it waited for waits no longer.
    for (text,) in list(db.execute("SELECT paths FROM lease_waiters WHERE holder = ?", (holder,))):
        if set(msgspec.json.decode(text, type=tuple[str, ...])) <= set(paths):
            db.execute("DELETE FROM lease_waiters WHERE holder = ?", (holder,))


def _end(db: apsw.Connection, fence: int, holder: str, fate: str, recorded: Recorded) -> None:
    _pass_time(db, recorded)
    _drop(db, fence)
    db.execute("INSERT OR REPLACE INTO ended_leases VALUES (?, ?, ?, ?)", (fence, holder, fate, recorded.at))


def _drop(db: apsw.Connection, fence: int) -> None:
    db.execute("DELETE FROM leases WHERE fence = ?", (fence,))
    db.execute("DELETE FROM lease_paths WHERE fence = ?", (fence,))


def _pass_time(db: apsw.Connection, recorded: Recorded) -> None:
    insert = "INSERT INTO lease_time VALUES (1, ?) ON CONFLICT(one) DO UPDATE SET at = excluded.at"
    db.execute(f"{insert} WHERE excluded.at > at", (recorded.at,))
