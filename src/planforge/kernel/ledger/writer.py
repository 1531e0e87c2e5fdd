"""
The writing half of a ledger: who commits, for whom, and what one event costs.

One thread at a time has the turn. It commits its own request together with those
that came while the thread before it was at the disk, then passes the turn on. So a
lone writer never waits for anybody, and many share the price of one sync. Each
still gets its own yes or no: what is refused before it wrote anything leaves the
others as they are; anything worse rolls all back, and each is tried alone.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn

import apsw
import msgspec

from planforge.errors import Conflict, LedgerUnwritable, Locked
from planforge.kernel.events import EVENTS, Event, Recorded
from planforge.kernel.ledger.rows import encode, pack
from planforge.kernel.ledger.shapes import Write
from planforge.kernel.ledger.storage import WritingConnection, in_a_line
from planforge.kernel.ledger.upcasts import revision
from planforge.kernel.projections import FOLDS

ANCHORED = 256
"""How often a writer says in `head` where the ledger ends, so that a missing end is noticed."""

REMEMBERED = 10_000
"""How many streams' versions a writer keeps in mind."""

INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Request:
    """A request to write something, and its result."""

    __slots__ = ("acknowledge", "alone", "decide", "error", "gate", "leads", "recorded", "settled", "writes")

    def __init__(
        self,
        writes: Iterable[Write] = (),
        decide: Callable[[], Iterable[Write]] | None = None,
        acknowledge: Mapping[str, int] | None = None,
        *,
        alone: bool = False,
    ) -> None:
        self.writes = writes
        self.decide = decide
        """Says what to write, once nobody else can write."""
        self.acknowledge = acknowledge or {}
        self.alone = alone
        """It shares a transaction with nobody."""
        self.gate = threading.Lock()
        """Opens when the request is settled, or when it is this thread's turn."""
        self.leads = False
        self.settled = False
        self.recorded: list[Recorded] = []
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """Nothing of it was written, and nothing will be."""
        self.error, self.settled = error, True


class _Kind(NamedTuple):
    """What has to be known of a kind of event to write one."""

    name: str
    revision: int
    decode: Callable[[bytes], Event]
    folds: tuple[Callable[[apsw.Connection, Any, Recorded], None], ...]


