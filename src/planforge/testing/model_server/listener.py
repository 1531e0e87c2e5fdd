"""
HTTP on loopback: a listening socket, a thread for each connection, a move of the model for each request.

Requests are bounded, and a client that goes away while it is kept waiting is noticed,
so no thread outlives what it is for. Listening ends when it is told to, whatever the
clients do: every wait hears of the end, and the connections that are still open are cut.
"""

from __future__ import annotations

import contextlib
import json
import math
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import urlsplit

from planforge.testing.model_server import anthropic, chat, gemini, responses
from planforge.testing.model_server.conversation import Asked, Dialect, Limit
from planforge.testing.model_server.moves import Move, Times, is_aside, next_move
from planforge.testing.model_server.requests import Request
from planforge.testing.script import Script, actions

BODY_LIMIT = 64 << 20
IDLE_SECONDS = 600.0
LOOPBACK = "127.0.0.1"
POLL = 0.05
GRACE = 2.0
MODEL = "scripted-1"
DIALECTS: Mapping[str, Dialect] = {
    "/messages": anthropic,
    "/chat/completions": chat,
    "/responses": responses,
    ":generateContent": gemini,
    ":streamGenerateContent": gemini,
}
"""The dialects, by how the paths of their requests end."""
SAID = {401: "invalid x-api-key", 429: "This request would exceed your rate limit.", 529: "Overloaded"}


class Cut(OSError):
    """The connection ends here, because the script, the client or the server says so."""


class Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_SECONDS

    @property
    def shared(self) -> Listener:
        """What all connections share."""
        return cast(Listener, self.server)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Say nothing: what was asked is on record."""

    def do_HEAD(self) -> None:
        """Whether anybody is there."""
        self._send(200, {}, b"")

    def do_GET(self) -> None:
        """Which models there are; all else is not found."""
        path = urlsplit(self.path).path.rstrip("/")
        if path.endswith("/models"):
            self._json(200, _models(gemini="/v1beta" in path))
        elif "/models/" in path:
            self._json(200, {**_model(path.rpartition("/")[2]), "name": path.rpartition("/v1beta/")[2]})
        elif not path:
            self._json(200, {})
        else:
            self._json(404, {"error": {"type": "not_found_error", "message": f"nothing at `{path}`"}})

    def do_POST(self) -> None:
        """Ask the model."""
        path = urlsplit(self.path).path
        body = self._body()
        if body is None:
            return
        dialect = next((found for end, found in DIALECTS.items() if path.endswith(end)), None)
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": _estimate(body)})
        elif path.endswith(":countTokens"):
            self._json(200, {"totalTokens": _estimate(body)})
        elif dialect is None:
            self._json(404, {"error": {"type": "not_found_error", "message": f"nothing at `{path}`"}})
        else:
            self._answer(dialect, path, body)

    def _body(self) -> Mapping[str, object] | None:
        """The request's JSON; None if it was refused."""
        try:
            size = int(self.headers.get("Content-Length", "-1"))
        except ValueError:
            size = -1
        if not 0 <= size <= BODY_LIMIT:
            self.close_connection = True
            status, problem = (413, "is too large") if size > BODY_LIMIT else (411, "has no length")
            self._json(status, {"error": {"message": f"the request {problem}"}})
            return None
        try:
            body: object = json.loads(self.rfile.read(size))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self._json(400, {"error": {"message": "the request is not a JSON object"}})
            return None
        return body

    def _answer(self, dialect: Dialect, path: str, body: Mapping[str, object]) -> None:
        at = time.time()
        asked = dialect.parse(path, body)
        move = next_move(self.shared.script, asked, self.shared.times)
        self.shared.record(_recorded(dialect, self.path, asked, move, at))
        self._wait(move.wait)
        match move.fault:
            case actions.Drop():
                raise Cut
            case actions.Http() as fault:
                self._refuse(dialect, fault)
            case actions.Error(_, message):
                self._refuse(dialect, actions.Http(500, message, None, None, 0))
            case actions.Raw(_, text):
                self._send(200, {"Content-Type": _kind(asked)}, text.encode(errors="replace"))
            case actions.Bytes(data):
                self._send(200, {"Content-Type": _kind(asked)}, data)
            case _ if asked.stream:
                self._stream(dialect.stream(asked, move.reply), move)
            case _:
                self._plain(json.dumps(dialect.plain(asked, move.reply)).encode(), move)

    def _refuse(self, dialect: Dialect, fault: actions.Http) -> None:
        said = fault.message or SAID.get(fault.status, "Internal server error")
        now = time.time()
        headers, refusal = dialect.refuse(Limit(fault.status, said, fault.resets_at(now), now))
        body = json.dumps(refusal) if fault.body is None else fault.body
        self._send(fault.status, {"Content-Type": "application/json", **headers}, body.encode())

    def _plain(self, body: bytes, move: Move) -> None:
        headers = {"Content-Type": "application/json"}
        if isinstance(move.fault, actions.Truncate):
            self._send(200, headers, body[: len(body) // 2], size=len(body))
            raise Cut
        self._wait(move.pace)
        self._send(200, headers, body)

    def _stream(self, events: Iterable[bytes], move: Move) -> None:
        """Send the events as they come, or only half of them and half of the next."""
        self.send_response(200)
        for name, value in {
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-cache",
            "Transfer-Encoding": "chunked",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        found = list(events)
        cut = len(found) // 2 if isinstance(move.fault, actions.Truncate) else len(found)
        for index, event in enumerate(found):
            if index == cut:
                self._chunk(event[: len(event) // 2])
                raise Cut
            if index:
                self._wait(move.pace)
            self._chunk(event)
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _json(self, status: int, value: object) -> None:
        self._send(status, {"Content-Type": "application/json"}, json.dumps(value).encode())

    def _send(self, status: int, headers: Mapping[str, str], body: bytes, *, size: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        self.wfile.write(body)

    def _wait(self, seconds: float) -> None:
        """Wait, unless the server ends or the client goes first."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.shared.ending.wait(min(left, POLL)) or self._is_alone():
                raise Cut

    def _is_alone(self) -> bool:
        connection: socket.socket = self.connection
        poll = select.poll()  # which, unlike `select`, does not mind how many files are open
        poll.register(connection, select.POLLIN)
        if not poll.poll(0):
            return False
        try:
            return not connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True


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


def _recorded(dialect: Dialect, path: str, asked: Asked, move: Move, at: float) -> Request:
    return Request(
        dialect=dialect.__name__.rpartition(".")[2],
        path=path,
        model=asked.model,
        prompt=asked.prompt,
        history=asked.history,
        system=asked.system,
        tools=tuple(tool.name for tool in asked.tools),
        cwd=asked.cwd,
        status=_status(move),
        scene=move.scene,
        aside=is_aside(asked),
        at=at,
    )


def _status(move: Move) -> int:
    match move.fault:
        case actions.Http(status):
            return status
        case actions.Error():
            return 500
        case actions.Drop():
            return 0
    return 0 if move.wait == math.inf else 200


def _kind(asked: Asked) -> str:
    return "text/event-stream" if asked.stream else "application/json"


def _estimate(body: Mapping[str, object]) -> int:
    return len(json.dumps(body)) // 4


def _model(name: str) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": name,
        "created": 0,
        "owned_by": "scripted",
    }


def _models(*, gemini: bool) -> dict[str, object]:
    if gemini:
        return {"models": [{"name": f"models/{MODEL}", "supportedGenerationMethods": ["generateContent"]}]}
    return {"object": "list", "data": [_model(MODEL)], "has_more": False, "first_id": MODEL, "last_id": MODEL}
