"""What runners write for machines: `go test -json`, and the JSON of jest, vitest and mocha."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from planforge.kernel.evidence import Counts
from planforge.workspace.reports.tally import CAUSE_LIMIT, LEFT_OUT, Shape, Tally, counted, decoded, whole

ENDS = {"pass": "passed", "fail": "failed", "skip": "skipped", "bench": "passed"}


class _GoEvent(msgspec.Struct):
    """One line of `go test -json`."""

    action: str = msgspec.field(name="Action", default="")
    package: str = msgspec.field(name="Package", default="")
    test: str = msgspec.field(name="Test", default="")
    output: str = msgspec.field(name="Output", default="")


def read_go(output: str) -> Tally | None:
    """
    Read `go test -json`. Subtests count, as they do where Go itself lists them.

    A package that fails without a failing test, because it does not build for instance, counts as one test.
    A test that began and never ended failed.
    """
    events = list(_go_events(output))
    if not events:
        return None
    states: dict[tuple[str, str], str] = {}
    said: dict[tuple[str, str], str] = {}
    for event in events:
        key = (event.package, event.test)
        if event.action == "output" and len(said.get(key, "")) < CAUSE_LIMIT:
            said[key] = said.get(key, "") + event.output
        elif event.action in ENDS or (event.action == "run" and key not in states):
            states[key] = ENDS.get(event.action, "failed")
    tests = {key: state for key, state in states.items() if key[1]}
    blamed = {package for (package, _), state in tests.items() if state == "failed"}
    broken = [
        key for key, state in states.items() if not key[1] and state == "failed" and key[0] not in blamed
    ]
    tests |= dict.fromkeys(broken, "failed")
    names = {key: ".".join(key).strip(".") for key in tests}
    failing = [(names[key], said.get(key, "")) for key, state in tests.items() if state == "failed"]
    numbers = {state: list(tests.values()).count(state) for state in ("passed", "failed", "skipped")}
    doubt = "its output is too long to be counted" if LEFT_OUT.search(output) else ""
    return _tally(counted(**numbers), failing, list(names.values()), doubt)


def _tally(counts: Counts, failing: list[tuple[str, str]], names: list[str], doubt: str) -> Tally:
    """A tally of tests that failed with their causes, and the names of all."""
    failing.sort()
    causes = tuple(cause[:CAUSE_LIMIT] for _, cause in failing)
    return Tally(counts, tuple(name for name, _ in failing), whole(names), causes, doubt)


def _doubt(failed: int, shown: int) -> str:
    return "" if shown == failed else f"its report says that {failed} failed and shows {shown}"


def _go_events(output: str) -> Iterator[_GoEvent]:
    decoder = msgspec.json.Decoder(_GoEvent)
    for line in output.splitlines():
        if line.startswith('{"'):
            try:
                event = decoder.decode(line)
            except msgspec.MsgspecError:
                continue
            if event.action and event.package:
                yield event


class _JestCase(msgspec.Struct):
    full_name: str = msgspec.field(name="fullName", default="")
    title: str = ""
    status: str = ""
    messages: list[str] | None = msgspec.field(name="failureMessages", default=None)


class _JestFile(msgspec.Struct):
    name: str = ""
    status: str = ""
    message: str | None = None
    cases: list[_JestCase] = msgspec.field(name="assertionResults", default_factory=list)


class _JestReport(msgspec.Struct):
    """What jest and vitest write with `--json` and `--reporter=json`."""

    total: int = msgspec.field(name="numTotalTests")
    passed: int = msgspec.field(name="numPassedTests")
    failed: int = msgspec.field(name="numFailedTests")
    files: list[_JestFile] = msgspec.field(name="testResults")
    pending: int = msgspec.field(name="numPendingTests", default=0)
    todo: int = msgspec.field(name="numTodoTests", default=0)


def read_jest(content: bytes) -> Tally | None:
    """Read the JSON of jest or vitest. A file whose tests could not be run counts as one failing test."""
    report = _decode(content, _JestReport, b'{"num')
    if report is None:
        return None
    broken = [file for file in report.files if file.status == "failed" and not _failing_cases(file)]
    failing = [
        (_name_of(case), "\n".join(case.messages or ()))
        for file in report.files
        for case in _failing_cases(file)
    ]
    failing += [(file.name or "unnamed", file.message or "") for file in broken]
    names = [_name_of(case) for file in report.files for case in file.cases]
    shown = sum(len(_failing_cases(file)) for file in report.files)
    counts = counted(
        total=report.total + len(broken),
        passed=report.passed,
        failed=report.failed + len(broken),
        skipped=report.pending + report.todo,
    )
    return _tally(counts, failing, names, _doubt(report.failed, shown))


def _failing_cases(file: _JestFile) -> list[_JestCase]:
    return [case for case in file.cases if case.status == "failed"]


def _name_of(case: _JestCase) -> str:
    return case.full_name.strip() or case.title or "unnamed"


class _MochaStats(msgspec.Struct):
    passes: int
    pending: int
    failures: int


class _MochaCase(msgspec.Struct):
    full_title: str = msgspec.field(name="fullTitle", default="")
    title: str = ""
    err: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.full_title or self.title or "unnamed"


class _MochaReport(msgspec.Struct):
    stats: _MochaStats
    tests: list[_MochaCase] = []
    failures: list[_MochaCase] = []


def read_mocha(content: bytes) -> Tally | None:
    """Read the JSON of mocha, in a file of its own or after whatever the tests printed."""
    report = _decode(content, _MochaReport, b'{\n  "stats"')
    if report is None:
        return None
    stats = report.stats
    failing = [(case.name, str((case.err or {}).get("message", ""))) for case in report.failures]
    counts = counted(passed=stats.passes, failed=stats.failures, skipped=stats.pending)
    names = [case.name for case in report.tests]
    return _tally(counts, failing, names, _doubt(stats.failures, len(failing)))


def _decode(content: bytes, shape: type[Shape], opening: bytes) -> Shape | None:
    """A JSON document, which may come after something else; of several, the last."""
    last = content[max(content.rfind(opening), 0) :]
    found = (decoded(candidate[: candidate.rfind(b"}") + 1], shape) for candidate in (content, last))
    return next((report for report in found if report is not None), None)
