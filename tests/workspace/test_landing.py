"""Landing on real branches: by compare-and-swap, or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planforge.errors import GitFailed
from planforge.workspace import landing
from planforge.workspace.git import Git
from repositories import DATE, fingerprint, git, repository

BRANCH = "planforge/plan-001"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return repository(tmp_path / "place")


@pytest.fixture
def repo(place: Path) -> Git:
    return Git.find(place)


def child(repo: Git, parent: str, message: str) -> str:
    return repo.commit_tree(repo.tree_of(parent), [parent], f"{message}\n", DATE)


@pytest.fixture
def base(repo: Git) -> str:
    return landing.open_branch(repo, BRANCH, "HEAD").commit


def test_a_branch_is_made_where_asked_and_found_where_it_is_afterwards(repo: Git, base: str) -> None:
    assert base == repo.commit_of("HEAD")
    tip = child(repo, base, "landed")
    landing.land(repo, BRANCH, tip, base)
    assert landing.open_branch(repo, BRANCH, base).commit == tip


def test_a_landing_is_a_fast_forward(place: Path, repo: Git, base: str) -> None:
    before = fingerprint(place)
    commit = child(repo, base, "one")
    landed = landing.land(repo, BRANCH, commit, base)
    assert (landed.landed, landed.tip) == (True, commit)
    assert git(place, "rev-parse", BRANCH) == commit
    assert fingerprint(place) == before


def test_if_the_branch_moved_meanwhile_the_answer_says_where_it_is(place: Path, repo: Git, base: str) -> None:
    theirs, ours = child(repo, base, "theirs"), child(repo, base, "ours")
    git(place, "update-ref", f"refs/heads/{BRANCH}", theirs)
    landed = landing.land(repo, BRANCH, ours, base)
    assert (landed.landed, landed.tip) == (False, theirs)
    assert git(place, "rev-parse", BRANCH) == theirs


def test_asked_again_after_a_crash_it_is_found_done(repo: Git, base: str) -> None:
    first = child(repo, base, "first")
    second = child(repo, first, "second")
    landing.land(repo, BRANCH, first, base)
    assert landing.land(repo, BRANCH, first, base).tip == first
    landing.land(repo, BRANCH, second, first)
    again = landing.land(repo, BRANCH, first, base)
    assert (again.landed, again.tip) == (True, second)


def test_what_is_not_built_on_the_expected_commit_is_refused(place: Path, repo: Git, base: str) -> None:
    sideways = repo.commit_tree(repo.tree_of(base), [], "a root of its own\n", DATE)
    with pytest.raises(GitFailed, match="is not built on"):
        landing.land(repo, BRANCH, sideways, base)
    assert git(place, "rev-parse", BRANCH) == base


def test_a_branch_that_is_checked_out_somewhere_is_not_moved_and_the_place_is_named(
    place: Path, repo: Git, base: str, tmp_path: Path
) -> None:
    other = tmp_path / "other place"
    git(place, "worktree", "add", "--quiet", str(other), BRANCH)
    with pytest.raises(GitFailed) as caught:
        landing.land(repo, BRANCH, child(repo, base, "one"), base)
    assert caught.value.message == f"`{BRANCH}` is checked out in `{other}`"
    assert caught.value.hint is not None
    assert git(place, "rev-parse", BRANCH) == base


def test_a_branch_checked_out_in_the_main_checkout_is_not_moved_either(
    place: Path, repo: Git, base: str
) -> None:
    git(place, "checkout", "--quiet", BRANCH)
    with pytest.raises(GitFailed, match="is checked out in"):
        landing.land(repo, BRANCH, child(repo, base, "one"), base)


@pytest.mark.parametrize("branch", ["main", "feature/planforge/x", "planforge", "refs/heads/planforge/x", ""])
def test_a_branch_that_is_not_planforges_is_refused(place: Path, repo: Git, base: str, branch: str) -> None:
    before = fingerprint(place)
    commit = child(repo, base, "one")
    with pytest.raises(GitFailed, match="is not a branch of Planforge's"):
        landing.open_branch(repo, branch, base)
    with pytest.raises(GitFailed, match="is not a branch of Planforge's"):
        landing.land(repo, branch, commit, base)
    with pytest.raises(GitFailed, match="is not a branch of Planforge's"):
        landing.holds(repo, branch, commit)
    assert fingerprint(place) == before


@pytest.mark.parametrize("branch", ["planforge/../main", "planforge/a..b", "planforge/", "planforge/x.lock"])
def test_a_name_that_git_does_not_allow_is_refused(place: Path, repo: Git, branch: str) -> None:
    before = fingerprint(place)
    with pytest.raises(GitFailed):
        landing.open_branch(repo, branch, "HEAD")
    assert fingerprint(place) == before


def test_a_branch_that_somebody_deleted_is_not_made_again(place: Path, repo: Git, base: str) -> None:
    git(place, "branch", "--quiet", "--delete", "--force", BRANCH)
    with pytest.raises(GitFailed, match="is gone"):
        landing.land(repo, BRANCH, child(repo, base, "one"), base)
    assert not landing.holds(repo, BRANCH, base)


def test_a_branch_holds_what_landed_on_it_and_nothing_else(repo: Git, base: str) -> None:
    landed, other = child(repo, base, "landed"), child(repo, base, "other")
    landing.land(repo, BRANCH, landed, base)
    assert landing.holds(repo, BRANCH, landed)
    assert landing.holds(repo, BRANCH, base)
    assert not landing.holds(repo, BRANCH, other)


RACER = """
import pathlib, sys
from planforge.workspace import landing
from planforge.workspace.git import Git

place, commit, expected = sys.argv[1:]
repo = Git.find(pathlib.Path(place))
print("ready", flush=True)
sys.stdin.readline()
landed = landing.land(repo, "planforge/plan-001", commit, expected)
print(landed.landed, landed.tip)
"""


def test_of_two_processes_landing_at_once_exactly_one_lands(place: Path, repo: Git, base: str) -> None:
    tip = base
    for turn in range(3):
        commits = [child(repo, tip, f"{turn}-{racer}") for racer in range(2)]
        racers = [
            subprocess.Popen(
                [sys.executable, "-c", RACER, str(place), commit, tip],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for commit in commits
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        said = [racer.communicate(timeout=60)[0].split() for racer in racers]
        assert sorted(answer[0] for answer in said) == ["False", "True"], said
        tip = git(place, "rev-parse", BRANCH)
        assert tip in commits
        assert [answer[1] for answer in said] == [tip, tip]
