"""Evidence as it is gathered: which checks, in a fresh checkout, once for the same tree."""

from __future__ import annotations

import asyncio
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from planforge.app.evidence import gatherer
from planforge.app.evidence.gatherer import configured, detected, look
from planforge.app.project import Project
from planforge.app.settings import Settings, read
from planforge.errors import InvalidInput, NoRepository, NotFound
from planforge.kernel.evidence import Outcome
from planforge.kernel.recorded_evidence import lookup
from planforge.workspace import sandbox
from planforge.workspace.checks import Check, Report
from planforge.workspace.worktrees import Worktrees
from repositories import commit, empty_repository, fingerprint, git, repository, write

PASS, FAIL, CANNOT_TELL = Outcome.PASS, Outcome.FAIL, Outcome.CANNOT_TELL
CASE = "import unittest\nclass T(unittest.TestCase):\n"
GOOD = {"tests/__init__.py": "", "tests/test_a.py": CASE + "    def test_a(self): pass\n"}
BAD = {"tests/test_a.py": CASE + "    def test_a(self): self.fail()\n    def test_b(self): pass\n"}

# Leaves a report with the names in a file of the tree, each failing if it begins with `!`; and ends as it is
# told by a file of the person's own checkout, which no tree holds.
PROGRAM = """
import os, pathlib, sys
names = pathlib.Path("names").read_text().split()
bad = "<failure/>"
cases = "".join(f"<testcase name='{n.lstrip('!')}'>{bad * n.startswith('!')}</testcase>" for n in names)
pathlib.Path("junit.xml").write_text(f"<testsuite>{cases}</testsuite>")
log = pathlib.Path(os.environ["FLAG"])
sys.exit(int(log.read_text() if log.exists() else "!" in "".join(names)))
"""


def toml(**more: str) -> str:
    command = ", ".join(repr(word) for word in (sys.executable, "-c", PROGRAM))
    visible = f"['{sys.prefix}', '{sys.base_prefix}']"
    lines = [f"command = [{command}]".replace("\\n", "\\n"), "report = 'junit'", f"visible = {visible}"]
    lines += ["env = {FLAG = '${root}/.flag'}", *(f"{name} = {value}" for name, value in more.items())]
    return "[checks.tests]\n" + "\n".join(lines).replace(repr(PROGRAM), f"'''{PROGRAM}'''") + "\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository whose check reads the file `names`, with a ledger."""
    files = {"names": "a b", ".gitignore": ".flag\n.planforge\n", "planforge.toml": toml()}
    place = repository(tmp_path / "project", files)
    Project.create(place)
    return place


def events(root: Path) -> list[str]:
    return [item.kind for item in Project.find(root).ledger.since()]


# Which checks


def test_the_settings_name_the_checks_or_none() -> None:
    check = Check(command=("x",))
    assert configured(Settings()) is None
    assert configured(Settings(check=check)) == {"tests": check}
    assert configured(Settings(checks={"lint": check})) == {"lint": check}
    assert configured(Settings(check=check, checks={"lint": check})) == {"lint": check, "tests": check}
    with pytest.raises(InvalidInput, match="are the same"):
        configured(Settings(check=check, checks={"tests": check}))


def test_checks_are_read_from_the_file_of_settings(tmp_path: Path) -> None:
    build, lint = "[checks.build]\ncommand = ['make']\n", "[checks.lint]\ncommand = ['x']\nrequired = true\n"
    write(tmp_path, {"planforge.toml": build + lint})
    checks = read(tmp_path).checks
    assert (checks["build"].report, checks["build"].must_pass("build")) == (Report.TEXT, True)
    assert checks["lint"].must_pass("lint")
    write(tmp_path, {"planforge.toml": build + "seconds = -1\n"})
    with pytest.raises(InvalidInput, match=r"checks\.build\.seconds"):
        read(tmp_path)


# Without a ledger


