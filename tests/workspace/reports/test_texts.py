"""What runners print for people: each as its runner prints it, and what does not add up."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.kernel.evidence import Counts
from planforge.workspace.reports.tap import read_tap
from planforge.workspace.reports.texts import read_summaries
from tries import tries


def counts(total: int, passed: int, failed: int, skipped: int) -> Counts:
    return Counts(total=total, passed=passed, failed=failed, skipped=skipped)


HEADING = "============================= test session starts ==============================\n"

PYTEST = f"""{HEADING}platform linux -- Python 3.11.7, pytest-9.2.0, pluggy-1.7.0
collected 9 items

test_a.py .FEs.                                                          [100%]
=========================== short test summary info ============================
FAILED test_a.py::test_bad - assert 0
FAILED test_a.py::test_p[c - d] - assert 0
ERROR test_a.py::test_tear - RuntimeError: teardown
=== 2 failed, 3 passed, 1 skipped, 1 xfailed, 1 warning, 1 error in 0.79s ====
"""
UNITTEST = """FAIL: test_a (test_it.Case.test_a)
----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (failures=1, skipped=1)
"""
CARGO = """     Running unittests src/lib.rs (target/debug/deps/lab-756bdf999069b019)

running 3 tests
test tests::good ... ok
test tests::later ... ignored
test tests::bad ... FAILED

failures:
    tests::bad

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.12s

error: test failed, to rerun pass `--lib`
     Running tests/it.rs (target/debug/deps/it-4f84d4b0ec9e565c)

running 1 test
test it ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests lab

