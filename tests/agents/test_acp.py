"""Questions put to real agent programs, most of which do not behave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from planforge.agents import acp
from planforge.agents.profiles import KNOWN, REHEARSAL, Profile
from planforge.agents.wire import LINE_LIMIT
from planforge.errors import AgentFailed, CannotPerform
from planforge.kernel.effects import HANDED_OVER, Access, AgentAnswer, Usage
from planforge.kernel.tokens import TokenState
from planforge.workspace import processes

PATIENCE = 30.0
"""How long an agent may take that is expected to answer or to fail by itself."""

Action = dict[str, Any]


class Question(msgspec.Struct, frozen=True):
    prompt: str = "go"
    access: Access = Access.WRITE


class Room:
    """Where agents are asked: knows every program that was started and sees whether something is left."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: list[int] = []
        self.unhandled: list[dict[str, Any]] = []

    def ask(
        self,
        profile: Profile,
        question: Question | None = None,
        *,
        seconds: float = PATIENCE,
        cancel_when: Path | None = None,
        threshold: int = 0,
    ) -> AgentAnswer:
        """Put the question, and see that nothing of the conversation is left whatever came of it."""

        async def conversation() -> AgentAnswer:
            asyncio.get_running_loop().set_exception_handler(lambda _, found: self.unhandled.append(found))
            asking = asyncio.ensure_future(
                acp.ask(
                    "the agent",
                    profile,
                    question or Question(),
                    cwd=self.directory,
                    seconds=seconds,
                    launch=self.launch,
                    end=processes.end,
                    threshold=threshold,
                )
            )
            try:
                if cancel_when is not None:
                    while not cancel_when.exists():
                        await asyncio.sleep(0.01)
                    asking.cancel()
                return await asking
            finally:
                assert asyncio.all_tasks() == {asyncio.current_task()}

        return asyncio.run(conversation())

    async def launch(self, profile: Profile, cwd: Path) -> asyncio.subprocess.Process:
        """Start a program as `planforge.app.compose` does."""
        pipe = asyncio.subprocess.PIPE
        process = await processes.start(
            profile.command, cwd=cwd, extra=profile.env, stdin=pipe, stderr=pipe, limit=LINE_LIMIT
        )
        self.started.append(process.pid)
        return process

    def rehearse(
        self, *actions: Action, access: Access = Access.WRITE, seconds: float = PATIENCE, threshold: int = 0
    ) -> AgentAnswer:
        """Ask the rehearsal agent, which does `actions`."""
        script = self.directory.parent / "script.json"
        script.write_text(json.dumps({"name": "test", "scenes": [{"when": [], "do": list(actions)}]}))
        profile = Profile(command=(*KNOWN[REHEARSAL].command, str(script)))
        return self.ask(profile, Question(access=access), seconds=seconds, threshold=threshold)

    def failure(self, *actions: Action, seconds: float = PATIENCE) -> str:
        """The message with which asking the rehearsal agent fails."""
        with pytest.raises(AgentFailed) as caught:
            self.rehearse(*actions, seconds=seconds)
        return one_line(caught.value)

    def failure_of(
        self, *command: str, prompt: str = "go", seconds: float = PATIENCE, env: dict[str, str] | None = None
    ) -> str:
        """The message with which asking some other program fails."""
        with pytest.raises(AgentFailed) as caught:
            self.ask(Profile(command=command, env=env or {}), Question(prompt=prompt), seconds=seconds)
        return one_line(caught.value)


def one_line(error: CannotPerform) -> str:
    assert error.message.isprintable()
    assert len(error.message) < 700
    return error.message


