"""What is wrong with single tests, judged by their outline alone and so the same in every language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.languages import Language
from planforge.rules.scanning.outlines import Case, Outline, Skip, Strength
from planforge.rules.scanning.source import Source

SHOULD_NOT = re.compile(
    r"\b(?:should|must|does|do|shall|will|would|may|can)(?:n't| ?not) (?:be |have )?(?:raise|raising"
    r"|throw|error|fail|crash|blow up)",
    re.IGNORECASE,
)

ONLY = "asserts only that nothing went wrong"


def issues(source: Source, outline: Outline) -> Iterator[Issue]:
    """Tests that are skipped, are empty, assert nothing or only that nothing went wrong."""
    for skip in outline.skips:
        if not skip.conditional and not skip.issue and not skip.expects_failure:
            yield source.issue("skip", skip.at, _skipped(skip))
    skipped = {skip.what for skip in outline.skips if not skip.conditional}
    for case in outline.cases:
        if case.name not in skipped:
            yield from _case(source, case)


def _skipped(skip: Skip) -> str:
    what = "the whole file" if skip.what == "*" else f"`{skip.what}`"
    return f"{what} is always skipped, and no issue says until when"


def _case(source: Source, case: Case) -> Iterator[Issue]:
    about = (case.at, case.end)
    if case.empty:
        yield source.issue("empty-test", case.at, f"`{case.name}` is empty", about=about)
    elif case.assertions:
        strongest = max(assertion.strength for assertion in case.assertions)
        if strongest is Strength.NO_ERROR and not _asserts_elsewhere(source, case):
            at = case.assertions[-1].at
            yield source.issue("no-error", at, f"`{case.name}` {ONLY}", about=about)
    elif not case.may_assert and source.language is not Language.SHELL:
        promised = _promise(source, case)
        if promised is not None:
            yield source.issue("no-error", promised, f"`{case.name}` {ONLY}", about=about)
        else:
            yield source.issue("no-assertion", case.at, f"`{case.name}` asserts nothing", about=about)


def _asserts_elsewhere(source: Source, case: Case) -> bool:
    """Whether a test that seems to assert little may assert more in what it calls."""
    return source.language is Language.PYTHON and case.may_assert


def _promise(source: Source, case: Case) -> int | None:
    """A comment in a test which says that nothing should go wrong."""
    first, last = source.line(case.at), source.line(case.end)
    for line in range(first, last + 1):
        comment = source.comment_lines.get(line)
        if comment and SHOULD_NOT.search(comment.text):
            return comment.start
    return None
