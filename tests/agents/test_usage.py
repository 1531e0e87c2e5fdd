"""Tokens of one call, whoever counts them."""

from __future__ import annotations

from planforge.agents.usage import of_call, together
from planforge.kernel.effects import Usage


def used(read: int, wrote: int, cached: int = 0, source: str = "reported") -> Usage:
    return Usage(input_tokens=read, output_tokens=wrote, cached_tokens=cached, source=source)


def test_of_an_agent_that_counts_the_conversation_only_this_call_counts() -> None:
    assert of_call(used(3000, 84, 900), used(1000, 42, 300)) == used(2000, 42, 600)
    assert of_call(used(3000, 84), None) == used(3000, 84)


def test_an_agent_that_began_to_count_anew_is_taken_at_its_word() -> None:
    assert of_call(used(500, 100), used(1000, 42)) == used(500, 100)


def test_calls_add_up_as_far_as_they_are_known() -> None:
    assert together(used(1, 2, 1), None, used(10, 20)) == used(11, 22, 1)
    assert together(None, None) is None
    assert together(used(1, 2), used(1, 2, source="estimated")) == used(2, 4, source="estimated")
