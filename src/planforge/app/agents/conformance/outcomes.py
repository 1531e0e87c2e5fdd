"""What a check of an agent can come to."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    CANNOT_TELL = "cannot tell"
