"""
The protocol as we speak it against the models of its own library, by method and in both directions.

The library is not needed to run, but its models are made from the schema of the protocol. What we send has to
be right by them, and what an agent sends has to mean the same to us as to them: also where it is wrong, for
they say what is forgiven.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, get_args

import msgspec
import pytest
from acp import schema
from acp.meta import AGENT_METHODS, CLIENT_METHODS, PROTOCOL_VERSION
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from planforge.agents.acp import requests, updates
from planforge.agents.acp.answers import Implementation, Select
from planforge.agents.acp.parts import read
from planforge.agents.acp.requests import Method

METHODS: dict[str, Method[Any, Any]] = {
    found.name: found for found in vars(requests).values() if isinstance(found, Method)
}

# What we send

REQUESTS: Mapping[str, type[BaseModel]] = {
    "initialize": schema.InitializeRequest,
    "session/new": schema.NewSessionRequest,
    "session/load": schema.LoadSessionRequest,
    "session/resume": schema.ResumeSessionRequest,
    "session/set_mode": schema.SetSessionModeRequest,
    "session/set_config_option": schema.SetSessionConfigOptionSelectRequest,
    "session/prompt": schema.PromptRequest,
}
META = {"ours": {"list": [1, "two", None], "empty": {}}}
SENT: list[tuple[str, msgspec.Struct]] = [
    (
        "initialize",
        requests.Initialize(protocol_version=1, client_info=Implementation(name="planforge", version="1")),
    ),
    ("session/new", requests.NewSession(cwd="/w", mcp_servers=[])),
    ("session/new", requests.NewSession(cwd="/w", mcp_servers=[], meta=META)),
    ("session/load", requests.TakeUp(cwd="/w", mcp_servers=[], session_id="s", meta=META)),
    ("session/resume", requests.TakeUp(cwd="/w", mcp_servers=[], session_id="s")),
    ("session/set_mode", requests.SetMode(session_id="s", mode_id="plan")),
    ("session/set_config_option", requests.SetOption(session_id="s", config_id="model", value="large")),
    ("session/prompt", requests.Prompt(session_id="s", prompt=[updates.TextBlock(text="é\n\u2028")])),
    ("session/prompt", requests.Prompt(session_id="s", prompt=[updates.TextBlock(text="")], meta=META)),
]


def officially(model: type[BaseModel], ours: msgspec.Struct) -> object:
    """What the library would send in our place."""
    understood = model.model_validate(msgspec.to_builtins(ours))
    return understood.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


@pytest.mark.parametrize(("method", "params"), SENT, ids=[method for method, _ in SENT])
def test_what_we_ask_is_right_and_nothing_of_it_is_passed_over(method: str, params: msgspec.Struct) -> None:
    assert method in AGENT_METHODS.values()
    assert isinstance(params, METHODS[method].params)
    assert officially(REQUESTS[method], params) == msgspec.to_builtins(params)


def test_all_that_we_can_ask_is_tried_here() -> None:
    assert set(METHODS) == set(REQUESTS) == {method for method, _ in SENT} == set(ANSWERS)
    assert requests.PROTOCOL_VERSION == PROTOCOL_VERSION
    assert {updates.UPDATE, updates.PERMISSION} <= set(CLIENT_METHODS.values())


@pytest.mark.parametrize("outcome", [updates.Selected(option_id="yes"), updates.Cancelled()])
def test_what_we_answer_and_tell_is_right(outcome: updates.Selected | updates.Cancelled) -> None:
    decision = updates.Decision(outcome=outcome)
    assert officially(schema.RequestPermissionResponse, decision) == msgspec.to_builtins(decision)
    assert requests.CANCEL in AGENT_METHODS.values()
    cancel = requests.Cancel(session_id="s")
    assert officially(schema.CancelNotification, cancel) == msgspec.to_builtins(cancel)


# What we read

Raw = dict[str, Any]
Reader = Callable[[Raw], Any]

CHOICE = {"value": "small", "name": "Small", "description": "d"}
OPTION = {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "small"}
SESSION: Raw = {
    "modes": {
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "p", "name": "P"}],
    },
    "configOptions": [
        {**OPTION, "options": [CHOICE, {"value": "large", "name": "Large"}]},
        {**OPTION, "options": [{"group": "g", "name": "G", "options": [CHOICE, CHOICE]}]},
        {"id": "b", "name": "B", "type": "boolean", "currentValue": True},
    ],
    "_meta": {"a": 1},
}
CALL: Raw = {
    "toolCallId": "c",
    "title": "Look",
    "kind": "edit",
    "status": "completed",
    "content": [
        {"type": "diff", "path": "/w/a.py", "oldText": "a", "newText": "b"},
        {"type": "content", "content": {"type": "text", "text": "t"}},
        {"type": "terminal", "terminalId": "t"},
    ],
    "locations": [{"path": "/w/a.py", "line": 3}, {"path": "/w/b.py"}],
    "rawInput": {"file_path": "/w/a.py"},
    "rawOutput": [1, "x"],
}
ANSWERS: Mapping[str, tuple[type[BaseModel], list[Raw]]] = {
    "initialize": (
        schema.InitializeResponse,
        [
            {
                "protocolVersion": 1,
                "agentCapabilities": {
                    "loadSession": True,
                    "promptCapabilities": {"image": True},
                    "sessionCapabilities": {"resume": {}, "list": {}},
                },
                "agentInfo": {"name": "n", "title": "t", "version": "v"},
                "authMethods": [{"id": "a", "name": "A"}],
            }
        ],
    ),
    "session/new": (schema.NewSessionResponse, [{"sessionId": "s", **SESSION}, {"sessionId": "s"}]),
    "session/load": (schema.LoadSessionResponse, [SESSION]),
    "session/resume": (schema.ResumeSessionResponse, [SESSION]),
    "session/set_mode": (schema.SetSessionModeResponse, [{"_meta": {}}]),
    "session/set_config_option": (
        schema.SetSessionConfigOptionResponse,
        [{"configOptions": SESSION["configOptions"]}],
    ),
    "session/prompt": (
        schema.PromptResponse,
        [
            {
                "stopReason": "end_turn",
                "usage": {
                    "totalTokens": 10,
                    "inputTokens": 5,
                    "outputTokens": 5,
                    "thoughtTokens": 1,
                    "cachedReadTokens": 2,
                    "cachedWriteTokens": 3,
                },
                "_meta": {"quota": {"token_count": {"input_tokens": 1}}},
            }
        ],
    ),
}
CONTENTS: list[Raw] = [
    {"type": "text", "text": "words"},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource_link", "name": "n", "uri": "file:///a"},
]
NEWS: list[Raw] = [
    *(
        {"sessionUpdate": kind, "content": content, "messageId": "m"}
        for kind in ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
        for content in CONTENTS
    ),
    {"sessionUpdate": "tool_call", **CALL},
    {"sessionUpdate": "tool_call_update", **CALL},
    {"sessionUpdate": "current_mode_update", "currentModeId": "plan"},
    {"sessionUpdate": "session_info_update", "title": "t", "_meta": {"codex": {"error": {"message": "m"}}}},
    {"sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": {"amount": 0.5, "currency": "USD"}},
]
UNREAD: list[Raw] = [
    {"sessionUpdate": "plan", "entries": [{"content": "c", "priority": "high", "status": "pending"}]},
    {"sessionUpdate": "plan_removed", "planId": "p"},
    {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "n", "description": "d"}]},
    {"sessionUpdate": "config_option_update", "configOptions": SESSION["configOptions"]},
]
RESOURCE: Raw = {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}
QUESTION: Raw = {
    "sessionId": "s",
    "toolCall": CALL,
    "options": [
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "n", "name": "No", "kind": "reject_once"},
    ],
}

WRONG: list[Any] = [
    *(None, [], {}, "", "x", "1", 1, -1, 0, 1.5, 2.0, 10**30, "\ud800", [None], [{}], {"x": 1}, float("nan"))
]
"""What is put where something else is expected; a truth value is left out, for the library counts with it."""

Change = Callable[[Any, Any], None]
"""Of what is in one place, by its name there."""


def put(value: Any) -> Change:
    def change(where: Any, name: Any) -> None:
        where[name] = copy.deepcopy(value)

    return change


def left_out(where: Any, name: Any) -> None:
    del where[name]


def added(where: Any, name: Any) -> None:
    if isinstance(where, dict):
        where["unheardOf"] = {"x": [name]}


CHANGES: list[Change] = [*map(put, WRONG), left_out, added]


def places(raw: Any) -> Iterator[tuple[Any, Any]]:
    """Whatever can be changed in it: where, and by which name."""
    inside = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for name, value in inside:
        yield raw, name
        yield from places(value)


def changed(raw: Raw, number: int, change: Change) -> Raw:
    """The same with a change in one of its places."""
    copied = copy.deepcopy(raw)
    change(*list(places(copied))[number])
    return copied


def changed_once(examples: list[Raw]) -> Iterator[Raw]:
    """The examples with every change in every place."""
    for raw in examples:
        for number in range(len(list(places(raw)))):
            yield from (changed(raw, number, change) for change in CHANGES)


@st.composite
def changed_often(draw: st.DrawFn, examples: list[Raw]) -> Raw:
    """An example with two or three changes."""
    raw = draw(st.sampled_from(examples))
    for _ in range(draw(st.integers(2, 3))):
        if found := len(list(places(raw))):
            raw = changed(raw, draw(st.integers(0, found - 1)), draw(st.sampled_from(CHANGES)))
    return raw


def same(ours: Any, theirs: Any) -> bool:
    """Whether they mean the same, in whatever we read."""
    if isinstance(ours, Select):
        return (ours.id, ours.current_value, ours.values, named(ours.category)) == (
            theirs.id,
            theirs.current_value,
            values(theirs),
            named(theirs.category),
        )
    if isinstance(ours, msgspec.Struct):
        if isinstance(theirs, dict):  # which is how the library leaves what it has forgiven as a whole
            return ours == type(ours)()
        return all(
            same(getattr(ours, field.name), by_alias(theirs, field.encode_name))
            for field in msgspec.structs.fields(type(ours))
        )
    if isinstance(ours, tuple):
        read_by_us = [item for item in theirs if not isinstance(item, PASSED_OVER)]
        return len(ours) == len(read_by_us) and all(map(same, ours, read_by_us))
    if isinstance(theirs, BaseModel | list):  # there, but nothing of it is read
        return isinstance(ours, dict | list)
    return bool(ours == theirs) or ours != ours


PASSED_OVER = (
    schema.SessionConfigOptionBoolean,
    schema.ContentToolCallContent,
    schema.TerminalToolCallContent,
)


def by_alias(model: BaseModel, name: str) -> Any:
    fields = {field.alias or own: own for own, field in type(model).model_fields.items()}
    return getattr(model, fields[name])


def named(category: object) -> object:
    return category if category in ("mode", "model") else None


def values(option: Any) -> tuple[str, ...]:
    groups = [
        found.options if isinstance(found, schema.SessionConfigSelectGroup) else [found]
        for found in option.options
    ]
    return tuple(choice.value for group in groups for choice in group)


def agree(ours: Reader, theirs: Reader, raw: Raw) -> None:
    """Both read it and it means the same, or neither does."""
    try:
        official = theirs(copy.deepcopy(raw))
    except ValueError:
        with pytest.raises(ValueError, match=r".*"):
            ours(raw)
    else:
        assert same(ours(raw), official), raw


def official_news(raw: Raw) -> BaseModel:
    return schema.SessionNotification.model_validate({"sessionId": "s", "update": raw}).update


@pytest.mark.parametrize("method", ANSWERS)
def test_what_the_library_answers_is_read_by_us(method: str) -> None:
    model, examples = ANSWERS[method]
    for example in examples:
        official = model.model_validate(example)
        for raw in (
            official.model_dump(mode="json", by_alias=True),
            official.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True),
        ):
            assert same(METHODS[method].read(raw), official)


@pytest.mark.parametrize("raw", [*NEWS, *UNREAD], ids=lambda raw: raw["sessionUpdate"])
def test_what_the_library_tells_is_read_by_us(raw: Raw) -> None:
    official = schema.SessionNotification.model_validate({"sessionId": "s", "update": raw})
    told = read(updates.Notification, official.model_dump(mode="json", by_alias=True))
    assert told.session_id == "s"
    assert same(updates.news(told.update), official.update)


def test_what_the_library_asks_is_read_by_us() -> None:
    official = schema.RequestPermissionRequest.model_validate(QUESTION)
    question = read(updates.Question, official.model_dump(mode="json", by_alias=True))
    assert same(question, official)
    assert len(question.options) == 2


def test_news_are_of_every_kind_that_the_library_knows() -> None:
    models = get_args(schema.SessionNotification.model_fields["update"].annotation)
    kinds = {get_args(model.model_fields["session_update"].annotation)[0] for model in models}
    assert kinds == set(updates.UPDATES)


def test_a_whole_document_in_a_message_is_no_text() -> None:
    raw = {"sessionUpdate": "agent_message_chunk", "content": RESOURCE}
    schema.AgentMessageChunk.model_validate(raw)
    told = updates.news(raw)
    assert isinstance(told, updates.MessageChunk)
    assert isinstance(told.content, updates.Resource)


READ: dict[str, tuple[Reader, Reader, list[Raw]]] = {
    **{
        method: (METHODS[method].read, model.model_validate, found)
        for method, (model, found) in ANSWERS.items()
    },
    **{
        kind: (updates.news, official_news, [raw for raw in NEWS if raw["sessionUpdate"] == kind])
        for kind in sorted({raw["sessionUpdate"] for raw in NEWS})
    },
    updates.PERMISSION: (
        partial(read, updates.Question),
        schema.RequestPermissionRequest.model_validate,
        [QUESTION],
    ),
}


@pytest.mark.parametrize("what", READ)
def test_what_is_wrong_in_one_place_is_forgiven_or_not_as_the_schema_says(what: str) -> None:
    ours, theirs, examples = READ[what]
    for raw in changed_once(examples):
        agree(ours, theirs, raw)


@pytest.mark.parametrize("what", READ)
@given(data=st.data())
def test_what_is_wrong_in_several_places_is_so_too(what: str, data: st.DataObject) -> None:
    ours, theirs, examples = READ[what]
    agree(ours, theirs, data.draw(changed_often(examples)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("raw", [None, [], "no", 3])
def test_an_answer_of_nothing_is_one_where_the_library_takes_it_for_one(method: str, raw: object) -> None:
    """The library asks in two ways; by one of them whatever is no object counts as an empty one."""
    model, _ = ANSWERS[method]
    blank = {"session/load", "session/set_mode", "session/set_config_option"}
    try:
        model.model_validate({} if method in blank else raw)
    except ValueError:
        with pytest.raises(ValueError, match="is no answer"):
            METHODS[method].read(raw)
    else:
        METHODS[method].read(raw)
