"""Tasks put to real agent programs that answer properly, and what is made of the answer."""

from __future__ import annotations

import json

import msgspec
import pytest

from planforge.agents.known import KNOWN
from planforge.agents.profiles import REHEARSAL, Profile
from planforge.agents.transcript import TEXT_LIMIT, TOOLS_LISTED
from planforge.errors import AgentEmpty
from planforge.kernel.effects import AgentAnswer, ToolUse, Usage
from rooms import TASK, Action, Room, agent


def test_a_proper_answer_has_its_text_tools_and_usage(room: Room) -> None:
    answer = room.rehearse(
        {"think": "hm"},
        {"say": "I will write "},
        {"say": "it."},
        {"write": {"path": "hello.txt", "text": "hello\n"}},
        {"run": ["false"]},
        {"say": "I wrote it. ü"},
        {"usage": {"input": 1200, "output": 80}},
    )
    assert msgspec.structs.replace(answer, session="", model="") == AgentAnswer(
        agent="the agent",
        text="I will write it.\n\nI wrote it. ü",
        stop_reason="end_turn",
        tool_calls=2,
        usage=Usage(input_tokens=1200, output_tokens=80),
        tools=(
            ToolUse(kind="edit", title="edit hello.txt", status="completed"),
            ToolUse(kind="execute", title="false", status="failed"),
        ),
    )
    assert (room.directory / "hello.txt").read_text() == "hello\n"
    assert "edit: edit hello.txt" in room.heard


def test_a_long_answer_is_whole(room: Room) -> None:
    assert room.rehearse({"flood": TEXT_LIMIT}).text == "x" * TEXT_LIMIT


def test_a_long_task_with_odd_letters_arrives_as_it_was_put(room: Room) -> None:
    prompt = "line\nü 字 \ud800 " * 20_000
    script = room.directory.parent / "script.json"
    scene = {"when": [prompt[-40:]], "do": [{"say": "I read it"}]}
    script.write_text(json.dumps({"name": "test", "scenes": [scene]}))
    profile = Profile(command=(*KNOWN[REHEARSAL].command, str(script)))
    assert room.ask(profile, msgspec.structs.replace(TASK, prompt=prompt)).text == "I read it"


def test_noise_around_the_protocol_is_passed_over(room: Room) -> None:
    noise = 'npm notice\n{"half": \n[1, 2]\n"text"\n{"jsonrpc": "2.0"}\n{"id": null, "error": {}}\n\n\n'
    answer = room.rehearse({"garbage": noise}, {"stderr": "warning\n" * 10_000}, {"say": "done"})
    assert answer.text == "done"


@pytest.mark.parametrize(
    "message",
    [
        {"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "news"}}},
        {"method": "session/update", "params": None},
        {"method": "session/update", "params": [1]},
        {"method": "_extension", "params": {}},
        {"method": "unheard/of", "params": {}},
        {"method": "elicitation/complete", "params": {}},
        {"id": 7, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/etc/passwd"}},
        {"id": 7, "method": "fs/write_text_file", "params": {"sessionId": "s", "path": "x", "content": ""}},
        {"id": 7, "method": "terminal/create", "params": {"sessionId": "s", "command": "sh"}},
        {"id": {"odd": []}, "method": "session/request_permission", "params": {}},
        {"id": 7, "method": "elicitation/create", "params": {}},
        {"id": 99, "result": {}},
        {"id": [], "result": {}},
        {"id": 2, "error": "text"},
    ],
)
def test_messages_that_nobody_expects_do_no_harm(room: Room, message: Action) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message})
    assert room.rehearse({"garbage": f"{line}\n"}, {"say": "done"}).text == "done"


