"""Agents that ask before they do something: what is understood of the question, and the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planforge.agents.profiles import Profile
from planforge.agents.protocol import ToolRequest
from planforge.kernel.effects import ToolUse
from rooms import Action, Room, agent

ONCE = [("allow_always", "always"), ("allow_once", "yes"), ("reject_once", "no")]


def asking(call: Action, options: list[tuple[str, str]], before: Action | None = None) -> tuple[str, ...]:
    """An agent that asks, and says what it was answered."""
    offered = [{"optionId": name, "name": name, "kind": kind} for kind, name in options]
    announced = f"update('tool_call', **{before!r})\n" if before else ""
    return agent(
        f"begin(); prompt = hear()['id']\n{announced}"
        f"params = {{'sessionId': 's', 'toolCall': {call!r}, 'options': {offered!r}}}\n"
        "send(id=7, method='session/request_permission', params=params)\n"
        "say(json.dumps(hear()['result']['outcome']))\n"
        "update('tool_call_update', toolCallId='c', status='failed'); end(prompt)\n"
    )


@pytest.mark.parametrize(("may", "said", "status"), [(True, "allowed", ""), (False, "denied", "denied")])
def test_an_agent_may_do_what_it_is_permitted_and_no_more(
    room: Room, may: bool, said: str, status: str
) -> None:
    room.permits = may
    answer = room.rehearse(
        {"ask": {"title": "May I?", "kind": "delete"}},
        {"say": "allowed", "if": "allowed"},
        {"say": "denied", "if": "denied"},
    )
    assert answer.text == said
    assert answer.tools[0] == ToolUse(kind="delete", title="May I?", status=status)
    assert [(request.kind, request.title) for request in room.requests] == [("delete", "May I?")]


@pytest.mark.parametrize(
    ("may", "options", "outcome"),
    [
        (True, ONCE, {"outcome": "selected", "optionId": "yes"}),
        (False, ONCE, {"outcome": "selected", "optionId": "no"}),
        (True, [("allow_always", "y"), ("reject_once", "n")], {"outcome": "selected", "optionId": "n"}),
        (True, [("allow_always", "y"), ("reject_always", "n")], {"outcome": "cancelled"}),
        (False, [("allow_once", "y"), ("reject_always", "n")], {"outcome": "cancelled"}),
        (False, [("allow_once", "y")], {"outcome": "cancelled"}),
        (True, [], {"outcome": "cancelled"}),
    ],
)
def test_nothing_is_ever_allowed_or_denied_for_good(
    room: Room, may: bool, options: list[tuple[str, str]], outcome: dict[str, str]
) -> None:
    room.permits = may
    answer = room.ask(Profile(command=asking({"toolCallId": "c"}, options)))
    assert json.loads(answer.text) == outcome


@pytest.mark.parametrize(
    ("call", "before", "request_"),
    [
        ({}, None, ToolRequest(kind="other", title="")),
        (
            {"kind": "edit", "title": "Write a.py", "locations": [{"path": "/w/a.py"}, {"path": "b.py"}]},
            None,
            ToolRequest(kind="edit", title="Write a.py", paths=("/w/a.py", "b.py")),
        ),
        (
            {"kind": "edit", "rawInput": {"file_path": "/w/a.py", "content": "path"}},
            None,
            ToolRequest(kind="edit", title="", paths=("/w/a.py",)),
        ),
        (
            {"kind": "edit", "rawInput": {"filePath": "a.py", "edits": [{"path": "b.py"}]}},
            None,
            ToolRequest(kind="edit", title="", paths=("a.py", "b.py")),
        ),
        (
            {"kind": "edit", "rawInput": {"changes": {"c.py": {"type": "add"}, "d.py": {}}}},
            None,
            ToolRequest(kind="edit", title="", paths=("c.py", "d.py")),
        ),
        (
            {"kind": "edit", "content": [{"type": "diff", "path": "/w/a.py", "oldText": "", "newText": "x"}]},
            None,
            ToolRequest(kind="edit", title="", paths=("/w/a.py",)),
        ),
        (
            {"title": "Edit"},
            {"title": "before", "kind": "edit", "locations": [{"path": "/w/a.py"}]},
            ToolRequest(kind="edit", title="Edit", paths=("/w/a.py",)),
        ),
        (
            {"kind": "execute", "rawInput": {"command": "rm -rf /", "description": "clean"}},
            None,
            ToolRequest(kind="execute", title=""),
        ),
        (
            {"kind": "edit", "title": "a\x1b[2J\nb", "locations": [{"path": "a\0b"}, {"path": "x" * 5000}]},
            None,
            ToolRequest(kind="edit", title="a b"),
        ),
    ],
)
def test_what_an_agent_asks_for_is_understood(
    room: Room, call: Action, before: Action | None, request_: ToolRequest
) -> None:
    announced: dict[str, Any] | None = {"toolCallId": "c", **before} if before else None
    answer = room.ask(Profile(command=asking({"toolCallId": "c", **call}, ONCE, announced)))
    assert room.requests == [request_]
    assert answer.tool_calls == 1  # the question and the call are one


def test_a_denial_stays_a_denial_whatever_the_agent_says_of_the_call(room: Room) -> None:
    room.permits = False
    answer = room.ask(Profile(command=asking({"toolCallId": "c", "kind": "edit", "title": "t"}, ONCE)))
    assert answer.tools == (ToolUse(kind="edit", title="t", status="denied"),)
