"""Sessions: new or gone on with, in the mode of the access, with the model that was asked for."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from planforge.agents.profiles import Profile, Way
from planforge.errors import AgentFailed, AgentLimited, AgentTimedOut, AgentUnavailable, SessionUnknown
from planforge.kernel.effects import Access, Usage
from rooms import TASK, Room, agent

LOADS = {"agentCapabilities": {"loadSession": True}}
RESUMES: dict[str, Any] = {"agentCapabilities": {"sessionCapabilities": {"resume": {}}}}
BOTH = {"agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}}}
MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}],
}
MODEL = {
    "id": "model",
    "name": "Model",
    "category": "model",
    "type": "select",
    "currentValue": "small",
    "options": [
        {"group": "s", "name": "S", "options": [{"value": "small", "name": "Small"}]},
        {"group": "l", "name": "L", "options": [{"value": "large", "name": "Large"}]},
    ],
}
FLAT = {**MODEL, "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]}
MODE = {
    "id": "mode",
    "name": "Mode",
    "category": "mode",
    "type": "select",
    "currentValue": "ask",
    "options": [{"value": "ask", "name": "Ask"}, {"value": "plan", "name": "Plan"}],
}

READ = msgspec.structs.replace(TASK, access=Access.READ)
AGAIN = msgspec.structs.replace(TASK, session="old")

TELLING = """
def session_of(hello, session):
    "Answer whatever comes before the prompt, and say all of it."
    send(id=hear()["id"], result={"protocolVersion": 1, **hello})
    seen = []
    while (heard := hear())["method"] != "session/prompt":
        for always in ("cwd", "mcpServers"):
            heard["params"].pop(always, None)
        seen.append([heard["method"], heard["params"]])
        replay(heard["method"])
        result = {"sessionId": "new", **session} if heard["method"] == "session/new" else session
        send(id=heard["id"], result={"configOptions": [], **result})
        after(heard["method"])
    current = heard["params"]["sessionId"]
    say(json.dumps(seen), session=current)
    return current, heard["id"]

