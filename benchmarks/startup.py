"""How long commands take to answer, against a bare interpreter in the same run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measuring import Figure, at_most, progress, ratio, rounds

TARGET_RATIO = 5.0


def figures(*, quick: bool) -> Iterator[Figure]:
    """Play a demo, then time reading it."""
    progress("starting commands")
    program = str(Path(sys.executable).with_name("planforge"))
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "demo"
        subprocess.run([program, "demo", str(root), "--pace", "0"], check=True, capture_output=True)

        def run(*argv: str) -> Callable[[], float]:
            def take() -> float:
                started = time.perf_counter()
                subprocess.run(argv, cwd=root, check=True, stdout=subprocess.DEVNULL)
                return time.perf_counter() - started

            return take

        contenders = {
            "bare": run(sys.executable, "-c", "pass"),
            "planforge --version": run(program, "--version"),
            "planforge status --json": run(program, "status", "--json"),
            "planforge log -n 20": run(program, "log", "-n", "20"),
            "planforge --help": run(program, "--help"),
            "rehearsal agent, to its first answer": greet,
        }
        taken = rounds(contenders, 5 if quick else 25)
    bare = taken.pop("bare")
    for name, seconds in taken.items():
        milliseconds = statistics.median(seconds) * 1000
        note = f"{milliseconds:.0f} ms"
        measured = ratio(seconds, bare)
        if name in ("planforge --help", "rehearsal agent, to its first answer"):
            yield Figure(f"{name} / bare interpreter", measured, note=note)
        else:
            yield at_most(f"{name} / bare interpreter", measured, TARGET_RATIO, note)


def greet() -> float:
    """Start the rehearsal agent and wait for its first answer."""
    started = time.perf_counter()
    request = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    agent = [sys.executable, "-m", "planforge.testing.rehearsal"]
    with subprocess.Popen(agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        assert b"protocolVersion" in process.stdout.readline()
        process.stdin.close()
    return time.perf_counter() - started
