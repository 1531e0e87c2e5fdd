"""Listing what agents left, getting it back without overwriting anything, and cleaning up."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from planforge.app.project import Project
from planforge.app.upkeep import cleanup, recovery
from planforge.app.upkeep.recovery import Quarantined
from planforge.errors import InvalidInput, NotFound
from planforge.kernel.events import Payload, RunEnded, RunParked, RunStarted
from planforge.kernel.locks import held
from planforge.workspace.archive.quarantine import Quarantine
from planforge.workspace.worktrees import Worktrees
from repositories import DATE, commit, git, repository, write

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create(repository(tmp_path / "place"))


def run(project: Project, name: str, *, ended: bool = True, plan: str = "plan-001") -> Worktrees:
    """A run on record, and its worktrees."""
    started = RunStarted(run=name, flow="plan_run", flow_version=1, subject=plan, request=Payload())
    after = (
        RunEnded(run=name, succeeded=True, reason="done", exit_code=0)
        if ended
        else RunParked(run=name, reason="waits")
    )
    project.ledger.append(name, [started, after], expected=0)
    return Worktrees(project.git, project.state, name)


def leave(worktrees: Worktrees, name: str, files: dict[str, str | bytes]) -> None:
    worktrees.open(name, "HEAD")
    write(worktrees.path(name), files)
    worktrees.close(name)


# Listing


def test_each_worktree_is_listed_with_what_is_in_it(project: Project) -> None:
    worktrees = run(project, "run-001", ended=False)
    base = worktrees.open("phase-2-3", "HEAD").commit
    commit(worktrees.path("phase-2-3"), {"mine.py": "mine\n"}, "mine")
    worktrees.open("forge", "HEAD")
    fresh = worktrees.make_fresh("HEAD")
    Worktrees(project.git, project.state, "run-009").open("a", "HEAD")
    listed = {item.name: item for item in recovery.worktrees(project).worktrees}
    assert sorted(listed) == ["a", fresh.name, "forge", "phase-2-3"]
    one = listed["phase-2-3"]
    assert (one.run, one.status, one.step, one.attempt) == ("run-001", "waiting", "phase-2", 3)
    assert (one.branch, one.base) == ("planforge/work/run-001/phase-2-3", base)
    assert (one.dirty, one.commits, one.bytes > 0) == (True, 1, True)
    assert (listed["forge"].dirty, listed["forge"].commits, listed["forge"].step) == (False, 0, "forge")
    assert (listed[fresh.name].dirty, listed[fresh.name].base) == (None, "")
    assert listed["a"].status == "unknown"
    assert datetime.fromisoformat(one.opened_at) <= datetime.now(UTC)


def test_everything_archived_is_listed_with_what_it_changes(project: Project) -> None:
    worktrees = run(project, "run-001")
    leave(worktrees, "phase-1-1", {"app.py": "one\ntwo\n", "new.py": "new\n"})
    worktrees.open("phase-1-2", "HEAD")
    for number in range(2):
        commit(worktrees.path("phase-1-2"), {f"{number}.py": f"{number}\n"}, f"try {number}")
    patch = worktrees.commit("phase-1-2", git(project.root, "rev-parse", "HEAD"), "ours\n", "phase-1-2", DATE)
    worktrees.sweep()
    git(project.root, "branch", "planforge/plan-001", patch.commit)
    listed = {item.name: item for item in recovery.archived(project).work}
    assert sorted(listed) == ["run-001/phase-1-1.left", "run-001/phase-1-2", "run-001/phase-1-2.head"]
    left = listed["run-001/phase-1-1.left"]
    assert (left.files, left.changed_lines, left.landed) == (("app.py", "new.py"), 4, False)
    assert (left.step, left.attempt, left.why) == ("phase-1", 1, "left in the worktree")
    head = listed["run-001/phase-1-2.head"]
    assert (head.files, head.changed_lines, head.landed) == (("0.py", "1.py"), 2, False)
    assert (head.base, head.why) == (patch.parent, "committed by the agent itself")
    ours = listed["run-001/phase-1-2"]
    assert (ours.landed, ours.why, ours.at) == (True, "proposed", DATE)


def test_the_list_can_be_narrowed_down(project: Project) -> None:
    leave(run(project, "run-001"), "phase-1-1", {"src/one.py": "1\n"})
    leave(run(project, "run-002", plan="plan-002"), "phase-7-1", {"src/two.py": "2\n", "docs/x.md": "x\n"})

    def names(**wanted: str) -> list[str]:
        return [item.name for item in recovery.archived(project, **wanted).work]

    first, second = "run-001/phase-1-1.left", "run-002/phase-7-1.left"
    assert set(names()) == {first, second}
    assert names(run="run-002") == [second]
    assert names(plan="2") == [second]
    assert names(text="PHASE-1") == [first]
    assert set(names(path="src")) == {first, second}
    assert names(path="src/one.py") == [first]
    assert names(path="*.md") == [second]
    assert names(path="sr") == []
    assert names(run="run-001", path="docs") == []


@pytest.mark.parametrize("date", ["@0 +0000", "@4102444800 -1200", "@99999999999999 +0000"])
def test_an_agent_that_dates_its_commits_oddly_breaks_no_list(project: Project, date: str) -> None:
    worktrees = run(project, "run-001")
    worktrees.open("a", "HEAD")
    path = worktrees.path("a")
    tree = git(path, "rev-parse", "HEAD^{tree}")
    head = git(path, "rev-parse", "HEAD")
    odd = f"tree {tree}\nparent {head}\nauthor A <a> {date[1:]}\ncommitter A <a> {date[1:]}\n\nodd \xff\n"
    made = git(
        path, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=odd.encode("latin-1")
    )
    git(path, "update-ref", "refs/heads/odd", made)
    worktrees.close("a")
    [item] = recovery.archived(project).work
    assert (item.name, item.commit) == ("run-001/a.branch-odd", made)
    assert recovery.show(project, "a.branch-odd").message.startswith("odd")


# Getting it back


def test_work_is_found_by_its_name_the_end_of_it_or_its_commit(project: Project) -> None:
    leave(run(project, "run-001"), "phase-1-1", {"one.py": "1\n"})
    leave(run(project, "run-002"), "phase-1-1", {"two.py": "2\n"})
    leave(Worktrees(project.git, project.state, "run-002"), "phase-2-1", {"three.py": "3\n"})
    assert recovery.find(project, "run-002/phase-1-1.left").run == "run-002"
    found = recovery.find(project, "phase-2-1.left")
    assert not isinstance(found, Quarantined)
    assert recovery.find(project, found.commit[:10]) == found
    with pytest.raises(InvalidInput, match="may be any of `run-001/phase-1-1"):
        recovery.find(project, "phase-1-1.left")
    with pytest.raises(NotFound, match="nothing is archived as `nonsense`"):
        recovery.find(project, "nonsense")


def test_what_a_piece_of_work_changes_is_shown(project: Project) -> None:
    leave(run(project, "run-001"), "phase-1-1", {"new.py": "1\n2\n"})
    shown = recovery.show(project, "phase-1-1.left")
    assert "new.py | 2 ++" in shown.stat
    assert shown.message == "left in worktree phase-1-1 of run-001"


def test_files_are_written_into_a_new_directory_and_never_over_anything(
    project: Project, tmp_path: Path
) -> None:
    worktrees = run(project, "run-001")
    worktrees.open("a", "HEAD")
    path = worktrees.path("a")
    write(path, {"new/file.py": "new\n", "tool": "#!/bin/sh\n"})
    (path / "tool").chmod(0o755)
    (path / "link").symlink_to("/etc/passwd")
    (path / "app.py").unlink()
    worktrees.close("a")
    target = tmp_path / "back"
    recovery.write_to(project, "a.left", target)
    assert sorted(str(file.relative_to(target)) for file in target.rglob("*")) == [
        *("README.md", "link", "new", "new/file.py", "tool"),
    ]
    assert (target / "new" / "file.py").read_text() == "new\n"
    assert (target / "tool").stat().st_mode & 0o111
    assert (target / "link").is_symlink()
    write(target, {"new/file.py": "edited\n"})
    with pytest.raises(InvalidInput, match="exists already"):
        recovery.write_to(project, "a.left", target)
    assert (target / "new" / "file.py").read_text() == "edited\n"
    with pytest.raises(InvalidInput, match="cannot make"):
        recovery.write_to(project, "a.left", tmp_path / "no" / "where")
    assert git(project.root, "status", "--porcelain") == ""


def test_a_branch_is_made_and_never_moved(project: Project) -> None:
    leave(run(project, "run-001"), "a", {"new.py": "new\n"})
    made = recovery.make_branch(project, "a.left", "rescued")
    assert git(project.root, "rev-parse", "rescued") == made.commit
    main = git(project.root, "rev-parse", "main")
    for taken in ("main", "rescued"):
        with pytest.raises(InvalidInput, match="already"):
            recovery.make_branch(project, "a.left", taken)
    for wrong in ("a..b", "-x", "", "a b"):
        with pytest.raises(InvalidInput, match="cannot be the name of a branch"):
            recovery.make_branch(project, "a.left", wrong)
    assert git(project.root, "rev-parse", "main") == main


def test_what_is_kept_outside_git_is_listed_and_got_back(project: Project, tmp_path: Path) -> None:
    worktrees = run(project, "run-001")
    worktrees.open("a", "HEAD")
    write(worktrees.path("a"), {"conf/key.pem": "secret\n"})
    kept = Quarantine(project.state, "run-001")
    kept.copy("a", worktrees.path("a"), [b"conf/key.pem"], "a private key")
    worktrees.close("a")
    [item] = recovery.archived(project, path="conf").quarantined
    assert (item.name, item.why, item.files) == (
        *("quarantine/run-001/a.1", "a private key"),
        ("conf/key.pem",),
    )
    recovery.write_to(project, item.name, tmp_path / "back")
    assert (tmp_path / "back" / "conf" / "key.pem").read_text() == "secret\n"
    assert recovery.show(project, item.name).stat == "conf/key.pem"
    with pytest.raises(InvalidInput, match="is kept outside git"):
        recovery.make_branch(project, item.name, "rescued")


# Cleaning up


def clean(project: Project, **wishes: bool | int | None) -> cleanup.Cleanup:
    plain: dict[str, bool | int | None] = {"yes": True, "older_than": None}
    plain |= {"archived": False, "interrupted": False}
    return cleanup.clean(project, **(plain | wishes))  # type: ignore[arg-type]


def test_a_dry_run_removes_nothing_and_says_how_much_it_would(project: Project) -> None:
    worktrees = run(project, "run-001")
    worktrees.open("a", "HEAD")
    dry = clean(project, yes=False)
    assert dry.dry
    assert [item.name for item in dry.gone] == ["run-001/a", "planforge/work/run-001/a"]
    assert dry.bytes == sum(item.bytes for item in dry.gone) > 0
    assert worktrees.path("a").exists()
    done = clean(project)
    assert not done.dry
    assert done.gone == dry.gone
    assert not worktrees.path("a").exists()


def test_a_run_that_is_driven_or_can_be_resumed_is_left_alone(project: Project) -> None:
    worktrees = run(project, "run-001", ended=False)
    worktrees.open("a", "HEAD")
    done = clean(project)
    assert (done.gone, {item.reason.partition(";")[0] for item in done.stays}) == (
        (),
        {"`run-001` can be resumed"},
    )
    with held(project.lock("run-001"), "a run"):
        driven = clean(project, interrupted=True)
    assert {item.reason for item in driven.stays} == {"`run-001` is being driven"}
    assert worktrees.path("a").exists()
    clean(project, interrupted=True)
    assert not worktrees.path("a").exists()


def test_archived_work_is_removed_unlanded_only_with_an_age(project: Project) -> None:
    leave(run(project, "run-001"), "a", {"new.py": "new\n"})
    with pytest.raises(InvalidInput, match="say how old"):
        clean(project, archived=True)
    with pytest.raises(InvalidInput, match="from 0 to"):
        clean(project, older_than=-1)
    assert clean(project, archived=True, older_than=1).gone == ()
    assert [item.kind for item in clean(project, older_than=0).stays] == ["archive"]
    assert "run-001/a.left" in [item.name for item in clean(project, archived=True, older_than=0).gone]
    assert recovery.archived(project).work == ()


def test_what_the_archive_could_not_take_is_told(project: Project) -> None:
    worktrees = run(project, "run-001")
    worktrees.open("a", "HEAD")
    write(worktrees.path("a"), {".GIT/config": "not allowed\n"})
    [note] = clean(project).notes
    assert note.startswith("`.GIT/config` is kept in `")


def test_a_secret_in_a_worktree_that_is_cleaned_up_does_not_get_into_git(project: Project) -> None:
    worktrees = run(project, "run-001")
    worktrees.open("a", "HEAD")
    write(worktrees.path("a"), {"new.py": "new\n", "env": f"TOKEN={SECRET}\n"})
    clean(project)
    found = recovery.archived(project)
    assert [item.files for item in found.work] == [("new.py",)]
    assert [item.files for item in found.quarantined] == [("env",)]


def test_what_is_kept_nowhere_else_is_refused_by_name(project: Project) -> None:
    run(project, "run-001")
    mine = git(project.root, "commit-tree", "-p", "HEAD", "-m", "mine", "HEAD^{tree}")
    git(project.root, "branch", "planforge/work/run-001/a", mine)
    done = clean(project)
    assert [item.name for item in done.refused] == ["planforge/work/run-001/a"]
    assert git(project.root, "rev-parse", "planforge/work/run-001/a") == mine