running 1 test
test src/lib.rs - one (line 1) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
GO = """=== RUN   TestOne
=== RUN   TestOne/sub
--- PASS: TestOne (0.00s)
    --- PASS: TestOne/sub (0.00s)
=== RUN   TestBad
--- FAIL: TestBad (0.00s)
FAIL
FAIL\tm/a\t0.003s
=== RUN   TestSkip
--- SKIP: TestSkip (0.00s)
ok  \tm/b\t0.002s
FAIL\tm/c [build failed]
"""
CTEST = """Test project /work/.planforge-build
    Start 1: good
1/4 Test #1: good .............................   Passed    0.00 sec

50% tests passed, 2 tests failed out of 4

Total Test time (real) =   0.01 sec

The following tests did not run:
\t  4 - skipped (Skipped)
\t  5 - off (Disabled)

The following tests FAILED:
\t  2 - bad (Failed)
\t  3 - crash (Subprocess aborted)
Errors while running CTest
"""
SUREFIRE = """[INFO] -------------------------------------------------------
[INFO]  T E S T S
[INFO] -------------------------------------------------------
[INFO] Running AppTest
[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1, Time elapsed: 0.05 s <<< FAILURE! -- in AppTest
[INFO] Results:
[ERROR] Failures:
[ERROR]   AppTest.adds:12 expected: <1> but was: <2>
[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1
"""
JEST = """FAIL j/x.test.js
  ● outer \u203a bad

    expect(received).toBe(expected)

Test Suites: 1 failed, 1 total
Tests:       1 failed, 1 skipped, 1 todo, 1 passed, 4 total
Snapshots:   0 total
Time:        1.945 s
"""
VITEST = """\x1b[41m\x1b[1m FAIL \x1b[22m\x1b[49m v/x.test.mjs\x1b[2m > \x1b[22mouter\x1b[2m > \x1b[22mbad
\x1b[2m Test Files \x1b[22m \x1b[1m\x1b[31m1 failed\x1b[39m\x1b[22m\x1b[90m (1)\x1b[39m
\x1b[2m      Tests \x1b[22m \x1b[1m\x1b[31m1 failed\x1b[39m\x1b[22m\x1b[2m | \x1b[22m\x1b[1m\x1b[32m1 passed\
\x1b[39m\x1b[22m\x1b[2m | \x1b[22m\x1b[33m1 skipped\x1b[39m\x1b[2m | \x1b[22m\x1b[90m1 todo\x1b[39m\
\x1b[90m (4)\x1b[39m
\x1b[2m   Start at \x1b[22m 04:53:30
"""
MOCHA = """

  Array
    #indexOf()
      ✔ good
      1) is bad

  1 passing (6ms)
  2 pending
  2 failing

  1) Array
       other bad:
     Error: x: y
      at Context.<anonymous> (m/x.js:2:203)

  2) Array
       #indexOf()
         is bad:

      AssertionError [ERR_ASSERTION]: 1 == 2
"""
NODE_TAP = """TAP version 13
# Subtest: good
ok 1 - good
  ---
  duration_ms: 1.421
  ...
# Subtest: bad
not ok 2 - bad
  ---
  failureType: 'testCodeFailure'
  ...
# Subtest: skip
ok 3 - skip # SKIP
# Subtest: todo
not ok 4 - todo # TODO
# Subtest: suite
    # Subtest: inner good
    ok 1 - inner good
    # Subtest: inner bad
    not ok 2 - inner bad
    1..2
not ok 5 - suite
  ---
  failureType: 'subtestsFailed'
  ...
1..5
# tests 6
# suites 1
# pass 2
# fail 2
# cancelled 0
# skipped 1
# todo 1
# duration_ms 159.121733
"""
NODE_SPEC = """✔ good (1.2ms)
✖ bad (1.4ms)
\u2139 tests 2
\u2139 suites 0
\u2139 pass 1
\u2139 fail 1
\u2139 cancelled 0
\u2139 skipped 0
\u2139 todo 0
\u2139 duration_ms 62.6
"""
NODE_TAP_MODULE = """TAP version 14
1..1
# Subtest: tp/x.test.js
    # Subtest: good
        ok 1 - one
        1..1
    ok 1 - good # time=2ms
    # Subtest: bad
        not ok 1 - should be equal
        1..1
    not ok 2 - bad # time=9ms
    ok 3 - skip # SKIP
    1..3
not ok 1 - tp/x.test.js # time=74.006ms
# { total: 3, pass: 1, fail: 1, skip: 1 }
"""
TAPE = """TAP version 13
# good
ok 1 one
ok 2 two
# bad
not ok 3 cmp
  ---
    operator: equal
  ...

1..3
# tests 3
# pass  2
# fail  1
"""
AVA = """TAP version 13
ok 1 - skip # SKIP
not ok 2 - later # TODO
ok 3 - good
not ok 4 - bad
1..4
# tests 3
# pass 1
# skip 1
# fail 2
"""
JASMINE = "Started\n*.F\n\n3 specs, 1 failure, 1 pending spec\nFinished in 0.012 seconds\n"
RSPEC = """Finished in 0.01 seconds (files took 0.1 seconds to load)
4 examples, 1 failure, 1 pending

Failed examples:

rspec ./spec/a_spec.rb:3 # Array is empty
"""
MINITEST = "Finished in 0.001s\n\n5 runs, 7 assertions, 1 failures, 1 errors, 1 skips\n"
PHPUNIT = """PHPUnit 11.0.1 by Sebastian Bergmann and contributors.

There was 1 failure:

1) AppTest::testAdds
Failed asserting that 1 is 2.

FAILURES!
Tests: 5, Assertions: 9, Failures: 1, Skipped: 1.
"""
EXUNIT = "Finished in 0.03 seconds\n2 doctests, 5 tests, 1 failure, 1 skipped\n"
DOTNET = "Failed!  - Failed:     1, Passed:     3, Skipped:     1, Total:     5, Duration: 9 ms - a.dll\n"
DENO = "FAILED | 3 passed (2 steps) | 1 failed | 1 ignored (5ms)\n"
BUN = "\n 3 pass\n 1 skip\n 1 fail\n 4 expect() calls\nRan 5 tests across 2 files. [10.00ms]\n"

