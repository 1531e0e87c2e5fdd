"""Files as a model reads and changes them, in a real directory with what could lead out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planforge.agents.api.tools import Refused, files
from planforge.agents.api.tools.paths import inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A worktree with a secret beside it."""
    (tmp_path / "secret.txt").write_text("secret\n")
    root = tmp_path / "worktree"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / "notes.txt").write_text("one\ntwo\nthree\n")
    return root


def test_a_file_is_read_as_it_is(root: Path) -> None:
    assert files.read(root, "notes.txt") == "one\ntwo\nthree\n"


def test_lines_are_read_by_their_numbers_and_the_answer_says_of_how_many(root: Path) -> None:
    assert files.read(root, "notes.txt", 2, 2) == "two\n\n(lines 2 to 2 of 3)"
    with pytest.raises(Refused, match="lines 1 to 3"):
        files.read(root, "notes.txt", 4)


def test_a_long_file_comes_in_parts(root: Path) -> None:
    (root / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 5001)))
    first = files.read(root, "long.txt")
    assert first.endswith("\n(lines 1 to 2000 of 5000)")
    assert "line 2001" not in first
    assert files.read(root, "long.txt", 4999) == "line 4999\nline 5000\n\n(lines 4999 to 5000 of 5000)"


def test_one_endless_line_is_cut(root: Path) -> None:
    (root / "line.txt").write_text("x" * 300_000 + "\nend\n")
    answer = files.read(root, "line.txt")
    assert len(answer) < files.READ_CHARACTERS + 100
    assert answer.endswith("(the first 100000 characters of line 1)")


def test_an_empty_file_says_that_it_is(root: Path) -> None:
    (root / "empty").touch()
    assert files.read(root, "empty") == "(the file is empty)"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\xff\xfe", b"text with \0 in it"])
def test_what_is_binary_is_refused(root: Path, data: bytes) -> None:
    (root / "picture").write_bytes(data)
    with pytest.raises(Refused, match="is binary"):
        files.read(root, "picture")


def test_a_pipe_is_refused_and_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(Refused, match="not a regular file"):
        files.read(root, "pipe")


def test_a_file_is_written_with_the_directories_above_it(root: Path) -> None:
    assert files.write(root, "src/deep/new.py", "x = 1\n") == "made `src/deep/new.py`, 6 bytes"
    assert (root / "src/deep/new.py").read_text() == "x = 1\n"
    assert files.write(root, "notes.txt", "") == "wrote `notes.txt`, 0 bytes"


def test_writing_keeps_a_program_executable(root: Path) -> None:
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    files.write(root, "run", "#!/bin/sh\nexit 1\n")
    assert (root / "run").stat().st_mode & 0o777 == 0o755


def test_too_much_is_not_written(root: Path) -> None:
    with pytest.raises(Refused, match="more than"):
        files.write(root, "big", "x" * (files.WRITE_LIMIT + 1))
    assert not (root / "big").exists()


def test_an_edit_replaces_what_is_there_once(root: Path) -> None:
    assert files.edit(root, "notes.txt", "two", "2") == "edited `notes.txt` at line 2"
    assert (root / "notes.txt").read_text() == "one\n2\nthree\n"


@pytest.mark.parametrize(
    ("old", "why"),
    [("four", "is not there"), ("e\n", "is there 2 times"), ("", "empty"), ("two", "the same")],
)
def test_an_edit_that_is_not_clear_changes_nothing(root: Path, old: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        files.edit(root, "notes.txt", old, "two")
    assert (root / "notes.txt").read_text() == "one\ntwo\nthree\n"


def test_an_edit_keeps_the_line_ends_of_the_file(root: Path) -> None:
    (root / "dos.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    files.edit(root, "dos.txt", "one\ntwo", "1\n2")
    assert (root / "dos.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


@pytest.fixture(params=["../secret.txt", "sub/../../secret.txt", "ABSOLUTE", "link.txt", "out/secret.txt"])
def way_out(request: pytest.FixtureRequest, root: Path) -> str:
    """A path that leads to the secret."""
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    (root / "out").symlink_to(root.parent)
    path: str = request.param
    return str(root.parent / "secret.txt") if path == "ABSOLUTE" else path


def test_no_way_out_is_read(root: Path, way_out: str) -> None:
    with pytest.raises(Refused, match=r"outside|not allowed"):
        files.read(root, way_out)


def test_no_way_out_is_written_or_edited(root: Path, way_out: str) -> None:
    with pytest.raises(Refused, match=r"outside|not allowed"):
        files.write(root, way_out, "gone")
    with pytest.raises(Refused, match=r"outside|not allowed"):
        files.edit(root, way_out, "secret", "gone")
    assert (root.parent / "secret.txt").read_text() == "secret\n"


def test_a_new_file_behind_a_link_is_not_made(root: Path) -> None:
    (root / "out").symlink_to(root.parent)
    (root / "dangling").symlink_to(root.parent / "new.txt")
    for path in ("out/new.txt", "dangling"):
        with pytest.raises(Refused, match="outside"):
            files.write(root, path, "x")
    assert not (root.parent / "new.txt").exists()


def test_an_absolute_path_in_the_worktree_is_taken_also_where_the_worktree_is_reached_by_a_link(
    root: Path,
) -> None:
    assert files.read(root, str(root / "notes.txt")).startswith("one")
    other = root.parent / "other-name"
    other.symlink_to(root)
    assert files.read(other, str(other / "notes.txt")).startswith("one")
    assert files.read(other, str(root / "notes.txt")).startswith("one")


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".git", "sub/.git/config"])
def test_nothing_of_git_is_written(root: Path, path: str) -> None:
    with pytest.raises(Refused, match="belongs to git"):
        files.write(root, path, "#!/bin/sh\n")


def test_a_path_with_nul_or_a_loop_of_links_is_refused(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(Refused, match="NUL"):
        inside(root, "a\0b")
    with pytest.raises(Refused):
        files.read(root, "a")
