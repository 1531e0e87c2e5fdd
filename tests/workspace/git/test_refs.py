"""Refs as the files have them, against refs as git tells them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from planforge.errors import GitFailed
from planforge.workspace.git import Git, refs
from repositories import git, repository

NOBODYS = "1" * 40


@pytest.fixture
def top(tmp_path: Path) -> Path:
    directory = repository(tmp_path.resolve() / "repository")
    git(directory, "tag", "--annotate", "--message=x", "v1")
    for name in ("topic/one", "topic/two", "topic/three", "a.b-c_d+e"):
        git(directory, "branch", name)
    return directory


def told(directory: Path) -> Git:
    return Git(directory / ".git", directory)


def put(directory: Path, name: str, text: str) -> None:
    path = directory / ".git" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def head(directory: Path) -> str:
    return git(directory, "rev-parse", "HEAD")


def _packed(directory: Path) -> None:
    git(directory, "pack-refs", "--all")
    other = git(directory, "commit-tree", "-m", "another", "HEAD^{tree}")
    git(directory, "update-ref", "refs/heads/topic/two", other)
    git(directory, "branch", "--delete", "--force", "topic/three")


PLAIN: dict[str, Callable[[Path], object]] = {
    "nothing more": lambda _: None,
    "packed, one moved since and one gone": _packed,
    "one that leads to another": lambda top: git(
        top, "symbolic-ref", "refs/remotes/o/HEAD", "refs/heads/main"
    ),
    "one that leads to one that leads on": lambda top: (
        git(top, "symbolic-ref", "refs/x/one", "refs/heads/main"),
        git(top, "symbolic-ref", "refs/x/two", "refs/x/one"),
    ),
    "an object that is not there": lambda top: put(top, "refs/heads/gone", f"{NOBODYS}\n"),
    "an object that is not there, packed": lambda top: put(
        top, "packed-refs", f"{NOBODYS} refs/heads/gone\n"
    ),
    "of no sort": lambda top: put(top, "refs/stray", f"{head(top)}\n"),
    "of a worktree": lambda top: put(top, "refs/bisect/bad", f"{head(top)}\n"),
    "an empty directory": lambda top: (top / ".git/refs/heads/empty").mkdir(),
}

ODD: dict[str, Callable[[Path], object]] = {
    "no line break": lambda top: put(top, "refs/heads/odd", head(top)),
    "large letters": lambda top: put(top, "refs/heads/odd", f"{head(top).upper()}\n"),
    "half an object": lambda top: put(top, "refs/heads/odd", f"{head(top)[:20]}\n"),
    "more than an object": lambda top: put(top, "refs/heads/odd", f"{head(top)}{'0' * 24}\n"),
    "no object": lambda top: put(top, "refs/heads/odd", f"{'0' * 40}\n"),
    "nothing": lambda top: put(top, "refs/heads/odd", ""),
    "a lock": lambda top: put(top, "refs/heads/odd.lock", ""),
    "a hidden file": lambda top: put(top, "refs/heads/.odd", "x\n"),
    "a name that git refuses": lambda top: put(top, "refs/heads/o~d", f"{head(top)}\n"),
    "a name that is not ASCII": lambda top: git(top, "branch", "früh"),
    "one that leads nowhere": lambda top: put(top, "refs/heads/odd", "ref: refs/heads/nowhere\n"),
    "one that leads to itself": lambda top: put(top, "refs/heads/odd", "ref: refs/heads/odd\n"),
    "a link": lambda top: (top / ".git/refs/heads/odd").symlink_to("main"),
    "a link to a directory": lambda top: (top / ".git/refs/odd").symlink_to("heads"),
    "a pack with a name that git refuses": lambda top: put(
        top, "packed-refs", f"{head(top)} refs/heads/o..d\n"
    ),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_plain_refs_are_what_git_says_they_are(top: Path, kind: str) -> None:
    PLAIN[kind](top)
    assert refs._read(told(top)) == refs._asked(told(top)) != {}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_odd_is_left_to_git(top: Path, kind: str) -> None:
    ODD[kind](top)
    with pytest.raises(refs._Odd):
        refs._read(told(top))
    assert refs.every(told(top)) == refs._asked(told(top))


def test_what_git_fails_at_fails(top: Path) -> None:
    put(top, "packed-refs", "no such line\n")
    with pytest.raises(GitFailed, match="packed-refs"):
        refs.every(told(top))


def test_a_pipe_in_the_place_of_a_ref_holds_nobody_up(top: Path) -> None:
    os.mkfifo(top / ".git/refs/heads/odd")
    with pytest.raises(refs._Odd):
        refs._read(told(top))


def test_refs_of_a_repository_with_long_names_of_objects(tmp_path: Path) -> None:
    directory = repository(tmp_path.resolve() / "repository", object_format="sha256")
    assert refs._read(told(directory)) == refs._asked(told(directory)) != {}
    put(directory, "refs/heads/odd", f"{NOBODYS}\n")
    with pytest.raises(refs._Odd):
        refs._read(told(directory))


def test_a_worktree_has_refs_of_its_own_that_only_git_knows(top: Path) -> None:
    other = top.parent / "other"
    git(top, "worktree", "add", "--quiet", "--detach", str(other))
    git(other, "update-ref", "refs/worktree/own", "HEAD")
    found = Git.find(other)
    with pytest.raises(refs._Odd):
        refs._read(found)
    assert "refs/worktree/own" in refs.every(found)


def test_another_store_is_left_to_git(top: Path) -> None:
    (top / ".git/reftable").mkdir()
    with pytest.raises(refs._Odd):
        refs._read(told(top))
