"""Approvals: exact content, one run, one winner."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from planforge.app.decisions import approvals, statuses
from planforge.app.items import plans
from planforge.app.project import Project
from planforge.errors import RefusedByGate
from planforge.kernel.events import DecisionMade, ItemOpened
from repositories import repository


def project(place: Path) -> Project:
    made = Project.create(repository(place))
    created = ItemOpened(item="plan-001", title="T", request="R", path="docs/plans/plan-001-t.md")
    made.ledger.append("plan-001", [created], expected=0)
    return made


def give(made: Project, content: str) -> None:
    approvals.give(made, "plan-001", "plan", content, "ada")


def take(made: Project, content: str, run: str) -> str:
    return approvals.take(made, "plan-001", "plan", content, run).content


def test_an_approval_opens_the_gate_for_its_content_once(tmp_path: Path) -> None:
    made = project(tmp_path)
    give(made, "abc")
    assert take(made, "abc", "run-001") == "abc"
    with pytest.raises(RefusedByGate, match="not approved as it is now"):
        take(made, "abc", "run-002")


def test_the_run_that_took_it_may_ask_again_after_a_crash(tmp_path: Path) -> None:
    made = project(tmp_path)
    give(made, "abc")
    take(made, "abc", "run-001")
    events = made.ledger.head()
    assert take(made, "abc", "run-001") == "abc"
    assert made.ledger.head() == events


@pytest.mark.parametrize("content", ["abd", "", "ABC"])
def test_other_content_is_refused(tmp_path: Path, content: str) -> None:
    made = project(tmp_path)
    give(made, "abc")
    with pytest.raises(RefusedByGate):
        take(made, content, "run-001")


def test_a_later_approval_of_other_content_voids_the_earlier_one(tmp_path: Path) -> None:
    made = project(tmp_path)
    give(made, "abc")
    give(made, "xyz")
    with pytest.raises(RefusedByGate):
        take(made, "abc", "run-001")
    assert take(made, "xyz", "run-001") == "xyz"


def test_another_gate_is_another_gate(tmp_path: Path) -> None:
    made = project(tmp_path)
    approvals.give(made, "plan-001", "release", "abc", "ada")
    with pytest.raises(RefusedByGate):
        take(made, "abc", "run-001")


def test_giving_the_same_approval_twice_is_one_approval(tmp_path: Path) -> None:
    made = project(tmp_path)
    give(made, "abc")
    give(made, "abc")
    take(made, "abc", "run-001")
    with pytest.raises(RefusedByGate):
        take(made, "abc", "run-002")


def race(root: Path, run: str, start: object, results: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    made = Project(root)
    try:
        take(made, "abc", run)
        results.put(run)  # type: ignore[attr-defined]
    except RefusedByGate:
        results.put("")  # type: ignore[attr-defined]


@pytest.mark.dear
def test_two_runs_that_take_it_at_once_do_not_both_get_it(tmp_path: Path) -> None:
    made = project(tmp_path)
    give(made, "abc")
    made.ledger.close()
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(4), context.Queue()
    workers = [context.Process(target=race, args=(tmp_path, f"run-{n}", start, results)) for n in range(4)]
    for worker in workers:
        worker.start()
    won = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert len([run for run in won if run]) == 1


def test_a_yes_ends_with_a_plan_that_is_cancelled_and_a_copy_of_it_opens_nothing(tmp_path: Path) -> None:
    made = project(tmp_path)
    give(made, "c")
    statuses.move(made, "plan-001", "cancel", actor="Ada", reason="not now")
    (yes,) = (item.event for item in made.ledger.since() if isinstance(item.event, DecisionMade))
    made.ledger.append("elsewhere", [yes], expected=0)
    assert plans.row(made, "plan-001").status == "CANCELLED"
    assert statuses.reopen(made, "plan-001", actor="Ada", reason="now").status != "APPROVED"
    made.ledger.append("elsewhere", [yes], expected=1)
    assert plans.row(made, "plan-001").status != "APPROVED"
    with pytest.raises(RefusedByGate, match="is not approved as it is now"):
        take(made, "c", "run-001")
    give(made, "c")
    assert plans.row(made, "plan-001").status == "APPROVED"
    take(made, "c", "run-001")
