"""
How often a property is tried whose every try costs something, by profile of Hypothesis.

`quick` is that of `make test`, where somebody waits; `usual` that of `make test-all`; `soak` that of
`make soak-tests`, in which nothing is spared. What costs next to nothing is tried 25, 100 and 1000 times.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICK, USUAL, SOAK = "quick", "usual", "soak"

# How long a try takes depends on what else the machine does, so no test is held to it.
for profile, examples in {QUICK: 25, USUAL: 100, SOAK: 1000}.items():
    settings.register_profile(
        profile, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile(USUAL)

SHARE = {QUICK: (16, 5), USUAL: (4, 20), SOAK: (1, 0)}
"""By profile, one of how many tries is made, and how many at least."""


def tries(number: int) -> int:
    """So many, or the share of them that the profile makes. To be asked once tests are collected."""
    part, fewest = SHARE[settings.get_current_profile_name()]
    return min(number, max(fewest, number // part))
