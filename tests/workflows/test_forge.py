from __future__ import annotations

from driven import driven
from planforge.documents.plan import content_hash
from planforge.kernel.effects import Access, MarkPlan, RunAgent, WritePlan
from planforge.kernel.events import AuditRecorded, PlanForged
from planforge.workflows.forge import ForgeRequest, ForgeResult, forge
from worlds import BLOCKING, CLEAN, MEDIUM, PLAN, World


def forged(world: World, cap: int = 5) -> ForgeResult:
    return driven(forge(request(cap)), world).result


def request(cap: int = 5) -> ForgeRequest:
    return ForgeRequest(
        plan="plan-007",
        title="Rate limits",
        request="Stop callers from flooding us",
        project="gateway",
        today="2026-01-02",
        base="base",
        cap=cap,
    )


def roles(world: World) -> list[str]:
    return [role for role, _ in world.prompts]


def test_a_forge_stops_at_the_first_audit_that_nothing_blocks() -> None:
    world = World(drafter=[PLAN], auditor=[BLOCKING, MEDIUM], reviser=[PLAN])
    result = forged(world)
    assert result.clean
    assert (result.rounds, result.reason) == (2, "no blocking finding")
    assert roles(world) == ["drafter", "auditor", "reviser", "auditor"]


def test_a_forge_that_never_comes_clean_stops_at_its_cap_and_says_so() -> None:
    world = World(drafter=[PLAN], auditor=[BLOCKING], reviser=[PLAN])
    result = forged(world, cap=3)
    assert not result.clean
    assert result.rounds == 3
    assert "CAP_REACHED" in result.reason
    assert "VERDICT: CAP_REACHED" in world.text
    assert roles(world).count("reviser") == 2


def test_an_audit_that_cannot_be_read_goes_to_a_person_and_never_counts_as_clean() -> None:
    world = World(drafter=[PLAN], auditor=["I had a look and it seems fine to me."])
    result = forged(world)
    assert not result.clean
    assert result.rounds == 1


def test_a_plan_without_its_sections_goes_back_before_an_auditor_is_paid() -> None:
    headless = PLAN.replace("## Risks", "## Dangers")
    world = World(drafter=[headless], auditor=[CLEAN], reviser=[PLAN])
    flow = driven(forge(request()), world)
    audits = [note for note in flow.notes if isinstance(note, AuditRecorded)]
    assert [audit.by for audit in audits] == ["structure", "scripted"]
    assert roles(world) == ["drafter", "reviser", "auditor"]
    assert flow.result.clean


def test_an_answer_that_is_not_a_plan_is_asked_for_once_more() -> None:
    world = World(drafter=["Sure! What would you like?", PLAN], auditor=[CLEAN])
    assert forged(world).clean
    assert roles(world) == ["drafter", "drafter", "auditor"]


def test_a_drafter_that_gives_no_plan_twice_ends_the_forge() -> None:
    world = World(drafter=["Sure!"])
    flow = driven(forge(request()), world)
    assert not flow.result.clean
    assert flow.result.reason == "the drafter gave no plan"
    assert not any(isinstance(effect, WritePlan) for effect in flow.effects)
    assert isinstance(flow.notes[-1], PlanForged)


def test_a_reviser_that_gives_no_plan_leaves_the_last_one_in_place() -> None:
    world = World(drafter=[PLAN], auditor=[BLOCKING], reviser=["No."])
    result = forged(world)
    assert not result.clean
    assert "reviser gave no plan" in result.reason
    assert content_hash(world.text) == result.content


def test_all_roles_of_a_forge_only_read() -> None:
    world = World(drafter=[PLAN], auditor=[BLOCKING, CLEAN], reviser=[PLAN])
    asked = [effect for effect in driven(forge(request()), world).effects if isinstance(effect, RunAgent)]
    assert {effect.access for effect in asked} == {Access.READ}
    assert {effect.base for effect in asked} == {"base"}


def test_each_write_says_what_it_replaces_and_the_last_word_is_review() -> None:
    world = World(drafter=[PLAN], auditor=[BLOCKING, CLEAN], reviser=[PLAN])
    effects = driven(forge(request()), world).effects
    writes = [effect for effect in effects if isinstance(effect, WritePlan)]
    assert writes[0].replaces is None
    assert [write.replaces for write in writes[1:]] == [f"object-{len(write.text)}" for write in writes[:-1]]
    assert [effect.status for effect in effects if isinstance(effect, MarkPlan)] == ["REVIEW"]


def test_an_auditor_hears_of_earlier_findings_but_not_of_the_audit_log() -> None:
    world = World(drafter=[PLAN], auditor=[BLOCKING, CLEAN], reviser=[PLAN])
    forged(world)
    _, second = [prompt for role, prompt in world.prompts if role == "auditor"]
    assert "- blocking: no clock" in second
    assert "### Review 1" not in second
    assert "### Review 1" in world.text
    assert "### Review 2" in world.text
