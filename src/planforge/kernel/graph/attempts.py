"""Attempts at steps: who may begin one, who is at one, and who may give the step up."""

from __future__ import annotations

from planforge.actions import see
from planforge.errors import InvalidInput, RefusedByGate, StepBlocked
from planforge.kernel.events import (
    StepFailed,
    StepStarted,
)
from planforge.kernel.graph.blockers import waits_for
from planforge.kernel.graph.queries import StepView
from planforge.kernel.graph.steps import current
from planforge.kernel.ledger import Ledger, Write
from planforge.kernel.projections.revisions import MET
from planforge.kernel.wording import counted


def start_step(ledger: Ledger, step: str, holder: str, base: str = "", fence: int = 0) -> int:
    """Begin an attempt and return its number. Of several who begin at once, one does."""
    if not holder:
        raise InvalidInput(f"say who starts `{step}`")

    def decide() -> list[Write]:
        found = current(ledger, step)
        if found.status in MET:
            raise RefusedByGate(f"`{found.node}` is {found.status}")
        if found.status == "in-progress" and found.holder != holder:
            who = f"`{found.holder}`" if found.holder else "a run"
            raise RefusedByGate(
                f"`{found.node}` is in progress: {who} is at attempt {found.attempts}",
                see("why", found.node),
            )
        if waiting := waits_for(ledger, found):
            reasons = "; ".join(f"{item.kind} `{item.name}` ({item.reason})" for item in waiting)
            raise StepBlocked(f"`{found.node}` waits for {' '.join(reasons.split())}", see("why", found.node))
        event = StepStarted(
            plan=found.plan,
            step=found.step,
            attempt=found.attempts + 1,
            base=base,
            holder=holder,
            fence=fence,
        )
        return [Write(found.plan, None, [event])]

    (recorded,) = ledger.transact(decide)
    assert isinstance(recorded.event, StepStarted)
    return recorded.event.attempt


def require_attempt(ledger: Ledger, step: str, attempt: int, holder: str = "") -> StepView:
    """The step, if this attempt at it, by this holder if one is given, is under way."""
    found = current(ledger, step)
    if found.status != "in-progress" or found.attempts != attempt:
        raise RefusedByGate(
            f"attempt {attempt} at `{found.node}` is not under way: the step is {found.status}"
            f" after {counted(found.attempts, 'attempt')}"
        )
    if holder and found.holder != holder:
        raise RefusedByGate(
            f"`{found.node}` is in progress by `{found.holder or 'a run'}`, not by `{holder}`"
        )
    return found


def fail_step(ledger: Ledger, step: str, reason: str) -> None:
    """The step is given up; starting it again or a rescope is the way on."""

    def decide() -> list[Write]:
        found = current(ledger, step)
        if found.status in MET:
            raise RefusedByGate(f"`{found.node}` is {found.status}")
        event = StepFailed(plan=found.plan, step=found.step, attempts=found.attempts, reason=reason)
        return [Write(found.plan, None, [event])]

    ledger.transact(decide)
