"""What a cleanup takes and what it leaves, in real repositories."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archives import archived, registered
from planforge.errors import GitFailed
from planforge.workspace.archive.quarantine import Quarantine
from planforge.workspace.git import Git
from planforge.workspace.worktrees import Worktrees, cleanup
from planforge.workspace.worktrees.cleanup import Item, Kind, Standing, Wishes
from repositories import DATE, commit, fingerprint, git, repository, write

NOW = datetime.now(UTC)
ALL_AGES = Wishes(before=NOW + timedelta(days=2))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return repository(tmp_path / "place")


@pytest.fixture
def worktrees(place: Path) -> Worktrees:
    return Worktrees(Git.find(place), place / ".planforge", "run-1")


def survey(
    place: Path, standing: Standing = Standing.ENDED, wishes: Wishes | None = None, heard: datetime = NOW
) -> dict[str, Item]:
    found = cleanup.survey(
        Git.find(place), place / ".planforge", lambda _: standing, lambda _: heard, wishes or Wishes()
    )
    return {f"{item.kind}: {item.name}": item for item in found}


def clean(place: Path, standing: Standing = Standing.ENDED, wishes: Wishes | None = None) -> None:
    for item in survey(place, standing, wishes).values():
        if item.goes:
            cleanup.remove(Git.find(place), place / ".planforge", item, wishes or Wishes())


def going(items: dict[str, Item]) -> list[str]:
    return [name for name, item in items.items() if item.goes]


def test_worktrees_of_a_run_that_has_ended_are_archived_and_go_with_their_branches(
    place: Path, worktrees: Worktrees
) -> None:
    before = fingerprint(place)
    worktrees.open("a", "HEAD")
    write(worktrees.path("a"), {"new.py": "new\n"})
    mine = commit(worktrees.path("a"), {"mine.py": "mine\n"}, "mine")
    worktrees.make_fresh("HEAD")
    found = survey(place)
    assert [name.partition(": ")[0] for name in going(found)] == ["worktree", "checkout", "branch"]
    assert found["worktree: run-1/a"].bytes > 0
    clean(place)
    assert registered(place) == [str(place)]
    assert git(place, "for-each-ref", "refs/heads/planforge") == ""
    assert archived(place)["a.head"] == mine
    assert not (place / ".planforge" / "worktrees" / "run-1").exists()
    assert survey(place) == {}
    assert fingerprint(place) == before


def test_nothing_of_a_run_that_is_driven_is_touched(place: Path, worktrees: Worktrees) -> None:
    worktrees.open("a", "HEAD")
    worktrees.make_fresh("HEAD")
    worktrees.keep(git(place, "rev-parse", "HEAD^{tree}"), "HEAD", "kept\n", "kept", DATE)
    wishes = Wishes(before=NOW + timedelta(days=2), archived=True, interrupted=True)
    found = survey(place, Standing.DRIVEN, wishes)
    assert going(found) == []
    assert found["worktree: run-1/a"].reason == "`run-1` is being driven"


def test_a_run_that_can_be_resumed_keeps_its_worktrees_unless_asked(
    place: Path, worktrees: Worktrees
) -> None:
    worktrees.open("a", "HEAD")
    fresh = worktrees.make_fresh("HEAD")
    (place / ".planforge" / "worktrees" / "run-1" / ".gone-x").mkdir()
    assert going(survey(place, Standing.INTERRUPTED)) == [
        f"checkout: run-1/{fresh.name}",
        "remains: run-1/.gone-x",
    ]
    wishes = Wishes(interrupted=True)
    assert "worktree: run-1/a" in going(survey(place, Standing.INTERRUPTED, wishes))
    clean(place, Standing.INTERRUPTED, wishes)
    assert not worktrees.path("a").exists()


def test_worktrees_and_branches_of_the_persons_are_not_ours(
    place: Path, worktrees: Worktrees, tmp_path: Path
) -> None:
    worktrees.open("a", "HEAD")
    git(worktrees.path("a"), "checkout", "--quiet", "--detach")
    git(place, "worktree", "add", "--quiet", str(tmp_path / "look"), "planforge/work/run-1/a")
    git(place, "branch", "planforge/mine")
    found = survey(place)
    assert going(found) == ["worktree: run-1/a"]
    assert found["branch: planforge/work/run-1/a"].reason == f"it is checked out in `{tmp_path / 'look'}`"
    clean(place)
    assert registered(place) == [str(place), str(tmp_path / "look")]
    assert git(place, "rev-parse", "planforge/mine")


def test_a_branch_with_commits_that_are_archived_nowhere_is_refused_and_named(place: Path) -> None:
    mine = git(place, "commit-tree", "-p", "HEAD", "-m", "mine", "HEAD^{tree}")
    git(place, "branch", "planforge/work/run-1/a", mine)
    git(place, "branch", "planforge/work/run-1/b", "HEAD")
    found = survey(place)
    assert going(found) == ["branch: planforge/work/run-1/b"]
    refused = found["branch: planforge/work/run-1/a"]
    assert refused.unarchived
    assert refused.reason.startswith("1 of its commits are archived nowhere")
    forced = Item(kind=Kind.BRANCH, name=refused.name, run="run-1", goes=True, reason="", commit=mine)
    with pytest.raises(GitFailed, match="is not what it was a moment ago"):
        cleanup.remove(Git.find(place), place / ".planforge", forced, Wishes())
    assert git(place, "rev-parse", "planforge/work/run-1/a") == mine


def test_archived_work_goes_when_it_is_old_and_has_landed(place: Path, worktrees: Worktrees) -> None:
    tree, head = git(place, "rev-parse", "HEAD^{tree}"), git(place, "rev-parse", "HEAD")
    landed = worktrees.keep(tree, head, "landed\n", "phase-1-1", DATE).commit
    other = worktrees.keep(tree, head, "not landed\n", "phase-1-2", DATE).commit
    git(place, "branch", "planforge/plan-001", landed)
    assert survey(place) == {}
    old = datetime.fromisoformat(DATE) + timedelta(days=1)
    recent = Wishes(before=old)  # older than their dates, but not than the run
    assert survey(place, wishes=recent) == {}
    assert going(survey(place, wishes=recent, heard=old - timedelta(hours=1))) == ["archive: run-1/phase-1-1"]
    assert survey(place, wishes=ALL_AGES)["archive: run-1/phase-1-2"].reason == "it has not landed"
    clean(place, wishes=ALL_AGES)
    assert archived(place) == {"phase-1-2": other}
    clean(place, wishes=Wishes(before=ALL_AGES.before, archived=True))
    assert archived(place) == {}


def test_work_whose_branch_is_deleted_after_the_survey_stays(place: Path, worktrees: Worktrees) -> None:
    tree, head = git(place, "rev-parse", "HEAD^{tree}"), git(place, "rev-parse", "HEAD")
    landed = worktrees.keep(tree, head, "landed\n", "phase-1-1", DATE).commit
    git(place, "branch", "planforge/plan-001", landed)
    [item] = survey(place, wishes=ALL_AGES).values()
    git(place, "branch", "-D", "planforge/plan-001")
    with pytest.raises(GitFailed, match="is not what it was a moment ago"):
        cleanup.remove(Git.find(place), place / ".planforge", item, ALL_AGES)
    assert archived(place) == {"phase-1-1": landed}


def test_a_branch_of_another_worktree_is_no_place_where_work_has_landed(
    place: Path, worktrees: Worktrees
) -> None:
    tree, head = git(place, "rev-parse", "HEAD^{tree}"), git(place, "rev-parse", "HEAD")
    kept = worktrees.keep(tree, head, "kept\n", "phase-1-1", DATE).commit
    worktrees.open("b", kept)
    assert not survey(place, wishes=ALL_AGES)["archive: run-1/phase-1-1"].goes


def test_marks_of_where_worktrees_began_go_when_nothing_needs_them(place: Path, worktrees: Worktrees) -> None:
    worktrees.open("a", "HEAD")
    assert "base: run-1/a" not in survey(place, wishes=ALL_AGES)
    worktrees.close("a")
    worktrees.sweep()
    assert survey(place) == {}
    clean(place, wishes=ALL_AGES)
    assert git(place, "for-each-ref", "refs/planforge") == ""


def test_what_is_in_quarantine_goes_only_when_that_is_asked_for(place: Path, worktrees: Worktrees) -> None:
    worktrees.open("a", "HEAD")
    write(worktrees.path("a"), {"key.pem": "secret\n"})
    kept = Quarantine(place / ".planforge", "run-1")
    kept.copy("a", worktrees.path("a"), [b"key.pem"], "a private key")
    worktrees.sweep()
    held = place / ".planforge" / "quarantine" / "run-1" / "a.1"
    clean(place, wishes=ALL_AGES)
    assert held.exists()
    clean(place, wishes=Wishes(before=ALL_AGES.before, archived=True))
    assert not held.exists()


def test_what_only_git_remembers_of_worktrees_goes(place: Path, worktrees: Worktrees) -> None:
    worktrees.open("a", "HEAD")
    shutil.rmtree(place / ".planforge" / "worktrees")
    clean(place)
    assert registered(place) == [str(place)]
    assert git(place, "for-each-ref", "refs/heads/planforge") == ""
