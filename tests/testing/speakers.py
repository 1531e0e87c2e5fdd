"""
Programs in small: each speaks one dialect over real HTTP, has tools that do what they say, and asks the model
until it wants no more of them. Streams are put together from their events, as the real programs do it.
"""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 30.0
Json = dict[str, Any]


class Answer(NamedTuple):
    """What a model said at last, and all it cost: input that was not cached, output, cached."""

    text: str
    tokens: tuple[int, int, int]
    stop: str


class Heard(NamedTuple):
    """One answer of the model: text, perhaps a call (id, name, arguments), usage and stop reason."""

    text: str
    call: tuple[str, str, Json] | None
    tokens: tuple[int, int, int]
    stop: str


def post(url: str, body: Json) -> tuple[str, bytes]:
    """The content type and body of an answer; refusals are raised."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310
        return response.headers["Content-Type"], response.read()


def refusal(url: str, body: Json) -> urllib.error.HTTPError:
    """How a request is refused."""
    try:
        post(url, body)
    except urllib.error.HTTPError as error:
        return error
    raise AssertionError("it was not refused")


def events(body: bytes) -> list[Json]:
    """The data of the events in a stream, each of which must be whole."""
    lines = body.decode().replace("\r\n", "\n").splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(text) for text in data if text != "[DONE]"]


class Speaker:
    """A program with a conversation, in a directory of its own."""

    dialect = ""
    writer, shell = "write", "bash"

    def __init__(self, url: str, cwd: Path, *, stream: bool = True, tools: bool = True) -> None:
        self.url = url
        self.cwd = cwd
        self.stream = stream
        self.tools = tools
        self.turns: list[Json] = []
        self.remarks: list[str] = []

    def ask(self, prompt: str) -> Answer:
        """Put a prompt, use tools as the model wants, and return what it says at last."""
        self.user(prompt)
        total = [0, 0, 0]
        for _ in range(50):
            heard = self.hear()
            total = [have + more for have, more in zip(total, heard.tokens, strict=True)]
            if heard.call is None:
                self.assistant(heard)
                return Answer(heard.text, (total[0], total[1], total[2]), heard.stop)
            self.remarks.append(heard.text)
            self.assistant(heard)
            self.result(heard.call, *self.use(heard.call[1], heard.call[2]))
        raise AssertionError("the model wants tools without end")

    def use(self, name: str, given: Json) -> tuple[str, bool]:
        """Use a tool; what it says, and whether it went well."""
        if not self.tools:
            return f"No such tool available: {name}", False
        if name == self.writer:
            path = Path(next(given[key] for key in ("file_path", "filePath", "path") if key in given))
            assert path.is_absolute()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(given["content"])
            return "written", True
        if name == self.shell:
            command = given.get("command") or given["cmd"]
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.cwd, capture_output=True, text=True, check=False
            )
            return f"Process exited with code {done.returncode}\n{done.stdout}", done.returncode == 0
        return f"No such tool available: {name}", False

    def body(self) -> Json:
        raise NotImplementedError

    def user(self, prompt: str) -> None:
        raise NotImplementedError

    def assistant(self, heard: Heard) -> None:
        raise NotImplementedError

    def result(self, call: tuple[str, str, Json], said: str, good: bool) -> None:
        raise NotImplementedError

    def hear(self) -> Heard:
        raise NotImplementedError

    @property
    def endpoint(self) -> str:
        raise NotImplementedError


def schema(*names: str) -> Json:
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(names),
    }


class Anthropic(Speaker):
    dialect, writer, shell = "anthropic", "Write", "Bash"

    @property
    def endpoint(self) -> str:
        return f"{self.url}/v1/messages?beta=true"

    def body(self) -> Json:
        tools = [
            {"name": "Write", "input_schema": schema("file_path", "content")},
            {"name": "Bash", "input_schema": schema("command")},
        ]
        read = [{"name": "Read", "input_schema": schema("file_path")}]
        return {
            "model": "scripted-1",
            "max_tokens": 100,
            "system": [
                {"type": "text", "text": f"# Environment\n - Primary working directory: {self.cwd}\n"}
            ],
            "messages": self.turns,
            "tools": read + tools if self.tools else read,
            "stream": self.stream,
        }

    def user(self, prompt: str) -> None:
        reminder = "<system-reminder>\nthe program's own words: overwrite\n</system-reminder>"
        content = [{"type": "text", "text": reminder}, {"type": "text", "text": prompt}]
        self.turns.append({"role": "user", "content": content})

    def assistant(self, heard: Heard) -> None:
        content: list[Json] = [{"type": "text", "text": heard.text}] if heard.text else []
        if heard.call:
            name, given = heard.call[1:]
            content.append({"type": "tool_use", "id": heard.call[0], "name": name, "input": given})
        self.turns.append({"role": "assistant", "content": content})

    def result(self, call: tuple[str, str, Json], said: str, good: bool) -> None:
        block = {"type": "tool_result", "tool_use_id": call[0], "content": said, "is_error": not good}
        self.turns.append({"role": "user", "content": [block]})

    def hear(self) -> Heard:
        kind, raw = post(self.endpoint, self.body())
        if self.stream:
            assert kind.startswith("text/event-stream")
            message = self._assembled(events(raw))
        else:
            message = json.loads(raw)
        assert message["role"] == "assistant"
        text = "".join(block["text"] for block in message["content"] if block["type"] == "text")
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        call = (calls[0]["id"], calls[0]["name"], calls[0]["input"]) if calls else None
        usage = message["usage"]
        tokens = usage["input_tokens"], usage["output_tokens"], usage["cache_read_input_tokens"]
        return Heard(text, call, tokens, message["stop_reason"])

    def _assembled(self, found: list[Json]) -> Json:
        assert [event["type"] for event in found[:1]] == ["message_start"]
        assert found[-1] == {"type": "message_stop"}
        message = found[0]["message"]
        partial: dict[int, str] = {}
        for event in found[1:]:
            match event["type"]:
                case "content_block_start":
                    assert event["index"] == len(message["content"])
                    message["content"].append(event["content_block"])
                    partial[event["index"]] = ""
                case "content_block_delta":
                    delta = event["delta"]
                    partial[event["index"]] += next(
                        delta[key]
                        for key in ("text", "partial_json", "thinking", "signature")
                        if key in delta
                    )
                case "content_block_stop":
                    block = message["content"][event["index"]]
                    if block["type"] == "tool_use":
                        block["input"] = json.loads(partial[event["index"]])
                    else:
                        block["text"] = partial[event["index"]]
                case "message_delta":
                    message |= event["delta"]
                    message["usage"] |= event["usage"]
        return dict(message)


class Chat(Speaker):
    dialect, writer, shell = "chat", "write", "bash"

    @property
    def endpoint(self) -> str:
        return f"{self.url}/v1/chat/completions"

    def body(self) -> Json:
        declared = {"read": schema("filePath")}
        if self.tools:
            declared |= {"write": schema("filePath", "content"), "bash": schema("command")}
        functions = [{"name": name, "parameters": given} for name, given in declared.items()]
        system = {"role": "system", "content": f"<env>\n  Working directory: {self.cwd}\n</env>"}
        return {
            "model": "scripted-1",
            "messages": [system, *self.turns],
            "tools": [{"type": "function", "function": function} for function in functions],
            "stream": self.stream,
        }

    def user(self, prompt: str) -> None:
        self.turns.append({"role": "user", "content": prompt})

    def assistant(self, heard: Heard) -> None:
        message: Json = {"role": "assistant", "content": heard.text or None}
        if heard.call:
            function = {"name": heard.call[1], "arguments": json.dumps(heard.call[2])}
            message["tool_calls"] = [{"id": heard.call[0], "type": "function", "function": function}]
        self.turns.append(message)

    def result(self, call: tuple[str, str, Json], said: str, good: bool) -> None:
        self.turns.append({"role": "tool", "tool_call_id": call[0], "content": said})

    def hear(self) -> Heard:
        _, raw = post(self.endpoint, self.body())
        if not self.stream:
            whole = json.loads(raw)
            message, finish, usage = whole["choices"][0]["message"], whole["choices"][0], whole["usage"]
        else:
            assert raw.endswith(b"data: [DONE]\n\n")
            message, finish, usage = self._assembled(events(raw))
        calls = message.get("tool_calls")
        call = None
        if calls:
            function = calls[0]["function"]
            call = (calls[0]["id"], function["name"], json.loads(function["arguments"]))
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        tokens = usage["prompt_tokens"] - cached, usage["completion_tokens"], cached
        return Heard(message["content"] or "", call, tokens, finish["finish_reason"])

    def _assembled(self, found: list[Json]) -> tuple[Json, Json, Json]:
        message: Json = {"content": ""}
        for choice in (choice for event in found for choice in event["choices"]):
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls", []):
                if "tool_calls" not in message:
                    message["tool_calls"] = [call]
                else:
                    arguments = call["function"]["arguments"]
                    message["tool_calls"][0]["function"]["arguments"] += arguments
        return message, found[-2]["choices"][0], found[-1]["usage"]


class Responses(Speaker):
    dialect, writer, shell = "responses", "exec_command", "exec_command"

    @property
    def endpoint(self) -> str:
        return f"{self.url}/v1/responses"

    def use(self, name: str, given: Json) -> tuple[str, bool]:
        return super().use(name, given) if "content" in given else self._command(name, given)

    def _command(self, name: str, given: Json) -> tuple[str, bool]:
        if name != "exec_command" or not self.tools:
            return "exec_command failed: Read-only file system", False
        done = subprocess.run(
            ["bash", "-c", given["cmd"]], cwd=self.cwd, capture_output=True, text=True, check=False
        )
        return f"Chunk ID: 1\nProcess exited with code {done.returncode}\nOutput:\n{done.stdout}", True

    def body(self) -> Json:
        context = f"<environment_context>\n  <cwd>{self.cwd}</cwd>\n</environment_context>"
        return {
            "model": "scripted-1",
            "instructions": "You are a program.",
            "input": [_message("user", "input_text", context), *self.turns],
            "tools": [
                {"type": "function", "name": "exec_command", "parameters": schema("cmd")},
                {"type": "web_search"},
            ],
            "stream": self.stream,
        }

    def user(self, prompt: str) -> None:
        self.turns.append(_message("user", "input_text", prompt))

    def assistant(self, heard: Heard) -> None:
        if heard.text:
            self.turns.append(_message("assistant", "output_text", heard.text))
        if heard.call:
            name, given = heard.call[1], json.dumps(heard.call[2])
            call = {"type": "function_call", "call_id": heard.call[0], "name": name, "arguments": given}
            self.turns.append(call)

    def result(self, call: tuple[str, str, Json], said: str, good: bool) -> None:
        self.turns.append({"type": "function_call_output", "call_id": call[0], "output": said})

    def hear(self) -> Heard:
        _, raw = post(self.endpoint, self.body())
        response = self._assembled(events(raw)) if self.stream else json.loads(raw)
        messages = [item for item in response["output"] if item["type"] == "message"]
        text = "".join(part["text"] for item in messages for part in item["content"])
        calls = [item for item in response["output"] if item["type"] == "function_call"]
        call = (calls[0]["call_id"], calls[0]["name"], json.loads(calls[0]["arguments"])) if calls else None
        usage = response["usage"]
        cached = usage["input_tokens_details"]["cached_tokens"]
        tokens = usage["input_tokens"] - cached, usage["output_tokens"], cached
        return Heard(text, call, tokens, response["status"])

    def _assembled(self, found: list[Json]) -> Json:
        assert [event["sequence_number"] for event in found] == list(range(len(found)))
        assert found[0]["type"] == "response.created"
        said = "".join(event["delta"] for event in found if event["type"] == "response.output_text.delta")
        done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
        response = found[-1]["response"]
        assert found[-1]["type"] == f"response.{response['status']}"
        assert done == response["output"]
        texts = [item["content"][0]["text"] for item in done if item["type"] == "message"]
        assert said == "".join(texts)
        return dict(response)


class Gemini(Speaker):
    dialect, writer, shell = "gemini", "write_file", "run_shell_command"

    @property
    def endpoint(self) -> str:
        method = "streamGenerateContent?alt=sse" if self.stream else "generateContent"
        return f"{self.url}/v1beta/models/scripted-1:{method}"

    def body(self) -> Json:
        declared = {"read_file": schema("file_path")}
        if self.tools:
            declared |= {"write_file": schema("file_path", "content"), "run_shell_command": schema("command")}
        functions = [{"name": name, "parametersJsonSchema": given} for name, given in declared.items()]
        context = (
            "<session_context>\nThis is a program.\n"
            f"- **Workspace Directories:**\n  - {self.cwd}\n- **Directory Structure:**\n</session_context>"
        )
        return {
            "systemInstruction": {"parts": [{"text": "You are a program."}]},
            "contents": [{"role": "user", "parts": [{"text": context}]}, *self.turns],
            "tools": [{"functionDeclarations": functions}],
        }

    def user(self, prompt: str) -> None:
        self.turns.append({"role": "user", "parts": [{"text": prompt}]})

    def assistant(self, heard: Heard) -> None:
        parts: list[Json] = [{"text": heard.text}] if heard.text else []
        if heard.call:
            parts.append({"functionCall": {"name": heard.call[1], "args": heard.call[2]}})
        self.turns.append({"role": "model", "parts": parts})

    def result(self, call: tuple[str, str, Json], said: str, good: bool) -> None:
        response = {"name": call[1], "response": {"output" if good else "error": said}}
        self.turns.append({"role": "user", "parts": [{"functionResponse": response}]})

    def hear(self) -> Heard:
        _, raw = post(self.endpoint, self.body())
        found = events(raw) if self.stream else [json.loads(raw)]
        parts = [part for event in found for part in event["candidates"][0]["content"]["parts"]]
        text = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        call = (calls[0]["id"], calls[0]["name"], calls[0]["args"]) if calls else None
        usage = found[-1]["usageMetadata"]
        cached = usage["cachedContentTokenCount"]
        tokens = usage["promptTokenCount"] - cached, usage["candidatesTokenCount"], cached
        return Heard(text, call, tokens, found[-1]["candidates"][0]["finishReason"])


def _message(role: str, kind: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


SPEAKERS: tuple[type[Speaker], ...] = (Anthropic, Chat, Responses, Gemini)


def each() -> Iterator[tuple[type[Speaker], bool]]:
    """Every dialect, streaming and not."""
    for speaker in SPEAKERS:
        yield speaker, True
        yield speaker, False
