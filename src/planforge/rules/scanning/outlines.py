"""
What tests there are in a file and what they assert, whatever the language.

The rules about single tests, the counts of an inventory and the comparison of two states
of a suite all look at this and not at syntax.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Strength(IntEnum):
    """How much an assertion says."""

    NOTHING = 0
    """It cannot fail."""
    NO_ERROR = 1
    """Nothing went wrong."""
    PRESENT = 2
    """There is something, or it is true in some sense."""
    PARTIAL = 3
    """A value lies in a range, in a set, is of a type, has a part."""
    CLOSE = 4
    """A value is nearly this one, or matches a pattern; an error of this type is raised."""
    EXACT = 5
    """A value is this one."""


class Assertion(msgspec.Struct, frozen=True, kw_only=True):
    """One assertion."""

    text: str
    """As written, without what formatting changes."""
    subject: str
    """What it is about: the side that the code under test has made."""
    strength: Strength
    at: int
    """Where it is in the text."""
    weight: int = 1
    """How often it is made: once for each row of a table that is written next to it."""
    tolerance: float = 0.0
    """How far off a value may be, if it says so."""


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Something that keeps a test from running, or from failing."""

    at: int
    what: str
    """The test, the class or the file (`*`) that is skipped."""
    text: str
    conditional: bool = False
    """Whether it depends on something that is only known when the test runs."""
    issue: bool = False
    """Whether an issue is named beside it."""
    expects_failure: bool = False
    """The test runs and may fail."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One test."""

    name: str
    at: int
    end: int
    assertions: tuple[Assertion, ...] = ()
    may_assert: bool = False
    """Whether it hands itself to something that may assert, which cannot be seen from here."""
    empty: bool = False
    rows: int | None = 1
    """How many parameter sets it has; None if that cannot be told."""
    body: str = ""
    """Its text without what formatting changes."""
    calls: dict[str, int] = {}
    """The names of what it calls, each with how often."""

    @property
    def weight(self) -> int:
        """How many tests it stands for."""
        return 1 if self.rows is None else max(self.rows, 0)


class Helper(msgspec.Struct, frozen=True, kw_only=True):
    """A function that tests may call."""

    assertions: int = 0
    calls: frozenset[str] = frozenset()


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """The tests of one file."""

    cases: tuple[Case, ...] = ()
    loose: tuple[Assertion, ...] = ()
    """Assertions outside of tests: in what tests call."""
    skips: tuple[Skip, ...] = ()
    helpers: dict[str, Helper] = {}
    """The functions outside of tests that assert something or call others."""
