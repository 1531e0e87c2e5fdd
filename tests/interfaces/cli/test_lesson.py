"""`planforge lesson` as a person meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from calls import Command, caller
from planforge.app.project import Project
from planforge.kernel.events import (
    AuditRecorded,
    ItemMoved,
    ItemOpened,
    Payload,
    RecordedFinding,
    RunStarted,
)
from planforge.workspace.launch import trees
from repositories import repository

ROOT = "Name files from the root of the checkout."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "project")
    project = Project.create(root)
    started = RunStarted(run="run-001", flow="forge", flow_version=1, subject="plan-001", request=Payload())
    finding = RecordedFinding(severity="blocking", title="no \x1b[2K rollback", location="db.py:3")
    audits = [
        AuditRecorded(
            plan="plan-001",
            round=number,
            by="claude",
            verdict="",
            reason="",
            findings=findings,
            decision="",
            decision_reason="",
        )
        for number, findings in enumerate([(finding,), ()], 1)
    ]
    created = ItemOpened(item="plan-001", title="T", request="R", path="docs/plans/plan-001-t.md")
    closed = ItemMoved(item="plan-001", by="close", status="CLOSED", actor="Ada", reason="done")
    project.ledger.append("plan-001", [created, closed], expected=0)
    project.ledger.append("run-001", [started, *audits], expected=0)
    project.ledger.close()
    return root


@pytest.fixture
def command(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(root, monkeypatch, capsys)


def test_lessons_are_kept_listed_and_shown(command: Command, root: Path) -> None:
    empty = command("lesson", "list")
    assert empty.out.startswith("no lessons yet in docs/lessons.md\n\nnot decided: plan-001\n")
    added = command("lesson", "add", ROOT, "--tag", "checks", "--title", "Files have names")
    assert (added.code, added.out.splitlines()[0]) == (0, "files-have-names is added, in docs/lessons.md")
    shown = command("lesson", "show", "files")
    assert ROOT in shown.out
    assert "status  active" in shown.out
    (row,) = command("lesson", "list", "--status", "active", "--tag", "checks", "--json").document["lessons"]
    assert (row["id"], row["lesson"], row["status"]) == ("files-have-names", ROOT, "active")
    assert command("lesson", "list", "--tag", "other").out.startswith("no such lesson\n")
    assert command("lesson", "show", "files", "--json").document["title"] == "Files have names"
    assert (root / "docs" / "lessons.md").read_text().count("### ") == 1


def test_a_near_duplicate_names_the_one_there_is_and_the_ways_on(command: Command) -> None:
    command("lesson", "add", ROOT)
    again = command("lesson", "add", "Files are named from the root of the checkout.")
    assert again.code == 2
    assert "`name-files-from-the-root-of-the-checkout` says nearly the same" in again.err
    assert "`--update name-files-from-the-root-of-the-checkout`" in again.err
    updated = command("lesson", "add", "Name files from the root.", "--update", "name-files", "--json")
    assert (updated.document["done"], updated.document["lesson"]["lesson"]) == (
        "updated",
        "Name files from the root.",
    )
    assert command("lesson", "add", ROOT, "--distinct").code == 0
    assert command("lesson", "add", ROOT, "--distinct", "--update", "name").code == 2
    unknown = command("lesson", "add", ROOT, "--update", "nothing")
    assert (unknown.code, "planforge lesson list" in unknown.err) == (3, True)


def test_lessons_give_way_and_go_stale(command: Command) -> None:
    command("lesson", "add", "Mock the clock.")
    command("lesson", "add", "Write to a disk.")
    done = command("lesson", "supersede", "mock", "--by", "Hand the clock in, so that tests can move it.")
    first = "mock-the-clock is superseded by hand-the-clock-in-so-that-tests-can-move-it, in docs/lessons.md"
    assert done.out.splitlines()[0] == first
    assert command("lesson", "supersede", "mock", "--by", "write", "--json").code == 5
    stale = command("lesson", "stale", "write", "--reason", "there is none", "--json").document
    assert (stale["lesson"]["status"], stale["lesson"]["remark"]) == ("stale", "there is none")
    assert command("lesson", "stale", "write").code == 2


def test_a_plan_is_decided_about(command: Command) -> None:
    proposed = command("lesson", "promote", "1")
    assert (
        "1  finding\n   no \\x1b[2K rollback (db.py:3)\n   proposed: add, as no lesson says so"
        in proposed.out
    )
    assert proposed.out.endswith("next: planforge lesson promote plan-001 --accept 1\n")
    assert command("lesson", "promote", "1", "--json").document["proposals"][0]["decision"] == "add"
    text = "A migration has a rollback."
    done = command("lesson", "promote", "1", "--accept", "1", "--text", text, "--tag", "db")
    assert "decided for plan-001: a-migration-has-a-rollback added" in done.out
    assert "not decided" not in command("lesson", "list").out
    assert "decided: add a-migration-has-a-rollback, by Ada Lovelace" in command("lesson", "promote", "1").out
    log = command("log", "--kind", "LessonDecided")
    assert "lesson a-migration-has-a-rollback is new, says Ada Lovelace" in log.out


def test_that_none_is_needed_has_a_reason(command: Command) -> None:
    assert command("lesson", "promote", "1", "--none").code == 2
    done = command("lesson", "promote", "1", "--none", "--reason", "it is small", "--as", "Grace")
    assert done.out == "decided for plan-001: no lesson needed\n"
    assert "no lesson needed, says Grace: it is small" in command("log", "--kind", "LessonDecided").out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--accept", "1", "--none"), 2),
        (("--accept", "7"), 3),
        (("--text", "x"), 2),
        (("--accept", "1", "--update", "nothing"), 3),
    ],
)
def test_what_makes_no_sense_is_refused_and_decides_nothing(
    command: Command, root: Path, words: tuple[str, ...], code: int
) -> None:
    assert command("lesson", "promote", "1", *words).code == code
    assert command("lesson", "promote", "9").code == 3
    assert command("log", "--kind", "LessonDecided", "--json").out == ""
    assert not (root / "docs" / "lessons.md").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("add", ROOT),
        ("promote", "1", "--none", "--reason", "x"),
        ("promote", "1", "--accept", "1"),
        ("stale", "x", "--reason", "y"),
        ("supersede", "x", "--by", "y"),
    ],
)
def test_an_agent_does_not_write_what_agents_are_told(
    command: Command, root: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv(trees.COOKIE, "c0ffee")
    assert command("lesson", *words).code == 5
    assert not (root / "docs" / "lessons.md").exists()
