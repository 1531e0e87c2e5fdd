"""
What a program prints, as lines of JSON, within limits.

Nothing that a program prints may fill memory: a line has a limit and so has all of it together. A few lines
may be something else than messages, such as a greeting or a warning; a program that prints nothing but such
lines is no agent. Lines are handed on undecoded, and `decoded` looks only at what is asked for in them, so
that a line which is large or nested costs no more than its bytes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import msgspec

LINE_LIMIT = 50 * 1024 * 1024
"""How long one line may be."""

OUTPUT_LIMIT = 1024 * 1024 * 1024
"""How much a program may print in all."""

NOISE_LIMIT = 1000
"""How many lines may be no messages."""

MESSAGE_LIMIT = 200_000
"""How many may be messages: each one costs time, however short it is."""

LOOKED_AT = 4 * 1024 * 1024
"""How many bytes of a part of a line are looked into; what a tool returned may be far more."""

CHUNK = 256 * 1024
NOTHING = msgspec.Raw(b"null")

Shape = TypeVar("Shape")

ESCAPED = re.compile(rb"\\\\|(\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..")


class Unreadable(Exception):
    """Nothing more is read of a program; says what it did, as the end of a sentence about it."""


async def read(stream: asyncio.StreamReader, alive: Callable[[], None]) -> AsyncIterator[bytes]:
    """The lines of a stream, without those that are empty; `alive` is called whenever something came."""
    kept, total = bytearray(), 0
    while chunk := await stream.read(CHUNK):
        alive()
        total += len(chunk)
        if total > OUTPUT_LIMIT:
            raise Unreadable(f"printed more than {OUTPUT_LIMIT} bytes")
        first, *more = chunk.split(b"\n")
        kept += first
        for line in more:
            if whole := bytes(kept).strip():
                yield whole
            kept = bytearray(line)
        if len(kept) > LINE_LIMIT:
            raise Unreadable(f"printed {len(kept)} bytes without a line break")
        await asyncio.sleep(0)  # a program that never pauses must not keep everybody else from their turn
    if whole := bytes(kept).strip():
        yield whole


def decoded(line: bytes | msgspec.Raw, shape: msgspec.json.Decoder[Shape]) -> Shape | None:
    """What a line says, if it has that shape."""
    try:
        return shape.decode(line)
    except (msgspec.ValidationError, RecursionError):
        return None
    except ValueError:  # it is no JSON, or it holds half of a character, which programs in JavaScript print
        mended = _whole_characters(bytes(line))
    try:
        return shape.decode(mended) if mended else None
    except (ValueError, RecursionError):
        return None


def inner(part: msgspec.Raw, shape: msgspec.json.Decoder[Shape]) -> Shape | None:
    """What a part of a line says, if it has that shape and is not too much to look at."""
    return decoded(part, shape) if len(part) <= LOOKED_AT else None


def _whole_characters(line: bytes) -> bytes:
    """The line with a mark where there is half of a character; empty if there is none."""
    mended = ESCAPED.sub(lambda found: found[0] if found[1] or found[0] == b"\\\\" else b"\\ufffd", line)
    return mended if mended != line else b""
