"""An agent whose context fills up is stopped, by what it says or by our guess; others are left alone."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from planforge.agents import acp
from planforge.agents.profiles import KNOWN, REHEARSAL, Profile, choose
from planforge.agents.wire import LINE_LIMIT
from planforge.kernel.effects import HANDED_OVER, Access, AgentAnswer
from planforge.kernel.tokens import THRESHOLD, TokenState
from planforge.workspace import processes

PATIENCE = 30.0
FOR_EVER = {"sleep": 600}

Action = dict[str, Any]


class Question(msgspec.Struct, frozen=True):
    prompt: str = "go"
    access: Access = Access.WRITE


def rehearse(
    directory: Path, *actions: Action, threshold: int = THRESHOLD, prompt: str = "go"
) -> AgentAnswer:
    """Ask the real rehearsal agent, which does `actions`."""
    script = directory / "script.json"
    script.write_text(json.dumps({"name": "test", "scenes": [{"when": [], "do": list(actions)}]}))
    profile = Profile(command=(*KNOWN[REHEARSAL].command, str(script)))
    started: list[asyncio.subprocess.Process] = []

    async def launch(profile: Profile, cwd: Path) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        process = await processes.start(
            profile.command, cwd=cwd, extra=profile.env, stdin=pipe, stderr=pipe, limit=LINE_LIMIT
        )
        started.append(process)
        return process

    asked = acp.ask(
        "the agent",
        profile,
        Question(prompt=prompt),
        cwd=directory,
        seconds=PATIENCE,
        launch=launch,
        end=processes.end,
        threshold=threshold,
    )
    began = time.monotonic()
    answer = asyncio.run(asked)
    assert time.monotonic() - began < PATIENCE
    assert [process.returncode is None for process in started] == [False], "the agent was not ended"
    return answer


def test_an_agent_that_reports_a_full_context_is_stopped_and_what_it_did_stays(tmp_path: Path) -> None:
    answer = rehearse(
        tmp_path,
        {"say": "I began."},
        {"write": {"path": "half.txt", "text": "half\n"}},
        {"context": 99_999},
        {"context": 100_000},
        FOR_EVER,
        {"write": {"path": "whole.txt", "text": "whole\n"}},
    )
    assert answer.stop_reason == HANDED_OVER
    assert answer.context == TokenState(used=100_000, threshold=100_000, estimated=False)
    assert (answer.text, answer.tool_calls, answer.usage) == ("I began.", 1, None)
    assert (tmp_path / "half.txt").read_text() == "half\n"
    assert not (tmp_path / "whole.txt").exists()


def test_an_agent_that_reports_nothing_is_stopped_by_a_guess_that_is_marked_as_one(tmp_path: Path) -> None:
    answer = rehearse(tmp_path, {"flood": 40_000}, FOR_EVER, threshold=5000)
    assert answer.stop_reason == HANDED_OVER
    assert answer.context is not None
    assert (answer.context.estimated, answer.context.threshold) == (True, 5000)
    assert 5000 <= answer.context.used < 20_000


def test_the_question_counts_in_the_guess(tmp_path: Path) -> None:
    asked = rehearse(tmp_path, {"say": "hm"}, FOR_EVER, threshold=5000, prompt="x" * 20_000)
    assert asked.stop_reason == HANDED_OVER
    assert asked.context is not None
    assert asked.context.used > 5000


def test_what_an_agent_reports_outweighs_any_guess(tmp_path: Path) -> None:
    answer = rehearse(tmp_path, {"context": 10}, {"flood": 100_000}, {"say": " done"}, threshold=5000)
    assert (answer.stop_reason, answer.context) == ("end_turn", None)


@pytest.mark.parametrize("threshold", [0, 100_001])
def test_an_agent_below_its_threshold_or_without_one_is_left_alone(tmp_path: Path, threshold: int) -> None:
    answer = rehearse(tmp_path, {"context": 100_000}, {"say": "done"}, threshold=threshold)
    assert (answer.stop_reason, answer.text, answer.context) == ("end_turn", "done", None)


def test_an_agent_that_ends_its_turn_at_that_very_moment_is_not_handed_over(tmp_path: Path) -> None:
    # Agents say how full they are with their last breath; the answer is read a moment after the report.
    answer = rehearse(tmp_path, {"say": "all done"}, {"context": 120_000}, {"sleep": 0.2})
    assert (answer.stop_reason, answer.text, answer.context) == ("end_turn", "all done", None)


def test_each_agent_has_a_threshold_of_its_own() -> None:
    assert {profile.handoff_tokens for profile in KNOWN.values()} == {THRESHOLD}
    own = {REHEARSAL: Profile(handoff_tokens=40_000)}
    assert choose(REHEARSAL, own)[1].handoff_tokens == 40_000
    assert choose(REHEARSAL, {})[1].handoff_tokens == THRESHOLD
