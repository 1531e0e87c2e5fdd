"""Checks of real projects: only what was counted and did not fail passes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.objects import Objects
from planforge.workspace import checks
from planforge.workspace.checks import Check, Report, judge
from planforge.workspace.reports import REPORT_LIMIT, Tally
from programs import counts_skipped
from repositories import write

UNITTEST = (sys.executable, "-m", "unittest")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=junit.xml")
PASS, FAIL, CANNOT_TELL = Outcome.PASS, Outcome.FAIL, Outcome.CANNOT_TELL
HEAD = "import os, sys, time, unittest\nclass Case(unittest.TestCase):\n"
FORGED = "print('Ran 100 tests in 0.1s\\n\\nOK')\n"
GOOD_REPORT = "<testsuite><testcase name='a'/></testsuite>"
BAD_REPORT = "<testsuite><testcase name='a'/><testcase name='b'><failure/></testcase></testsuite>"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    return checkout


def observe(check: Check | None, checkout: Path) -> Evidence:
    return asyncio.run(checks.run(check, checkout, "c" * 40, "t" * 40, Objects(checkout.parent / "objects")))


def printed(evidence: Evidence, checkout: Path) -> bytes:
    return Objects(checkout.parent / "objects").get(evidence.output)


def leaving(report: str | bytes, code: int = 0) -> tuple[str, ...]:
    """A command that writes a report and ends with a code."""
    content = report.encode() if isinstance(report, str) else report
    program = f"import sys; open('junit.xml', 'wb').write({content!r}); sys.exit({code})"
    return (sys.executable, "-c", program)


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        ("    def test_a(self): pass\n    def test_b(self): pass\n", PASS, "2 of 2 tests passed"),
        pytest.param(
            "    def test_a(self): pass\n    @unittest.skip('')\n    def test_b(self): pass\n",
            PASS,
            "1 of 2 tests passed, 1 skipped",
            marks=counts_skipped,
        ),
        ("    @unittest.expectedFailure\n    def test_a(self): self.fail()\n", PASS, "1 of 1 tests passed"),
        ("    def test_a(self): self.fail('no')\n", FAIL, "1 of 1 tests failed"),
        ("    def test_a(self): import nothing_like_it\n", FAIL, "1 of 1 tests failed"),
        ("    @unittest.expectedFailure\n    def test_a(self): pass\n", FAIL, "1 of 1 tests failed"),
        ("    @unittest.skip('')\n    def test_a(self): pass\n", CANNOT_TELL, "no test ran"),
        ("    pass\n", CANNOT_TELL, "no test ran"),
        (
            "    def test_a(self): os.kill(os.getpid(), 9)\n",
            CANNOT_TELL,
            f"it was killed by signal {signal.SIGKILL.value}",
        ),
        (
            "    def test_a(self): os._exit(0)\n",
            CANNOT_TELL,
            "it ended with 0 and left no count of tests",
        ),
        (
            "    def test_a(self): os._exit(7)\n",
            CANNOT_TELL,
            "it ended with 7 and left no count of tests",
        ),
        (
            f"    def test_a(self): {FORGED}",
            CANNOT_TELL,
            "it ended with 0 and left no count of tests",
        ),
        (
            "    @unittest.skip('')\n    def test_a(self): pass\nprint('Ran 9 tests in 1s\\n\\nOK')\n",
            CANNOT_TELL,
            "",
        ),
        ("    def test_a(self): self.fail()\nprint('Ran 9 tests in 1s\\n\\nOK')\n", CANNOT_TELL, ""),
    ],
)
def test_unittest_projects(checkout: Path, body: str, outcome: Outcome, reason: str) -> None:
    write(checkout, {"test_it.py": HEAD + body})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST), checkout)
    assert evidence.outcome == outcome, printed(evidence, checkout).decode()
    assert evidence.reason.endswith(reason)


@pytest.mark.parametrize(
    ("source", "outcome", "reason"),
    [
        ("def test_a(): pass\n", PASS, "1 of 1 tests passed"),
        ("def test_a(): assert False\n", FAIL, "1 of 1 tests failed"),
        ("import nothing_like_it\n", FAIL, "1 of 1 tests failed"),
        ("import pytest\n@pytest.mark.skip\ndef test_a(): pass\n", CANNOT_TELL, "no test ran"),
        ("import pytest\n@pytest.mark.xfail\ndef test_a(): assert False\n", CANNOT_TELL, "no test ran"),
        ("x = 1\n", CANNOT_TELL, "no test ran"),
        (
            "import os\ndef test_a(): os._exit(0)\n",
            CANNOT_TELL,
            "it ended with 0 and left no count of tests",
        ),
    ],
)
def test_pytest_projects(checkout: Path, source: str, outcome: Outcome, reason: str) -> None:
    write(checkout, {"test_it.py": source})
    evidence = observe(Check(command=PYTEST, report=Report.JUNIT), checkout)
    assert (evidence.outcome, evidence.reason) == (outcome, reason)


def test_evidence_says_what_was_run_on_what_and_what_came_of_it(checkout: Path) -> None:
    body = "    def test_a(self): self.fail('because')\n    def test_b(self): pass\n"
    write(checkout, {"test_it.py": HEAD + body})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST), checkout)
    assert (evidence.check, evidence.command, evidence.exit_code) == ("tests", UNITTEST, 1)
    assert evidence.counts == Counts(total=2, passed=1, failed=1, skipped=0)
    assert evidence.failing == ("test_it.Case.test_a",)
    assert (evidence.commit, evidence.tree) == ("c" * 40, "t" * 40)
    assert b"because" in printed(evidence, checkout)
    assert evidence.seconds > 0


def test_output_of_many_megabytes_does_not_hide_the_summary(checkout: Path) -> None:
    write(checkout, {"test_it.py": f"{HEAD}    def test_a(self): print('x' * 9_000_000)\n"})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST), checkout)
    assert evidence.outcome == PASS
    assert len(printed(evidence, checkout)) < 5_000_000


def test_a_check_that_does_not_end_cannot_tell(checkout: Path) -> None:
    write(checkout, {"test_it.py": f"{HEAD}    def test_a(self): time.sleep(600)\n"})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST, seconds=0.5), checkout)
    assert (evidence.outcome, evidence.reason) == (CANNOT_TELL, "it did not end within 0.5 s")
    assert evidence.exit_code is None


def test_a_check_whose_time_is_up_cannot_tell_whatever_its_report_says(checkout: Path) -> None:
    program = f"import time; open('junit.xml', 'w').write({GOOD_REPORT!r}); time.sleep(600)"
    check = Check(command=(sys.executable, "-c", program), report=Report.JUNIT, seconds=1.0)
    assert observe(check, checkout).outcome == CANNOT_TELL


def test_a_command_that_does_not_exist_cannot_tell(checkout: Path) -> None:
    evidence = observe(Check(command=("no-such-program", "x"), report=Report.UNITTEST), checkout)
    assert evidence.outcome == CANNOT_TELL
    assert evidence.reason == "cannot start `no-such-program`: No such file or directory"
    assert (evidence.command, evidence.exit_code, evidence.counts) == (("no-such-program", "x"), None, None)


def test_an_empty_command_cannot_tell(checkout: Path) -> None:
    assert observe(Check(command=(), report=Report.UNITTEST), checkout).outcome == CANNOT_TELL


def test_without_a_check_nobody_can_tell(checkout: Path) -> None:
    evidence = observe(None, checkout)
    assert (evidence.outcome, evidence.reason) == (CANNOT_TELL, "no check is configured")
    assert printed(evidence, checkout) == b""


@pytest.mark.parametrize(
    ("command", "outcome", "reason"),
    [
        (leaving(GOOD_REPORT), PASS, "1 of 1 tests passed"),
        (leaving(BAD_REPORT), FAIL, "1 of 2 tests failed"),
        (leaving(GOOD_REPORT, code=1), FAIL, "it ended with 1 although no test failed"),
        (leaving("<testsuite/>"), CANNOT_TELL, "no test ran"),
        (leaving(""), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (leaving("<testsuite>"), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (("true",), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (("false",), CANNOT_TELL, "it ended with 1 and left no count of tests"),
        (("mkfifo", "junit.xml"), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (("mkdir", "junit.xml"), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (("ln", "-s", "junit.xml", "junit.xml"), CANNOT_TELL, "it ended with 0 and left no count of tests"),
        (
            ("truncate", "-s", str(REPORT_LIMIT + 1), "junit.xml"),
            CANNOT_TELL,
            "it ended with 0 and left no count of tests",
        ),
    ],
)
def test_reports_that_commands_leave(
    checkout: Path, command: tuple[str, ...], outcome: Outcome, reason: str
) -> None:
    evidence = observe(Check(command=command, report=Report.JUNIT), checkout)
    assert (evidence.outcome, evidence.reason) == (outcome, reason)


@pytest.mark.parametrize("junit", ["../outside.xml", "{outside}", "link.xml", "up/outside.xml"])
def test_a_report_outside_the_checkout_is_neither_read_nor_removed(checkout: Path, junit: str) -> None:
    outside = checkout.parent / "outside.xml"
    outside.write_text(GOOD_REPORT)
    (checkout / "link.xml").symlink_to(outside)
    (checkout / "up").symlink_to("..")
    check = Check(command=("true",), report=Report.JUNIT, junit=junit.format(outside=outside))
    assert observe(check, checkout).outcome == CANNOT_TELL
    assert outside.read_text() == GOOD_REPORT


def test_a_report_that_the_command_leads_out_of_the_checkout_is_not_read(checkout: Path) -> None:
    outside = checkout.parent / "outside.xml"
    outside.write_text(GOOD_REPORT)
    check = Check(command=("ln", "-s", str(outside), "junit.xml"), report=Report.JUNIT)
    assert observe(check, checkout).outcome == CANNOT_TELL


@pytest.mark.parametrize("linked", [True, False])
def test_a_report_that_came_with_the_tree_says_nothing(checkout: Path, linked: bool) -> None:
    write(checkout, {"old.xml" if linked else "junit.xml": GOOD_REPORT})
    if linked:
        (checkout / "junit.xml").symlink_to("old.xml")
    evidence = observe(Check(command=("true",), report=Report.JUNIT), checkout)
    assert (evidence.outcome, evidence.counts) == (CANNOT_TELL, None)


def test_a_check_sees_only_the_short_environment(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "leaked")
    evidence = observe(Check(command=("env",), report=Report.UNITTEST), checkout)
    assert b"leaked" not in printed(evidence, checkout)
    assert os.environ["PATH"].encode() in printed(evidence, checkout)


# The judgement alone

NUMBERS = st.integers(0, 5)
COUNTS = st.builds(Counts, total=NUMBERS, passed=NUMBERS, failed=NUMBERS, skipped=NUMBERS)
TALLIES = st.none() | st.builds(Tally, COUNTS, st.just(()))


@given(exit_code=st.none() | st.integers(-15, 3), tally=TALLIES)
def test_only_a_clean_end_with_a_counted_test_and_no_failure_passes(
    exit_code: int | None, tally: Tally | None
) -> None:
    judgement = judge(exit_code, tally, 1.0)
    deserved = (
        exit_code == 0
        and tally is not None
        and tally.counts.total - tally.counts.skipped >= 1
        and tally.counts.failed == 0
    )
    assert (judgement.outcome is PASS) == deserved
    assert judgement.reason
    if exit_code is None or exit_code < 0 or tally is None:
        assert judgement.outcome is CANNOT_TELL


def test_what_a_check_printed_is_kept_without_its_secrets_and_counted_with_them(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "-".join(("open", "sesame", "4711"))
    monkeypatch.setenv("DOOR_TOKEN", secret)
    write(checkout, {"test_it.py": HEAD + f"    def test_a(self): print('{secret} \\xff')\n"})
    evidence = observe(Check(command=UNITTEST, report=Report.UNITTEST), checkout)
    assert (evidence.outcome, evidence.reason) == (PASS, "1 of 1 tests passed")
    assert b"[redacted:DOOR_TOKEN]" in printed(evidence, checkout)
    stored = [path.read_bytes() for path in (checkout.parent / "objects").rglob("*") if path.is_file()]
    assert not any(secret.encode() in content for content in stored)
