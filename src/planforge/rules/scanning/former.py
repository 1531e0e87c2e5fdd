"""
Which tests have to be put back to ask whether what held before a change still does.

A change that only adds tests leaves those that were there to be run with the rest. One that does anything
else to them, be it a name, an expected value, a decorator or what they load, may have made them pass. Then
the tests as they were are run on the changed code too, and this says which files have to be as they were
for that.
"""

from __future__ import annotations

from collections.abc import Mapping

from planforge.rules.scanning.integrity import SNAPSHOT
from planforge.rules.scanning.outlines import Case
from planforge.rules.scanning.suites import Suite, changed_suites


def former(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """
    The files that belong to tests, before or after, if the change did more to them than add tests.

    Both have the texts of the changed files by path; a file that is not there has no key.
    """
    old, new = changed_suites(before, after)
    if not any(_is_test(old, path) and not _extended(old, new, path) for path in old.texts):
        return ()
    changed = {*old.texts, *new.texts}
    return tuple(sorted(path for path in changed if _is_test(old, path) or _is_test(new, path)))


def _is_test(suite: Suite, path: str) -> bool:
    return path in suite.texts and (suite.has_tests(path) or bool(SNAPSHOT.fullmatch(path)))


def _extended(old: Suite, new: Suite, path: str) -> bool:
    """Whether new tests are the only change of a file."""
    if path not in new.sources or path not in old.sources:
        return False
    known = {case.name for case in old.outlines[path].cases}
    fresh = [case for case in new.outlines[path].cases if case.name not in known]
    return _lines(old.texts[path]) == _lines(_without(new.texts[path], fresh))


def _without(text: str, cases: list[Case]) -> str:
    """A text with these tests taken out."""
    kept, end = [], 0
    for case in sorted(cases, key=lambda case: case.at):
        kept.append(text[end : max(case.at, end)])
        end = max(case.end, end)
    return "".join([*kept, text[end:]])


def _lines(text: str) -> list[str]:
    """Its lines, but for those that say nothing and the white space at their ends."""
    return [line.rstrip() for line in text.splitlines() if line.strip(" \t\f;)")]
