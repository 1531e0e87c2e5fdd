"""Landing on real branches: by compare-and-swap, or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planforge.errors import GitFailed
from planforge.workspace.git import Git
from planforge.workspace.landing import branches
from repositories import DATE, commit, fingerprint, git, repository

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
    return branches.open_branch(repo, BRANCH, "HEAD").commit


def test_a_branch_is_made_where_asked_and_found_where_it_is_afterwards(repo: Git, base: str) -> None:
    assert base == repo.commit_of("HEAD")
    tip = child(repo, base, "landed")
    branches.land(repo, BRANCH, tip, base)
    assert branches.open_branch(repo, BRANCH, base).commit == tip


def test_a_landing_is_a_fast_forward(place: Path, repo: Git, base: str) -> None:
    before = fingerprint(place)
    commit = child(repo, base, "one")
    landed = branches.land(repo, BRANCH, commit, base)
    assert (landed.landed, landed.tip) == (True, commit)
    assert git(place, "rev-parse", BRANCH) == commit
    assert fingerprint(place) == before


def test_if_the_branch_moved_meanwhile_the_answer_says_where_it_is(place: Path, repo: Git, base: str) -> None:
    theirs, ours = child(repo, base, "theirs"), child(repo, base, "ours")
    git(place, "update-ref", f"refs/heads/{BRANCH}", theirs)
    landed = branches.land(repo, BRANCH, ours, base)
    assert (landed.landed, landed.tip) == (False, theirs)
    assert git(place, "rev-parse", BRANCH) == theirs


def test_asked_again_after_a_crash_it_is_found_done(repo: Git, base: str) -> None:
    first = child(repo, base, "first")
    second = child(repo, first, "second")
    branches.land(repo, BRANCH, first, base)
    assert branches.land(repo, BRANCH, first, base).tip == first
    branches.land(repo, BRANCH, second, first)
    again = branches.land(repo, BRANCH, first, base)
    assert (again.landed, again.tip) == (True, second)


def test_what_is_not_built_on_the_expected_commit_is_refused(place: Path, repo: Git, base: str) -> None:
    sideways = repo.commit_tree(repo.tree_of(base), [], "a root of its own\n", DATE)
    with pytest.raises(GitFailed, match="is not built on"):
        branches.land(repo, BRANCH, sideways, base)
    assert git(place, "rev-parse", BRANCH) == base


def test_a_branch_that_is_checked_out_somewhere_is_not_moved_and_the_place_is_named(
    place: Path, repo: Git, base: str, tmp_path: Path
) -> None:
    other = tmp_path / "other place"
    git(place, "worktree", "add", "--quiet", str(other), BRANCH)
    with pytest.raises(GitFailed) as caught:
        branches.land(repo, BRANCH, child(repo, base, "one"), base)
    assert caught.value.message == f"`{BRANCH}` is checked out in `{other}`"
    assert caught.value.hint is not None
    assert git(place, "rev-parse", BRANCH) == base


def test_a_branch_checked_out_in_the_main_checkout_is_not_moved_either(
    place: Path, repo: Git, base: str
) -> None:
    git(place, "checkout", "--quiet", BRANCH)
    with pytest.raises(GitFailed, match="is checked out in"):
        branches.land(repo, BRANCH, child(repo, base, "one"), base)


@pytest.mark.parametrize("branch", ["main", "feature/planforge/x", "planforge", "refs/heads/planforge/x", ""])
def test_a_branch_that_is_not_planforges_is_refused(place: Path, repo: Git, base: str, branch: str) -> None:
    before = fingerprint(place)
    commit = child(repo, base, "one")
    with pytest.raises(GitFailed, match="is not a branch of Planforge's"):
        branches.open_branch(repo, branch, base)
    with pytest.raises(GitFailed, match="is not a branch of Planforge's"):
        branches.land(repo, branch, commit, base)
    with pytest.raises(GitFailed, match="is not a branch of Planforge's"):
        branches.holds(repo, branch, commit)
    assert fingerprint(place) == before


@pytest.mark.parametrize("branch", ["planforge/../main", "planforge/a..b", "planforge/", "planforge/x.lock"])
def test_a_name_that_git_does_not_allow_is_refused(place: Path, repo: Git, branch: str) -> None:
    before = fingerprint(place)
    with pytest.raises(GitFailed):
        branches.open_branch(repo, branch, "HEAD")
    assert fingerprint(place) == before


def test_a_branch_that_somebody_deleted_is_not_made_again(place: Path, repo: Git, base: str) -> None:
    git(place, "branch", "--quiet", "--delete", "--force", BRANCH)
    with pytest.raises(GitFailed, match="is gone"):
        branches.land(repo, BRANCH, child(repo, base, "one"), base)
    assert not branches.holds(repo, BRANCH, base)


def test_a_branch_holds_what_landed_on_it_and_nothing_else(repo: Git, base: str) -> None:
    landed, other = child(repo, base, "landed"), child(repo, base, "other")
    branches.land(repo, BRANCH, landed, base)
    assert branches.holds(repo, BRANCH, landed)
    assert branches.holds(repo, BRANCH, base)
    assert not branches.holds(repo, BRANCH, other)


RACER = """
import pathlib, sys
from planforge.workspace.landing import branches
from planforge.workspace.git import Git

