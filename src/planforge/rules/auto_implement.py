"""
Whether a plan may be approved and carried out at once when its forge has ended, in the name of who asked.

Only what is beyond doubt goes on by itself; everything else is refused with its reason and with what to do
instead. Pure: whoever knows how the forge ended says so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from planforge.actions import REQUEST, Action
from planforge.rules.findings import Severity
from planforge.rules.verdicts import Verdict

CAP_REACHED = "CAP_REACHED"
"""How the reason of a forge begins that has used up its rounds."""


class Because(StrEnum):
    """What stands in the way, by name."""

    NO_PLAN = "no-plan"
    FORGE_ERROR = "forge-error"
    CAP_REACHED = "cap-reached"
    CANCELLED = "cancelled"
    NO_VERDICT = "no-verdict"
    BLOCKING = "blocking"
    STRUCTURE = "structure"
    RUNNING = "running"
    PHASES = "phases"


class Forged(msgspec.Struct, frozen=True, kw_only=True):
    """How a forge ended, as far as it matters here."""

    plan: str = ""
    """Its id, if it was given one."""
    written: bool = True
    """Whether there is a text that could be approved."""
    error: str = ""
    """Why the forge failed, if it did."""
    cap_reached: bool = False
    cancelled: bool = False
    verdict: Verdict | None = None
    """That of the last audit; None if there was none."""
    severity: Severity | None = None
    """The worst that it found."""
    structure: str = ""
    """What is wrong with the form of the plan."""
    running: str = ""
    """A run that is at the plan."""
    phases: Literal["none", "current", "stale", "unreadable"] = "none"
    """Whether there are phases from before, and whether they are those of this plan."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why it does not go on by itself, and what to do instead."""

    because: Because
    reason: str
    next: tuple[Action, Action]


def refusal(forged: Forged) -> Refusal | None:
    """What stands in the way of carrying the plan out at once; None if nothing does."""
    found = _reason(forged)
    if found is None:
        return None
    because, reason = found
    return Refusal(because=because, reason=reason, next=_next(forged.plan, because))


def _reason(forged: Forged) -> tuple[Because, str] | None:
    """The first that applies: what ended the forge comes before what its last audit said."""
    if forged.cancelled:
        return Because.CANCELLED, "the forge was cancelled"
    if forged.error:
        return Because.FORGE_ERROR, f"the forge failed: {forged.error}"
    if not forged.plan or not forged.written:
        return Because.NO_PLAN, "there is no plan"
    if forged.cap_reached:
        return Because.CAP_REACHED, "the rounds of audit are used up, and something blocks still"
    if forged.verdict is None:
        return Because.NO_VERDICT, "no audit has given a verdict"
    if forged.verdict is Verdict.UNKNOWN:
        return Because.NO_VERDICT, "nobody can tell what the last audit says"
    if forged.verdict is not Verdict.APPROVED or forged.severity is Severity.BLOCKING:
        return Because.BLOCKING, "the last audit found something that blocks"
    return _around(forged)


def _around(forged: Forged) -> tuple[Because, str] | None:
    """What is wrong although no audit says so."""
    if forged.structure:
        return Because.STRUCTURE, f"the form of the plan is not right: {forged.structure}"
    if forged.running:
        return Because.RUNNING, f"`{forged.running}` is at the plan already"
    if forged.phases == "stale":
        return Because.PHASES, "there are phases of an earlier text of the plan"
    if forged.phases == "unreadable":
        return Because.PHASES, "there is a phases file that cannot be read"
    return None


def _next(plan: str, because: Because) -> tuple[Action, Action]:
    """The two things that a person can do."""
    if not plan or because is Because.CANCELLED:
        return Action("forge", REQUEST), Action("plan list")
    if because in (Because.NO_PLAN, Because.FORGE_ERROR):
        return Action("forge", plan), Action("plan approve", plan)
    return Action("plan approve", plan), Action("plan run", plan)
