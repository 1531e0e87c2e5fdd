"""
Bodies of effects and outcomes: small ones inside their event, large ones as objects of the ledger.
"""

from __future__ import annotations

import msgspec

from planforge.kernel.events import Payload
from planforge.kernel.ledger import Ledger

INLINE_LIMIT = 1024
"""A body larger than this many bytes becomes an object."""


def pack(ledger: Ledger, body: bytes) -> Payload:
    """Keep an encoded body, as an object if it is large."""
    if len(body) <= INLINE_LIMIT:
        return Payload(inline=msgspec.Raw(body))
    return Payload(object=ledger.objects.put(body))


def unpack(ledger: Ledger, payload: Payload) -> bytes:
    """The encoded body, wherever it is."""
    return ledger.objects.get(payload.object) if payload.object else bytes(payload.inline)
