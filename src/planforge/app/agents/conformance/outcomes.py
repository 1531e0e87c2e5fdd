"""What a check of an agent can come to."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    CANNOT_TELL = "cannot tell"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a check came to."""

    outcome: Outcome
    what: str
