"""What an agent says and asks by itself while it is at work, as far as we read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from planforge.agents.acp.answers import Count
from planforge.agents.acp.parts import FORGIVEN, PICKED, Part, read

UPDATE = "session/update"
PERMISSION = "session/request_permission"

ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolStatus = Literal["pending", "in_progress", "completed", "failed"]

# News


class Notification(Part, frozen=True, kw_only=True):
    """News of a session."""

    session_id: str
    update: dict[str, Any]


class TextBlock(Part, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Words."""

    text: str


class Image(Part, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """A picture."""

    data: str
    mime_type: str


class Audio(Image, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    """A sound."""


class ResourceLink(Part, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    """Where something is."""

    name: str
    uri: str


class Resource(Part, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    """Something else as a whole."""

    resource: dict[str, Any]


class Chunk(Part, frozen=True, kw_only=True):
    """A piece of a message."""

    content: TextBlock | Image | Audio | ResourceLink | Resource
    message_id: Annotated[str | None, FORGIVEN] = None


class MessageChunk(Chunk, frozen=True, kw_only=True):
    """Of what the agent says."""


class ThoughtChunk(Chunk, frozen=True, kw_only=True):
    """Of what it thinks."""


class UserChunk(Chunk, frozen=True, kw_only=True):
    """A prompt of an earlier conversation that is replayed."""


class Location(Part, frozen=True, kw_only=True):
    """A file that a tool call is about."""

    path: str


class Diff(Part, frozen=True, kw_only=True):
    """A change that a tool call makes; the only content of one that we read."""

    type: Literal["diff"]
    path: str
    new_text: str


class ToolCallUpdate(Part, frozen=True, kw_only=True):
    """What is new about a tool call."""

    tool_call_id: str
    title: Annotated[str | None, FORGIVEN] = None
    kind: Annotated[ToolKind | None, FORGIVEN] = None
    status: Annotated[ToolStatus | None, FORGIVEN] = None
    content: Annotated[tuple[Diff, ...] | None, PICKED] = None
    locations: Annotated[tuple[Location, ...] | None, PICKED] = None
    raw_input: Any = None


class ToolCallStart(ToolCallUpdate, frozen=True, kw_only=True):
    """A tool call is announced."""

    title: str


class ModeUpdate(Part, frozen=True, kw_only=True):
    """It is in another mode."""

    current_mode_id: str


class InfoUpdate(Part, frozen=True, kw_only=True):
    """Something about the session; what we read of it is what some agents put beside it."""

    meta: Annotated[dict[str, Any] | None, FORGIVEN] = msgspec.field(name="_meta", default=None)


class Cost(Part, frozen=True, kw_only=True):
    """Money."""

    amount: float
    currency: str


class UsageUpdate(Part, frozen=True, kw_only=True):
    """How full its context is, and what all of the conversation has cost."""

    used: Count
    size: Count
    cost: Annotated[Cost | None, FORGIVEN] = None


class Unread(Part, frozen=True, kw_only=True):
    """News that are only a sign of life."""


Update = Chunk | ToolCallUpdate | ModeUpdate | InfoUpdate | UsageUpdate | Unread

UPDATES: Mapping[str, type[Update]] = {
    "user_message_chunk": UserChunk,
    "agent_message_chunk": MessageChunk,
    "agent_thought_chunk": ThoughtChunk,
    "tool_call": ToolCallStart,
    "tool_call_update": ToolCallUpdate,
    "current_mode_update": ModeUpdate,
    "session_info_update": InfoUpdate,
    "usage_update": UsageUpdate,
    **dict.fromkeys(
        ("plan", "plan_update", "plan_removed", "available_commands_update", "config_option_update"), Unread
    ),
}
"""By what the protocol calls them."""


def news(raw: dict[str, Any]) -> Update:
    """The news that `raw` are; raises `ValueError` if they are none that we know of."""
    kind = raw.get("sessionUpdate")
    if not isinstance(kind, str) or kind not in UPDATES:
        raise ValueError("news of a kind that is not known")
    return read(UPDATES[kind], raw)


# Questions


class Option(Part, frozen=True, kw_only=True):
    """One answer to a question."""

    option_id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class Question(Part, frozen=True, kw_only=True):
    """May it do that?"""

    session_id: str
    tool_call: ToolCallUpdate
    options: tuple[Option, ...]


class Selected(Part, frozen=True, kw_only=True, tag_field="outcome", tag="selected"):
    """The answer that was chosen."""

    option_id: str


class Cancelled(Part, frozen=True, kw_only=True, tag_field="outcome", tag="cancelled"):
    """None was: the turn was called off."""


class Decision(Part, frozen=True, kw_only=True):
    """Our answer to a question."""

    outcome: Selected | Cancelled
