"""
What a check is: a command that says whether a tree is good.

Settings name checks and detection finds them; what runs them (`execution`) takes a while to load.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from planforge.kernel.evidence import TESTS

BUILD = "build"
ORDER = (BUILD, "types", "lint", TESTS)
COUNTED_ONLY = ("lint",)
"""Checks that are required only where that is asked for: what they find is counted."""


class Report(StrEnum):
    """How the counts are read."""

    TEXT = "text"
    """From the summaries that runners and linters print for people."""
    UNITTEST = "unittest"
    JUNIT = "junit"
    GO = "go"
    """`go test -json`."""
    TAP = "tap"
    JEST = "jest"
    """The JSON of jest and vitest."""
    MOCHA = "mocha"
    SARIF = "sarif"
    ESLINT = "eslint"
    NONE = "none"
    """The exit code says it all."""


OF_TESTS = (Report.UNITTEST, Report.JUNIT, Report.GO, Report.TAP, Report.JEST, Report.MOCHA)
OF_FINDINGS = (Report.SARIF, Report.ESLINT)


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    A command that says whether a tree is good.

    In the command, in `env` and where reports lie, `${checkout}` stands for the checkout, `${reports}` for
    an empty directory beside it, `${root}` for the person's own checkout, and `${PATH}` for the search path.
    """

    command: tuple[str, ...]
    report: Report = Report.TEXT
    junit: str = "junit.xml"
    """Where a JUnit report is left, relative to the checkout; a glob if there are several."""
    file: str = ""
    """Where any other report is left; empty if it is what the command prints."""
    coverage: str = ""
    """Where a report on coverage is left, if any."""
    seconds: float = 600.0
    required: bool | None = None
    """Whether its outcome counts; a linter's does only if this says so, all others' unless this says not."""
    env: dict[str, str] = {}
    visible: tuple[str, ...] = ()
    """What it has to read that a sandbox would hide."""

    def must_pass(self, name: str) -> bool:
        """Whether the check, as `name`, decides."""
        return name == TESTS or (name not in COUNTED_ONLY if self.required is None else self.required)
