"""
What a call cost, by a table of prices with its date, where the agent does not say.

The table (`prices.toml`) is what was published on its date; a project puts its own prices over it. A model
that is in neither has no price: what it cost is unknown, which is not nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

from planforge.kernel.effects import Usage

LATER = re.compile(r"-(?:\d{4}|latest|preview|exp|beta)")
"""How a name goes on that means the same model: with a date, or with a word for its state."""


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a million tokens cost."""

    input: float
    output: float
    cached: float | None = None
    """Input that came out of a cache; the same as other input if it is not said."""


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What models cost, and when that was so."""

    date: str
    currency: str
    models: dict[str, Price]


@cache
def table() -> Prices:
    """The table that comes with Planforge."""
    content = resources.files("planforge.agents").joinpath("prices.toml").read_bytes()
    return msgspec.toml.decode(content, type=Prices)


def of(model: str, own: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model: the project's own, or that of the table."""
    return _found(model, own or {}) or _found(model, table().models)


def _found(model: str, prices: Mapping[str, Price]) -> Price | None:
    """By its name, by the name without its provider, or by the model of which it is a version."""
    model = model.partition("[")[0]  # such as `[1m]`, a size of context
    for name in (model, model.rpartition("/")[2]):
        if name in prices:
            return prices[name]
        known = [known for known in prices if name.startswith(known) and LATER.match(name, len(known))]
        if known:
            return prices[max(known, key=len)]
    return None


def cost(model: str, usage: Usage | None, own: Mapping[str, Price] | None = None) -> int | None:
    """What the tokens of a call cost in millionths of the currency; None if that is unknown."""
    price = of(model, own) if usage and model else None
    if usage is None or price is None:
        return None
    cached = min(usage.cached_tokens, usage.input_tokens)
    kept = price.input if price.cached is None else price.cached
    # A price for a million tokens in whole units is a price for one token in millionths.
    return round(
        (usage.input_tokens - cached) * price.input + cached * kept + usage.output_tokens * price.output
    )
