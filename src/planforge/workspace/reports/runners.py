"""How each runner summarises the tests at the end of its output, as patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from planforge.kernel.evidence import Counts
from planforge.workspace.reports.tally import Tally, counted, counts_in, plain
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

RAN = re.compile(r"^Ran (\d{1,9}) tests? in ", re.MULTILINE)
ENDED = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)(?: \(([a-z0-9=, ]+)\))?\s*$", re.MULTILINE)
FAILING = re.compile(r"^(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \(([^)\s]+)\)", re.MULTILINE)


def read_unittest(output: str) -> Tally | None:
    """Read the closing lines of Python's own `unittest`; where there are several, none can be believed."""
    ran = list(RAN.finditer(output))
    ended = ENDED.search(output, ran[0].end()) if len(ran) == 1 else None
    if ended is None:
        return None
    numbers = _numbers(ended[1] or "", r"([a-z]+(?: [a-z]+)?)=(\d{1,9})")
    total = int(ran[0][1])
    bad = sum(numbers.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
    skipped = numbers.get("skipped", 0)
    counts = counted(total=total, passed=max(total - bad - skipped, 0), failed=bad, skipped=skipped)
    return Tally(counts, tuple(sorted(set(_unittest_names(output)))) if bad else ())


def _numbers(text: str, pattern: str) -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(pattern, text)}


def _unittest_names(output: str) -> Iterator[str]:
    for name, where in FAILING.findall(output):
        yield where if where.endswith(name) else f"{where}.{name}"


PYTEST = re.compile(
    r"^(?:=+ )?((?:\d+ [a-z]+(?: [a-z]+)?, )*\d+ [a-z]+(?: [a-z]+)?|no tests (?:ran|collected))"
    r" in \d+(?:\.\d+)?s(?: \([\d:, a-z]+\))?(?: =+)?$",
    re.MULTILINE,
)
PYTEST_WORDS = r"(\d{1,9}) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)\b"
PYTEST_NAMES = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+\[[^\n]*?\](?= - |$)|(?:(?! - )[^\n])+)", re.MULTILINE)


def pytest_numbers(line: str) -> dict[str, int]:
    """How many of each kind are in pytest's last line."""
    found: dict[str, int] = {}
    for number, word in re.findall(PYTEST_WORDS, line):
        name = {"errors": "error", "warnings": "warning"}.get(word, word)
        found[name] = found.get(name, 0) + int(number)
    return found


def pytest_lines(output: str) -> list[dict[str, int]]:
    """The numbers of every last line of pytest in `output`."""
    return [pytest_numbers(match[1]) for match in PYTEST.finditer(plain(output))]


def pytest_warnings(output: str) -> int | None:
    """How often pytest warned, if its last line is in `output`."""
    lines = pytest_lines(output)
    return sum(numbers.get("warning", 0) for numbers in lines) if lines else None


def _pytest(text: str) -> Found:
    for match in PYTEST.finditer(text):
        numbers = pytest_numbers(match[1])
        if numbers or match[1].startswith("no tests"):
            yield (
                match.start(),
                counted(
                    passed=numbers.get("passed", 0) + numbers.get("xpassed", 0),
                    failed=numbers.get("failed", 0) + numbers.get("error", 0),
                    skipped=numbers.get("skipped", 0) + numbers.get("xfailed", 0),
                ),
            )


def _pytest_names(text: str) -> Iterable[str]:
    return (name.strip() for name in PYTEST_NAMES.findall(text) if not name.startswith("("))


def _unittest(text: str) -> Found:
    ran = list(RAN.finditer(text))
    ends = [*(match.start() for match in ran[1:]), len(text)]
    for match, end in zip(ran, ends, strict=False):
        part = text[match.start() : end]
        tally = read_unittest(part)
        if tally is not None:
            yield match.start(), tally.counts


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
    r"^Test Suites: (?:(\d{1,9}) failed)?[^\n]*\nTests: +(?:(\d{1,9}) failed, )?(?:(\d{1,9}) skipped, )?"
    r"(?:(\d{1,9}) todo, )?(?:(\d{1,9}) passed, )?(\d{1,9}) total$",
    re.MULTILINE,
)
JEST_NAMES = re.compile(r"^  ● (?!Console|Test suite failed)(.+?)$", re.MULTILINE)
VITEST = re.compile(
    r"^ *Test Files  (?:(\d{1,9}) failed)?[^\n]*\n *Tests  (.*?)(?: \((\d{1,9})\))?$|^ *Tests  (no tests)$",
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


def _jest(text: str) -> Found:
    for match in JEST.finditer(text):
        suites, failed, skipped, todo, passed, total = (int(number or 0) for number in match.groups())
        broken = suites if not failed else 0  # files whose tests could not be run
        yield (
            match.start(),
            counted(total=total + broken, passed=passed, failed=failed + broken, skipped=skipped + todo),
        )


def _vitest(text: str) -> Found:
    for match in VITEST.finditer(text):
        numbers = {word: int(number) for number, word in re.findall(r"(\d{1,9}) (\w+)", match[2] or "")}
        failed = numbers.get("failed", 0)
        broken = int(match[1] or 0) if not failed else 0
        skipped = numbers.get("skipped", 0) + numbers.get("todo", 0)
        yield (
            match.start(),
            counted(passed=numbers.get("passed", 0), failed=failed + broken, skipped=skipped),
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
    r"^OK \((\d{1,9}) tests?, \d+ assertions?\)$|^(Tests: \d+, Assertions: \d+.*)\.$|^No tests executed!$",
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


def _phpunit(text: str) -> Found:
    for match in PHPUNIT.finditer(text):
        numbers = _numbers(match[2] or "", r"(\w+): (\d{1,9})")
        total = int(match[1] or numbers.get("Tests", 0))
        bad = sum(numbers.get(word, 0) for word in ("Failures", "Errors"))
        skipped = sum(numbers.get(word, 0) for word in ("Skipped", "Incomplete"))
        yield match.start(), counted(total=total, passed=total - bad - skipped, failed=bad, skipped=skipped)


RUNNERS: dict[str, Runner] = {
    "pytest": Runner(_pytest, _pytest_names, re.compile(r"^=+ test session starts =+$", re.MULTILINE)),
    "unittest": Runner(_unittest, _unittest_names),
    "cargo": Runner(CARGO, CARGO_NAMES.findall, CARGO_BEGINS),
    "go": Runner(_go, _go_names),
    "ctest": Runner(_ctest, _ctest_names, CTEST_BEGINS),
    "surefire": Runner(SUREFIRE, SUREFIRE_NAMES.findall, SUREFIRE_BEGINS),
    "jest": Runner(_jest, JEST_NAMES.findall),
    "vitest": Runner(_vitest, VITEST_NAMES.findall),
    "mocha": Runner(MOCHA, _mocha_names),
    "node": Runner(NODE, _node_names, NODE_BEGINS, own_heading=False),
    "bun": Runner(BUN),
    "deno": Runner(DENO),
    "jasmine": Runner(JASMINE),
    "rspec": Runner(RSPEC, lambda text: (name for _, name in RSPEC_NAMES.findall(text))),
    "minitest": Runner(MINITEST),
    "phpunit": Runner(_phpunit, PHPUNIT_NAMES.findall, PHPUNIT_BEGINS),
    "exunit": Runner(EXUNIT),
    "dotnet": Runner(DOTNET),
}
