"""What a person says is asked once, and what the answer asks for is one effect."""

from __future__ import annotations

from typing import Any

import pytest

from driven import Driven, driven
from planforge.errors import AgentFailed, CannotPerform, PerformerFailed
from planforge.kernel.effects import Access, CloseWorktree, Effect, GatherContext, OpenWorktree, RunAgent
from planforge.kernel.events import ContextComposed
from planforge.rules.commands import Command
from planforge.workflows.chat import ActionDone, ChatRequest, ChatResult, Said, TakeActions, Taken, chat
from worlds import World

ASKED = 'So.\n```planforge-actions\n[{"action": "planList"}, {"action": "forgeStatus"}]\n```'
DONE = ActionDone(command="!plan list", exit_code=0, text="no plans yet")


def told(*said: str | CannotPerform, earlier: tuple[Said, ...] = ()) -> Driven[ChatResult]:
    world = World(assistant=said)

    def answer(effect: Effect[Any]) -> object:
        return Taken(done=(DONE,)) if isinstance(effect, TakeActions) else world(effect)

    request = ChatRequest(text="what is there?", base="base", state="plan-001 REVIEW: x", earlier=earlier)
    return driven(chat(request), answer)


def test_an_answer_is_asked_for_once_by_an_agent_that_only_reads() -> None:
    flow = told("Nothing yet.")
    assert [type(effect) for effect in flow.effects] == [OpenWorktree, GatherContext, RunAgent, CloseWorktree]
    asked = flow.effects[2]
    assert isinstance(asked, RunAgent)
    assert (asked.role, asked.access) == ("assistant", Access.READ)
    assert [type(note) for note in flow.notes] == [ContextComposed]
    assert flow.result == ChatResult(text="Nothing yet.")


def test_what_it_asks_for_is_one_effect_at_depth_one() -> None:
    flow = told(ASKED)
    assert flow.effects[-1] == TakeActions(
        commands=(Command(name="plan list"), Command(name="forge status")), depth=1
    )
    assert flow.result == ChatResult(text="So.", done=(DONE,))


def test_what_cannot_be_read_is_not_done_and_not_asked_again() -> None:
    flow = told(ASKED.replace("planList", "planErase"))
    assert not [effect for effect in flow.effects if isinstance(effect, TakeActions)]
    assert "planErase" in flow.result.problem
    assert len([effect for effect in flow.effects if isinstance(effect, RunAgent)]) == 1


def test_the_agent_hears_what_was_said_what_is_so_and_what_it_may_ask_for() -> None:
    flow = told("Yes.", earlier=(Said(text="hello", answer="Good morning."),))
    prompt = next(effect.prompt for effect in flow.effects if isinstance(effect, RunAgent))
    for words in (
        "what is there?",
        "plan-001 REVIEW: x",
        "Good morning.",
        "forgeCreate{",
        "planforge-actions",
    ):
        assert words in prompt


def test_an_agent_that_fails_twice_ends_it() -> None:
    with pytest.raises(PerformerFailed):
        told(AgentFailed("no"), AgentFailed("no"))
