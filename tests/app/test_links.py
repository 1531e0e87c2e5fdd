"""What a person says to come after something waits for it: to be carried out, and to land."""

from __future__ import annotations

from pathlib import Path

import pytest

from landings import Field
from planforge.app import landing
from planforge.app.items import links, plans
from planforge.app.landing import queue
from planforge.app.plans import work
from planforge.app.project import Project
from planforge.errors import CannotPerform, InvalidInput, NotFound, RefusedByGate
from planforge.interfaces.cli.typed import text
from planforge.kernel import events
from programs import document, planforge
from rehearsals import Rehearsal
from repositories import git
from texts import CLEAN, drive, forged, play, says, writes


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path / "field")


def after(field: Field, name: str, *names: str) -> None:
    links.link(field.project, name, names, actor="Ada")


def known(field: Field, name: str) -> list[tuple[str, bool]]:
    return [(each.item, each.over) for each in links.linked(field.project, name).after]


def test_what_is_said_last_holds_and_nothing_is_recorded_twice(field: Field) -> None:
    one, two, three = (field.plan({f"{name}.txt": "x\n"}) for name in "abc")
    after(field, three, one, two, one)
    assert known(field, three) == [(one, False), (two, False)]
    recorded = field.project.ledger.version(three)
    after(field, three, two, one)
    assert field.project.ledger.version(three) == recorded
    after(field, three, two)
    assert known(field, three) == [(two, False)]
    after(field, three)
    assert known(field, three) == []


def test_an_order_that_goes_round_is_refused_and_shown(field: Field) -> None:
    one, two, three = (field.plan({f"{name}.txt": "x\n"}) for name in "abc")
    after(field, two, one)
    after(field, three, two, one)
    with pytest.raises(
        InvalidInput, match=f"`{one}`, which comes after `{three}`, which comes after `{one}`"
    ):
        after(field, one, three)
    with pytest.raises(InvalidInput, match=f"`{one}`, which comes after `{one}`"):
        after(field, one, one)
    assert known(field, one) == []


def test_what_is_not_there_cannot_be_waited_for(field: Field) -> None:
    one = field.plan({"a.txt": "x\n"})
    for name in ("plan-099", "task-001", "nonsense", ""):
        with pytest.raises((NotFound, InvalidInput)):
            after(field, one, name)
        with pytest.raises((NotFound, InvalidInput)):
            after(field, name, one)


def test_a_plan_lands_after_what_it_comes_after_although_it_was_done_before(field: Field) -> None:
    one, two = field.plan({"a.txt": "x\n"}), field.plan({"b.txt": "y\n"})
    after(field, one, two)
    found = queue.queue(field.project, "main", git(field.root, "rev-parse", "main"))
    assert [item.plan for item in found.ready] == [two, one]
    alone = queue.queue(field.project, "main", git(field.root, "rev-parse", "main"), [one])
    assert [(item.plan, item.reason) for item in alone.held] == [
        (one, f"it comes after {two}, which has not landed")
    ]
    field.project.ledger.append(
        two, [events.ItemMoved(item=two, by="cancel", status="CANCELLED", actor="Ada")], expected=None
    )
    assert known(field, one) == [(two, True)]
    found = queue.queue(field.project, "main", git(field.root, "rev-parse", "main"))
    assert [item.plan for item in found.ready] == [one]


@pytest.fixture
def begun(tmp_path: Path) -> Rehearsal:
    """Two plans; the second one is approved and waits for the first."""
    here = forged(tmp_path / "here")
    for words in (
        ["plan", "create", "Another text"],
        ["link", "1", "--after", "2"],
        ["plan", "approve", "1", "--as", "Ada"],
    ):
        assert planforge(*words, cwd=here.root).returncode == 0
    return here


def test_a_plan_that_waits_is_not_carried_out_and_the_hints_lead_on(begun: Rehearsal) -> None:
    play(begun, ((("Role: developer",), writes("one/a.txt")), (("Role: auditor",), says(CLEAN))))
    project = Project.find(begun.root)
    with pytest.raises(
        RefusedByGate, match="`plan-001` comes after `plan-002`, which has not landed"
    ) as refused:
        work.begin_plan_run(project, "plan-001")
    hint = "carry that out and land it, or say that it need not wait: `planforge link plan-001 --clear`"
    assert text(refused.value.hint) == hint
    shown = planforge("plan", "show", "1", cwd=begun.root)
    assert "waits   for plan-002" in shown.stdout
    told = document("link", "1", "--json", cwd=begun.root)
    assert told["after"] == [{"item": "plan-002", "status": "DRAFT", "over": False}]
    cleared = planforge("link", "plan-001", "--clear", cwd=begun.root)
    assert cleared.stdout == "plan-001 comes after nothing\n"
    assert drive(project, work.begin_plan_run(project, "plan-001")).succeeded


def test_a_landing_under_way_heeds_what_is_said_meanwhile(field: Field) -> None:
    one, two = field.plan({"a.txt": "x\n"}), field.plan({"b.txt": "y\n"})
    queue.require_wanted(field.project, two)
    after(field, two, one)
    with pytest.raises(CannotPerform, match=f"it comes after {one}, which has not landed"):
        queue.require_wanted(field.project, two)
    found = queue.queue(field.project, "main", git(field.root, "rev-parse", "main"), [two])
    assert [item.plan for item in found.held] == [two]


def test_what_had_to_wait_begins_with_what_it_waited_for(field: Field) -> None:
    one, two = field.plan({"a.txt": "x\n"}), field.plan({"b.txt": "y\n"})
    head = git(field.root, "rev-parse", "main")
    after(field, two, one)
    field.land(one)
    landed = git(field.root, "rev-parse", "planforge/landed/main")
    assert landed != head
    assert landing.base_of(field.project, plans.row(field.project, two), head) == landed
    assert landing.base_of(field.project, plans.row(field.project, one), head) == head
    assert field.tip(two) != landed  # what was done there stays


def test_a_plan_that_waits_offers_to_look_at_that_and_nothing_that_is_refused(begun: Rehearsal) -> None:
    assert document("status", "--json", cwd=begun.root)["next"][:1] == ["planforge link plan-001"]
    for words in (["status"], ["plan", "phases", "1"]):
        assert "planforge plan run plan-001" not in planforge(*words, cwd=begun.root).stdout
    assert planforge("link", "plan-001", cwd=begun.root).returncode == 0
