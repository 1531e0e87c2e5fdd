"""Requests to write to a ledger and faults found in one; light, because every reader loads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from planforge.kernel.events import Event


class Write(NamedTuple):
    """Events to append to one stream, by a writer that has seen `expected` of them (None: however many)."""

    stream: str
    expected: int | None
    events: Sequence[Event]
    key: str = ""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Where a ledger is not what was written."""

    seq: int
    problem: str
    stream: str = ""
    kind: str = ""
