"""
The events that Claude Code prints, as far as they are looked at.

What may be large, or may have any shape, stays as it was printed until it is needed: see `lines.inner`.
"""

from __future__ import annotations

import msgspec

from planforge.agents.native.lines import NOTHING
from planforge.agents.usage import count
from planforge.kernel.effects import Usage


class Head(msgspec.Struct):
    """What every event has."""

    type: str = ""
    session_id: str | None = None


class System(msgspec.Struct):
    """Something about the program itself."""

    subtype: str | None = None
    model: str | None = None
    tool_name: str | None = None
    tool_use_id: str | None = None
    error_status: int | None = None
    error: str | None = None


class Tokens(msgspec.Struct):
    """Tokens as Anthropic's service counts them: what came out of a cache is no part of the input."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None

    def usage(self, source: str = "reported") -> Usage:
        """The same as everybody counts them here."""
        cached = count(self.cache_read_input_tokens)
        fresh = count(self.input_tokens) + count(self.cache_creation_input_tokens)
        written = count(self.output_tokens)
        return Usage(input_tokens=fresh + cached, output_tokens=written, cached_tokens=cached, source=source)


class ModelTokens(Tokens, rename="camel"):
    """Tokens of one model, in the program's own account, which has other names for them."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = msgspec.field(default=None, name="costUSD")


class Message(msgspec.Struct):
    """What the model said, or was told. A message of several parts comes as several events with one id."""

    id: str | None = None
    model: str | None = None
    content: msgspec.Raw = NOTHING
    usage: Tokens | None = None


class Spoken(msgspec.Struct):
    """An event that holds a message."""

    message: Message
    parent_tool_use_id: str | None = None
    """Set if it is one of a helper, which has a context of its own."""


class Block(msgspec.Struct):
    """One part of a message."""

    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = NOTHING
    tool_use_id: str = ""
    is_error: bool | None = None


class Input(msgspec.Struct):
    """What of a tool's input says what it is about."""

    file_path: str = ""
    notebook_path: str = ""
    command: str = ""
    pattern: str = ""
    url: str = ""
    query: str = ""
    description: str = ""

    @property
    def about(self) -> str:
        """That, in a word or two."""
        return next(filter(None, msgspec.structs.astuple(self)), "")


class Limit(msgspec.Struct):
    """How a person's plan stands: `allowed`, `allowed_warning` or `rejected`."""

    status: str | None = None
    resets_at: int | None = msgspec.field(default=None, name="resetsAt")


class RateLimit(msgspec.Struct):
    """An event that says so."""

    rate_limit_info: Limit = msgspec.field(default_factory=Limit)


class Denial(msgspec.Struct):
    """A tool that was asked for and refused."""

    tool_use_id: str = ""


class Result(msgspec.Struct):
    """How a turn ended."""

    is_error: bool
    subtype: str | None = None
    result: str | None = None
    structured_output: msgspec.Raw = NOTHING
    usage: Tokens | None = None
    total_cost_usd: float | None = None
    model_usage_since_last_result: msgspec.Raw = NOTHING
    stop_reason: str | None = None
    terminal_reason: str | None = None
    errors: msgspec.Raw = NOTHING
    permission_denials: msgspec.Raw = NOTHING
    api_error_status: int | None = None


HEAD = msgspec.json.Decoder(Head)
SYSTEM = msgspec.json.Decoder(System)
SPOKEN = msgspec.json.Decoder(Spoken)
BLOCKS = msgspec.json.Decoder(list[Block])
INPUT = msgspec.json.Decoder(Input)
RATE_LIMIT = msgspec.json.Decoder(RateLimit)
RESULT = msgspec.json.Decoder(Result)
BY_MODEL = msgspec.json.Decoder(dict[str, ModelTokens])
ERRORS = msgspec.json.Decoder(list[str])
DENIALS = msgspec.json.Decoder(list[Denial])
