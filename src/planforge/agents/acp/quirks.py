"""
What some agents say where it is not expected, measured on the programs themselves.

Adapters put words of their own among those of their agent: warnings, greetings, that they try again. Some end
a turn that failed as if it were done, and say only elsewhere that it failed, or write it into their log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from planforge.agents import private

LOG_READ = 64 * 1024
"""How much of a log is read, at its end."""


class Quirk(msgspec.Struct, frozen=True, kw_only=True):
    """How to tell an adapter's own messages from its agent's."""

    signs: bool = False
    """Every message of the agent has a name; what has none is the adapter's."""
    aside: re.Pattern[str] | None = None
    """What the adapter says in a message of its own."""


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """An error that an agent tells of while it goes on."""

    said: str
    data: object


QUIRKS: Mapping[str, Quirk] = {
    "@agentclientprotocol/codex-acp": Quirk(signs=True),
    "pi-acp": Quirk(
        aside=re.compile(
            r"pi v[\w.-]{1,40}\n---\n[\s\S]*|"
            r"Retrying \(attempt \d+/\d+.{0,40}\)\.\.\.|"
            r"Retry finished, resuming\.\s*"
        )
    ),
}
"""By what an agent calls itself when it is greeted."""


def is_aside(quirk: Quirk | None, text: str, message: str | None) -> bool:
    """Whether a piece of text is not the agent's but its adapter's."""
    if quirk is None:
        return False
    if quirk.signs and message is None:
        return True
    return quirk.aside is not None and quirk.aside.fullmatch(text) is not None


def trouble(meta: Mapping[str, Any] | None) -> bool | None:
    """Whether the news that this belongs to say that the turn has failed, or goes on; None if neither."""
    match meta:
        case {"codex": {"threadStatus": {"type": str(status)}}}:
            return status == "systemError"
    return None


def complaint(meta: Mapping[str, Any] | None) -> Complaint | None:
    """The error that the news which this belongs to tell of, and the agent tries to get over; or None."""
    match meta:
        case {"codex": {"error": {"message": str(message), "additionalDetails": str(details)} as error}}:
            return Complaint(said=f"{message}: {details}", data=error)
        case {"codex": {"error": {"message": str(message)} as error}}:
            return Complaint(said=message, data=error)
    return None


def logged_error(home: Path, session: str) -> str:
    """The error that stands last in the log of a session, for an agent that ended it without a word."""
    for log in private.find(home, f"{session}.jsonl") if session else ():
        for line in reversed(private.tail(log, LOG_READ).splitlines()):
            try:
                entry = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError):
                continue
            match entry:
                case {"type": "message", "message": {"role": "assistant", "errorMessage": str(error)}}:
                    return error
                case {"type": "message", "message": {"role": "assistant"}}:
                    return ""  # after an error it went on
    return ""
