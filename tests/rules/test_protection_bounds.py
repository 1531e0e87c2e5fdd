"""A change stays within its step, or that it does not is found; an ordinary one is left alone."""

from __future__ import annotations

import pytest

from planforge.rules.findings import Severity
from planforge.rules.protection.bounds import SizeSettings, outside, size_finding


def places(files: list[str], planned: list[str]) -> list[str]:
    return [finding.location for finding in outside(files, planned)]


def test_a_file_that_the_step_does_not_name_is_a_finding() -> None:
    (finding,) = outside(["src/a.py", "src/b.py"], ["src/a.py"])
    assert (finding.severity, finding.location) == (Severity.BLOCKING, "src/b.py")


@pytest.mark.parametrize(
    "planned", [["src"], ["src/**"], ["src/*.py"], ["**/*.py"], ["src/b.py", "src/a.py"]]
)
def test_paths_directories_and_globs_name_files(planned: list[str]) -> None:
    assert places(["src/a.py", "src/b.py"], planned) == []


def test_a_step_that_names_no_files_may_change_any() -> None:
    assert places(["anything"], []) == []


@pytest.mark.parametrize("path", ["src\\a.py", "\\xff.py", "SRC/a.py", "src/a.py/b"])
def test_an_odd_name_is_not_one_that_the_step_names(path: str) -> None:
    assert places([path], ["src/a.py"]) == ([] if path == "src/a.py/b" else [path])


# Size


def severity(lines: int, planned: int = 1, landed: list[int] | None = None, path: str = "a.py") -> str:
    finding = size_finding({path: lines}, ["a.py"] * planned, landed or [])
    return finding.severity.value if finding else ""


@pytest.mark.parametrize(
    ("lines", "planned", "landed", "expected"),
    [
        (800, 1, [], ""),
        (801, 1, [], "medium"),
        (1200, 5, [], ""),
        (1300, 5, [], "medium"),
        (900, 1, [200] * 5, ""),
        (1601, 1, [200] * 5, "medium"),
        (900, 1, [200] * 4, "medium"),
        (900, 1, [1, 1, 1, 1, 100_000], "medium"),
        (10_000, 50, [], ""),
        (10_001, 50, [], "blocking"),
        (10_001, 1, [5000] * 9, "blocking"),
        (0, 0, [], ""),
    ],
)
def test_a_change_is_measured_by_a_number_by_its_files_and_by_what_has_landed(
    lines: int, planned: int, landed: list[int], expected: str
) -> None:
    assert severity(lines, planned, landed) == expected


@pytest.mark.parametrize(
    "path", ["uv.lock", "web/package-lock.json", "dist/app.js", "api_pb2.py", "a/__snapshots__/b"]
)
def test_what_programs_write_is_not_counted(path: str) -> None:
    assert severity(50_000, path=path) == ""
    assert severity(900, path="app.py") == "medium"


def test_the_finding_says_how_much_is_too_much() -> None:
    finding = size_finding({"a.py": 2000}, ["a.py"], [100] * 5)
    assert finding is not None
    assert finding.title == "it changes 2000 lines, which is far more than such a step needs"
    assert finding.detail == "remarked upon above 800 lines; half of the landed steps had at most 100"


def test_the_limits_are_the_projects() -> None:
    settings = SizeSettings(lines=10, lines_per_file=0, factor=1, refuse=0)
    assert size_finding({"a.py": 10}, [], [], settings) is None
    large = size_finding({"a.py": 1_000_000}, [], [], settings)
    assert large is not None
    assert large.severity is Severity.MEDIUM
