"""
In one word, what the phases of a plan have shown: the badge beside a plan in lists.

Pure: kinds and statuses go in. No phase that changes something is done without evidence that it passed, and
no audit is done that did not pass; a phase that was skipped has shown nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from planforge.rules.selection import MET

AUDIT, READ = "audit", "read"


class Badge(StrEnum):
    """What a plan's phases have shown."""

    PENDING = "pending"
    FAILED = "failed"
    SKIPPED = "skipped"
    AUDITED = "audited"
    VERIFIED = "verified"


def badge(phases: Sequence[tuple[str, str]]) -> Badge:
    """The badge of a plan whose phases have these kinds and statuses; the first line that holds decides."""
    statuses = {status for _, status in phases}
    done = {kind for kind, status in phases if status == "done"}
    if "failed" in statuses:
        return Badge.FAILED
    if not statuses or not statuses.issubset(MET):
        return Badge.PENDING
    if AUDIT in done:
        return Badge.VERIFIED if done - {AUDIT, READ} else Badge.AUDITED
    return Badge.SKIPPED if "skipped" in statuses else Badge.PENDING
