"""The connection with one agent: its streams read to their end, and typed questions to it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TypeVar

import msgspec

from planforge.agents.acp.requests import Method
from planforge.agents.acp.wire import Wire
from planforge.agents.rpc import Party, Peer

P = TypeVar("P", bound=msgspec.Struct)
A = TypeVar("A")


class Connection:
    """With one agent."""

    def __init__(self, wire: Wire, client: Party) -> None:
        self._wire = wire
        self._peer = Peer(wire.send, client)
        self._listening = asyncio.ensure_future(self._listen())

    async def ask(self, method: Method[P, A], params: P) -> A:
        """Ask the agent; raises `Refusal` if it refuses, and `ValueError` if its answer is not valid."""
        return method.read(await self._peer.ask(method.name, params))

    async def tell(self, method: str, params: msgspec.Struct) -> None:
        """Tell the agent what needs no answer."""
        await self._peer.tell(method, params)

    async def close(self) -> None:
        """Listen no more, and answer nothing more."""
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        await self._peer.close()

    async def _listen(self) -> None:
        try:
            with contextlib.suppress(OSError):  # there will be no more, whatever the reason
                while (message := await self._wire.receive()) is not None:
                    self._peer.take(message)
        finally:
            self._peer.end()
