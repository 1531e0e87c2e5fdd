"""How what something costs grows with its size, told on a machine that does other work as well."""

import math
import time
from collections.abc import Callable

import msgspec

ROUNDS = 8
LEAST = 0.002
"""Processor seconds below which a clock tells nothing."""


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Processor seconds for `small`, and for `times` as much: the least of several rounds each."""

    small: float
    large: float
    times: float

    @property
    def is_linear(self) -> bool:
        """Well nearer to `times` as long than to the square of it."""
        return self.large < max(self.small, LEAST) * math.pow(self.times, 1.3)


def growth(work: Callable[[str], object], text: Callable[[int], str], small: int, large: int) -> Growth:
    """`work` on a text of both sizes until it looks linear, at most ROUNDS times.

    Other work on the machine can only make a round dearer. What is linear looks so in some round,
    what is a square in none.
    """
    few, many = text(small), text(large)
    least = min(_seconds(work, few) for _ in range(3))
    found = Growth(small=least, large=_seconds(work, many), times=large / small)
    for _ in range(ROUNDS - 1):
        if found.is_linear:
            break
        found = msgspec.structs.replace(found, large=min(found.large, _seconds(work, many)))
    return found


def repeated(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def _seconds(work: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    work(text)
    return time.process_time() - began
