"""Plans that no agent drafts: their numbers, files and template, and what is given along with them."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from imported import body
from planforge.app.decisions import approvals, statuses
from planforge.app.items import plans
from planforge.app.plans import creation, pages, phases, work
from planforge.app.project import Project
from planforge.documents import markdown, template
from planforge.documents import plan as documents
from planforge.documents.imports import Imported, prose
from planforge.errors import InvalidDocument, InvalidInput, NotFound, RefusedByGate
from planforge.interfaces.cli.typed import text
from planforge.kernel.events import ItemOpened, PlanWritten
from programs import COMMAND, environment, started
from repositories import git, repository

NOTES = Imported(title="notes", text="## Audit Log\n\nthe notes", source="notes.md")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create(repository(tmp_path / "shop"))


def test_a_plan_is_made_from_the_template_and_is_on_record(project: Project) -> None:
    made = creation.create(project, "Rate limits")
    assert (made.plan, made.task, made.status) == ("plan-001", "ws-001", "DRAFT")
    text = (project.root / "docs/plans/plan-001-rate-limits.md").read_text()
    assert "**Project:** shop" in text
    assert documents.parse(text).title == "Rate limits"
    created, written = (item.event for item in project.ledger.stream("plan-001"))
    assert isinstance(created, ItemOpened)
    assert isinstance(written, PlanWritten)
    assert plans.recorded_text(project, "1") == text
    assert not pages.view(project, "1").edited


def test_an_edit_by_hand_is_noticed(project: Project) -> None:
    made = creation.create(project, "Rate limits")
    path = project.root / made.path
    path.write_text(path.read_text().replace("_What problem", "_Which problem"))
    assert pages.view(project, "1").edited


def test_a_description_that_is_longer_than_a_title_is_kept_whole(project: Project) -> None:
    made = creation.create(project, "Rate limits\nfor every caller\n## Audit Log")
    text = (project.root / made.path).read_text()
    assert made.title == "Rate limits"
    assert body(text, "Request") == "> Rate limits\n> for every caller\n> ## Audit Log"
    assert [each.name for each in markdown.sections(text)].count("Audit Log") == 1


def test_what_is_given_along_is_quoted_and_describes_the_task(project: Project) -> None:
    long = Imported(title="x", text="word " * 1000, source="standard input")
    creation.create(project, "Numbers", context=NOTES)
    creation.create(project, "Two", context=long)
    assert "> ## Audit Log\n>\n> the notes" in plans.text(project, plans.row(project, "1"))
    events = [next(iter(project.ledger.stream(plan))).event for plan in ("plan-001", "plan-002")]
    described = [event.description for event in events if isinstance(event, ItemOpened)]
    assert described[0] == NOTES.text
    assert len(described[1]) == 1800


def test_secrets_are_taken_out_before_anything_is_written(project: Project) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    given = Imported(title="x", text=f"use {secret}", source="x")
    own_template(project, template.BUILT_IN + f"\nUse {secret}.\n")
    made = creation.create(project, f"Rotate {secret}", context=given)
    assert secret not in (project.root / made.path).read_text()
    assert secret not in made.path
    assert all(secret not in str(item) for item in project.ledger.since())


# The template


def own_template(project: Project, text: str) -> None:
    (project.root / "docs/plans").mkdir(parents=True)
    (project.root / "docs/plans/.plan-template.md").write_text(text)


def test_a_template_of_ones_own_is_tried_first(project: Project) -> None:
    own_template(
        project, "# Plan: {{TITLE}}\n\n**ID:** {{PLAN_ID}}\n**Status:** DRAFT | DONE\n\n---\n\n## Rollout\n"
    )
    made = creation.create(project, "Rate limits", context=NOTES)
    assert made.template == "docs/plans/.plan-template.md"
    text = (project.root / made.path).read_text()
    assert [each.name for each in markdown.sections(text)] == [
        "Rollout",
        "Context",
        "Audit Log",
        "Implementation Notes",
    ]
    assert {finding.severity.value for finding in made.findings} == {"blocking"}


def test_one_without_a_header_is_an_error_and_leaves_no_plan(project: Project) -> None:
    own_template(project, "# {{TITLE}}\n")
    with pytest.raises(InvalidDocument, match=r"`docs/plans/\.plan-template\.md`: the plan's header has no"):
        creation.create(project, "Rate limits")
    assert plans.rows(project) == []


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_one_that_cannot_be_read_is_not_used(project: Project, content: bytes | None) -> None:
    path = project.root / "docs/plans/.plan-template.md"
    if content is None:
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    assert creation.create(project, "Rate limits").template == ""


# Descriptions, tasks


def test_a_description_that_only_points_is_refused_without_a_task_to_point_at(project: Project) -> None:
    with pytest.raises(InvalidInput, match="says nothing"):
        creation.create(project, "this")
    with pytest.raises(InvalidInput, match="says nothing"):
        creation.create(project, "the issue", task="PROJ-12")


def test_otherwise_it_is_the_title_of_that_task(project: Project) -> None:
    creation.create(project, "Rate limits")
    statuses.move(project, "1", "cancel", actor="Ada", reason="no")
    made = creation.create(project, "The task.", task="WS-1")
    assert (made.title, made.task) == ("Rate limits", "ws-001")


def test_a_second_plan_for_the_same_refers_to_the_first_and_needs_to_be_wanted(project: Project) -> None:
    creation.create(project, "Rate limits")
    with pytest.raises(RefusedByGate, match="`plan-001` is for this already") as refused:
        creation.create(project, "  rate LIMITS ")
    assert "--new" in text(refused.value.hint)
    assert creation.create(project, "rate limits", new=True).plan == "plan-002"
    assert creation.create(project, "Rate limits", task="PROJ-12").task == "PROJ-12"
    with pytest.raises(RefusedByGate, match="PROJ-12"):
        creation.create(project, "Something else", task="proj-12")


def test_after_the_first_is_over_a_second_is_no_question(project: Project) -> None:
    creation.create(project, "Rate limits")
    statuses.move(project, "1", "cancel", actor="Ada", reason="no")
    assert creation.create(project, "Rate limits").plan == "plan-002"


@pytest.mark.parametrize("task", ["17", "plan-17", "a b", "../x"])
def test_what_is_no_task_is_refused(project: Project, task: str) -> None:
    with pytest.raises(InvalidInput):
        creation.create(project, "Rate limits", task=task)


@pytest.mark.parametrize("task", ["ws-9", "task-9"])
def test_a_task_that_would_be_known_here_must_be(project: Project, task: str) -> None:
    with pytest.raises(NotFound):
        creation.create(project, "Rate limits", task=task)


# Numbers and files


def test_numbers_go_on_after_files_and_other_checkouts(project: Project, tmp_path: Path) -> None:
    (project.root / "docs/plans").mkdir(parents=True)
    (project.root / "docs/plans/plan-0007-by-hand.md").write_text("mine")
    (project.root / "docs/plans/plan-99999999999999-no.md").write_text("mine")
    assert creation.create(project, "Numbers").plan == "plan-008"
    other = tmp_path / "other"
    git(project.root, "worktree", "add", "--quiet", str(other))
    (other / "docs/plans").mkdir(parents=True)
    (other / "docs/plans/plan-020-elsewhere.md").write_text("theirs")
    assert creation.create(project, "Two").plan == "plan-021"
    elsewhere = Project.create(other)
    forged = ItemOpened(item="plan-030", title="Forged", request="r", path="docs/plans/plan-030-forged.md")
    elsewhere.ledger.append("plan-030", [forged], expected=0)
    elsewhere.ledger.close()
    assert creation.create(project, "Two more").plan == "plan-031"
    shutil.rmtree(other)  # git lists it still
    assert creation.create(project, "Three").plan == "plan-032"


def test_where_no_file_can_be_made_nothing_is_put_on_record(project: Project) -> None:
    (project.root / "docs").mkdir()
    (project.root / "docs/plans").write_text("a file")
    with pytest.raises(InvalidInput, match="`docs/plans` is not a directory"):
        creation.create(project, "Numbers")
    (project.root / "docs/plans").unlink()
    (project.root / "docs/plans/.plan-001-numbers.md.part").mkdir(parents=True)
    with pytest.raises(InvalidInput, match="cannot be written"):
        creation.create(project, "Numbers")
    assert plans.rows(project) == []
    assert project.ledger.head() == 0


def test_a_directory_that_leads_out_of_the_repository_is_refused(project: Project, tmp_path: Path) -> None:
    (project.root / "docs").mkdir()
    (project.root / "docs/plans").symlink_to(tmp_path)
    with pytest.raises(InvalidInput, match="leads out"):
        creation.create(project, "Numbers")


EACH = 10
MAKES = """\
import sys
from pathlib import Path
from planforge.app.plans import creation
from planforge.app.plans import work
from planforge.app.project import Project
from planforge.errors import Conflict

