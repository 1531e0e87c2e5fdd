"""Agents that take too long, tasks that are called off, and what is left of either: nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from planforge.agents.known import KNOWN
from planforge.agents.profiles import REHEARSAL, Profile
from planforge.agents.protocol import Task
from planforge.errors import AgentFailed, AgentTimedOut, AgentUnavailable
from planforge.kernel.effects import Usage
from rooms import PATIENCE, TASK, Room, agent, members


def within(seconds: float, *, idle: float = 0.0, prompt: str = "go") -> Task:
    return msgspec.structs.replace(TASK, seconds=seconds, idle_seconds=idle, prompt=prompt)


@pytest.mark.parametrize("hang", [True, "deaf"])
def test_an_agent_that_hangs_is_ended_when_its_time_is_up(room: Room, hang: bool | str) -> None:
    said = room.failure(AgentTimedOut, {"say": "half"}, {"hang": hang}, task=within(1.0))
    assert said == "agent `the agent` did not answer within 1 s"


@pytest.mark.parametrize("body", ["time.sleep(600)", "hear(); time.sleep(600)", "begin(); time.sleep(600)"])
def test_an_agent_that_never_gets_to_its_task_is_ended_when_its_time_is_up(room: Room, body: str) -> None:
    said = room.failure_of(AgentTimedOut, *agent(f"{body}\n"), task=within(1.0))
    assert said == "agent `the agent` did not answer within 1 s"


def test_an_agent_that_stops_reading_a_long_task_is_ended_when_its_time_is_up(room: Room) -> None:
    body = "begin(); time.sleep(600)\n"
    said = room.failure_of(AgentTimedOut, *agent(body), task=within(1.0, prompt="x" * 5_000_000))
    assert said == "agent `the agent` did not answer within 1 s"


def test_an_agent_that_is_silent_for_too_long_is_ended(room: Room) -> None:
    began = time.monotonic()
    said = room.failure(AgentTimedOut, {"say": "half"}, {"hang": True}, task=within(PATIENCE, idle=1.0))
    assert said == "agent `the agent` gave no sign of life for 1 s"
    assert time.monotonic() - began < PATIENCE / 2


@pytest.mark.parametrize(
    "sign",
    [
        "update('agent_thought_chunk', content={'type': 'text', 'text': 'hm'})",
        "update('tool_call_update', toolCallId='c', status='in_progress')",
        "update('plan', entries=[])",
        "say('its', session='child')",
        "send(method='_vendor/progress', params={})",
    ],
)
def test_every_message_is_a_sign_of_life(room: Room, sign: str) -> None:
    body = (
        f"begin(); prompt = hear()['id']\nfor _ in range(8):\n    time.sleep(0.25); {sign}\n"
        "say('done'); end(prompt)\n"
    )
    assert room.ask(Profile(command=agent(body)), within(PATIENCE, idle=1.0)).text == "done"


def test_noise_is_no_sign_of_life(room: Room) -> None:
    body = "begin(); hear()\nwhile True:\n    time.sleep(0.1); print('...', flush=True)\n"
    said = room.failure_of(AgentTimedOut, *agent(body), task=within(PATIENCE, idle=1.0))
    assert said == "agent `the agent` gave no sign of life for 1 s"


def test_an_agent_may_be_silent_while_it_waits_for_our_permission(room: Room) -> None:
    room.permitting = 1.5
    answer = room.rehearse(
        {"ask": {"title": "May I?", "kind": "edit"}}, {"say": "done"}, task=within(PATIENCE, idle=1.0)
    )
    assert answer.text == "done"


def test_an_agent_whose_time_is_up_is_asked_to_stop_before_it_is_ended(room: Room) -> None:
    note = room.directory.parent / "note"
    body = (
        "begin(); prompt = hear()['id']; heard = hear()\n"
        f"open({str(note)!r}, 'w').write(heard['method'] + ' ' + heard['params']['sessionId'])\n"
        "end(prompt, 'cancelled', usage={'totalTokens': 12, 'inputTokens': 7, 'outputTokens': 5})\n"
    )
    with pytest.raises(AgentTimedOut):
        room.ask(Profile(command=agent(body), usage="turn"), within(1.0))
    assert note.read_text() == "session/cancel s"
    assert room.usages == [Usage(input_tokens=7, output_tokens=5)]


def test_a_task_that_is_called_off_has_the_agent_stop_and_end(room: Room) -> None:
    sign, note = room.directory / "sign", room.directory / "note"
    body = (
        f"begin(); hear(); open({str(sign)!r}, 'w'); heard = hear()\n"
        f"open({str(note)!r}, 'w').write(heard['method']); time.sleep(600)\n"
    )
    with pytest.raises(asyncio.CancelledError):
        room.ask(Profile(command=agent(body)), cancel_when=sign)
    assert note.read_text() == "session/cancel"


@pytest.mark.parametrize("when", ["", "hear(); ", "begin(); ", "begin(); hear(); "])
def test_a_task_that_is_called_off_ends_an_agent_that_does_not_listen(room: Room, when: str) -> None:
    sign = room.directory / "sign"
    body = f"{when}signal.signal(signal.SIGTERM, signal.SIG_IGN); open({str(sign)!r}, 'w'); time.sleep(600)\n"
    with pytest.raises(asyncio.CancelledError):
        room.ask(Profile(command=agent(body)), cancel_when=sign)


def test_questions_of_an_agent_that_is_asked_to_stop_are_void(room: Room) -> None:
    note = room.directory.parent / "note"
    body = (
        "begin(); prompt = hear()['id']; hear()\n"
        "options = [{'optionId': 'y', 'name': 'y', 'kind': 'allow_once'}]\n"
        "params = {'sessionId': 's', 'toolCall': {'toolCallId': 'c'}, 'options': options}\n"
        "send(id=7, method='session/request_permission', params=params)\n"
        f"open({str(note)!r}, 'w').write(json.dumps(hear()['result']['outcome'])); end(prompt, 'cancelled')\n"
    )
    room.failure_of(AgentTimedOut, *agent(body), task=within(1.0))
    assert json.loads(note.read_text()) == {"outcome": "cancelled"}
    assert room.requests == []


# What agents leave behind


@pytest.mark.parametrize("streams", ["", ", stdout=subprocess.DEVNULL"])
@pytest.mark.parametrize("spoken", ["", "begin(); hear(); "])
def test_what_an_agent_left_behind_cannot_hold_us_up(
    room: Room, tmp_path: Path, streams: str, spoken: str
) -> None:
    note = tmp_path / "pid"
    body = (
        f"{spoken}left = subprocess.Popen(['sleep', '600'], start_new_session=True{streams})\n"
        f"open({str(note)!r}, 'w').write(str(left.pid)); print('last words', file=sys.stderr); os._exit(5)\n"
    )
    kind = AgentFailed if spoken else AgentUnavailable
    said = room.failure_of(kind, *agent(body), task=within(2 * PATIENCE))
    assert said.endswith(" (exit code 5): last words")
    assert members([int(note.read_text())]) == []


def test_children_of_an_agent_end_with_it(room: Room) -> None:
    body = "subprocess.Popen(['sleep', '600']); begin(); prompt = hear()['id']; say('done'); end(prompt)\n"
    assert room.ask(Profile(command=agent(body))).text == "done"


def test_a_command_that_goes_on_when_the_agent_has_stopped_is_ended(room: Room) -> None:
    note = room.directory.parent / "pid"
    body = (
        "begin(); prompt = hear()['id']; left = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"open({str(note)!r}, 'w').write(str(left.pid)); hear(); end(prompt, 'cancelled'); time.sleep(600)\n"
    )
    room.failure_of(AgentTimedOut, *agent(body), task=within(1.0))
    assert members([int(note.read_text())]) == []


def test_an_agent_that_has_answered_may_end_by_itself_and_tidy_up(room: Room) -> None:
    script = room.directory.parent / "script.json"
    script.write_text(json.dumps({"name": "test", "scenes": [{"when": [], "do": [{"say": "done"}]}]}))
    goodbye = room.directory.parent / "goodbye"
    program = f'"$@"; echo tidied up > {goodbye}'
    room.ask(Profile(command=("sh", "-c", program, "sh", *KNOWN[REHEARSAL].command, str(script))))
    assert goodbye.read_text() == "tidied up\n"


# As a program of its own

PROGRAM = """
import asyncio, os, pathlib, sys
from planforge.agents import acp
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Place, Task
from planforge.kernel.effects import Access
from planforge.workspace import processes

