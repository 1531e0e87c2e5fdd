"""
Whether a change left the tests worth as much as they were.

`compare` looks at the texts of all changed files before and after and says what a person
should hear about: pinned tests that were touched, fewer tests or assertions, new skips, tests
that were made easier to pass, and settings that run fewer of them. A test that was moved or
renamed is the same test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from planforge.kernel import paths
from planforge.rules.findings import Finding, Severity
from planforge.rules.scanning import collection as collecting
from planforge.rules.scanning import doubles, loosening
from planforge.rules.scanning.issues import Issue, Waiver, waive
from planforge.rules.scanning.scanner import examine
from planforge.rules.scanning.suites import Placed, PlacedSkip, Suite, beyond, changed_suites, pairs

Pairs = list[tuple[Placed, Placed]]

SNAPSHOT = re.compile(
    r"(?:.*/)?(?:__snapshots__|snapshots?|goldens?|golden_files|approvals|cassettes|expected)/.*"
    r"|.*\.(?:snap|golden|ambr|approved\.\w+|expected)",
    re.IGNORECASE,
)
LOADED = re.compile(
    r"(?:.*/)?(?:conftest\.py|__init__\.py|\w*setup\w*\.\w+|\w*helper\w*\.\w+)", re.IGNORECASE
)
ELSEWHERE = frozenset(("skip", "xfail", "todo", "expired-waiver", "same-sides"))
"""Rules whose new issues are told by something else here, or are nobody's attempt to pass."""
OF_A_CASE = frozenset(("empty-test", "no-assertion", "no-error"))
TIMEOUT = re.compile(
    r"(?:\btimeout(?:[_\-]minutes|[_\-]seconds|_method)?|\bsetTimeout|\btestTimeout"
    r"|(?<!\w)--?timeout)\b[\"']?\s*(?:[=:(]|\s)\s*"
    r"(?P<number>\d[\d_]*(?:\.\d+)?)",
)
HUGE = 10
MOST_NAMES = 8


def compare(
    before: Mapping[str, str],
    after: Mapping[str, str],
    pinned: Sequence[str] = (),
    *,
    waivers: Sequence[Waiver] = (),
) -> tuple[Finding, ...]:
    """What a change did to the tests, worst first.

    Both have the texts of the changed files by path; a file that is not there has no key.
    `pinned` are globs of acceptance tests, which an implementing step may not touch. `waivers`
    are those that are still live; they let new issues and new skips pass, and nothing else.
    """
    old, new = changed_suites(before, after)
    together = pairs(old.cases, new.cases)
    found = [
        *_pinned(old, new, pinned),
        *_fewer(old, new, together),
        *_new_skips(old, new, together, waivers),
        *_new_issues(old, new, together, waivers),
        *loosening.findings(together),
        *collecting.findings(old.texts, new.texts),
        *_snapshots(old, new),
        *_timeouts(old, new),
        *doubles.findings(old, new),
    ]
    return tuple(
        sorted(dict.fromkeys(found), key=lambda item: (-item.severity.rank, item.location, item.title))
    )


def _pinned(old: Suite, new: Suite, pinned: Sequence[str]) -> Iterator[Finding]:
    patterns = [paths.normalise(pattern) for pattern in pinned]
    for path in sorted({*old.texts, *new.texts}):
        if not any(paths.matches(pattern, path) for pattern in patterns):
            continue
        if path not in old.texts:
            severity = Severity.BLOCKING if LOADED.fullmatch(path) else Severity.MEDIUM
            yield Finding(severity=severity, title="a file was added to the pinned tests", location=path)
        else:
            how = "changed" if path in new.texts else "deleted"
            yield Finding(severity=Severity.BLOCKING, title=f"a pinned test was {how}", location=path)


def _rows(one: Placed, other: Placed) -> tuple[int, int]:
    """How many tests two states of a test stand for; the same if one of them cannot be told."""
    if one.case.rows is None or other.case.rows is None:
        return 1, 1
    return one.case.weight, other.case.weight


def _fewer(old: Suite, new: Suite, together: Pairs) -> Iterator[Finding]:
    kept_old, kept_new = {id(one) for one, _ in together}, {id(other) for _, other in together}
    gone = [item for item in old.cases if id(item) not in kept_old]
    fresh = [item for item in new.cases if id(item) not in kept_new]
    was = [(one, _rows(one, other)[0]) for one, other in together]
    now = [(other, _rows(one, other)[1]) for one, other in together]
    was += [(item, item.case.weight) for item in gone]
    now += [(item, item.case.weight) for item in fresh]
    tests = [sum(weight for _, weight in side) for side in (was, now)]
    asserted = [
        sum(suite.asserted(item.case) * weight for item, weight in side) + suite.uncalled
        for suite, side in ((old, was), (new, now))
    ]
    names = _named(gone)
    if tests[1] < tests[0]:
        yield Finding(
            severity=Severity.BLOCKING,
            title=f"the number of tests fell from {tests[0]} to {tests[1]}",
            detail=names or _shrunk(together),
        )
    if asserted[1] < asserted[0]:
        title = f"the number of assertions fell from {asserted[0]} to {asserted[1]}"
        yield Finding(severity=Severity.BLOCKING, title=title, detail=names)
    for item in gone:
        where = f"{item.path}::{item.case.name}"
        yield Finding(severity=Severity.MEDIUM, title="a test was removed", location=where)
    yield from _tables(together)


