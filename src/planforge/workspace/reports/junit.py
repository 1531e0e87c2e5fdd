"""
JUnit XML, in the dialects that runners write.

Suites may be nested, may have no names, and may have attributes and no cases at all.
A file that is nested deeper than any runner writes it, or that declares entities, is
not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from planforge.workspace.reports.tally import (
    CAUSE_LIMIT,
    Refused,
    Tally,
    added,
    content_of,
    counted,
    in_order,
    parse_xml,
    whole,
)

DEEPEST = 200
SUITES = ("testsuite", "testsuites")
BAD = ("failure", "error")
NOT_RUN = ("ignored", "notrun", "pending", "skipped", "suppressed")
FAILED = ("error", "fail", "failed", "failure")


def read_junits(paths: Iterable[Path]) -> Tally | None:
    """Read several reports about different tests; if one of them cannot be read, nothing is known."""
    tallies = [read_junit(path) for path in paths]
    return added(tally for tally in tallies if tally is not None) if None not in tallies else None


def read_junit(path: Path) -> Tally | None:
    """Read a JUnit XML report, as pytest and most other runners can write it."""
    reading = _Reading()
    content = content_of(path)
    return reading.tally() if parse_xml(content, reading.start, reading.end, reading.text) else None


class _Suite:
    """A suite that is being read."""

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.seen = 0
        """How many tests were counted in it."""
        self.bad = 0

    def number(self, *names: str) -> int:
        found = (self.attributes.get(name, "") for name in names)
        return sum(int(value) for value in found if value.isdecimal() and len(value) < 10)


class _Case:
    """A test case that is being read."""

    def __init__(self, attributes: dict[str, str], depth: int) -> None:
        self.attributes = attributes
        self.depth = depth
        self.kinds: set[str] = set()
        self.cause = ""

    @property
    def name(self) -> str:
        given = [self.attributes.get(key, "") for key in ("classname", "name")]
        named = ".".join(dict.fromkeys(part for part in given if part))  # for ctest both are the same
        return named or self.attributes.get("file", "") or "unnamed"

    @property
    def failed(self) -> bool:
        bad = bool(self.kinds & set(BAD)) or (not self.kinds and self._state(FAILED))
        return bad and "todo" not in self.kinds

    @property
    def disabled(self) -> bool:
        return not self.kinds & {*BAD, "skipped"} and self._state(("disabled",))

    @property
    def skipped(self) -> bool:
        return bool(self.kinds & {"skipped", "todo"}) or self._state(NOT_RUN)

    def _state(self, states: tuple[str, ...]) -> bool:
        return any(self.attributes.get(key, "").lower() in states for key in ("status", "result"))


class _Reading:
    """Counts while the file goes by."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._suites: list[_Suite] = []
        self._case: _Case | None = None
        self._total = self._failed = self._skipped = 0
        self._names: list[str] | None = []
        self._failing: list[str] = []
        self._causes: list[str] = []
        self._doubt = ""

    def tally(self) -> Tally:
        """What was counted."""
        passed = self._total - self._failed - self._skipped
        counts = counted(total=self._total, passed=passed, failed=self._failed, skipped=self._skipped)
        if passed < 0:
            self._doubt = self._doubt or "its report counts more failures than tests"
        names = None if self._names is None else whole(self._names)
        return Tally(counts, in_order(self._failing), names, tuple(self._causes), self._doubt)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        parent = self._path[-1] if self._path else ""
        self._path.append(name)
        if len(self._path) > DEEPEST:
            raise Refused
        if name in SUITES:
            self._suites.append(_Suite(attributes))
        elif name == "testcase" and self._case is None:
            self._case = _Case(attributes, len(self._path))
        elif self._case is not None and len(self._path) == self._case.depth + 1:
            # What is still to be done may fail, and is no failure.
            self._case.kinds.add("todo" if (name, attributes.get("type")) == ("skipped", "todo") else name)
            if name in BAD:
                said = f"{attributes.get('type', '')} {attributes.get('message', '')}"
                self._case.cause += said[:CAUSE_LIMIT]
        elif name in BAD and parent in SUITES:
            self._fail_suite(attributes)

    def text(self, text: str) -> None:
        case = self._case
        if case is not None and self._path[-1] in BAD and len(case.cause) < CAUSE_LIMIT:
            case.cause += text[:CAUSE_LIMIT]

    def end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if self._case is not None and len(self._path) == self._case.depth:
            self._count(self._case)
            self._case = None
        elif name in SUITES:
            self._close(self._suites.pop())
        self._path.pop()

    def _count(self, case: _Case) -> None:
        if case.disabled:  # no test any more, and the runners that write this do not count it either
            for suite in self._suites[-1:]:
                suite.seen += 1
            return
        self._total += 1
        if self._names is not None:
            self._names.append(case.name)
        if case.failed:
            self._failed += 1
            self._failing.append(case.name)
            self._causes.append(case.cause)
        elif case.skipped:
            self._skipped += 1
        if self._suites:
            self._suites[-1].seen += 1
            self._suites[-1].bad += case.failed

    def _fail_suite(self, attributes: dict[str, str]) -> None:
        """What went wrong outside of any test, such as a suite's own set-up."""
        suite = self._suites[-1]
        self._total += 1
        self._failed += 1
        self._failing.append(suite.attributes.get("name") or "unnamed")
        self._causes.append(attributes.get("message", "")[:CAUSE_LIMIT])
        suite.seen += 1
        suite.bad += 1

    def _close(self, suite: _Suite) -> None:
        said = suite.number("failures", "errors")
        if not suite.seen:  # it has attributes and no cases
            self._total += suite.number("tests")
            self._failed += said
            self._skipped += suite.number("skipped", "skips", "disabled")
            suite.seen, suite.bad = suite.number("tests"), said
            self._names = None if suite.seen else self._names
            self._failing += [suite.attributes["name"]] if said and suite.attributes.get("name") else []
        elif said and not suite.bad:
            self._doubt = f"its report says that {said} failed and shows none of them"
        if self._suites:
            self._suites[-1].seen += suite.seen
            self._suites[-1].bad += suite.bad
