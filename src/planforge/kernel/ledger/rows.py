"""
How one event is stored: its columns, its revision, and the hash that ties it to all before it.

The hash of an event covers a hash of its own fields and the hash of the event before.
Whoever has the first two can follow the chain past an event without its content.
"""

from __future__ import annotations

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import LedgerUnreadable
from planforge.kernel.events import EVENTS, Event, Recorded
from planforge.kernel.ledger.upcasts import revision, upcast

COLUMNS = "seq, stream, version, kind, revision, key, at, body, hash"

encode = msgspec.json.Encoder(order="deterministic").encode


def read_event(seq: int, kind: str, stored: int, body: bytes) -> Event:
    """An event from its stored form, of any known revision."""
    if kind not in EVENTS:
        raise LedgerUnreadable(f"event {seq} is of kind `{kind}`, which this Planforge does not know")
    try:
        return _decoded(seq, kind, stored, body)
    except (msgspec.MsgspecError, ValueError, ArithmeticError, LookupError, TypeError) as error:
        raise LedgerUnreadable(
            f"event {seq} (`{kind}`) cannot be read: {error}",
            Advice("run {} to see what was changed", Action("verify")),
        ) from error


def recorded(
    seq: int,
    stream: str,
    version: int,
    kind: str,
    revision: int,
    key: str,
    at: str,
    body: bytes,
    digest: object,
) -> Recorded:
    """An event from its row, whose columns are `COLUMNS`."""
    event = read_event(seq, kind, revision, body)
    hashed = digest.hex() if isinstance(digest, bytes) else ""
    return Recorded(seq=seq, stream=stream, version=version, at=at, key=key, event=event, hash=hashed)


def _decoded(seq: int, kind: str, stored: int, body: bytes) -> Event:
    if stored == revision(kind):
        return msgspec.json.decode(body, type=EVENTS[kind])
    if stored > revision(kind):
        raise LedgerUnreadable(
            f"event {seq} (`{kind}`) has revision {stored}, this Planforge reads up to {revision(kind)}",
            "use the Planforge version that wrote it",
        )
    return msgspec.convert(upcast(kind, stored, msgspec.json.decode(body)), EVENTS[kind])


pack = msgspec.msgpack.Encoder().encode


def content(*fields: int | str | bytes) -> bytes:
    """The hash of one event's own fields, as they are stored."""
    return _hash(pack(fields))


def chain(previous: bytes, own: bytes) -> bytes:
    """The hash of the ledger up to an event."""
    return _hash(previous + own)


def hash_after(previous: bytes, *fields: int | str | bytes) -> bytes:
    """The hash that an event with these fields has."""
    return chain(previous, content(*fields))


def _hash(content: bytes) -> bytes:
    from hashlib import sha256  # readers do not need it, and must be quick

    return sha256(content).digest()
