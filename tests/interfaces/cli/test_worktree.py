"""`planforge worktree`, `recover` and `cleanup` as a person meets them, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from planforge.app.project import Project
from planforge.workspace.worktrees import Worktrees
from programs import document, planforge
from repositories import commit, git, repository, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a worktree that stands, and work that is archived."""
    place = repository(tmp_path / "project")
    project = Project.create(place)
    worktrees = Worktrees(project.git, project.state, "run-001")
    worktrees.open("phase-1-1", "HEAD")
    write(worktrees.path("phase-1-1"), {"new.py": "one\ntwo\n"})
    worktrees.close("phase-1-1")
    worktrees.open("phase-1-2", "HEAD")
    commit(worktrees.path("phase-1-2"), {"more.py": "more\n"}, "mine")
    return place


def test_worktrees_are_listed(root: Path) -> None:
    shown = planforge("worktree", "list", cwd=root)
    assert shown.returncode == 0, shown.stderr
    words = shown.stdout.split()
    assert words[:4] == ["run-001", "unknown", "phase-1-2", "at"]
    assert words[5:8] == ["changed", "1", "commit"]
    assert words[-1] == "planforge/work/run-001/phase-1-2"
    [item] = document("worktree", "list", cwd=root)["worktrees"]
    assert (item["step"], item["attempt"], item["dirty"]) == ("phase-1", 2, True)
    assert planforge("cleanup", "--yes", cwd=root).returncode == 0
    assert planforge("worktree", "list", cwd=root).stdout == "no worktrees\n"


def test_archived_work_is_listed_shown_and_got_back(root: Path, tmp_path: Path) -> None:
    shown = planforge("recover", cwd=root)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("run-001/phase-1-1.left  ")
    assert shown.stdout.endswith("  1 file, 2 lines    left in the worktree\n")
    assert planforge("recover", "--path", "nowhere", cwd=root).stdout == "nothing is archived\n"
    assert "new.py | 2 ++" in planforge("recover", "phase-1-1.left", cwd=root).stdout
    back = tmp_path / "back"
    done = planforge("recover", "phase-1-1.left", "--to", str(back), "--branch", "rescued", cwd=root)
    assert done.returncode == 0, done.stderr
    assert (back / "new.py").read_text() == "one\ntwo\n"
    assert git(root, "show", "rescued:new.py") == "one\ntwo"
    again = planforge("recover", "phase-1-1.left", "--to", str(back), cwd=root)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    [item] = document("recover", cwd=root)["work"]
    assert (item["files"], item["changed_lines"], item["landed"]) == (["new.py"], 2, True)


def test_what_makes_no_sense_is_refused(root: Path) -> None:
    assert planforge("recover", "--branch", "x", cwd=root).returncode == 2
    assert planforge("recover", "nothing", cwd=root).returncode == 3
    assert planforge("cleanup", "--archived", cwd=root).returncode == 2


def test_cleanup_removes_nothing_unless_told_and_refuses_what_is_kept_nowhere_else(root: Path) -> None:
    mine = git(root, "commit-tree", "-p", "HEAD", "-m", "mine", "HEAD^{tree}")
    git(root, "branch", "planforge/work/run-001/stray", mine)
    path = root / ".planforge" / "worktrees" / "run-001" / "phase-1-2"
    dry = planforge("cleanup", cwd=root)
    assert (dry.returncode, path.exists()) == (0, True)
    assert dry.stdout.startswith("Would go (")
    assert dry.stderr == "nothing was removed; add `--yes` to remove it\n"
    done = planforge("cleanup", "--yes", cwd=root)
    assert (done.returncode, path.exists()) == (5, False)
    assert done.stdout.startswith("Gone (")
    assert "`planforge/work/run-001/stray`" in done.stderr
    assert git(root, "rev-parse", "planforge/work/run-001/stray") == mine
    assert len(document("recover", "--run", "run-001", cwd=root)["work"]) == 2


@pytest.mark.parametrize("command", [("worktree", "list"), ("recover",), ("cleanup",)])
def test_a_project_in_which_nothing_happened_has_nothing(tmp_path: Path, command: tuple[str, ...]) -> None:
    Project.create(repository(tmp_path))
    shown = planforge(*command, cwd=tmp_path)
    assert (shown.returncode, shown.stdout.count("\n")) == (0, 1)
    assert document(*command, cwd=tmp_path)["schema_version"] == 1


def test_private_homes_of_a_run_that_has_ended_go_with_the_rest(root: Path) -> None:
    home = root / ".planforge" / "homes" / "run-001" / "phase-1-1" / "claude"
    home.mkdir(parents=True)
    (home / "history").write_text("what was said\n")
    dry = planforge("cleanup", cwd=root)
    assert "run-001/phase-1-1/claude" in dry.stdout
    assert home.is_dir()
    assert planforge("cleanup", "--yes", cwd=root).returncode == 0
    assert not home.exists()
    assert (root / ".planforge" / "ledger.db").exists()