PRINTED = {
    "pytest": (
        PYTEST,
        counts(8, 3, 3, 2),
        ("test_a.py::test_bad", "test_a.py::test_p[c - d]", "test_a.py::test_tear"),
    ),
    "unittest": (UNITTEST, counts(3, 1, 1, 1), ("test_it.Case.test_a",)),
    "cargo": (CARGO, counts(5, 3, 1, 1), ("tests::bad",)),
    "go": (GO, counts(5, 2, 2, 1), ("TestBad", "m/c")),
    "ctest": (CTEST, counts(4, 1, 2, 1), ("bad", "crash")),
    "surefire": (SUREFIRE, counts(3, 1, 1, 1), ("AppTest.adds",)),
    "jest": (JEST, counts(4, 1, 1, 2), ("outer \u203a bad",)),
    "vitest": (VITEST, counts(4, 1, 1, 2), ("v/x.test.mjs > outer > bad",)),
    "mocha": (MOCHA, counts(5, 1, 2, 2), ("Array #indexOf() is bad", "Array other bad")),
    "node, TAP": (NODE_TAP, counts(6, 2, 2, 2), ("bad", "inner bad")),
    "node, spec": (NODE_SPEC, counts(2, 1, 1, 0), ("bad",)),
    "node-tap": (NODE_TAP_MODULE, counts(3, 1, 1, 1), ("should be equal",)),
    "tape": (TAPE, counts(3, 2, 1, 0), ("cmp",)),
    "ava": (AVA, counts(4, 1, 1, 2), ("bad",)),
    "jasmine": (JASMINE, counts(3, 1, 1, 1), ()),
    "rspec": (RSPEC, counts(4, 2, 1, 1), ("Array is empty",)),
    "minitest": (MINITEST, counts(5, 2, 2, 1), ()),
    "phpunit": (PHPUNIT, counts(5, 3, 1, 1), ("AppTest::testAdds",)),
    "exunit": (EXUNIT, counts(5, 3, 1, 1), ()),
    "dotnet": (DOTNET, counts(5, 3, 1, 1), ()),
    "deno": (DENO, counts(5, 3, 1, 1), ()),
    "bun": (BUN, counts(5, 3, 1, 1), ()),
}


@pytest.mark.parametrize("runner", PRINTED)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_each_runner_is_read_as_it_prints(runner: str, ends: str) -> None:
    text, expected, failing = PRINTED[runner]
    tally = read_summaries(f"make test\n{text}make: *** [Makefile:2: test] Error 1\n".replace("\n", ends))
    assert tally is not None
    assert (tally.counts, tally.failing, tally.doubt) == (expected, failing, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEADING}collected 0 items\n\n=== no tests ran in 0.01s ===\n", counts(0, 0, 0, 0)),
        ("7 deselected in 0.39s\n", counts(0, 0, 0, 0)),
        ("2 failed, 6 deselected, 2 subtests passed in 0.49s\n", counts(2, 0, 2, 0)),
        ("=== 1 passed in 3601.02s (1:00:01) ===\n", counts(1, 1, 0, 0)),
        ("Test project /x\nNo tests were found!!!\n", counts(0, 0, 0, 0)),
        ("Test Suites: 1 failed, 1 total\nTests:       0 total\n", counts(1, 0, 1, 0)),
        ("OK (5 tests, 9 assertions)\n", counts(5, 5, 0, 0)),
        ("No tests executed!\n", counts(0, 0, 0, 0)),
        ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", counts(0, 0, 0, 0)),
        ("4 examples, 0 failures, 1 error occurred outside of examples\n", counts(5, 4, 1, 0)),
        ("100% tests passed, 0 tests failed out of 3\n", counts(3, 3, 0, 0)),
    ],
)
def test_odd_summaries(text: str, expected: Counts) -> None:
    tally = read_summaries(text)
    assert tally is not None
    assert (tally.counts, tally.doubt) == (expected, "")


def test_pytest_says_how_often_it_warned() -> None:
    tally = read_summaries(PYTEST)
    assert tally is not None
    assert tally.warnings == 1
    assert read_summaries(CARGO).warnings is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    ["", "make: Nothing to be done for 'test'.\n", "ok  \tm/a\t0.1s\n", "5 passed\n", "all 5 tests passed\n"],
)
def test_output_without_a_count_is_none(text: str) -> None:
    assert read_summaries(text) is None


# Several


def test_sessions_that_follow_each_other_are_added_up() -> None:
    tally = read_summaries(PYTEST + PYTEST)
    assert tally is not None
    assert (tally.counts, tally.doubt) == (counts(16, 6, 6, 4), "")
    mixed = read_summaries(PYTEST + CARGO + CTEST)
    assert mixed is not None
    assert (mixed.counts, mixed.doubt) == (counts(17, 7, 6, 4), "")
    assert "tests::bad" in mixed.failing
    assert "test_a.py::test_bad" in mixed.failing


