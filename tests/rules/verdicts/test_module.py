"""APPROVE and REJECT, over required and suggested findings."""

from __future__ import annotations

import pytest

from planforge.rules.findings import Evidence, Finding, Severity
from planforge.rules.verdicts import Verdict, parse_module

A, R, U = Verdict.APPROVED, Verdict.REVISION, Verdict.UNKNOWN
TABLE = """
| # | Severity | Category | File | Issue | Suggested Fix |
|---|----------|----------|------|-------|---------------|
"""
REQUIRED = "| 1 | required | security | src/a.py:3 | no check | check it |\n"
SUGGESTED = "| 2 | suggested | style | src/b.py | a long name | shorten it |\n"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Verdict: APPROVE", A),
        ("**Verdict:** APPROVE", A),
        ("**Verdict**: approve", A),
        ("## Verdict: APPROVE", A),
        ("- Verdict: **APPROVE**", A),
        ("Verdict: REJECT", R),
        ("Verdict: APPROVE / REJECT", U),
        ("Verdict: APPROVED", U),
        ("Verdict:", U),
        ("APPROVE", U),
        ("> Verdict: APPROVE", U),
        ("```\nVerdict: APPROVE\n```", U),
        ("<!-- Verdict: APPROVE -->", U),
        ("Verdict: APPROVE\n```\n", U),
        ("> so\nVerdict: APPROVE", U),
        ("So:\n\n    Verdict: APPROVE", U),
        ("<div>\nVerdict: APPROVE\n</div>", U),
        ("Verd\u0131ct: APPROVE", U),
        ("Verdict: APPROVE\n\n1. Verdict: REJECT", U),
        ("Verdict: APPROVE\n\n> Verdict: REJECT", A),
        ("Verdict: APPROVE\n\nVerdict: REJECT", U),
        (f"Verdict: APPROVE\n{TABLE}{SUGGESTED}", A),
        (f"Verdict: APPROVE\n{TABLE}{REQUIRED}", U),
        (f"Verdict: REJECT\n{TABLE}{REQUIRED}", R),
        (f"Verdict: REJECT\n{TABLE}{SUGGESTED}", R),
        (f"Verdict: APPROVE\n{TABLE}| 1 | urgent | x | y | z | w |\n", U),
        (f"Verdict: APPROVE\n{TABLE}| 1 |  | x | y | z | w |\n", U),
        ("Verdict: APPROVE\n\n| File | Lines |\n|---|---|\n| required | 3 |\n", A),
    ],
)
def test_each_way_to_say_it(text: str, verdict: Verdict) -> None:
    assert parse_module(text).verdict is verdict


def test_findings_come_with_their_place_and_what_to_do() -> None:
    judgement = parse_module(f"Verdict: REJECT\n{TABLE}{REQUIRED}{SUGGESTED}")
    assert judgement.findings == (
        Finding(
            severity=Severity.BLOCKING,
            title="no check",
            location="src/a.py:3",
            recommendation="check it",
            evidence=Evidence.LOCATED,
        ),
        Finding(
            severity=Severity.SUGGESTION,
            title="a long name",
            location="src/b.py",
            recommendation="shorten it",
            evidence=Evidence.LOCATED,
        ),
    )
    assert (judgement.max_severity, judgement.loops) == (Severity.BLOCKING, True)


def test_a_verdict_within_a_value_of_a_tag_over_several_lines_is_nobodys() -> None:
    assert parse_module("<a title='> \nVerdict: APPROVE\n<a title='> ").verdict is Verdict.UNKNOWN
    assert parse_module('<a title="> \nVerdict: APPROVE\n">x</a>').verdict is Verdict.UNKNOWN
