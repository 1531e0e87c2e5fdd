"""How many lines were covered, whichever way it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planforge.kernel.evidence import Coverage
from planforge.workspace.reports.coverage import read_coverage
from repositories import write

LINES = "<line number='1' hits='3'/><line number='2' hits='0'/>"
CLASS = (
    f"<class filename='a.py'><methods><method><lines>{LINES}</lines></method></methods><lines>{LINES}</lines>"
)
COBERTURA = (
    f"<?xml version='1.0'?><!DOCTYPE coverage SYSTEM 'http://x/y.dtd'><coverage>{CLASS}</class></coverage>"
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (json.dumps({"meta": {}, "totals": {"covered_lines": 7, "num_statements": 9}}), (7, 9)),
        (json.dumps({"total": {"lines": {"total": 10, "covered": 4, "skipped": 0, "pct": 40}}}), (4, 10)),
        ('<coverage lines-valid="10" lines-covered="9" line-rate="0.9"/>', (9, 10)),
        (COBERTURA, (1, 2)),
        ("TN:\nSF:a.js\nDA:1,5\nDA:2,0\nLF:2\nLH:1\nend_of_record\nSF:b.js\nDA:1,1\nend_of_record\n", (2, 3)),
        ("SF:a.js\nDA:1,0\nend_of_record\nSF:a.js\nDA:1,2\nend_of_record\n", (1, 1)),
        ("SF:a.js\nLF:12\nLH:3\nend_of_record\n", (3, 12)),
        ("", None),
        ("{}", None),
        ("<coverage/>", None),
        ("<html></html>", None),
        ("<!DOCTYPE c [<!ENTITY a 'b'>]><coverage lines-valid='1' lines-covered='1'/>", None),
        ('<coverage lines-valid="1" lines-covered="9"/>', None),
        ("some text\nof no kind\n", None),
        (f'<coverage lines-valid="{"9" * 5000}" lines-covered="9"/>', None),
    ],
)
def test_coverage(tmp_path: Path, text: str, found: tuple[int, int] | None) -> None:
    write(tmp_path, {"coverage": text})
    expected = Coverage(covered=found[0], total=found[1]) if found else None
    assert read_coverage(tmp_path / "coverage") == expected


def test_a_file_that_is_not_there_covers_nothing(tmp_path: Path) -> None:
    assert read_coverage(tmp_path / "missing") is None
