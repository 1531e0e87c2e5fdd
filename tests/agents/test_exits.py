"""Waiting for programs that end at once, late or never."""

from __future__ import annotations

import asyncio
import time

from planforge.agents import exits


async def _waited(command: str, seconds: float) -> tuple[bool, float]:
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", command)
    began = time.monotonic()
    try:
        return await exits.ended(process, seconds), time.monotonic() - began
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def test_one_that_ends_is_seen_to_end() -> None:
    assert asyncio.run(_waited("exit 3", 60))[0]


def test_one_that_does_not_end_is_waited_for_no_longer_than_that() -> None:
    ended, taken = asyncio.run(_waited("exec sleep 600", 0.2))
    assert not ended
    assert 0.2 <= taken < 30
