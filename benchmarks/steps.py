"""Durable steps: against a bare commit, against the peers, by many producers, and in syncs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.contenders import PRODUCERS
from benchmarks.measuring import (
    HERE,
    Figure,
    at_least,
    at_most,
    contender,
    microseconds,
    progress,
    ratio,
    rounds,
)

OURS = Path(sys.executable)
PEERS = HERE.parent / ".venv-bench" / "bin" / "python"


def steps(place: str, directory: Path, *, quick: bool) -> Iterator[Figure]:
    """One step by everybody, side by side, on one kind of disk."""
    progress(f"one durable step, on {place}")
    size = (20, 100, 10) if quick else (100, 400, 25) if place == "disk" else (150, 1500, 31)
    peers, own, count = size
    with tempfile.TemporaryDirectory(dir=directory) as made, ExitStack() as stack:
        everybody = {
            name: stack.enter_context(contender(python, name, Path(made) / name))
            for name, python in {
                "raw": OURS,
                "planforge": OURS,
                "outcome": OURS,
                "langgraph": PEERS,
                "dbos": PEERS,
            }.items()
            if python.exists()
        }
        work = {"raw": own, "planforge": own, "outcome": own, "langgraph": peers, "dbos": peers // 2}
        taken = rounds(
            {
                # In memory nothing is waited for, and what else the machine does is left out.
                name: partial(one.seconds, work[name], processor=place == "tmpfs")
                for name, one in everybody.items()
            },
            count,
        )
    note = ", ".join(f"{name} {microseconds(times)}" for name, times in taken.items())
    outcome, table = (ratio(taken[name], taken["raw"]) for name in ("outcome", "planforge"))
    with_table = f"step with its table / bare commit, {place}"
    if place == "disk":
        yield at_most(f"recorded outcome / bare commit, {place}", outcome, 1.4)
        yield at_most(with_table, table, 1.4, note)
    else:  # the table is a page more, which the peers do not write
        yield at_most(f"recorded outcome / bare commit, {place}", outcome, 2.2)
        yield Figure(with_table, table, note=note)
    for peer, name in {"langgraph": "LangGraph + SqliteSaver", "dbos": "DBOS on SQLite as shipped"}.items():
        what = f"{name} / step, {place}"
        measured = ratio(taken[peer], taken["planforge"]) if peer in taken else None
        note = "" if peer in taken else "not installed"
        if (peer, place) == ("langgraph", "tmpfs"):
            yield at_least(what, measured, 15.0, note)
        else:  # on disk the syncs decide, and there is no target
            yield Figure(what, measured, note=note)


def producers(directory: Path, *, quick: bool) -> Iterator[Figure]:
    """Many tasks, and many threads, that append at once, against one."""
    progress(f"{PRODUCERS} producers against one, on disk")
    count = 5 if quick else 15
    with (
        tempfile.TemporaryDirectory(dir=directory) as made,
        contender(OURS, "producers", Path(made)) as alone,
        contender(OURS, "producers", Path(made) / "threads") as threads,
        contender(OURS, "tasks", Path(made) / "tasks") as tasks,
    ):
        taken = rounds(
            {
                "one": lambda: alone.seconds(300),
                "threads": lambda: threads.seconds(PRODUCERS * 60, PRODUCERS),
                "tasks": lambda: tasks.seconds(PRODUCERS * 60),
            },
            count,
        )
    note = ", ".join(f"{name} {microseconds(times)}" for name, times in taken.items()) + " an event"
    many = f"rate of {PRODUCERS} producers"
    yield at_least(f"{many} / one, disk: tasks", ratio(taken["one"], taken["tasks"]), 5.0, note)
    yield Figure(f"{many} / one, disk: threads", ratio(taken["one"], taken["threads"]))


def syncs(directory: Path, *, quick: bool) -> Iterator[Figure]:
    """How often the disk is waited for, by `strace`."""
    found: dict[str, float] = {}
    why = ""
    if shutil.which("strace") is None:
        why = "strace is missing: apt-get install -y strace"
    else:
        progress("syncs of a step, by strace")
        for name, python in {"planforge": OURS, "langgraph": PEERS, "dbos": PEERS}.items():
            if python.exists():
                found[name] = _syncs(name, python, directory, 100 if quick else 600)
    yield at_most("syncs a step", found.get("planforge"), 1.02, why)
    for name in ("langgraph", "dbos"):
        yield Figure(
            f"syncs a step of {name}", found.get(name), note=why or ("" if name in found else "not installed")
        )


def _syncs(name: str, python: Path, directory: Path, count: int) -> float:
    """What `count` more steps add; what comes from starting and ending is the same in both runs."""
    few = 50
    return (_traced(name, python, directory, few + count) - _traced(name, python, directory, few)) / count


def _traced(name: str, python: Path, directory: Path, count: int) -> int:
    with tempfile.TemporaryDirectory(dir=directory) as made:
        report = Path(made) / "report"
        argv = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(report)]
        subprocess.run(
            [*argv, str(python), str(HERE / "contenders.py"), name, made],
            input=f"{count} 1\n",
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return len(re.findall(r"\bf(?:data)?sync\(", report.read_text()))
