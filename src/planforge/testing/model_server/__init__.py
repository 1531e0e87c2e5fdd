"""
A model on loopback that plays a script, for real agent programs to ask.

It speaks Anthropic's Messages, OpenAI's Chat Completions and Responses, and Gemini,
streaming or not. The script is that of the rehearsal agent: what the rehearsal
agent would do itself, this model asks the program to do with the program's own
tools, call by call, and then says the scene's text.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from planforge.testing import script as scripts
from planforge.testing.model_server.listener import LOOPBACK, Listener
from planforge.testing.model_server.requests import Request
from planforge.testing.script import Script, ScriptError

__all__ = ["ModelServer", "Request", "ScriptError"]

Source = Script | Mapping[str, object] | Path | str
"""A script, as it is or as a structure, a file, or JSON text."""


class ModelServer:
    """A model that plays a script, for as long as its context lasts."""

    def __init__(self, script: Source, *, port: int = 0) -> None:
        self._script = _read(script)
        self._port = port
        self._requests: list[Request] = []
        self._news = threading.Condition()
        self._listener: Listener | None = None

    def __enter__(self) -> ModelServer:
        self._listener = Listener(self._script, self._port, self._record)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        self._listener.end()

    @property
    def url(self) -> str:
        """Where it listens, without a path: `http://127.0.0.1:PORT`."""
        assert self._listener is not None, "it listens only inside its context"
        return f"http://{LOOPBACK}:{self._listener.server_address[1]}"

    @property
    def requests(self) -> list[Request]:
        """What it was asked so far, in the order in which it came."""
        with self._news:
            return list(self._requests)

    def wait(self, count: int = 1, *, seconds: float = 30.0) -> list[Request]:
        """Wait until so many requests have come that are no asides; return those, or raise `TimeoutError`."""

        def come() -> list[Request]:
            return [request for request in self._requests if not request.aside]

        with self._news:
            if not self._news.wait_for(lambda: len(come()) >= count, seconds):
                raise TimeoutError(f"{len(come())} of {count} requests came within {seconds} seconds")
            return come()

    def _record(self, request: Request) -> None:
        with self._news:
            self._requests.append(request)
            self._news.notify_all()


def _read(source: Source) -> Script:
    if isinstance(source, Script):
        return source
    if isinstance(source, Mapping):
        return scripts.parse(json.dumps(source).encode())
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return scripts.parse(source.encode())
    return scripts.load(str(source))
