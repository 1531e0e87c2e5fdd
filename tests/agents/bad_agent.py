"""
An agent that misbehaves: `bad_agent.py acp|claude|codex BEHAVIOUR`. Only for tests.

It speaks the Agent Client Protocol, or the JSON lines of `claude -p` or `codex exec --json`, as far as
needed to be listened to, and then does the one bad thing that it was started for. Where that leaves room for
a proper answer it also does the work that the demo's developer is asked for, so that only the bad thing can
be the reason if its work is not taken. It needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEBIBYTE = b"x" * (1024 * 1024)
BOMB = "\x1b]0;pwned\x07\x1b[2J\x1b[1;31m\x00\x08\x07\x9b31mBOMB\u202e\r"
"""What a terminal must never get to see."""

SPEAKS, BEHAVIOUR = sys.argv[1:3]
DONE = "The work is done."


def put(data: bytes) -> None:
    """Write all of it to standard output."""
    while data:
        data = data[os.write(1, data) :]


def send(message: dict[str, Any]) -> None:
    """One line."""
    put(json.dumps(message).encode() + b"\n")


# How each kind says the same


class Acp:
    """The Agent Client Protocol: what is said goes with a prompt that waits for its answer."""

    def __init__(self) -> None:
        self._request: object = None

    def prompt(self) -> str:
        """Answer until there is a prompt."""
        for line in sys.stdin:
            message = json.loads(line)
            method, number = message.get("method"), message.get("id")
            if method == "session/prompt":
                self._request = number
                return "".join(block.get("text", "") for block in message["params"]["prompt"])
            if number is not None and method:
                made = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}}
                result = made.get(method, {"sessionId": "bad-1"})
                send({"jsonrpc": "2.0", "id": number, "result": result})
        sys.exit(0)

    def said(self, text: str) -> dict[str, Any]:
        """A piece of text."""
        content = {"type": "text", "text": text}
        return self._update({"sessionUpdate": "agent_message_chunk", "content": content})

    def tool(self, title: str) -> dict[str, Any]:
        """A tool call."""
        return self._update(
            {"sessionUpdate": "tool_call", "toolCallId": "1", "title": title, "kind": "execute"}
        )

    def ended(self, text: str) -> dict[str, Any]:
        """The end of the turn."""
        del text
        return {"jsonrpc": "2.0", "id": self._request, "result": {"stopReason": "end_turn"}}

    def refused(self, words: str) -> dict[str, Any]:
        """An end with an error."""
        return {"jsonrpc": "2.0", "id": self._request, "error": {"code": -32603, "message": words}}

    def _update(self, update: dict[str, Any]) -> dict[str, Any]:
        params = {"sessionId": "bad-1", "update": update}
        return {"jsonrpc": "2.0", "method": "session/update", "params": params}


class Claude:
    """The lines of `claude -p --output-format stream-json`."""

    def prompt(self) -> str:
        """Wherever it is, it is not told apart from the rest."""
        told = given()
        send({"type": "system", "subtype": "init", "session_id": "bad-1", "model": "none", "tools": []})
        return told

    def said(self, text: str) -> dict[str, Any]:
        """A piece of text."""
        return self._assistant({"type": "text", "text": text})

    def tool(self, title: str) -> dict[str, Any]:
        """A tool call."""
        return self._assistant({"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": title}})

    def ended(self, text: str) -> dict[str, Any]:
        """The end of the turn."""
        usage = {"input_tokens": 10, "output_tokens": 5}
        common = {"type": "result", "subtype": "success", "session_id": "bad-1", "num_turns": 1}
        return common | {"is_error": False, "result": text, "usage": usage}

    def refused(self, words: str) -> dict[str, Any]:
        """An end with an error."""
        return self.ended(words) | {"is_error": True}

    def _assistant(self, block: dict[str, Any]) -> dict[str, Any]:
        message = {"id": "msg_1", "role": "assistant", "content": [block]}
        return {"type": "assistant", "message": message, "session_id": "bad-1"}


class Codex:
    """The lines of `codex exec --json`."""

    def prompt(self) -> str:
        """Wherever it is, it is not told apart from the rest."""
        told = given()
        send({"type": "thread.started", "thread_id": "bad-1"})
        send({"type": "turn.started"})
        return told

    def said(self, text: str) -> dict[str, Any]:
        """A piece of text."""
        return {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": text}}

    def tool(self, title: str) -> dict[str, Any]:
        """A tool call."""
        item = {"id": "item_0", "type": "command_execution", "command": title, "status": "in_progress"}
        return {"type": "item.started", "item": item}

    def ended(self, text: str) -> dict[str, Any]:
        """The end of the turn."""
        del text
        usage = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 5}
        return {"type": "turn.completed", "usage": usage}

    def refused(self, words: str) -> dict[str, Any]:
        """An end with an error."""
        return {"type": "turn.failed", "error": {"message": words}}


Way = Acp | Claude | Codex


def given() -> str:
    """All that a native program is told: its arguments, and its standard input if that has an end."""
    return "\n".join([*sys.argv, sys.stdin.read()])


# What it does


def work(prompt: str) -> None:
    """What the demo's developer is asked for, as the tests put it beside this agent."""
    for wanted, files in json.loads(Path(os.environ["BAD_AGENT_WORK"]).read_text()).items():
        if wanted in prompt:
            for name, text in files.items():
                path = Path(name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)


