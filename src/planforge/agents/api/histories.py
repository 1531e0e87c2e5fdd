"""
Conversations kept on disk, so that another process can go on with one.

One file for each, written anew as a whole after each step of a turn: whoever is killed in the middle of one
leaves the steps before it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planforge.kernel.objects import write_atomically

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

HOME_VARIABLE = "PLANFORGE_API_HOME"
LIMIT = 100 * 1024 * 1024
"""How large the file of a conversation may be, in bytes, to be resumed."""

_NAME = re.compile(r"api-[0-9a-f]{32}")


class Unknown(Exception):
    """There is no such conversation, or its file cannot be read."""


class History:
    """One conversation."""

    def __init__(self, session: str, model: str = "", messages: Sequence[ModelMessage] = ()) -> None:
        self.session = session
        self.model = model
        self.messages: list[ModelMessage] = list(messages)


def directory() -> Path:
    """Where conversations lie."""
    home = os.environ.get(HOME_VARIABLE) or os.environ.get("HOME") or "."
    return Path(home) / ".planforge-api" / "sessions"


def begin() -> History:
    """A new conversation, which is not on disk before something was said."""
    return History(session=f"api-{secrets.token_hex(16)}")


def load(session: str) -> History:
    """The conversation of that name."""
    if not _NAME.fullmatch(session):
        raise Unknown(f"there is no conversation `{session[:80]}`")
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    path = directory() / f"{session}.json"
    try:
        if path.stat().st_size > LIMIT:
            raise Unknown(f"conversation `{session}` is larger than {LIMIT} bytes")
        stored: dict[str, Any] = json.loads(path.read_bytes())
        messages = ModelMessagesTypeAdapter.validate_python(stored["messages"])
    except FileNotFoundError as error:
        raise Unknown(f"there is no conversation `{session}`") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unknown(f"conversation `{session}` cannot be read: {error}") from error
    return History(session=session, model=str(stored.get("model", "")), messages=messages)


def save(history: History) -> None:
    """Keep the conversation as it is now."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    where = directory()
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    messages = ModelMessagesTypeAdapter.dump_python(history.messages, mode="json")
    data = {"session": history.session, "model": history.model, "messages": messages}
    path = where / f"{history.session}.json"
    path.touch(mode=0o600)
    write_atomically(path, json.dumps(data).encode())


def said(history: History) -> Iterator[tuple[str, bool]]:
    """What was said in a conversation, and for each text whether the user said it."""
    from pydantic_ai.messages import TextPart, UserPromptPart

    for message in history.messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                yield part.content, True
            elif isinstance(part, TextPart) and part.content:
                yield part.content, False
