"""The one record of approvals, gates and questions: numbers, one choice, one use, and what voids it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from decided import approval
from planforge.kernel.events import (
    Choice,
    DecisionAsked,
    DecisionKind,
    EffectCompleted,
    Event,
    Payload,
    PlanEnded,
    RunEnded,
)
from planforge.kernel.ledger import Ledger
from planforge.kernel.work import decisions

PLAN, RUN = "plan-001", "run-001"
CHOICES = (Choice(name="approve", cost="a merge"), Choice(name="reject"))
ENDED = RunEnded(run=RUN, succeeded=False, reason="", exit_code=1)
PLAN_ENDED = PlanEnded(plan=PLAN, run=RUN, succeeded=False, reason="", branch="b", commit="c")
COMPLETED = EffectCompleted(effect="AskHuman", outcome=Payload())


def asked(
    kind: DecisionKind, number: int = 1, content: str = "c1", *, name: str = "run-001/3"
) -> DecisionAsked:
    run = "" if kind == "approval" else RUN
    return decisions.hashed(
        DecisionAsked(
            kind=kind, number=number, subject=PLAN, name=name, run=run, choices=CHOICES, content=content
        )
    )


def yes(of: DecisionAsked, choice: str = "approve") -> Event:
    return decisions.made(of, choice, "Ada", "why not")


def after(ledger: Ledger, *given: Event) -> list[tuple[str, str, str]]:
    """What is known of each decision: its name, its status, and who used it; the same when folded anew."""
    for event in given:
        key = "/3" if isinstance(event, EffectCompleted) else ""
        ledger.append(RUN, [event], expected=None, key=key)

    def found() -> list[decisions.Decision]:
        return [each for kind in decisions.KINDS for each in decisions.select(ledger, kind)]

    before = found()
    ledger.rebuild()
    assert found() == before
    return [(each.label, each.status, each.used_by) for each in before]


A, G, Q = asked("approval"), asked("gate"), asked("question")
USED = decisions.used(A, RUN)


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ([G], [("gate-001", "waiting", "")]),
        ([G, yes(G)], [("gate-001", "decided", "")]),
        ([G, yes(G, "reject")], [("gate-001", "rejected", "")]),
        ([G, yes(G, "reject"), yes(G)], [("gate-001", "rejected", "")]),
        ([Q, yes(Q, "reject")], [("question-001", "decided", "")]),
        ([A, G, Q], [(f"{kind}-001", "waiting", "") for kind in ("approval", "gate", "question")]),
        # Another number
        ([G, G], [("gate-001", "waiting", "")]),
        ([G, asked("gate", 3)], [("gate-001", "waiting", "")]),
        ([asked("gate", 0)], []),
        ([G, asked("gate", 2)], [("gate-001", "superseded", ""), ("gate-002", "waiting", "")]),
        ([G, yes(G), asked("gate", 2)], [("gate-001", "superseded", ""), ("gate-002", "waiting", "")]),
        ([G, asked("gate", 2, name="other")], [("gate-001", "waiting", ""), ("gate-002", "waiting", "")]),
        (
            [G, yes(G, "reject"), asked("gate", 2)],
            [("gate-001", "rejected", ""), ("gate-002", "waiting", "")],
        ),
        ([G, asked("gate", 2), yes(G)], [("gate-001", "superseded", ""), ("gate-002", "waiting", "")]),
        # Use
        ([A, USED], [("approval-001", "waiting", "")]),
        ([A, yes(A), USED], [("approval-001", "used", RUN)]),
        ([A, yes(A), USED, decisions.used(A, "run-002")], [("approval-001", "used", RUN)]),
        ([A, yes(A), USED, A, yes(A)], [("approval-001", "used", RUN)]),
        ([A, yes(A), USED, decisions.used(A, "run-002", RUN)], [("approval-001", "used", "run-002")]),
        ([A, yes(A), USED, decisions.used(A, "run-003", "run-002")], [("approval-001", "used", RUN)]),
        ([A, yes(A), decisions.used(A, "run-002", RUN)], [("approval-001", "decided", "")]),
        ([G, yes(G, "reject"), decisions.used(G, RUN)], [("gate-001", "rejected", "")]),
        ([Q, yes(Q, "approve"), COMPLETED], [("question-001", "used", RUN)]),
        ([Q, COMPLETED], [("question-001", "waiting", "")]),
        # The end
        ([A, yes(A), ENDED, PLAN_ENDED], [("approval-001", "decided", "")]),
        ([G, yes(G), ENDED], [("gate-001", "closed", "")]),
        ([G, PLAN_ENDED], [("gate-001", "closed", "")]),
        ([Q, yes(Q), PLAN_ENDED], [("question-001", "decided", "")]),
        ([Q, ENDED, yes(Q)], [("question-001", "closed", "")]),
    ],
)
def test_what_becomes_of_a_decision(
    ledger: Ledger, given: Sequence[Event], rows: list[tuple[str, str, str]]
) -> None:
    assert after(ledger, *given) == rows


@pytest.mark.parametrize(
    "other",
    [{"number": 2}, {"subject": "plan-002"}, {"name": "release"}, {"content": "c2"}, {"hash": "0" * 64}],
)
def test_a_choice_about_anything_else_chooses_nothing(ledger: Ledger, other: dict[str, object]) -> None:
    assert after(ledger, G, msgspec.structs.replace(yes(G), **other)) == [("gate-001", "waiting", "")]


@pytest.mark.parametrize("other", [{"number": 2}, {"subject": "plan-002"}, {"name": "x"}, {"content": "c2"}])
def test_the_use_of_anything_else_uses_nothing(ledger: Ledger, other: dict[str, object]) -> None:
    used = msgspec.structs.replace(USED, **other)
    assert after(ledger, A, yes(A), used) == [("approval-001", "decided", "")]


def test_the_hash_is_of_all_that_is_asked_but_for_the_number() -> None:
    assert asked("gate", 2).hash == G.hash
    fields = [name for name in DecisionAsked.__struct_fields__ if name not in ("number", "hash")]
    for name in fields:
        value = getattr(G, name)
        changed = value + 1 if isinstance(value, int) else () if value == CHOICES else f"{value}x"
        assert decisions.hashed(msgspec.structs.replace(G, **{name: changed})).hash != G.hash, name


def test_the_next_number_is_the_one_that_is_folded_in(ledger: Ledger) -> None:
    for number in (1, 2, 3):
        made = decisions.asked(ledger, asked("gate", 0))
        assert made.number == number
        ledger.append(PLAN, [made], expected=None)
    newest = decisions.newest(ledger, "gate", PLAN, G.name)
    assert newest is not None
    assert newest.number == 3
    assert [each.label for each in decisions.waiting(ledger, "gate")] == ["gate-003"]
    assert decisions.newest(ledger, "gate", "plan-002", G.name) is None


def test_a_run_goes_on_with_what_was_decided_for_it_and_was_not_used(ledger: Ledger) -> None:
    ledger.append(PLAN, [*approval(PLAN, "c1"), G, yes(G, "reject"), Q, yes(Q)], expected=0)
    found = decisions.made_for(ledger, RUN, since="")
    assert [each.label for each in found] == ["gate-001", "question-001"]
    assert [each.label for each in decisions.made_for(ledger, RUN, since="9999")] == ["question-001"]
    assert decisions.made_for(ledger, "run-002", since="") == []
