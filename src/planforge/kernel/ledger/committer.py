"""
Appending from an event loop: a task awaits, the loop goes on, and one thread commits.

What the tasks ask for while the thread is at the disk goes into one commit, so many
tasks share the price of one sync without a thread for each. Every task still gets
its own yes or no.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from queue import SimpleQueue

from planforge.errors import LedgerUnwritable
from planforge.kernel.events import Recorded
from planforge.kernel.ledger.writer import Request, Writer

Asked = list[tuple[Request, asyncio.Future[list[Recorded]]]]


class Committer:
    """Has the requests of one loop's tasks committed, together where it can."""

    def __init__(self, writer: Writer) -> None:
        self.loop = asyncio.get_running_loop()
        self._writer = writer
        self._asked: Asked = []
        self._busy = self._closed = False
        self._groups: SimpleQueue[Asked] = SimpleQueue()
        self._thread = threading.Thread(target=self._commit, name="planforge-committer", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> asyncio.Future[list[Recorded]]:
        """The result of the request, later. A task that stops waiting may find it written all the same."""
        future: asyncio.Future[list[Recorded]] = self.loop.create_future()
        self._asked.append((request, future))
        if not self._busy:
            self._busy = True
            self.loop.call_soon(self._send)  # after the other tasks that are about to ask
        return future

    def close(self) -> None:
        """End the thread when its requests are done. Later requests are refused."""
        self._closed = True
        self._groups.put([])
        self._thread.join()

    def _send(self) -> None:
        group = [(request, future) for request, future in self._asked if not future.cancelled()]
        self._asked = []
        self._busy = bool(group) and not self._closed
        if self._busy:
            self._groups.put(group)
        for _, future in group if self._closed else ():
            future.set_exception(LedgerUnwritable("the ledger is closed"))

    def _commit(self) -> None:
        while group := self._groups.get():
            try:
                self._writer.submit_all([request for request, _ in group])
            except BaseException as error:  # noqa: BLE001  (raised again in every task that asked)
                for request, _ in group:
                    request.error = request.error or error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self.loop.call_soon_threadsafe(self._answer, group)

    def _answer(self, group: Asked) -> None:
        for request, future in group:
            if future.done():
                continue
            if request.error is not None:
                future.set_exception(request.error)
            else:
                future.set_result(request.recorded)
        self._send()
