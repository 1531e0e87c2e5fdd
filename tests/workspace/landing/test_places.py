"""Checkouts as git has them: where they are and what is under way in each."""

from __future__ import annotations

from pathlib import Path

import pytest

from planforge.workspace.git import Git
from planforge.workspace.landing.places import here, places, using
from repositories import commit, git, repository


def test_every_checkout_is_found_with_its_branch(tmp_path: Path) -> None:
    main = repository(tmp_path / "ma in")
    git(main, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "to\npic"))
    git(main, "worktree", "add", "--quiet", "--detach", str(tmp_path / "none"))
    found = {place.path: place.ref for place in places(Git.find(main))}
    assert found == {main: "refs/heads/main", tmp_path / "to\npic": "refs/heads/topic", tmp_path / "none": ""}
    assert [place.path for place in using(Git.find(main), "refs/heads/topic")] == [tmp_path / "to\npic"]


def test_here_is_the_checkout_that_one_is_in(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "topic"))
    assert here(Git.find(main)).ref == "refs/heads/main"
    place = here(Git.find(tmp_path / "topic"))
    assert (place.ref, place.path) == ("refs/heads/topic", tmp_path / "topic")
    assert {place.path for place in places(Git.find(tmp_path / "topic"))} == {main, tmp_path / "topic"}


def test_a_bare_repository_is_no_checkout_of_its_head(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(tmp_path, "clone", "--quiet", "--bare", str(main), str(tmp_path / "bare.git"))
    git(tmp_path / "bare.git", "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "topic"))
    assert [place.path for place in places(Git.find(tmp_path / "topic"))] == [tmp_path / "topic"]


def test_a_git_file_that_somebody_planted_in_a_checkout_is_not_followed(tmp_path: Path) -> None:
    main, other = repository(tmp_path / "main"), repository(tmp_path / "other")
    git(main, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "topic"))
    (tmp_path / "topic" / ".git").write_text(f"gitdir: {other / '.git'}\n")
    (place,) = using(Git.find(main), "refs/heads/topic")
    assert place.own == main / ".git" / "worktrees" / "topic"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (("merge", "--quiet", "topic"), "a merge"),
        (("rebase", "--quiet", "topic"), "a rebase"),
        (("cherry-pick", "topic"), "a cherry-pick"),
        (("revert", "--no-edit", "HEAD~1"), "a revert"),
    ],
)
def test_what_is_under_way_is_told(tmp_path: Path, command: tuple[str, ...], what: str) -> None:
    main = repository(tmp_path / "main")
    git(main, "checkout", "--quiet", "-b", "topic")
    commit(main, {"app.py": "topic\n"})
    git(main, "checkout", "--quiet", "main")
    commit(main, {"app.py": "main\n"})
    commit(main, {"app.py": "main again\n"})
    assert here(Git.find(main)).under_way is None
    with pytest.raises(AssertionError):
        git(main, *command)
    assert here(Git.find(main)).under_way == what
