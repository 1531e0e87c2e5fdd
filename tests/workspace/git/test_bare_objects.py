"""Git objects by themselves: taken out, named, compared, and laid into a new repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from planforge.errors import GitFailed
from planforge.workspace.git import Git, bare_objects
from repositories import commit, git, repository

FORMATS = pytest.mark.parametrize("form", ["sha1", "sha256"])


def whole(root: Path, revision: str = "HEAD") -> tuple[str, dict[str, bytes]]:
    """A commit with its trees and files."""
    found = Git.find(root)
    name = found.commit_of(revision)
    objects = bare_objects.take(found, [name])
    trees, sizes = bare_objects.trees_and_files(found, bare_objects.commit(objects[name]).tree)
    return name, objects | bare_objects.take(found, [*trees, *sizes])


@FORMATS
def test_an_object_is_what_git_says_it_is(tmp_path: Path, form: str) -> None:
    root = repository(tmp_path / "r", {"a.txt": "one\n", "d/b.bin": b"\0\xff\n"}, object_format=form)
    name, objects = whole(root)
    assert all(bare_objects.is_named(name, content) for name, content in objects.items())
    assert len(objects) == 5
    found = bare_objects.commit(objects[name])
    assert found.tree == git(root, "rev-parse", "HEAD^{tree}")
    paths = bare_objects.files(objects, found.tree)
    assert sorted(paths) == [b"a.txt", b"d/b.bin"]
    assert bare_objects.body(objects[paths[b"d/b.bin"].object], "blob") == b"\0\xff\n"


def test_a_changed_object_has_another_name(tmp_path: Path) -> None:
    _, objects = whole(repository(tmp_path / "r"))
    assert not any(bare_objects.is_named(name, content + b" ") for name, content in objects.items())


def test_what_changed_is_what_git_says_changed(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a": "1", "b": "2", "d/c": "3"})
    first, old = whole(root)
    (root / "b").unlink()
    (root / "a").chmod(0o755)
    commit(root, {"d/c": "4", "é": "5"})
    second, new = whole(root)
    assert bare_objects.commit(new[second]).parents == (first,)
    trees = [
        bare_objects.files(old | new, bare_objects.commit((old | new)[name]).tree) for name in (first, second)
    ]
    said = git(root, "-c", "core.quotePath=false", "diff-tree", "-r", "--name-only", first, second)
    assert [path.decode() for path in bare_objects.changed(*trees)] == said.splitlines()


@FORMATS
def test_a_commit_can_be_checked_out_where_nothing_else_is(tmp_path: Path, form: str) -> None:
    root = repository(tmp_path / "r", {"a": "1"}, object_format=form)
    commit(root, {"d/c": "4"})
    name, objects = whole(root)
    laid = bare_objects.lay_out(objects, tmp_path / "new", [name])
    laid.run("worktree", "add", "--quiet", "--detach", str(tmp_path / "out"), name)
    assert (tmp_path / "out" / "d" / "c").read_text() == "4"
    assert laid.tree_of(name) == bare_objects.commit(objects[name]).tree


def test_an_object_that_is_gone_is_named(tmp_path: Path) -> None:
    found = Git.find(repository(tmp_path / "r"))
    with pytest.raises(GitFailed, match="`000000000000` is not in the repository any more"):
        bare_objects.take(found, ["0" * 40])


@pytest.mark.parametrize(
    "content",
    [b"", b"tree", b"tree 5\0abc", b"tree 3\0abc", b"tree 9\0100644 a\0x", b"blob 0\0", b"commit 1\0x"],
)
def test_what_is_no_tree_and_no_commit_is_refused(content: bytes) -> None:
    for read in (lambda: bare_objects.tree(content, 40), lambda: bare_objects.commit(content)):
        with pytest.raises(GitFailed):
            read()


def test_a_tree_that_is_missing_is_named() -> None:
    with pytest.raises(GitFailed, match="tree `abc` is missing"):
        bare_objects.files({}, "abc")


@pytest.mark.dear
def test_trees_inside_each_other_that_name_billions_of_files_are_refused() -> None:
    objects, below = {}, "1" * 40
    for level in range(12):
        mode = b"40000" if level else b"100644"
        lines = b"".join(mode + b" %d\0" % number + bytes.fromhex(below) for number in range(10))
        content = b"tree %d\0" % len(lines) + lines
        below = bare_objects.name_of(content, 40)
        objects[below] = content
    with pytest.raises(GitFailed, match="more than 500000 entries"):
        bare_objects.files(objects, below)
