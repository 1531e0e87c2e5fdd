"""
HTTP on loopback: a listening socket, and a thread for each connection.

Listening ends when it is told to, whatever the clients do: every wait hears of the
end, and the connections that are still open are cut.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer

from planforge.testing.model_server.handler import Handler
from planforge.testing.model_server.moves import Times
from planforge.testing.model_server.requests import Request
from planforge.testing.script import Script

LOOPBACK = "127.0.0.1"
POLL = 0.05
GRACE = 2.0


class Listener(ThreadingHTTPServer):
    """The socket, the threads and what they share."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, script: Script, port: int, record: Callable[[Request], None]) -> None:
        self.script = script
        self.record = record
        self.times = Times()
        self.ending = threading.Event()
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        super().__init__((LOOPBACK, port), Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(POLL,), daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def end(self) -> None:
        """Stop listening, cut what is open and wait for the threads."""
        self.ending.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            still_open = dict(self._open)
        for connection in still_open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in [self._thread, *still_open.values()]:
            thread.join(GRACE)

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Answer one connection, and know it while it is open."""
        assert isinstance(request, socket.socket)
        with self._lock:
            self._open[request] = threading.current_thread()
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say what went wrong, unless a client went away or the server ends."""
        if not isinstance(sys.exception(), OSError) and not self.ending.is_set():
            super().handle_error(request, client_address)  # type: ignore[arg-type]
