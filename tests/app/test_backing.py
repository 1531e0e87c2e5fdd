"""The task behind each plan, which follows from the plan and never disagrees with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from decided import approval
from planforge.app.decisions import statuses
from planforge.app.items import backing, plans
from planforge.app.items.backing import BackingTask
from planforge.app.plans import creation
from planforge.app.project import Project
from planforge.documents.plan import OWN_TASK, PlanStatus
from planforge.errors import InvalidDocument, NotFound
from planforge.kernel.events import Event, ItemOpened, PlanEnded, PlanStarted
from planforge.kernel.projections.items import own_task
from repositories import repository

ASKED, APPROVED = approval("plan-001", "c")
STARTED = PlanStarted(plan="plan-001", run="run-001", content="c", branch="b", base="0", steps=(), kept=())


def ended(succeeded: bool) -> PlanEnded:
    return PlanEnded(plan="plan-001", run="run-001", succeeded=succeeded, reason="", branch="b", commit="1")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.create(repository(tmp_path / "shop"))
    creation.create(made, "Rate limits")
    return made


def after(project: Project, *events: Event) -> BackingTask:
    project.ledger.append("plan-001", list(events), expected=None)
    (task,) = backing.rows(project)
    return task


def test_a_task_is_as_its_plan_is(project: Project) -> None:
    (task,) = backing.rows(project)
    assert (task.task, task.title, task.plan, task.labels) == ("ws-001", "Rate limits", "plan-001", ("plan",))
    assert (task.status, task.closed_at, task.close_reason) == ("open", "", "")
    assert after(project, ASKED, APPROVED).status == "in_progress"
    assert after(project, STARTED).status == "in_progress"
    assert after(project, ended(succeeded=False)).status == "blocked"
    assert after(project, ASKED, APPROVED, STARTED).status == "in_progress"
    done = after(project, ended(succeeded=True))
    assert (done.status, done.close_reason) == ("closed", "All phases complete")
    assert done.created_at <= done.closed_at == done.updated_at


@pytest.mark.parametrize(("event", "reason"), [("close", "Plan closed"), ("cancel", "Plan cancelled")])
def test_what_a_person_ends_is_closed_and_says_so(project: Project, event: str, reason: str) -> None:
    after(project, ASKED, APPROVED)
    statuses.move(project, "ws-001", event, actor="Ada", reason="enough", override=event == "close")
    (task,) = backing.rows(project)
    assert (task.status, task.close_reason) == ("closed", reason)
    assert task.closed_at


def test_every_status_of_a_plan_says_something_of_its_task() -> None:
    assert set(backing.STANDING) == set(PlanStatus)


def test_of_several_plans_for_one_task_the_newest_says_how_it_stands(project: Project) -> None:
    statuses.move(project, "1", "cancel", actor="Ada", reason="no")
    creation.create(project, "this", task="ws-1")
    (task,) = backing.rows(project)
    assert (task.task, task.plan, task.status) == ("ws-001", "plan-002", "open")
    assert plans.row(project, "ws-1").plan == "plan-002"


def test_a_plan_is_found_by_its_task_and_by_its_number(project: Project) -> None:
    creation.create(project, "Metrics", task="PROJ-12")
    for name in ("plan-002", "plan-2", "2", " proj-12 ", "PROJ-12"):
        assert plans.row(project, name).plan == "plan-002"
    for name in ("ws-001", "ws-1", "WS-1"):
        assert plans.row(project, name).plan == "plan-001"
    with pytest.raises(NotFound):
        plans.row(project, "ws-9")
    with pytest.raises(InvalidDocument):
        plans.row(project, "PROJ-13")


def test_plans_from_before_there_were_tasks_have_theirs_and_those_without_a_file_have_none(
    project: Project,
) -> None:
    old = ItemOpened(item="plan-017", title="Old", request="r", path="docs/plans/plan-017-old.md")
    alone = ItemOpened(item="plan-018", title="Alone", request="r", path="")
    project.ledger.append("plan-017", [old], expected=0)
    project.ledger.append("plan-018", [alone], expected=0)
    assert [task.task for task in backing.rows(project)] == ["ws-001", "ws-017"]
    assert plans.row(project, "ws-17").plan == "plan-017"
    assert OWN_TASK.fullmatch(own_task("plan-017"))


def test_the_list_can_be_of_one_status(project: Project) -> None:
    creation.create(project, "Metrics")
    after_all = [row.plan for row in plans.rows(project, "draft")]
    assert after_all == ["plan-001", "plan-002"]
    project.ledger.append("plan-001", [ASKED, APPROVED], expected=None)
    assert [row.plan for row in plans.rows(project, "APPROVED")] == ["plan-001"]
    assert plans.rows(project, "DONE") == []


def test_folded_anew_the_tasks_are_the_same(project: Project) -> None:
    creation.create(project, "Metrics", task="PROJ-12")
    before = backing.rows(project)
    project.ledger.rebuild()
    assert backing.rows(project) == before
