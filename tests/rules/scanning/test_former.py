"""When tests that were there before a change have to be run again as they were."""

from __future__ import annotations

import pytest

from planforge.rules.scanning.former import former

TESTS = """\
import unittest

from shop import total


class TotalTest(unittest.TestCase):
    def setUp(self):
        self.prices = [1, 2]

    def test_all_count(self):
        self.assertEqual(total(self.prices), 3)

    def test_nothing_is_nothing(self):
        self.assertEqual(total([]), 0)
"""
PATH = "tests/test_total.py"
MORE = """
    def test_one(self):
        self.assertEqual(total([7]), 7)
"""
JAVASCRIPT = """\
import { total } from "../src/total.js";

test("all count", () => {
  expect(total([1, 2])).toBe(3);
});
"""

EXTENDED = {
    "a test at the end": TESTS + MORE,
    "a test in the middle": TESTS.replace("    def test_all", MORE.lstrip("\n") + "\n    def test_all"),
    "several": TESTS + MORE + MORE.replace("test_one", "test_again"),
    "only white space": TESTS.replace("\n\n\n", "\n\n\n\n") + "\n",
    "the line ends of Windows": TESTS.replace("\n", "\r\n"),
}
"""What leaves every test that was there as it was."""

REWRITTEN = {
    "another expectation": TESTS.replace("3)", "4)"),
    "another name": TESTS.replace("test_all_count", "check_all_count"),
    "one is gone, others are new": TESTS[: TESTS.index("\n    def test_nothing")] + MORE,
    "a loader that chooses": TESTS + "\n\ndef load_tests(loader, tests, pattern):\n    return tests\n",
    "another set-up": TESTS.replace("[1, 2]", "[3]"),
    "another import": TESTS.replace("from shop import total", "from fakes import total"),
    "a decorator": TESTS.replace("    def test_all", "    @quietly\n    def test_all"),
    "a second one of the same name": TESTS + MORE.replace("test_one", "test_all_count"),
    "something at the end": TESTS + "\n\nTotalTest.test_all_count = lambda self: None\n",
    "it does not parse": TESTS.replace("class", "klass"),
    "empty": "",
}
"""What does anything else to them."""


@pytest.mark.parametrize("how", EXTENDED)
def test_tests_that_were_only_added_to_are_run_with_the_rest(how: str) -> None:
    assert former({PATH: TESTS}, {PATH: EXTENDED[how], "shop.py": "total = sum\n"}) == ()


@pytest.mark.parametrize("how", REWRITTEN)
def test_tests_that_were_changed_otherwise_are_run_as_they_were(how: str) -> None:
    assert former({PATH: TESTS}, {PATH: REWRITTEN[how]}) == (PATH,)


def test_tests_that_were_deleted_or_moved_are_run_as_they_were_and_new_ones_are_not() -> None:
    assert former({PATH: TESTS}, {}) == (PATH,)
    moved = "tests/unit/test_total.py"
    assert former({PATH: TESTS}, {moved: TESTS}) == (PATH, moved)
    added = "tests/test_more.py"
    found = former({PATH: TESTS, "shop.py": "x = 1\n"}, {PATH: REWRITTEN["empty"], added: TESTS})
    assert found == (added, PATH)


def test_new_tests_and_other_code_ask_for_nothing() -> None:
    assert former({"shop.py": "x = 1\n"}, {"shop.py": "x = 2\n", PATH: TESTS}) == ()


def test_what_tests_load_and_compare_with_counts() -> None:
    for path in ("conftest.py", "tests/__snapshots__/total.snap"):
        assert former({path: "prices = [1]\n"}, {path: "prices = [2]\n"}) == (path,)


def test_other_languages_are_told_by_their_tests_too() -> None:
    path, more = "test/total.test.js", '\ntest("one", () => {\n  expect(total([7])).toBe(7);\n});\n'
    assert former({path: JAVASCRIPT}, {path: JAVASCRIPT + more}) == ()
    assert former({path: JAVASCRIPT}, {path: JAVASCRIPT.replace("toBe(3)", "toBe(4)")}) == (path,)
