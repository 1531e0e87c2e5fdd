"""
Which of many commits made a difference, by looking at few of them.

Pure: what was seen at some places of a line goes in, the place to look at next
comes out. A place where nothing can be told is passed over; what it hides stays
hidden, and is said to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planforge.kernel.evidence import Outcome


class Span(NamedTuple):
    """The last place known to pass and the first one known to fail; -1 passes, before all places."""

    passes: int
    fails: int


def span(seen: Mapping[int, Outcome]) -> Span:
    """What is known so far. Something in `seen` must fail."""
    fails = min(place for place, outcome in seen.items() if outcome is Outcome.FAIL)
    passed = [place for place, outcome in seen.items() if outcome is Outcome.PASS and place < fails]
    return Span(max(passed, default=-1), fails)


def next_place(seen: Mapping[int, Outcome]) -> int | None:
    """Where to look next: nearest to the middle of what is not known; None where there is nothing left."""
    passes, fails = span(seen)
    middle = (passes + fails) // 2
    left = (place for place in range(passes + 1, fails) if place not in seen)
    return min(left, key=lambda place: (abs(place - middle), place), default=None)


def most_looks(places: int) -> int:
    """How many looks are worth it: enough where everything can be told, and as many again where not."""
    return 2 * places.bit_length() + 2
