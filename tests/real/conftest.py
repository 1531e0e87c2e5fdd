"""
The real agent programs against the scripted model server, with nothing to reach but loopback.

`make test-agents` installs the programs and says where they are; without that nothing here is collected. A
test takes a program with `programs["codex"]`, and is reported as not run where that is not installed. At the
end a table says for every program and every way to talk to it which checks passed, failed or were not run.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from planforge.testing.model_server import ModelServer

PLACE = os.environ.get("PLANFORGE_REAL_AGENTS", "")
MISSING: dict[str, str] = json.loads(os.environ.get("PLANFORGE_REAL_AGENTS_MISSING", "{}"))

if not PLACE:
    collect_ignore_glob = ["test_*.py"]

PROGRAM, WAY, CHECK = "program", "way", "check"
CHECKS, REASONS = "checks", "reasons"
"""Of a test that makes several: each with its outcome, and why some could not be made."""
WORSE = ("passed", "cannot tell", "not run", "FAILED")
WAYS = {"test_native": "native", "test_acp": "acp"}
"""How the tests of a file talk to the programs; all others go through the whole of Planforge."""


class Programs(Mapping[str, Path]):
    """The programs that are installed, by name. Asking for another one ends the test as not run."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._node = request.node

    def __getitem__(self, name: str) -> Path:
        self._node.user_properties.append((PROGRAM, name))
        path = Path(PLACE) / name
        if not path.exists():
            pytest.skip(f"`{name}` is not installed: {MISSING.get(name, 'nobody installed it')}")
        return path

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.name for path in Path(PLACE).iterdir() if path.name != "node"))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @property
    def path(self) -> str:
        """PATH with these programs, and the node they need, before all others."""
        return f"{PLACE}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def programs(request: pytest.FixtureRequest) -> Programs:
    """The real programs."""
    return Programs(request)


@pytest.fixture
def server() -> Iterator[Callable[[Any], ModelServer]]:
    """Starts a scripted model server for the test."""
    from planforge.testing.model_server import ModelServer

    with ExitStack() as stack:
        yield lambda script: stack.enter_context(ModelServer(script))


# What was run


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "check(words): what a test of a real agent shows, for the table")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What shows that the outside cannot be reached comes first."""
    items.sort(key=lambda item: item.path.stem != "test_loopback")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if Path(__file__).parent not in item.path.parents:
        return
    marker = item.get_closest_marker("check")
    name = getattr(item, "originalname", None) or item.name
    item.user_properties.append((CHECK, marker.args[0] if marker else name.removeprefix("test_")))
    item.user_properties.append((WAY, WAYS.get(item.path.stem, "planforge")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    reasons: dict[str, None] = {}
    for kind in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(kind, []):
            told = dict(getattr(report, "user_properties", ()))
            if CHECK not in told:
                continue
            column = told.get(WAY, "") if PROGRAM not in told else f"{told[PROGRAM]} {told[WAY]}"
            outcome = {"passed": "passed", "skipped": "not run"}.get(kind, "FAILED")
            for check, became in told.get(CHECKS, [(told[CHECK], outcome)]):
                row = rows[check.replace("_", " ")]
                row[column] = max(became, row.get(column, became), key=WORSE.index)
            if kind == "skipped":
                why = str(report.longrepr[-1]).removeprefix("Skipped: ")
                reasons[f"{column}: {why}"] = None
            for reason in told.get(REASONS, []):
                reasons[f"{column}: {reason}"] = None
    if rows:
        _print(terminalreporter, rows, list(reasons))


def _print(
    reporter: pytest.TerminalReporter, rows: Mapping[str, Mapping[str, str]], reasons: list[str]
) -> None:
    reporter.section("real agents")
    columns = sorted({column for row in rows.values() for column in row})
    for column in columns:
        told = [row[column] for row in rows.values() if column in row]
        counts = ", ".join(f"{told.count(word)} {word}" for word in dict.fromkeys(told))
        reporter.write_line(f"{column:<28}{counts}")
    reporter.write_line("")
    for check, row in sorted(rows.items()):
        reporter.write_line(check)
        for column in columns:
            if column in row:
                reporter.write_line(f"    {column:<28}{row[column]}", red=row[column] == "FAILED")
    if reasons:
        reporter.write_line("\nnot run, or not to be told:")
        for reason in reasons:
            reporter.write_line(f"    {reason}")
