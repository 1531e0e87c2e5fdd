"""How each runner summarises the tests at the end of its output, as patterns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from planforge.kernel.evidence import Counts
from planforge.workspace.reports.tally import Tally, counted, counts_in, numbers_in, plain
from planforge.workspace.reports.tap import node_summary, read_tap

Found = Iterator[tuple[int, Counts]]
"""Where each summary stands, and its counts."""


class Runner(NamedTuple):
    """How the output of one runner is read."""

    summaries: Callable[[str], Found] | re.Pattern[str]
    """Finds the summaries; a pattern names each of its groups by what it counts."""
    failing: Callable[[str], Iterable[str]] = lambda _: ()
    begins: re.Pattern[str] | None = None
    """The heading of a session, if the runner prints one."""
    own_heading: bool = True
    """Whether no other runner prints the same heading."""

    def found(self, text: str) -> Found:
        """The summaries in some output."""
        if isinstance(self.summaries, re.Pattern):
            return ((match.start(), counts_in(match)) for match in self.summaries.finditer(text))
        return self.summaries(text)


# Python

RAN = re.compile(r"^Ran \d{1,9} tests? in ", re.MULTILINE)
UNITTEST = re.compile(
    r"^Ran (?P<total>\d{1,9}) tests? in .*\n(?:(?!Ran \d{1,9} tests? in ).*\n)*?"
    r"(?:OK|FAILED|NO TESTS RAN)(?: \((?P<words>[a-z0-9=, ]+)\))?\s*$",
    re.MULTILINE,
)
FAILING = re.compile(r"^(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \(([^)\s]+)\)", re.MULTILINE)


def read_unittest(output: str) -> Tally | None:
    """Read the closing lines of Python's own `unittest`; where there are several, none can be believed."""
    summary = UNITTEST.search(output)
    if summary is None or len(RAN.findall(output)) != 1:
        return None
    counts = counts_in(summary)
    return Tally(counts, tuple(sorted(set(_unittest_names(output)))) if counts.failed else ())


def _unittest_names(output: str) -> Iterator[str]:
    for name, where in FAILING.findall(output):
        yield where if where.endswith(name) else f"{where}.{name}"


PYTEST = re.compile(
    r"^(?=.*\b(?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|no tests)\b)"
    r"(?:=+ )?(?P<words>(?:\d+ [a-z]+(?: [a-z]+)?, )*\d+ [a-z]+(?: [a-z]+)?|no tests (?:ran|collected))"
    r" in \d+(?:\.\d+)?s(?: \([\d:, a-z]+\))?(?: =+)?$",
    re.MULTILINE,
)
PYTEST_NAMES = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+\[[^\n]*?\](?= - |$)|(?:(?! - )[^\n])+)", re.MULTILINE)


def pytest_lines(output: str) -> list[Counter[str]]:
    """The numbers of every last line of pytest in `output`."""
    return [numbers_in(match["words"]) for match in PYTEST.finditer(plain(output))]


def pytest_warnings(output: str) -> int | None:
    """How often pytest warned, if its last line is in `output`."""
    lines = pytest_lines(output)
    return sum(numbers["warning"] + numbers["warnings"] for numbers in lines) if lines else None


def _pytest_names(text: str) -> Iterable[str]:
    return (name.strip() for name in PYTEST_NAMES.findall(text) if not name.startswith("("))


# Compiled languages

CARGO_BEGINS = re.compile(r"^running (\d{1,9}) tests?$", re.MULTILINE)
CARGO = re.compile(
    r"^test result: \S+\. (?P<passed>\d{1,9}) passed; (?P<failed>\d{1,9}) failed;"
    r" (?P<skipped>\d{1,9}) ignored; (?P<measured>\d{1,9}) measured;",
    re.MULTILINE,
)
CARGO_NAMES = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. FAILED$", re.MULTILINE)
GO_CASES = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)$", re.MULTILINE)
GO_PACKAGES = re.compile(
    r"^(ok|FAIL|\?)[ \t]+(\S+)[ \t]+(?:\[(build failed|setup failed)\]|\[no |[\d.]+s|\(cached\))",
    re.MULTILINE,
)
CTEST_BEGINS = re.compile(r"^Test project .+$", re.MULTILINE)
CTEST = re.compile(r"^\d+% tests passed(?:, (\d{1,9}) tests? failed)? out of (\d{1,9})$", re.MULTILINE)
CTEST_NONE = re.compile(r"^No tests were found!!!$", re.MULTILINE)
CTEST_LISTED = re.compile(r"^[ \t]+\d+ - (.+?) \(([A-Za-z *_]+)\)(?:[ \t].*)?$", re.MULTILINE)
CTEST_NOT_RUN = ("Skipped", "Disabled")
SUREFIRE_BEGINS = re.compile(r"^(?:\[INFO\] )? ?T E S T S$", re.MULTILINE)
SUREFIRE = re.compile(
    r"^(?:\[\w+\] )?Tests run: (?P<total>\d{1,9}), Failures: (?P<failed>\d{1,9}),"
    r" Errors: (?P<errors>\d{1,9}), Skipped: (?P<skipped>\d{1,9})$",
    re.MULTILINE,
)
SUREFIRE_NAMES = re.compile(r"^\[ERROR\] +(\w[\w.$]*\.\w+)(?::\d+)?\b.* (?:»|expected|<<<)", re.MULTILINE)