QUIET = "3 passed in 0.10s\n"


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        (QUIET + QUIET, "2 summaries"),
        (UNITTEST + UNITTEST, "2 summaries"),
        (MOCHA + JEST, "2 summaries"),
        (PYTEST + QUIET, "2 summaries"),
        (HEADING + PYTEST, "began within another"),
        (PYTEST + HEADING, "left no summary"),
        (HEADING + UNITTEST, "left no summary"),
        ("running 3 tests\ntest a ... ok\n" + QUIET, "within a session of cargo"),
        ("TAP version 13\n" + JEST + NODE_TAP.removeprefix("TAP version 13\n"), "within a session of node"),
    ],
)
def test_what_may_be_one_inside_another_is_not_added_up(text: str, doubt: str) -> None:
    tally = read_summaries(text)
    assert tally is not None
    assert doubt in tally.doubt


def test_what_a_failing_test_printed_is_no_summary_of_its_own() -> None:
    shown = PYTEST.replace(
        "=========================== short", f"{UNITTEST}\n=========================== short"
    )
    tally = read_summaries(shown)
    assert tally is not None
    assert (tally.counts, tally.doubt) == (counts(8, 3, 3, 2), "")


def test_sessions_with_a_gap_between_them_are_not_added_up() -> None:
    tally = read_summaries(PYTEST + "[9000 bytes left out]\n" + PYTEST)
    assert tally is not None
    assert tally.doubt == "its output is too long to be counted"


# TAP


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("1..3\nok 1\nok 2\n", "it planned 3 tests and ran 2"),
        ("1..2\nok 1\nBail out! no database\n", "it bailed out"),
        ("1..1\nok 1\n1..1\nok 1\n", "it printed several plans of TAP"),
        ("1..1\nok 1\n[9 bytes left out]\n", "its output is too long to be counted"),
        (NODE_TAP.replace("# fail 2", "# fail 0"), "it says that none failed and shows 2 that did"),
    ],
)
def test_tap_that_does_not_add_up_is_doubted(text: str, doubt: str) -> None:
    tally = read_tap(text)
    assert tally is not None
    assert tally.doubt == doubt


def test_output_without_a_plan_is_no_tap() -> None:
    assert read_tap("ok 1 - fine\n") is None
    assert read_tap("") is None


PIECES = st.sampled_from(
    [
        *(text for text, _, _ in PRINTED.values()),
        HEADING,
        QUIET,
        "running 2 tests\n",
        "TAP version 13\n",
        "1..2\n",
    ]
)


@settings(max_examples=tries(320), deadline=None)
@given(st.lists(PIECES, max_size=4), st.text(max_size=30))
def test_no_output_makes_the_reader_fail_and_no_count_is_below_zero(pieces: list[str], noise: str) -> None:
    tally = read_summaries(noise.join(pieces))
    assert tally is None or min(tally.counts.passed, tally.counts.failed, tally.counts.skipped) >= 0


def test_what_several_runs_of_ctest_skipped_is_counted_for_each_alone() -> None:
    one = "50% tests passed, 2 tests failed out of 4\n\nThe following did not run:\n\t  3 - x (Skipped)\n\n"
    tally = read_summaries("Test project /w\n" + one * 3)
    assert tally is not None
    assert (tally.counts.passed, tally.counts.failed, tally.counts.skipped) == (3, 6, 3)


@pytest.mark.dear
def test_numbers_of_thousands_of_digits_do_not_stop_the_reader() -> None:
    many = "9" * 5000
    for text, _, _ in PRINTED.values():
        read_summaries(re.sub(r"\d+", many, text))


@pytest.mark.dear
def test_megabytes_of_lines_that_almost_fit_are_read_in_bearable_time() -> None:
    lines = [
        "1 passed, " * 200,
        "  1) a\n" + "        b\n" * 50,
        "not ok 1 - x\n    ok 2\n",
        "1 pass\n2 fail\n",
    ]
    for line in lines:
        read_summaries((line + "\n") * (1_000_000 // len(line)))