def members(groups: list[int]) -> list[str]:
    """The processes that run in any of these groups; those that ended and were not collected do not run."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended while we looked
            state, _, group = (path / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(group) in groups and state != "Z":
                found.append(path.name)
    return found


@pytest.fixture
def room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> Iterator[Room]:
    directory = tmp_path / "worktree"
    directory.mkdir()
    room = Room(directory)
    began = time.monotonic()
    yield room
    assert time.monotonic() - began < 2 * PATIENCE
    while left := members(room.started):
        assert time.monotonic() - began < 2 * PATIENCE, left
    assert room.unhandled == []
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


# Proper answers


def test_a_proper_answer_has_its_text_tool_calls_and_usage(room: Room) -> None:
    answer = room.rehearse(
        {"think": "hm"},
        {"say": "I wrote "},
        {"write": {"path": "hello.txt", "text": "hello\n"}},
        {"run": ["true"]},
        {"say": "it. ü"},
        {"usage": {"input": 1200, "output": 80}},
    )
    assert answer == AgentAnswer(
        agent="the agent",
        text="I wrote it. ü",
        stop_reason="end_turn",
        tool_calls=2,
        usage=Usage(input_tokens=1200, output_tokens=80),
    )
    assert (room.directory / "hello.txt").read_text() == "hello\n"


def test_usage_that_was_not_reported_is_unknown_and_not_zero(room: Room) -> None:
    assert room.rehearse({"say": "done"}).usage is None
    reported = room.rehearse({"say": "done"}, {"usage": {"input": 0, "output": 0}}).usage
    assert reported == Usage(input_tokens=0, output_tokens=0)


def test_a_long_answer_is_whole(room: Room) -> None:
    answer = room.rehearse({"flood": acp.TEXT_LIMIT})
    assert answer.text == "x" * acp.TEXT_LIMIT


def test_a_long_question_with_odd_letters_arrives_as_it_was_put(room: Room) -> None:
    prompt = "line\nü 字 \ud800 " * 20_000
    script = room.directory.parent / "script.json"
    scene = {"when": [prompt[-40:]], "do": [{"say": "I read it"}]}
    script.write_text(json.dumps({"name": "test", "scenes": [scene]}))
    profile = Profile(command=(*KNOWN[REHEARSAL].command, str(script)))
    assert room.ask(profile, Question(prompt=prompt)).text == "I read it"


def test_noise_around_the_protocol_is_passed_over(room: Room) -> None:
    noise = 'npm notice\n{"half": \n[1, 2]\n"text"\n{"jsonrpc": "2.0"}\n{"id": null, "error": {}}\n\n\n'
    answer = room.rehearse({"garbage": noise}, {"stderr": "warning\n" * 10_000}, {"say": "done"})
    assert answer.text == "done"


@pytest.mark.parametrize(
    "message",
    [
        {"method": "session/update", "params": {"sessionId": "x", "update": {"sessionUpdate": "news"}}},
        {"method": "session/update", "params": None},
        {"method": "session/update", "params": [1]},
        {"method": "_extension", "params": {}},
        {"method": "unheard/of", "params": {}},
        {"method": "elicitation/complete", "params": {}},
        {"id": 7, "method": "fs/read_text_file", "params": {"sessionId": "x", "path": "/etc/passwd"}},
        {"id": 7, "method": "terminal/create", "params": {"sessionId": "x", "command": "sh"}},
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


# Permissions


@pytest.mark.parametrize(
    ("access", "kind", "said"),
    [
        (Access.WRITE, "edit", "allowed"),
        (Access.WRITE, "execute", "allowed"),
        (Access.READ, "read", "allowed"),
        (Access.READ, "search", "allowed"),
        (Access.READ, "edit", "denied"),
        (Access.READ, "delete", "denied"),
        (Access.READ, "execute", "denied"),
        (Access.READ, "other", "denied"),
    ],
)
def test_a_role_is_allowed_what_it_may_do_and_denied_the_rest(
    room: Room, access: Access, kind: str, said: str
) -> None:
    answer = room.rehearse(
        {"ask": {"title": "May I?", "kind": kind}},
        {"say": "allowed", "if": "allowed"},
        {"say": "denied", "if": "denied"},
        access=access,
    )
    assert answer.text == said


AGENT = """
import json, os, signal, subprocess, sys, time

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def say(text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send(method="session/update", params={"sessionId": "s", "update": update})

def hear():
    return json.loads(sys.stdin.readline())

def begin():
    send(id=hear()["id"], result={"protocolVersion": 1})
    send(id=hear()["id"], result={"sessionId": "s"})

"""


def agent(body: str) -> tuple[str, ...]:
    """An agent of a few lines, for what no script can say."""
    return (sys.executable, "-c", AGENT + body)


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        (
            [("allow_always", "y"), ("allow_once", "o"), ("reject_once", "n")],
            {"outcome": "selected", "optionId": "o"},
        ),
        ([("allow_always", "y"), ("reject_once", "n")], {"outcome": "selected", "optionId": "n"}),
        ([("allow_always", "y"), ("reject_always", "n")], {"outcome": "cancelled"}),
        ([], {"outcome": "cancelled"}),
    ],
)
def test_nothing_is_ever_allowed_or_denied_for_good(
    room: Room, options: list[tuple[str, str]], outcome: dict[str, str]
) -> None:
    offered = [{"optionId": name, "name": name, "kind": kind} for kind, name in options]
    body = (
        "begin(); prompt = hear()['id']\n"
        f"params = {{'sessionId': 's', 'toolCall': {{'toolCallId': 'c'}}, 'options': {offered!r}}}\n"
        "send(id=7, method='session/request_permission', params=params)\n"
        "say(json.dumps(hear()['result']['outcome'])); send(id=prompt, result={'stopReason': 'end_turn'})\n"
    )
    assert json.loads(room.ask(Profile(command=agent(body))).text) == outcome


# Answers that are none


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([], "agent `the agent` gave an empty answer"),
        ([{"say": " \n\t"}], "agent `the agent` gave an empty answer"),
        ([{"think": "only a thought"}], "agent `the agent` gave an empty answer"),
        ([{"say": "no"}, {"stop": "refusal"}], "agent `the agent` stopped early: refusal"),
        ([{"say": "half"}, {"stop": "max_tokens"}], "agent `the agent` stopped early: max_tokens"),
        ([{"say": "half"}, {"stop": "cancelled"}], "agent `the agent` stopped early: cancelled"),
        (
            [{"error": {"code": -32099, "message": "the model is\noverloaded\x1b[31m"}}],
            "agent `the agent` failed: the model is overloaded[31m",
        ),
        ([{"say": "half"}, {"exit": 0}], "agent `the agent` ended without an answer (exit code 0)"),
        (
            [{"stderr": "first\nout of \x1b[1mmemory\n"}, {"exit": 3}],
            "agent `the agent` ended without an answer (exit code 3): out of [1mmemory",
        ),
        ([{"say": "half"}, {"die": "KILL"}], "agent `the agent` ended without an answer"),
        ([{"stderr": "oh"}, {"die": "SEGV"}], "agent `the agent` ended without an answer: oh"),
    ],
)
def test_an_agent_that_does_not_answer_properly_has_failed(
    room: Room, actions: list[Action], message: str
) -> None:
    assert room.failure(*actions) == message


def test_a_script_that_is_missing_is_the_agents_own_message(room: Room) -> None:
    said = room.failure_of(*KNOWN[REHEARSAL].command, "no-such-script.json")
    assert said.startswith("agent `the agent` failed: ")
    assert "no-such-script.json" in said


def test_details_of_an_error_are_told_and_bounded(room: Room) -> None:
    body = (
        "hear(); send(id=0, error={'code': -32603, 'message': 'Internal error', 'data': {'details': %s}})\n"
    )
    said = room.failure_of(*agent(body % "'no credit'"))
    assert said == "agent `the agent` failed: Internal error (no credit)"
    assert len(room.failure_of(*agent(body % "'x' * 100_000"))) < 600


@pytest.mark.parametrize("hang", [True, "deaf"])
def test_an_agent_that_hangs_is_ended_when_its_time_is_up(room: Room, hang: bool | str) -> None:
    said = room.failure({"say": "half"}, {"hang": hang}, seconds=1.0)
    assert said == "agent `the agent` did not answer within 1 s"


def test_an_agent_that_stops_reading_a_long_question_is_ended_when_its_time_is_up(room: Room) -> None:
    body = "begin(); time.sleep(600)\n"
    said = room.failure_of(*agent(body), prompt="x" * 5_000_000, seconds=1.0)
    assert said == "agent `the agent` did not answer within 1 s"


@pytest.mark.parametrize("size", [acp.TEXT_LIMIT + 1, 10**12])
def test_an_answer_that_is_too_long_is_refused_and_not_cut(room: Room, size: int) -> None:
    assert room.failure({"flood": size}) == "agent `the agent` gave an answer of more than 1048576 characters"


def test_an_answer_that_is_too_long_is_refused_even_if_it_comes_all_at_once(room: Room) -> None:
    body = (
        "begin(); prompt = hear()['id']; text = []; sys.stdout.write = text.append; sys.stdout.flush = int\n"
        "say('x' * 1_048_570); say('y' * 7); say('z'); send(id=prompt, result={'stopReason': 'end_turn'})\n"
        "os.write(1, ''.join(text).encode()) and time.sleep(600)\n"
    )
    said = room.failure_of(*agent(body))
    assert said == "agent `the agent` gave an answer of more than 1048576 characters"


# Programs that are no agents


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("cat",), "agent `the agent` failed: Method not found"),
        (("true",), "agent `the agent` ended without an answer (exit code 0)"),
        (("false",), "agent `the agent` ended without an answer (exit code 1)"),
        (("yes",), "agent `the agent` does not speak the Agent Client Protocol"),
        (("yes", '{"jsonrpc": "2.0"}'), "agent `the agent` does not speak the Agent Client Protocol"),
        (("sh", "-c", "echo hello; exit 2"), "agent `the agent` ended without an answer (exit code 2)"),
        (("sh", "-c", "echo oh >&2; exit 2"), "agent `the agent` ended without an answer (exit code 2): oh"),
        (("sh", "-c", "exec >&-; sleep 600"), "agent `the agent` ended without an answer"),
    ],
)
def test_a_program_that_is_no_agent_is_found_out(room: Room, command: tuple[str, ...], message: str) -> None:
    assert room.failure_of(*command) == message


def test_a_line_without_an_end_does_not_fill_the_memory(room: Room) -> None:
    said = room.failure_of("cat", "/dev/zero")
    assert said.startswith("agent `the agent` wrote ")
    assert said.endswith(" bytes without a line break")


def test_endless_noise_on_standard_error_does_not_fill_the_memory_or_hold_up_the_answer(room: Room) -> None:
    body = (
        "noise = subprocess.Popen(['yes'], stdout=2)\n"
        "begin(); prompt = hear()['id']; say('done'); send(id=prompt, result={'stopReason': 'end_turn'})\n"
        "time.sleep(600)\n"
    )
    assert room.ask(Profile(command=agent(body))).text == "done"


def test_a_program_that_does_not_exist_cannot_be_asked(room: Room) -> None:
    with pytest.raises(CannotPerform) as caught:
        room.ask(Profile(command=("no-such-agent",)))
    assert one_line(caught.value) == "cannot start `no-such-agent`: No such file or directory"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("send(id=hear()['id'], result={})", "validation error for InitializeResponse"),
        ("send(id=hear()['id'], result=None)", "validation error for InitializeResponse"),
        ("send(id=hear()['id'], result={'protocolVersion': 2})", "it speaks version 2, Planforge 1"),
        (
            "send(id=hear()['id'], result={'protocolVersion': 1}); send(id=hear()['id'], result=[])",
            "validation error for NewSessionResponse",
        ),
        ("begin(); send(id=hear()['id'], result={})", "validation error for PromptResponse"),
        (
            "begin(); send(id=hear()['id'], result={'stopReason': 'bored'})",
            "validation error for PromptResponse",
        ),
    ],
)
def test_an_answer_that_the_protocol_does_not_know_is_a_failure(room: Room, body: str, message: str) -> None:
    said = room.failure_of(*agent(f"{body}\ntime.sleep(600)\n"))
    assert said.startswith("agent `the agent` broke the Agent Client Protocol: ")
    assert message in said


# What agents leave behind


@pytest.mark.parametrize("streams", ["", ", stdout=subprocess.DEVNULL"])
def test_what_an_agent_left_behind_cannot_hold_us_up(room: Room, tmp_path: Path, streams: str) -> None:
    note = tmp_path / "pid"
    body = (
        f"left = subprocess.Popen(['sleep', '600'], start_new_session=True{streams})\n"
        f"open({str(note)!r}, 'w').write(str(left.pid)); print('last words', file=sys.stderr); os._exit(5)\n"
    )
    said = room.failure_of(*agent(body), seconds=2 * PATIENCE)
    assert said == "agent `the agent` ended without an answer (exit code 5): last words"
    assert members([int(note.read_text())]) == []


def test_children_of_an_agent_end_with_it(room: Room, tmp_path: Path) -> None:
    body = (
        "subprocess.Popen(['sleep', '600'])\n"
        "begin(); prompt = hear()['id']; say('done'); send(id=prompt, result={'stopReason': 'end_turn'})\n"
    )
    assert room.ask(Profile(command=agent(body))).text == "done"


def test_a_question_that_is_called_off_ends_the_agent(room: Room) -> None:
    sign = room.directory / "sign"
    body = (
        f"begin(); open({str(sign)!r}, 'w'); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)\n"
    )
    with pytest.raises(asyncio.CancelledError):
        room.ask(Profile(command=agent(body)), cancel_when=sign)


def test_nothing_but_ours_is_ever_printed_even_where_nobody_set_up_logging(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib, sys\n"
        "from planforge.agents import acp\n"
        "from planforge.agents.profiles import Profile\n"
        "from planforge.kernel.effects import Access\n"
        "from planforge.workspace import processes\n"
        "class Question:\n"
        "    prompt, access = 'go', Access.READ\n"
        "def launch(profile, cwd):\n"
        "    return processes.start(profile.command, cwd=cwd, extra={}, stdin=-1, stderr=-1)\n"
        "answer = asyncio.run(acp.ask('a', Profile(command=tuple(sys.argv[1:])), Question(),\n"
        "    cwd=pathlib.Path.cwd(), seconds=30, launch=launch, end=processes.end))\n"
        "print(answer.text)\n"
    )
    body = (
        "print('noise'); begin(); prompt = hear()['id']; send(method='unheard/of')\n"
        "send(method='session/update', params={'wrong': 1}); say('done')\n"
        "send(id=prompt, result={'stopReason': 'end_turn'})\n"
    )
    process = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code, *agent(body)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert (process.stdout, process.stderr) == ("done\n", "")


def test_an_agent_that_has_answered_may_end_by_itself_and_tidy_up(room: Room) -> None:
    script = room.directory.parent / "script.json"
    script.write_text(json.dumps({"name": "test", "scenes": [{"when": [], "do": [{"say": "done"}]}]}))
    goodbye = room.directory.parent / "goodbye"
    program = f'"$@"; echo tidied up > {goodbye}'
    room.ask(Profile(command=("sh", "-c", program, "sh", *KNOWN[REHEARSAL].command, str(script))))
    assert goodbye.read_text() == "tidied up\n"


# Contexts that fill up, and what it costs


def news(**update: object) -> Action:
    """What the protocol's `session/update` says of usage, with anything in it."""
    params = {"sessionId": "any", "update": {"sessionUpdate": "usage_update", "size": 128_000, **update}}
    return {"garbage": json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}) + "\n"}


