"""
Agents that misbehave, through the whole program: each is told apart, bounded, and leaves nothing behind.

`bad_agent.py` speaks whatever an agent can speak, so each kind of adapter is under test. What is looked at is
what a person gets to see, what is on record, how much memory we took, and which processes are left.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from planforge.app.demo import story
from planforge.kernel.events import AttemptRejected, EffectFailed, PatchApplied
from programs import COMMAND, environment, planforge
from rehearsals import Rehearsal

PROGRAM = Path(__file__).parent / "bad_agent.py"
MARK = f"planforge-bad-agent-{os.getpid()}"
WORK = {
    "wordcount/frequency.py": {
        "wordcount/frequency.py": story.FREQUENCY,
        "tests/test_frequency.py": story.FREQUENCY_TEST,
    },
    "wordcount/reading.py": {
        "wordcount/reading.py": story.READING,
        "tests/test_reading.py": story.READING_TEST,
    },
}
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What must not get to a terminal or into a message."""

MEMORY = 200 * 1024 * 1024
"""How much more memory we may take for an agent that pours out 1 GB; one line may have 50 MiB."""


class Ran(NamedTuple):
    """What became of a run with a bad agent."""

    code: int
    printed: str
    peak: int
    """The most memory that we had, in bytes."""
    errors: list[EffectFailed]
    rejected: list[str]
    landed: list[str]


@pytest.fixture(autouse=True)
def no_process_survives() -> Iterator[None]:
    """Nothing of an agent is left; and if it is, it does not outlive the test."""
    yield
    left = marked()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def marked() -> list[int]:
    """The processes that carry the mark of these tests, in their words or in their environment."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            known = (directory / "cmdline").read_bytes() + (directory / "environ").read_bytes()
        except OSError:
            continue
        if MARK.encode() in known and int(directory.name) != os.getpid():
            found.append(int(directory.name))
    return found


def given(plan: Rehearsal, speaks: str, behaviour: str, more: str = "") -> None:
    """Let the developer be the bad agent; every step has one attempt."""
    work = plan.script.parent / "work.json"
    work.write_text(json.dumps(WORK))
    command = json.dumps([sys.executable, str(PROGRAM), speaks, behaviour])
    plan.settings(
        f"[run]\nattempts = 1\njobs = 1\n"
        f'[agents.roles]\ndeveloper = "bad"\n'
        f"[agents.profiles.bad]\ncommand = {command}\n"
        f'speaks = "{speaks}"\nreads = ["{PROGRAM}", "{work}"]\nversion = []\n'
        f'[agents.profiles.bad.env]\nBAD_AGENT_WORK = "{work}"\nBAD_AGENT_MARK = "{MARK}"\n{more}'
    )


def ran(plan: Rehearsal, *, seconds: float = 90) -> Ran:
    """Carry out the plan and look at everything that there is to see."""
    process = plan.start("plan", "run", "1")
    peak, until = 0, time.monotonic() + seconds
    try:
        while process.poll() is None:
            assert time.monotonic() < until, f"it was not ended within {seconds:g} s"
            peak = max(peak, resident(process.pid))
            time.sleep(0.02)
        out, err = process.communicate()
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    shown = [planforge(*words, cwd=plan.root).stdout for words in (["status"], ["log", "-n", "50"])]
    return Ran(
        process.returncode,
        "\n".join([out, err, *shown]),
        peak,
        [event for event in plan.events(EffectFailed) if event.error.startswith("Agent")],
        [event.reason for event in plan.events(AttemptRejected)],
        [event.step for event in plan.events(PatchApplied)],
    )


def resident(pid: int) -> int:
    """The most memory that a process has had so far, in bytes."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


