"""
When a loop goes on, and why it stops.

A loop's policy is a pure function of the history of verdicts, so everything
about it can be tested with lists and every decision replays. A decision always
carries its reason; all of them but `Continue` end the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias, assert_never

import msgspec

from planforge.rules.verdicts import AuditVerdict, Verdict


class Continue(msgspec.Struct, frozen=True, tag_field="decision", tag="continue"):
    """Go round once more."""

    ends: ClassVar[bool] = False
    reason: str


class Done(msgspec.Struct, frozen=True, tag_field="decision", tag="done"):
    """Stop: what the loop was for has been reached."""

    ends: ClassVar[bool] = True
    reason: str


class Halt(msgspec.Struct, frozen=True, tag_field="decision", tag="halt"):
    """Stop: going on would do harm or cannot help."""

    ends: ClassVar[bool] = True
    reason: str


class Escalate(msgspec.Struct, frozen=True, tag_field="decision", tag="escalate"):
    """Stop: a person has to decide."""

    ends: ClassVar[bool] = True
    reason: str


Decision: TypeAlias = Continue | Done | Halt | Escalate
Policy: TypeAlias = Callable[[tuple[AuditVerdict, ...]], Decision]


class Loop:
    """The rounds so far, and what the policy makes of them."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._history: tuple[AuditVerdict, ...] = ()

    def record(self, verdict: AuditVerdict) -> Decision:
        """Add the verdict of one round and decide what follows from it."""
        self._history = (*self._history, verdict)
        return self._policy(self._history)

    @property
    def history(self) -> tuple[AuditVerdict, ...]:
        """Every verdict recorded, oldest first."""
        return self._history

    @property
    def round(self) -> int:
        """How many rounds have been recorded."""
        return len(self._history)

    @property
    def latest(self) -> AuditVerdict:
        """The verdict of the last round."""
        if not self._history:
            raise LookupError("no round has been recorded yet")
        return self._history[-1]


def blocking_only(cap: int) -> Policy:
    """Revise while something blocks, at most `cap` rounds; what nobody can read goes to a person."""
    if cap < 1:
        raise ValueError(f"a loop needs at least one round, not {cap}")

    def decide(history: tuple[AuditVerdict, ...]) -> Decision:
        if not history:
            return Continue("nothing has been audited yet")
        latest = history[-1]
        match latest.verdict:
            case Verdict.APPROVED:
                return Done("no blocking finding")
            case Verdict.UNKNOWN:
                return Escalate(f"a person must read the audit: {latest.reason}")
            case Verdict.REVISION:
                return _revise_or_stop(len(history), cap)
            case _:
                assert_never(latest.verdict)

    return decide


def _revise_or_stop(rounds: int, cap: int) -> Decision:
    if rounds < cap:
        return Continue(f"round {rounds} of {cap} asks for a revision")
    return Escalate(f"CAP_REACHED: still not approved after {rounds} of {cap} rounds")
