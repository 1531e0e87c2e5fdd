from __future__ import annotations

from collections.abc import Callable

import pytest

from driven import Driven, driven
from planforge.errors import (
    AgentCancelled,
    AgentEmpty,
    AgentFailed,
    AgentMalformed,
    AgentStrayed,
    AgentTimedOut,
    CannotPerform,
    GitFailed,
    PerformerFailed,
    SessionUnknown,
)
from planforge.kernel.effects import Access, AgentAnswer, OpenWorktree, RunAgent
from planforge.kernel.events import ContextComposed
from planforge.workflows.asking import Conversation, Question, ask, gathering, usable
from planforge.workflows.context import Prompt
from worlds import World

PROMPT = Prompt(head="Role: auditor", asked="Audit.")


def question(access: Access = Access.READ) -> Question:
    return Question(
        role="auditor",
        access=access,
        worktree="forge",
        base="base",
        plan="plan-001",
        step="phase-2",
        attempt=3,
        files=("a.py",),
        earlier=("phase-1",),
        closure=("phase-1",),
        prompt=PROMPT,
        tier="heavy",
    )


def asked(
    *said: str | CannotPerform,
    access: Access = Access.READ,
    talk: Conversation | None = None,
    fault: Callable[[AgentAnswer], str] = usable,
) -> Driven[AgentAnswer]:
    world = World(auditor=said)

    async def flow() -> AgentAnswer:
        gathered = await gathering(question(access))
        return await ask(question(access), gathered, talk, fault)

    return driven(flow(), world)


def calls(flow: Driven[AgentAnswer]) -> list[RunAgent]:
    return [effect for effect in flow.effects if isinstance(effect, RunAgent)]


def notes(flow: Driven[AgentAnswer]) -> list[ContextComposed]:
    return [note for note in flow.notes if isinstance(note, ContextComposed)]


def test_a_question_is_asked_with_its_context_its_form_and_its_tier() -> None:
    flow = asked("fine")
    assert flow.result.text == "fine"
    (call,) = calls(flow)
    assert (call.output, call.tier, call.session) == ("audit", "heavy", "")
    assert call.prompt.startswith("Role: auditor\n")
    assert "You are the auditor." in call.prompt


def test_what_was_put_together_is_noted() -> None:
    (note,) = notes(asked("fine"))
    assert (note.plan, note.step, note.attempt, note.role) == ("plan-001", "phase-2", 3, "auditor")
    assert [part.name for part in note.parts] == ["role", "architecture", "task"]
    assert note.simplified is False


@pytest.mark.parametrize("kind", [AgentFailed, AgentEmpty, AgentMalformed, AgentTimedOut])
def test_after_an_answer_that_cannot_be_used_it_is_asked_once_more_in_short(
    kind: type[CannotPerform],
) -> None:
    flow = asked(kind("it said nothing"), "fine")
    assert flow.result.text == "fine"
    first, second = calls(flow)
    assert "All is one." in first.prompt
    assert "All is one." not in second.prompt
    assert "it said nothing" in second.prompt
    assert [note.simplified for note in notes(flow)] == [False, True]


@pytest.mark.parametrize("kind", [AgentCancelled, AgentStrayed, GitFailed, SessionUnknown])
def test_after_any_other_failure_it_is_not(kind: type[CannotPerform]) -> None:
    with pytest.raises(PerformerFailed, match="no more"):
        asked(kind("no more"), "fine")


def test_after_two_that_cannot_be_used_the_second_failure_is_the_callers() -> None:
    with pytest.raises(PerformerFailed, match="the second") as error:
        asked(AgentEmpty("the first"), AgentTimedOut("the second"), "never asked")
    assert error.value.error == "AgentTimedOut"


def test_an_answer_that_the_caller_cannot_use_counts_as_malformed() -> None:
    flow = asked("poem", "verdict", fault=lambda answer: "no verdict" if answer.text == "poem" else "")
    assert flow.result.text == "verdict"
    assert "agent `scripted`: no verdict" in calls(flow)[1].prompt
    with pytest.raises(PerformerFailed) as error:
        asked("poem", "poem", fault=lambda _: "no verdict")
    assert error.value.error == "AgentMalformed"


def test_a_failure_without_a_word_is_followed_by_the_short_prompt_too() -> None:
    assert [note.simplified for note in notes(asked(AgentEmpty(""), "fine"))] == [False, True]


def test_a_conversation_that_went_wrong_is_not_gone_on_with() -> None:
    talk = Conversation("forge:plan-001:auditor")
    flow = asked(AgentFailed("corrupt"), "fine", talk=talk)
    assert [call.session for call in calls(flow)] == ["forge:plan-001:auditor", "forge:plan-001:auditor:2"]
    assert calls(asked("again", talk=talk))[0].session == "forge:plan-001:auditor:2"


def test_neither_is_one_that_went_wrong_twice() -> None:
    talk = Conversation("forge:plan-001:auditor")
    with pytest.raises(PerformerFailed):
        asked(AgentFailed("a"), AgentFailed("b"), talk=talk)
    assert talk.name == "forge:plan-001:auditor:3"


def test_who_writes_begins_the_second_time_in_a_clean_worktree_and_who_reads_does_not_need_one() -> None:
    def opened(access: Access) -> list[OpenWorktree]:
        flow = asked(AgentTimedOut("late"), "fine", access=access)
        return [effect for effect in flow.effects if isinstance(effect, OpenWorktree)]

    assert opened(Access.WRITE) == [OpenWorktree(name="forge", commit="base")]
    assert opened(Access.READ) == []