def test_evidence_without_a_ledger_is_gathered_and_leaves_nothing_behind(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", GOOD)
    before, trees = fingerprint(root), git(root, "worktree", "list")
    looked = look(root)
    assert (looked.evidence.outcome, looked.recorded, looked.detected) == (PASS, False, True)
    assert looked.evidence.reason == "1 of 1 test passed"
    assert looked.evidence.sandbox == sandbox.strongest().value
    assert (fingerprint(root), git(root, "worktree", "list")) == (before, trees)
    assert not (root / ".planforge").exists()
    assert look(root).evidence.reused is False


def test_evidence_is_about_the_commit_and_not_about_the_persons_files(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", GOOD)
    write(root, BAD)
    assert look(root).evidence.outcome is PASS
    (root / "tests" / "test_a.py").unlink()
    assert look(root).evidence.outcome is PASS


def test_a_project_without_tests_cannot_tell(tmp_path: Path) -> None:
    looked = look(repository(tmp_path / "project"))
    assert (looked.evidence.outcome, looked.evidence.parts) == (CANNOT_TELL, ())
    assert looked.evidence.reason == "there is no check `tests`"


def test_detecting_needs_no_repository(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    assert detected(tmp_path).checks["tests"].report is Report.UNITTEST
    with pytest.raises(NoRepository):
        look(tmp_path)


def test_an_empty_repository_and_names_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no commit `HEAD`"):
        look(empty_repository(tmp_path / "empty"))
    root = repository(tmp_path / "project")
    for options in ({"commit": "nothing"}, {"tree": "nothing"}, {"tree": "--help"}):
        with pytest.raises(NotFound):
            look(root, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="a tree and a commit"):
        look(root, tree="HEAD^{tree}", commit="HEAD")


# On record


def test_evidence_for_the_same_tree_and_checks_is_not_gathered_twice(root: Path) -> None:
    first = look(root)
    assert (first.evidence.reused, first.recorded, first.detected) == (False, True, False)
    again = look(root)
    assert (again.evidence.reused, again.recorded) == (True, True)
    assert again.evidence.parts == first.evidence.parts
    anew = look(root, reuse=False)
    assert anew.evidence.reused is False
    assert events(root) == ["VerifyOk", "VerifyOk"]


def test_another_commit_of_the_same_tree_finds_the_evidence_and_is_named_by_it(root: Path) -> None:
    look(root)
    empty = commit(root, {}, "nothing new")
    looked = look(root)
    assert (looked.evidence.reused, looked.evidence.commit) == (True, empty)


def test_a_failure_is_found_again_too(root: Path) -> None:
    commit(root, {"names": "a !b"})
    assert look(root).evidence.outcome is FAIL
    looked = look(root)
    assert (looked.evidence.outcome, looked.evidence.reused) == (FAIL, True)
    assert looked.evidence.failing == ("b",)


def test_other_checks_need_other_evidence(root: Path) -> None:
    look(root)
    write(root, {"planforge.toml": toml(coverage="'c.json'")})
    assert look(root).evidence.reused is False


def test_what_cannot_tell_is_asked_again(root: Path) -> None:
    commit(root, {"names": ""})
    assert look(root).evidence.outcome is CANNOT_TELL
    assert look(root).evidence.reused is False
    assert events(root) == ["VerifyFailed", "VerifyFailed"]


def test_a_check_that_says_now_this_and_now_that_is_asked_each_time(root: Path) -> None:
    assert look(root).evidence.outcome is PASS
    write(root, {".flag": "1"})
    assert look(root, reuse=False).evidence.outcome is FAIL
    assert look(root).evidence.reused is False
    (root / ".flag").unlink()
    assert look(root).evidence.reused is False


def test_nothing_is_reused_where_files_come_from_outside_of_git(root: Path) -> None:
    commit(root, {".worktreeinclude": ".flag\n"})
    assert look(root).evidence.fingerprint == ""
    assert look(root).evidence.reused is False


def test_detected_checks_are_reused_as_well(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", GOOD)
    Project.create(root)
    assert [look(root).evidence.reused for _ in range(2)] == [False, True]


# Compared with what was before


def test_evidence_is_compared_with_that_of_the_commit_before(root: Path) -> None:
    parent = git(root, "rev-parse", "HEAD")
    assert look(root).delta is None
    commit(root, {"names": "!a c d"})
    looked = look(root)
    assert looked.delta is not None
    assert (looked.compared_with, looked.delta.newly_failing, looked.delta.vanished) == (
        parent,
        ("a",),
        ("b",),
    )
    assert looked.delta.counts is not None
    assert (looked.delta.counts.total, looked.delta.counts.failed) == (1, 1)


def test_a_tree_is_compared_with_head(root: Path) -> None:
    look(root)
    write(root, {"names": "a b c"})
    git(root, "add", "--all")
    tree = git(root, "write-tree")
    looked = look(root, tree=tree)
    assert (looked.evidence.tree, looked.evidence.outcome) == (tree, PASS)
    assert looked.compared_with == git(root, "rev-parse", "HEAD")
    assert looked.delta is not None
    assert looked.delta.counts is not None
    assert looked.delta.counts.total == 1


def test_an_earlier_commit_can_be_looked_at(root: Path) -> None:
    first = git(root, "rev-parse", "HEAD")
    commit(root, {"names": "!a"})
    assert look(root, commit="HEAD~1").evidence.commit == first


# For a run


def test_a_run_gathers_the_same_way(root: Path) -> None:
    project = Project.find(root)
    told: list[Any] = []
    worktrees = Worktrees(project.git, project.state, "run-001")
    gathering = gatherer.gathering(
        project, worktrees, lambda name, part: told.append((name, part is not None))
    )
    head = project.git.commit_of("HEAD")
    found = asyncio.run(gathering.on(head, project.git.tree_of(head)))
    assert (found.outcome, found.parts[0].name) == (PASS, "tests")
    assert told == [("tests", False), ("tests", True)]
    assert lookup(project.ledger, found.tree, found.fingerprint) is None  # whoever asked puts it on record
    assert list((project.state / "worktrees").rglob("check-*")) == []


def test_a_run_takes_the_checks_that_the_persons_own_checkout_shows(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", GOOD)
    project = Project.create(root)
    tree = commit(root, {"Makefile": "test:\n\t@echo '=== 9 passed in 0.01s ==='\n"}, "a way around")
    git(root, "reset", "--quiet", "--hard", "HEAD~1")
    gathering = gatherer.gathering(project, Worktrees(project.git, project.state, "run-001"))
    found = asyncio.run(gathering.on(tree, project.git.tree_of(tree)))
    assert (found.outcome, found.reason) == (PASS, "1 of 1 test passed")


def test_a_checkout_is_prepared_as_the_worktrees_of_agents_are(root: Path) -> None:
    setup = "[workspace]\nsetup = ['sh', '-c', 'echo a b c > names']\n"
    commit(root, {"planforge.toml": toml() + setup, ".gitignore": ".flag\n.planforge\nnames\n"})
    git(root, "rm", "--quiet", "--cached", "names")
    git(root, "commit", "--quiet", "--message=made by setup")
    looked = look(root)
    assert looked.evidence.counts is not None, looked.evidence.reason
    assert looked.evidence.counts.total == 3


def test_an_editable_install_does_not_lead_back_to_the_persons_files(tmp_path: Path) -> None:
    case = f"{CASE}    def test_a(self):\n        from pkg import VALUE\n        self.assertEqual(VALUE, 1)\n"
    files = {
        "setup.py": "",
        "src/pkg/__init__.py": "VALUE = 1\n",
        "tests/test_a.py": case,
        ".gitignore": ".venv\n",
    }
    root = repository(tmp_path / "project", files)
    venv.create(root / ".venv", with_pip=False)
    (packages,) = (root / ".venv").glob("lib/python*/site-packages")
    (packages / "editable.pth").write_text(f"{root / 'src'}\n")
    write(root, {"src/pkg/__init__.py": "VALUE = 2\n"})
    looked = look(root)
    assert looked.evidence.command[0] == "${root}/.venv/bin/python"
    assert looked.evidence.outcome is PASS, looked.evidence.reason