def numbered(title):
    if title[0] != "f":
        return creation.create(project, title).plan
    while True:  # as a forge does it: in the ledger, and no file yet
        try:
            plan = work.new_plan(project, title, title)
            project.ledger.append(plan.item, [plan], expected=0)
            return plan.item
        except Conflict:
            continue

project = Project.find(Path.cwd())
for number in range(10):
    print(numbered(f"{sys.argv[1]} {number}"))
"""


@pytest.mark.dear
def test_processes_that_make_plans_at_once_get_different_numbers(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(project.root, "worktree", "add", "--quiet", str(other))
    Project.create(other)  # a checkout with a ledger of its own

    def made(place: Path, name: str) -> list[str]:
        command = [COMMAND[0], "-c", MAKES, name]
        told = subprocess.run(
            command, cwd=place, env=environment(), capture_output=True, text=True, check=True
        )
        return told.stdout.split()

    with ThreadPoolExecutor() as together:
        places = [(project.root, "d"), (project.root, "b"), (project.root, "f"), (other, "c")]
        numbers = [plan for each in together.map(lambda at: made(*at), places) for plan in each]
    forged = {row.plan for row in plans.rows(project) if not row.object}
    assert len(forged) == EACH
    assert len({*numbers[: 2 * EACH], *forged}) == 3 * EACH
    made_here_and_there = [*numbers[: 2 * EACH], *numbers[3 * EACH :]]
    assert len(set(made_here_and_there)) == 3 * EACH
    files = [*project.root.glob("docs/plans/plan-*.md"), *other.glob("docs/plans/plan-*.md")]
    assert len(files) == 3 * EACH
    for file in files:
        document = documents.parse(file.read_text())
        assert file.name == f"{document.id}-{documents.slug(document.title)}.md"


# Imports


def test_an_imported_plan_is_a_draft_with_a_task_of_its_own(project: Project) -> None:
    found = prose.read(b"# Faster\n\n## Goal\n\nIt is slow.\n\n## Files\n\n- app.py: quicker\n", "notes.md")
    made = creation.adopt(project, found)
    assert (made.plan, made.task, made.source) == ("plan-001", "ws-001", "notes.md")
    text = plans.text(project, plans.row(project, "ws-1"))
    assert "**Task:** ws-001" in text
    assert "- `app.py`: quicker" in text
    assert phases.view(project, "1").phases[0].files == ("app.py",)
    with pytest.raises(RefusedByGate):
        creation.adopt(project, found)


def test_a_number_that_a_forge_took_meanwhile_is_not_given_twice(project: Project) -> None:
    taken = work.new_plan(project, "Forged", "Forged")
    project.ledger.append(taken.item, [taken], expected=0)
    assert creation.create(project, "Numbers").plan == "plan-002"


def test_the_command_makes_the_same(project: Project) -> None:
    project.ledger.close()
    process = started("plan", "create", "Rate limits", "--context", "-", cwd=project.root, told=True)
    out, err = process.communicate("from a pipe", 60)
    assert process.returncode == 0, err
    assert "plan: docs/plans/plan-001-rate-limits.md" in out
    assert "> from a pipe" in (project.root / "docs/plans/plan-001-rate-limits.md").read_text()


def test_the_place_that_cannot_be_written_is_named_for_a_shell(tmp_path: Path) -> None:
    project = Project.create(repository(tmp_path / "a b"))
    (project.root / "docs").write_text("no directory\n")
    with pytest.raises(InvalidInput) as refused:
        creation.create(project, "Numbers")
    assert text(refused.value.hint) == f"see `ls -ld '{project.root / 'docs'}'`"


def test_plans_that_lie_outside_of_the_repository_are_neither_read_nor_written(
    project: Project, tmp_path: Path
) -> None:
    plan = creation.create(project, "More texts").plan
    directory = project.root / "docs" / "plans"
    outside = tmp_path / "outside"
    directory.rename(outside)
    directory.symlink_to(outside)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    with pytest.raises(InvalidDocument, match="leads out of the repository"):
        approvals.approve(project, plan, actor="Ada")
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