async def permit(request):
    return True

def launch(argv, *, env, cwd):
    return processes.start(argv, cwd=cwd, extra=env, stdin=-1, stderr=-1)

here = pathlib.Path.cwd()
place = Place(cwd=here, home=here, argv=tuple(sys.argv[1:]), env={}, launch=launch, end=processes.end,
              permit=permit, heard=lambda what: None)
task = Task(prompt="go", access=Access.READ, seconds=30)
try:
    print(asyncio.run(acp.ask("a", Profile(command=("a",)), task, place)).text)
except KeyboardInterrupt:
    print("interrupted")
assert not {"acp", "pydantic"} & set(sys.modules)
"""


def test_nothing_but_ours_is_ever_printed_even_where_nobody_set_up_logging(tmp_path: Path) -> None:
    body = (
        "print('noise'); begin(); prompt = hear()['id']; send(method='unheard/of')\n"
        "send(method='session/update', params={'wrong': 1}); say('done'); end(prompt)\n"
    )
    process = subprocess.run(
        # Every warning, and not `-X dev`: there asyncio also says how slow a busy machine is.
        [sys.executable, "-W", "always", "-c", PROGRAM, *agent(body)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert (process.stdout, process.stderr) == ("done\n", "")


def test_an_interrupt_from_the_keyboard_leaves_nothing(
    tmp_path: Path, running: list[subprocess.Popen[str]]
) -> None:
    body = (
        "begin(); hear(); left = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print(os.getpid(), left.pid, file=open('pids.new', 'w')); os.rename('pids.new', 'pids')\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *agent(body)], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    running.append(process)
    while not (pids := tmp_path / "pids").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate(timeout=PATIENCE)[0] == "interrupted\n"
    groups = [int(pid) for pid in pids.read_text().split()]
    assert members(groups) == []
