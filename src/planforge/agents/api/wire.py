"""Standard input and output as messages: one a line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any

from planforge.agents.rpc import PARSE_ERROR, Fields, Peer, Refusal

LINE_LIMIT = 50 * 1024 * 1024
"""How long one message may be, in bytes."""


class Wire:
    """The two streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def serve(self, peer: Peer) -> None:
        """Hand messages over until the client is gone; then cancel the requests in progress."""
        try:
            while line := await self._line():
                try:
                    message: Any = json.loads(line)
                except (ValueError, RecursionError) as error:
                    refusal = Refusal(PARSE_ERROR, f"not JSON: {error}")
                    await self.send({"jsonrpc": "2.0", "id": None, **refusal.response})
                    continue
                if isinstance(message, dict):
                    peer.take(message)
        finally:
            await peer.close()

    async def send(self, message: Fields) -> None:
        """Send one message."""
        with contextlib.suppress(ConnectionError):  # a client that is gone is noticed where it is read from
            self._writer.write(json.dumps(message).encode() + b"\n")
            await self._writer.drain()

    async def _line(self) -> bytes:
        try:
            return await self._reader.readuntil()
        except asyncio.IncompleteReadError as error:
            return error.partial
        except (asyncio.LimitOverrunError, ConnectionError):
            return b""


async def standard_streams() -> Wire:
    """The wire on this process's standard input and output."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return Wire(reader, asyncio.StreamWriter(transport, protocol, None, loop))
