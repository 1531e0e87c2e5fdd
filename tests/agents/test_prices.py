"""What a call cost, by a table of prices."""

from __future__ import annotations

from datetime import date

import pytest

from planforge.agents import prices
from planforge.agents.prices import Price, cost, of, table
from planforge.kernel.effects import Usage

CALL = Usage(input_tokens=1000, output_tokens=100, cached_tokens=400)


def test_the_table_has_a_date_and_a_currency_and_no_price_below_nothing() -> None:
    found = table()
    assert date.fromisoformat(found.date) > date(2026, 1, 1)
    assert found.currency == "USD"
    for model, price in found.models.items():
        assert 0 < price.input < price.output, model
        assert price.cached is not None, model
        assert 0 < price.cached < price.input, model


def test_what_came_out_of_a_cache_has_its_own_price() -> None:
    own = {"m": Price(input=3.0, output=15.0, cached=0.3)}
    assert cost("m", CALL, own) == 600 * 3 + 120 + 100 * 15
    assert cost("m", CALL, {"m": Price(input=3.0, output=15.0)}) == 1000 * 3 + 1500


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("anthropic/claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-mini", "gpt-5-mini"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
    ],
)
def test_a_model_is_known_by_its_name_with_or_without_date_and_vendor(model: str, known: str) -> None:
    assert of(model) == table().models[known]


@pytest.mark.parametrize("model", ["", "scripted-1", "claude-opus-4-99", "gpt-5-something", "gpt-55"])
def test_what_an_unknown_model_cost_is_unknown_and_not_nothing(model: str) -> None:
    assert cost(model, CALL) is None


def test_unknown_usage_has_no_cost() -> None:
    assert cost("gpt-5", None) is None


def test_the_projects_own_price_wins_over_the_table() -> None:
    assert prices.of("gpt-5", {"gpt-5": Price(input=0, output=0)}) == Price(input=0, output=0)
    assert cost("gpt-5", CALL, {"gpt-5": Price(input=0, output=0)}) == 0
