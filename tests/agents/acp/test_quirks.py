"""What adapters say besides their agents: it is no answer, and it is heard where a turn has failed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from planforge.agents.acp import quirks
from planforge.agents.profiles import Profile
from planforge.errors import (
    AgentEmpty,
    AgentFailed,
    AgentLimited,
    AgentTimedOut,
    AgentUnauthenticated,
    AgentUnavailable,
    PlanforgeError,
)
from rooms import TASK, Room, agent

CODEX = {"agentInfo": {"name": "@agentclientprotocol/codex-acp", "version": "2"}}
PI = {"agentInfo": {"name": "pi-acp", "version": "0"}, "agentCapabilities": {"loadSession": True}}

STATUS = "update('session_info_update', _meta={'codex': {'threadStatus': {'type': %r}}})\n"
ERROR = {
    "message": "Reconnecting... 1/1",
    "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 429}},
}


def saying(hello: object, body: str) -> Profile:
    return Profile(
        command=agent(f"begin({hello!r}); prompt = hear()['id']\n{body}end(prompt)\n"), resume="load"
    )


def test_what_codex_warns_of_is_no_answer(room: Room) -> None:
    body = "say('Warning: odd model\\n\\n'); say('done', messageId='m'); say(' so', messageId='m')\n"
    assert room.ask(saying(CODEX, body)).text == "done so"
    assert "Warning: odd model" in room.heard


def test_an_agent_that_nothing_is_known_of_may_begin_with_a_warning(room: Room) -> None:
    assert (
        room.ask(saying({}, "say('Warning: odd model. '); say('done')\n")).text == "Warning: odd model. done"
    )


@pytest.mark.parametrize(
    ("said", "error", "kind"),
    [
        ("We are experiencing high demand", None, AgentFailed),
        ("Selected model is at capacity", ERROR, AgentLimited),
        ("unexpected status 401 Unauthorized: no", None, AgentUnauthenticated),
    ],
)
def test_a_turn_of_codex_that_failed_is_no_answer_although_it_ended_properly(
    room: Room, said: str, error: object, kind: type[PlanforgeError]
) -> None:
    told = f"update('session_info_update', _meta={{'codex': {{'error': {error!r}}}}})\n" if error else ""
    body = (
        STATUS % "active"
        + "say('I will.', messageId='m')\n"
        + told
        + STATUS % "systemError"
        + f"say({said!r})\n"
    )
    with pytest.raises(PlanforgeError) as caught:
        room.ask(saying(CODEX, body))
    assert type(caught.value) is kind
    assert said in caught.value.message


def test_a_turn_of_codex_that_failed_and_went_on_is_an_answer(room: Room) -> None:
    body = STATUS % "systemError" + STATUS % "active" + "say('done', messageId='m')\n"
    assert room.ask(saying(CODEX, body)).text == "done"


@pytest.mark.parametrize(
    "notice",
    [
        "pi v0.85.1\n---\n",
        "pi v1.0.0-beta.1\n---\n\n## Skills\n- one\n",
        "Retrying (attempt 1/3, waiting 2s)...",
        "Retry finished, resuming.",
    ],
)
def test_what_pi_acp_says_of_itself_is_no_answer(room: Room, notice: str) -> None:
    assert room.ask(saying(PI, f"say({notice!r}); say('done')\n")).text == "done"
    assert room.ask(saying({}, f"say({notice!r}); say('done')\n")).text == f"{notice}done"


def entry(**message: object) -> str:
    return json.dumps({"type": "message", "message": {"role": "assistant", **message}}) + "\n"


def test_why_pi_said_nothing_is_found_in_its_log(room: Room) -> None:
    log = room.directory.parent / "agent" / "sessions" / "2026_s.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(
        entry(content=[]) + entry(stopReason="error", errorMessage="429: slow down. Try again in 1h.")
    )
    with pytest.raises(AgentLimited) as caught:
        room.ask(saying(PI, "say('Retrying (attempt 1/3, waiting 2s)...')\n"))
    assert caught.value.until
    assert "429: slow down" in caught.value.message
    log.write_text(entry(stopReason="error", errorMessage="429: slow down") + entry(content=[]))
    with pytest.raises(AgentEmpty):
        room.ask(saying(PI, ""))
    log.unlink()
    with pytest.raises(AgentEmpty):
        room.ask(saying(PI, ""))


def test_a_log_is_read_at_its_end_and_through_no_link(tmp_path: Path) -> None:
    wrong = entry(errorMessage="401 no")
    (tmp_path / "elsewhere").write_text(wrong)
    home = tmp_path / "home"
    home.mkdir()
    (home / "a-s.jsonl").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(home / "b-s.jsonl")
    (home / "c-other.jsonl").write_text(wrong)
    (home / "d-s.jsonl").write_text("x" * 10**7 + "\n{half\n" + "[" * 5000 + "\n")
    assert quirks.logged_error(home, "s") == ""
    assert quirks.logged_error(home, "") == ""
    assert quirks.logged_error(tmp_path / "gone", "s") == ""
    (home / "e-s.jsonl").write_text("x" * 10**7 + "\n" + wrong)
    assert quirks.logged_error(home, "s") == "401 no"


WAITS = {"message": "Reconnecting... waiting for network", "additionalDetails": "Connection failed: oh"}
TELLS = "update('session_info_update', _meta={'codex': {'error': %r}})\n"


def test_codex_that_does_not_reach_its_service_is_not_waited_for_for_ever(room: Room) -> None:
    with pytest.raises(AgentUnavailable) as caught:
        room.ask(saying(CODEX, TELLS % WAITS * 3 + "time.sleep(600)\n"))
    said = "Reconnecting... waiting for network: Connection failed: oh"
    assert caught.value.message == f"agent `the agent` does not reach its service: {said}"


def test_codex_that_reaches_its_service_again_goes_on(room: Room) -> None:
    body = (TELLS % WAITS * 2 + "say('ok', messageId='m')\n") * 3
    assert room.ask(saying(CODEX, body)).text == "okokok"


def test_codex_that_is_late_because_of_what_it_complained_of_is_not_just_late(room: Room) -> None:
    body = TELLS % ERROR + "time.sleep(600)\n"
    with pytest.raises(AgentLimited):
        room.ask(saying(CODEX, body), msgspec.structs.replace(TASK, seconds=2.0))


def test_an_agent_that_waits_for_its_service_and_complains_is_not_just_late(room: Room) -> None:
    body = (
        "begin(); hear(); say('half'); time.sleep(0.2)\n"
        "print('level=ERROR Rate limit reached. Please try again in 3600s.', file=sys.stderr)\n"
        "time.sleep(600)\n"
    )
    task = msgspec.structs.replace(TASK, seconds=2.0)
    with pytest.raises(AgentLimited) as caught:
        room.ask(Profile(command=agent(body)), task)
    assert caught.value.until
    assert "it did not answer within 2 s: level=ERROR Rate limit" in caught.value.message


def test_an_agent_that_complained_and_went_on_is_late(room: Room) -> None:
    body = (
        "begin(); hear(); print('429 Too Many Requests', file=sys.stderr, flush=True); time.sleep(0.5)\n"
        "say('it works again'); time.sleep(600)\n"
    )
    with pytest.raises(AgentTimedOut):
        room.ask(Profile(command=agent(body)), msgspec.structs.replace(TASK, seconds=2.0))
