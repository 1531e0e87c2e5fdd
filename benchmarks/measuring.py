"""How the benchmarks measure: side by side in each round, and then the median of the ratios."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Figure(NamedTuple):
    """One line of the table."""

    what: str
    measured: float | None
    """None if it was not measured, and then `note` says why."""
    target: str = ""
    met: bool | None = None
    note: str = ""


def at_most(what: str, measured: float | None, limit: float, note: str = "") -> Figure:
    """A figure that should be small."""
    met = None if measured is None else measured <= limit
    return Figure(what, measured, f"<= {limit:g}", met, note)


def at_least(what: str, measured: float | None, limit: float, note: str = "") -> Figure:
    """A figure that should be large."""
    met = None if measured is None else measured >= limit
    return Figure(what, measured, f">= {limit:g}", met, note)


def progress(words: str) -> None:
    """Say what is under way, to whoever waits."""
    print(f"bench: {words}", file=sys.stderr, flush=True)


def rounds(
    contenders: Mapping[str, Callable[[], float]], count: int, *, pause: float = 0.0
) -> dict[str, list[float]]:
    """What every contender took in every round. The order is another one each time.

    With a `pause` before each, what one does after it has answered is not in the time of the next.
    """
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(count):
        names = list(contenders)
        random.shuffle(names)
        for name in names:
            time.sleep(pause)
            taken[name].append(contenders[name]())
    return taken


def ratio(ones: Sequence[float], others: Sequence[float]) -> float:
    """The median of what one took against the other, round by round."""
    return statistics.median(one / other for one, other in zip(ones, others, strict=True))


def microseconds(taken: Sequence[float]) -> str:
    """The median, for orientation: absolute times are noise."""
    return f"{statistics.median(taken) * 1e6:.0f} us"


class Contender:
    """A process of `contenders.py` that takes steps when it is asked to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._hear("ready")

    def seconds(self, count: int, threads: int = 1, *, processor: bool = False) -> float:
        """Seconds a step, over so many of them; those of the processor where nothing else is waited for."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count} {threads}\n")
        self._process.stdin.flush()
        return float(self._hear().split()[processor]) / count

    def _hear(self, expected: str = "") -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line or (expected and line != expected):
            raise RuntimeError(f"a contender ended: {self._process.args!r}")
        return line


@contextmanager
def contender(python: Path, name: str, directory: Path, wrapper: Sequence[str] = ()) -> Iterator[Contender]:
    """Start one contender, and see to it that it ends."""
    directory.mkdir(parents=True, exist_ok=True)
    argv = [*wrapper, str(python), str(HERE / "contenders.py"), name, str(directory)]
    with (
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.terminate)
        yield Contender(process)
