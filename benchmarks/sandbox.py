"""What it costs to start a program confined, over starting it without any confinement."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.measuring import Figure, at_most, progress, rounds

from planforge.workspace import processes, sandbox
from planforge.workspace.sandbox import Level

TARGET_MILLISECONDS = 20.0


def figures(*, quick: bool) -> Iterator[Figure]:
    """Time a program to its first word at every level that works here."""
    progress("starting programs in sandboxes")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve() / "project"
        subprocess.run(["git", "init", "--quiet", str(root)], check=True)
        checkout = root / ".planforge" / "worktrees" / "run-001" / "check"
        checkout.mkdir(parents=True)
        levels = [tried.level for tried in sandbox.explain() if tried.works]
        contenders = {level.value: _first_word(checkout, root, level) for level in levels}
        rounds(contenders, 2)
        taken = rounds(contenders, 5 if quick else 40)
    bare = taken[Level.NONE]
    for tried in sandbox.explain():
        what = f"ms to start at `{tried.level}` over `none`"
        if not tried.works:
            yield Figure(what, None, note=tried.why)
        elif tried.level is not Level.NONE:
            more = (_quiet(taken[tried.level]) - _quiet(bare)) * 1000
            note = f"{_quiet(bare) * 1000:.0f} ms without"
            if tried.level is sandbox.strongest():
                yield at_most(what, more, TARGET_MILLISECONDS, note)
            else:
                yield Figure(what, more, note=note)


def _quiet(taken: Sequence[float]) -> float:
    """What it takes when little else happens: this figure is a time, and a busy moment only adds to it."""
    return statistics.quantiles(taken, n=10)[0]


def _first_word(checkout: Path, root: Path, level: Level) -> Callable[[], float]:
    policy = sandbox.verifying(checkout, repository=root)

    async def started() -> float:
        begun = time.perf_counter()
        process = await processes.start(
            ["echo", "here"],
            cwd=checkout,
            extra={},
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.STDOUT,
            policy=policy,
            level=level,
        )
        assert process.stdout is not None
        word = await process.stdout.readline()
        taken = time.perf_counter() - begun
        assert word == b"here\n", word
        await processes.end(process)
        return taken

    return lambda: asyncio.run(started())