def replay(method): pass
def after(method): pass
"""


def telling(hello: Any = None, session: Any = None, *, more: str = "", last: str = "") -> tuple[str, ...]:
    """An agent that says what its session was opened with."""
    opening = f"current, prompt = session_of({hello or {}!r}, {session or {}!r})"
    return agent(f"{TELLING}\n{more}\n{opening}\n{last}\nend(prompt)\n")


def opened(room: Room, profile: Profile, task: Any = TASK) -> list[list[Any]]:
    found: list[list[Any]] = json.loads(room.ask(profile, task).text)
    return found


# New ones


def test_a_session_of_an_agent_that_cannot_go_on_with_it_has_no_name(room: Room) -> None:
    assert room.ask(Profile(command=telling(), resume="load")).session == ""
    assert room.ask(Profile(command=telling(LOADS))).session == ""
    assert room.sessions == []


@pytest.mark.parametrize(("hello", "resume"), [(LOADS, "load"), (RESUMES, "resume"), (LOADS, "resume")])
def test_a_session_that_can_be_gone_on_with_has_a_name_as_soon_as_it_is_there(
    room: Room, hello: Any, resume: Any
) -> None:
    assert room.ask(Profile(command=telling(hello), resume=resume)).session == "new"
    assert room.sessions == ["new"]


def test_what_a_profile_says_for_an_access_is_said_to_the_session(room: Room) -> None:
    profile = Profile(
        command=telling(session={"modes": MODES}),
        read=Way(mode="plan", meta={"vendor": {"tools": ["Read"]}}),
        write=Way(mode="ask"),
    )
    assert opened(room, profile, READ) == [
        ["session/new", {"_meta": {"vendor": {"tools": ["Read"]}}}],
        ["session/set_mode", {"sessionId": "new", "modeId": "plan"}],
    ]
    assert opened(room, profile) == [
        ["session/new", {}],
        ["session/set_mode", {"sessionId": "new", "modeId": "ask"}],
    ]


def test_a_mode_that_is_an_option_is_set_as_one(room: Room) -> None:
    profile = Profile(command=telling(session={"configOptions": [MODE]}), read=Way(mode="plan"))
    assert opened(room, profile, READ)[1:] == [
        ["session/set_config_option", {"sessionId": "new", "configId": "mode", "value": "plan"}]
    ]


@pytest.mark.parametrize(
    ("session", "has"),
    [({"modes": MODES}, "`ask`, `plan`"), ({"configOptions": [MODE]}, "`ask`, `plan`"), ({}, "none")],
)
def test_an_agent_without_the_mode_in_which_it_only_reads_is_not_asked(
    room: Room, session: Any, has: str
) -> None:
    profile = Profile(command=telling(session=session), read=Way(mode="read-only"))
    with pytest.raises(AgentUnavailable) as caught:
        room.ask(profile, READ)
    assert caught.value.message == f"agent `the agent` has no mode `read-only`; it has {has}"


def test_an_agent_that_leaves_the_mode_in_which_it_only_reads_is_stopped(room: Room) -> None:
    last = "update('current_mode_update', current, currentModeId='ask'); time.sleep(600)"
    profile = Profile(command=telling(session={"modes": MODES}, last=last), read=Way(mode="plan"))
    with pytest.raises(AgentFailed) as caught:
        room.ask(profile, READ)
    said = "agent `the agent` left its mode `plan`, in which it only reads, for `ask`"
    assert caught.value.message == said


def test_an_agent_that_says_which_mode_it_is_in_is_not_stopped(room: Room) -> None:
    last = "update('current_mode_update', current, currentModeId='plan')"
    profile = Profile(
        command=telling(session={"modes": MODES}, last=last), read=Way(mode="plan"), write=Way(mode="ask")
    )
    assert room.ask(profile, READ).text
    assert room.ask(profile).text  # who may write may change its mode


@pytest.mark.parametrize("option", [MODEL, FLAT])
def test_a_model_is_chosen_among_those_that_the_agent_offers(room: Room, option: Any) -> None:
    profile = Profile(command=telling(session={"configOptions": [option]}), model=Way(option="model"))
    task = msgspec.structs.replace(TASK, model="large")
    answer = room.ask(profile, task)
    assert json.loads(answer.text)[1:] == [
        ["session/set_config_option", {"sessionId": "new", "configId": "model", "value": "large"}]
    ]
    assert answer.model == "large"
    assert room.ask(profile).model == "small"  # which the agent chose


def test_a_model_that_the_agent_has_not_is_not_replaced_by_another(room: Room) -> None:
    profile = Profile(command=telling(session={"configOptions": [FLAT]}), model=Way(option="model"))
    with pytest.raises(AgentUnavailable) as caught:
        room.ask(profile, msgspec.structs.replace(TASK, model="huge"))
    assert caught.value.message == "agent `the agent` has no model `huge`; it has `small`, `large`"


# Those that are gone on with


@pytest.mark.parametrize(
    ("hello", "resume", "method"),
    [
        (LOADS, "load", "session/load"),
        (RESUMES, "resume", "session/resume"),
        (BOTH, "load", "session/load"),
        (BOTH, "resume", "session/resume"),
        (LOADS, "resume", "session/load"),
        (RESUMES, "load", "session/resume"),
    ],
)
def test_a_session_is_taken_up_in_the_way_that_works_and_with_all_that_a_new_one_is_told(
    room: Room, hello: Any, resume: Any, method: str
) -> None:
    profile = Profile(
        command=telling(hello, {"modes": MODES}),
        resume=resume,
        read=Way(mode="plan", meta={"vendor": {"tools": ["Read"]}}),
    )
    answer = room.ask(profile, msgspec.structs.replace(AGAIN, access=Access.READ))
    assert json.loads(answer.text) == [
        [method, {"sessionId": "old", "_meta": {"vendor": {"tools": ["Read"]}}}],
        ["session/set_mode", {"sessionId": "old", "modeId": "plan"}],
    ]
    assert answer.session == "old"


REPLAY = """
def {when}(method):
    if method == "session/load":
        {pause}
        update("user_message_chunk", "old", content={{"type": "text", "text": "earlier"}})
        say("what I said then", session="old")
        update("tool_call", "old", toolCallId="c", title="edit then", kind="edit", status="completed")
        update("usage_update", "old", used=90, size=100, cost={{"amount": 1.0, "currency": "USD"}})
        say("and more", session="old")
