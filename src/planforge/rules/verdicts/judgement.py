"""
The result of every parser of reviews: approved, revision, or unknown, with its findings and its reason.

The third value is never the first. What cannot be read, or says two things at once, is `unknown` with the
reason, and a person decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from planforge.rules.findings import Finding, Severity, worst


class Verdict(StrEnum):
    """The three possible verdicts of a review."""

    APPROVED = "approved"
    REVISION = "revision"
    UNKNOWN = "unknown"


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with its findings and its reason."""

    verdict: Verdict
    max_severity: Severity | None
    findings: tuple[Finding, ...]
    summary: str = ""
    reason: str

    @property
    def loops(self) -> bool:
        """Whether another round is asked for."""
        return self.verdict is Verdict.REVISION


def stated(
    said: Sequence[str], vocabulary: Mapping[str, Verdict], label: str, wrong: str
) -> tuple[Verdict, str]:
    """What the lines with a label agree on; `unknown` with the reason if they do not, or if there is none."""
    if not said:
        return Verdict.UNKNOWN, f"there is no `{label}` line"
    for each in said:
        if each not in vocabulary:
            return Verdict.UNKNOWN, f"`{each[:40]}` {wrong}"
    if len({vocabulary[each] for each in said}) > 1:
        return Verdict.UNKNOWN, f"two `{label}` lines disagree"
    return vocabulary[said[0]], ""


def judged(verdict: Verdict, reason: str, findings: tuple[Finding, ...] = (), summary: str = "") -> Judgement:
    """A verdict whose severity is that of its worst finding."""
    return Judgement(
        verdict=verdict, max_severity=worst(findings), findings=findings, summary=summary, reason=reason
    )


def unknown(reason: str, findings: tuple[Finding, ...] = (), summary: str = "") -> Judgement:
    """A verdict that cannot be told."""
    return judged(Verdict.UNKNOWN, reason, findings, summary)
