"""
Unusual repositories, each with one change taken all the way through the workspace.

Every animal is made with plain git. An unchanged worktree must have the tree it began
with, the edit must be the whole change, and a fresh checkout must hold it to the byte.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from planforge.errors import GitFailed
from planforge.workspace.git import Git
from planforge.workspace.git.repository import unconverted
from planforge.workspace.worktrees import Worktrees
from repositories import commit, empty_repository, fingerprint, git, repository, trap, write
from workspace.git.journey import Journey, travel

Files = dict[str, str | bytes]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12345\n"
LFS = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
NAMES = [
    *(b"with space", b"with\nnewline", b"with\ttab", "ünïcode-字".encode(), b"not-utf8-\xff\xfe"),
    *(b'"quoted\\"', b"-dash", b"--all", b"back\\slash", b" leading", b"trailing ", b"\x01\x7f"),
]


def fares_well(place: Path, edit: Files) -> Journey:
    """Take an edit all the way and check what holds for every repository."""
    before = fingerprint(place)
    journey = travel(place, lambda worktree: write(worktree, edit))
    assert journey.untouched == journey.start.tree
    assert journey.patch.files == journey.rebased.files == tuple(sorted(edit))
    for name, content in edit.items():
        expected = content.encode() if isinstance(content, str) else content
        assert journey.fresh[os.fsencode(name)] == expected
    assert fingerprint(place) == before
    git(place, "fsck", "--strict", "--no-dangling")
    return journey


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_object_names_of_both_kinds(tmp_path: Path, form: str) -> None:
    place = repository(tmp_path / "place", object_format=form)
    journey = fares_well(place, {"app.py": "edited\n", "new/file.py": "new\n"})
    assert len(journey.rebased.commit) == {"sha1": 40, "sha256": 64}[form]


def test_an_empty_repository_is_refused_with_a_reason(tmp_path: Path) -> None:
    place = empty_repository(tmp_path / "place")
    found = Git.find(place)
    with pytest.raises(GitFailed, match="there is no commit `HEAD`"):
        Worktrees(found, place / ".planforge", "run-1").open("a", "HEAD")
    assert not found.has_commits()


def test_a_repository_whose_only_commit_is_empty(tmp_path: Path) -> None:
    place = empty_repository(tmp_path / "place")
    git(place, "commit", "--quiet", "--allow-empty", "--message=start")
    fares_well(place, {"first.py": "first\n"})


def test_a_detached_head(tmp_path: Path) -> None:
    place = repository(tmp_path / "place")
    commit(place, {"second.py": "2\n"})
    git(place, "checkout", "--quiet", "--detach", "HEAD~1")
    assert b"second.py" not in fares_well(place, {"app.py": "edited\n"}).fresh


def test_a_linked_worktree_of_the_persons(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "--quiet", "-b", "feature", str(tmp_path / "place"))
    place = tmp_path / "place"
    commit(place, {"feature.py": "x\n"})
    journey = travel(place, lambda worktree: write(worktree, {"app.py": "edited\n"}))
    assert b"feature.py" in journey.fresh
    assert journey.patch.files == ("app.py",)


def test_a_shallow_clone(tmp_path: Path) -> None:
    origin = repository(tmp_path / "origin")
    for number in range(4):
        commit(origin, {"app.py": f"{number}\n"})
    git(tmp_path, "clone", "--quiet", "--depth=2", f"file://{origin}", "place")
    place = tmp_path / "place"
    git(place, "config", "user.name", "Ada")
    git(place, "config", "user.email", "ada@example.org")
    shallow = (place / ".git" / "shallow").read_bytes()
    journey = fares_well(place, {"app.py": "edited\n"})
    assert journey.git.line("rev-list", "--count", journey.rebased.commit) == "4"
    assert (place / ".git" / "shallow").read_bytes() == shallow


@pytest.mark.parametrize("name", [NAMES[1], NAMES[4], b'"quoted\\"', b"--all", b" leading"])
def test_a_repository_in_a_directory_with_an_odd_name(tmp_path: Path, name: bytes) -> None:
    fares_well(repository(tmp_path / os.fsdecode(name) / "x"), {"app.py": "edited\n"})


def test_files_with_odd_names(tmp_path: Path) -> None:
    old: Files = {os.fsdecode(name): "old\n" for name in NAMES}
    place = repository(tmp_path / "place", old)

    def edit(worktree: Path) -> None:
        write(worktree, dict.fromkeys(old, "edited\n"))
        write(worktree, {os.fsdecode(b"new/" + name): "new\n" for name in NAMES})

    journey = travel(place, edit)
    assert journey.untouched == journey.start.tree
    shown = {name.decode("utf-8", "backslashreplace") for name in NAMES}
    assert set(journey.patch.files) == shown | {f"new/{name}" for name in shown}
    assert {name: journey.fresh[name] for name in NAMES} == dict.fromkeys(NAMES, b"edited\n")
    assert {journey.fresh[b"new/" + name] for name in NAMES} == {b"new\n"}


@pytest.mark.skipif(sys.platform == "darwin", reason="such names cannot be told apart there")
def test_names_that_differ_only_in_case_or_accents(tmp_path: Path) -> None:
    names = ["Makefile", "makefile", "Dir/a", "dir/a", "caf\u00e9", "cafe\u0301"]
    place = repository(tmp_path / "place", {name: f"{number}\n" for number, name in enumerate(names)})
    fares_well(place, {"makefile": "edited\n", "DIR/a": "new\n", "cafe\u0301": "edited\n"})


def test_links_and_executable_files(tmp_path: Path) -> None:
    place = repository(tmp_path / "place", {"tool.sh": "#!/bin/sh\n", "plain": "x\n"})
    (place / "link").symlink_to("tool.sh")
    (place / "tool.sh").chmod(0o755)
    commit(place, {})

    def edit(worktree: Path) -> None:
        (worktree / "plain").chmod(0o755)
        (worktree / "tool.sh").chmod(0o644)
        (worktree / "link").unlink()
        (worktree / "link").symlink_to("/nowhere/at/all")

    journey = travel(place, edit)
    assert journey.untouched == journey.start.tree
    assert journey.patch.files == ("link", "plain", "tool.sh")
    modes = journey.git.line("ls-tree", journey.rebased.commit, "link", "plain", "tool.sh").splitlines()
    assert [line.split()[0] for line in modes] == ["120000", "100755", "100644"]
    assert journey.fresh[b"link"] == b"/nowhere/at/all"


@pytest.mark.parametrize("attributes", ["", "* text=auto\n", "*.py text eol=crlf\n"])
@pytest.mark.parametrize("autocrlf", ["true", "input"])
def test_line_ends_that_git_converts(tmp_path: Path, autocrlf: str, attributes: str) -> None:
    files: Files = {"app.py": "one\ntwo\n", "mixed": b"one\r\ntwo\n", "raw.dat": b"\0\r\n\n"}
    place = repository(tmp_path / "place", files | ({".gitattributes": attributes} if attributes else {}))
    git(place, "config", "core.autocrlf", autocrlf)
    git(place, "config", "core.safecrlf", "true")
    ends = b"\r\n" if autocrlf == "true" or "crlf" in attributes else b"\n"

    def edit(worktree: Path) -> None:
        assert (worktree / "app.py").read_bytes() == b"one" + ends + b"two" + ends
        write(worktree, {"app.py": b"one" + ends + b"2" + ends, "raw.dat": b"\0\r\n"})

    journey = travel(place, edit)
    assert journey.untouched == journey.start.tree
    assert journey.patch.files == ("app.py", "raw.dat")
    assert journey.git.line("cat-file", "blob", f"{journey.patch.commit}:app.py") == "one\n2"
    assert journey.fresh[b"app.py"] == b"one" + ends + b"2" + ends
    assert journey.fresh[b"raw.dat"] == b"\0\r\n"


def test_submodules_that_are_not_and_that_are_populated(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"inner": "inner\n"})
    place = repository(tmp_path / "place")
    git(place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    commit(place, {})
    journey = fares_well(place, {"app.py": "edited\n"})
    link = f"160000 commit {git(inner, 'rev-parse', 'HEAD')}\tsub"
    assert journey.git.line("ls-tree", journey.rebased.commit, "sub") == link

    git(place, "branch", "--delete", "--force", "planforge/plan-1")

    def populate(worktree: Path) -> None:
        git(worktree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
        write(worktree, {"sub/inner": "changed inside\n", "app.py": "edited again\n"})

    journey = travel(place, populate)
    assert journey.patch.files == ("app.py",)


# Filters


@pytest.fixture
def large_files(tmp_path: Path) -> tuple[Path, Path]:
    """A repository with files of Git LFS's, whose filter is a trap, and the mark of that."""
    program, mark = trap(tmp_path)
    place = repository(tmp_path / "place", {".gitattributes": LFS, "big.bin": POINTER % 1, "a.py": "a\n"})
    for name in ("clean", "smudge", "process"):
        git(place, "config", f"filter.lfs.{name}", f"{program} {name}")
    git(place, "config", "filter.lfs.required", "true")
    return place, mark


