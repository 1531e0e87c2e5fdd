"""Agents that do not answer properly, and programs that are no agents: each is told from the others."""

from __future__ import annotations

import msgspec
import pytest

from planforge.agents.known import KNOWN
from planforge.agents.profiles import REHEARSAL, Profile
from planforge.agents.transcript import TEXT_LIMIT
from planforge.errors import (
    AgentCancelled,
    AgentEmpty,
    AgentFailed,
    AgentLimited,
    AgentMalformed,
    AgentTimedOut,
    AgentUnauthenticated,
    AgentUnavailable,
    PlanforgeError,
)
from planforge.interfaces.cli.typed import text
from planforge.kernel.effects import Usage
from rooms import TASK, Action, Room, agent


@pytest.mark.parametrize(
    ("actions", "kind", "message"),
    [
        ([], AgentEmpty, "agent `the agent` gave an empty answer"),
        ([{"say": " \n\t"}], AgentEmpty, "agent `the agent` gave an empty answer"),
        ([{"think": "only a thought"}], AgentEmpty, "agent `the agent` gave an empty answer"),
        (
            [{"say": "no"}, {"stop": "refusal"}],
            AgentFailed,
            "agent `the agent` stopped early: it refused to go on",
        ),
        (
            [{"say": "half"}, {"stop": "max_tokens"}],
            AgentFailed,
            "agent `the agent` stopped early: it reached the most tokens that one turn may have",
        ),
        (
            [{"say": "half"}, {"stop": "max_turn_requests"}],
            AgentFailed,
            "agent `the agent` stopped early: it made as many requests as one turn may have",
        ),
        (
            [{"say": "half"}, {"stop": "cancelled"}],
            AgentCancelled,
            "agent `the agent` stopped before its end: cancelled",
        ),
        (
            [{"error": {"code": -32099, "message": "the model is\noverloaded\x1b[31m"}}],
            AgentFailed,
            "agent `the agent` failed: the model is overloaded",
        ),
        (
            [{"say": "half"}, {"exit": 0}],
            AgentFailed,
            "agent `the agent` ended without an answer (exit code 0)",
        ),
        (
            [{"stderr": "first\nout of \x1b[1mmemory\n"}, {"exit": 3}],
            AgentFailed,
            "agent `the agent` ended without an answer (exit code 3): out of memory",
        ),
        ([{"say": "half"}, {"die": "KILL"}], AgentFailed, "agent `the agent` ended without an answer"),
        ([{"stderr": "oh"}, {"die": "SEGV"}], AgentFailed, "agent `the agent` ended without an answer: oh"),
        (
            [{"stderr": "Error: 401 Unauthorized\n"}, {"exit": 1}],
            AgentUnauthenticated,
            "agent `the agent` is not logged in (Error: 401 Unauthorized)",
        ),
        (
            [{"stderr": "told of 401 Unauthorized\n"}, {"exit": 0}],
            AgentFailed,
            "agent `the agent` ended without an answer (exit code 0): told of 401 Unauthorized",
        ),
    ],
)
def test_an_agent_that_does_not_answer_properly_has_failed(
    room: Room, actions: list[Action], kind: type[PlanforgeError], message: str
) -> None:
    assert room.failure(kind, *actions) == message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32000, "message": "Authentication required"}, AgentUnauthenticated),
        ({"code": -32603, "message": "API Error: 401 unauthorized"}, AgentUnauthenticated),
        ({"code": -32603, "message": "unexpected status 429 Too Many Requests"}, AgentLimited),
        ({"code": -32603, "message": "Internal error: connect ECONNREFUSED 127.0.0.1:9"}, AgentUnavailable),
        ({"code": -32603, "message": "API Error: 500 oh"}, AgentFailed),
        ({"code": -32603, "message": "Request timed out."}, AgentTimedOut),
    ],
)
def test_the_errors_of_the_protocol_are_told_apart(
    room: Room, error: Action, kind: type[PlanforgeError]
) -> None:
    assert str(error["message"]) in room.failure(kind, {"error": error})


def test_a_limit_says_until_when_and_what_was_used_before_it(room: Room) -> None:
    body = (
        "begin({'agentCapabilities': {'loadSession': True}}); prompt = hear()['id']\n"
        "update('usage_update', used=10, size=100, cost={'amount': 0.5, 'currency': 'USD'})\n"
        "send(id=prompt, error={'code': -32603, 'message': 'Internal error',\n"
        "  'data': {'details': 'usage limit reached', 'retryDelay': '3600s'}})\n"
    )
    with pytest.raises(AgentLimited) as caught:
        room.ask(Profile(command=agent(body), resume="load"))
    assert caught.value.until
    assert f"until {caught.value.until}: Internal error (usage limit reached)" in caught.value.message
    assert (room.sessions, room.money) == (["s"], [500_000])


def test_a_login_that_is_missing_says_how_to_log_in(room: Room) -> None:
    body = "hear(); send(id=0, error={'code': -32000, 'message': 'Authentication required'})\n"
    with pytest.raises(AgentUnauthenticated) as caught:
        room.ask(Profile(command=agent(body), login_command="the-agent login"))
    assert text(caught.value.hint) == "log in with `the-agent login`, then run `planforge resume`"


def test_what_a_turn_that_failed_has_used_is_noted(room: Room) -> None:
    room.failure(AgentFailed, {"usage": {"input": 7, "output": 5}}, {"say": "half"}, {"stop": "max_tokens"})
    assert room.usages == [Usage(input_tokens=7, output_tokens=5)]


