"""
The figures of Planforge, each a ratio measured in this run: `make bench`.

Absolute times are noise: they change with the machine and with what else it does. What
counts is how two things compare that ran side by side. docs/benchmarks.md says what
each line means.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import agents, evidence, landing, makespan, sandbox, sizes, startup, steps
from benchmarks.measuring import HERE, Figure, progress

CACHE = HERE.parent / "build" / "bench"
MEMORY = Path("/dev/shm")  # noqa: S108  (a file system in memory, where there is one)
ROOM = 3 * 1024**3
"""How much of it must be free to take a ledger of a million events."""


def main() -> None:
    """Measure, print the table, and say by the exit code whether every target was met."""
    parser = argparse.ArgumentParser(description="Measure Planforge against its peers, as ratios.")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, few rounds: only to see that it works"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--only", metavar="PART", choices=PARTS, action="append", help=f"one of {', '.join(PARTS)}"
    )
    arguments = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    before = os.getloadavg()
    figures = [
        figure
        for name, part in PARTS.items()
        if not arguments.only or name in arguments.only
        for figure in part(arguments.quick)
    ]
    load = f"load average {before[0]:.1f} before, {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores"
    if arguments.json:
        document = {
            "load": load,
            "quick": arguments.quick,
            "figures": [figure._asdict() for figure in figures],
        }
        print(json.dumps(document, indent=2))
    else:
        print(table(figures))
        print(f"\n{load}. Absolute times are noise; each figure is a median of ratios of one round.")
        if arguments.quick:
            print("Quick: the sizes are small, so the figures say little.")
    sys.exit(any(figure.met is False for figure in figures) and not arguments.quick)


def table(figures: list[Figure]) -> str:
    """The figures as people read them."""
    verdicts = {True: "met", False: "MISSED", None: ""}
    lines = [f"{'':<56}{'measured':>10}  {'target':<8}{'':<8}"]
    for figure in figures:
        digits = 2 if figure.measured is None or figure.measured >= 0.1 else 4
        measured = "not measured" if figure.measured is None else f"{figure.measured:.{digits}f}"
        note = f"({figure.note})" if figure.note else ""
        line = f"{figure.what:<56}{measured:>10}  {figure.target:<8}{verdicts[figure.met]:<8}{note}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _memory(quick: bool) -> Path | None:
    """A directory in memory with enough room, if there is one."""
    if (
        MEMORY.is_dir()
        and os.access(MEMORY, os.W_OK)
        and shutil.disk_usage(MEMORY).free > (ROOM if not quick else ROOM / 30)
    ):
        return MEMORY
    return None


def _in_memory(quick: bool) -> Iterator[Figure]:
    place = _memory(quick)
    if place is None:
        yield Figure("step / bare commit, tmpfs", None, "<= 2.2", None, "no tmpfs with enough room")
    else:
        yield from steps.steps("tmpfs", place, quick=quick)


PARTS: dict[str, Callable[[bool], Iterator[Figure]]] = {
    "tmpfs": _in_memory,
    "disk": lambda quick: steps.steps("disk", CACHE, quick=quick),
    "syncs": lambda quick: steps.syncs(CACHE, quick=quick),
    "producers": lambda quick: steps.producers(CACHE, quick=quick),
    "appends": lambda quick: sizes.appends(CACHE, _memory(quick) or CACHE, quick=quick),
    "ready": lambda quick: sizes.ready(CACHE, quick=quick),
    "cold": lambda quick: sizes.cold(CACHE, quick=quick),
    "startup": lambda quick: startup.figures(quick=quick),
    "sandbox": lambda quick: sandbox.figures(quick=quick),
    "agents": lambda quick: agents.figures(quick=quick),
    "evidence": lambda quick: evidence.figures(CACHE, quick=quick),
    "landing": lambda quick: landing.figures(CACHE, quick=quick),
    "makespan": lambda quick: makespan.figures(CACHE, quick=quick),
}


if __name__ == "__main__":
    progress("absolute times are noise, so everything is compared with something that runs beside it")
    main()
