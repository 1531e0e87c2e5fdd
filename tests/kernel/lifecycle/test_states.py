"""Statuses, and what may follow what."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest

from planforge.errors import InvalidInput
from planforge.interfaces.cli.typed import text
from planforge.kernel.work.lifecycle import IllegalTransition, Machine, Transition
from planforge.kernel.work.lifecycle.tables import MACHINES, PLAN, TASK, named

DOCUMENTED = {
    "plan": "DRAFT REVIEW APPROVED IMPLEMENTING AUDITING DONE CLOSED CANCELLED",
    "phase": "pending in-progress done failed skipped",
    "task": "draft planned plan-approved implementing implemented review-approved approved committed "
    "plan-revision-required code-revision-required blocked escalated abandoned landed delivered",
    "sprint": "planning active completed retrospective-done blocked partially-completed abandoned",
    "bug": "reported triaged in-progress fixed verified abandoned",
    "module": "pending ready running approved integrating merged cancelled needs_patch failed",
    "idea": "brain_dump distilling human_review spec_building building polishing done halted terminated",
}


def faults(machine: Machine) -> Iterator[str]:
    """What is wrong with a table: a status that is out of reach, stuck, or left although it is final."""
    reached = {machine.initial}
    while grown := {row.target for row in machine.transitions if row.source in reached} - reached:
        reached |= grown
    for state in machine.states:
        rows = list(machine.leaving(state))
        events = [row.event for row in rows]
        if state not in reached:
            yield f"`{state}` cannot be reached"
        if state in machine.final and not all(row.person for row in rows):
            yield f"`{state}` is final, but {', '.join(events)} leads out of it"
        if state not in machine.final and not any(row.person for row in rows):
            yield f"`{state}` has no exit that a person can take"
        for event in sorted({event for event in events if events.count(event) > 1}):
            yield f"`{event}` leads from `{state}` to two places"
    for state in sorted(machine.final - set(machine.states)):
        yield f"`{state}` is final but not in the table"


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_every_status_is_reached_and_none_is_a_dead_end(machine: Machine) -> None:
    assert list(faults(machine)) == []


@pytest.mark.parametrize(("name", "states"), DOCUMENTED.items())
def test_every_status_that_a_document_names_is_there_and_no_other(name: str, states: str) -> None:
    assert set(named(name).states) == set(states.split())


def test_an_illegal_step_is_refused_with_the_legal_ones() -> None:
    with pytest.raises(IllegalTransition) as caught:
        PLAN.move("REVIEW", "DONE")
    assert caught.value.message == "a plan that is `REVIEW` cannot become `DONE`"
    assert text(caught.value.hint) == (
        "possible are `planforge plan approve PLAN` → APPROVED, "
        "`planforge plan cancel PLAN --reason TEXT` → CANCELLED"
    )
    with pytest.raises(IllegalTransition, match="`run` cannot happen to a plan that is `REVIEW`"):
        PLAN.after("REVIEW", "run")


def test_what_is_final_says_so() -> None:
    with pytest.raises(IllegalTransition) as caught:
        TASK.move("delivered", "draft")
    assert text(caught.value.hint) == "`delivered` is final"


@pytest.mark.parametrize("state", PLAN.states)
def test_a_plan_that_cannot_be_so_is_told_commands_with_its_name(state: str) -> None:
    with pytest.raises(IllegalTransition) as caught:
        PLAN.after(state, "nothing", "plan-003")
    named = re.findall("`([^`]+)`", text(caught.value.hint))
    commands = [each for each in named if each != state]
    assert commands
    assert all(re.match("planforge plan [a-z]+ plan-003", each) for each in commands)
    assert len(set(commands)) == len(commands)


def test_a_status_nobody_knows_is_refused() -> None:
    with pytest.raises(IllegalTransition, match="a plan cannot be `FINISHED`"):
        PLAN.move("DRAFT", "FINISHED")
    with pytest.raises(InvalidInput, match="there are no states of `meeting`"):
        named("meeting")


def test_a_legal_step_gives_the_new_status() -> None:
    assert PLAN.move("APPROVED", "IMPLEMENTING") == "IMPLEMENTING"
    assert PLAN.after("DONE", "approve again") == "APPROVED"


@pytest.mark.parametrize("task", ["blocked", "escalated"])
def test_a_task_that_is_stuck_can_be_taken_up_overridden_or_given_up(task: str) -> None:
    assert {row.target for row in TASK.leaving(task) if row.person} == {
        "plan-revision-required",
        "code-revision-required",
        "plan-approved",
        "review-approved",
        "approved",
        "abandoned",
    }


def test_a_way_of_several_rows_ends_where_it_is_to_and_takes_no_decision_of_a_person_on_it() -> None:
    events = [row.event for row in TASK.way("plan-revision-required", "review-approved")]
    assert events == ["plan", "implement without approved plan", "implemented", "review approved"]
    assert [row.event for row in TASK.way("code-revision-required", "approved")] == [
        "implement",
        "implemented",
        "approve",
    ]
    assert TASK.way("planned", "planned") == ()
    with pytest.raises(IllegalTransition, match="a task that is `escalated` cannot become `committed`"):
        TASK.way("escalated", "committed")


def row(source: str, event: str, target: str, *, person: bool = True) -> Transition:
    return Transition(source=source, event=event, target=target, person=person)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ((row("a", "go", "z"), row("b", "go", "z")), "`b` cannot be reached"),
        (
            (row("a", "go", "z"), row("z", "back", "a", person=False)),
            "`z` is final, but back leads out of it",
        ),
        ((row("a", "go", "z", person=False),), "`a` has no exit that a person can take"),
        ((row("a", "go", "z"), row("a", "go", "a")), "`go` leads from `a` to two places"),
        ((row("a", "go", "b"), row("b", "go", "a")), "`z` is final but not in the table"),
    ],
)
def test_a_table_that_is_wrong_is_found(rows: tuple[Transition, ...], problem: str) -> None:
    machine = Machine(name="m", about="", initial="a", final=frozenset("z"), transitions=rows)
    assert problem in list(faults(machine))


def test_taking_away_any_person_exit_of_a_lonely_status_is_noticed() -> None:
    for machine in MACHINES.values():
        for state in set(machine.states) - machine.final:
            rows = tuple(item for item in machine.transitions if not (item.source == state and item.person))
            assert list(faults(msgspec.structs.replace(machine, transitions=rows)))
