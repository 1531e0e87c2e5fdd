"""`planforge scan` as a person meets it: the command as a process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calls import caller
from planforge.rules.scanning.issues import RULES
from programs import planforge
from repositories import repository, write

BAD = "def test_a():\n    assert True\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write(tmp_path, {"tests/test_a.py": BAD, "src/a.py": "x = 1  # TODO: do it\n"})
    return tmp_path


def test_a_scan_shows_what_it_found_and_fails_if_something_blocks(place: Path) -> None:
    shown = planforge("scan", cwd=place)
    assert shown.returncode == 1
    assert shown.stderr == ""
    assert shown.stdout == (
        "src/a.py:1:10        medium    todo         `TODO` without a link to an issue\n"
        "tests/test_a.py:2:5  blocking  always-true  the condition is always true\n"
        "\n"
        "2 files scanned\n1 test, 1 assertion, 0 skips\n1 blocking, 1 other\n"
    )


def test_a_scan_without_anything_blocking_ends_well(place: Path) -> None:
    assert planforge("scan", "src", cwd=place).returncode == 0
    clean = planforge("scan", "--rule", "skip", cwd=place)
    assert (clean.returncode, clean.stdout.splitlines()[-1]) == (0, "0 blocking, 0 other")


def test_a_scan_as_json(place: Path) -> None:
    shown = planforge("scan", "--json", cwd=place)
    assert shown.returncode == 1
    document = json.loads(shown.stdout)
    assert document == json.loads(planforge("scan", "--format", "json", cwd=place).stdout)
    assert document["files"] == 2
    assert document["tests"] == {"tests": 1, "assertions": 1, "skips": 0}
    assert document["issues"][1] == {
        "rule": "always-true",
        "severity": "blocking",
        "path": "tests/test_a.py",
        "line": 2,
        "column": 5,
        "message": "the condition is always true",
        "snippet": "assert True",
        "waived": "",
        "lines": [2, 2],
    }


def test_a_scan_as_sarif(place: Path) -> None:
    shown = planforge("scan", "--format", "sarif", cwd=place)
    assert shown.returncode == 1
    document = json.loads(shown.stdout)
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        location = result["locations"][0]["physicalLocation"]
        assert not location["artifactLocation"]["uri"].startswith("/")
        assert location["region"]["startLine"] >= 1
        assert location["region"]["startColumn"] >= 1
    assert [result["level"] for result in run["results"]] == ["warning", "error"]


def test_a_scan_of_what_changed(tmp_path: Path) -> None:
    root = repository(tmp_path, {"tests/test_a.py": BAD})
    assert planforge("scan", "--diff", "HEAD", cwd=root).returncode == 0
    write(root, {"tests/test_a.py": BAD + "\n\ndef test_b():\n    pass\n"})
    shown = planforge("scan", "--diff", "HEAD", cwd=root)
    assert shown.returncode == 1
    assert shown.stdout.splitlines()[0] == "tests/test_a.py:5:1  blocking  empty-test  `test_b` is empty"


def test_a_name_cannot_do_anything_to_the_terminal(tmp_path: Path) -> None:
    write(tmp_path, {"a\n.test.js": "it('\x1b[2J', () => {});\n"})
    shown = planforge("scan", cwd=tmp_path)
    assert shown.stdout.splitlines()[0] == "a\\n.test.js:1:1  blocking  empty-test  `\\x1b[2J` is empty"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nowhere",), 3, "error: cannot read"),
        (("--rule", "no"), 2, "error: there is no rule `no`"),
        (("--diff", "HEAD"), 3, "error: no git repository"),
        (("--diff", "HEAD", "--staged"), 2, "error: `--diff` and `--staged` cannot be had together"),
        (("--format", "xml"), 2, "error: Invalid value for '--format'"),
    ],
)
def test_a_mistake_is_one_line_and_its_own_exit_code(
    tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    shown = planforge("scan", *words, cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (code, "")
    assert shown.stderr.startswith(message)


@pytest.mark.parametrize("place", ["/", "//", "../" * 40])
def test_the_whole_file_system_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    said = caller(tmp_path, monkeypatch, capsys)("scan", place)
    assert (said.code, said.out) == (2, "")
    assert "is the whole file system, not a project\n\nhint: name a directory in it" in said.err


def test_help_has_an_example(tmp_path: Path) -> None:
    assert "planforge scan --diff main" in planforge("scan", "--help", cwd=tmp_path).stdout
