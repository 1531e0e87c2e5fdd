"""Counts read from what Python's own unittest prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.kernel.evidence import Counts
from planforge.workspace.reports.runners import read_unittest
from planforge.workspace.reports.tally import Tally
from programs import counts_skipped
from repositories import write

HEAD = "import os, sys, unittest\nclass Case(unittest.TestCase):\n"
PASSES = "    def test_good(self): pass\n"
FAILS = "    def test_bad(self): self.fail('no')\n"
BREAKS = "    def test_broken(self): raise RuntimeError('oh')\n"
SKIPPED = "    @unittest.skip('later')\n    def test_skipped(self): pass\n"
EXPECTED = "    @unittest.expectedFailure\n    def test_expected(self): self.fail('as expected')\n"
UNEXPECTED = "    @unittest.expectedFailure\n    def test_unexpected(self): pass\n"
SUBTESTS = (
    "    def test_parts(self):\n"
    "        for i in range(3):\n"
    "            with self.subTest(i=i): self.assertEqual(i, 1)\n"
)
BROKEN_CLASS = "    @classmethod\n    def setUpClass(cls): raise RuntimeError('oh')\n"
BROKEN_MODULE = "def setUpModule(): raise RuntimeError('oh')\n"
LOGS = "    def test_logs(self): print('ERROR: disk (full)', 'FAIL: x (y)', sep='\\n', file=sys.stderr)\n"


def counts(total: int, passed: int, failed: int, skipped: int) -> Counts:
    return Counts(total=total, passed=passed, failed=failed, skipped=skipped)


def unittest_output(directory: Path, source: str) -> str:
    write(directory, {"test_it.py": source})
    process = subprocess.run(
        [sys.executable, "-m", "unittest"],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return process.stdout.decode()


@pytest.mark.parametrize(
    ("source", "expected", "failing"),
    [
        (HEAD + PASSES, counts(1, 1, 0, 0), ()),
        (HEAD + PASSES + FAILS, counts(2, 1, 1, 0), ("test_it.Case.test_bad",)),
        pytest.param(
            HEAD + PASSES + FAILS + BREAKS + SKIPPED + EXPECTED,
            counts(5, 2, 2, 1),
            ("test_it.Case.test_bad", "test_it.Case.test_broken"),
            marks=counts_skipped,
        ),
        (HEAD + UNEXPECTED, counts(1, 0, 1, 0), ("test_it.Case.test_unexpected",)),
        (HEAD + EXPECTED, counts(1, 1, 0, 0), ()),
        pytest.param(HEAD + SKIPPED, counts(1, 0, 0, 1), (), marks=counts_skipped),
        (HEAD + "    pass\n", counts(0, 0, 0, 0), ()),
        (HEAD + SUBTESTS, counts(1, 0, 2, 0), ("test_it.Case.test_parts",)),
        (HEAD + BROKEN_CLASS + PASSES, counts(0, 0, 1, 0), ("test_it.Case.setUpClass",)),
        (HEAD + PASSES + BROKEN_MODULE, counts(0, 0, 1, 0), ("test_it.setUpModule",)),
        ("import nothing_like_it\n", counts(1, 0, 1, 0), ("unittest.loader._FailedTest.test_it",)),
        ("this is no Python\n", counts(1, 0, 1, 0), ("unittest.loader._FailedTest.test_it",)),
        (HEAD + LOGS, counts(1, 1, 0, 0), ()),
    ],
)
def test_unittest_is_read_as_it_is(
    tmp_path: Path, source: str, expected: Counts, failing: tuple[str, ...]
) -> None:
    assert read_unittest(unittest_output(tmp_path, source)) == Tally(expected, failing)


@pytest.mark.parametrize("where", ["stdout", "stderr"])
@pytest.mark.parametrize("rest", [PASSES, FAILS, SKIPPED])
def test_a_test_that_prints_a_summary_of_its_own_makes_all_summaries_doubtful(
    tmp_path: Path, rest: str, where: str
) -> None:
    forged = f"print('Ran 100 tests in 0.1s\\n\\nOK', file=sys.{where})\n"
    assert read_unittest(unittest_output(tmp_path, HEAD + rest + forged)) is None


@pytest.mark.parametrize("code", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_program_that_dies_on_the_way_leaves_no_count(tmp_path: Path, code: str) -> None:
    assert read_unittest(unittest_output(tmp_path, f"{HEAD}    def test_it(self): {code}\n")) is None


@pytest.mark.parametrize(
    "output",
    [
        "",
        "OK",
        "Ran 3 tests in 0.1s",
        "Ran 3 tests in 0.1s\n\nsomething else",
        "He said: Ran 3 tests in 0.1s\n\nOK",
        "Ran many tests in 0.1s\n\nOK",
        "OK\nRan 3 tests in 0.1s\n",
    ],
)
def test_half_a_summary_is_none(output: str) -> None:
    assert read_unittest(output) is None


def test_the_older_form_of_names_is_read_too() -> None:
    output = (
        "FAIL: test_a (test_it.Case)\n---\nERROR: test_b (test_it.Case)\n---\n"
        "Ran 2 tests in 0s\n\nFAILED (failures=1, errors=1)\n"
    )
    expected = Tally(counts(2, 0, 2, 0), ("test_it.Case.test_a", "test_it.Case.test_b"))
    assert read_unittest(output) == expected


@given(st.text(st.sampled_from("Ran 3tesin0.1\nOKFILED(=,)"), max_size=200))
def test_no_output_makes_the_reader_fail(output: str) -> None:
    tally = read_unittest("Ran 3 tests in 0.1s\n\n" + output)
    assert tally is None or tally.counts.total == 3
