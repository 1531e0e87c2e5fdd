"""The agent's side of the streams: messages out, refusals, and noise that no agent should make."""

import json
import os
from typing import NoReturn

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
AUTH_REQUIRED, NOT_FOUND = -32000, -32002
PIECE = 65536

Fields = dict[str, object]


class Refusal(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        error: Fields = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self.response: Fields = {"error": error}


def put(descriptor: int, data: bytes) -> None:
    """Write all of `data`, past Python's buffers, so that a sudden end loses none of it."""
    while data:
        data = data[os.write(descriptor, data) :]


def send(message: Fields) -> None:
    """Send one message to the client."""
    put(1, line_of(message))


def line_of(message: Fields) -> bytes:
    """A message as it is sent."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def send_line(message: Fields, size: int) -> None:
    """Send a message in which `…` stands for as many letters as make its line so long, however long."""
    before, after = line_of(message).split(json.dumps("…").encode()[1:-1])
    left = max(size - len(before) - len(after), 0)
    put(1, before)
    while left:
        put(1, b"x" * min(left, PIECE))
        left -= min(left, PIECE)
    put(1, after)


def die(number: int) -> None:
    """End by a signal, whatever Python would make of it."""
    import signal

    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def be_deaf() -> NoReturn:
    """Live on and listen to nobody; only SIGKILL helps."""
    import signal

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()