def _go(text: str) -> Found:
    """Verbose output alone: without `-v`, Go says nothing about the number of tests."""
    packages = list(GO_PACKAGES.finditer(text))
    cases = GO_CASES.findall(text)
    if packages and cases:
        states = [state for state, _ in cases]
        broken = sum(match[3] is not None for match in packages)
        passed, failed, skipped = (states.count(state) for state in ("PASS", "FAIL", "SKIP"))
        yield packages[-1].start(), counted(passed=passed, failed=failed + broken, skipped=skipped)


def _go_names(text: str) -> Iterable[str]:
    yield from (name for state, name in GO_CASES.findall(text) if state == "FAIL")
    yield from (match[2] for match in GO_PACKAGES.finditer(text) if match[3])


def _ctest(text: str) -> Found:
    found = list(CTEST.finditer(text))
    for match, end in zip(found, [*(later.start() for later in found[1:]), len(text)], strict=False):
        failed, total = int(match[1] or 0), int(match[2])
        following = text[match.end() : min(end, match.end() + 100_000)]
        left = max(0, total - failed)
        skipped = min(left, sum(state == "Skipped" for _, state in CTEST_LISTED.findall(following)))
        yield match.start(), counted(total=total, passed=left - skipped, failed=failed, skipped=skipped)
    for match in CTEST_NONE.finditer(text):
        yield match.start(), counted()


def _ctest_names(text: str) -> Iterable[str]:
    return (name for name, state in CTEST_LISTED.findall(text) if state not in CTEST_NOT_RUN)


# JavaScript

JEST = re.compile(
    r"^Test Suites: (?:(?P<broken>\d{1,9}) failed)?[^\n]*\n"
    r"Tests: +(?P<words>(?:\d{1,9} (?!passed)[a-z]+, )*)(?:(?P<passed>\d{1,9}) passed, )?"
    r"(?P<total>\d{1,9}) total$",
    re.MULTILINE,
)
JEST_NAMES = re.compile(r"^  ● (?!Console|Test suite failed)(.+?)$", re.MULTILINE)
VITEST = re.compile(
    r"^ *Test Files  (?:(?P<broken>\d{1,9}) failed)?[^\n]*\n *Tests  (?P<words>.*?)(?: \(\d{1,9}\))?$"
    r"|^ *Tests  no tests$",
    re.MULTILINE,
)
VITEST_NAMES = re.compile(r"^ FAIL +(\S[^\n]* > [^\n]+)$", re.MULTILINE)
MOCHA = re.compile(
    r"^  (?P<passed>\d{1,9}) passing \([^)\n]+\)$(?:\n  (?P<skipped>\d{1,9}) pending$)?"
    r"(?:\n  (?P<failed>\d{1,9}) failing$)?",
    re.MULTILINE,
)
MOCHA_NAMES = re.compile(r"^  \d+\) ([^\n]+(?:\n {7,}\S[^\n]*){0,12}?):\n", re.MULTILINE)
NODE_BEGINS = re.compile(r"^TAP version 13$", re.MULTILINE)
NODE = node_summary("[#\u2139]")
NODE_NAMES = re.compile(r"^ *✖ (?!failing tests:)(.+?) \([\d.]+ms\)$", re.MULTILINE)
BUN = re.compile(
    r"^ *(?P<passed>\d{1,9}) pass\n(?: *(?P<skipped>\d{1,9}) skip\n)?(?: *(?P<todo>\d{1,9}) todo\n)?"
    r" *(?P<failed>\d{1,9}) fail\n(?:.*\n){0,5}?Ran (?P<total>\d{1,9}) tests? across",
    re.MULTILINE,
)
DENO = re.compile(
    r"^(?:ok|FAILED) \| (?P<passed>\d{1,9}) passed(?: \(\d+ steps?\))?"
    r" \| (?P<failed>\d{1,9}) failed(?: \(\d+ steps?\))?(?: \| (?P<skipped>\d{1,9}) ignored)?",
    re.MULTILINE,
)
JASMINE = re.compile(
    r"^(?P<total>\d{1,9}) specs?, (?P<failed>\d{1,9}) failures?(?:, (?P<skipped>\d{1,9}) pending specs?)?$",
    re.MULTILINE,
)