place, commit, expected = sys.argv[1:]
repo = Git.find(pathlib.Path(place))
print("ready", flush=True)
sys.stdin.readline()
landed = branches.land(repo, "planforge/plan-001", commit, expected)
print(landed.landed, landed.tip)
"""


@pytest.mark.dear
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


# The person's branch, and the one beside it

BESIDE = "planforge/landed/main"


def at(place: Path, branch: str) -> str:
    return git(place, "rev-parse", f"refs/heads/{branch}")


def test_beside_a_branch_that_is_checked_out_one_is_made_at_its_tip(place: Path, repo: Git) -> None:
    before = fingerprint(place)
    target = branches.open_target(repo, "main", ())
    assert (target.landing, target.tip, target.branch_at) == (BESIDE, at(place, "main"), at(place, "main"))
    assert (target.missing, target.foreign, target.checkout) == (False, "", str(place))
    assert at(place, BESIDE) == at(place, "main")
    assert fingerprint(place) == before


def test_it_follows_the_branch_as_long_as_nothing_on_it_is_lost(place: Path, repo: Git) -> None:
    branches.open_target(repo, "main", ())
    newer = commit(place, {"README.md": "newer\n"})
    target = branches.open_target(repo, "main", ())
    assert (target.tip, target.missing) == (newer, False)
    assert at(place, BESIDE) == newer


def test_what_has_landed_beside_it_stays_and_what_the_person_committed_since_is_missing(
    place: Path, repo: Git
) -> None:
    tip = branches.open_target(repo, "main", ()).tip
    landed = child(repo, tip, "landed")
    branches.advance(repo, "main", tip, BESIDE, landed, tip)
    assert not branches.open_target(repo, "main", {landed}).missing
    newer = commit(place, {"README.md": "newer\n"})
    target = branches.open_target(repo, "main", {landed})
    assert (target.tip, target.branch_at, target.missing, target.foreign) == (landed, newer, True, "")


def test_a_commit_beside_the_branch_that_nobody_knows_is_named(place: Path, repo: Git) -> None:
    tip = branches.open_target(repo, "main", ()).tip
    strange = child(repo, tip, "strange")
    git(place, "update-ref", f"refs/heads/{BESIDE}", strange)
    assert branches.open_target(repo, "main", ()).foreign == strange


def test_a_branch_that_the_person_set_back_does_not_come_back_by_way_of_what_landed(
    place: Path, repo: Git
) -> None:
    dropped = commit(place, {"README.md": "dropped\n"})
    landed = child(repo, branches.open_target(repo, "main", ()).tip, "landed")
    branches.advance(repo, "main", dropped, BESIDE, landed, dropped)
    git(place, "reset", "--quiet", "--hard", "HEAD~1")
    assert branches.open_target(repo, "main", {landed}).foreign == dropped


def test_a_branch_that_is_checked_out_nowhere_is_moved_itself(place: Path, repo: Git) -> None:
    git(place, "branch", "release")
    target = branches.open_target(repo, "release", ())
    assert (target.landing, target.checkout) == ("release", "")
    landed = child(repo, target.tip, "landed")
    assert branches.advance(repo, "release", target.tip, "release", landed, target.tip).landed
    assert at(place, "release") == landed


def test_what_landed_beside_it_reaches_the_branch_when_that_is_checked_out_no_more(
    place: Path, repo: Git
) -> None:
    tip = branches.open_target(repo, "main", ()).tip
    landed = child(repo, tip, "landed")
    branches.advance(repo, "main", tip, BESIDE, landed, tip)
    git(place, "checkout", "--quiet", "-b", "other")
    target = branches.open_target(repo, "main", {landed})
    assert (target.landing, target.tip, at(place, "main")) == ("main", landed, landed)


def test_finding_the_target_moves_nothing(place: Path, repo: Git) -> None:
    before = git(place, "for-each-ref")
    target, move = branches.find_target(repo, "main", ())
    assert (target.tip, move) == (at(place, "main"), branches.Move(BESIDE, at(place, "main"), None))
    assert git(place, "for-each-ref") == before


@pytest.mark.parametrize("operation", ["rebase", "bisect"])
def test_a_branch_that_somebody_rebases_or_bisects_is_not_moved_under_their_feet(
    place: Path, repo: Git, operation: str
) -> None:
    first = at(place, "main")
    commit(place, {"app.py": "two\n"})
    commit(place, {"app.py": "three\n"})
    if operation == "bisect":
        git(place, "bisect", "start", "HEAD", first)
    else:
        git(place, "branch", "onto", first)
        git(place, "checkout", "--quiet", "onto")
        commit(place, {"app.py": "conflicting\n"})
        git(place, "checkout", "--quiet", "main")
        with pytest.raises(AssertionError, match="could not apply"):
            git(place, "rebase", "--quiet", "onto")
    target = branches.open_target(repo, "main", ())
    assert (target.landing, target.checkout) == (BESIDE, str(place))


def test_a_branch_checked_out_in_another_worktree_is_not_moved_either(
    place: Path, repo: Git, tmp_path: Path
) -> None:
    git(place, "branch", "release")
    git(place, "worktree", "add", "--quiet", str(tmp_path / "other place"), "release")
    target = branches.open_target(repo, "release", ())
    assert target.landing == "planforge/landed/release"
    assert target.checkout == str(tmp_path / "other place")


def test_a_branch_that_is_checked_out_meanwhile_is_left_where_it_is(place: Path, repo: Git) -> None:
    git(place, "branch", "release")
    tip = branches.open_target(repo, "release", ()).tip
    git(place, "checkout", "--quiet", "release")
    landed = branches.advance(repo, "release", tip, "release", child(repo, tip, "landed"), tip)
    assert (landed.landed, at(place, "release")) == (False, tip)


def test_nothing_lands_if_the_person_has_committed_meanwhile(place: Path, repo: Git) -> None:
    tip = branches.open_target(repo, "main", ()).tip
    commit(place, {"README.md": "newer\n"})
    landed = branches.advance(repo, "main", tip, BESIDE, child(repo, tip, "landed"), tip)
    assert (landed.landed, landed.tip, at(place, BESIDE)) == (False, tip, tip)


def test_a_landing_asked_for_again_after_a_crash_is_found_done(place: Path, repo: Git) -> None:
    tip = branches.open_target(repo, "main", ()).tip
    landed = child(repo, tip, "landed")
    branches.advance(repo, "main", tip, BESIDE, landed, tip)
    commit(place, {"README.md": "newer\n"})  # what the person does then is another matter
    assert branches.advance(repo, "main", tip, BESIDE, landed, tip).landed
    assert at(place, BESIDE) == landed


def test_what_is_not_built_on_the_branch_cannot_land_on_it(place: Path, repo: Git) -> None:
    tip = branches.open_target(repo, "main", ()).tip
    sideways = repo.commit_tree(repo.tree_of(tip), [], "a root of its own\n", DATE)
    with pytest.raises(GitFailed, match="is not built on"):
        branches.advance(repo, "main", tip, BESIDE, sideways, tip)


def test_a_landing_that_begins_again_keeps_what_was_there(place: Path, repo: Git) -> None:
    tip = branches.open_target(repo, "main", ()).tip
    landed = child(repo, tip, "landed")
    branches.advance(repo, "main", tip, BESIDE, landed, tip)
    restarted = branches.restart(repo, "run-007", BESIDE, landed, tip)
    assert (restarted.tip, at(place, BESIDE)) == (tip, tip)
    assert git(place, "rev-parse", restarted.archive) == landed
    assert branches.restart(repo, "run-007", BESIDE, landed, tip) == restarted
    with pytest.raises(GitFailed, match="is not a branch of Planforge's"):
        branches.restart(repo, "run-007", "main", tip, landed)


def test_the_branch_beside_is_not_moved_while_somebody_has_it_checked_out(
    place: Path, repo: Git, tmp_path: Path
) -> None:
    tip = branches.open_target(repo, "main", ()).tip
    git(place, "worktree", "add", "--quiet", str(tmp_path / "other"), BESIDE)
    with pytest.raises(GitFailed, match=f"`{BESIDE}` is checked out in"):
        branches.advance(repo, "main", tip, BESIDE, child(repo, tip, "landed"), tip)
    with pytest.raises(GitFailed, match="is checked out in"):
        branches.restart(repo, "run-007", BESIDE, tip, tip)
    commit(place, {"README.md": "newer\n"})
    with pytest.raises(GitFailed, match="is checked out in"):
        branches.open_target(repo, "main", ())


def test_a_branch_that_is_not_there_is_said_not_to_be(repo: Git) -> None:
    with pytest.raises(GitFailed, match="there is no branch `nowhere`"):
        branches.open_target(repo, "nowhere", ())
