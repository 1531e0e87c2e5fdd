"""
The review of a polish loop: a list of issues, and nothing but that list counts.

    {"issues": [{"severity": "critical|medium|minor", "description": "…", "location": "…",
                 "recommendation": "…"}],
     "tests": {"total": 3, "passed": 3, "failed": 0}}

Totals that the reviewer adds up itself are not looked at. What does not have this form is `unknown`, to
be asked for again.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import msgspec

from planforge.rules.findings import Finding, Severity, evidence_in
from planforge.rules.verdicts.answers import once, plain, spoken, too_large
from planforge.rules.verdicts.judgement import Judgement, Verdict, judged, unknown

GOOD_ENOUGH = {"critical": 0, "medium": 3, "minor": 5}
"""How many issues of each severity are good enough."""
SEVERITIES = {"critical": Severity.BLOCKING, "medium": Severity.MEDIUM, "minor": Severity.MINOR}


_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Issue(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    severity: Literal["critical", "medium", "minor"]
    description: str
    location: str = ""
    recommendation: str = ""


class _Tests(msgspec.Struct, kw_only=True):
    total: int
    passed: int
    failed: int


class _Review(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    issues: list[_Issue]
    tests: _Tests | None = None
    critical: _Count = 0
    medium: _Count = 0
    minor: _Count = 0


def parse_polish(text: str) -> Judgement:
    """Decide what a review says; never raises, and never guesses."""
    if fault := too_large(text):
        return unknown(fault)
    answer = spoken(text)
    if not answer.closed:
        return unknown(answer.doubt)
    try:
        review = msgspec.convert(json.loads(answer.data.strip(), object_pairs_hook=once), _Review)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        return unknown(f"it is not a review: {str(error)[:200]}")
    if any(not plain(issue.description) for issue in review.issues):
        return unknown("an issue says nothing")
    findings = tuple(
        Finding(
            severity=SEVERITIES[issue.severity],
            title=plain(issue.description),
            location=plain(issue.location),
            recommendation=plain(issue.recommendation),
            evidence=evidence_in("", issue.description, plain(issue.location)),
        )
        for issue in review.issues
    )
    if fault := _fault(review.tests):
        return unknown(fault, findings)
    return _decided(findings, review.tests)


def _decided(findings: tuple[Finding, ...], tests: _Tests | None) -> Judgement:
    counts = {
        name: sum(each.severity is severity for each in findings) for name, severity in SEVERITIES.items()
    }
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    if tests is not None and tests.passed != tests.total:
        return judged(
            Verdict.REVISION, f"{tests.total - tests.passed} of {tests.total} tests do not pass", findings
        )
    over = [name for name, count in counts.items() if count > GOOD_ENOUGH[name]]
    if over:
        return judged(Verdict.REVISION, f"{told}: too many {' and '.join(over)}", findings)
    return judged(Verdict.APPROVED, f"{told}: good enough", findings)


def _fault(tests: _Tests | None) -> str:
    if tests is None:
        return ""
    if min(tests.total, tests.passed, tests.failed) < 0 or tests.passed + tests.failed > tests.total:
        return "the counts of tests do not add up"
    return "there are no tests, so nothing says that it works" if tests.total == 0 else ""
