"""The review of a polish loop: issues, counted by us."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.rules.findings import Severity
from planforge.rules.verdicts import Verdict, parse_polish
from tries import tries

A, R, U = Verdict.APPROVED, Verdict.REVISION, Verdict.UNKNOWN


def review(critical: int = 0, medium: int = 0, minor: int = 0, **more: object) -> str:
    counts = {"critical": critical, "medium": medium, "minor": minor}
    issues = [
        {
            "severity": name,
            "description": f"{name} {number}",
            "location": "a.py:1",
            "recommendation": "mend it",
        }
        for name, count in counts.items()
        for number in range(count)
    ]
    return json.dumps({"issues": issues, **more})


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (review(), A),
        (review(0, 3, 5), A),
        (review(1), R),
        (review(0, 4), R),
        (review(0, 0, 6), R),
        (review(critical=0, tests={"total": 2, "passed": 2, "failed": 0}), A),
        (review(critical=0, tests={"total": 2, "passed": 1, "failed": 1}), R),
        (review(critical=0, tests={"total": 2, "passed": 1, "failed": 0}), R),
        (review(critical=0, tests={"total": 0, "passed": 0, "failed": 0}), U),
        (review(critical=0, tests={"total": 1, "passed": 2, "failed": 0}), U),
        (review(critical=0, tests={"total": 1, "passed": -1, "failed": 0}), U),
        (f"```json\n{review()}\n```", A),
        (f"```\n{review()}\n```", A),
        (f"```json\n{review()}", U),
        (f"```python\n{review()}\n```", U),
        (f"> so\n{review()}", U),
        (json.dumps(json.loads(review(0, 1)), indent=4), A),
        (f"> {review()}", U),
        (f"Here it is:\n{review()}", U),
        (f"{review()}\n{review()}", U),
        ("", U),
        ("{}", U),
        ("[]", U),
        ('{"issues": null}', U),
        ('{"issues": []', U),
        ('{"issues": [], "issues": []}', U),
        ('{"issues": [], "verdict": "approved"}', U),
        ('{"issues": [{"severity": "blocker", "description": "x"}]}', U),
        ('{"issues": [{"severity": "minor", "description": "  "}]}', U),
        ('{"issues": [{"severity": "minor"}]}', U),
        ("[" * 100_000, U),
    ],
)
def test_each_form(text: str, verdict: Verdict) -> None:
    assert parse_polish(text).verdict is verdict


def test_counts_that_the_reviewer_adds_up_itself_are_not_looked_at() -> None:
    lying = json.loads(review(2)) | {"critical": 0, "medium": 0, "minor": 0}
    judgement = parse_polish(json.dumps(lying))
    assert (judgement.verdict, judgement.reason) == (R, "2 critical, 0 medium, 0 minor: too many critical")
    assert judgement.max_severity is Severity.BLOCKING


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 9), st.sampled_from(["critical", "minor", "x", ""])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["issues", "severity", "description", "tests", "total"]), inner, max_size=3
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=tries(800), deadline=None)
@given(value=VALUES)
def test_no_other_shape_is_approved(value: object) -> None:
    judgement = parse_polish(json.dumps(value))
    if judgement.verdict is A:
        assert isinstance(value, dict)
        assert isinstance(value["issues"], list)
        assert not any(issue["severity"] == "critical" for issue in value["issues"])
