"""What a person is told about an unusual repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from planforge.interfaces.cli.typed import text
from planforge.workspace.git import Git
from planforge.workspace.git import repository as module
from planforge.workspace.git.repository import Note, survey
from repositories import commit, empty_repository, git, repository, write


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return repository(tmp_path / "place")


def notes(place: Path) -> dict[str, Note]:
    found = survey(Git.find(place))
    assert len({note.id for note in found}) == len(found)
    for note in found:
        assert note.status in {"ok", "warn", "fail"}
        assert note.evidence
        assert "\n" not in note.evidence + text(note.fix)
        assert note.status != "fail" or note.fix or note.id == "alike"
    return {note.id: note for note in found}


def test_of_an_ordinary_repository_there_is_nothing_to_say(place: Path) -> None:
    assert notes(place) == {}


def configure(*pairs: tuple[str, str]) -> Callable[[Path], object]:
    return lambda place: [git(place, "config", *pair) for pair in pairs]


def put(files: dict[str, str | bytes]) -> Callable[[Path], object]:
    return lambda place: commit(place, files)


def forget(place: Path) -> None:
    for name in ("user.name", "user.email"):
        git(place, "config", "--unset", name)


def hook(place: Path) -> None:
    (place / ".git" / "hooks").mkdir(exist_ok=True)
    for name, mode in (("pre-commit", 0o755), ("post-commit", 0o644)):
        (place / ".git" / "hooks" / name).write_text("#!/bin/sh\n")
        (place / ".git" / "hooks" / name).chmod(mode)


def replace(place: Path) -> None:
    other = git(place, "commit-tree", "HEAD^{tree}", "-m", "other")
    git(place, "replace", "HEAD", other)


def submodule(place: Path) -> None:
    inner = git(place, "rev-parse", "HEAD")
    for name in ("a", "b", "c", "d"):
        git(place, "update-index", "--add", "--cacheinfo", f"160000,{inner},{name}")
    git(place, "commit", "--quiet", "--message=submodules")


ODDITIES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "sparse": (
        lambda place: git(place, "sparse-checkout", "set", "x"),
        "ok",
        "worktrees of Planforge's hold",
    ),
    "signing": (configure(("commit.gpgSign", "true")), "warn", "Planforge's are not"),
    "hooks": (hook, "ok", "hooks (pre-commit) do not run"),
    "file-mode": (configure(("core.fileMode", "false")), "warn", "executable"),
    "symlinks": (configure(("core.symlinks", "false")), "warn", "links are written as files"),
    "line-ends": (configure(("core.autocrlf", "input")), "ok", "`core.autocrlf` is `input`"),
    "detached": (lambda place: git(place, "checkout", "--quiet", "--detach"), "ok", "HEAD is detached"),
    "replaced": (replace, "warn", "replacements for 1 object"),
    "grafts": (lambda place: write(place / ".git/info", {"grafts": "x\n"}), "warn", "other parents"),
    "borrowed": (
        lambda place: write(place / ".git/objects/info", {"alternates": "# x\n/nowhere\n"}),
        "warn",
        "from 1 other",
    ),
    "submodules": (submodule, "warn", "submodules (`a`, `b`, `c` and 1 more) stay empty"),
    "lfs": (put({"sub/.gitattributes": "*.bin filter=lfs -text\n"}), "warn", "as the pointers"),
    "filters": (
        put({".gitattributes": "# filter=no\ns filter=git-crypt\n"}),
        "warn",
        "filters (`git-crypt`)",
    ),
    "names": (put({os.fsdecode(b"\xff"): "x"}), "ok", "`\\xff`"),
    "lock index": (
        lambda place: (place / ".git" / "index.lock").write_text(""),
        "warn",
        "`index.lock` is 0 seconds old",
    ),
}


@pytest.mark.parametrize("what", ODDITIES)
def test_what_is_unusual_is_named_with_what_is_done_about_it(
    place: Path, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    make, status, said = ODDITIES[what]
    make(place)
    found = notes(place)
    assert list(found) == [what]
    assert found[what].status == status
    assert said in found[what].evidence


def test_commits_without_a_name_are_mentioned(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    forget(place)
    found = notes(place)
    assert list(found) == ["identity"]
    assert "git config user.email" in text(found["identity"].fix)


def test_a_repository_of_sha256_names_is_fine(tmp_path: Path) -> None:
    found = notes(repository(tmp_path / "place", object_format="sha256"))
    assert [(note.id, note.status) for note in found.values()] == [("object-format", "ok")]


def test_without_a_commit_there_is_nothing_to_start_from(tmp_path: Path) -> None:
    found = notes(empty_repository(tmp_path / "place"))
    assert [(note.id, note.status) for note in found.values()] == [("commits", "fail")]


def test_names_that_are_alike_matter_where_the_disk_cannot_hold_them(place: Path) -> None:
    commit(place, {"Readme": "x", "README": "y", "caf\u00e9": "1", "cafe\u0301": "2"})
    assert notes(place)["alike"].status == "ok"
    git(place, "config", "core.ignoreCase", "true")
    assert notes(place)["alike"].status == "fail"
    assert "`README`, `Readme`" in notes(place)["alike"].evidence


def test_a_shallow_clone_is_one(place: Path, tmp_path: Path) -> None:
    commit(place, {"second": "2\n"})
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{place}", "clone")
    found = notes(tmp_path / "clone")
    assert (found["shallow"].status, found["shallow"].fix) == ("warn", "git fetch --unshallow")


def test_a_partial_clone_is_named_until_all_is_there(place: Path, tmp_path: Path) -> None:
    git(place, "config", "uploadpack.allowFilter", "true")
    git(place, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(tmp_path, "clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{place}", "clone")
    found = notes(tmp_path / "clone")["partial"]
    assert (found.status, found.fix) == ("fail", "git fetch --refetch --no-filter")
    assert "without 2 files of HEAD" in found.evidence
    git(tmp_path / "clone", *text(found.fix).split()[1:])
    assert notes(tmp_path / "clone")["partial"].status == "warn"


def test_where_it_lies_is_said(place: Path) -> None:
    git(place, "worktree", "add", "--quiet", "--detach", "linked")
    assert list(notes(place / "linked")) == ["linked-worktree", "detached"]
    inner = repository(place / "inner")
    assert str(place) in notes(inner)["nested"].evidence


def test_a_repository_that_cannot_be_read_is_a_note_and_not_an_error(place: Path) -> None:
    found = Git.find(place)
    (place / ".git" / "config").write_text("[broken\n")
    (note,) = survey(found)
    assert (note.id, note.status) == ("repository", "fail")
    assert "bad config line" in note.evidence


def test_a_large_repository_says_so_and_its_names_are_compared_up_to_a_point(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MANY", 4)
    commit(place, {"a": "1", "b": "2", "B": "3"})
    assert set(notes(place)) == {"large", "alike"}
    monkeypatch.setattr(module, "LOOKED_AT", 2)
    assert set(notes(place)) == {"large"}
