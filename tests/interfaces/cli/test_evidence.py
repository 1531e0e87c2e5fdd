"""`planforge evidence` as a person meets it: the command as a process, in a real repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planforge.app.project import Project
from programs import document, planforge
from repositories import commit, repository, write

CASE = "import unittest\nclass T(unittest.TestCase):\n"
GOOD = {
    "tests/__init__.py": "",
    "tests/test_a.py": f"{CASE}    def test_a(self): pass\n    def test_b(self): pass\n",
    "Makefile": ".PHONY: lint\nlint:\n\t@echo 'a.py:1:1: E501 too long'; exit 1\n",
}
BAD = {"tests/test_a.py": f"{CASE}    def test_a(self): self.fail()\n    def test_c(self): pass\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "project", GOOD)


def test_evidence_of_a_project_that_was_never_set_up(root: Path) -> None:
    shown = planforge("evidence", cwd=root)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "pass: 2 of 2 tests passed"
    assert lines[1].startswith("  tree ")
    assert "sandbox: " in lines[1]
    assert lines[2].split()[:2] == ["lint", "(fail)"]
    assert "1 finding " in lines[2]
    assert lines[3].split()[:3] == ["tests", "pass", "2"]
    assert "tests …" in shown.stderr
    assert "tests: pass, 2 of 2 tests passed" in shown.stderr
    assert "nothing was recorded" in shown.stderr
    assert not (root / ".planforge").exists()


def test_evidence_that_fails_names_what_fails_and_what_changed(root: Path) -> None:
    Project.create(root)
    assert planforge("evidence", cwd=root).returncode == 0
    commit(root, BAD)
    shown = planforge("evidence", cwd=root)
    assert shown.returncode == 1
    assert "fail: 1 of 2 tests failed" in shown.stdout
    assert "\nFailing\n  tests.test_a.T.test_a\n" in shown.stdout
    assert "total +0, passed -1, failed +1, skipped +0" in shown.stdout
    assert "\nNewly failing\n  tests.test_a.T.test_a\n" in shown.stdout
    again = planforge("evidence", cwd=root)
    assert "measured before and reused" in again.stdout
    assert again.stderr == ""
    assert "evidence says fail: 1 of 2 tests failed" in planforge("log", "-n", "1", cwd=root).stdout
    assert planforge("verify", cwd=root).returncode == 0


def test_what_cannot_tell_exits_with_6(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    shown = planforge("evidence", cwd=root)
    assert shown.returncode == 6
    assert shown.stdout.startswith("cannot tell: there is no check `tests`\n")
    assert "`planforge evidence --detect` shows what Planforge looked for" in shown.stdout


def test_evidence_prints_json_and_keeps_its_exit_code(root: Path) -> None:
    commit(root, BAD)
    shown = planforge("evidence", "--json", cwd=root)
    assert shown.returncode == 1
    found = json.loads(shown.stdout)
    assert (found["schema_version"], found["recorded"], found["delta"]) == (1, False, None)
    assert found["evidence"]["counts"] == {"total": 2, "passed": 1, "failed": 1, "skipped": 0}
    assert [part["name"] for part in found["evidence"]["parts"]] == ["lint", "tests"]


def test_no_reuse_measures_again_and_another_commit_can_be_named(root: Path) -> None:
    Project.create(root)
    assert planforge("evidence", cwd=root).returncode == 0
    assert "tests …" in planforge("evidence", "--no-reuse", cwd=root).stderr
    commit(root, BAD)
    assert document("evidence", "--commit", "HEAD~1", cwd=root)["evidence"]["reused"] is True
    assert document("evidence", "--tree", "HEAD~1^{tree}", cwd=root)["evidence"]["reused"] is True


def test_detect_says_what_was_found_why_and_what_was_not(root: Path) -> None:
    write(root, {"packages/x/package.json": "{}"})
    shown = planforge("evidence", "--detect", cwd=root / "tests")
    assert shown.returncode == 0
    assert "target `lint` in Makefile" in shown.stdout
    assert "unittest in tests/test_a.py" in shown.stdout
    assert "Not found: build, types" in shown.stdout
    assert "packages/x (package.json)" in shown.stdout
    found = document("evidence", "--detect", cwd=root)
    assert [item["name"] for item in found["found"]] == ["lint", "tests"]
    assert not (root / ".planforge").exists()


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["--commit", "nothing"], 3, "there is no commit `nothing`"),
        (["--tree", "nothing"], 3, "there is no tree `nothing`"),
        (["--tree", "HEAD^{tree}", "--commit", "HEAD"], 2, "a tree and a commit were given"),
    ],
)
def test_what_does_not_exist_is_refused(root: Path, words: list[str], code: int, problem: str) -> None:
    refused = planforge("evidence", *words, cwd=root)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert problem in refused.stderr


def test_outside_of_a_repository_there_is_nothing_to_check(tmp_path: Path) -> None:
    refused = planforge("evidence", cwd=tmp_path)
    assert refused.returncode == 3
    assert "no git repository" in refused.stderr


def test_help_has_examples_that_can_be_typed(tmp_path: Path) -> None:
    shown = planforge("evidence", "--help", cwd=tmp_path)
    assert shown.returncode == 0
    assert "  planforge evidence --detect" in shown.stdout