def test_we_offer_no_files_and_no_terminals_and_say_who_we_are(room: Room) -> None:
    body = (
        "hello = hear(); send(id=hello['id'], result={'protocolVersion': 1})\n"
        "send(id=hear()['id'], result={'sessionId': 's'}); prompt = hear()['id']\n"
        "say(json.dumps(hello['params'])); end(prompt)\n"
    )
    hello = json.loads(room.ask(Profile(command=agent(body))).text)
    capabilities = hello.get("clientCapabilities", {})
    assert not any(capabilities.get("fs", {}).values())
    assert not capabilities.get("terminal")
    assert hello["clientInfo"]["name"] == "planforge"


def test_what_is_not_offered_is_refused_and_the_turn_goes_on(room: Room) -> None:
    wanted = ("fs/read_text_file", "terminal/create", "elicitation/create", "_own/method", "session/update")
    body = (
        f"begin(); prompt = hear()['id']\nfor name in {wanted!r}: send(id=name, method=name, params={{}})\n"
        f"refused = {{(heard := hear())['id']: heard['error']['code'] for _ in range({len(wanted)})}}\n"
        "say(json.dumps(refused)); end(prompt)\n"
    )
    assert json.loads(room.ask(Profile(command=agent(body))).text) == dict.fromkeys(wanted, -32601)


def test_text_is_set_apart_by_tool_calls_and_by_messages_and_not_by_chunks(room: Room) -> None:
    body = (
        "begin(); prompt = hear()['id']\n"
        "say('one', messageId='a'); say(' two', messageId='a'); say('three', messageId='b')\n"
        "update('tool_call', toolCallId='c', title='look'); say('four'); say(' five')\n"
        "update('tool_call_update', toolCallId='c', status='completed'); say('\\n'); say('six')\n"
        "end(prompt)\n"
    )
    answer = room.ask(Profile(command=agent(body)))
    assert answer.text == "one two\n\nthree\n\nfour five\n\n\nsix"


def test_what_belongs_to_another_session_is_no_answer(room: Room) -> None:
    body = (
        "begin(); prompt = hear()['id']; say('mine'); say('its', session='child')\n"
        "update('tool_call', 'child', toolCallId='c', title='look'); end(prompt)\n"
    )
    answer = room.ask(Profile(command=agent(body)))
    assert (answer.text, answer.tool_calls) == ("mine", 0)


def test_no_control_character_is_in_an_answer(room: Room) -> None:
    answer = room.rehearse({"say": "a\x00b\x1b[31mc\x1b]0;title\x07d\x08\x7f\x9b\te\r\nf"})
    assert answer.text == "abcd\te\r\nf"


def test_an_answer_of_nothing_but_control_characters_is_empty(room: Room) -> None:
    assert room.failure(AgentEmpty, {"say": "\x00\x1b[0m\n"}) == "agent `the agent` gave an empty answer"


def test_of_many_tool_calls_the_last_are_on_record_and_all_are_counted(room: Room) -> None:
    body = (
        "begin(); prompt = hear()['id']\n"
        "for n in range(1000):\n"
        "    update('tool_call', toolCallId=str(n), title='look ' + str(n) + ' x' * 500, kind='read')\n"
        "    update('tool_call_update', toolCallId=str(n), status='completed')\n"
        "say('done'); end(prompt)\n"
    )
    answer = room.ask(Profile(command=agent(body)))
    assert answer.tool_calls == 1000
    assert len(answer.tools) == TOOLS_LISTED
    assert answer.tools[-1].title.startswith("look 999 x")
    assert max(len(tool.title) for tool in answer.tools) == 200
    assert {tool.status for tool in answer.tools} == {"completed"}
    assert len(room.heard) < 200  # people are told of some


def test_the_titles_of_tools_are_fit_to_be_shown(room: Room) -> None:
    body = (
        "begin(); prompt = hear()['id']\n"
        "title = 'rm \\x1b[2J\\n-rf\\x00'\n"
        "update('tool_call', toolCallId='c', title=title, kind='execute', status='failed')\n"
        "say('done'); end(prompt)\n"
    )
    assert room.ask(Profile(command=agent(body))).tools == (
        ToolUse(kind="execute", title="rm -rf", status="failed"),
    )
