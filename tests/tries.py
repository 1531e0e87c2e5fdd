"""
How often a property is tried whose every try costs something: fewer times in `make test` than in the soak.

`make soak-tests` runs all tests with a profile of Hypothesis in which nothing is spared.

What costs next to nothing is tried as often as Hypothesis likes, and ten times as often in the soak.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SOAK = "soak"
"""The profile of Hypothesis that the soak is made with."""

FEWEST = 20

settings.register_profile(
    SOAK, max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def tries(number: int) -> int:
    """So many, or a quarter of them where somebody waits. To be asked once tests are collected."""
    if settings.get_current_profile_name() == SOAK:
        return number
    return min(number, max(FEWEST, number // 4))
