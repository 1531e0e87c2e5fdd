"""JUnit XML as runners write it, and as nobody should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.kernel.evidence import Counts
from planforge.workspace.reports.junit import read_junit, read_junits
from planforge.workspace.reports.tally import REPORT_LIMIT
from repositories import write
from tries import tries


def counts(total: int, passed: int, failed: int, skipped: int) -> Counts:
    return Counts(total=total, passed=passed, failed=failed, skipped=skipped)


def report(directory: Path, text: str | bytes) -> Path:
    write(directory, {"junit.xml": text})
    return directory / "junit.xml"


def by_pytest(directory: Path, source: str) -> Path:
    write(directory, {"test_it.py": source})
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=junit.xml"]
    subprocess.run(argv, cwd=directory, capture_output=True, check=False)
    return directory / "junit.xml"


@pytest.mark.dear
@pytest.mark.parametrize(
    ("source", "expected", "failing"),
    [
        (
            "import pytest\n"
            "def test_good(): pass\n"
            "def test_bad(): assert False\n"
            "@pytest.fixture\ndef broken(): raise RuntimeError('oh')\n"
            "def test_broken(broken): pass\n"
            "@pytest.mark.skip\ndef test_skipped(): pass\n"
            "@pytest.mark.xfail\ndef test_expected(): assert False\n"
            "@pytest.mark.xfail(strict=True)\ndef test_unexpected(): pass\n",
            counts(6, 1, 3, 2),
            ("test_it.test_bad", "test_it.test_broken", "test_it.test_unexpected"),
        ),
        ("import nothing_like_it\n", counts(1, 0, 1, 0), ("test_it",)),
        ("x = 1\n", counts(0, 0, 0, 0), ()),
    ],
)
def test_pytests_report_is_read_as_it_is(
    tmp_path: Path, source: str, expected: Counts, failing: tuple[str, ...]
) -> None:
    tally = read_junit(by_pytest(tmp_path, source))
    assert tally is not None
    assert (tally.counts, tally.failing, tally.doubt) == (expected, failing, "")
    assert tally.names is not None
    assert len(tally.names) == expected.total
    assert len(tally.causes) == expected.failed


DIALECTS = {
    "no suite at all": ("<testcase name='a'/>", counts(1, 1, 0, 0), (), ("a",)),
    "suites in suites": (
        "<testsuites tests='3'><testsuite name='o'><testsuite name='i'><testcase classname='c' name='a'/>"
        "<testcase classname='c' name='b'><failure message='no'/></testcase></testsuite>"
        "<testcase name='d'><skipped/></testcase></testsuite></testsuites>",
        counts(3, 1, 1, 1),
        ("c.b",),
        ("c.a", "c.b", "d"),
    ),
    "no names": (
        "<testsuite><testcase/><testcase file='f.py'><error/></testcase></testsuite>",
        counts(2, 1, 1, 0),
        ("f.py",),
        ("f.py", "unnamed"),
    ),
    "attributes and no cases": (
        "<testsuites><testsuite name='s' tests='5' failures='1' errors='1' skipped='1'/>"
        "<testsuite name='t' tests='2'/></testsuites>",
        counts(7, 4, 2, 1),
        ("s",),
        None,
    ),
    "attributes of the outer suite are not counted again": (
        "<testsuites tests='2' failures='1'><testsuite tests='2' failures='1'><testcase name='a'/>"
        "<testcase name='b'><failure/></testcase></testsuite></testsuites>",
        counts(2, 1, 1, 0),
        ("b",),
        ("a", "b"),
    ),
    "namespaces": (
        "<j:testsuite xmlns:j='urn:j'><j:testcase name='a'><j:failure/></j:testcase></j:testsuite>",
        counts(1, 0, 1, 0),
        ("a",),
        ("a",),
    ),
    "surefire, which ran one again until it passed": (
        "<testsuite tests='2'><testcase classname='A' name='a'><flakyFailure/></testcase>"
        "<testcase classname='A' name='b'><failure/><rerunFailure/></testcase></testsuite>",
        counts(2, 1, 1, 0),
        ("A.b",),
        ("A.a", "A.b"),
    ),
    "ctest and googletest, by status": (
        "<testsuite><testcase name='a' status='run'/><testcase name='b' status='fail'/>"
        "<testcase name='c' status='notrun'/><testcase name='d' status='disabled'/>"
        "<testcase name='e' result='suppressed'/></testsuite>",
        counts(4, 1, 1, 2),
        ("b",),
        ("a", "b", "c", "e"),
    ),
    "node, where what is still to be done may fail": (
        "<testsuites><testcase name='a' failure='x'><skipped type='todo'/><failure/></testcase></testsuites>",
        counts(1, 0, 0, 1),
        (),
        ("a",),
    ),
    "a suite that broke before its tests": (
        "<testsuite name='s'><error message='set-up'/><testcase name='a'/></testsuite>",
        counts(2, 1, 1, 0),
        ("s",),
        ("a",),
    ),
    "output that looks like a failure": (
        "<testsuite><testcase name='a'><system-out>&lt;failure/></system-out><properties><error/>"
        "</properties></testcase></testsuite>",
        counts(1, 1, 0, 0),
        (),
        ("a",),
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects(tmp_path: Path, dialect: str) -> None:
    text, expected, failing, names = DIALECTS[dialect]
    tally = read_junit(report(tmp_path, text))
    assert tally is not None
    assert (tally.counts, tally.failing, tally.names, tally.doubt) == (expected, failing, names, "")


def test_what_failing_tests_said_is_kept_up_to_a_length(tmp_path: Path) -> None:
    failure = f"<failure type='OSError' message='m'>{'x' * 9_000_000}</failure>"
    text = f"<a><testcase name='a'>{failure}</testcase></a>"
    tally = read_junit(report(tmp_path, text))
    assert tally is not None
    assert tally.causes[0].startswith("OSError mxxx")
    assert len(tally.causes[0]) < 10_000


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("<testsuite failures='2'><testcase name='a'/></testsuite>", "says that 2 failed and shows none"),
        ("<testsuite tests='1' failures='2'/>", "more failures than tests"),
    ],
)
def test_a_report_that_contradicts_itself_is_doubted(tmp_path: Path, text: str, doubt: str) -> None:
    tally = read_junit(report(tmp_path, text))
    assert tally is not None
    assert doubt in tally.doubt


BOMB = (
    "<!DOCTYPE a [<!ENTITY a0 'ha'>"
    + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10))
    + "]><a><testcase name='&a9;'/></a>"
)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not xml",
        b"<testsuite><testcase name='a'/>",
        b"<testsuite>\xff\xfe</testsuite>",
        b"<?xml version='1.0' encoding='nonsense'?><a/>",
        b"<?xml version='1.0' encoding='utf-7'?><a/>",
        BOMB.encode(),
        b"<!DOCTYPE a [<!ENTITY one 'x'>]><a><testcase name='a'/></a>",
        b"<!DOCTYPE a [<!ENTITY out SYSTEM 'file:///etc/hostname'>]><a>&out;<testcase name='a'/></a>",
        b"<a>" * 10_000,
        b"<a>" * 300 + b"</a>" * 300,
    ],
)
def test_a_damaged_or_hostile_report_is_none(tmp_path: Path, content: bytes) -> None:
    assert read_junit(report(tmp_path, content)) is None


def test_numbers_of_thousands_of_digits_are_no_numbers(tmp_path: Path) -> None:
    tally = read_junit(report(tmp_path, f"<testsuite tests='{'9' * 5000}'/>"))
    assert tally is not None
    assert tally.counts.total == 0


def test_a_report_that_is_missing_or_no_file_is_none(tmp_path: Path) -> None:
    assert read_junit(tmp_path / "missing.xml") is None
    assert read_junit(tmp_path) is None
    os.mkfifo(tmp_path / "pipe.xml")
    assert read_junit(tmp_path / "pipe.xml") is None
    (tmp_path / "circle.xml").symlink_to("circle.xml")
    assert read_junit(tmp_path / "circle.xml") is None


def test_a_report_is_read_up_to_the_limit_and_not_beyond(tmp_path: Path) -> None:
    whole = tmp_path / "junit.xml"
    whole.write_bytes(b"<a><testcase name='x'/></a>")
    with whole.open("r+b") as file:  # a hole in the file reads as zeros, which no XML may hold
        file.truncate(REPORT_LIMIT + 1)
    assert read_junit(whole) is None
    padded = b"<a><testcase name='x'/></a>".ljust(1024 * 1024)
    tally = read_junit(report(tmp_path, padded))
    assert tally is not None
    assert tally.counts == counts(1, 1, 0, 0)


def test_several_reports_are_one_sum_and_one_that_cannot_be_read_spoils_it(tmp_path: Path) -> None:
    one = "<testsuite><testcase name='a'/></testsuite>"
    two = "<testsuite><testcase name='b'><failure/></testcase></testsuite>"
    write(tmp_path, {"1.xml": one, "2.xml": two, "3.xml": "<testsuite>"})
    both = read_junits([tmp_path / "1.xml", tmp_path / "2.xml"])
    assert both is not None
    assert (both.counts, both.failing, both.names) == (counts(2, 1, 1, 0), ("b",), ("a", "b"))
    assert read_junits([tmp_path / "1.xml", tmp_path / "3.xml"]) is None
    assert read_junits([]) is None


TAGS = st.sampled_from(["testsuite", "testsuites", "testcase", "failure", "error", "skipped", "x"])
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["name", "classname", "tests", "failures", "errors", "skipped", "status", "type"]),
    st.sampled_from(["", "1", "7", "a", "fail", "disabled", "todo", "-3", "9" * 30]),
    max_size=3,
)
TREES = st.recursive(
    st.tuples(TAGS, ATTRIBUTES, st.just(())),
    lambda inner: st.tuples(TAGS, ATTRIBUTES, st.lists(inner, max_size=4)),
    max_leaves=15,
)


def drawn(tree: tuple[str, dict[str, str], list[object]]) -> str:
    tag, attributes, children = tree
    said = "".join(f" {name}='{value}'" for name, value in attributes.items())
    return f"<{tag}{said}>{''.join(drawn(child) for child in children)}</{tag}>"  # type: ignore[arg-type]


@settings(max_examples=tries(240), deadline=None)
@given(TREES)
def test_whatever_the_elements_the_counts_add_up_or_are_doubted(
    tmp_path_factory: pytest.TempPathFactory, tree: tuple[str, dict[str, str], list[object]]
) -> None:
    tally = read_junit(report(tmp_path_factory.mktemp("junit"), drawn(tree)))
    assert tally is not None
    found = tally.counts
    assert found.total == found.passed + found.failed + found.skipped
    assert tally.doubt or min(found.passed, found.failed, found.skipped) >= 0