def for_ever(data: bytes) -> None:
    """Until nobody listens; far longer than anybody should."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        put(data)


def detach() -> None:
    """Leave children in sessions of their own that hold our streams and do not care for signals."""
    code = "import signal,time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(600)"
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            words = [sys.executable, "-c", code, os.environ["BAD_AGENT_MARK"]]
            os.execv(words[0], words)  # noqa: S606


def one_line(way: Way) -> None:
    """A line without an end in sight."""
    del way
    for _ in range(1024):
        put(MEBIBYTE)
    put(b"\n")


def one_message(way: Way) -> None:
    """The same, but it begins like a message."""
    opened, _, closed = json.dumps(way.said("@@")).partition("@@")
    put(opened.encode())
    for _ in range(1024):
        put(MEBIBYTE)
    put(closed.encode() + b"\n")


def complaints(way: Way) -> None:
    """Standard error without an end."""
    del way
    until = time.monotonic() + 300
    while time.monotonic() < until:
        os.write(2, b"oh dear\n" * 5000)


def last_words(way: Way) -> None:
    """An end without an answer, and a bomb on standard error."""
    del way
    os.write(2, f"fatal: {BOMB}\n".encode())
    sys.exit(3)


def as_line(message: dict[str, Any]) -> bytes:
    """A message as it is sent."""
    return json.dumps(message).encode() + b"\n"


BAD: dict[str, Callable[[Way], None]] = {
    "one line of 1 GB": one_line,
    "one message of 1 GB": one_message,
    "endless messages": lambda way: for_ever(as_line(way.said("and " * 2000))),
    "endless tool calls": lambda way: for_ever(as_line(way.tool("look " * 100))),
    "endless noise": lambda way: for_ever(b"this is no message\n" * 50),
    "endless complaints": complaints,
    "half a JSON": lambda way: put(as_line(way.said(DONE))[:-20]),
    "nothing": lambda way: None,
    "an empty answer": lambda way: send(way.ended("")),
    "a bomb as its error": lambda way: send(way.refused(f"it broke {BOMB} here")),
    "a bomb as its last words": last_words,
}
"""What leaves no room for an answer."""


def misbehave_and_answer(way: Way, prompt: str) -> int:
    """The bad thing, and a proper answer with work to show."""
    text, code = DONE, 0
    work(prompt)
    match BEHAVIOUR:
        case "exit 1 with a good answer":
            code = 1
        case "invalid UTF-8":
            put(json.dumps(way.tool("look at @@")).encode().replace(b"@@", b"\xff\xfe\xc3(") + b"\n")
        case "bombs all over":
            send(way.tool(f"look {BOMB}"))
            put(f"{BOMB}\n".encode())
            put(b"\x00" * 10_000 + b"\n")
            os.write(2, BOMB.encode() * 100)
            text = f"{DONE}{BOMB}"
        case "children that detach":
            detach()
        case "two endings":
            send(way.said("All of it failed."))
            send(way.ended("All of it failed."))
        case "honest":
            pass
        case unknown:
            sys.exit(f"no behaviour `{unknown}`")
    send(way.said(text))
    send(way.ended(text))
    return code


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if "--version" in sys.argv:
        put(b"bad 1.0\n")
        sys.exit(0)
    kind: Way = Acp() if SPEAKS == "acp" else Claude() if SPEAKS == "claude" else Codex()
    prompt = kind.prompt()
    if BEHAVIOUR in BAD:
        sys.exit(BAD[BEHAVIOUR](kind))
    sys.exit(misbehave_and_answer(kind, prompt))
