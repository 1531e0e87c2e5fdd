"""
The rules that a scan knows, and what it says where one is broken.

A rule has a name that people type, a severity, and, where it comes from the criteria of a
delivery, its number there (`CR-AF12`). Waivers let a place break a rule for a reason and
for a time; one whose time has passed waives nothing and is itself an issue.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from planforge.errors import InvalidInput, did_you_mean
from planforge.kernel import paths
from planforge.rules.findings import Severity


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Something that code must not do."""

    name: str
    severity: Severity
    summary: str
    """What is wrong, as one sentence."""
    instead: str
    """What to do about it."""
    criterion: str = ""
    """Its number among the criteria of a delivery, if it has one."""


_RULES = (
    Rule(
        name="soft-pass",
        criterion="CR-AF12",
        severity=Severity.BLOCKING,
        summary="A test is written so that it passes when the behaviour is missing.",
        instead="assert the one outcome that is right",
    ),
    Rule(
        name="todo",
        criterion="CR-AF13",
        severity=Severity.MEDIUM,
        summary="A TODO, FIXME, HACK or XXX without a link to an issue.",
        instead="open an issue and name it in the comment, or do it now",
    ),
    Rule(
        name="skip",
        criterion="CR-AF14",
        severity=Severity.BLOCKING,
        summary="A test is always skipped and no issue says until when.",
        instead="name the issue in the reason, or let the test run",
    ),
    Rule(
        name="no-error",
        criterion="CR-AF20",
        severity=Severity.BLOCKING,
        summary="A test takes the absence of an error for success.",
        instead="assert what the code has done",
    ),
    Rule(
        name="abandoned",
        criterion="CR-AF22",
        severity=Severity.BLOCKING,
        summary="Code says that it waits for a module which is part of the work.",
        instead="build the module first, or ask for a decision",
    ),
    Rule(
        name="always-true",
        severity=Severity.BLOCKING,
        summary="An assertion cannot fail.",
        instead="assert something that depends on the code under test",
    ),
    Rule(
        name="same-sides",
        severity=Severity.MEDIUM,
        summary="An assertion compares something with itself.",
        instead="compare with the value that is expected",
    ),
    Rule(
        name="empty-test",
        severity=Severity.BLOCKING,
        summary="A test has no body.",
        instead="write the test, or remove it",
    ),
    Rule(
        name="no-assertion",
        severity=Severity.MEDIUM,
        summary="A test asserts nothing.",
        instead="assert what the code has done",
    ),
    Rule(
        name="swallowed",
        severity=Severity.BLOCKING,
        summary="A failing assertion is caught and ignored.",
        instead="let the assertion fail the test",
    ),
    Rule(
        name="unreachable",
        severity=Severity.BLOCKING,
        summary="A test is left before its assertions.",
        instead="remove what leaves the test early",
    ),
    Rule(
        name="masked-exit",
        severity=Severity.BLOCKING,
        summary="A failing check does not fail the build.",
        instead="let the exit code of the check through",
    ),
    Rule(
        name="xfail",
        severity=Severity.MEDIUM,
        summary="A test may fail without anybody being told why, or may pass without anybody noticing.",
        instead="give a reason and `strict=True`",
    ),
    Rule(
        name="only",
        severity=Severity.BLOCKING,
        summary="Only some tests of the suite run.",
        instead="remove the focus",
    ),
    Rule(
        name="commented-test",
        severity=Severity.MEDIUM,
        summary="A test is commented out.",
        instead="let it run, or remove it",
    ),
    Rule(
        name="forced-outcome",
        severity=Severity.BLOCKING,
        summary="Code of the test suite decides the outcome instead of the tests.",
        instead="let the test runner report what happened",
    ),
    Rule(
        name="patched-assert",
        severity=Severity.BLOCKING,
        summary="What asserts is replaced.",
        instead="leave the test framework as it is",
    ),
    Rule(
        name="always-equal",
        severity=Severity.MEDIUM,
        summary="An object says that it is equal to everything.",
        instead="compare what makes two objects equal",
    ),
    Rule(
        name="stub",
        severity=Severity.BLOCKING,
        summary="A function is there and does nothing yet.",
        instead="write it, or leave it out",
    ),
    Rule(
        name="uncovered",
        severity=Severity.MINOR,
        summary="Code is taken out of the measurement of coverage.",
        instead="test it, or remove it",
    ),
    Rule(
        name="expired-waiver",
        severity=Severity.MEDIUM,
        summary="A waiver has run out and waives nothing any more.",
        instead="mend what it waived, or give it a new date",
    ),
)

RULES = {rule.name: rule for rule in _RULES}
CRITERIA = {rule.criterion: rule.name for rule in RULES.values() if rule.criterion}


def named(word: str) -> str | None:
    """The rule that a word means: its name, or its number among the criteria."""
    lower = word.strip().lower()
    return lower if lower in RULES else CRITERIA.get(word.strip().upper())


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a rule is broken."""

    rule: str
    severity: Severity
    path: str
    line: int
    column: int
    message: str
    snippet: str = ""
    """The line, shortened."""
    waived: str = ""
    """Why it may be so; empty if it may not."""
    lines: tuple[int, int] = (0, 0)
    """The first and the last line that it is about: of a test without assertions, all of it."""

    def touches(self, lines: AbstractSet[int]) -> bool:
        """Whether it is about one of these lines."""
        first, last = self.lines if any(self.lines) else (self.line, self.line)
        return any(number in lines for number in range(first, last + 1))

    @property
    def blocks(self) -> bool:
        """Whether it fails a scan."""
        return self.severity is Severity.BLOCKING and not self.waived


class Waiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Leave to break one rule in some files, for a reason, until a day."""

    rule: str
    path: str
    reason: str
    expires: datetime.date

    def allows(self, rule: str, path: str) -> bool:
        """Whether this rule may be broken in this file."""
        return named(self.rule) == rule and paths.matches(paths.normalise(self.path), path)


def check_waiver(waiver: Waiver) -> None:
    """Refuse a waiver that waives nothing, or without saying why."""
    if named(waiver.rule) is None:
        known = ", ".join(f"`{name}`" for name in RULES)
        near = did_you_mean(waiver.rule, RULES)
        raise InvalidInput(f"there is no rule `{waiver.rule}`{near}", f"the rules are {known}")
    if not waiver.reason.strip():
        raise InvalidInput(
            f"the waiver of `{waiver.rule}` in `{waiver.path}` has no reason", "say why it is all right"
        )
    paths.normalise(waiver.path)


def live(waivers: Iterable[Waiver], today: datetime.date) -> tuple[Waiver, ...]:
    """Those that still waive something; the day it expires is the last."""
    return tuple(waiver for waiver in waivers if today <= waiver.expires)


def expired(waivers: Iterable[Waiver], today: datetime.date, path: str) -> tuple[Issue, ...]:
    """An issue for each waiver whose time has passed; `path` is the file that has them."""
    rule = RULES["expired-waiver"]
    return tuple(
        Issue(
            rule=rule.name,
            severity=rule.severity,
            path=path,
            line=1,
            column=1,
            message=f"the waiver of `{waiver.rule}` in `{waiver.path}` ran out on {waiver.expires}",
            snippet=waiver.reason,
        )
        for waiver in waivers
        if today > waiver.expires
    )


def waive(issue: Issue, waivers: Sequence[Waiver]) -> Issue:
    """The issue with the reason of the first waiver that covers it."""
    reason = next((waiver.reason for waiver in waivers if waiver.allows(issue.rule, issue.path)), "")
    return msgspec.structs.replace(issue, waived=reason) if reason else issue
