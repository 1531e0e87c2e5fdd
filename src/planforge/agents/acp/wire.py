"""
An agent's standard streams as messages, within limits.

Without them a line that has no end would fill memory, and a program that is no agent would be listened to for
ever.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

NOISE_LIMIT = 1000
"""How many lines that are no messages an agent may write, such as greetings and warnings."""


class Wire:
    """One agent's streams."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._writer = process.stdin
        self._reader = process.stdout
        self._noise = 0
        self.fault = ""
        """Why nothing more is read, if it is not that the agent ended."""
        self.last_sign = time.monotonic()
        """When the agent last sent a message."""

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message, in ASCII: there are agents for which more characters end a line than do."""
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None if there will be no more."""
        while line := await self._line():
            await asyncio.sleep(0)  # what was said is taken in before more is read
            message = _message(line)
            if message is not None:
                self.last_sign = time.monotonic()
                return message
            self._noise += 1
            if self._noise > NOISE_LIMIT:
                self.fault = "does not speak the Agent Client Protocol"
                break
        return None

    async def _line(self) -> bytes:
        try:
            return await self._reader.readuntil()
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError as error:
            self.fault = f"wrote {error.consumed} bytes without a line break"
            return b""


def _message(line: bytes) -> dict[str, Any] | None:
    """The message that a line holds, if it is one."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match found:
        case (
            {"method": str()}
            | {"id": int(), "result": _}
            | {"id": int(), "error": {"code": int(), "message": str()}}
        ):
            return dict(found)
    return None
