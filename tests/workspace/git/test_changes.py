from __future__ import annotations

from pathlib import Path

import pytest

from planforge.workspace.git import Git
from planforge.workspace.git.changes import TEXT_LIMIT, Changed, changed
from repositories import commit, git, repository


@pytest.fixture(params=["sha1", "sha256"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    files = {"kept.py": "same\n", "old.py": "before\n", "gone.py": "gone\n"}
    return repository(tmp_path / "project", files, object_format=request.param)


def changes(place: Path, old: str = "HEAD^") -> dict[str, Changed]:
    return {item.path: item for item in changed(Git.find(place), old, "HEAD")}


def test_texts_before_and_after_are_read_and_what_is_the_same_is_not(place: Path) -> None:
    (place / "gone.py").unlink()
    commit(place, {"old.py": "after\n", "new name\nwith a break.py": "new\n"})
    found = changes(place)
    assert [(item.path, item.before, item.after) for item in found.values()] == [
        ("gone.py", b"gone\n", None),
        ("new name\nwith a break.py", None, b"new\n"),
        ("old.py", b"before\n", b"after\n"),
    ]


def test_what_is_too_large_is_named_and_not_read(place: Path) -> None:
    commit(place, {"large.txt": "x" * (TEXT_LIMIT + 1), "edge.txt": "x" * TEXT_LIMIT})
    found = changes(place)
    assert (found["large.txt"].after, found["large.txt"].unread) == (None, "larger than 1024 KiB")
    assert (len(found["edge.txt"].after or b""), found["edge.txt"].unread) == (TEXT_LIMIT, "")


def test_binary_links_and_empty_files_are_what_they_are(place: Path) -> None:
    (place / "link").symlink_to("old.py")
    commit(place, {"image.png": b"\x89PNG\0\0", "empty": b""})
    found = changes(place)
    assert (found["image.png"].binary, found["empty"].binary) == (True, False)
    assert (found["link"].after, found["empty"].after) == (b"old.py", b"")


def test_a_submodule_is_named_and_not_read(place: Path) -> None:
    git(place, "update-index", "--add", "--cacheinfo", f"160000,{git(place, 'rev-parse', 'HEAD')},lib")
    git(place, "commit", "--quiet", "--message=a submodule")
    found = changes(place)
    assert (found["lib"].before, found["lib"].after, found["lib"].unread) == (None, None, "a submodule")


def test_names_that_are_no_text_do_not_stop_it(place: Path) -> None:
    (place / "caf\udce9.py").write_bytes(b"x")
    commit(place, {})
    assert [(item.path, item.after) for item in changes(place).values()] == [("caf\\xe9.py", b"x")]


def test_no_change_is_nothing(place: Path) -> None:
    assert changes(place, "HEAD") == {}