@pytest.fixture(scope="session")
def usual(one_plan: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> int:
    """The most memory that we have when the agent is honest."""
    from rehearsals import copied

    plan = copied(one_plan, tmp_path_factory.mktemp("usual") / "here")
    given(plan, "acp", "honest")
    told = ran(plan)
    assert told.code == 0, told.printed
    return told.peak


SPEAKS = ("acp", "claude", "codex")

REFUSED: dict[str, str | dict[str, str]] = {
    "one line of 1 GB": "AgentMalformed",
    "one message of 1 GB": "AgentMalformed",
    "endless noise": "AgentMalformed",
    "half a JSON": {"acp": "AgentFailed", "claude": "AgentMalformed", "codex": "AgentMalformed"},
    "nothing": {"acp": "AgentFailed", "claude": "AgentMalformed", "codex": "AgentMalformed"},
    "an empty answer": "AgentEmpty",
    "a bomb as its error": "AgentFailed",
    "a bomb as its last words": "AgentFailed",
}
"""What each is called that leaves no answer. One that speaks the protocol has left a question without an
answer; of the others there are only the lines, and the last of them is missing."""


@pytest.mark.dear
@pytest.mark.parametrize("speaks", SPEAKS)
@pytest.mark.parametrize("behaviour", REFUSED)
def test_an_agent_without_an_answer_is_told_apart_and_bounded(
    plan: Rehearsal, usual: int, speaks: str, behaviour: str
) -> None:
    given(plan, speaks, behaviour)
    told = ran(plan)
    assert told.code == 1, told.printed
    assert told.landed == []
    expected = REFUSED[behaviour]
    kind = expected if isinstance(expected, str) else expected[speaks]
    assert {event.error for event in told.errors} == {kind}, told.errors
    assert not RAW.search(told.printed)
    assert not any(RAW.search(event.message) for event in told.errors)
    assert told.peak - usual < MEMORY


@pytest.mark.dear
@pytest.mark.parametrize("speaks", SPEAKS)
@pytest.mark.parametrize("behaviour", ["endless messages", "endless tool calls", "endless complaints"])
def test_an_agent_that_never_ends_is_ended(plan: Rehearsal, usual: int, speaks: str, behaviour: str) -> None:
    given(plan, speaks, behaviour)
    settings = plan.root / "planforge.toml"
    text = settings.read_text().replace("[agents]\n", "[agents]\nseconds = 10\n")
    settings.write_text(text.replace("[run]\n", "[run]\nhandoffs = 1\n"))
    told = ran(plan)
    assert told.code == 1, told.printed
    assert told.landed == []
    # What an agent has said is counted as what is in its context: when that is full, another one would go on.
    kinds = {event.error for event in told.errors}
    handed_over = [reason for reason in told.rejected if "handed over" in reason]
    assert kinds <= {"AgentTimedOut", "AgentMalformed"}
    assert kinds or handed_over, told.rejected
    assert told.peak - usual < MEMORY


@pytest.mark.dear(but="*-acp")
@pytest.mark.parametrize("speaks", SPEAKS)
@pytest.mark.parametrize(
    "behaviour", ["exit 1 with a good answer", "invalid UTF-8", "bombs all over", "children that detach"]
)
def test_work_is_taken_for_what_it_is_whatever_else_the_agent_does(
    plan: Rehearsal, speaks: str, behaviour: str
) -> None:
    given(plan, speaks, behaviour)
    told = ran(plan)
    assert told.code == 0, told.printed
    assert sorted(told.landed) == ["phase-1", "phase-2"]
    assert not RAW.search(told.printed)


@pytest.mark.dear
@pytest.mark.parametrize("speaks", SPEAKS)
def test_an_agent_that_ends_twice_is_believed_once_at_most(plan: Rehearsal, speaks: str) -> None:
    given(plan, speaks, "two endings")
    told = ran(plan)
    assert told.code in (0, 1), told.printed
    assert {event.error for event in told.errors} <= {"AgentMalformed"}


def test_an_auditor_with_two_verdicts_has_given_none(plan: Rehearsal) -> None:
    both = story.CLEAN_AUDIT + "\n" + story.FIRST_AUDIT
    plan.scene("Role: auditor", do=[{"say": both}])
    forged = planforge("forge", story.REQUEST, cwd=plan.root)
    assert "clean" not in json.loads(planforge("plan", "show", "2", "--json", cwd=plan.root).stdout).get(
        "status", ""
    )
    assert forged.returncode != 0 or "not clean" in forged.stdout + forged.stderr


@pytest.mark.dear
@pytest.mark.parametrize("where", ["../escaped", "{root}/README.md", "{root}/.git/hooks/pre-commit"])
@pytest.mark.parametrize("level", ["auto", "processes"])
def test_work_of_an_agent_that_writes_outside_its_worktree_is_not_taken(
    plan: Rehearsal, where: str, level: str
) -> None:
    target = where.format(root=plan.root)
    code = f"open({target!r}, 'a').write('x')"
    before = (plan.root / "README.md").read_bytes()
    plan.scene("Role: developer", do=[{"run": ["python3", "-c", code]}, {"say": "Done."}])
    plan.settings(f'[run]\nattempts = 1\n[sandbox]\nlevel = "{level}"\n')
    told = ran(plan)
    assert told.code == 1, told.printed
    assert told.landed == []
    if level == "auto":
        assert (plan.root / "README.md").read_bytes() == before
        assert not (plan.root / ".git/hooks/pre-commit").exists()
    else:
        assert any("reached out of its worktree" in event.message for event in told.errors)


@pytest.mark.dear
def test_an_impostor_earlier_on_path_is_shown_with_its_path_and_hash(plan: Rehearsal) -> None:
    work = plan.script.parent / "work.json"
    work.write_text(json.dumps(WORK))
    directory = plan.script.parent / "impostors"
    directory.mkdir()
    impostor = directory / "claude"
    impostor.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAM} claude honest "$@"\n')
    impostor.chmod(0o755)
    digest = hashlib.sha256(impostor.read_bytes()).hexdigest()
    path = f"{directory}{os.pathsep}{os.environ['PATH']}"
    plan.settings(
        f'[run]\njobs = 1\n[agents.roles]\ndeveloper = "claude"\n'
        f'[agents.profiles.claude]\nreads = ["{PROGRAM}", "{work}", "{directory}", "{sys.prefix}"]\n'
        f'[agents.profiles.claude.env]\nBAD_AGENT_WORK = "{work}"\nBAD_AGENT_MARK = "{MARK}"\n'
    )
    listed = planforge("agent", "list", cwd=plan.root, extra={"PATH": path}).stdout
    assert str(impostor) in listed
    assert digest[:12] in listed
    process = subprocess.run(
        [*COMMAND, "plan", "run", "1"],
        cwd=plan.root,
        env=environment({"PATH": path}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    log = planforge("log", "--json", "-n", "1000", cwd=plan.root).stdout
    assert str(impostor) in log
    assert digest in log
