"""What size costs: a million events, a plan of a hundred thousand steps."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measuring import Figure, at_least, at_most, microseconds, progress, ratio, rounds

from planforge.kernel.events import ItemOpened, Payload, PlannedStep, RunParked, RunStarted
from planforge.kernel.graph import answers, queries
from planforge.kernel.ledger import Ledger, Write
from planforge.kernel.ledger.storage import FORMAT

BULK = 5000
"""How many events are put into one transaction where only the size matters."""

STREAMS = 1000

RECOMPUTED = """
SELECT step FROM steps WHERE plan = ? AND revision = ? AND status = 'pending'
  AND NOT EXISTS (
    SELECT 1 FROM edges JOIN steps AS needed ON needed.node = edges.target
    WHERE edges.source = steps.node AND edges.kind = 'STEP_DEPENDS_ON' AND needed.status <> 'done'
  )
ORDER BY ordinal
"""
"""The ready steps without the count that is kept."""


def ledger_of(count: int, cache: Path) -> Path:
    """A repository whose ledger has `count` events, made once and kept."""
    root = cache / f"format-{FORMAT}-events-{count}"
    if (root / "made").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    progress(f"making a ledger of {count} events, once")
    root.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    ledger = Ledger.create(root / ".planforge")
    streams = min(STREAMS, count // 10)
    begun = [
        Write(
            f"run-{run:03}",
            0,
            [RunStarted(run=f"run-{run:03}", flow="f", flow_version=1, subject="", request=Payload())],
        )
        for run in range(streams)
    ]
    ledger.append_all(begun)
    written = streams
    while written < count:
        run = f"run-{written // BULK % streams:03}"
        size = min(BULK, count - written)
        ledger.append(run, [RunParked(run=run, reason="y" * 240)] * size, expected=None)
        written += size
    ledger.close()
    (root / "made").touch()
    return root


def appends(cache: Path, fast: Path, *, quick: bool) -> Iterator[Figure]:
    """An append at a thousand events and at many."""
    small, large = 1000, 20_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory(dir=fast) as made:
        ledgers: dict[str, Ledger] = {}
        for name, count in (("small", small), ("large", large)):
            shutil.copytree(ledger_of(count, cache) / ".planforge", Path(made) / name)
            started = time.perf_counter()
            ledgers[name] = Ledger.open(Path(made) / name)
            head = ledgers[name].head()
            first = time.perf_counter() - started
            assert head == count
        progress(f"appends at {small} and {large} events, on {fast}")

        def append(ledger: Ledger) -> Callable[[], float]:
            def take() -> float:
                count = 300
                started = time.perf_counter()
                for number in range(count):
                    run = f"run-{number * 7 % 100:03}"
                    ledger.append(run, [RunParked(run=run, reason="y" * 240)], expected=None)
                return (time.perf_counter() - started) / count

            return take

        taken = rounds({name: append(ledger) for name, ledger in ledgers.items()}, 9 if quick else 25)
        for ledger in ledgers.values():
            ledger.close()
    note = ", ".join(f"{name} {microseconds(times)}" for name, times in taken.items())
    yield at_most(f"append at {large} / at {small} events", ratio(taken["large"], taken["small"]), 2.0, note)
    yield at_most(f"seconds to open and first read at {large} events", first, 1.0)


def ready(cache: Path, *, quick: bool) -> Iterator[Figure]:
    """The first twenty steps that can start: from the count that is kept, and by looking at everything."""
    count = 2000 if quick else 100_000
    ledger = Ledger.open(plan_of(count, cache) / ".planforge")
    progress(f"the ready steps of a plan of {count}")
    query = queries.NextSteps(plan="plan-001", limit=20)

    def kept() -> float:
        started = time.perf_counter()
        for _ in range(50):
            answers.run_query(ledger, query)
        return (time.perf_counter() - started) / 50

    def recomputed() -> float:
        started = time.perf_counter()
        found = [step for (step,) in ledger.query(RECOMPUTED, "plan-001", 1)][:20]
        taken = time.perf_counter() - started
        answered = answers.run_query(ledger, query)
        assert isinstance(answered, queries.StepList)
        assert found == [step.step for step in answered.steps]
        assert len(found) == 20
        return taken

    taken = rounds({"kept": kept, "recomputed": recomputed}, 5 if quick else 9)
    ledger.close()
    note = ", ".join(f"{name} {microseconds(times)}" for name, times in taken.items())
    limit = 300.0
    yield at_least(
        f"recomputing the ready steps / top 20 of {count}",
        ratio(taken["recomputed"], taken["kept"]),
        limit,
        note,
    )


def plan_of(count: int, cache: Path) -> Path:
    """A ledger with one plan of `count` steps, a tenth of them without a dependency, made once and kept."""
    root = cache / f"format-{FORMAT}-steps-{count}"
    if (root / "made").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    progress(f"making a plan of {count} steps, once")
    steps = tuple(
        PlannedStep(
            step=f"phase-{number}",
            title=f"Step {number}",
            kind="code",
            files=(f"src/{number}.py",),
            depends_on=()
            if number % 10 == 0
            else (f"phase-{number - 1}", f"phase-{number // 10 * 10}")[: 1 + (number % 10 > 1)],
        )
        for number in range(count)
    )
    ledger = Ledger.create(root / ".planforge")
    ledger.append(
        "plan-001", [ItemOpened(item="plan-001", title="", request="", path="", steps=steps)], expected=0
    )
    ledger.close()
    (root / "made").touch()
    return root


def cold(cache: Path, *, quick: bool) -> Iterator[Figure]:
    """`planforge log -n 20` from nothing, against an interpreter that does nothing."""
    count = 20_000 if quick else 1_000_000
    root = ledger_of(count, cache)
    progress(f"a cold `planforge log -n 20` at {count} events")
    program = str(Path(sys.executable).with_name("planforge"))

    def run(*argv: str) -> Callable[[], float]:
        def take() -> float:
            started = time.perf_counter()
            subprocess.run(argv, cwd=root, check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - started

        return take

    contenders = {"bare": run(sys.executable, "-c", "pass"), "log": run(program, "log", "-n", "20")}
    taken = rounds(contenders, 9 if quick else 25)
    milliseconds = statistics.median(taken["log"]) * 1000
    note = f"{milliseconds:.0f} ms"
    yield at_most(
        f"`log -n 20` at {count} events / bare interpreter", ratio(taken["log"], taken["bare"]), 5.0, note
    )
