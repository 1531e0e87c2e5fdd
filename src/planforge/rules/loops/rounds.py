"""
One round of a loop, as its policy sees it.

Rounds of audits have a verdict, rounds of a polish loop have issues before and after the fix, rounds of a
build have tests and exit codes. What a round does not know is None, and no policy takes that for good news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TypeAlias

import msgspec

from planforge.rules.findings import Finding, Severity, worst
from planforge.rules.verdicts import Judgement, Verdict


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """How the tests of a round went."""

    total: int
    passed: int
    failed: int
    failing: tuple[str, ...] = ()
    """The names of those that failed, where they are known."""

    @property
    def all_pass(self) -> bool:
        """Whether there were any, and each of them passed."""
        return self.total > 0 and self.failed == 0 and self.passed == self.total


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many findings of each severity; suggestions are not counted, for nothing waits for them."""

    critical: int = 0
    medium: int = 0
    minor: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.critical + self.medium + self.minor

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Counts:
        """Count. The only source of counts: what a reviewer adds up itself is not looked at."""
        severities = [finding.severity for finding in findings]
        return cls(
            critical=severities.count(Severity.BLOCKING),
            medium=severities.count(Severity.MEDIUM),
            minor=severities.count(Severity.MINOR),
        )


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What one round came to."""

    findings: tuple[Finding, ...] = ()
    verdict: Verdict | None = None
    """What the reviewer decided; None where that follows from the findings."""
    reason: str = ""
    fixed: tuple[Finding, ...] | None = None
    """What is found after the fix of this round; None if there was no fix, or nobody looked."""
    tests: Suite | None = None
    signature: str = ""
    """What the failure looked like, so that the same one is known again."""
    task: str = ""
    exit_code: int | None = None
    """How the program ended that did the work of `task`."""

    @property
    def counts(self) -> Counts:
        """How many findings of each severity the review had."""
        return Counts.of(self.findings)

    @property
    def decided(self) -> Verdict:
        """What the reviewer decided, or what its findings amount to; nothing that blocks is ever approved."""
        blocked = worst(self.findings) is Severity.BLOCKING
        if self.verdict is Verdict.APPROVED and blocked:
            return Verdict.UNKNOWN
        if self.verdict is not None:
            return self.verdict
        return Verdict.REVISION if blocked else Verdict.APPROVED

    @classmethod
    def of_audit(cls, audit: Judgement) -> Round:
        """The round that an audit makes."""
        return cls(findings=audit.findings, verdict=audit.verdict, reason=audit.reason)


History: TypeAlias = tuple[Round, ...]
"""Oldest first; the last one is what is to be decided about."""


def in_a_row(history: History, holds: Callable[[Round], bool]) -> int:
    """How many of the newest rounds in a row something holds for."""
    return sum(1 for _ in takewhile(holds, reversed(history)))
