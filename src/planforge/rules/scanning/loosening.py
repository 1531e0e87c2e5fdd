"""Where a test that was kept asserts less than it did."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from planforge.rules.findings import Finding, Severity
from planforge.rules.scanning.outlines import Assertion, Case, Strength
from planforge.rules.scanning.suites import Placed, beyond

WORDS = {
    Strength.NOTHING: "something that cannot fail",
    Strength.NO_ERROR: "that nothing goes wrong",
    Strength.PRESENT: "that there is something",
    Strength.PARTIAL: "a part of it",
    Strength.CLOSE: "nearly the value, or any error of a type",
    Strength.EXACT: "the value",
}
LONGEST = 200


def findings(pairs: list[tuple[Placed, Placed]]) -> Iterator[Finding]:
    """What was loosened or deleted in tests that are still there."""
    for before, after in pairs:
        if before.case.body != after.case.body or before.case.rows != after.case.rows:
            yield from _case(before.case, after.case, f"{after.path}::{after.case.name}")


def _case(before: Case, after: Case, where: str) -> Iterator[Finding]:
    gone = beyond(before.assertions, after.assertions, attrgetter("text"))
    new = beyond(after.assertions, before.assertions, attrgetter("text"))
    unmatched = []
    for assertion in gone:
        about = [other for other in new if other.subject == assertion.subject and assertion.subject]
        if not about:
            unmatched.append(assertion)
            continue
        best = max(about, key=lambda other: other.strength)
        new.remove(best)
        yield from _replaced(assertion, best, where)
    for assertion, other in zip(unmatched, new, strict=False):
        if assertion.strength >= Strength.CLOSE and other.strength <= Strength.PRESENT:
            yield _loosened(assertion, other, where, Severity.MEDIUM)
    for assertion in unmatched[len(new) :]:
        yield Finding(
            severity=Severity.MEDIUM,
            title="an assertion was deleted from a test that is kept",
            detail=assertion.text[:LONGEST],
            location=where,
        )


def _replaced(before: Assertion, after: Assertion, where: str) -> Iterator[Finding]:
    if after.strength < before.strength:
        gutted = before.strength >= Strength.CLOSE and after.strength <= Strength.PRESENT
        yield _loosened(before, after, where, Severity.BLOCKING if gutted else Severity.MEDIUM)
    elif after.tolerance > before.tolerance:
        yield _loosened(before, after, where, Severity.MEDIUM, "an assertion allows more than before")
    elif after.strength is before.strength and after.text != before.text:
        title = "what a test expects was changed"
        yield _loosened(before, after, where, Severity.MINOR, title)


def _loosened(
    before: Assertion, after: Assertion, where: str, severity: Severity, title: str = ""
) -> Finding:
    return Finding(
        severity=severity,
        title=title
        or f"an assertion was loosened: it asserted {WORDS[before.strength]}, now {WORDS[after.strength]}",
        detail=f"before: {before.text[:LONGEST]}\nafter: {after.text[:LONGEST]}",
        location=where,
    )
