"""OpenAI's Responses: `/v1/responses`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from itertools import count

from planforge.testing.model_server import chat
from planforge.testing.model_server.conversation import (
    Asked,
    Limit,
    Piece,
    Reply,
    Tokens,
    Tool,
    listed,
    pieces_of,
    tool,
    words,
)


def parse(path: str, body: Mapping[str, object]) -> Asked:  # noqa: ARG001
    """What a request asks."""
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else listed(given)
    pieces = [Piece("system", words(body.get("instructions")))]
    pieces.extend(piece for item in items for piece in _pieces(item))
    tools = [found for item in listed(body.get("tools")) for found in _tools(item)]
    return Asked.of(body, pieces, tools)


def plain(asked: Asked, reply: Reply) -> object:
    """The reply in one piece."""
    return _response(asked, reply, list(_items(reply)))


def stream(asked: Asked, reply: Reply) -> Iterator[bytes]:
    """The reply as events."""
    numbers = count()

    def event(kind: str, **fields: object) -> bytes:
        data = {"type": kind, "sequence_number": next(numbers), **fields}
        return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()

    begun = {**_response(asked, reply, []), "status": "in_progress", "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    items = list(_items(reply))
    for index, item in enumerate(items):
        at = {"output_index": index, "item_id": item["id"]}
        yield event("response.output_item.added", output_index=index, item=_emptied(item))
        for kind, fields in _progress(item):
            yield event(kind, **at, **fields)
        yield event("response.output_item.done", output_index=index, item=item)
    response = _response(asked, reply, items)
    yield event(f"response.{response['status']}", response=response)


def refuse(limit: Limit) -> tuple[dict[str, str], object]:
    """Headers and JSON of a refusal; a limit with a reset time is that of a subscription."""
    headers, refusal = chat.refuse(limit)
    if limit.status == 429 and limit.reset is not None:
        refusal = {
            "error": {
                "type": "usage_limit_reached",
                "message": limit.message,
                "plan_type": "plus",
                "resets_at": int(limit.reset),
                "resets_in_seconds": limit.seconds,
            }
        }
    return headers, refusal


def _tools(item: Mapping[str, object]) -> Iterator[Tool]:
    match item.get("type"):
        case "function" | "custom":
            yield tool(item.get("name"), item.get("parameters"), str(item["type"]))
        case "local_shell":
            yield Tool("local_shell", {}, (), "local_shell")
        case "namespace":
            for inner in listed(item.get("tools")):
                yield tool(inner.get("name"), inner.get("parameters"))


def _pieces(item: Mapping[str, object]) -> Iterator[Piece]:
    kind = str(item.get("type", "message"))
    if kind == "message":
        said = words(item.get("content"))
        role = item.get("role")
        if role in ("system", "developer"):
            yield Piece("system", said)
        elif role == "assistant":
            yield Piece("assistant", said)
        else:  # each block of a user's message is something of its own
            content = item.get("content")
            for text in (
                [content] if isinstance(content, str) else [words([block]) for block in listed(content)]
            ):
                yield Piece("user", str(text))
    elif kind.endswith("_call_output"):
        output = item.get("output")
        yield Piece("result", words(output) if not isinstance(output, dict) else words(output.get("content")))
    elif kind.endswith("_call"):
        call = {key: item[key] for key in ("name", "arguments", "input", "action") if key in item}
        yield Piece("call", json.dumps(call))


def _response(asked: Asked, reply: Reply, output: list[dict[str, object]]) -> dict[str, object]:
    cut = reply.stop == "max_tokens" and not reply.call
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(reply.tokens),
    }


def _items(reply: Reply) -> Iterator[dict[str, object]]:
    if reply.thought:
        summary = [{"type": "summary_text", "text": reply.thought}]
        yield {"id": f"rs_{reply.id}", "type": "reasoning", "summary": summary, "encrypted_content": None}
    if reply.text or not reply.call:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        message = {"type": "message", "role": "assistant", "status": "completed", "content": content}
        yield {"id": f"msg_{reply.id}", **message}
    if call := reply.call:
        head = {"call_id": f"call_{reply.id}", "status": "completed"}
        if call.kind == "local_shell":
            action = {"type": "exec", "command": call.input.get("command"), "env": {}}
            yield {"id": f"lsh_{reply.id}", "type": "local_shell_call", **head, "action": action}
        elif call.kind == "custom":
            given = str(call.input.get("input", ""))
            yield {
                "id": f"ctc_{reply.id}",
                "type": "custom_tool_call",
                **head,
                "name": call.name,
                "input": given,
            }
        else:
            arguments = json.dumps(dict(call.input))
            called = {"name": call.name, "arguments": arguments}
            yield {"id": f"fc_{reply.id}", "type": "function_call", **head, **called}


def _emptied(item: Mapping[str, object]) -> dict[str, object]:
    empty = {"content": [], "summary": [], "arguments": "", "status": "in_progress"}
    return {key: empty.get(key, value) for key, value in item.items()}


def _progress(item: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    match item["type"]:
        case "message":
            [part] = listed(item["content"])
            text = str(part["text"])
            yield "response.content_part.added", {"content_index": 0, "part": {**part, "text": ""}}
            for delta in pieces_of(text):
                yield "response.output_text.delta", {"content_index": 0, "delta": delta, "logprobs": []}
            yield "response.output_text.done", {"content_index": 0, "text": text, "logprobs": []}
            yield "response.content_part.done", {"content_index": 0, "part": part}
        case "reasoning":
            [part] = listed(item["summary"])
            yield (
                "response.reasoning_summary_part.added",
                {"summary_index": 0, "part": {"type": "summary_text", "text": ""}},
            )
            for delta in pieces_of(str(part["text"])):
                yield "response.reasoning_summary_text.delta", {"summary_index": 0, "delta": delta}
            yield "response.reasoning_summary_text.done", {"summary_index": 0, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {"summary_index": 0, "part": part}
        case "function_call":
            for delta in pieces_of(str(item["arguments"])):
                yield "response.function_call_arguments.delta", {"delta": delta}
            yield (
                "response.function_call_arguments.done",
                {"arguments": item["arguments"], "name": item["name"]},
            )


def _usage(tokens: Tokens) -> dict[str, object]:
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cached_read},
        "output_tokens": tokens.completion,
        "output_tokens_details": {"reasoning_tokens": tokens.thought},
        "total_tokens": tokens.prompt + tokens.completion,
    }