def _named(items: list[Placed]) -> str:
    names = [f"{item.path}::{item.case.name}" for item in items[:MOST_NAMES]]
    more = len(items) - len(names)
    return "\n".join([*names, *([f"and {more} more"] if more > 0 else [])])


def _shrunk(together: Pairs) -> str:
    return "\n".join(
        f"{other.path}::{other.case.name} has {second} sets of parameters, had {first}"
        for one, other in together
        for first, second in [_rows(one, other)]
        if second < first
    )


def _tables(together: Pairs) -> Iterator[Finding]:
    for one, other in together:
        if (one.case.rows or 0) > 1 and other.case.rows is None:
            yield Finding(
                severity=Severity.MEDIUM,
                title=f"the sets of parameters cannot be counted any more; there were {one.case.rows}",
                location=f"{other.path}::{other.case.name}",
            )


def _new_skips(old: Suite, new: Suite, together: Pairs, waivers: Sequence[Waiver]) -> Iterator[Finding]:
    kept = {(other.path, other.case.name) for _, other in together}
    kept_names = {part for _, other in together for part in other.case.name.split("::")}
    fresh, gone = beyond(new.skips, old.skips, _short), beyond(old.skips, new.skips, _short)
    for item in beyond(
        fresh, gone, lambda each: each.skip.text
    ):  # a test with a new name took its skip along
        of_kept = (item.path, item.skip.what) in kept or item.skip.what in kept_names or item.skip.what == "*"
        rule = "xfail" if item.skip.expects_failure else "skip"
        if not any(waiver.allows(rule, item.path) for waiver in waivers):
            yield _new_skip(item, of_kept=of_kept)


def _short(item: PlacedSkip) -> tuple[str, str]:
    return item.skip.what.rpartition("::")[2], item.skip.text


def _new_skip(item: PlacedSkip, *, of_kept: bool) -> Finding:
    skip = item.skip
    mild = skip.issue or (skip.conditional and not of_kept)
    how = "may fail now" if skip.expects_failure else "is skipped now"
    issue = "" if skip.issue else ", and no issue is named"
    what = "a whole file" if skip.what == "*" else f"`{skip.what}`"
    return Finding(
        severity=Severity.MEDIUM if mild else Severity.BLOCKING,
        title=f"{what} {how}{issue}",
        detail=skip.text[:200],
        location=f"{item.path}:{item.line}",
    )


def _new_issues(old: Suite, new: Suite, together: Pairs, waivers: Sequence[Waiver]) -> Iterator[Finding]:
    earlier = {(other.path, other.case.name): one.case.name for one, other in together}
    for _, issue in beyond(_issues(new, earlier), _issues(old, {}), itemgetter(0)):
        if issue.rule not in ELSEWHERE and not waive(issue, waivers).waived:
            yield _as_finding(issue)


def _issues(suite: Suite, earlier: Mapping[tuple[str, str], str]) -> Iterator[tuple[tuple[str, str], Issue]]:
    """The issues of a state, each with what makes it the same in another one."""
    for path, source in suite.sources.items():
        for issue in examine(source, strict_xfail=False).issues:
            yield _key(suite, path, issue, earlier), issue


def _key(suite: Suite, path: str, issue: Issue, earlier: Mapping[tuple[str, str], str]) -> tuple[str, str]:
    """What makes two issues the same in two states: the line, or the test if the rule is about tests."""
    if issue.rule in OF_A_CASE:
        source = suite.sources[path]
        for case in suite.outlines[path].cases:
            if source.line(case.at) <= issue.line <= source.line(case.end):
                return issue.rule, earlier.get((path, case.name), case.name)
    return issue.rule, issue.snippet


def _as_finding(issue: Issue) -> Finding:
    severity = Severity.MEDIUM if issue.rule == "uncovered" else issue.severity
    return Finding(
        severity=severity,
        title=f"{issue.rule}: {issue.message}",
        detail=issue.snippet,
        location=f"{issue.path}:{issue.line}",
    )


def _snapshots(old: Suite, new: Suite) -> Iterator[Finding]:
    recorded = [path for path in sorted(old.texts) if SNAPSHOT.fullmatch(path)]
    tests = any(suite.has_tests(path) for suite in (old, new) for path in suite.texts if path not in recorded)
    for path in recorded:
        how = "changed" if path in new.texts else "deleted"
        alone = "" if tests else ", and no test with it"
        yield Finding(
            severity=Severity.MINOR if tests and path in new.texts else Severity.MEDIUM,
            title=f"a recorded expectation was {how}{alone}",
            location=path,
        )


def _timeouts(old: Suite, new: Suite) -> Iterator[Finding]:
    for path in sorted({*old.texts} & {*new.texts}):
        was, now = _longest(old.texts[path]), _longest(new.texts[path])
        if not was or now is None or path not in new.sources:
            continue
        if now >= was * HUGE or now == 0:
            said = (
                f"a time limit was raised from {was:g} to {now:g}" if now else "a time limit was turned off"
            )
            yield Finding(severity=Severity.MEDIUM, title=said, location=path)


def _longest(text: str) -> float | None:
    found = [float(item["number"].replace("_", "")) for item in TIMEOUT.finditer(text)]
    return max(found, default=None)
