"""Lessons kept in a file that people edit, and decisions about plans that are on record."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from planforge.app import lessons
from planforge.app.evidence import inspection
from planforge.app.lessons import New, lesson_file, promotion
from planforge.app.project import Project
from planforge.documents import lessons as document
from planforge.errors import InvalidDocument, InvalidInput, NotFound, RefusedByGate
from planforge.interfaces.cli.typed import text
from planforge.kernel.effects import Inspect
from planforge.kernel.events import (
    AttemptRejected,
    AuditRecorded,
    ItemMoved,
    ItemOpened,
    LessonDecided,
    Payload,
    RecordedFinding,
    RunStarted,
)
from repositories import commit, git, repository, write

TODAY = "2026-03-04"
ROOT = "Name files from the root of the checkout."


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create(repository(tmp_path / "project"))


def add(
    project: Project, text: str = ROOT, *tags: str, source: str = "", distinct: bool = False
) -> lessons.LessonChange:
    new = New(text=text, tags=tags, source=source)
    return lessons.add(project, new, actor="Ada", today=TODAY, distinct=distinct)


def file(project: Project) -> Path:
    return project.root / "docs" / "lessons.md"


# Adding


def test_a_lesson_is_kept_and_found_again(project: Project) -> None:
    new = New(
        text=f"  {ROOT}\n Always. ", tags=("Checks", "src/*.py", "checks"), source="17", applied="AGENTS.md"
    )
    done = lessons.add(project, new, actor="Ada", today=TODAY)
    assert (done.done, done.file, done.decided) == ("added", "docs/lessons.md", ())
    assert lessons.show(project, "name-files") == lessons.LessonRow(
        id="name-files-from-the-root-of-the-checkout",
        date=TODAY,
        title="Name files from the root of the checkout",
        tags=("checks", "src/*.py"),
        lesson=f"{ROOT} Always.",
        source="plan-017",
        applied="AGENTS.md",
        status="active",
    )
    assert [row.id for row in lessons.listed(project, "active", "Checks").lessons] == [
        done.lesson and done.lesson.id
    ]
    assert lessons.listed(project, "stale").lessons == ()
    assert lessons.listed(project, tag="other").lessons == ()


def test_one_that_says_nearly_the_same_is_refused_with_the_ways_on(project: Project) -> None:
    add(project)
    before = file(project).read_bytes()
    with pytest.raises(InvalidInput) as error:
        add(project, "Files are named from the root of the checkout.")
    assert "`name-files-from-the-root-of-the-checkout` says nearly the same" in error.value.message
    assert "`--update name-files-from-the-root-of-the-checkout`" in text(error.value.hint)
    assert "`--distinct`" in text(error.value.hint)
    assert file(project).read_bytes() == before
    with pytest.raises(InvalidInput, match="says nearly the opposite"):
        add(project, "Never name files from the root of the checkout.")
    assert add(project, "Files are named from the root of the checkout.", distinct=True).done == "added"
    assert add(project, "Freeze the clock in tests.").done == "added"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no words"),
        (" … \x1b ", "no words"),
        ("One. Two. Three. Four.", "this one has 4 and 22"),
        ("word " * 130, "this one has 1 and 649"),
    ],
)
def test_what_is_no_lesson_is_refused_and_nothing_is_written(
    project: Project, text: str, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        add(project, text)
    assert not file(project).exists()


def test_a_secret_of_the_environment_stays_out_of_the_file(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "hunter2-hunter2-hunter2")
    add(project, "Log in with hunter2-hunter2-hunter2 first.")
    assert "hunter2" not in file(project).read_text()


# Changing


def test_updating_says_it_anew_and_leaves_the_rest_of_the_file_as_it_was(project: Project) -> None:
    add(project, ROOT, "a")
    text = file(project).read_text().replace("- Source:", "- Owner: Ada\n- Source: plan-001") + "\nMine.\n"
    file(project).write_text(text)
    file(project).chmod(0o640)
    new = New(text="Name files from the root, never absolutely.", tags=("b",), source="plan-002")
    done = lessons.update(project, "name-files", new, actor="Ada")
    assert done.done == "updated"
    assert file(project).read_text() == text.replace(ROOT, new.text).replace("Tags: a", "Tags: a, b").replace(
        "Source: plan-001", "Source: plan-001, plan-002"
    )
    assert file(project).stat().st_mode & 0o777 == 0o640


def test_a_superseded_lesson_points_to_the_one_in_its_place(project: Project) -> None:
    add(project)
    add(project, "Freeze the clock in tests.")
    done = lessons.supersede(project, "freeze", "Hand the clock to whatever reads it.", today=TODAY)
    assert done.old
    assert done.lesson
    assert (done.old.status, done.old.successor) == ("superseded", done.lesson.id)
    assert lessons.show(project, done.lesson.id).status == "active"
    with pytest.raises(RefusedByGate) as error:
        lessons.supersede(project, "freeze", "name-files", today=TODAY)
    assert text(error.value.hint).endswith(f"planforge lesson show {done.lesson.id}`")
    with pytest.raises(RefusedByGate):
        lessons.update(project, "freeze", New(text="Again."), actor="Ada")
    with pytest.raises(RefusedByGate):
        lessons.mark_stale(project, "freeze", "why not")
    with pytest.raises(InvalidInput, match=f"--update {done.lesson.id}|nearly the same"):
        add(project, "Freeze the clock in a test.")


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        ("name-files", "cannot take its own place"),
        ("nothing-of-that-name", "there is no lesson"),
        ("freeze", "is stale, so it can take no other's place"),
        ("Freeze the clock in a test.", "`freeze-the-clock-in-tests` says nearly the same"),
    ],
)
def test_what_cannot_take_its_place_is_refused(project: Project, by: str, problem: str) -> None:
    add(project)
    add(project, "Freeze the clock in tests.")
    lessons.mark_stale(project, "freeze", "no clock")
    before = file(project).read_bytes()
    with pytest.raises((InvalidInput, NotFound), match=problem):
        lessons.supersede(project, "name-files", by, today=TODAY)
    assert file(project).read_bytes() == before


def test_a_stale_lesson_says_why_and_can_be_made_active_again(project: Project) -> None:
    add(project)
    done = lessons.mark_stale(project, "name-files", "there are  no files")
    assert done.lesson
    assert (done.lesson.status, done.lesson.remark) == ("stale", "there are no files")
    with pytest.raises(InvalidInput):
        lessons.mark_stale(project, "name-files", " ")
    again = lessons.update(project, "name-files", New(text=""), actor="Ada").lesson
    assert again
    assert (again.status, again.lesson) == ("active", ROOT)


# The file


def test_those_who_write_at_once_lose_nothing(project: Project) -> None:
    words = ["whales sing", "clocks tick", "rivers flow", "bells ring", "stones fall", "owls hoot"]
    threads = [threading.Thread(target=add, args=(project, f"All {each} at night.")) for each in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lessons.listed(project).lessons) == len(words)


def test_an_edit_that_comes_in_between_is_kept(project: Project) -> None:
    add(project)
    edits = iter(["\nA person's words.\n"])

    def change(text: str) -> tuple[str, str]:
        if edit := next(edits, ""):
            file(project).write_text(file(project).read_text() + edit)
        after = document.changed(text, "name-files-from-the-root-of-the-checkout", {"Applied": "here"})
        return after, after

    after = lesson_file.change(project, change)
    assert after == file(project).read_text()
    assert "A person's words." in after
    assert "- Applied: here" in after


def test_a_link_is_not_followed_and_what_is_not_text_is_left_alone(project: Project, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (project.root / "docs").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidInput, match=r"cannot (read|write) `docs/lessons\.md`"):
        add(project)
    assert list((tmp_path / "outside").iterdir()) == []
    (project.root / "docs").unlink()
    write(project.root, {"docs/lessons.md": b"\xff\xfe"})
    with pytest.raises(InvalidDocument, match="is not UTF-8"):
        add(project)
    assert file(project).read_bytes() == b"\xff\xfe"


@pytest.mark.parametrize("path", ["../out.md", "/etc/lessons.md", ""])
def test_the_file_lies_in_the_repository(project: Project, path: str) -> None:
    write(project.root, {"planforge.toml": f'[lessons]\nfile = "{path}"\n'})
    with pytest.raises(InvalidInput, match=r"`lessons\.file`"):
        lessons.listed(Project(project.root))


@pytest.mark.parametrize("path", ["docs/lessons.md", "notes/learned.md"])
def test_an_agent_that_changes_it_needs_a_person(project: Project, path: str) -> None:
    write(project.root, {"planforge.toml": f'[lessons]\nfile = "{path}"\n'})
    parent = git(project.root, "rev-parse", "HEAD")
    made = commit(project.root, {path: "### 2026-01-01 — Obey\n\n- Tags: always\n- Lesson: Obey.\n"})
    seen = inspection.inspect(Project(project.root), Inspect(commit=made, parent=parent, files=(path,)))
    assert any(path in reason for reason in seen.protected)


# Decisions


@pytest.fixture
def planned(project: Project) -> Project:
    """A project with a plan that was blocked once, refused twice for the same, and closed."""
    blocked = RecordedFinding(severity="blocking", title="Migrations must be run before the tests.")
    audits = [
        AuditRecorded(
            plan="plan-001",
            round=number,
            by="claude",
            verdict="",
            reason="",
            findings=found,
            decision="",
            decision_reason="",
        )
        for number, found in enumerate([(blocked,), ()], 1)
    ]
    refused = [
        AttemptRejected(
            plan="plan-001", step="phase-2", attempt=number, reason=f"{number} tests fail: test_total"
        )
        for number in (1, 2)
    ]
    path = "docs/plans/plan-001-t.md"
    created = ItemOpened(item="plan-001", title="T", request="R", path=path)
    moved = ItemMoved(item="plan-001", by="close", status="CLOSED", actor="Ada", reason="done")
    started = RunStarted(run="run-001", flow="forge", flow_version=1, subject="plan-001", request=Payload())
    project.ledger.append("plan-001", [created], expected=0)
    project.ledger.append("run-001", [started, *audits, *refused], expected=0)
    project.ledger.append("plan-001", [moved], expected=None)
    write(project.root, {path: "# Plan: T\n\n## Lessons\n\nadd: about migrations\n"})
    return project


def decisions(project: Project) -> list[tuple[str, str, str]]:
    found = [
        item.event for item in project.ledger.stream("plan-001") if isinstance(item.event, LessonDecided)
    ]
    return [(event.decision, event.lesson, event.actor) for event in found]


def undecided(project: Project) -> list[str]:
    return [plan.plan for plan in lessons.undecided(project)]


def test_candidates_come_from_the_history_with_what_is_proposed(planned: Project) -> None:
    found = promotion.proposed(planned, "1")
    assert found.planned == "add: about migrations"
    assert [(each.number, each.candidate.kind, each.decision.value) for each in found.proposals] == [
        (1, "finding", "add"),
        (2, "refusal", "add"),
    ]
    assert found.decisions == ()
    assert undecided(planned) == ["plan-001"]


def test_a_candidate_that_is_accepted_becomes_a_lesson_and_the_decision_is_on_record(
    planned: Project,
) -> None:
    done = promotion.accept(planned, "1", 2, New(text="", tags=("totals",)), actor="Ada", today=TODAY)
    assert done.lesson
    assert (done.lesson.lesson, done.lesson.source) == ("2 tests fail: test_total", "plan-001/phase-2")
    assert decisions(planned) == [("add", done.lesson.id, "Ada")]
    assert undecided(planned) == []
    assert promotion.proposed(planned, "1").proposals[1].decision.value == "none"
    with pytest.raises(InvalidInput, match="candidate 2 is lesson"):
        promotion.accept(planned, "1", 2, New(text=""), actor="Ada", today=TODAY)
    with pytest.raises(NotFound, match="has no candidate 3; it has 2"):
        promotion.accept(planned, "1", 3, New(text=""), actor="Ada", today=TODAY)


def test_one_that_a_lesson_says_already_updates_it_or_is_added_as_distinct(planned: Project) -> None:
    add(planned, "Run the migrations before the tests.", source="plan-009")
    proposal = promotion.proposed(planned, "1").proposals[0]
    assert (proposal.decision.value, proposal.lesson) == ("update", "run-the-migrations-before-the-tests")
    done = promotion.accept(planned, "1", 1, New(text=""), actor="Ada", today=TODAY)
    assert done.lesson
    assert (done.done, done.lesson.source) == ("updated", "plan-009, plan-001")
    assert done.lesson.lesson == "Run the migrations before the tests."
    own = New(text="Start the database before the tests.")
    other = promotion.accept(planned, "1", 1, own, actor="Ada", today=TODAY, distinct=True)
    assert [decision for decision, _, _ in decisions(planned)] == ["update", "add"]
    assert other.lesson
    assert other.lesson.lesson == own.text


def test_that_none_is_needed_is_a_decision_with_a_reason(planned: Project) -> None:
    with pytest.raises(InvalidInput, match="has a reason"):
        promotion.none_needed(planned, "1", actor="Ada", reason=" ")
    assert undecided(planned) == ["plan-001"]
    assert promotion.none_needed(planned, "1", actor="Ada", reason="nothing new").decided == ("plan-001",)
    assert (decisions(planned), undecided(planned)) == ([("none", "", "Ada")], [])
    assert [each.reason for each in promotion.proposed(planned, "1").decisions] == ["nothing new"]


def test_a_lesson_whose_source_is_a_plan_of_this_project_decides_about_it(planned: Project) -> None:
    assert add(planned, source="plan-404, my-plan-001").decided == ()
    assert undecided(planned) == ["plan-001"]
    assert add(planned, "Freeze the clock.", source="plan-001/phase-2, run-001").decided == ("plan-001",)
    assert undecided(planned) == []


def test_only_plans_that_have_ended_are_to_be_decided_about(planned: Project) -> None:
    created = ItemOpened(item="plan-002", title="T", request="R", path="docs/plans/plan-002-t.md")
    planned.ledger.append("plan-002", [created], expected=0)
    assert undecided(planned) == ["plan-001"]
    assert lessons.listed(planned).undecided == ("plan-001",)
