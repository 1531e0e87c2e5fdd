"""The rehearsal agent as a process with its pipes bare."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import planforge

PATIENCE = 30.0
SOURCES = str(Path(planforge.__file__).parents[1])
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCES}
COMMAND = [sys.executable, "-m", "planforge.testing.rehearsal"]

Message = dict[str, Any]


def scene(*actions: Message, when: str = "", match: dict[str, str] | None = None) -> Message:
    return {"when": [when], "match": match or {}, "do": list(actions)}


class Wire:
    """The agent's process with its pipes bare."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            env={**ENVIRONMENT, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self._rest = b""
        self._requests = 0

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def notify(self, method: str, **params: object) -> None:
        self.send_raw(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def request(self, method: str, **params: object) -> int:
        self._requests += 1
        message = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params}
        self.send_raw(json.dumps(message).encode() + b"\n")
        return self._requests

    def line(self) -> bytes:
        """The next line, or what there is of it when stdout ends."""
        assert self.process.stdout is not None
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            assert ready, "the agent says nothing"
            data = self.process.stdout.read(65536)
            if not data:
                line, self._rest = self._rest, b""
                return line
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def message(self) -> Message:
        message = json.loads(self.line())
        assert isinstance(message, dict)
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, method: str, **params: object) -> Message:
        """Send a request and return the answer to it, passing over everything else."""
        request = self.request(method, **params)
        while (message := self.message()).get("id") != request:
            pass
        return message

    def prompt(self, room: Path, text: str = "go") -> int:
        """Open a session and send it a prompt without waiting for the answer."""
        session = self.answer("session/new", cwd=str(room), mcpServers=[])["result"]["sessionId"]
        return self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def end(self) -> tuple[int, str]:
        """Leave and wait for the process to end; returns its exit code and what it wrote to stderr."""
        self.leave()
        code = self.process.wait(PATIENCE)
        assert self.process.stderr is not None
        return code, self.process.stderr.read().decode()

    def leave(self) -> None:
        """Close the agent's stdin, as a client that dies does."""
        assert self.process.stdin is not None
        self.process.stdin.close()


def eventually(true: Callable[[], bool]) -> None:
    for _ in _attempts():
        if true():
            return


def _attempts() -> Iterator[None]:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        yield
        time.sleep(0.01)
    pytest.fail("waited in vain")
