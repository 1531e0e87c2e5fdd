"""Tables that were changed by hand are found, named, and folded anew from the events."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.another_client import another_client
from kernel.histories import PHASE_1, STORY
from kernel.ledger_contract import parked, tables, tell
from planforge.app.history import integrity, ledgers
from planforge.app.project import Project
from planforge.errors import LedgerUnreadable
from planforge.kernel import events
from planforge.kernel.ledger import PAGE, Ledger
from planforge.kernel.projections import NAMES


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose ledger tells the story; no object it refers to is there."""
    with_ledger = Project(tmp_path)
    ledger = Ledger.create(with_ledger.state)
    tell(ledger)
    ledger.close()
    return with_ledger


def test_tables_that_nobody_touched_are_what_the_events_say(project: Project) -> None:
    found = ledgers.compare(project.ledger)
    assert (found.differing, found.differences, found.changed) == (0, (), False)
    assert (found.events, found.tables) == (len(STORY), len(NAMES))
    assert found.rows == sum(len(rows) for rows in tables(project.ledger).values())


SPOILT = [
    (
        "UPDATE items SET status = 'DONE', rounds = 9",
        "table `items`: row `plan-001` has `status` 'DONE', not 'REVIEW', `rounds` 9, not 1",
    ),
    ("DELETE FROM runs WHERE run = 'run-001'", "table `runs`: row `run-001` is gone"),
    (
        "INSERT INTO runs SELECT 'run-000', flow, subject, status, reason, until, started_at, updated_at "
        "FROM runs",
        "table `runs`: row `run-000` follows from no event",
    ),
    ("DROP INDEX runs_by_subject", "table `runs`: `runs_by_subject` is gone"),
    ("CREATE INDEX mine ON runs(reason)", "table `runs`: `mine` is none of Planforge's"),
    (
        "CREATE TRIGGER sqliteX AFTER INSERT ON events BEGIN DELETE FROM items; END",
        "table `events`: `sqliteX` is none of Planforge's",
    ),
    (
        "CREATE TRIGGER mine AFTER INSERT ON items BEGIN DELETE FROM items; END",
        "table `items`: `mine` is none of Planforge's",
    ),
    ("ALTER TABLE runs ADD COLUMN note TEXT", "table `runs`: it is made in another way"),
    ("DROP TABLE steps", "table `steps`: it is gone"),
]


@pytest.mark.parametrize(("statement", "problem"), SPOILT, ids=[problem for _, problem in SPOILT])
def test_what_was_changed_by_hand_is_named_and_mended(project: Project, statement: str, problem: str) -> None:
    before = tables(project.ledger), list(project.ledger.since())
    another_client(project.state, statement)
    checked = ledgers.rebuild(project, check=True)
    assert problem in map(str, checked.differences)
    assert not checked.changed
    assert ledgers.rebuild(project, check=True) == checked
    assert any(problem in fault.problem for fault in integrity.verify(project).faults)
    mended = ledgers.rebuild(project, check=False)
    assert (mended.changed, mended.differences) == (True, checked.differences)
    assert ledgers.rebuild(project, check=True).differing == 0
    assert (tables(project.ledger), list(project.ledger.since())) == before


@pytest.mark.dear
def test_every_table_is_compared(project: Project) -> None:
    filled = [name for name in NAMES if tables(project.ledger)[name]]
    assert len(filled) >= 10
    for name in filled:
        another_client(project.state, f"DELETE FROM {name}")  # noqa: S608
        assert {item.table for item in ledgers.compare(project.ledger).differences} == {name}
        project.ledger.rebuild()


def test_many_differences_are_counted_and_the_first_ones_named(project: Project) -> None:
    many = [
        events.ItemOpened(item=f"plan-{number:03}", title="", request="", path="") for number in range(2, 90)
    ]
    project.ledger.append("plans", many, expected=0)
    another_client(project.state, "UPDATE items SET title = 'mine' WHERE kind = 'plan'")
    found = ledgers.compare(project.ledger)
    assert (found.differing, len(found.differences)) == (89, ledgers.SHOWN)
    said = integrity.verify(project).faults
    assert "69 more rows do not follow from the events" in [fault.problem for fault in said]


def test_cursors_of_subscribers_are_kept(project: Project) -> None:
    project.ledger.append_all([], acknowledge={"indexer": 7})
    another_client(project.state, "DELETE FROM items")
    assert ledgers.rebuild(project, check=False).changed
    assert project.ledger.cursor("indexer") == 7


def test_what_others_write_meanwhile_is_neither_refused_nor_taken_for_a_difference(project: Project) -> None:
    writer = Ledger.open(project.state)
    project.ledger.append("long", [parked(str(number)) for number in range(3 * PAGE)], expected=0)
    told = []

    def write(folded: int, head: int) -> None:
        told.append((folded, head))
        plan = events.ItemOpened(item=f"late-{folded}", title="", request="", path="", steps=(PHASE_1,))
        writer.append("late", [plan], expected=None)

    found = ledgers.compare(project.ledger, write)
    head = len(STORY) + 3 * PAGE
    assert told == [(PAGE, head), (2 * PAGE, head), (3 * PAGE, head)]
    assert (found.events, found.differing) == (head, 0)
    assert project.ledger.version("late") == 3
    writer.close()


def test_with_an_event_that_cannot_be_read_nothing_is_changed(project: Project) -> None:
    another_client(project.state, "UPDATE items SET title = 'mine'")
    another_client(project.state, "UPDATE events SET body = CAST('{' AS BLOB) WHERE seq = 5", unguarded=True)
    with pytest.raises(LedgerUnreadable, match="event 5 "):
        ledgers.rebuild(project, check=False)
    assert [*project.ledger.query("SELECT title FROM plans")] == [("mine",)]
