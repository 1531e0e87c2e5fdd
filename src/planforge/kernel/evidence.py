"""
What Planforge measured itself, on an exact tree.

An outcome has three values and the third is never the first: a check that could
not run, or that ran no test, cannot tell.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """What a check says of a tree."""

    PASS = "pass"
    FAIL = "fail"
    CANNOT_TELL = "cannot_tell"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many tests there were and how they went."""

    total: int
    passed: int
    failed: int
    skipped: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one tree, as observed."""

    check: str
    outcome: Outcome
    reason: str
    """Why the outcome is what it is, in one phrase."""
    command: tuple[str, ...]
    exit_code: int | None
    """None where the command did not end by itself."""
    counts: Counts | None
    """None where no count could be read; never a guess."""
    failing: tuple[str, ...]
    commit: str
    tree: str
    output: str
    """The content address of everything the command printed."""
    seconds: float
    """Wall-clock time: an observation, never part of a decision."""
