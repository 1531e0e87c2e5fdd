"""What a person is shown of a change is all of it, whatever the change says about itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from planforge.app.evidence import diffs
from planforge.app.evidence.diffs import FileDiff
from planforge.kernel.redaction import Redactor
from planforge.workspace.git import Git
from repositories import commit, empty_repository, git, repository

LINES = "".join(f"line {number}\n" for number in range(1, 41))


def shown(root: Path, files: dict[str, str | bytes]) -> dict[str, FileDiff]:
    base = git(root, "rev-parse", "HEAD")
    made = diffs.made(Git.find(root), base, commit(root, files))
    return {file.path: file for file in diffs.read(made)}


def lines(file: FileDiff) -> list[tuple[int | None, int | None, str]]:
    return [(line.old, line.new, line.text) for hunk in file.hunks for line in hunk]


def test_lines_have_the_numbers_they_have_in_the_file(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.txt": LINES})
    file = shown(root, {"a.txt": LINES.replace("line 8\n", "LINE 8\nand more\n").replace("line 33\n", "")})[
        "a.txt"
    ]
    assert (file.added, file.removed, file.change) == (2, 2, "changed")
    assert [len(hunk) for hunk in file.hunks] == [13, 11]
    changed = [line for line in lines(file) if None in line]
    assert changed == [
        (8, None, "line 8"),
        (None, 8, "LINE 8"),
        (None, 9, "and more"),
        (33, None, "line 33"),
    ]
    assert lines(file)[-1] == (38, 38, "line 38")


def test_added_and_deleted_files_and_other_modes_are_told(tmp_path: Path) -> None:
    root = repository(tmp_path, {"old.txt": "a\n", "run.sh": "#!/bin/sh\n"})
    (root / "old.txt").unlink()
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("/etc/passwd")
    found = shown(root, {"new.txt": "b", "empty.txt": ""})
    assert {path: file.change for path, file in found.items()} == {
        "empty.txt": "added",
        "link": "added",
        "new.txt": "added",
        "old.txt": "deleted",
        "run.sh": "changed",
    }
    assert found["link"].notes == ("a symbolic link",)
    assert found["run.sh"].notes == ("old mode 100644", "new mode 100755")
    assert lines(found["new.txt"]) == [(None, 1, "b")]


def test_a_binary_file_is_named_and_not_shown(tmp_path: Path) -> None:
    root = repository(tmp_path)
    found = shown(root, {"a.bin": b"\0\1\2\n" * 50, "b.txt": "text\n"})
    assert found["a.bin"].notes == ("Binary file, which is not shown",)
    assert lines(found["b.txt"]) == [(None, 1, "text")]


HIDING = {
    "an attribute": {".gitattributes": "* -diff\n* binary\n*.py -text diff=none\n"},
    "a driver": {".gitattributes": "*.py diff=evil\n"},
}


@pytest.mark.parametrize("files", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("where", ["tree", "repository"])
def test_no_attribute_and_no_setting_hides_a_line(tmp_path: Path, files: dict[str, str], where: str) -> None:
    root = repository(tmp_path, {"app.py": LINES})
    (root / "trap.sh").write_text("#!/bin/sh\necho nothing to see\n")
    (root / "trap.sh").chmod(0o755)
    trap = str(root / "trap.sh")
    for name in ("diff.evil.textconv", "diff.evil.command", "diff.external", "diff.orderFile"):
        git(root, "config", name, trap)
    for name, value in {"diff.evil.binary": "true", "diff.noprefix": "true", "diff.context": "0"}.items():
        git(root, "config", name, value)
    for name, value in {
        "diff.ignoreSubmodules": "all",
        "diff.renames": "copies",
        "color.ui": "always",
    }.items():
        git(root, "config", name, value)
    if where == "repository":
        (root / ".git" / "info").mkdir(exist_ok=True)
        (root / ".git" / "info" / "attributes").write_text(files[".gitattributes"])
        files = {}
    found = shown(root, {**files, "app.py": LINES.replace("line 9\n", "import os\n")})
    assert (9, None, "line 9") in lines(found["app.py"])
    assert (None, 9, "import os") in lines(found["app.py"])
    assert len(lines(found["app.py"])) == 12


def test_a_line_that_looks_like_a_header_is_a_line(tmp_path: Path) -> None:
    forged = "x\ndiff --git a/safe.txt b/safe.txt\n@@ -1 +1 @@\n-a\n+b\n--- a/x\n+++ b/x\n"
    root = repository(tmp_path, {"a.txt": "old\n" + forged})
    found = shown(root, {"a.txt": "new\n" + forged, "b.txt": forged, "c.txt": "- c\n+ c\n\\ No newline\n"})
    assert sorted(found) == ["a.txt", "b.txt", "c.txt"]
    assert [line[2] for line in lines(found["b.txt"])] == forged.split("\n")[:-1]
    assert found["c.txt"].added == 3


@pytest.mark.parametrize(
    "name", ["with space.txt", "ünï.txt", "a b/c b/d.txt", 'qu"ote.txt', "tab\there.txt", "-x"]
)
def test_odd_names_are_read(tmp_path: Path, name: str) -> None:
    root = repository(tmp_path)
    (file,) = shown(root, {name: "text\n"}).values()
    assert file.path == name.replace('"', '\\"').replace("\t", "\\t")
    assert lines(file) == [(None, 1, "text")]


def test_odd_line_ends_do_not_end_lines(tmp_path: Path) -> None:
    root = repository(tmp_path)
    (file,) = shown(root, {"a.txt": "one\rtwo\r\nthree\x0bfour\u2028five\n\xff".encode()}).values()
    assert [line.text for line in file.hunks[0]] == ["one\rtwo\r", "three\x0bfour\u2028five", "ÿ"]


def test_it_works_in_a_repository_with_longer_hashes(tmp_path: Path) -> None:
    root = repository(tmp_path, object_format="sha256")
    assert lines(shown(root, {"b.txt": "b\n"})["b.txt"]) == [(None, 1, "b")]


def test_no_change_is_no_file(tmp_path: Path) -> None:
    root = empty_repository(tmp_path)
    commit(root, {"a": "b"})
    assert shown(root, {}) == {}
    assert diffs.read(b"") == ()


def test_a_secret_of_several_lines_that_was_taken_out_takes_nothing_else_along(tmp_path: Path) -> None:
    key = "\n".join(
        [f"-----BEGIN {'RSA'} PRIVATE KEY-----", *["Qm9" * 21] * 20, "-----END RSA PRIVATE KEY-----"]
    )
    root = repository(tmp_path, {"a.txt": "top\n", "b.txt": "b\n"})
    base = git(root, "rev-parse", "HEAD")
    made = diffs.made(Git.find(root), base, commit(root, {"a.txt": f"top\n{key}\nend\n", "b.txt": "c\n"}))
    first, second = diffs.read(Redactor().octets(made))
    assert [line[2] for line in lines(first)] == ["top", "[redacted:private-key]", "end"]
    assert lines(second) == [(1, None, "b"), (None, 1, "c")]
