"""Directories listed and files searched, by the program that does it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planforge.agents.api.tools import search


def look(root: Path, what: str, **said: object) -> tuple[int, str, str]:
    whole = {
        "list": {"path": ".", "pattern": "", "depth": 1},
        "search": {"path": ".", "files": "", "regex": False},
    }
    ended = subprocess.run(
        [sys.executable, "-m", search.__name__, what, str(root), json.dumps(whole[what] | said)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "worktree"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_text("needle\n")
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.py").write_text("x = 1\n  needle = 2\n")
    (root / "src" / "deep" / "b.txt").write_text("needle (3)\nneedles\n")
    (root / "picture").write_bytes(b"needle\0")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "c.txt").write_text("needle\n")
    (root / "way-out").symlink_to(tmp_path / "outside")
    return root


def test_a_directory_is_listed_without_git_and_not_through_links(root: Path) -> None:
    assert look(root, "list") == (0, "picture\nsrc/\nway-out", "")
    assert look(root, "list", depth=9)[1].split("\n") == [
        "picture", "src/", "src/a.py", "src/deep/", "src/deep/b.txt", "way-out",
    ]  # fmt: skip


def test_a_pattern_leaves_out_what_does_not_fit(root: Path) -> None:
    assert look(root, "list", depth=9, pattern="*.py")[1] == "src/a.py"
    assert look(root, "list", pattern="*.rs")[1] == "(nothing)"


def test_a_list_ends_somewhere(root: Path) -> None:
    for number in range(1200):
        (root / f"f{number:04}").touch()
    lines = look(root, "list")[1].split("\n")
    assert len(lines) == search.LIST_LIMIT + 1
    assert lines[-1].startswith("(more than 1000")


def test_text_is_found_as_it_is_and_not_as_a_pattern(root: Path) -> None:
    assert look(root, "search", pattern="needle (3)") == (0, "src/deep/b.txt:1:needle (3)", "")
    assert look(root, "search", pattern="needle")[1].split("\n") == [
        "src/a.py:2:needle = 2", "src/deep/b.txt:1:needle (3)", "src/deep/b.txt:2:needles",
    ]  # fmt: skip
    assert look(root, "search", pattern="haystack")[1] == "(nothing found)"


def test_a_regular_expression_is_one_if_it_is_said_to_be(root: Path) -> None:
    assert look(root, "search", pattern=r"needle\w", regex=True)[1] == "src/deep/b.txt:2:needles"
    assert look(root, "search", pattern=r"needle\w")[1] == "(nothing found)"
    assert look(root, "search", pattern="(", regex=True)[:2] == (1, "")


def test_a_search_can_be_for_some_files_or_in_one_place(root: Path) -> None:
    assert look(root, "search", pattern="needle", files="*.py")[1] == "src/a.py:2:needle = 2"
    assert look(root, "search", pattern="needles", path="src/deep")[1] == "src/deep/b.txt:2:needles"
    assert look(root, "search", pattern="x", path="src/a.py")[1] == "src/a.py:1:x = 1"


def test_a_search_ends_somewhere(root: Path) -> None:
    (root / "many").write_text("needle" + "x" * 1000 + "\n" + "needle\n" * 500)
    lines = look(root, "search", pattern="needle", path="many")[1].split("\n")
    assert len(lines) == search.FOUND_LIMIT + 1
    assert len(lines[0]) == len("many:1:") + search.LINE_LIMIT


@pytest.mark.parametrize("path", ["..", "way-out", "/etc"])
def test_nothing_outside_is_listed_or_searched(root: Path, path: str) -> None:
    for what, said in (("list", {}), ("search", {"pattern": "needle"})):
        code, out, why = look(root, what, path=path, **said)
        assert (code, out) == (1, "")
        assert "outside" in why or "not allowed" in why
