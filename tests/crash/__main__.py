"""
The `planforge` command with somebody who listens to its ledger: `python -m crash forge "..."`.

`CRASH_AT` says at which event this process kills itself with SIGKILL, and whether at once or within what the
event announces; `CRASH_STEPS` names a file into which goes how much each effect asks of the system. The
listener is told of an event when it is on disk and before anything else happens, so what is left is exactly
what a crash at that boundary leaves. Nothing else differs from the real command but the clock, which stands
still: what is dated by when it was intended then has the same hash in every story.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crash.boundaries import CRASH, STEPS, Boundary, Count, crash_of
from planforge.app.plans import work
from planforge.interfaces.cli import main
from planforge.kernel.events import EffectCompleted, EffectFailed, EffectIntended, Recorded
from planforge.kernel.ledger import Ledger
from soak.crashing import is_boundary

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def die() -> None:
    """End as after `kill -9`: nothing is said, closed or written any more."""
    os.kill(os.getpid(), signal.SIGKILL)


class Killer:
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

    def _ask(self, name: str, arguments: tuple[Any, ...]) -> None:
        if is_boundary(name, arguments):
            self._steps -= 1
            if not self._steps:
                die()


class Counter:
    """Counts what is asked of the system between the intent of an effect and its outcome."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._under_way: dict[str, int] = {}
        sys.addaudithook(self._ask)

    def hear(self, recorded: Recorded) -> None:
        """An event is on disk."""
        name = f"{recorded.stream} {recorded.key}"
        match recorded.event:
            case EffectIntended(effect=effect) if effect != "Together":
                self._under_way[name] = 0
            case EffectCompleted() | EffectFailed():
                steps = self._under_way.pop(name)
                with self._file.open("a") as file:
                    file.write(f"{name} {steps}\n")

    def _ask(self, name: str, arguments: tuple[Any, ...]) -> None:
        if is_boundary(name, arguments):
            for under_way in self._under_way:
                self._under_way[under_way] += 1


def attend(hear: Callable[[Recorded], None] | None) -> None:
    """Be there when a ledger is opened, and stop the clocks."""
    begin = Ledger.__init__

    def opened(ledger: Ledger, *rest: Any) -> None:
        begin(ledger, *rest)
        ledger._clock = lambda: NOW
        if hear is not None:
            ledger.listeners.append(hear)

    Ledger.__init__ = opened  # type: ignore[method-assign, assignment]
    work.today = lambda: NOW.date().isoformat()


if __name__ == "__main__":
    crash, steps = crash_of(os.environ.pop(CRASH, "")), os.environ.pop(STEPS, "")
    attend(Killer(*crash).hear if crash else Counter(Path(steps)).hear if steps else None)
    sys.argv[0] = "planforge"
    main.run()