class Writer:
    """The writing connection, whose turn it is, and where the ledger ends."""

    def __init__(
        self,
        db: WritingConnection,
        local: threading.local,
        now: Callable[[], datetime] | None,
        wake: Callable[[], None],
    ) -> None:
        self.db = db
        self._execute = db.cursor().execute
        self._state = db.data_version
        """The state of the file, as SQLite numbers it: another one whenever anybody has written."""
        self._local = local
        self._now = now
        self._wake = wake
        self._turn = threading.Lock()
        """Held by the thread that writes; handed over, still locked, to the next one."""
        self._waiting: deque[Request] = deque()
        self._closed = False
        self._decider = 0
        """The thread in which something is being decided."""
        self._seen = -1
        """The state that the next ones are known of."""
        self._seq, self._hash, self._anchored = 0, b"", 0
        self._versions: dict[str, int] = {}
        self._kinds: dict[type[Event], _Kind] = {}
        self._second, self._date = -1, ""

    # Turns

    def append(self, stream: str, expected: int | None, events: Iterable[Event], key: str) -> list[Recorded]:
        """Have one write committed. A thread that need not wait skips the request and the group."""
        if not self._turn.acquire(False):
            return self.submit(Request((Write(stream, expected, tuple(events), key),)))
        recorded: list[Recorded] = []
        try:
            self._begin()
            self._write(stream, expected, events, key, recorded)
            self._end()
        except BaseException as error:  # noqa: BLE001  (raised again)
            self._undo(error)
        finally:
            self._pass_on()
        self._wake()
        return recorded

    def submit(self, request: Request) -> list[Recorded]:
        """Have a request committed, or raise why not."""
        if self._decider == threading.get_ident():
            raise RuntimeError("whoever decides what to append must return it, and not append it")
        if self._turn.acquire(False) or self._wait(request):
            self._lead([request])
        if request.error is not None:
            raise request.error
        return request.recorded

    def submit_all(self, requests: list[Request]) -> None:
        """Have requests of others committed together; each is told what became of it."""
        while requests:
            if self._turn.acquire(False) or self._wait(requests[0]):
                return self._lead(requests)
            requests = requests[1:]  # another thread has settled the first
        return None

    def alone(self, work: Callable[[apsw.Connection], None]) -> None:
        """Do something in a transaction that nothing else is part of."""

        def decide() -> Iterable[Write]:
            work(self.db)
            return ()

        self.submit(Request(decide=decide, alone=True))

    def close(self) -> None:
        """Record where the ledger ends. Requests that still wait are refused."""

        def last(_: apsw.Connection) -> None:
            self._closed = True
            self._anchor()

        if not self._closed:
            with suppress(Locked, LedgerUnwritable):
                self.alone(last)
        self._closed = True

    def _wait(self, request: Request) -> bool:
        """Wait until another thread has settled the request, or has given the turn to this one."""
        gate = request.gate
        gate.acquire()
        self._waiting.append(request)
        if self._turn.acquire(False):  # whoever had it left before it could see this request
            self._waiting.remove(request)
            return True
        try:
            gate.acquire()
        except BaseException:  # a signal; the turn must not be lost with this thread
            try:
                self._waiting.remove(request)
            except ValueError:
                gate.acquire()
                if request.leads:
                    self._pass_on()
            raise
        return request.leads

    def _lead(self, own: list[Request]) -> None:
        """Commit for this thread and for those who wait."""
        others: list[Request] = []
        try:
            while self._waiting and not own[0].alone and not self._waiting[0].alone:
                others.append(self._waiting.popleft())
            self._settle(own + others)
        finally:
            # Those who are not settled had a leader that was interrupted, and wait for another.
            self._waiting.extendleft(other for other in reversed(others) if not other.settled)
            for other in others:
                if other.settled:
                    other.gate.release()
            self._pass_on()
        self._wake()

    def _pass_on(self) -> None:
        """Give the turn to the next in line, if there is one."""
        while True:
            if self._waiting:
                following = self._waiting.popleft()
                following.leads = True
                return following.gate.release()
            self._turn.release()
            # Somebody may have come to wait just before the turn was free, and not have got it.
            if not self._waiting or not self._turn.acquire(False):
                return None

    # Transactions

    def _settle(self, group: list[Request]) -> None:
        """Try all at once, and each alone if that does not work."""
        try:
            self._commit(group)
        except Locked as error:
            for request in group:
                request.fail(error)
        except Exception as error:  # noqa: BLE001  (raised again by whoever asked)
            if len(group) == 1:
                return group[0].fail(error)
            for request in group:
                self._settle([request])
        return None

    def _commit(self, group: list[Request]) -> None:
        ending = False
        try:
            self._begin()
            for request in group:
                self._carry_out(request)
            ending = True
            self._end()
        except BaseException as error:  # noqa: BLE001  (raised again)
            if ending and isinstance(error, KeyboardInterrupt) and not self.db.in_transaction:
                for request in group:  # it came too late: all is written
                    request.settled = True
            self._undo(error)
        for request in group:
            request.settled = True

    def _begin(self) -> None:
        if self._closed:
            raise LedgerUnwritable("the ledger is closed")
        self._execute("BEGIN IMMEDIATE")
        if self._state() != self._seen or len(self._versions) > REMEMBERED:
            self._look_at_the_end()

    def _end(self) -> None:
        if self._seq - self._anchored >= ANCHORED:
            self._anchor()
        self._execute("COMMIT")
        self._seen = self._state()

    def _undo(self, error: BaseException) -> NoReturn:
        """Leave the ledger as it was, and raise what stands in the way."""
        self._seen = -1
        if not self._closed and self.db.in_transaction:
            self._execute("ROLLBACK")
        if isinstance(error, apsw.BusyError):
            raise Locked("another process keeps the ledger busy") from error
        if isinstance(error, apsw.Error):
            raise LedgerUnwritable(f"the ledger cannot be written: {in_a_line(error)}") from error
        raise error

    def _carry_out(self, request: Request) -> None:
        before = self._seq
        recorded: list[Recorded] = []
        request.recorded, request.error = recorded, None
        try:
            writes = request.writes if request.decide is None else self._decided(request.decide)
            for stream, expected, events, key in writes:
                self._write(stream, expected, events, key, recorded)
            for subscriber, seq in request.acknowledge.items():
                self._acknowledge(subscriber, seq)
        except (apsw.Error, KeyboardInterrupt):
            raise
        except BaseException as error:
            if request.alone or self._seq != before:
                raise
            request.error = error  # and the others are as they were

    def _decided(self, decide: Callable[[], Iterable[Write]]) -> Iterable[Write]:
        """What to write, by somebody who reads through the writing connection meanwhile."""
        reading = getattr(self._local, "connection", None)
        self._local.connection = self.db
        self._decider = threading.get_ident()
        try:
            return list(decide())
        finally:
            self._decider = 0
            self._local.connection = reading

    # Events

    def _write(
        self, stream: str, expected: int | None, events: Iterable[Event], key: str, recorded: list[Recorded]
    ) -> None:
        version = self._versions.get(stream)
        if version is None:
            version = self._look_at(stream)
        if expected is not None and version != expected:
            raise Conflict(f"stream `{stream}` is at version {version}, not {expected}")
        at = self._time()
        for event in events:
            kind, shape, decode, folds = self._kinds.get(type(event)) or self._kind(type(event))
            body = encode(event)
            try:
                event = decode(body)  # noqa: PLW2901  (as whoever reads it will have it)
            except msgspec.MsgspecError as error:  # it would make the whole ledger unreadable, for good
                raise TypeError(f"`{kind}` cannot be recorded: {error}") from error
            seq, version = self._seq + 1, version + 1
            # This is `chain(self._hash, content(...))`, by which it is checked, without the calls.
            own = sha256(pack((seq, stream, version, kind, shape, key, at, body))).digest()
            digest = sha256(self._hash + own).digest()
            self._execute(INSERT, (seq, stream, version, kind, shape, key, at, body, digest))
            self._seq, self._hash = seq, digest
            item = Recorded(
                seq=seq, stream=stream, version=version, at=at, key=key, event=event, hash=digest.hex()
            )
            recorded.append(item)
            for fold in folds:
                fold(self.db, event, item)
        self._versions[stream] = version

    def _kind(self, kind: type[Event]) -> _Kind:
        name = kind.__name__
        if EVENTS.get(name) is not kind:
            raise TypeError(f"`{name}` cannot be recorded: it is not one of the events")
        decode = msgspec.json.Decoder(kind).decode
        known = self._kinds[kind] = _Kind(name, revision(name), decode, FOLDS.get(kind, ()))
        return known

    def _time(self) -> str:
        if self._now is not None:
            return self._now().astimezone(UTC).isoformat(timespec="microseconds")
        now = time.time_ns() // 1000
        if now // 1_000_000 != self._second:  # most events fall into the same second as the one before
            self._second = now // 1_000_000
            self._date = datetime.fromtimestamp(self._second, UTC).isoformat()[:-6]
        return f"{self._date}.{str(now)[-6:]}+00:00"

    def _look_at_the_end(self) -> None:
        self._seq, self._hash = 0, b""
        self._versions.clear()
        for seq, digest in self._execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1"):
            self._seq, self._hash = seq, digest
        self._anchored = min(self._anchored, self._seq)

    def _look_at(self, stream: str) -> int:
        statement = "SELECT coalesce(max(version), 0) FROM events WHERE stream = ?"
        ((version,),) = self._execute(statement, (stream,))
        return int(version)

    def _acknowledge(self, subscriber: str, seq: int) -> None:
        """Move a subscriber's cursor on; it never goes back."""
        insert = "INSERT INTO cursors VALUES (?, ?) ON CONFLICT(subscriber) DO UPDATE SET seq = excluded.seq"
        self._execute(f"{insert} WHERE excluded.seq > seq", (subscriber, seq))

    def _anchor(self) -> None:
        """Say where the ledger ends."""
        self._execute("UPDATE head SET seq = ?, hash = ? WHERE seq < ?", (self._seq, self._hash, self._seq))
        self._anchored = self._seq