def test_an_agent_whose_context_is_full_is_stopped_and_what_it_did_stays(room: Room) -> None:
    answer = room.rehearse(
        {"say": "so far"},
        {"write": {"path": "half.txt", "text": "half"}},
        {"context": 99_999},
        {"context": 100_000},
        {"hang": True},
        threshold=100_000,
    )
    assert (answer.stop_reason, answer.usage) == (HANDED_OVER, None)
    assert answer.context == TokenState(used=100_000, threshold=100_000, estimated=False)
    assert (room.directory / "half.txt").read_text() == "half"


def test_an_agent_that_does_not_say_how_full_it_is_is_counted_by_what_was_said(room: Room) -> None:
    answer = room.rehearse({"flood": 8000}, {"hang": True}, threshold=1000)
    assert answer.stop_reason == HANDED_OVER
    assert answer.context is not None
    assert answer.context.estimated
    assert 1000 <= answer.context.used < 8000


def test_what_an_agent_reports_outweighs_every_guess(room: Room) -> None:
    answer = room.rehearse({"context": 10}, {"flood": 8000}, threshold=1000)
    assert (answer.stop_reason, answer.context) == ("end_turn", None)


def test_without_a_threshold_no_context_is_too_full(room: Room) -> None:
    assert room.rehearse({"context": 10**9}, {"say": "done"}).stop_reason == "end_turn"


def test_an_agent_that_is_full_and_does_not_listen_is_ended_all_the_same(room: Room) -> None:
    answer = room.rehearse({"context": 100}, {"hang": "deaf"}, threshold=100)
    assert answer.stop_reason == HANDED_OVER


@pytest.mark.parametrize(
    ("cost", "money"),
    [
        ({"amount": 0.25, "currency": "USD"}, 250_000),
        ({"amount": -1, "currency": "USD"}, None),
        ({"amount": 1e30, "currency": "USD"}, None),
        ({"amount": "much"}, None),
    ],
)
def test_what_an_agent_says_it_cost_is_kept_if_it_can_be_true(
    room: Room, cost: object, money: int | None
) -> None:
    answer = room.rehearse(news(used=10, cost=cost), {"say": "done"})
    assert answer.money == money


def test_the_last_word_on_the_cost_counts(room: Room) -> None:
    costs = [news(used=10, cost={"amount": amount, "currency": "EUR"}) for amount in (0.1, 0.3)]
    assert room.rehearse(*costs, {"say": "done"}).money == 300_000
