"""
Where a story can be cut: every event that is on record, by what it is and not by when it came.

Two phases at once record their events in whatever order they get to it. An event of a flow has a key of its
own; any other is known by its stream, its kind and how many of them came before it in the same command.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from planforge.kernel.events import EffectIntended, Recorded

CRASH = "CRASH_AT"
"""The variable that says where a process ends."""
STEPS = "CRASH_STEPS"
"""The variable that names the file into which goes how much each effect asks of the system."""


class Boundary(NamedTuple):
    """One event of one command."""

    stream: str
    kind: str
    key: str
    number: int

    def __str__(self) -> str:
        return " ".join(filter(None, (self.stream, self.key, self.kind, f"#{self.number}")))


class Count:
    """Tells which event of its kind each one is."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str, str]] = Counter()

    def next(self, recorded: Recorded) -> Boundary:
        """The boundary that this event is."""
        place = (recorded.stream, type(recorded.event).__name__, recorded.key)
        self._seen[place] += 1
        return Boundary(*place, self._seen[place])


class Cut(NamedTuple):
    """Where a story is cut: in which act, at which event, and how much of what it announces is still done."""

    act: int
    at: Boundary
    steps: int = 0
    about: str = ""

    def __str__(self) -> str:
        effect = f" {self.about}" if self.about else ""
        half = " half-way" if self.steps else ""
        return f"act {self.act + 1}, {self.at}{effect}{half}"

    @property
    def told(self) -> str:
        """For the process that is to end there."""
        return json.dumps([*self.at, self.steps])


def crash_of(told: str) -> tuple[Boundary, int] | None:
    """What a process was told about its end."""
    if not told:
        return None
    stream, kind, key, number, steps = json.loads(told)
    return Boundary(stream, kind, key, number), steps


def cuts(act: int, events: Iterable[Recorded], steps: Mapping[str, int]) -> list[Cut]:
    """
    Every way to cut an act that recorded these events: at each of them, and half-way through each effect that
    asked so much of the system that there is a half-way.
    """
    count = Count()
    found = []
    for recorded in events:
        at, event = count.next(recorded), recorded.event
        about = event.effect if isinstance(event, EffectIntended) else ""
        found.append(Cut(act, at, 0, about))
        number = steps.get(f"{at.stream} {at.key}", 0)
        if about and number > 1:
            found.append(Cut(act, at, number // 2 + 1, about))
    return found
