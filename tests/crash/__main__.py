"""
The `planforge` command with somebody who listens to its ledger: `python -m crash forge "..."`.

`CRASH` says at which event this process kills itself with SIGKILL, and whether at once or within what the
event announces. The listener is told of an event when it is on disk and before anything else happens, so
what is left is exactly what a crash at that boundary leaves. Nothing else differs from the real command but
the clock, which stands still: what is dated by when it was intended then has the same hash in every story.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime
from typing import Any

from crash.boundaries import CRASH, Boundary, Count, crash_of
from planforge.interfaces.cli import main
from planforge.kernel.events import Recorded
from planforge.kernel.ledger import Ledger
from soak.crashing import BOUNDARIES

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def die() -> None:
    """End as after `kill -9`: nothing is said, closed or written any more."""
    os.kill(os.getpid(), signal.SIGKILL)


class Listener:
    """Waits for the event at which this process ends."""

    def __init__(self, at: Boundary, steps: int) -> None:
        self._at = at
        self._steps = steps
        """How much is still asked of the system after the event; 0 is nothing."""
        self._count = Count()
        self._armed = False

    def hear(self, recorded: Recorded) -> None:
        """An event is on disk."""
        if self._armed and recorded.key == self._at.key:
            die()  # it was done sooner than we thought: this is its other boundary
        if self._count.next(recorded) == self._at:
            if not self._steps:
                die()
            self._armed = True
            sys.addaudithook(self._ask)

    def _ask(self, name: str, _: tuple[Any, ...]) -> None:
        if name in BOUNDARIES:
            self._steps -= 1
            if not self._steps:
                die()


def attend(listener: Listener | None) -> None:
    """Be there when a ledger is opened."""
    begin = Ledger.__init__

    def opened(ledger: Ledger, *rest: Any) -> None:
        begin(ledger, *rest)
        ledger._clock = lambda: NOW
        if listener is not None:
            ledger.listeners.append(listener.hear)

    Ledger.__init__ = opened  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    crash = crash_of(os.environ.pop(CRASH, ""))
    attend(Listener(*crash) if crash else None)
    sys.argv[0] = "planforge"
    main.run()
