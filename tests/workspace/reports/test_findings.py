"""What linters and compilers say, counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planforge.workspace.reports.findings import (
    Findings,
    read_eslint,
    read_findings,
    read_sarif,
    read_warnings,
)
from repositories import write


def sarif(*results: dict[str, object], **run: object) -> str:
    return json.dumps({"version": "2.1.0", "runs": [{"tool": {}, "results": results} | run]})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (sarif(), Findings(0)),
        (sarif({"ruleId": "E501", "level": "error"}, {"ruleId": "W1", "level": "note"}), Findings(2)),
        (sarif({"kind": "pass"}, {"kind": "informational"}, {"kind": "open"}), Findings(1)),
        (sarif({"suppressions": [{"kind": "inSource"}]}, {"suppressions": []}), Findings(1)),
        (sarif({"suppressions": [{"kind": "external", "status": "rejected"}]}), Findings(1)),
        (sarif({"baselineState": "absent"}, {"baselineState": "new"}), Findings(1)),
        (
            sarif(invocations=[{"executionSuccessful": False}]),
            Findings(doubt="the tool does not say that it ran to its end"),
        ),
        (
            '{"version": "2.1.0", "runs": [{"tool": {}}]}',
            Findings(doubt="the tool did not look"),
        ),
        ('{"version": "1.0.0", "runs": []}', None),
        ("{}", None),
        ("[]", None),
        ("", None),
        ("[" * 9000, None),
    ],
)
def test_sarif(tmp_path: Path, text: str, found: Findings | None) -> None:
    write(tmp_path, {"lint.sarif": text})
    assert read_sarif(tmp_path / "lint.sarif") == found


def test_the_sarif_of_a_real_linter(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "import os\nimport sys\nx = 1\n"})
    ruff = str(Path(sys.executable).with_name("ruff"))
    words = ["--isolated", "--no-cache", "--select=F401", "--output-format=sarif", "--output-file=r.sarif"]
    argv = [ruff, "check", *words, "."]
    subprocess.run(argv, cwd=tmp_path, check=False, timeout=60)
    assert read_sarif(tmp_path / "r.sarif") == Findings(2)


def test_eslints_json(tmp_path: Path) -> None:
    files = [{"filePath": "a.js", "messages": [], "errorCount": 2, "warningCount": 1, "fatalErrorCount": 0}]
    write(tmp_path, {"good.json": json.dumps(files), "bad.json": '{"a": 1}'})
    assert read_eslint(tmp_path / "good.json") == Findings(3)
    assert read_eslint(tmp_path / "bad.json") is None
    assert read_eslint(tmp_path / "missing.json") is None


@pytest.mark.parametrize(
    ("text", "exit_code", "total"),
    [
        ("a.py:1: error: x  [y]\nFound 3 errors in 1 file (checked 9 source files)\n", 1, 3),
        ("Success: no issues found in 9 source files\n", 0, 0),
        ("F401 [*] `os` imported but unused\n --> a.py:1:8\n\nFound 2 errors.\n[*] 2 fixable\n", 1, 2),
        ("Found 5 errors (3 fixed, 2 remaining).\n", 1, 5),
        ("a.ts(1,2): error TS1: x\n\nFound 3 errors in 2 files.\n", 1, 3),
        ("Found 3 errors in the same file, starting at: a.ts:1\n", 1, 3),
        ("All checks passed!\n", 0, 0),
        ("ruff check .\nAll checks passed!\nmypy\nFound 1 error in 1 file (checked 2 source files)\n", 1, 1),
        ("\n/x/a.js\n  1:1  error  y  no-var\n\n✖ 5 problems (3 errors, 2 warnings)\n", 1, 5),
        ("3 errors, 1 warning, 0 informations \n", 1, 3),
        ("a.py:1:1: F401 'os' imported but unused\na.py:9:80: E501 line too long\n", 1, 2),
        ("src/a.ts(3,5): error TS2322: Type 'a' is not assignable to type 'b'.\n", 2, 1),
        ("9 files inspected, no offenses detected\n", 0, 0),
        ("9 files inspected, 2 offenses detected\n", 1, 2),
        ("> x@1.0.0 lint\n> eslint .\n\n", 0, 0),
        ("", 0, 0),
        ("", 1, None),
        ("I looked at everything\n", 0, None),
        ("warning: `lab` (lib) generated 2 warnings\n", 0, 2),
    ],
)
def test_closing_lines_of_linters(text: str, exit_code: int, total: int | None) -> None:
    assert read_findings(text, exit_code).total == total


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("warning: `lab` (lib) generated 2 warnings (run `cargo fix`)\n", 2),
        (
            "warning: `a` (lib) generated 2 warnings\n"
            "warning: `a` (lib test) generated 2 warnings (1 duplicate)\n",
            3,
        ),
        ("a.c:3:5: warning: unused variable 'x' [-Wunused-variable]\n", 1),
        ("    Finished `dev` profile in 1.5s\n", 0),
        ("webpack compiled\n", None),
    ],
)
def test_warnings_of_compilers(text: str, warnings: int | None) -> None:
    assert read_warnings(text) == warnings
