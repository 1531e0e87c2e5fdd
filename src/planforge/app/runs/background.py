"""
Runs that this process drives while it does something else: one thread each, all of which can be stopped.

How one is driven is handed over (`driver.py`), so that whatever looks at these runs need not know it. Whoever
starts one is told when it is over, in its thread. To stop one is what Ctrl-C is to a command in the
foreground: the agent is ended at once, what was finished is in the ledger, and the run can be resumed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from planforge.app.runs import table
from planforge.errors import Locked, PlanforgeError
from planforge.kernel.events import RunEnded

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.app.runs.table import RunRow

    Drive = Callable[[Callable[[Callable[[], None]], None]], RunEnded]
    """Drives a run to its end; what it is given gets what stops it."""

PATIENCE = 60.0
"""How long a run that is stopped is waited for, in seconds: its agent is ended, its worktree is kept."""

_UNDER_WAY: dict[tuple[Path, str], Work] = {}
"""What is under way in this process, by project and run."""

_changing = threading.Lock()


class Work:
    """One run that is driven in the background."""

    def __init__(self, project: Project, row: RunRow) -> None:
        self.run, self.flow, self.subject = row.run, row.flow, row.subject
        self.ended: RunEnded | None = None
        """How it ended; None while it goes on, and where it failed or was stopped."""
        self.error: PlanforgeError | None = None
        """Why it does not go on, although it has not ended."""
        self._project = project
        self._taken = threading.Event()
        self._over = threading.Event()
        self._stop: Callable[[], None] | None = None
        self._stopped = False

    @property
    def over(self) -> bool:
        """Whether nobody is at it any more."""
        return self._over.is_set()

    @property
    def stopped(self) -> bool:
        """Whether somebody wanted it to stop."""
        return self._stopped

    def stop(self) -> None:
        """Have it stop where it is, without waiting for that."""
        self._stopped = True
        if self._stop is not None:
            with suppress(RuntimeError):  # its loop is closed: it is over
                self._stop()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it is over, or was within that time."""
        return self._over.wait(seconds)

    def _begun(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._taken.set()
        if self._stopped:
            stop()

    def _drive(self, drive: Drive, told: Callable[[Work], None]) -> None:
        try:
            self.ended = drive(self._begun)
        except PlanforgeError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001  (nobody is above; it is shown to whoever asks how it went)
            self.error = PlanforgeError(f"`{self.run}` failed: {type(error).__name__}: {error}")
        finally:
            with _changing:
                _UNDER_WAY.pop((self._project.state, self.run), None)
            self._taken.set()
            try:
                told(self)
            finally:
                self._over.set()


def nobody(work: Work) -> None:
    """Whoever need not be told."""
    del work


def start(project: Project, run: str, drive: Drive, told: Callable[[Work], None] = nobody) -> Work:
    """Drive a run in the background; when this returns, it is under way or over."""
    row = next(row for row in table.rows(project) if row.run == run)
    work = Work(project, row)
    with _changing:
        if (project.state, run) in _UNDER_WAY:
            raise Locked(f"`{run}` is under way here already")
        _UNDER_WAY[project.state, run] = work
    threading.Thread(target=work._drive, args=(drive, told), name=run, daemon=True).start()
    work._taken.wait(PATIENCE)  # until then it would look interrupted
    return work


def under_way(project: Project) -> list[Work]:
    """What goes on in the background of this process, oldest first."""
    with _changing:
        return [work for (state, _), work in _UNDER_WAY.items() if state == project.state]


def stop(works: list[Work], seconds: float = PATIENCE) -> list[Work]:
    """Stop runs and wait until nobody is at them; those that are still at it by then are returned."""
    for work in works:
        work.stop()
    return [work for work in works if not work.wait(seconds)]
