"""What exit codes, counts and output add up to, and what they do not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.histories import PASSED
from planforge.kernel.evidence import Counts, Evidence, Outcome, Part
from planforge.workspace.checks.judgement import (
    contradiction,
    judge_command,
    judge_tests,
    names_joined,
    obstacle_in,
    rejudged,
)
from planforge.workspace.reports.findings import Findings
from planforge.workspace.reports.tally import Tally

PASS, FAIL, CANNOT_TELL = Outcome.PASS, Outcome.FAIL, Outcome.CANNOT_TELL


def counts(total: int, passed: int, failed: int = 0, skipped: int = 0) -> Counts:
    return Counts(total=total, passed=passed, failed=failed, skipped=skipped)


@pytest.mark.parametrize(
    ("exit_code", "output", "reason"),
    [
        (127, "sh: 1: jest: not found\n", "`jest` was not found"),
        (127, "bash: line 1: ./run-tests: No such file or directory\n", "`./run-tests` was not found"),
        (127, "/usr/bin/env: 'pythonx': No such file or directory\n", "`pythonx` was not found"),
        (127, "", "a command was not found"),
        (126, "", "a command could not be executed"),
        (1, "/x/.venv/bin/python: No module named pytest\n", "`pytest` is not installed"),
        (101, "error: no such command: `clippy`\n", "`clippy` is not installed"),
        (
            2,
            "make: mypy: No such file or directory\nmake: *** [Makefile:2: t] Error 127\n",
            "`mypy` was not found",
        ),
        (2, "make[1]: *** [Makefile:2: t] Error 126\n", "a command could not be executed"),
        (1, "error: Recipe `test` failed on line 3 with exit code 127\n", "a command was not found"),
        (137, "", "the runner was killed by signal 9"),
        (139, "Segmentation fault (core dumped)\n", "the runner was killed by signal 11"),
        (2, "make: *** [Makefile:2: t] Error 137\n", "the runner was killed by signal 9"),
        (2, "make: *** [Makefile:3: test] Segmentation fault\n", "the runner crashed (Segmentation fault)"),
        (
            101,
            "error: test failed\n\nCaused by:\n  process didn't exit (signal: 11, SIGSEGV: invalid memory)\n",
            "the runner was killed by signal 11",
        ),
        (3, "INTERNALERROR> Traceback\n", "the runner broke (exit code 3)"),
        (
            134,
            "FATAL ERROR: JavaScript heap out of memory\n",
            "it ran out of memory (JavaScript heap out of memory)",
        ),
        (1, "npm error code ENOTFOUND\n", "there is no network"),
        (1, "OSError: [Errno 28] No space left on device\n", "there is no space left on the disk"),
        (1, "Error: listen EADDRINUSE: address already in use :::3000\n", "a port is in use"),
        (1, "EMFILE: too many open files, watch\n", "too many files are open"),
        (1, "assert 1 == 2\n", ""),
        (1, "sh: 1: something: not found\n", ""),  # it went on, and failed for another reason
        (130, "", ""),
        (255, "", ""),
    ],
)
def test_what_else_may_be_to_blame(exit_code: int, output: str, reason: str) -> None:
    assert obstacle_in(exit_code, output) == reason


def test_only_the_end_of_the_output_tells_why_it_ended() -> None:
    assert obstacle_in(1, "No space left on device\n" + "fine\n" * 100) == ""


def test_an_exit_code_that_counts_failures_is_no_signal() -> None:
    many = Tally(counts(137, 0, 137), ())
    assert judge_tests(137, many, 1.0, "").outcome is FAIL
    assert judge_tests(137, None, 1.0, "").reason == "the runner was killed by signal 9"


def test_what_a_test_printed_about_the_machine_does_not_excuse_a_failure() -> None:
    passed = Tally(counts(2, 2), ())
    assert judge_tests(1, passed, 1.0, "a test logs EADDRINUSE\n").outcome is FAIL
    assert judge_tests(127, passed, 1.0, "").outcome is CANNOT_TELL


CAUSES = ("OSError: Address already in use",)


@pytest.mark.parametrize(
    ("tally", "outcome"),
    [
        (Tally(counts(3, 2, 1), ("a",), causes=CAUSES), CANNOT_TELL),
        (Tally(counts(3, 1, 2), ("a", "b"), causes=CAUSES), FAIL),
        (Tally(counts(3, 1, 2), ("a", "b"), causes=(*CAUSES, "1 != 2")), FAIL),
        (Tally(counts(3, 2, 1), ("a",)), FAIL),
    ],
)
def test_failures_are_excused_only_if_each_one_tells_of_the_machine(tally: Tally, outcome: Outcome) -> None:
    assert judge_tests(1, tally, 1.0, "").outcome is outcome


@pytest.mark.parametrize(
    ("exit_code", "findings", "reported", "outcome", "reason"),
    [
        (0, None, False, PASS, "it ended with 0"),
        (0, Findings(0), False, PASS, "nothing found"),
        (0, Findings(1), True, PASS, "1 finding"),
        (1, Findings(3), True, FAIL, "3 findings"),
        (1, Findings(None), False, FAIL, "it ended with 1"),
        (2, Findings(0), True, CANNOT_TELL, "it ended with 2 although it found nothing"),
        (2, None, True, CANNOT_TELL, "it ended with 2 and left no report"),
        (0, None, True, CANNOT_TELL, "it ended with 0 and left no report"),
        (0, Findings(doubt="it stopped"), True, CANNOT_TELL, "it stopped"),
        (None, None, False, CANNOT_TELL, "it did not end within 5 s"),
        (-9, None, False, CANNOT_TELL, "it was killed by signal 9"),
        (127, None, False, CANNOT_TELL, "a command was not found"),
    ],
)
def test_commands_that_count_no_tests(
    exit_code: int | None, findings: Findings | None, reported: bool, outcome: Outcome, reason: str
) -> None:
    assert judge_command(exit_code, findings, 5.0, "", reported=reported) == (outcome, reason)


@pytest.mark.parametrize(
    ("tally", "line", "agree"),
    [
        (counts(3, 2, 1), "=== 1 failed, 2 passed in 0.1s ===", True),
        (counts(1, 0, 1), "=== 1 passed, 1 error in 0.1s ===", True),  # it broke when it was torn down
        (counts(2, 0, 2), "=== 1 failed, 1 error in 0.1s ===", True),
        (counts(1, 0, 1), "2 failed, 6 deselected, 2 subtests passed in 0.49s", True),
        (counts(2, 1, 0, 1), "=== 1 xpassed, 1 xfailed in 0.1s ===", True),
        (counts(3, 3), "=== 1 failed, 2 passed in 0.1s ===", False),
        (counts(3, 2, 0, 1), "=== 1 failed, 2 passed in 0.1s ===", False),
        (counts(3, 2, 1), "=== 3 passed in 0.1s ===", False),
        (counts(9, 9), "=== 3 passed in 0.1s ===", False),
        (counts(3, 3), "=== 9 passed in 0.1s ===", False),
        (counts(3, 3), "no line at all", True),
        (counts(3, 3), "=== 9 passed in 0.1s ===\n=== 3 passed in 0.1s ===", True),  # which one is not known
    ],
)
def test_pytests_report_and_its_line_must_agree(tally: Counts, line: str, agree: bool) -> None:
    assert (contradiction(Tally(tally, ()), f"{line}\n") == "") is agree


# Judged again


def with_parts(*parts: Part, **fields: Any) -> Evidence:
    return msgspec.structs.replace(PASSED, parts=parts, **fields)


TESTS = Part(name="tests", outcome=PASS, reason="", exit_code=0, counts=counts(7, 7))


def test_evidence_is_judged_again_from_its_numbers_alone() -> None:
    assert rejudged(PASSED) is PASS
    assert rejudged(msgspec.structs.replace(PASSED, exit_code=1)) is FAIL
    assert rejudged(msgspec.structs.replace(PASSED, counts=None)) is CANNOT_TELL
    assert rejudged(with_parts(TESTS)) is PASS
    broken = Part(name="build", outcome=PASS, reason="", exit_code=2)
    assert rejudged(with_parts(broken, TESTS)) is FAIL
    loose = msgspec.structs.replace(broken, required=False)
    assert rejudged(with_parts(loose, TESTS)) is PASS
    assert rejudged(with_parts(msgspec.structs.replace(TESTS, counts=None), counts=None)) is CANNOT_TELL
    killed = msgspec.structs.replace(broken, exit_code=None)
    assert rejudged(with_parts(killed, TESTS)) is CANNOT_TELL


def test_counts_that_are_not_those_of_the_parts_say_nothing() -> None:
    assert rejudged(with_parts(TESTS, counts=counts(9, 9))) is CANNOT_TELL
    assert rejudged(with_parts(Part(name="build", outcome=PASS, reason="", exit_code=0))) is CANNOT_TELL


@given(st.lists(st.text(), max_size=5))
def test_names_are_kept_a_line_each(names: list[str]) -> None:
    assert len(names_joined(names).split(b"\n")) == max(len(names), 1)
