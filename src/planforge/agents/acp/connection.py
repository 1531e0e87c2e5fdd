"""
JSON-RPC as the Agent Client Protocol has it: who asked what, and what was answered.

The protocol's own library is not used: its models take a second of computing to load, in every process that
asks an agent. A test holds what is here against them.

What an agent tells is taken in before anything that it sends later, so its answer comes after all that it
said before. What it asks is answered meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

import msgspec

from planforge.agents.acp.requests import Method
from planforge.agents.acp.wire import Wire
from planforge.agents.faults import one_line

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

P = TypeVar("P", bound=msgspec.Struct)
A = TypeVar("A")


class Refusal(Exception):
    """An error that a request is answered with, by the agent or by us."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Client(Protocol):
    """Our side of a conversation."""

    def hear(self, method: str, params: object) -> None:
        """Take in what needs no answer."""

    async def answer(self, method: str, params: object) -> msgspec.Struct:
        """Answer, or raise `Refusal`."""


class Connection:
    """With one agent."""

    def __init__(self, wire: Wire, client: Client) -> None:
        self._wire = wire
        self._client = client
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._asked = 0
        self._over = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._start(self._listen())

    async def ask(self, method: Method[P, A], params: P) -> A:
        """Ask the agent; raises `Refusal` if it refuses, and `ValueError` if its answer is none."""
        self._raise_if_over()
        number, answer = self._asked, asyncio.get_running_loop().create_future()
        self._asked += 1
        self._waiting[number] = answer
        try:
            await self._send(id=number, method=method.name, params=msgspec.to_builtins(params))
            return method.read(await answer)
        finally:
            self._waiting.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # it may have come when nobody waited for it any more

    async def tell(self, method: str, params: msgspec.Struct) -> None:
        """Tell the agent what needs no answer."""
        self._raise_if_over()
        await self._send(method=method, params=msgspec.to_builtins(params))

    async def close(self) -> None:
        """Listen no more, and answer nothing more."""
        self._end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self) -> None:
        try:
            with contextlib.suppress(OSError):  # there will be no more, whatever the reason
                while (message := await self._wire.receive()) is not None:
                    self._take(message)
        finally:
            self._end()

    def _take(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": str(method), "id": number}:
                self._start(self._answer(number, method, message.get("params")))
            case {"method": str(method)}:
                # What cannot be read is not heard, and nobody who fails to listen ends a conversation.
                with contextlib.suppress(Exception):
                    self._client.hear(method, message.get("params"))
            case {"id": int(number)} if number in self._waiting:
                self._resolve(self._waiting.pop(number), message)

    def _resolve(self, waiting: asyncio.Future[object], message: dict[str, Any]) -> None:
        if waiting.done():
            return
        match message:
            case {"result": result}:
                waiting.set_result(result)
            case {"error": {"code": int(code), "message": str(said)} as error}:
                waiting.set_exception(Refusal(code, said, error.get("data")))

    async def _answer(self, number: object, method: str, params: object) -> None:
        answer: dict[str, object]
        try:
            answer = {"result": msgspec.to_builtins(await self._client.answer(method, params))}
        except Refusal as refusal:
            answer = _error(refusal)
        except Exception as error:  # noqa: BLE001  (the agent is told of a fault of ours, and may go on)
            answer = _error(Refusal(INTERNAL_ERROR, "Internal error", {"details": one_line(error)}))
        with contextlib.suppress(OSError):  # an agent that is gone is noticed where it is read from
            await self._send(id=number, **answer)

    async def _send(self, **message: object) -> None:
        await self._wire.send({"jsonrpc": "2.0", **message})

    def _raise_if_over(self) -> None:
        if self._over:
            raise ConnectionError("the agent speaks no more")

    def _end(self) -> None:
        self._over = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the agent speaks no more"))
        self._waiting.clear()

    def _start(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _error(refusal: Refusal) -> dict[str, object]:
    return {"error": {"code": refusal.code, "message": str(refusal), "data": refusal.data}}
