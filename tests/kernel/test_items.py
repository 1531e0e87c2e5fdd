"""Names of items: how people write them, and which comes next."""

from __future__ import annotations

import pytest

from planforge.errors import InvalidDocument
from planforge.kernel.events import EVENTS, ItemOpened
from planforge.kernel.work import items
from planforge.kernel.work.items import Kind
from planforge.kernel.work.lifecycle.statuses import LEADS, MACHINES
from planforge.kernel.work.lifecycle.tables import PLAN


@pytest.mark.parametrize("text", ["plan-017", "plan-17", "17", "017", " plan-0017 "])
def test_an_item_is_named_in_several_ways(text: str) -> None:
    assert items.parse(text, Kind.PLAN) == "plan-017"
    assert items.parse(text, Kind.PLAN, Kind.FIX) == "plan-017"


@pytest.mark.parametrize(
    "text", ["", "plan-", "plan", "0", "plan-000", "-17", "plan--17", "17a", "٣", "1" * 20, "fix-3", "task-3"]
)
def test_what_names_no_such_item_is_refused(text: str) -> None:
    with pytest.raises(InvalidDocument, match="is not a plan id"):
        items.parse(text, Kind.PLAN)


def test_a_number_alone_means_the_first_kind_and_the_hint_names_all() -> None:
    assert items.parse("3", Kind.TASK, Kind.BUG) == "task-003"
    assert items.parse("bug-3", Kind.TASK, Kind.BUG) == "bug-003"
    with pytest.raises(InvalidDocument) as refused:
        items.parse("plan-3", Kind.TASK, Kind.BUG)
    assert refused.value.hint == "write it like `task-017` or `17`; a bug like `bug-003`"


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("number", [1, 999, 1000])
def test_a_name_says_its_kind_and_is_read_back(kind: Kind, number: int) -> None:
    name = items.name(kind, number)
    assert name == f"{kind}-{number:03}"
    assert (items.kind_of(name), items.parse(name, *Kind)) == (kind, name)
    assert items.is_named(name, kind)
    assert not items.is_named(name, *(set(Kind) - {kind}))
    assert not items.is_named(str(number), kind)


def test_items_are_numbered_from_one() -> None:
    with pytest.raises(InvalidDocument, match="numbered from 1"):
        items.name(Kind.PLAN, 0)


@pytest.mark.parametrize(
    ("names", "next_one"),
    [
        ([], "plan-001"),
        (["plan-001", "plan-009", "plan-002"], "plan-010"),
        (["plan-999"], "plan-1000"),
        (["plan-7-slug.md", "fix-100", "task-200", "plan-x", "plan-12345678901"], "plan-008"),
    ],
)
def test_the_next_number_is_after_all_that_are_taken(names: list[str], next_one: str) -> None:
    assert items.following(Kind.PLAN, names) == next_one


def test_every_event_that_names_a_status_gives_one() -> None:
    """Whatever event carries a status for an item leads to it in the one table."""
    carries = {kind for kind in EVENTS.values() if {"item", "status"} <= set(kind.__struct_fields__)}
    assert carries <= set(LEADS)
    assert ItemOpened not in LEADS  # it begins with the first status of its table


def test_a_kind_that_can_be_opened_has_a_table() -> None:
    assert MACHINES[Kind.PLAN] is MACHINES[Kind.FIX] is PLAN
    assert {Kind.PLAN, Kind.FIX, Kind.TASK} <= set(MACHINES)
