"""
Token counts in one form for all agents.

Agents mean different things by usage: this turn, the conversation so far, the last step. What is recorded is
always one call: input with what came out of a cache, output with the reasoning.
"""

from __future__ import annotations

from planforge.kernel.effects import Usage

MOST_TOKENS = 10**12
MOST_MONEY = 1e9
"""Figures beyond these are not believed."""


def count(number: object) -> int:
    """A number of tokens, if it can be one; otherwise none."""
    return number if type(number) is int and 0 <= number <= MOST_TOKENS else 0


def millionths(amount: object) -> int | None:
    """An amount of money in millionths, if it can be one."""
    if isinstance(amount, int | float) and not isinstance(amount, bool) and 0 <= amount < MOST_MONEY:
        return round(amount * 1_000_000)
    return None


def of_call(after: Usage, before: Usage | None) -> Usage:
    """What one call used, of an agent that counts the whole conversation."""
    if before is None:
        return after
    counts = {name: getattr(after, name) - getattr(before, name) for name in _COUNTS}
    if any(count < 0 for count in counts.values()):
        return after  # it has begun to count anew
    return Usage(**counts, source=after.source)


def together(*parts: Usage | None) -> Usage | None:
    """What several calls used, as far as it is known; None if nothing is."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    sources = {part.source for part in known}
    return Usage(
        **{name: sum(getattr(part, name) for part in known) for name in _COUNTS},
        source=sources.pop() if len(sources) == 1 else "estimated",
    )


_COUNTS = ("input_tokens", "output_tokens", "cached_tokens")
