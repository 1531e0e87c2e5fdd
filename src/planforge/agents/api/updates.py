"""
What the client is told while a model is at work, and what it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from planforge.agents.rpc import Fields, Peer, Refusal

TITLE_LIMIT = 200
SHOWN_LIMIT = 4000
"""How many characters of a tool's answer the client is shown."""

Kind = Literal["read", "search", "edit", "execute"]
ALLOW, REJECT = "allow_once", "reject_once"
OPTIONS = [
    {"optionId": ALLOW, "name": "Allow once", "kind": "allow_once"},
    {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
]


class Updates:
    """One session's way to its client."""

    def __init__(self, client: Peer, session: str) -> None:
        self._client = client
        self._session = session
        self._said = False
        self._apart = False

    def new_message(self) -> None:
        """The model begins anew; what it says next is set apart from what it said before."""
        self._apart = self._said

    async def say(self, text: str) -> None:
        """A piece of the answer."""
        if text:
            await self._update("agent_message_chunk", content=_text(f"\n\n{text}" if self._apart else text))
            self._said, self._apart = True, False

    async def think(self, text: str) -> None:
        """A piece of reasoning, which is not part of the answer."""
        if text:
            await self._update("agent_thought_chunk", content=_text(text))

    async def begin(self, call: str, title: str, kind: Kind, paths: Sequence[str]) -> None:
        """A tool is about to be used."""
        await self._update("tool_call", status="pending", **_call(call, title, kind, paths))

    async def started(self, call: str) -> None:
        """The tool runs."""
        await self._update("tool_call_update", toolCallId=call, status="in_progress")

    async def ended(self, call: str, text: str, *, failed: bool) -> None:
        """The tool has answered."""
        shown = [{"type": "content", "content": _text(text[:SHOWN_LIMIT])}]
        status = "failed" if failed else "completed"
        await self._update("tool_call_update", toolCallId=call, status=status, content=shown)

    async def may(self, call: str, title: str, kind: Kind, paths: Sequence[str]) -> bool:
        """Ask whether the tool may be used, this once."""
        asked = {"sessionId": self._session, "toolCall": _call(call, title, kind, paths), "options": OPTIONS}
        try:
            answer = await self._client.ask("session/request_permission", asked)
        except Refusal:
            return False
        match answer:
            case {"outcome": {"outcome": "selected", "optionId": chosen}}:
                return bool(chosen == ALLOW)
        return False

    async def context(self, used: int, size: int) -> None:
        """How many tokens are in the model's context, of how many (0: nobody knows)."""
        await self._update("usage_update", used=used, size=size)

    async def heard(self, text: str, *, by_user: bool) -> None:
        """A message of a resumed conversation."""
        await self._update("user_message_chunk" if by_user else "agent_message_chunk", content=_text(text))

    async def _update(self, what: str, **fields: object) -> None:
        update = {"sessionUpdate": what, **fields}
        await self._client.tell("session/update", {"sessionId": self._session, "update": update})


def _text(text: str) -> Fields:
    return {"type": "text", "text": text}


def _call(call: str, title: str, kind: Kind, paths: Sequence[str]) -> Fields:
    locations = [{"path": path} for path in paths]
    return {"toolCallId": call, "title": _title(title), "kind": kind, "locations": locations}


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LIMIT else f"{line[: TITLE_LIMIT - 1]}…"
