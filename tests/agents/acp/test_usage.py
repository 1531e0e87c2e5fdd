"""What agents say of tokens, money and how full they are, and what is made of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from planforge.agents.profiles import Profile
from planforge.kernel.effects import HANDED_OVER, AgentAnswer, Usage
from planforge.kernel.tokens import THRESHOLD, TokenState
from rooms import TASK, Action, Room, agent

FOR_EVER = {"sleep": 600}


def reporting(room: Room, means: Any, *, calls: int = 0, **result: Any) -> AgentAnswer:
    """Ask an agent that reports `result`, having called as many tools."""
    body = (
        f"begin(); prompt = hear()['id']\nfor n in range({calls}):\n"
        "    update('tool_call', toolCallId=str(n), title='look', kind='read')\n"
        f"say('done'); end(prompt, **{result!r})\n"
    )
    return room.ask(Profile(command=agent(body), usage=means))


def tokens(total: int, read: int, written: int, **more: int) -> dict[str, int]:
    return {"totalTokens": total, "inputTokens": read, "outputTokens": written, **more}


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        (tokens(1284, 1200, 84), Usage(input_tokens=1200, output_tokens=84)),
        (tokens(0, 0, 0), Usage(input_tokens=0, output_tokens=0)),
        # without what came out of a cache, as Claude and Codex count
        (
            tokens(2724, 2000, 84, cachedReadTokens=600, cachedWriteTokens=40),
            Usage(input_tokens=2640, output_tokens=84, cached_tokens=600),
        ),
        # with it
        (
            tokens(2084, 2000, 84, cachedReadTokens=600),
            Usage(input_tokens=2000, output_tokens=84, cached_tokens=600),
        ),
        # with the reasoning, and without
        (tokens(2084, 2000, 84, thoughtTokens=14), Usage(input_tokens=2000, output_tokens=84)),
        (tokens(2098, 2000, 84, thoughtTokens=14), Usage(input_tokens=2000, output_tokens=98)),
        # a total that fits nothing
        (
            tokens(1, 2000, 84, cachedReadTokens=600),
            Usage(input_tokens=2600, output_tokens=84, cached_tokens=600),
        ),
        (tokens(10**15, 10**15, 0), None),
    ],
)
def test_usage_has_what_came_out_of_a_cache_and_the_reasoning(
    room: Room, told: dict[str, int], usage: Usage | None
) -> None:
    assert reporting(room, "turn", usage=told).usage == usage


@pytest.mark.parametrize("means", ["turn", "thread", "last_step", "quota", "none"])
def test_usage_that_was_not_reported_is_unknown_and_not_zero(room: Room, means: Any) -> None:
    assert reporting(room, means).usage is None


def test_what_is_known_to_mean_nothing_is_not_believed(room: Room) -> None:
    assert reporting(room, "none", usage=tokens(12, 7, 5)).usage is None


def test_the_last_step_is_the_turn_if_there_was_no_other_and_a_guess_if_there_were(room: Room) -> None:
    told = tokens(1284, 1200, 84)
    assert reporting(room, "last_step", usage=told).usage == Usage(input_tokens=1200, output_tokens=84)
    guess = reporting(room, "last_step", calls=2, usage=told).usage
    assert guess == Usage(input_tokens=3600, output_tokens=252, source="estimated")


@pytest.mark.parametrize(
    ("meta", "usage"),
    [
        (
            {"quota": {"token_count": {"input_tokens": 7, "output_tokens": 5}}},
            Usage(input_tokens=7, output_tokens=5),
        ),
        ({"quota": {"token_count": {"input_tokens": -7, "output_tokens": 5}}}, None),
        ({"quota": {"token_count": {"input_tokens": "7", "output_tokens": 5}}}, None),
        ({"quota": {}}, None),
        ({"quota": 7}, None),
    ],
)
def test_gemini_reports_its_usage_elsewhere(room: Room, meta: Any, usage: Usage | None) -> None:
    assert reporting(room, "quota", _meta=meta).usage == usage


# What it costs


def costing(*costs: object) -> tuple[str, ...]:
    news = "".join(f"update('usage_update', used=10, size=100, cost={cost!r})\n" for cost in costs)
    return agent(f"begin(); prompt = hear()['id']\n{news}say('done'); end(prompt)\n")


@pytest.mark.parametrize(
    ("cost", "money"),
    [
        ({"amount": 0.25, "currency": "USD"}, 250_000),
        ({"amount": 0, "currency": "USD"}, None),  # which those say that do not know the price
        ({"amount": -1, "currency": "USD"}, None),
        ({"amount": 1e30, "currency": "USD"}, None),
        ({"amount": 0.25, "currency": "EUR"}, None),  # not so many dollars
        ({"amount": "much"}, None),
    ],
)
def test_what_an_agent_says_it_cost_is_kept_if_it_can_be_true(
    room: Room, cost: object, money: int | None
) -> None:
    assert room.ask(Profile(command=costing(cost))).money == money


def test_the_last_word_on_the_cost_counts_and_each_is_noted(room: Room) -> None:
    costs = [{"amount": amount, "currency": "usd"} for amount in (0.1, 0.3)]
    assert room.ask(Profile(command=costing(*costs))).money == 300_000
    assert room.money == [100_000, 300_000]


# Contexts that fill up


def rehearsed(room: Room, *actions: Action, threshold: int = THRESHOLD, prompt: str = "go") -> AgentAnswer:
    return room.rehearse(*actions, task=msgspec.structs.replace(TASK, threshold=threshold, prompt=prompt))


def test_an_agent_that_reports_a_full_context_is_stopped_and_what_it_did_stays(room: Room) -> None:
    answer = rehearsed(
        room,
        {"say": "I began."},
        {"write": {"path": "half.txt", "text": "half\n"}},
        {"context": 99_999},
        {"context": 100_000},
        FOR_EVER,
        {"write": {"path": "whole.txt", "text": "whole\n"}},
    )
    assert answer.stop_reason == HANDED_OVER
    assert answer.context == TokenState(used=100_000, threshold=100_000, estimated=False)
    assert (answer.text, answer.tool_calls, answer.usage, answer.session) == ("I began.", 1, None, "")
    assert (room.directory / "half.txt").read_text() == "half\n"
    assert not (room.directory / "whole.txt").exists()


def test_an_agent_that_reports_nothing_is_stopped_by_a_guess_that_is_marked_as_one(room: Room) -> None:
    answer = rehearsed(room, {"flood": 40_000}, FOR_EVER, threshold=5000)
    assert answer.stop_reason == HANDED_OVER
    assert answer.context is not None
    assert (answer.context.estimated, answer.context.threshold) == (True, 5000)
    assert 5000 <= answer.context.used < 20_000


def test_the_task_counts_in_the_guess(room: Room) -> None:
    answer = rehearsed(room, {"say": "hm"}, FOR_EVER, threshold=5000, prompt="x" * 20_000)
    assert answer.stop_reason == HANDED_OVER
    assert answer.context is not None
    assert answer.context.used > 5000


def test_what_an_agent_reports_outweighs_any_guess(room: Room) -> None:
    answer = rehearsed(room, {"context": 10}, {"flood": 100_000}, {"say": " done"}, threshold=5000)
    assert (answer.stop_reason, answer.context) == ("end_turn", None)


@pytest.mark.parametrize("threshold", [0, 100_001])
def test_an_agent_below_its_threshold_or_without_one_is_left_alone(room: Room, threshold: int) -> None:
    answer = rehearsed(room, {"context": 100_000}, {"say": "done"}, threshold=threshold)
    assert (answer.stop_reason, answer.text, answer.context) == ("end_turn", "done", None)


def test_an_agent_that_is_full_and_does_not_listen_is_ended_all_the_same(room: Room) -> None:
    assert rehearsed(room, {"context": 100}, {"hang": "deaf"}, threshold=100).stop_reason == HANDED_OVER


def test_an_agent_that_ends_its_turn_at_that_very_moment_is_not_handed_over(room: Room) -> None:
    # Agents say how full they are with their last breath; the answer is read a moment after the report.
    answer = rehearsed(room, {"say": "all done"}, {"context": 120_000}, {"sleep": 0.2})
    assert (answer.stop_reason, answer.text, answer.context) == ("end_turn", "all done", None)


def test_an_agent_that_hands_over_is_asked_to_stop(room: Room) -> None:
    note = room.directory.parent / "note"
    body = (
        "begin(); prompt = hear()['id']; update('usage_update', used=100, size=100)\n"
        f"open({str(note)!r}, 'w').write(json.dumps(hear())); time.sleep(600)\n"
    )
    task = msgspec.structs.replace(TASK, threshold=100)
    assert room.ask(Profile(command=agent(body)), task).stop_reason == HANDED_OVER
    assert json.loads(note.read_text())["method"] == "session/cancel"