def _mocha_names(text: str) -> Iterable[str]:
    return (" ".join(name.split()) for name in MOCHA_NAMES.findall(text))


def _node_names(text: str) -> Iterable[str]:
    tally = read_tap(text)
    return [*(tally.failing if tally else ()), *NODE_NAMES.findall(text)]


# Others

RSPEC = re.compile(
    r"^(?P<total>\d{1,9}) examples?, (?P<failed>\d{1,9}) failures?(?:, (?P<skipped>\d{1,9}) pending)?"
    r"(?:, (?P<outside>\d{1,9}) errors? occurred outside of examples)?$",
    re.MULTILINE,
)
RSPEC_NAMES = re.compile(r"^rspec (\S+) # (.+)$", re.MULTILINE)
MINITEST = re.compile(
    r"^(?P<total>\d{1,9}) (?:runs|tests), \d+ assertions, (?P<failed>\d{1,9}) failures,"
    r" (?P<errors>\d{1,9}) errors(?:, \d+ pendings, \d+ omissions)?(?:, (?P<skipped>\d{1,9}) skips)?",
    re.MULTILINE,
)
PHPUNIT_BEGINS = re.compile(r"^PHPUnit \d+\.\S+ by ", re.MULTILINE)
PHPUNIT = re.compile(
    r"^(?:OK \((?=\d{1,9} tests?, \d+ assertions?\)$)|(?=Tests: \d+, Assertions: \d+))(?P<words>.*)[).]$"
    r"|^No tests executed!$",
    re.MULTILINE,
)
PHPUNIT_NAMES = re.compile(r"^\d+\) (\S+::\S+)", re.MULTILINE)
EXUNIT = re.compile(
    r"^(?:\d+ (?:doctests?|properties|property), )*(?P<total>\d{1,9}) tests?, (?P<failed>\d{1,9}) failures?"
    r"(?:, (?P<skipped>\d{1,9}) skipped)?(?: \(\d+ excluded\))?$",
    re.MULTILINE,
)
DOTNET = re.compile(
    r"^[ \t]*(?:Passed|Failed|Skipped)! +- Failed: +(?P<failed>\d{1,9}), Passed: +(?P<passed>\d{1,9}),"
    r" Skipped: +(?P<skipped>\d{1,9}), Total: +(?P<total>\d{1,9})",
    re.MULTILINE,
)


RUNNERS: dict[str, Runner] = {
    "pytest": Runner(PYTEST, _pytest_names, re.compile(r"^=+ test session starts =+$", re.MULTILINE)),
    "unittest": Runner(UNITTEST, _unittest_names),
    "cargo": Runner(CARGO, CARGO_NAMES.findall, CARGO_BEGINS),
    "go": Runner(_go, _go_names),
    "ctest": Runner(_ctest, _ctest_names, CTEST_BEGINS),
    "surefire": Runner(SUREFIRE, SUREFIRE_NAMES.findall, SUREFIRE_BEGINS),
    "jest": Runner(JEST, JEST_NAMES.findall),
    "vitest": Runner(VITEST, VITEST_NAMES.findall),
    "mocha": Runner(MOCHA, _mocha_names),
    "node": Runner(NODE, _node_names, NODE_BEGINS, own_heading=False),
    "bun": Runner(BUN),
    "deno": Runner(DENO),
    "jasmine": Runner(JASMINE),
    "rspec": Runner(RSPEC, lambda text: (name for _, name in RSPEC_NAMES.findall(text))),
    "minitest": Runner(MINITEST),
    "phpunit": Runner(PHPUNIT, PHPUNIT_NAMES.findall, PHPUNIT_BEGINS),
    "exunit": Runner(EXUNIT),
    "dotnet": Runner(DOTNET),
}
