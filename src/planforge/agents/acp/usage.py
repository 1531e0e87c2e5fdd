"""
What an agent's figures mean.

The protocol has places for them, but every agent means something else by them: the whole turn, the whole
conversation, the last step; with what came out of a cache or without. What cannot be told for sure is
`estimated` or unknown, never just believed.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from planforge.agents import usage
from planforge.agents.acp.answers import Ended, Reported
from planforge.agents.acp.updates import UsageUpdate
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Task
from planforge.agents.usage import MOST_MONEY, MOST_TOKENS
from planforge.kernel.effects import Usage

CURRENCY = "USD"
"""What budgets and prices are in."""


class Meter:
    """What one turn used and cost, as far as its agent says."""

    def __init__(self, profile: Profile, task: Task) -> None:
        self._means = profile.usage
        self._before = task.before
        self._cost_before = None if task.session else 0.0
        """What the conversation had cost before this turn; None if that is not known."""
        self._cost = 0.0

    def take(self, update: UsageUpdate, *, asked: bool) -> None:
        """Take in what the agent says all of the conversation has cost so far."""
        cost = update.cost
        if cost is None or cost.currency.upper() != CURRENCY or not 0 <= cost.amount < MOST_MONEY:
            return  # an amount in another currency is of unknown size, and must not be added to dollars
        if asked:
            self._cost = cost.amount
        else:
            self._cost_before = cost.amount

    @property
    def money(self) -> int | None:
        """What this turn cost, in millionths; nothing is said by agents that do not know the price."""
        if self._cost_before is None or self._cost <= self._cost_before:
            return None
        return round((self._cost - self._cost_before) * 1_000_000)

    def read(self, response: Ended, *, tool_calls: int) -> Usage | None:
        """The usage of this turn; `None` if it cannot be known."""
        if self._means == "none":
            return None
        if self._means == "quota":
            return _quota(response.meta)
        if response.usage is None:
            return None
        found = _normal(response.usage)
        if found is None:
            return None
        if self._means == "thread":
            return usage.of_call(found, self._before)
        if self._means == "last_step" and tool_calls:
            return _all_steps(found, tool_calls + 1)
        return found


def _normal(told: Reported) -> Usage | None:
    """
    Input with what came out of a cache, output with the reasoning.

    Whether an agent's own figures are with these or without is told by their total, if one fits.
    """
    cached = (told.cached_read_tokens or 0) + (told.cached_write_tokens or 0)
    thought = told.thought_tokens or 0
    plain = told.input_tokens + told.output_tokens
    # The likely way first: without the cache, with the reasoning.
    for with_cache, with_thought in product((cached, 0), (0, thought)):
        if plain + with_cache + with_thought == told.total_tokens:
            break
    else:
        with_cache, with_thought = cached, 0
    read, written = told.input_tokens + with_cache, told.output_tokens + with_thought
    if read + written > MOST_TOKENS:
        return None
    return Usage(
        input_tokens=read, output_tokens=written, cached_tokens=min(told.cached_read_tokens or 0, read)
    )


def _all_steps(last: Usage, steps: int) -> Usage:
    """A guess at all steps of a turn from its last one, which has read the most: no step was dearer."""
    return Usage(
        input_tokens=last.input_tokens * steps,
        output_tokens=last.output_tokens * steps,
        cached_tokens=last.cached_tokens * steps,
        source="estimated",
    )


def _quota(meta: dict[str, Any] | None) -> Usage | None:
    """What Gemini says in `_meta` of its answer."""
    match meta:
        case {"quota": {"token_count": {"input_tokens": int(read), "output_tokens": int(written)}}}:
            if min(read, written) >= 0 and read + written <= MOST_TOKENS:
                return Usage(input_tokens=read, output_tokens=written)
    return None
