"""How many tests, assertions and skips a file has."""

from __future__ import annotations

import msgspec

from planforge.rules.scanning.outlines import Outline


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to count in one file, or in several."""

    tests: int = 0
    """A test with parameters that are written out counts once for each set."""
    assertions: int = 0
    """An assertion in such a test, or in a loop over a table that is written out, counts for each row."""
    skips: int = 0

    def __add__(self, other: Inventory) -> Inventory:
        return Inventory(
            tests=self.tests + other.tests,
            assertions=self.assertions + other.assertions,
            skips=self.skips + other.skips,
        )


def counted(found: Outline) -> Inventory:
    """The counts of an outline."""
    return Inventory(
        tests=sum(case.weight for case in found.cases),
        assertions=sum(
            assertion.weight * max(case.weight, 1) for case in found.cases for assertion in case.assertions
        )
        + len(found.loose),
        skips=len(found.skips),
    )
