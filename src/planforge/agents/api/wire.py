"""
JSON-RPC over standard input and output, as the Agent Client Protocol has it: one message a line.

The protocol's library is not used: it takes a second of computing to be loaded, which this program would have
to spend each time it is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_LOGGED_IN = -32000
NOT_FOUND = -32002

LINE_LIMIT = 50 * 1024 * 1024
"""How long one message may be, in bytes."""

Fields = dict[str, Any]
Handler = Callable[[Fields], Awaitable[Fields]]


class Refusal(Exception):
    """An error of the protocol that a request is answered with."""

    def __init__(self, code: int, message: str, data: Fields | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data if data is not None else {"message": message}


def invalid(message: str) -> Refusal:
    """The refusal of a request that makes no sense."""
    return Refusal(INVALID_PARAMS, message)


class Client(Protocol):
    """Who is at the other end."""

    async def notify(self, method: str, params: Fields) -> None:
        """Tell it something."""

    async def ask(self, method: str, params: Fields) -> Fields:
        """Ask it something; raises `Refusal` if it refuses."""


class Wire:
    """The two streams, with what was asked on them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._asked: dict[str, asyncio.Future[Fields]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def notify(self, method: str, params: Fields) -> None:
        """Tell the client something."""
        await self._send({"method": method, "params": params})

    async def ask(self, method: str, params: Fields) -> Fields:
        """Ask the client something and wait for its answer."""
        name = f"ask-{len(self._asked) + 1}"
        answer: asyncio.Future[Fields] = asyncio.get_running_loop().create_future()
        self._asked[name] = answer
        await self._send({"id": name, "method": method, "params": params})
        return await answer

    async def serve(self, handlers: Mapping[str, Handler]) -> None:
        """Answer until the client is gone; then stop whatever is still being answered."""
        try:
            while line := await self._line():
                self._take(line, handlers)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take(self, line: bytes, handlers: Mapping[str, Handler]) -> None:
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._start(self._send({"id": None, **_error(Refusal(PARSE_ERROR, f"not JSON: {error}"))}))
            return
        match message:
            case {"method": str(method)}:
                self._start(self._answer(method, message, handlers))
            case {"id": str(name)} if name in self._asked:
                self._resolve(name, message)

    async def _answer(self, method: str, message: Fields, handlers: Mapping[str, Handler]) -> None:
        params = message.get("params") or {}
        try:
            if method not in handlers:
                raise Refusal(METHOD_NOT_FOUND, f"unknown method `{method}`")
            if not isinstance(params, dict):
                raise invalid("`params` is not an object")
            response: Fields = {"result": await handlers[method](params)}
        except Refusal as refusal:
            response = _error(refusal)
        except Exception as error:  # noqa: BLE001  (the client is told of a fault of ours, and may go on)
            response = _error(Refusal(INTERNAL_ERROR, f"{type(error).__name__}: {error}"))
        if "id" in message:
            await self._send({"id": message["id"], **response})

    def _resolve(self, name: str, answer: Fields) -> None:
        waiting = self._asked[name]
        if waiting.done():
            return
        match answer:
            case {"result": dict(result)}:
                waiting.set_result(result)
            case _:
                waiting.set_exception(Refusal(INTERNAL_ERROR, f"the client refused: {answer.get('error')}"))

    def _start(self, doing: Awaitable[None]) -> None:
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, message: Fields) -> None:
        with contextlib.suppress(ConnectionError):  # a client that is gone is noticed where it is read from
            self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
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


def _error(refusal: Refusal) -> Fields:
    return {"error": {"code": refusal.code, "message": refusal.message, "data": refusal.data}}
