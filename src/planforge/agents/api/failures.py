"""
What went wrong with a model, as an error of the protocol that a client can sort.

Its message is a sentence, its data has a `kind` (a word of `planforge.errors`, in small letters), the
service's `status`, what it said (`message`), and for a limit `retryAfter` in seconds and what the service's
headers say of a reset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic_ai import exceptions as of

from planforge.agents.api.providers import NoKey
from planforge.agents.faults import NOT_LOGGED_IN
from planforge.agents.rpc import INTERNAL_ERROR, Refusal

DEEPEST = 10
"""How far down the causes of an error are looked for."""

SAID_LIMIT = 2000
"""How much of what a service said is passed on."""

_RESETS = re.compile(r"reset|retry-after", re.IGNORECASE)
_KEYS = re.compile(r"\b(sk|key|AIza)[-_A-Za-z0-9]{12,}")


def refusal(error: BaseException) -> Refusal:
    """The error that the client gets."""
    status = error.status_code if isinstance(error, of.ModelHTTPError) else None
    said = _said(error)
    kind, sentence = _kind(error, said)
    data: dict[str, Any] = {"kind": kind, "message": said}
    if status is not None:
        data["status"] = status
    if kind == "limited" and isinstance(error, of.ModelAPIError):
        if error.retry_after is not None:
            data["retryAfter"] = error.retry_after
        data |= _resets(error)
    if kind == "unauthenticated":
        return Refusal(NOT_LOGGED_IN, sentence, data)
    return Refusal(INTERNAL_ERROR, sentence, data)


def _kind(error: BaseException, said: str) -> tuple[str, str]:
    match error:
        case NoKey():
            return "unauthenticated", str(error)
        case of.ModelAuthenticationError():
            return "unauthenticated", f"the model's service refuses the key: {said}"
        case of.ModelRateLimitError() | of.ModelQuotaExceededError():
            return "limited", f"the model's usage limit is reached: {said}"
        case of.ModelRequestTimeout() | of.ModelTimeoutError():
            return "timed_out", f"the request to the model timed out: {said}"
        case of.ModelConnectionError(phase="read"):
            return "failed", f"the model's service broke off its response: {said}"
        case of.ModelConnectionError():
            return "unavailable", f"could not connect to the model's service: {said}"
        case of.ModelHTTPError():
            return "failed", f"the model's service answered with status {error.status_code}: {said}"
        case of.ModelAPIError() if not any(isinstance(cause, ValueError) for cause in _causes(error)):
            return "failed", f"the model's service failed: {said}"
        case of.ModelAPIError() | of.UnexpectedModelBehavior() | ValueError():
            return "malformed", f"what the model's service sent makes no sense: {said}"
        case _:
            return "failed", f"asking the model failed: {said}"


def _said(error: BaseException) -> str:
    """What the service said, or else what the library makes of it; on one line, without keys."""
    text = ""
    match getattr(error, "body", None):
        case {"error": {"message": str(message)}} | {"message": str(message)} | {"error": str(message)}:
            text = message
        case str(body) if body.strip():
            text = body
        case None | "":
            text = _innermost(error)
        case other:
            text = str(other)
    return _KEYS.sub("(key)", " ".join(text.split()))[:SAID_LIMIT] or type(error).__name__


def _innermost(error: BaseException) -> str:
    """A connection's failure says why only at its bottom."""
    texts = [text for cause in _causes(error) if (text := str(cause))] or [type(error).__name__]
    return texts[-1] if isinstance(error, of.ModelConnectionError) else texts[0]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it came from, from the top to the bottom."""
    found: BaseException | None = error
    for _ in range(DEEPEST):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _resets(error: of.ModelAPIError) -> dict[str, Any]:
    """What headers and body say of when it can be asked again."""
    headers = error.headers if isinstance(error, of.ModelHTTPError) and error.headers else {}
    found: dict[str, Any] = {name: value for name, value in headers.items() if _RESETS.search(name)}
    match error.body:
        case {"error": {"details": list(details)}}:
            found |= next(({"retryDelay": d["retryDelay"]} for d in details if "retryDelay" in d), {})
        case {"error": {"resets_at": at}}:
            found["resets_at"] = at
    return found