"""


@pytest.mark.parametrize(
    ("when", "pause"), [("replay", "pass"), ("after", "pass"), ("after", "time.sleep(0.1)")]
)
def test_what_is_told_again_is_no_answer_no_tool_call_and_no_cost(room: Room, when: str, pause: str) -> None:
    last = "update('usage_update', current, used=95, size=100, cost={'amount': 1.25, 'currency': 'USD'})"
    command = telling(LOADS, more=REPLAY.format(when=when, pause=pause), last=last)
    answer = room.ask(Profile(command=command, resume="load"), AGAIN)
    assert [row[0] for row in json.loads(answer.text)] == ["session/load"]
    assert (answer.tool_calls, answer.tools, room.heard) == (0, (), ["is writing"])
    assert answer.money == 250_000


def test_the_cost_of_a_conversation_that_is_gone_on_with_is_unknown_if_nobody_says_what_it_was(
    room: Room,
) -> None:
    last = "update('usage_update', current, used=95, size=100, cost={'amount': 1.25, 'currency': 'USD'})"
    answer = room.ask(Profile(command=telling(RESUMES, last=last), resume="resume"), AGAIN)
    assert answer.money is None


def test_a_history_that_fills_the_context_hands_over_only_when_the_agent_is_at_it(room: Room) -> None:
    command = telling(LOADS, more=REPLAY.format(when="replay", pause="pass"))
    answer = room.ask(Profile(command=command, resume="load"), msgspec.structs.replace(AGAIN, threshold=1000))
    assert answer.stop_reason == "end_turn"


def test_usage_of_the_whole_conversation_is_made_that_of_this_call(room: Room) -> None:
    told = {"totalTokens": 3300, "inputTokens": 3000, "outputTokens": 300}
    command = telling(LOADS, last=f"end(prompt, usage={told!r}); time.sleep(600)")
    task = msgspec.structs.replace(AGAIN, before=Usage(input_tokens=2000, output_tokens=200))
    answer = room.ask(Profile(command=command, resume="load", usage="thread"), task)
    assert answer.usage == Usage(input_tokens=1000, output_tokens=100)


def test_a_session_that_the_agent_does_not_know_is_not_replaced_by_a_new_one(room: Room) -> None:
    body = (
        f"send(id=hear()['id'], result={{'protocolVersion': 1, **{LOADS!r}}})\n"
        "send(id=hear()['id'], error={'code': -32002, 'message': 'Resource not found: old'}); hear()\n"
    )
    with pytest.raises(SessionUnknown) as caught:
        room.ask(Profile(command=agent(body), resume="load"), AGAIN)
    said = "agent `the agent` does not know its conversation: Resource not found: old"
    assert caught.value.message == said


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (Profile(command=telling(), resume="load"), "agent `the agent` cannot go on with a conversation"),
        (Profile(command=telling(LOADS)), "agent `the agent` cannot go on with a conversation"),
    ],
)
def test_an_agent_that_cannot_go_on_says_so(room: Room, profile: Profile, message: str) -> None:
    with pytest.raises(SessionUnknown) as caught:
        room.ask(profile, AGAIN)
    assert caught.value.message == message


def test_a_limit_that_is_met_while_a_session_is_taken_up_is_a_limit(room: Room) -> None:
    body = (
        f"send(id=hear()['id'], result={{'protocolVersion': 1, **{LOADS!r}}})\n"
        "send(id=hear()['id'], error={'code': -32603, 'message': 'HTTP 429 Too Many Requests'}); hear()\n"
    )
    with pytest.raises(AgentLimited):
        room.ask(Profile(command=agent(body), resume="load"), AGAIN)


@pytest.mark.dear
def test_a_session_that_is_told_again_without_end_is_ended_by_the_deadline(room: Room) -> None:
    more = "def replay(method):\n    while True: say('again', session='old')\n"
    task = msgspec.structs.replace(AGAIN, seconds=2.0)
    with pytest.raises(AgentTimedOut):
        room.ask(Profile(command=telling(LOADS, more=more), resume="load"), task)
