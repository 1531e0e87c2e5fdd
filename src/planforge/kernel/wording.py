"""Words that are the same on every screen and in every message: numbers, money, how a run was ended."""

from __future__ import annotations

MILLION = 1_000_000
CANCELLED = "cancelled by "
"""How the reason of a run begins that a person ended from outside."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """So many of them, such as `1 round`, `2 rounds` and `0 entries`."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def money(millionths: int) -> str:
    """US dollars to the cent; less than a dollar more exactly, so that a small cost never looks like none."""
    size = abs(millionths)
    digits = 2 if size >= MILLION else 4 if size >= 100 else 6
    whole, _, part = f"{size / MILLION:.{digits}f}".partition(".")
    return f"{'-' if millionths < 0 else ''}${whole}.{part.rstrip('0').ljust(2, '0')}"
