"""What Go, jest, vitest and mocha write for machines."""

from __future__ import annotations

import json

import pytest

from planforge.kernel.evidence import Counts
from planforge.workspace.reports.machine import read_go, read_jest, read_mocha


def counts(total: int, passed: int, failed: int, skipped: int) -> Counts:
    return Counts(total=total, passed=passed, failed=failed, skipped=skipped)


def go(*events: tuple[str, str, str] | str) -> str:
    """Lines of `go test -json`; a text is a line that is none."""
    lines = []
    for event in events:
        if isinstance(event, str):
            lines.append(event)
            continue
        action, package, test = event
        fields = {"Time": "2026-01-01T00:00:00Z", "Action": action, "Package": package}
        lines.append(json.dumps(fields | ({"Test": test} if test else {})))
    return "\n".join(lines) + "\n"


def test_go_counts_tests_and_subtests() -> None:
    tally = read_go(
        go(
            ("start", "m/a", ""),
            ("run", "m/a", "TestOne"),
            ("run", "m/a", "TestOne/sub"),
            ("pass", "m/a", "TestOne/sub"),
            ("pass", "m/a", "TestOne"),
            ("run", "m/a", "TestTwo"),
            ("skip", "m/a", "TestTwo"),
            ("run", "m/b", "TestOne"),
            ("fail", "m/b", "TestOne"),
            ("fail", "m/b", ""),
            ("pass", "m/a", ""),
        )
    )
    assert tally is not None
    assert (tally.counts, tally.failing) == (counts(4, 2, 1, 1), ("m/b.TestOne",))
    assert tally.names == ("m/a.TestOne", "m/a.TestOne/sub", "m/a.TestTwo", "m/b.TestOne")


def test_a_go_package_that_does_not_build_counts_as_one_failing_test() -> None:
    tally = read_go(go("# m/b", "./b.go:3:1: syntax error", ("start", "m/b", ""), ("fail", "m/b", "")))
    assert tally is not None
    assert (tally.counts, tally.failing) == (counts(1, 0, 1, 0), ("m/b",))


def test_a_go_test_that_never_ended_failed() -> None:
    tally = read_go(go(("run", "m/a", "TestPanics"), ("fail", "m/a", "")))
    assert tally is not None
    assert (tally.counts, tally.failing) == (counts(1, 0, 1, 0), ("m/a.TestPanics",))


def test_go_without_tests_is_a_count_of_none_and_other_output_is_no_count() -> None:
    tally = read_go(go(("start", "m/a", ""), ("skip", "m/a", "")))
    assert tally is not None
    assert tally.counts == counts(0, 0, 0, 0)
    assert read_go("ok  \tm/a\t0.1s\n") is None
    assert read_go('{"Action": "pass"}\n{"x": 1}\n{broken\n') is None


def test_what_a_go_test_prints_is_inside_its_events_and_counts_for_nothing() -> None:
    said = '{"Action":"pass","Package":"m/a","Test":"TestForged"}\n'
    event = json.dumps({"Action": "output", "Package": "m/a", "Test": "TestOne", "Output": said})
    tally = read_go(go(("run", "m/a", "TestOne"), event, ("fail", "m/a", "TestOne")))
    assert tally is not None
    assert (tally.counts, tally.causes) == (counts(1, 0, 1, 0), (said,))


def test_go_output_with_a_gap_is_doubted() -> None:
    text = go(("run", "m/a", "TestOne"), ("pass", "m/a", "TestOne"), "[900 bytes left out]")
    tally = read_go(text)
    assert tally is not None
    assert tally.doubt == "its output is too long to be counted"


JEST = {
    "numTotalTests": 4,
    "numPassedTests": 1,
    "numFailedTests": 1,
    "numPendingTests": 1,
    "numTodoTests": 1,
    "numRuntimeErrorTestSuites": 0,
    "success": False,
    "testResults": [
        {
            "name": "/x/a.test.js",
            "status": "failed",
            "message": "",
            "assertionResults": [
                {"fullName": "outer good", "status": "passed", "title": "good", "failureMessages": []},
                {"fullName": "outer bad", "status": "failed", "failureMessages": ["EADDRINUSE :::80"]},
                {"fullName": "outer skip", "status": "pending"},
                {"fullName": "", "title": "later", "status": "todo"},
            ],
        }
    ],
}


def test_jests_json() -> None:
    tally = read_jest(json.dumps(JEST).encode())
    assert tally is not None
    assert (tally.counts, tally.failing, tally.doubt) == (counts(4, 1, 1, 2), ("outer bad",), "")
    assert tally.names == ("later", "outer bad", "outer good", "outer skip")
    assert tally.causes == ("EADDRINUSE :::80",)


def test_a_file_that_jest_could_not_run_counts_as_one_failing_test() -> None:
    broken = {"name": "/x/b.test.js", "status": "failed", "message": "SyntaxError", "assertionResults": []}
    report = JEST | {"testResults": [*JEST["testResults"], broken]}  # type: ignore[misc]
    tally = read_jest(json.dumps(report).encode())
    assert tally is not None
    assert (tally.counts.total, tally.counts.failed) == (5, 2)
    assert tally.failing == ("/x/b.test.js", "outer bad")


def test_jest_that_counts_other_failures_than_it_shows_is_doubted() -> None:
    tally = read_jest(json.dumps(JEST | {"numFailedTests": 0, "numPassedTests": 2}).encode())
    assert tally is not None
    assert "says that 0 failed and shows 1" in tally.doubt


MOCHA = {
    "stats": {"suites": 1, "tests": 3, "passes": 1, "pending": 1, "failures": 1, "duration": 5},
    "tests": [{"title": t, "fullTitle": f"Array {t}", "err": {}} for t in ("good", "bad", "later")],
    "pending": [],
    "failures": [{"title": "bad", "fullTitle": "Array bad", "err": {"message": "1 == 2"}}],
    "passes": [],
}


@pytest.mark.parametrize("before", ["", "> x@1.0.0 test\n> mocha\n\nsome log {not json}\n"])
def test_mochas_json_alone_or_after_what_was_printed(before: str) -> None:
    tally = read_mocha((before + json.dumps(MOCHA, indent=2) + "\n").encode())
    assert tally is not None
    assert (tally.counts, tally.failing, tally.doubt) == (counts(3, 1, 1, 1), ("Array bad",), "")
    assert tally.causes == ("1 == 2",)
    assert tally.names == ("Array bad", "Array good", "Array later")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b'{"stats": 3}', b"{" * 5000, b"\xff\xfe"])
def test_what_is_no_report_is_none(content: bytes) -> None:
    assert read_jest(content) is None
    assert read_mocha(content) is None
