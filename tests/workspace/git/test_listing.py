from __future__ import annotations

from pathlib import Path

from planforge.workspace.git import Git
from planforge.workspace.git.listing import Listing
from repositories import commit, git, repository


def test_a_commit_is_read_from_gits_objects_whatever_lies_in_the_checkout(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "one\n", "dir/b.txt": "two"})
    (root / "link").symlink_to("a.txt")
    first = commit(root, {}, "a link")
    (root / "a.txt").write_text("changed")
    (root / "new.txt").write_text("new")
    listing = Listing(Git.find(root), first)
    assert {"a.txt", "dir/b.txt", "link"} <= set(listing.entries)
    assert "new.txt" not in listing.entries
    read = listing.read(["dir/b.txt", "new.txt", "a.txt", "link"], 100)
    assert read == {"dir/b.txt": b"two", "a.txt": b"one\n", "link": b"a.txt"}
    assert listing.entries["link"].link
    assert not listing.entries["a.txt"].link


def test_what_is_too_large_and_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "x" * 101, "b.txt": "x" * 100})
    tip = git(root, "rev-parse", "HEAD")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{tip},module")
    git(root, "commit", "--quiet", "-m", "a submodule")
    listing = Listing(Git.find(root), "HEAD")
    assert listing.read(["a.txt", "b.txt", "module"], 100) == {"b.txt": b"x" * 100}
    assert Listing(Git.find(root), "HEAD").read([], 100) == {}
