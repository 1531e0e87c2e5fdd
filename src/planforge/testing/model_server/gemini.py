"""Google's Gemini: `models/M:generateContent`, `:streamGenerateContent?alt=sse`, `:countTokens`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

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

SCHEMAS = ("parametersJsonSchema", "parameters_json_schema", "parameters")
"""Where clients put the schema of a tool."""
STOPS = {"max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}
STATES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def parse(path: str, body: Mapping[str, object]) -> Asked:
    """What a request asks; the model stands in its path."""
    model, _, method = unquote(path).rpartition("/models/")[2].partition(":")
    told = body.get("systemInstruction") or body.get("system_instruction") or {}
    pieces = [Piece("system", words(told.get("parts") if isinstance(told, dict) else told))]
    for content in listed(body.get("contents")):
        pieces.extend(_pieces(str(content.get("role", "user")), content.get("parts")))
    declared = [
        declaration
        for item in listed(body.get("tools"))
        for key in ("functionDeclarations", "function_declarations")
        for declaration in listed(item.get(key))
    ]
    return Asked(
        model=model,
        pieces=pieces,
        tools=[
            tool(item.get("name"), next((item[key] for key in SCHEMAS if item.get(key)), None))
            for item in declared
        ],
        stream=method.startswith("stream"),
    )


def plain(asked: Asked, reply: Reply) -> object:
    """The reply in one piece."""
    return _answer(asked, reply, list(_parts(reply)), last=True)


def stream(asked: Asked, reply: Reply) -> Iterator[bytes]:
    """The reply as events."""
    for part in _parts(reply):
        if "text" in part:
            for text in pieces_of(str(part["text"])):
                yield _data(_answer(asked, reply, [{**part, "text": text}]))
        else:
            yield _data(_answer(asked, reply, [part]))
    yield _data(_answer(asked, reply, [{"text": ""}], last=True))


def refuse(limit: Limit) -> tuple[dict[str, str], object]:
    """Headers and JSON of a refusal."""
    status = STATES.get(limit.status, "INTERNAL")
    error: dict[str, object] = {"code": limit.status, "message": limit.message, "status": status}
    if limit.reset is None:
        return {}, {"error": error}
    delay = f"{limit.seconds}s"
    error["message"] = f"{limit.message} Please retry in {delay}."
    error["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    return {"retry-after": str(limit.seconds)}, {"error": error}


def _pieces(role: str, parts: object) -> Iterator[Piece]:
    for part in listed(parts):
        response = part.get("functionResponse") or part.get("function_response")
        call = part.get("functionCall") or part.get("function_call")
        if isinstance(response, dict):
            result = response.get("response")
            result = result if isinstance(result, dict) else {"output": result}
            yield Piece("result", _text_of(result), "error" in result or None)
        elif call:
            yield Piece("call", json.dumps(call))
        elif isinstance(part.get("text"), str) and not part.get("thought"):
            yield Piece("assistant" if role == "model" else "user", str(part["text"]))


def _text_of(result: Mapping[str, object]) -> str:
    found = result.get("output", result.get("error", result))
    return found if isinstance(found, str) else json.dumps(found)


def _parts(reply: Reply) -> Iterator[dict[str, object]]:
    if reply.thought:
        yield {"text": reply.thought, "thought": True}
    if reply.text:
        yield {"text": reply.text}
    if call := reply.call:
        yield {"functionCall": {"id": f"call_{reply.id}", "name": call.name, "args": dict(call.input)}}


def _answer(
    asked: Asked, reply: Reply, parts: list[dict[str, object]], *, last: bool = False
) -> dict[str, object]:
    candidate: dict[str, object] = {"content": {"role": "model", "parts": parts}, "index": 0}
    fields: dict[str, object] = {"modelVersion": asked.model, "responseId": reply.id}
    if last:
        candidate["finishReason"] = STOPS.get(reply.stop, "STOP")
        fields["usageMetadata"] = _usage(reply.tokens)
    return {"candidates": [candidate], **fields}


def _usage(tokens: Tokens) -> dict[str, object]:
    return {
        "promptTokenCount": tokens.prompt,
        "cachedContentTokenCount": tokens.cached_read,
        "candidatesTokenCount": tokens.output,
        "thoughtsTokenCount": tokens.thought,
        "totalTokenCount": tokens.prompt + tokens.completion,
    }


def _data(fields: Mapping[str, object]) -> bytes:
    return f"data: {json.dumps(fields)}\r\n\r\n".encode()
