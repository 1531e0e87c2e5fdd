"""
What is looked at after each round.

A guard looks at the history and says what it saw, with the numbers, and what follows if it fires. A policy
asks its guards in order: the first that fires decides. Every guard is a pure function, so that a trajectory
can be simulated and a recorded loop decided again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from planforge.rules.loops.decisions import Continue, Decision, Numbers
from planforge.rules.loops.rounds import History


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What one guard saw."""

    guard: str
    saw: str
    numbers: Numbers = {}
    decision: Decision | None = None
    """What follows; None if it did not fire."""


Guard: TypeAlias = Callable[[History], Look]


class Policy:
    """Guards in the order in which they are asked."""

    def __init__(self, name: str, *guards: Guard) -> None:
        self.name = name
        self._guards = guards

    def __call__(self, history: History) -> Decision:
        """What follows from the rounds so far."""
        return decided(self.looks(history), len(history))

    def looks(self, history: History) -> tuple[Look, ...]:
        """What each guard saw, in order, also those after the first that fired."""
        return tuple(guard(history) for guard in self._guards) if history else ()


def decided(looks: tuple[Look, ...], rounds: int) -> Decision:
    """The decision of the first guard that fired, or to go on."""
    for look in looks:
        if look.decision is not None:
            return look.decision
    return Continue(f"nothing stops it after round {rounds}" if rounds else "nothing has happened yet")
