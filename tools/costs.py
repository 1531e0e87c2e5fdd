"""
What each test costs in computing: a plugin for pytest that lists the most expensive tests, and the files.

It counts what the test itself computed and what the processes did that it started and waited for, and those
that stand by for it. How long a test took says little on a busy machine, and much of it may be waiting; this
says the same whatever else the machine does. `make slow` runs it over all tests.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

MOST = 30
"""How many tests and how many files are listed."""

COSTS: dict[str, float] = defaultdict(float)
"""Seconds of computing, by test."""

before = 0.0
"""What was spent before that which runs now."""


def pytest_runtest_logstart() -> None:
    """A test begins."""
    global before  # noqa: PLW0603  (plugins have nowhere else to keep anything)
    before = spent()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A part of a test has ended: making it ready, itself, or clearing up after it."""
    global before  # noqa: PLW0603
    report = yield
    now = spent()
    setattr(report, "computing", now - before)  # a report keeps it on its way from another process
    before = now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Take note, also of what another process reports."""
    COSTS[report.nodeid] += getattr(report, "computing", 0.0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what cost most."""
    files: dict[str, float] = defaultdict(float)
    for test, seconds in COSTS.items():
        files[test.partition("::")[0]] += seconds
    terminalreporter.section(f"seconds of computing: {sum(files.values()):.0f} in all")
    for costs in (files, COSTS):
        for name in sorted(costs, key=lambda name: -costs[name])[:MOST]:
            terminalreporter.write_line(f"{costs[name]:8.2f}  {name}")
        terminalreporter.write_line("")


def spent() -> float:
    """The seconds that this process and all that it started have computed."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used) + _alive()


def _alive() -> float:
    """The same of what is running, with what it has waited for. Nothing where there is no `/proc`."""
    ticks = 0
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            for child in children.read_text().split():
                with contextlib.suppress(OSError):  # so has the child
                    fields = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
                    ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
