"""
JSON-RPC as the Agent Client Protocol has it, for either side: who asked what, and what was answered.

The protocol's own library is not used: its models take a second of computing to load, in every process that
asks an agent or is one. A test holds what is here against them.

What the other side tells is taken in before anything that it sends later, so its answer comes after all that
it said before. What it asks is answered meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import msgspec

from planforge.agents.faults import one_line

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND = -32002

Fields = dict[str, Any]
Send = Callable[[Fields], Awaitable[None]]


class Refusal(Exception):
    """An error that a request is answered with, by the other side or by us."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    @property
    def response(self) -> Fields:
        """The refusal as it is sent."""
        return {"error": {"code": self.code, "message": str(self), "data": self.data}}


class Party(Protocol):
    """Our side of a conversation."""

    def hear(self, method: str, params: object) -> None:
        """Take in what needs no answer."""

    async def answer(self, method: str, params: object) -> object:
        """Answer, or raise `Refusal`."""


class Nobody:
    """The side of somebody who only asks: hears nothing, and answers nothing."""

    def hear(self, method: str, params: object) -> None:
        """Pass over it."""

    async def answer(self, method: str, params: object) -> object:
        """Refuse it."""
        del params
        raise Refusal(METHOD_NOT_FOUND, "Method not found", {"method": method})


class Peer:
    """The other side of a conversation."""

    def __init__(self, send: Send, party: Party) -> None:
        self._write = send
        self._party = party
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0
        self._over = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, method: str, params: object) -> Any:
        """Ask it something; raises `Refusal` if it refuses, `ConnectionError` if it is gone."""
        self._raise_if_over()
        number, answer = self._asked, asyncio.get_running_loop().create_future()
        self._asked += 1
        self._waiting[number] = answer
        try:
            await self._send(id=number, method=method, params=msgspec.to_builtins(params))
            return await answer
        finally:
            self._waiting.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # it may have come when nobody waited for it any more

    async def tell(self, method: str, params: object) -> None:
        """Tell it what needs no answer."""
        self._raise_if_over()
        await self._send(method=method, params=msgspec.to_builtins(params))

    def take(self, message: Fields) -> None:
        """Take in a message of its."""
        match message:
            case {"method": str(method), "id": number}:
                self._start(self._answer(number, method, message.get("params")))
            case {"method": str(method)}:
                # What cannot be read is not heard, and nobody who fails to listen ends a conversation.
                with contextlib.suppress(Exception):
                    self._party.hear(method, message.get("params"))
            case {"id": int(number)} if number in self._waiting:
                _resolve(self._waiting.pop(number), message)

    def end(self) -> None:
        """It says nothing more: every request that waits for an answer fails."""
        self._over = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the other side speaks no more"))
        self._waiting.clear()

    async def close(self) -> None:
        """Ask and answer nothing more."""
        self.end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, number: object, method: str, params: object) -> None:
        try:
            response: Fields = {"result": msgspec.to_builtins(await self._party.answer(method, params))}
        except Refusal as refusal:
            response = refusal.response
        except Exception as error:  # noqa: BLE001  (the other side is told of a fault of ours, and may go on)
            response = Refusal(INTERNAL_ERROR, "Internal error", {"details": one_line(error)}).response
        with contextlib.suppress(OSError):  # one that is gone is noticed where it is read from
            await self._send(id=number, **response)

    async def _send(self, **message: object) -> None:
        await self._write({"jsonrpc": "2.0", **message})

    def _raise_if_over(self) -> None:
        if self._over:
            raise ConnectionError("the other side speaks no more")

    def _start(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _resolve(waiting: asyncio.Future[Any], message: Fields) -> None:
    if waiting.done():
        return
    match message:
        case {"result": result}:
            waiting.set_result(result)
        case {"error": {"code": int(code), "message": str(said)} as error}:
            waiting.set_exception(Refusal(code, said, error.get("data")))
        case _:
            waiting.set_exception(Refusal(INTERNAL_ERROR, "the answer is neither a result nor an error"))