def test_a_script_that_is_missing_is_the_agents_own_message(room: Room) -> None:
    said = room.failure_of(AgentFailed, *KNOWN[REHEARSAL].command, "no-such-script.json")
    assert said.startswith("agent `the agent` failed: ")
    assert "no-such-script.json" in said


def test_details_of_an_error_are_told_and_bounded(room: Room) -> None:
    body = (
        "hear(); send(id=0, error={'code': -32603, 'message': 'Internal error', 'data': {'details': %s}})\n"
    )
    said = room.failure_of(AgentFailed, *agent(body % "'no luck'"))
    assert said == "agent `the agent` failed: Internal error (no luck)"
    assert len(room.failure_of(AgentFailed, *agent(body % "'x' * 100_000"))) < 600


@pytest.mark.parametrize("size", [TEXT_LIMIT + 1, 10**12])
def test_an_answer_that_is_too_long_is_refused_and_not_cut(room: Room, size: int) -> None:
    said = room.failure(AgentMalformed, {"flood": size})
    assert said == "agent `the agent` gave an answer of more than 1048576 characters"


def test_an_answer_that_is_too_long_is_refused_even_if_it_comes_all_at_once(room: Room) -> None:
    body = (
        "begin(); prompt = hear()['id']; text = []; sys.stdout.write = text.append; sys.stdout.flush = int\n"
        "say('x' * 1_048_570); say('y' * 7); say('z'); end(prompt)\n"
        "os.write(1, ''.join(text).encode()) and time.sleep(600)\n"
    )
    said = room.failure_of(AgentMalformed, *agent(body))
    assert said == "agent `the agent` gave an answer of more than 1048576 characters"


# Programs that are no agents

SILENT = "agent `the agent` ended before it spoke the Agent Client Protocol"


@pytest.mark.parametrize(
    ("command", "kind", "message"),
    [
        (("cat",), AgentFailed, "agent `the agent` failed: Method not found"),
        (("true",), AgentUnavailable, f"{SILENT} (exit code 0)"),
        (("false",), AgentUnavailable, f"{SILENT} (exit code 1)"),
        (("yes",), AgentMalformed, "agent `the agent` does not speak the Agent Client Protocol"),
        (
            ("yes", '{"jsonrpc": "2.0"}'),
            AgentMalformed,
            "agent `the agent` does not speak the Agent Client Protocol",
        ),
        (("sh", "-c", "echo hello; exit 2"), AgentUnavailable, f"{SILENT} (exit code 2)"),
        (("sh", "-c", "echo oh >&2; exit 2"), AgentUnavailable, f"{SILENT} (exit code 2): oh"),
        (("sh", "-c", "exec >&-; sleep 600"), AgentUnavailable, SILENT),
    ],
)
def test_a_program_that_is_no_agent_is_found_out(
    room: Room, command: tuple[str, ...], kind: type[PlanforgeError], message: str
) -> None:
    assert room.failure_of(kind, *command) == message


def test_a_line_without_an_end_does_not_fill_the_memory(room: Room) -> None:
    said = room.failure_of(AgentMalformed, "cat", "/dev/zero")
    assert said.startswith("agent `the agent` wrote ")
    assert said.endswith(" bytes without a line break")


def test_endless_noise_on_standard_error_does_not_fill_the_memory_or_hold_up_the_answer(room: Room) -> None:
    body = (
        "noise = subprocess.Popen(['yes'], stdout=2)\n"
        "begin(); prompt = hear()['id']; say('done'); end(prompt); time.sleep(600)\n"
    )
    assert room.ask(Profile(command=agent(body))).text == "done"


def test_bytes_that_are_no_text_are_noise(room: Room) -> None:
    body = (
        "os.write(1, bytes(range(128, 256)) + b'\\n' + b'\\x00\\n' + b'\\xff{\\n')\n"
        "begin(); prompt = hear()['id']; say('done'); end(prompt)\n"
    )
    assert room.ask(Profile(command=agent(body))).text == "done"


def test_a_program_that_does_not_exist_cannot_be_asked(room: Room) -> None:
    said = room.failure_of(AgentUnavailable, "no-such-agent")
    assert said == "agent `the agent`: cannot start `no-such-agent`: No such file or directory"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("send(id=hear()['id'], result={})", "`initialize` is no answer: Object missing required field"),
        ("send(id=hear()['id'], result=None)", "`initialize` is no answer: Expected `object`, got `null`"),
        ("send(id=hear()['id'], result={'protocolVersion': 2})", "it speaks version 2, Planforge 1"),
        (
            "send(id=hear()['id'], result={'protocolVersion': 1}); send(id=hear()['id'], result=[])",
            "`session/new` is no answer: Expected `object`, got `array`",
        ),
        ("begin(); send(id=hear()['id'], result={})", "`session/prompt` is no answer: Object missing"),
        (
            "begin(); send(id=hear()['id'], result={'stopReason': 'bored'})",
            "`session/prompt` is no answer: Invalid enum value 'bored' - at `$.stopReason`",
        ),
    ],
)
def test_an_answer_that_the_protocol_does_not_know_is_a_failure(room: Room, body: str, message: str) -> None:
    said = room.failure_of(AgentMalformed, *agent(f"{body}\ntime.sleep(600)\n"))
    assert said.startswith("agent `the agent` broke the Agent Client Protocol: ")
    assert message in said


def test_a_prompt_that_is_answered_twice_is_answered_once(room: Room) -> None:
    body = "begin(); prompt = hear()['id']; say('done'); end(prompt); end(prompt, 'refusal')\n"
    assert room.ask(Profile(command=agent(body)), msgspec.structs.replace(TASK)).text == "done"
