"""
What Codex writes down of a conversation while it works, as far as figures go.

`codex exec --json` says what was used only when a turn has ended, and then for the whole conversation. In
its home it keeps a record of every conversation, which says after every answer of the model how many tokens
that was. The home is the agent's own, so what lies there is as little to be trusted as what it prints: no
link is followed, nothing but a file is opened, and only the end of it is read.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from planforge.agents import private
from planforge.agents.native.lines import decoded
from planforge.agents.usage import count
from planforge.kernel.effects import Usage

END = 256 * 1024
"""How much of a record is looked at, at its end."""


class Tokens(msgspec.Struct):
    """Tokens as Codex counts them: the input includes what came out of a cache, the output the reasoning."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None

    def usage(self) -> Usage:
        """The same as everybody counts them here."""
        return Usage(
            input_tokens=count(self.input_tokens),
            output_tokens=count(self.output_tokens),
            cached_tokens=min(count(self.cached_input_tokens), count(self.input_tokens)),
        )


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What the latest answer of the model used, and the conversation until then."""

    latest: Tokens = msgspec.field(name="last_token_usage")
    total: Tokens = msgspec.field(name="total_token_usage")

    @property
    def context(self) -> int:
        """How many tokens the model has before it."""
        return count(self.latest.input_tokens) + count(self.latest.output_tokens)


class _Payload(msgspec.Struct):
    info: Counted | None = None
    """In a `token_count`, which is written when a tool has been used as well."""
    usage: Tokens | None = None
    thread_token_usage: Tokens | None = None
    """In a `token_usage_record`, which later versions write at once."""


class _Entry(msgspec.Struct):
    payload: _Payload

    def counted(self) -> Counted | None:
        found = self.payload
        if found.info is not None:
            return found.info
        if found.usage is not None and found.thread_token_usage is not None:
            return Counted(latest=found.usage, total=found.thread_token_usage)
        return None


_ENTRY = msgspec.json.Decoder(_Entry)
_TELLING = (b'"token_count"', b'"token_usage_record"')


class Record:
    """The record of one conversation in one home."""

    def __init__(self, home: Path, conversation: str) -> None:
        self._home = home
        self._ending = f"-{conversation}.jsonl"
        self._path: Path | None = None

    def counted(self) -> Counted | None:
        """What it says was used so far; None if it does not say, or there is no such record."""
        self._path = self._path or next(private.find(self._home / "sessions", self._ending), None)
        if self._path is None:
            return None
        for line in reversed(private.tail(self._path, END).split(b"\n")):
            if any(word in line for word in _TELLING):
                entry = decoded(line, _ENTRY)
                counted = entry.counted() if entry else None
                if counted:
                    return counted
        return None
