"""Anthropic's Messages: `/v1/messages`, `/v1/messages/count_tokens`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

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

STOPS = {"end_turn": "end_turn", "max_tokens": "max_tokens", "refusal": "refusal"}
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def parse(path: str, body: Mapping[str, object]) -> Asked:  # noqa: ARG001
    """What a request asks."""
    pieces = [Piece("system", words(body.get("system")))]
    for message in listed(body.get("messages")):
        pieces.extend(_pieces(str(message.get("role")), message.get("content")))
    tools = [tool(item.get("name"), item.get("input_schema")) for item in listed(body.get("tools"))]
    return Asked.of(body, pieces, tools)


def plain(asked: Asked, reply: Reply) -> object:
    """The reply in one piece."""
    return {**_message(asked, reply), "content": list(_blocks(reply)), **_ended(reply)}


def stream(asked: Asked, reply: Reply) -> Iterator[bytes]:
    """The reply as events."""
    start = {**_message(asked, reply), "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message={**start, "usage": {**_usage(reply.tokens), "output_tokens": 1}})
    yield _event("ping")
    for index, block in enumerate(_blocks(reply)):
        yield _event("content_block_start", index=index, content_block=_emptied(block))
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ended = _ended(reply)
    yield _event("message_delta", delta=ended, usage=_usage(reply.tokens))
    yield _event("message_stop")


def refuse(limit: Limit) -> tuple[dict[str, str], object]:
    """Headers and JSON of a refusal."""
    headers = {"request-id": "req_scripted"}
    if limit.reset is not None:
        at = datetime.fromtimestamp(limit.reset, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        headers |= {
            "retry-after": str(limit.seconds),
            "anthropic-ratelimit-requests-limit": "1",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": at,
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": str(int(limit.reset)),
        }
    kind = ERRORS.get(limit.status, "api_error")
    error = {"type": kind, "message": limit.message}
    return headers, {"type": "error", "error": error, "request_id": "req_scripted"}


def _pieces(role: str, content: object) -> Iterator[Piece]:
    kind = {"system": "system", "assistant": "assistant"}.get(role, "user")
    if isinstance(content, str):
        yield Piece(kind, content)  # type: ignore[arg-type]
        return
    for block in listed(content):
        match block.get("type"):
            case "text":
                yield Piece(kind, str(block.get("text", "")))  # type: ignore[arg-type]
            case "tool_use":
                yield Piece("call", json.dumps({"tool": block.get("name"), "input": block.get("input")}))
            case "tool_result":
                yield Piece("result", words(block.get("content")), bool(block.get("is_error")))


def _message(asked: Asked, reply: Reply) -> dict[str, object]:
    fields = {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": asked.model}
    return {**fields, "usage": _usage(reply.tokens)}


def _blocks(reply: Reply) -> Iterator[dict[str, object]]:
    if reply.thought:
        yield {"type": "thinking", "thinking": reply.thought, "signature": "c2NyaXB0ZWQ="}
    if reply.text:
        yield {"type": "text", "text": reply.text}
    if reply.call:
        call = reply.call
        yield {"type": "tool_use", "id": f"toolu_{reply.id}", "name": call.name, "input": dict(call.input)}


def _emptied(block: Mapping[str, object]) -> dict[str, object]:
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()}


def _deltas(block: Mapping[str, object]) -> Iterator[dict[str, object]]:
    match block["type"]:
        case "text":
            for text in pieces_of(str(block["text"])):
                yield {"type": "text_delta", "text": text}
        case "thinking":
            for text in pieces_of(str(block["thinking"])):
                yield {"type": "thinking_delta", "thinking": text}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case _:
            for text in pieces_of(json.dumps(block["input"])):
                yield {"type": "input_json_delta", "partial_json": text}


def _ended(reply: Reply) -> dict[str, object]:
    reason = "tool_use" if reply.call else STOPS.get(reply.stop, "end_turn")
    return {"stop_reason": reason, "stop_sequence": None}


def _usage(tokens: Tokens) -> dict[str, object]:
    return {
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cached_write,
        "cache_read_input_tokens": tokens.cached_read,
        "output_tokens": tokens.completion,
    }


def _event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
