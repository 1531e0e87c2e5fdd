"""What is offered for an item, from its status and the facts alone."""

from __future__ import annotations

import pytest

from planforge.actions import TEXT, Action
from planforge.kernel.work.actions import OVER, UPDATE, AtWork, Known, offered
from planforge.kernel.work.lifecycle.tables import PLAN, TASK

LINK = Action("link", "plan-1")
RECORD, CANCEL = Action("plan show", "plan-1", recorded=True), Action("plan cancel", "plan-1", reason=TEXT)
SHOW, APPROVE, FORGE = (
    Action("plan show", "plan-1"),
    Action("plan approve", "plan-1"),
    Action("forge", "plan-1"),
)
RUN, LAND = Action("plan run", "plan-1"), Action("plan land", "plan-1")
RETRY = Action("plan retry", "plan-1", "phase-2")
SKIP = Action("plan skip", "plan-1", "phase-2", reason=TEXT)
REMADE = [
    Action("plan phases", "plan-1", regenerate=True, keep_done=True),
    Action("plan phases", "plan-1", regenerate=True),
]
AGAIN, ACCEPT = Action("fix", again="fix-1"), Action("fix", accept="fix-1", reason=TEXT)
ABANDON = Action("task abandon", "task-1", reason=TEXT)


@pytest.mark.parametrize(
    ("item", "status", "known", "expected"),
    [
        ("plan-1", "DRAFT", Known(blank=True), [FORGE]),
        ("plan-1", "DRAFT", Known(), [FORGE, APPROVE]),
        ("plan-1", "REVIEW", Known(), [SHOW, APPROVE]),
        ("plan-1", "REVIEW", Known(waits=True), [LINK, SHOW, APPROVE]),
        ("plan-1", "APPROVED", Known(waits=True, approved=True), [LINK]),
        ("plan-1", "DONE", Known(waits=True, unlanded=True), [LINK]),
        ("plan-1", "DONE", Known(landing="run-9", unlanded=True), [Action("resume", "run-9")]),
        ("plan-1", "REVIEW", Known(stale=True), REMADE),
        ("plan-1", "APPROVED", Known(), [APPROVE]),
        ("plan-1", "APPROVED", Known(approved=True), [RUN]),
        ("plan-1", "APPROVED", Known(approved=True, stale=True), REMADE),
        ("plan-1", "APPROVED", Known(readable=False), [RECORD, CANCEL]),
        ("plan-1", "IMPLEMENTING", Known(approved=True, failed="phase-2"), [RETRY, SKIP]),
        ("plan-1", "IMPLEMENTING", Known(filed=False), [Action("graph", "plan-1")]),
        ("plan-1", "DONE", Known(unlanded=True, ahead=True), [LAND]),
        ("plan-1", "DONE", Known(ahead=True), [UPDATE]),
        ("plan-1", "DONE", Known(), []),
        ("plan-1", "DONE", Known(unlanded=True, stale=True), [LAND, *REMADE]),
        ("plan-1", "DONE", Known(left=True), [APPROVE]),
        ("fix-1", "DONE", Known(unlanded=True), [Action("land", "fix-1")]),
        ("fix-1", "REVIEW", Known(), [AGAIN]),
        ("fix-1", "REVIEW", Known(passed=True), [ACCEPT]),
        ("fix-1", "REVIEW", Known(passed=True, found="More"), [Action("forge", "More"), ACCEPT]),
        ("task-1", "committed", Known(), [Action("land", "task-1")]),
        ("task-1", "committed", Known(ending=True), [Action("land", "task-1"), ABANDON]),
        ("task-1", "blocked", Known(), [Action("task show", "task-1")]),
        ("task-1", "code-revision-required", Known(), [Action("task resume", "task-1")]),
        ("task-1", "blocked", Known(stage="plan"), [Action("task resume", "task-1", at="plan")]),
    ],
)
def test_what_is_offered_follows_from_the_status_and_the_facts(
    item: str, status: str, known: Known, expected: list[Action]
) -> None:
    assert offered(item, status, known) == expected


def test_the_run_that_is_at_an_item_comes_before_everything_else() -> None:
    resume, end, look = Action("resume", "run-1"), Action("cancel", "run-1"), Action("gate show", "gate-001")
    for item, status in (("plan-1", "REVIEW"), ("fix-1", "APPROVED"), ("task-1", "blocked")):
        for run, expected in (
            (AtWork(run="run-1"), [resume]),
            (AtWork(run="run-1", end=end), [resume, end]),
            (AtWork(run="run-1", awaited=(look,), end=end), [look, end]),
            (AtWork(run="run-1", driven=True, end=end), [Action("log", run="run-1"), end]),
        ):
            assert offered(item, status, Known(at_work=run)) == expected


def test_nothing_is_offered_for_what_is_over_and_something_for_everything_else() -> None:
    assert PLAN.final | TASK.final == OVER
    for item, machine in (("plan-1", PLAN), ("fix-1", PLAN), ("task-1", TASK)):
        for status in machine.states:
            found = offered(item, status, Known(unlanded=True))
            assert bool(found) == (status not in machine.final), (item, status)
