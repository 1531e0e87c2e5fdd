"""
In one word, what the phases of a plan have shown: the badge beside a plan in lists.

Pure: kinds, statuses and evidence go in. Nothing counts as shown that nobody measured: a
phase that was skipped has no evidence, and whether an audit passed is said by the audit
alone, never by whoever did the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from planforge.rules.selection import MET

BUILT = frozenset({"build", "test"})
"""Evidence that somebody has run what was made."""

AUDIT = "audit"


class Badge(StrEnum):
    """What a plan's phases have shown."""

    PENDING = "pending"
    FAILED = "failed"
    SKIPPED = "skipped"
    AUDITED = "audited"
    VERIFIED = "verified"


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of evidence: a `build`, a `test` or an `audit`, and whether it passed."""

    kind: str
    passed: bool


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A phase as far as a badge goes."""

    kind: str
    status: str
    evidence: tuple[Shown, ...] = ()


def badge(phases: Sequence[Judged]) -> Badge:
    """The badge of a plan with these phases; the first line that holds decides."""
    evidence = [(phase, each) for phase in phases if phase.status != "skipped" for each in phase.evidence]
    if any(phase.status == "failed" for phase in phases) or any(not each.passed for _, each in evidence):
        return Badge.FAILED
    if not phases or any(phase.status not in MET for phase in phases):
        return Badge.PENDING
    if all(phase.status == "skipped" for phase in phases):
        return Badge.SKIPPED
    if any(phase.kind == AUDIT and each.kind == AUDIT for phase, each in evidence):
        built = any(each.kind in BUILT for _, each in evidence)
        return Badge.VERIFIED if built else Badge.AUDITED
    return Badge.SKIPPED if any(phase.status == "skipped" for phase in phases) else Badge.PENDING
