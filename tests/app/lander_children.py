"""A landing in a process of its own, which can be killed at an exact moment."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from landings import Field, Table
from planforge.kernel.driver import Call
from planforge.kernel.events import DriverStarted, Recorded, RunEnded


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def deadly(table: Table) -> Table:
    """Performers that do their work and do not live to tell of it."""

    def killing(performer: Any) -> Any:
        async def perform(effect: Any, call: Call) -> None:
            await performer(effect, call)
            die()

        return perform

    return {effect: killing(performer) for effect, performer in table.items()}


def main(root: str, run: str, moment: str) -> None:
    """Land; die once something is `recorded`, or an effect was `performed` and nobody knows, or never."""
    field = Field(Path(root))

    def listen(recorded: Recorded) -> None:
        if moment == "recorded" and not isinstance(recorded.event, DriverStarted | RunEnded):
            die()

    field.project.ledger.listeners.append(listen)
    table = field.performers(run)
    field.go_on(run, table=deadly(table) if moment == "performed" else table)


if __name__ == "__main__":
    main(*sys.argv[1:])
