"""A commit with some files as they were before it."""

from __future__ import annotations

from pathlib import Path

from planforge.workspace.git import Git, patches
from repositories import commit, git, repository

AT = "2026-01-02T03:04:05+00:00"


def test_files_are_as_they_were_and_all_else_is_as_it_is(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": "a\n", "tests/é b.py": "old\n", "tests/gone.py": "gone\n"})
    parent = git(root, "rev-parse", "HEAD")
    (root / "tests/gone.py").unlink()
    made = commit(root, {"a.py": "new a\n", "tests/é b.py": "new\n", "tests/added.py": "added\n"})
    refs = git(root, "for-each-ref")
    files = ("tests/é b.py", "tests/gone.py", "tests/added.py")

    found = patches.restored(Git.find(root), made, parent, files, AT)

    assert git(root, "show", f"{found}:a.py") == "new a"
    assert git(root, "show", f"{found}:tests/é b.py") == "old"
    assert git(root, "show", f"{found}:tests/gone.py") == "gone"
    names = git(root, "-c", "core.quotePath=off", "ls-tree", "-r", "--name-only", found).splitlines()
    assert names == ["a.py", "tests/gone.py", "tests/é b.py"]
    assert git(root, "for-each-ref") == refs
    assert git(root, "status", "--porcelain") == ""
    assert patches.restored(Git.find(root), made, parent, files, AT) == found
