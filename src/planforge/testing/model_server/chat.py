"""OpenAI's Chat Completions, which many others speak too: `/v1/chat/completions`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping

from planforge.testing.model_server.conversation import (
    Asked,
    Limit,
    Piece,
    Reply,
    Tokens,
    listed,
    pieces_of,
    tool,
    words,
)

STOPS = {"max_tokens": "length", "refusal": "content_filter"}
KINDS = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    404: "invalid_request_error",
    429: "requests",
}
CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def parse(path: str, body: Mapping[str, object]) -> Asked:  # noqa: ARG001
    """What a request asks."""
    pieces = [piece for message in listed(body.get("messages")) for piece in _pieces(message)]
    offered = [item.get("function") for item in listed(body.get("tools"))]
    tools = [tool(item.get("name"), item.get("parameters")) for item in listed(offered)]
    return Asked.of(body, pieces, tools)


def plain(asked: Asked, reply: Reply) -> object:
    """The reply in one piece."""
    message: dict[str, object] = {"role": "assistant", "content": reply.text or None}
    if reply.call:
        message["tool_calls"] = [_called(reply)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    head = _head(asked, reply, "chat.completion")
    return {**head, "choices": [choice], "usage": _usage(reply.tokens)}


def stream(asked: Asked, reply: Reply) -> Iterator[bytes]:
    """The reply as events."""
    head = _head(asked, reply, "chat.completion.chunk")
    yield _chunk(head, {"role": "assistant", "content": ""})
    for text in pieces_of(reply.thought):
        yield _chunk(head, {"reasoning_content": text})
    for text in pieces_of(reply.text):
        yield _chunk(head, {"content": text})
    if reply.call:
        called = _called(reply)
        arguments = str(called["function"]["arguments"])
        opened = {**called["function"], "arguments": ""}
        yield _chunk(head, {"tool_calls": [{"index": 0, **called, "function": opened}]})
        for text in pieces_of(arguments):
            yield _chunk(head, {"tool_calls": [{"index": 0, "function": {"arguments": text}}]})
    yield _chunk(head, {}, _finish(reply))
    yield _data({**head, "choices": [], "usage": _usage(reply.tokens)})
    yield b"data: [DONE]\n\n"


def refuse(limit: Limit) -> tuple[dict[str, str], object]:
    """Headers and JSON of a refusal."""
    headers = {"x-request-id": "req_scripted"}
    message = limit.message
    if limit.reset is not None:
        headers |= {
            "retry-after": str(limit.seconds),
            "x-ratelimit-limit-requests": "1",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": f"{limit.seconds}s",
        }
        message = f"{message} Please try again in {limit.seconds}s."
    error = {"message": message, "type": KINDS.get(limit.status, "server_error"), "param": None}
    return headers, {"error": {**error, "code": CODES.get(limit.status)}}


def _pieces(message: Mapping[str, object]) -> Iterator[Piece]:
    said = words(message.get("content"))
    match message.get("role"):
        case "system" | "developer":
            yield Piece("system", said)
        case "tool":
            yield Piece("result", said)
        case "assistant":
            if said:
                yield Piece("assistant", said)
            for call in listed(message.get("tool_calls")):
                yield Piece("call", json.dumps(call.get("function")))
        case _:
            yield Piece("user", said)


def _head(asked: Asked, reply: Reply, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": int(time.time()), "model": asked.model}


def _called(reply: Reply) -> dict[str, dict[str, object]]:
    call = reply.call
    assert call is not None
    function: dict[str, object] = {"name": call.name, "arguments": json.dumps(dict(call.input))}
    return {"id": f"call_{reply.id}", "type": "function", "function": function}  # type: ignore[dict-item]


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.call else STOPS.get(reply.stop, "stop")


def _usage(tokens: Tokens) -> dict[str, object]:
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached_read},
        "completion_tokens_details": {"reasoning_tokens": tokens.thought},
    }


def _chunk(head: Mapping[str, object], delta: Mapping[str, object], finish: str | None = None) -> bytes:
    return _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _data(fields: Mapping[str, object]) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()
