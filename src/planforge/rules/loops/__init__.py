"""
When a loop goes on, and why it stops.

A loop's policy is a pure function of the history of its rounds, so everything about it can be tested with
lists and every decision replays. `policies.py` has them by name, `guards.py` says how they look, and
`simulation.py` shows what one would have done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from planforge.rules.loops.decisions import Continue, Decision, Done, Escalate, Halt, Replan
from planforge.rules.loops.policies import blocking_only
from planforge.rules.loops.rounds import History, Round
from planforge.rules.verdicts import Judgement

__all__ = [
    "Continue",
    "Decision",
    "Done",
    "Escalate",
    "Halt",
    "Loop",
    "Replan",
    "Round",
    "blocking_only",
]

Rule: TypeAlias = Callable[[History], Decision]


class Loop:
    """The rounds so far, and what the policy makes of them."""

    def __init__(self, policy: Rule) -> None:
        self._policy = policy
        self._history: History = ()

    def record(self, item: Round | Judgement) -> Decision:
        """Add what one round came to and decide what follows from it."""
        latest = Round.of_audit(item) if isinstance(item, Judgement) else item
        self._history = (*self._history, latest)
        return self._policy(self._history)

    @property
    def history(self) -> History:
        """Every round, oldest first."""
        return self._history

    @property
    def round(self) -> int:
        """How many rounds have been recorded."""
        return len(self._history)

    @property
    def latest(self) -> Round:
        """The last round."""
        if not self._history:
            raise LookupError("no round has been recorded yet")
        return self._history[-1]
