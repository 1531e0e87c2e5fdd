"""Where code in any language but Python breaks a rule about tests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.languages import Language, Role
from planforge.rules.scanning.others import stubs, tables
from planforge.rules.scanning.others.grammar import GRAMMARS
from planforge.rules.scanning.others.outline import squeezed
from planforge.rules.scanning.outlines import Case, Outline
from planforge.rules.scanning.source import Source

CATCH = re.compile(
    r"\bcatch\b\s*(?:\((?P<what>[^()\n]*)\)\s*)?(?:when\s*\([^()\n]*\)\s*)?\{(?P<body>[^{}]*)\}"
)
SAYING = re.compile(
    r"\s*(?:(?:console|logger|log|Log|System\.out|System\.err|Console|fmt|LOG|LOGGER)\.\w+|print\w*"
    r"|error_log|puts|\$?\w+\.printStackTrace)"
    r"\s*\([^;{}]*\)\s*;?\s*"
)
CATCHES_ALL = re.compile(
    r"(?:^|[\s\\|.])(?:Throwable|Exception|RuntimeException|Error|AssertionError|\w*AssertionFailedError)\b"
)
CATCHES_FAILURES = re.compile(r"\b(?:Throwable|Error|AssertionError|AssertionFailedError)\b")
TYPED = frozenset((Language.JAVA, Language.KOTLIN, Language.CSHARP, Language.PHP))
RESCUE = re.compile(
    r"^[ \t]*rescue\b(?:[ \t]+(?:StandardError"
    r"|Exception))?(?:[ \t]*=>[ \t]*\w+)?[ \t]*\n\s*(?:nil\s*\n\s*)?end\b|[ \t]rescue[ \t]+nil\b",
    re.MULTILINE,
)
RETURN = re.compile(r"^[ \t]*return[ \t]*;?[ \t]*$", re.MULTILINE)
STATUS_CHOICE = re.compile(
    r"\.to\.be\.oneOf\s*\(\s*\[|expect\s*\(\s*\[[\d\s,]+\]\s*\)\s*\.\s*(?:toContain|to\.include"
    r"|to\.contain)\s*\(\s*[\w.]*\bstatus\w*"
    r"|\b(?:assert\w*|Assert\.\w+|expect)\s*!?\s*\(\s*(?:t\s*,\s*)?\[[\d\s,]+\]\s*,\s*[\w.]*[sS]tatus\w*"
    r"|\b(?:assert|assertTrue|expect|ok)\s*!?\s*\(\s*[\w.]*[sS]tatus(?:Code)?\s*={2,3}\s*\d+"
    r"\s*\|\|\s*[\w.]*[sS]tatus(?:Code)?\s*={2,3}\s*\d+"
)
IF_MISSING = re.compile(
    r"\bif\s*\(?\s*[\w.$>\-]*[sS]tatus(?:_?[cC]ode)?(?:\(\))?\s*={2,3}\s*(?:404|405|501"
    r"|\w+\.StatusNotFound)\s*\)?\s*\{?\s*"
    r"(?:return\b|this\.skip|t\.Skip|pending|skip\b|\$this->markTest)"
)
WARNED = re.compile(r"\bconsole\.(?:warn|log|info)\s*\(\s*(?=\")")
LATER = re.compile(r"\W*(?:not yet|will assert|todo\b|tbd\b|skip(?:ping|ped)?\b)", re.IGNORECASE)
LITERAL = re.compile(r"(?:true|True|TRUE|\d+|\".*\"|'.*')", re.DOTALL)
EQUAL_CALL = re.compile(
    r"(?:->|::|\.|\b)(?P<name>assertEquals|assertSame|assert_eq|assert_equal|AreEqual|AreSame|Equal"
    r"|EqualValues|Same|StrictEqual"
    r"|deepEqual|deepStrictEqual|strictEqual|equal|is)\s*!?\s*\("
)
TRUE_CALL = re.compile(r"(?:->|::|\.|\b)(?P<name>assertTrue|IsTrue|True|isTrue|assert|ok|truthy)\s*!?\s*\(")
EXPECT = re.compile(r"(?<![.\w$])(?:expect|assertThat)\s*\(")
MATCHER = re.compile(
    r"\s*\.\s*(?P<name>toBe|toEqual|toStrictEqual|to\.equal|to\.be\.equal|to\.eql|to\.deep\.equal"
    r"|isEqualTo|isSameAs"
    r"|to\s+eq|to\s+eql|to\s+be)\s*\("
)
RUBY_SAME = re.compile(
    r"\bexpect\s*\(\s*true\s*\)\s*\.\s*to\s+(?:be\s+true|eq\s*\(?\s*true|be_truthy)"
    r"|^[ \t]*assert[ \t(]+true\b"
    r"|\bassert_equal[ (]+(?P<left>\w+)[ \t]*,[ \t]*(?P=left)[ \t)]*$",
    re.MULTILINE,
)
TRUTHY = re.compile(
    r"\s*\.\s*(?:toBeTruthy|toBeDefined|to\.be\.true|to\.be\.ok|to\.exist|isTrue|isNotNull)\b"
)
EXITS = re.compile(
    r"\bprocess\.exit\s*\(\s*0?\s*\)|(?<![.\w])exit!?\s*\(?\s*0\b|\bos\.Exit\s*\(\s*0\s*\)|\bKernel\.exit!?\b"
)
REPLACED = re.compile(
    r"\b(?:global|globalThis|window|global\.window)\.(?:expect|assert|it|test)\s*=(?!=)"
    r"|\bexpect\.prototype\b[^=\n]*=(?!=)"
    r"|\bassert\.(?:equal|ok|strictEqual|deepEqual|deepStrictEqual|throws)\s*=(?!=)|^expect\s*=(?!=)",
    re.MULTILINE,
)


def issues(source: Source, outline: Outline) -> Iterator[Issue]:
    """What the code of a test shows."""
    if source.language not in GRAMMARS:
        return
    if source.role is Role.SOURCE:
        yield from stubs.stubs(source)
    if source.role is Role.SUPPORT:
        yield from _exits(source)
    if source.role in (Role.TEST, Role.SUPPORT):
        yield from _replaced(source)
        yield from _focused(source)
    for case in _outermost(outline.cases):
        yield from _caught(source, case)
        yield from _left_early(source, case)
        yield from _soft(source, case)
        yield from _cannot_fail(source, case)


def _outermost(cases: tuple[Case, ...]) -> Iterator[Case]:
    end = -1
    for case in cases:
        if case.at >= end:
            end = case.end
            yield case


def _exits(source: Source) -> Iterator[Issue]:
    for found in EXITS.finditer(source.code):
        message = f"`{found[0].strip()}` ends the test run as a success"
        yield source.issue("forced-outcome", found.start(), message)


def _replaced(source: Source) -> Iterator[Issue]:
    if source.language is Language.JAVASCRIPT:
        for found in REPLACED.finditer(source.code):
            yield source.issue("patched-assert", found.start(), f"`{found[0].rstrip('= ')}` is replaced")


def _focused(source: Source) -> Iterator[Issue]:
    focus = GRAMMARS[source.language].focus
    for found in focus.finditer(source.code) if focus else ():
        at = found.start() + len(found[0]) - len(found[0].lstrip())
        word = found[0].strip(" \t(,")
        yield source.issue("only", at, f"`{word}` keeps the other tests from running")


def _caught(source: Source, case: Case) -> Iterator[Issue]:
    if source.language is Language.RUBY:
        for found in RESCUE.finditer(source.code, case.at, case.end):
            if not _asserts_after(case, found.end()):
                yield source.issue("soft-pass", _start(found), "every error is caught and ignored")
        return
    for found in CATCH.finditer(source.code, case.at, case.end):
        body = found["body"]
        if body.strip() and not SAYING.fullmatch(body):
            continue
        what = (found["what"] or "").strip()
        if source.language in TYPED and what and not CATCHES_ALL.search(what):
            continue
        tried = _tried(source, found.start())
        asserted = GRAMMARS[source.language].assertion.search(tried) is not None
        survives = source.language in (Language.JAVA, Language.KOTLIN) and not CATCHES_FAILURES.search(what)
        if asserted and survives and what:
            continue  # an assertion error is no `Exception` there: the old way to expect one
        if asserted:
            message = "a failing assertion above is caught here and ignored"
            yield source.issue("swallowed", found.start(), message)
        elif not body.strip() and not _asserts_after(case, found.end()):
            yield source.issue("soft-pass", found.start(), "every error is caught and ignored")


def _asserts_after(case: Case, at: int) -> bool:
    return any(assertion.at >= at for assertion in case.assertions)


def _start(found: re.Match[str]) -> int:
    return found.start() + len(found[0]) - len(found[0].lstrip())


def _tried(source: Source, catch: int) -> str:
    """The code between `try` and the `catch` at this place."""
    close = source.code.rfind("}", 0, catch)
    for open_ in _opening(source, close):
        return source.code[open_:close]
    return ""


def _opening(source: Source, close: int) -> Iterator[int]:
    start = source.code.rfind("try", 0, close)
    tries = 0
    while start >= 0 and tries < 50:
        brace = source.code.find("{", start, close)
        if brace >= 0 and source.pairs.get(brace) == close:
            yield brace
            return
        start = source.code.rfind("try", 0, start)
        tries += 1


def _left_early(source: Source, case: Case) -> Iterator[Issue]:
    body = source.code.find("{", case.at, case.end)
    if body < 0 or source.language in (Language.RUBY, Language.SHELL):
        return
    for found in RETURN.finditer(source.code, body, case.end):
        inside = source.code[body + 1 : found.start()]
        if inside.count("{") != inside.count("}"):
            continue
        if any(assertion.at > found.end() for assertion in case.assertions):
            yield source.issue("unreachable", _start(found), "the assertions below are never reached")
        return


def _soft(source: Source, case: Case) -> Iterator[Issue]:
    for found in STATUS_CHOICE.finditer(source.code, case.at, case.end):
        yield source.issue("soft-pass", found.start(), "more than one status is right")
    for found in IF_MISSING.finditer(source.code, case.at, case.end):
        yield source.issue("soft-pass", found.start(), "the test passes when the route is missing")
    for found in WARNED.finditer(source.code, case.at, case.end):
        said = next(source.strings(found.end(), found.end() + 1), "")
        if LATER.match(said):
            yield source.issue("soft-pass", found.start(), "the test says that it will assert later")


def _cannot_fail(source: Source, case: Case) -> Iterator[Issue]:
    if source.language is Language.RUBY:
        for found in RUBY_SAME.finditer(source.code, case.at, case.end):
            yield source.issue("always-true", _start(found), "an assertion that cannot fail")
        return
    seen = set()
    for assertion in case.assertions:
        if assertion.at in seen:
            continue
        seen.add(assertion.at)
        yield from _one(source, case, assertion.at)


def _one(source: Source, case: Case, at: int) -> Iterator[Issue]:
    if found := EXPECT.match(source.code, at):
        yield from _expected(source, at, found.end() - 1)
        return
    limit = min(case.end, at + 200)
    for pattern, compares in ((EQUAL_CALL, True), (TRUE_CALL, False)):
        found = pattern.search(source.code, at, limit)
        if (
            found
            and "\n" not in source.code[at : found.start()]
            and "(" not in source.code[at : found.start()]
        ):
            arguments = _arguments(source, found.end() - 1)
            if compares and len(arguments) > 1 and _same(*arguments[:2]):
                yield _said(source, at, arguments[0])
            elif not compares and arguments and arguments[0] in ("true", "True", "TRUE", "1"):
                yield source.issue("always-true", at, f"`{found['name']}` of a constant cannot fail")
            return


def _arguments(source: Source, open_: int) -> list[str]:
    found = [squeezed(source, start, end) for start, end in tables.elements(source, open_)]
    return found[1:] if found and found[0] in ("t", "tb") else found


def _expected(source: Source, at: int, open_: int) -> Iterator[Issue]:
    close = source.pairs.get(open_)
    arguments = _arguments(source, open_)
    if close is None or not arguments:
        return
    if found := MATCHER.match(source.code, close + 1):
        wanted = _arguments(source, found.end() - 1)
        if wanted and _same(arguments[0], wanted[0]):
            yield _said(source, at, arguments[0])
    elif LITERAL.fullmatch(arguments[0]) and TRUTHY.match(source.code, close + 1):
        yield source.issue("always-true", at, "a constant is asserted")


def _same(left: str, right: str) -> bool:
    """Whether both sides are one thing; two calls may give two results."""
    return left == right and bool(left) and "(" not in left


def _said(source: Source, at: int, side: str) -> Issue:
    if LITERAL.fullmatch(side) or side in ("false", "null", "nil", "None", "undefined"):
        return source.issue("always-true", at, "a constant is compared with itself")
    return source.issue("same-sides", at, f"`{side[:60]}` is compared with itself")
