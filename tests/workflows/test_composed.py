"""Flows whose agents get a composed context: what they ask, how they ask again, and who decides then."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from driven import Driven, driven
from planforge.errors import AgentEmpty, AgentFailed, CannotPerform
from planforge.kernel.effects import (
    AgentAnswer,
    AskHuman,
    DoneStep,
    GatherContext,
    MarkPlan,
    OpenWorktree,
    RunAgent,
)
from planforge.kernel.events import (
    AttemptRejected,
    AuditRecorded,
    PlanForged,
    StepCompleted,
    StepFailed,
    TierEscalated,
)
from planforge.kernel.evidence import Outcome
from planforge.workflows.attempt import StepResult, implement
from planforge.workflows.demo import DemoRequest, demo
from planforge.workflows.forge import ASK_AGAIN, ForgeRequest, forge
from planforge.workflows.plan_run import PlanRunRequest, PlanRunResult, plan_run
from worlds import BLOCKING, CLEAN, FILES, PLAN, World, approved, change, failing_agent, versions

CHAT = "I had a look and it seems nice."


def forged(world: World, cap: int = 5) -> Driven[PlanForged]:
    request = ForgeRequest(
        plan="plan-007",
        title="Rate limits",
        request="Limit callers",
        project="gateway",
        today="2026-01-02",
        base="base",
        cap=cap,
    )
    return driven(forge(request), world)


def ran(world: World, text: str = PLAN) -> Driven[PlanRunResult]:
    request = PlanRunRequest(
        plan="plan-007",
        run="run-001",
        path="p.md",
        base="base",
        today="2026-01-02",
        handoffs=1,
        escalate_after=2,
    )
    return driven(plan_run(request), approved(world, text))


def stepped(world: World, *, attempts: int = 3, escalate_after: int = 2) -> Driven[StepResult]:
    asked = change(FILES["phase-1"], attempts=attempts, escalate_after=escalate_after)
    return driven(implement(asked), world)


def calls(flow: Driven[Any]) -> list[RunAgent]:
    return [effect for effect in flow.effects if isinstance(effect, RunAgent)]


def gathered(flow: Driven[Any]) -> list[GatherContext]:
    return [effect for effect in flow.effects if isinstance(effect, GatherContext)]


# Forging


def test_a_forge_gathers_once_for_each_role_and_keeps_two_conversations() -> None:
    flow = forged(World(drafter=[PLAN], auditor=[BLOCKING, CLEAN], reviser=versions(PLAN)[1:]))
    assert flow.result.clean
    assert [effect.role for effect in gathered(flow)] == ["drafter", "auditor", "reviser"]
    assert {effect.base for effect in gathered(flow)} == {"base"}
    assert [(call.role, call.session, call.output) for call in calls(flow)] == [
        ("drafter", "forge:plan-007:drafter", ""),
        ("auditor", "forge:plan-007:auditor", "audit"),
        ("reviser", "forge:plan-007:drafter", ""),
        ("auditor", "forge:plan-007:auditor", "audit"),
    ]


def test_a_draft_that_is_no_plan_is_asked_for_once_more_in_short_and_in_a_new_conversation() -> None:
    flow = forged(World(drafter=[CHAT, PLAN], auditor=[CLEAN]))
    assert flow.result.clean
    first, second, _ = calls(flow)
    assert first.session != second.session
    assert "You must produce a result" in second.prompt


def test_an_audit_without_a_verdict_is_asked_for_once_more_and_one_that_contradicts_itself_is_not() -> None:
    flow = forged(World(drafter=[PLAN], auditor=[CHAT, CLEAN]))
    assert flow.result.clean
    two = "It needs revision. It is ready to approve."
    flow = forged(World(drafter=[PLAN], auditor=[two, CLEAN]))
    assert not flow.result.clean
    assert [call.role for call in calls(flow)] == ["drafter", "auditor"]


def test_when_a_drafter_fails_twice_a_person_decides_and_who_gives_up_ends_the_forge() -> None:
    flow = forged(World(drafter=[AgentEmpty("it said nothing")]))
    (question,) = [effect for effect in flow.effects if isinstance(effect, AskHuman)]
    assert "the drafter of plan-007" in question.question
    assert "it said nothing" in question.question
    assert question.resumed == ASK_AGAIN
    assert question.resumed in [choice.name for choice in question.choices]
    assert not flow.result.clean
    assert flow.result.content == ""
    assert "it said nothing" in flow.result.reason


def test_who_goes_on_has_the_agent_asked_again_with_the_whole_prompt() -> None:
    world = World(drafter=[AgentEmpty("a"), AgentEmpty("b"), PLAN], auditor=[CLEAN])
    world.says_to_person = [ASK_AGAIN]
    flow = forged(world)
    assert flow.result.clean
    drafts = [call for call in calls(flow) if call.role == "drafter"]
    assert ["All is one." in call.prompt for call in drafts] == [True, False, True]
    assert len({call.session for call in drafts}) == 3


def test_an_auditor_that_is_given_up_on_leaves_the_plan_to_a_person() -> None:
    world = World(drafter=[PLAN], auditor=[failing_agent()])
    flow = forged(world)
    (audit,) = [note for note in flow.notes if isinstance(note, AuditRecorded)]
    assert (audit.verdict, audit.by) == ("unknown", "nobody")
    assert not flow.result.clean
    assert flow.result.content
    assert [effect.status for effect in flow.effects if isinstance(effect, MarkPlan)] == ["REVIEW"]


def test_an_auditor_that_says_the_same_twice_gets_a_heavy_model_once() -> None:
    world = World(drafter=[PLAN], auditor=[BLOCKING, BLOCKING, BLOCKING, CLEAN], reviser=versions(PLAN)[1:])
    flow = forged(world)
    tiers = [call.tier for call in calls(flow) if call.role == "auditor"]
    assert tiers == ["", "", "heavy", ""]
    (note,) = [note for note in flow.notes if isinstance(note, TierEscalated)]
    assert (note.role, note.attempt, note.instead_of) == ("auditor", 3, "balanced")


def test_one_that_has_a_heavy_model_already_does_not() -> None:
    world = World(drafter=[PLAN], auditor=[BLOCKING, BLOCKING, CLEAN], reviser=versions(PLAN)[1:])
    world.tier = "heavy"
    assert {call.tier for call in calls(forged(world))} == {""}


def test_the_structured_answer_of_an_auditor_is_what_counts() -> None:
    class Structured(World):
        def on_RunAgent(self, effect: RunAgent) -> object:  # noqa: N802
            answer = super().on_RunAgent(effect)
            if effect.role != "auditor" or not isinstance(answer, AgentAnswer):
                return answer
            return msgspec.structs.replace(answer, output='{"maxSeverity": "none", "concerns": []}')

    assert forged(Structured(drafter=[PLAN], auditor=[CHAT])).result.clean


# Steps


def test_a_step_is_told_what_its_closure_did_and_begins_no_conversation() -> None:
    world = World(developer=["done"], auditor=[CLEAN])
    world.done = (DoneStep(step="phase-1", title="t", files=("a.py",), claim="I made a bucket"),)
    flow = ran(world)
    assert flow.result.done
    first, second, audit = calls(flow)
    assert "I made a bucket" not in first.prompt
    assert "What your work builds on\n\n- phase-1" in second.prompt
    assert "I made a bucket" in second.prompt
    assert "I made a bucket" in audit.prompt
    assert {call.session for call in calls(flow)} == {""}
    assert [effect.steps for effect in gathered(flow)] == [(), ("phase-1",), ("phase-1", "phase-2")]
    assert [effect.base for effect in gathered(flow)] == ["base", "commit-1", "commit-2"]


def test_a_developer_whose_answer_cannot_be_used_is_asked_once_more_within_the_attempt() -> None:
    flow = stepped(World(developer=[AgentFailed("it crashed"), "done"]))
    assert flow.result.done
    assert [note.attempts for note in flow.notes if isinstance(note, StepCompleted)] == [1]
    opened = [effect.name for effect in flow.effects if isinstance(effect, OpenWorktree)]
    assert opened == ["phase-1-1", "phase-1-1"]


def test_a_developer_that_fails_twice_has_its_attempt_refused_for_that() -> None:
    flow = stepped(World(developer=[AgentFailed("one"), AgentFailed("two"), "done"]))
    assert flow.result.done
    assert [note.reason for note in flow.notes if isinstance(note, AttemptRejected)] == ["two"]
    assert [call.prompt.count("Attempt: 2") for call in calls(flow)] == [0, 0, 1]


def test_two_attempts_without_progress_and_the_third_has_a_heavy_model() -> None:
    world = World(developer=["done"])
    world.outcomes = [Outcome.FAIL, Outcome.FAIL, Outcome.FAIL, Outcome.FAIL]
    flow = stepped(world, attempts=5)
    assert [call.tier for call in calls(flow)] == ["", "", "heavy", "", ""]
    (note,) = [note for note in flow.notes if isinstance(note, TierEscalated)]
    assert (note.step, note.attempt, note.tier, note.instead_of) == ("phase-1", 3, "heavy", "balanced")
    assert note.reason == "2 attempts without progress"


def test_an_attempt_that_comes_further_is_progress() -> None:
    world = World(developer=[AgentFailed("x"), AgentFailed("x"), "done"])
    world.outcomes = [Outcome.FAIL]
    assert [call.tier for call in calls(stepped(world))] == ["", "", "", ""]


@pytest.mark.parametrize("escalate_after", [0, 3])
def test_nothing_escalates_sooner_than_the_settings_say(escalate_after: int) -> None:
    world = World(developer=["done"])
    world.outcomes = [Outcome.FAIL] * 3
    assert {call.tier for call in calls(stepped(world, escalate_after=escalate_after))} == {""}


@pytest.mark.parametrize("failure", [AgentFailed("it crashed"), CHAT])
def test_an_audit_that_gives_nothing_twice_fails_its_step_and_not_the_program(
    failure: CannotPerform | str,
) -> None:
    flow = ran(World(developer=["done"], auditor=[failure]))
    assert not flow.result.done
    assert "phase-3" in flow.result.reason
    assert [note.step for note in flow.notes if isinstance(note, StepFailed)] == ["phase-3"]
    assert len([call for call in calls(flow) if call.role == "auditor"]) == 2


def test_the_demo_tells_its_story_with_composed_contexts() -> None:
    request = DemoRequest(
        plan="plan-007",
        run="run-001",
        path="p.md",
        title="t",
        request="r",
        today="2026-01-02",
    )
    flow = driven(demo(request), World(drafter=[PLAN], auditor=[CLEAN], developer=["done"]))
    assert flow.result is not None
    assert flow.result.done
    assert len(gathered(flow)) == len(calls(flow)) == 5
