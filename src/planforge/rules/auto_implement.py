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
    """The first that applies: what ended the forge, then what its last audit said, then what is around it."""
    used_up = "the rounds of audit are used up, and something blocks still"
    blocks = forged.verdict is not Verdict.APPROVED or forged.severity is Severity.BLOCKING
    reasons = (
        (forged.cancelled, Because.CANCELLED, "the forge was cancelled"),
        (forged.error, Because.FORGE_ERROR, f"the forge failed: {forged.error}"),
        (not forged.plan or not forged.written, Because.NO_PLAN, "there is no plan"),
        (forged.cap_reached, Because.CAP_REACHED, used_up),
        (forged.verdict is None, Because.NO_VERDICT, "no audit has given a verdict"),
        (forged.verdict is Verdict.UNKNOWN, Because.NO_VERDICT, "nobody can tell what the last audit says"),
        (blocks, Because.BLOCKING, "the last audit found something that blocks"),
        (forged.structure, Because.STRUCTURE, f"the form of the plan is not right: {forged.structure}"),
        (forged.running, Because.RUNNING, f"`{forged.running}` is at the plan already"),
        (forged.phases == "stale", Because.PHASES, "there are phases of an earlier text of the plan"),
        (forged.phases == "unreadable", Because.PHASES, "there is a phases file that cannot be read"),
    )
    return next(((because, reason) for holds, because, reason in reasons if holds), None)


def _next(plan: str, because: Because) -> tuple[Action, Action]:
    """The two things that a person can do."""
    if not plan or because is Because.CANCELLED:
        return Action("forge", REQUEST), Action("plan list")
    if because in (Because.NO_PLAN, Because.FORGE_ERROR):
        return Action("forge", plan), Action("plan approve", plan)
    return Action("plan approve", plan), Action("plan run", plan)