def test_files_of_git_lfs_are_pointers_on_the_way_out_and_in(large_files: tuple[Path, Path]) -> None:
    place, mark = large_files
    journey = fares_well(place, {"a.py": "edited\n"})
    assert journey.fresh[b"big.bin"] == POINTER % 1
    assert unconverted(journey.git, journey.start.commit, journey.patch.commit) == ()
    assert not mark.exists()


def test_a_new_pointer_is_a_change_like_any_other(large_files: tuple[Path, Path]) -> None:
    place, mark = large_files
    journey = fares_well(place, {"big.bin": POINTER % 2})
    assert unconverted(journey.git, journey.start.commit, journey.patch.commit) == ()
    assert not mark.exists()


def test_contents_where_a_pointer_should_be_are_found(large_files: tuple[Path, Path]) -> None:
    place, mark = large_files
    journey = fares_well(place, {"big.bin": b"contents\n", "sub/new.bin": b"x" * 5000, "a.py": "edited\n"})
    found = unconverted(journey.git, journey.start.commit, journey.rebased.commit)
    assert [(item.path, item.filter) for item in found] == [("big.bin", "lfs"), ("sub/new.bin", "lfs")]
    assert not mark.exists()


def test_plain_text_where_a_filter_should_have_encrypted_is_found(tmp_path: Path) -> None:
    place = repository(tmp_path / "place", {".gitattributes": "secret* filter=git-crypt\n", "a.py": "a\n"})
    journey = fares_well(place, {"secret.txt": "plain\n", "a.py": "edited\n"})
    found = unconverted(journey.git, journey.start.commit, journey.patch.commit)
    assert [(item.path, item.filter) for item in found] == [("secret.txt", "git-crypt")]


def test_a_filter_that_the_change_itself_brings_counts_and_links_and_removals_do_not(tmp_path: Path) -> None:
    place = repository(tmp_path / "place", {"gone.bin": "x\n"})

    def edit(worktree: Path) -> None:
        write(worktree, {".gitattributes": LFS, "new.bin": "contents\n"})
        (worktree / "gone.bin").unlink()
        (worktree / "link.bin").symlink_to("new.bin")

    journey = travel(place, edit)
    found = unconverted(journey.git, journey.start.commit, journey.patch.commit)
    assert [item.path for item in found] == ["new.bin"]


# Size


@pytest.mark.dear
def test_two_thousand_files(tmp_path: Path) -> None:
    files: Files = {f"{number % 40}/{number}.py": f"{number}\n" for number in range(2000)}
    place = repository(tmp_path / "place", files)
    journey = fares_well(place, dict.fromkeys(list(files)[::100], "edited\n"))
    assert len(journey.fresh) == 2001
    assert journey.patch.changed_lines == 40
