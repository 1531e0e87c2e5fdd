"""
Waits for an agent to end by itself.

It is looked at often at first, for most are quick and somebody waits for what comes after them, and less
often the longer it takes.
"""

from __future__ import annotations

import asyncio
import time

SOON, LATER = 0.001, 0.02
"""The shortest and the longest pause between two looks, in seconds."""

SHARE = 0.1
"""How long a pause is against what was waited already."""


async def ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether a program ends within so many seconds, even if another process holds its streams."""
    # Not `asyncio.timeout`, whose end an early Python 3.11 takes for the cancellation of a cancelled task.
    began = time.monotonic()
    while process.returncode is None and (waited := time.monotonic() - began) < seconds:
        await asyncio.sleep(min(LATER, max(SOON, SHARE * waited)))
    return process.returncode is not None
