"""Refs that keep work: names that never move, all or none, and the locks that killed gits leave."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from archives import archived
from planforge.errors import GitFailed
from planforge.workspace.archive import Archive, refs, slug
from planforge.workspace.git import Git, objects
from repositories import commit, git, repository


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = repository(tmp_path / "place")
    commit(place, {"app.py": "two\n"}, "second")
    return place


@pytest.fixture
def archive(place: Path) -> Archive:
    return Archive(Git.find(place), "run-1")


@pytest.fixture
def commits(place: Path) -> tuple[str, str]:
    second, first = git(place, "rev-list", "HEAD").split()
    return first, second


def test_a_name_is_given_once_and_the_next_one_gets_a_number(
    place: Path, archive: Archive, commits: tuple[str, str]
) -> None:
    first, second = commits
    assert archive.keep([("a", first), ("a", second), ("b", second), ("a", first)]) == (
        *("refs/planforge/archive/run-1/a", "refs/planforge/archive/run-1/a.2"),
        *("refs/planforge/archive/run-1/b", "refs/planforge/archive/run-1/a"),
    )
    archive.keep([("a", second)])
    assert archived(place) == {"a": first, "a.2": second, "b": second}


def test_names_are_given_all_or_none(place: Path, archive: Archive, commits: tuple[str, str]) -> None:
    first, second = commits
    archive.keep([("a", first)])
    ours = "refs/planforge/archive/run-1"
    assert not archive.change(create={f"{ours}/new": first, f"{ours}/a": second})
    assert not archive.change(create={f"{ours}/new": first}, delete={f"{ours}/a": second})
    assert archived(place) == {"a": first}
    assert archive.change(create={f"{ours}/new": first}, delete={f"{ours}/a": first})
    assert archived(place) == {"new": first}


def test_a_commit_that_is_not_there_is_refused(place: Path, archive: Archive) -> None:
    with pytest.raises(GitFailed, match="cannot change refs"):
        archive.keep([("a", "1" * 40)])
    assert archived(place) == {}


def test_a_lock_that_a_killed_git_left_on_a_ref_of_ours_is_removed(
    place: Path, archive: Archive, commits: tuple[str, str]
) -> None:
    archive.keep([("a", commits[0])])
    lock = place / ".git" / "refs" / "planforge" / "archive" / "run-1" / "b.lock"
    lock.touch()
    long_ago = time.time() - 100
    os.utime(lock, (long_ago, long_ago))
    archive.keep([("b", commits[1])])
    assert archived(place) == {"a": commits[0], "b": commits[1]}
    assert not lock.exists()


def test_whether_everything_of_a_commit_is_there_can_be_told(place: Path, commits: tuple[str, str]) -> None:
    first, second = commits
    found = Git.find(place)
    assert objects.complete(found, [second], [first])
    blob = git(place, "rev-parse", f"{second}:app.py")
    (place / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert not objects.complete(found, [second], [first])
    assert objects.complete(found, [first], [])
    assert not objects.complete(found, ["1" * 40], [])


def test_the_refs_of_a_pattern_are_told_with_what_they_point_at(
    place: Path, commits: tuple[str, str]
) -> None:
    git(place, "branch", "ünder", commits[0])
    assert refs(Git.find(place), "refs/heads") == {
        "refs/heads/main": commits[1],
        "refs/heads/ünder": commits[0],
    }


@pytest.mark.parametrize("name", ["phase-1-1", "a", "A-0"])
def test_a_plain_name_is_its_own_slug(name: str) -> None:
    assert slug(name) == name


def test_other_names_get_slugs_that_git_takes_and_that_differ(place: Path) -> None:
    names = ["a b", "a.b", "a..b", "a.lock", "-a", "a-", "ä", "\udcff", "@{", "x" * 3 + ".", "日本"]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    for each in slugs:
        git(place, "check-ref-format", f"refs/heads/planforge/work/run-1/{each}")
