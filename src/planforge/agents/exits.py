"""
Hears the last words of an agent, and waits for it to end by itself.

It is looked at often at first, for most are quick and somebody waits for what comes after them, and less
often the longer it takes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

SOON, LATER = 0.001, 0.02
"""The shortest and the longest pause between two looks, in seconds."""

LAST_WORDS = 2000
"""How many bytes of an agent's standard error are kept."""

SHARE = 0.1
"""How long a pause is against what was waited already."""


async def ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether a program ends within so many seconds, even if another process holds its streams."""
    # Not `asyncio.timeout`, whose end an early Python 3.11 takes for the cancellation of a cancelled task.
    began = time.monotonic()
    while process.returncode is None and (waited := time.monotonic() - began) < seconds:
        await asyncio.sleep(min(LATER, max(SOON, SHARE * waited)))
    return process.returncode is not None


async def drain(stream: asyncio.StreamReader, words: bytearray, alive: Callable[[], None]) -> None:
    """Read standard error to its end and keep the last of it in `words`; `alive` is called for every bit."""
    while chunk := await stream.read(65536):
        alive()
        words += chunk
        del words[:-LAST_WORDS]
