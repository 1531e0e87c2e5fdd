"""
When a stronger model is worth its price.

Pure: the attempts so far go in, a decision comes out. Attempts that get nowhere earn the next one a model of
the heavy tier, once; then it is the role's own tier again and the count begins anew. An attempt gets
somewhere if fewer tests fail than in any before it, or if it fails at something that comes later.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import msgspec

from planforge.rules.findings import Finding

HEAVY = "heavy"

REPEATS = 2
"""How many rounds with the same findings make a reviewer suspect."""


class Reached(IntEnum):
    """How far an attempt came before it was refused, in order."""

    NOTHING = 0
    """The agent gave no answer that could be used."""
    ANSWER = 1
    """It answered, and what it left could not be taken: nothing, too much, a secret."""
    CHANGE = 2
    """The change was looked at and found wanting."""
    INSPECTION = 3
    """The checks ran and did not pass."""
    EVIDENCE = 4
    """The checks passed, and it could not land."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that was refused, as far as progress goes."""

    reached: Reached
    failing: int | None = None
    """How many tests failed, where that was counted."""
    tier: str = ""
    """The tier it was given instead of the role's; empty if none."""

    def better_than(self, other: Tried) -> bool:
        """Whether it came further."""
        if self.reached != other.reached:
            return self.reached > other.reached
        if self.failing is None:
            return False
        return other.failing is None or self.failing < other.failing


def stalled(tried: Sequence[Tried]) -> int:
    """How many attempts in a row got nowhere, since the last one that did or that had a heavier model."""
    count = 0
    best: Tried | None = None
    for attempt in tried:
        progress = best is not None and attempt.better_than(best)
        count = 0 if progress or attempt.tier else count + 1
        if best is None or progress:
            best = attempt
    return count


def after_attempts(tried: Sequence[Tried], own: str, limit: int) -> str:
    """Why the next attempt gets a heavy model instead of the role's `own` tier; empty if it does not."""
    count = stalled(tried)
    if limit < 1 or own == HEAVY or count < limit:
        return ""
    return f"{count} attempt{'s' if count > 1 else ''} without progress"


def after_rounds(rounds: Sequence[tuple[Finding, ...]], own: str) -> str:
    """Why the next review gets a heavy model: the last ones said the same. Once, then they must again."""
    said = [frozenset(finding.fingerprint for finding in findings) for findings in rounds]
    row = next((at for at, each in enumerate(reversed(said)) if each != said[-1]), len(said))
    if own == HEAVY or not row or not said[-1] or row % REPEATS:
        return ""
    return f"the same findings in {row} rounds"
