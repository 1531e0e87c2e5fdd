"""
What an agent wants to do, in our words, and our answer in the protocol's.

Only what holds this once is ever chosen: an agent that offers nothing but "always" is not allowed, and one
that offers no way to reject is told that the question is void.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from planforge.agents.acp.updates import Cancelled, Decision, Option, Selected, ToolCallUpdate
from planforge.agents.faults import one_line
from planforge.agents.protocol import ToolRequest

PATH_KEYS = frozenset(
    {
        *("path", "file_path", "filepath", "filename", "file", "notebook_path", "absolute_path"),
        *("old_path", "new_path", "oldpath", "newpath", "source", "destination", "move_path", "dir_path"),
    }
)
"""Where tools put the file that they are about, in small letters."""

MOST_PATHS = 1000
LONGEST_PATH = 4096
DEEPEST = 4


def request(call: ToolCallUpdate, before: ToolCallUpdate | None) -> ToolRequest:
    """What is asked for; what the question leaves out was said `before`, when the call was announced."""
    kind = call.kind or (before.kind if before else None) or "other"
    title = call.title or (before.title if before else None) or ""
    return ToolRequest(kind=kind, title=one_line(title), paths=tuple(_paths(call, before)))


def answer(options: Iterable[Option], *, may: bool) -> Decision:
    """The option that says so this once; none if there is no such option."""
    offered = list(options)
    for kind in ("allow_once", "reject_once") if may else ("reject_once",):
        for option in offered:
            if option.kind == kind:
                return Decision(outcome=Selected(option_id=option.option_id))
    return void()


def void() -> Decision:
    """The answer that is neither yes nor no: the turn was called off."""
    return Decision(outcome=Cancelled())


def _paths(*calls: ToolCallUpdate | None) -> list[str]:
    found: dict[str, None] = {}
    for call in calls:
        if call is None:
            continue
        for path in (*_located(call), *_named(call.raw_input, 0)):
            if path and len(path) <= LONGEST_PATH and "\0" not in path:
                found[path] = None
            if len(found) >= MOST_PATHS:
                return list(found)
    return list(found)


def _located(call: ToolCallUpdate) -> Iterator[str]:
    yield from (location.path for location in call.locations or ())
    yield from (diff.path for diff in call.content or ())


def _named(given: Any, depth: int) -> Iterator[str]:
    """The paths in what a tool is called with, whatever the tool calls them."""
    if depth > DEEPEST:
        return
    if isinstance(given, dict):
        for key, value in given.items():
            if isinstance(value, str) and str(key).lower() in PATH_KEYS:
                yield value
            elif str(key) == "changes" and isinstance(value, dict):  # a patch, by the paths it changes
                yield from (str(path) for path in value)
            elif isinstance(value, dict | list):
                yield from _named(value, depth + 1)
    elif isinstance(given, list):
        for value in given[:MOST_PATHS]:
            yield from _named(value, depth + 1)
