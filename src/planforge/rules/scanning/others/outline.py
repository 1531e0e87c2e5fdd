"""The tests of a file in any language but Python, found in its code."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from planforge.rules.scanning.languages import Language
from planforge.rules.scanning.lexing import Kind
from planforge.rules.scanning.others import tables
from planforge.rules.scanning.others.grammar import GRAMMARS, STRENGTHS, Grammar
from planforge.rules.scanning.outlines import Assertion, Case, Helper, Outline, Skip, Strength
from planforge.rules.scanning.source import Source, names_issue

CHAIN = re.compile(r"\s*(?:(?:\?\.|\.|->|::)\s*[\w$]+|!)")
SPACE = re.compile(r"\s*")
NAME = re.compile(r"(?P<name>`[^`\n]+`|[\w$]+)\s*(?:<[^<>()\n]{0,80}>)?\s*\(")
ANNOTATION = re.compile(
    r"\s*(?:@[\w.]+(?:\s*\()?|\#?\[|(?:public|private|protected|internal|static|final|async|pub|open"
    r"|override)\b)"
)
FUNCTION = re.compile(r"=>\s*\{|\bfunction\b[^{}]{0,300}\{|\)\s*(?::\s*[\w<>]+\s*)?\{|(?<=[\w)])\s*\{")
CONDITION = re.compile(r"\bif\s+(?P<condition>[^{}\n]*)\{\s*$|\bcase\s[^{}\n]*:\s*$")
ARGUMENT_OF_TEST = re.compile(r"(?:t|tb|c|s\.T\(\)|suite\.T\(\))")
EXPECTED_FIRST = re.compile(
    r"(?:Equal|Equals|Same|assert_equal|assert_same|Contains|Regexp|Len|assertMatches\w*)$"
)
SEPARATED = re.compile(r"\s*([^\w\s])\s*")
BEFORE_CLOSING = re.compile(r",([)\]}])")


CALL = re.compile(r"([\w$]+)\s*\(")


def outline(source: Source) -> Outline:
    """The tests of a file."""
    grammar = GRAMMARS.get(source.language)
    return Outline() if grammar is None else Reader(source, grammar).outline()


def squeezed(source: Source, start: int, end: int) -> str:
    """A part of the text without what formatting changes: space, comments, kinds of quotes, last commas."""
    found = []
    first = max(bisect_right(source.parts, start, key=lambda part: part.start) - 1, 0)
    for part in source.parts[first:]:
        if part.start >= end:
            break
        inside = source.text[max(part.start, start) : min(part.end, end)]
        if part.kind is Kind.CODE:
            found.append(SEPARATED.sub(r"\1", " ".join(inside.split()) if inside.strip() else " "))
        elif part.kind is not Kind.COMMENT:
            found.append(f'"{inside[1:-1]}"')
    text = SEPARATED.sub(r"\1", "".join(found)) if len(found) < 2 else "".join(found)
    return BEFORE_CLOSING.sub(r"\1", text.replace(";", "")).strip()


class Reader:
    """Goes through one file."""

    def __init__(self, source: Source, grammar: Grammar) -> None:
        self.source = source
        self.grammar = grammar
        self.code = source.code

    def outline(self) -> Outline:
        """Everything found."""
        loose, ends, remaining = [], 0, list(reversed(self.cases))
        for found in self.grammar.assertion.finditer(self.code):
            while remaining and remaining[-1].at <= found.start():
                ends = max(ends, remaining.pop().end)
            if found.start() >= ends:
                loose.append(self.assertion(found))
        return Outline(cases=self.cases, loose=tuple(loose), skips=tuple(self.skips()), helpers=self.helpers)

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The tests, in order."""
        found: dict[int, Case] = {}
        for case in (*self.called(), *self.functions(), *self.lines(), *self.bats()):
            kept = found.get(case.end)
            found[case.end] = case if kept is None or case.at < kept.at else kept
        return tuple(sorted(found.values(), key=lambda case: case.at))

    def called(self) -> Iterator[Case]:
        """Tests that are arguments of a call."""
        if self.grammar.called is None:
            return
        for found in self.grammar.called.finditer(self.code):
            open_ = self.code.find("(", found.start(), found.end() + 1)
            rows: int | None = 1
            if re.search(r"\.(?:each|for)\b", found[0]):
                rows, open_ = tables.each(self.source, found)
            if open_ < 0 or open_ not in self.source.pairs:
                continue
            end = self.source.pairs[open_]
            name = next(self.source.strings(open_, end), "")
            if not name or self.code[open_ + 1 : open_ + 40].lstrip()[:1] not in ('"', "`"):
                continue
            body = self.body_of_call(open_, end)
            yield self.case(name[1:-1], found.start(), body, end, rows)

    def body_of_call(self, open_: int, end: int) -> int:
        """Where the function begins that is an argument of a call."""
        if found := FUNCTION.search(self.code, open_ + 1, end):
            return found.end() - 1
        following = SPACE.match(self.code, end + 1)  # Kotlin: `test("name") { … }`
        at = following.end() if following else end
        if self.source.language is Language.KOTLIN and self.code[at : at + 1] == "{":
            return at
        return open_

    def functions(self) -> Iterator[Case]:
        """Tests that are functions, by their names or by what is written above them."""
        if self.grammar.named:
            for found in self.grammar.named.finditer(self.code):
                yield from self.function(found["name"], found.start(), found.end() - 1)
        if self.grammar.marked:
            by_name: dict[int, list[int]] = {}
            for found in self.grammar.marked.finditer(self.code):
                at = self.after_annotations(found.start())
                by_name.setdefault(at, []).append(found.start())
            for at, marks in by_name.items():
                if named := NAME.search(self.code, at, at + 400):
                    between = self.code[at : named.start()]
                    if "{" not in between and ";" not in between:
                        yield from self.function(named["name"].strip("`"), marks[0], named.end() - 1)

    def after_annotations(self, at: int) -> int:
        """The place after all annotations, attributes and modifiers that begin at `at`."""
        while found := ANNOTATION.match(self.code, at):
            at = found.end()
            if self.code[at - 1] in "([":
                at = self.source.pairs.get(at - 1, at - 1) + 1
        return at

    def function(self, name: str, start: int, parameters: int) -> Iterator[Case]:
        """The test whose list of parameters opens at `parameters`."""
        closed = self.source.pairs.get(parameters)
        if closed is None:
            return
        body = self.code.find("{", closed, closed + 300)
        ended = self.code.find(";", closed, closed + 300)
        if body < 0 or (0 <= ended < body) or body not in self.source.pairs:
            if self.source.language is not Language.KOTLIN or "=" not in self.code[closed : closed + 40]:
                return
            body, end = closed, self.code.find("\n\n", closed)
            yield self.case(name, start, body, end if end >= 0 else len(self.code), 1)
            return
        rows = tables.rows(self.source, start, parameters, body)
        yield self.case(name, start, body, self.source.pairs[body], rows)

    def lines(self) -> Iterator[Case]:
        """Tests that end with `end` as far to the left as they begin, or before the next one there."""
        if self.grammar.lines is None:
            return
        for found, limit in _limited(list(self.grammar.lines.finditer(self.code)), len(self.code)):
            end = self.end_of_lines(found["indent"], found.end(), limit)
            name = found["name"] or next(self.source.strings(found.start(), found.end()), '""')[1:-1]
            yield self.case(name, found.start(), found.end() - 1, end, 1)

    def end_of_lines(self, indent: str, at: int, limit: int) -> int:
        """Where a test ends that begins this far to the right."""
        closing = r"end\b" if self.source.language is Language.RUBY else r"(?! {0,200}\n)(?![ \t])[^\s)]"
        if self.source.language is Language.PYTHON and indent:
            closing = rf"(?!{indent}[ \t])[ \t]*[^\s)]"
            indent = ""
        found = re.compile(rf"^{indent}{closing}", re.MULTILINE).search(self.code, at, limit)
        return found.start() if found else limit

    def bats(self) -> Iterator[Case]:
        """Tests of Bats: `@test "name" {`."""
        if self.source.language is not Language.SHELL:
            return
        for found in re.finditer(r"^@test[ \t]+(?P<name>\"[^\"\n]*\")[^{\n]*\{", self.code, re.MULTILINE):
            body = found.end() - 1
            ending = re.compile(r"^\}", re.MULTILINE).search(self.code, body)
            name = self.source.text[found.start("name") : found.end("name")].strip("\"'")
            yield self.case(name, found.start(), body, ending.start() if ending else len(self.code), 1)

    def case(self, name: str, start: int, body: int, end: int, rows: int | None) -> Case:
        """One test."""
        inside = self.code[body + 1 : end]
        found = list(self.grammar.assertion.finditer(self.code, body, end))
        return Case(
            name=name,
            at=start,
            end=end,
            assertions=tuple(self.assertion(item) for item in found),
            may_assert=self.may_assert(start, end),
            empty=not inside.strip("{} \t\n;)"),
            rows=rows,
            body=squeezed(self.source, body, end),
            calls=dict(Counter(CALL.findall(self.code, body, end))),
        )

    def may_assert(self, start: int, end: int) -> bool:
        """Whether something is called that asserts, or may assert."""
        if self.grammar.helper and self.grammar.helper.search(self.code, start, end):
            return True
        return any(name in self.asserting for name in CALL.findall(self.code, start, end))

    @property
    def asserting(self) -> frozenset[str]:
        """The functions of this file, outside of tests, that assert something."""
        return frozenset(name for name, helper in self.helpers.items() if helper.assertions)

    @cached_property
    def helpers(self) -> dict[str, Helper]:
        """The functions of this file with what they assert and call."""
        found: dict[str, Helper] = {}
        pattern = re.compile(
            r"\b(?:function|func|fn|fun|def|void|const|let)\s+(?:\([^()\n]*\)\s*)?(?P<name>[\w$]+)"
        )
        for item in pattern.finditer(self.code):
            body = self.code.find("{", item.end(), item.end() + 300)
            end = self.source.pairs.get(body, item.end() + 500)
            asserted = len(self.grammar.assertion.findall(self.code, item.end(), end))
            calls = frozenset(CALL.findall(self.code, item.end(), end)) - {item["name"]}
            found[item["name"]] = Helper(assertions=asserted, calls=calls)
        return found

    def statement_end(self, at: int) -> int:
        """Where the expression ends whose first bracket is at or after `at`."""
        while True:
            if self.code[at : at + 1] in tuple("([{") and at in self.source.pairs:
                at = self.source.pairs[at] + 1
            elif found := CHAIN.match(self.code, at):
                at = found.end()
                if following := SPACE.match(self.code, at):
                    at = following.end() if self.code[following.end() : following.end() + 1] == "(" else at
            else:
                break
        if self.source.language is Language.RUBY:
            end = self.code.find("\n", at)
            return end if end >= 0 else len(self.code)
        return at

    def assertion(self, found: re.Match[str]) -> Assertion:
        """One assertion, with all that is chained to it."""
        open_ = found.end() - 1 if found[0][-1:] in tuple("([{") else found.end()
        end = self.statement_end(open_)
        code = self.code[found.start() : end]
        text = squeezed(self.source, found.start(), end)
        subject = self.subject(found[0], open_)
        strength = of_code(code)
        if self.source.language is Language.GO and re.match(r"\w+\.(?:Error|Fatal|Fail)", found[0]):
            strength, subject, text = self.of_condition(found.start(), text)
        return Assertion(text=text, subject=subject, strength=strength, at=found.start())

    def subject(self, opening: str, open_: int) -> str:
        """What an assertion is about: an argument of its first call."""
        close = self.source.pairs.get(open_)
        if close is None:
            return ""
        arguments = [squeezed(self.source, start, end) for start, end in tables.elements(self.source, open_)]
        if arguments and ARGUMENT_OF_TEST.fullmatch(arguments[0]):
            arguments = arguments[1:]
        name = re.split(r"[^\w]", opening.rstrip("(! \t"))[-1]
        second = (
            EXPECTED_FIRST.search(name) and len(arguments) > 1 and self.source.language is not Language.RUST
        )
        return arguments[1 if second else 0] if arguments else ""

    def of_condition(self, at: int, text: str) -> tuple[Strength, str, str]:
        """What a Go test asserts by failing under a condition."""
        start = max(self.code.rfind("{", 0, at), 0)
        line = self.code.rfind("\n", 0, start) + 1
        found = CONDITION.search(self.code, line, start + 1)
        condition = (found["condition"] or "") if found else ""
        condition = condition.rpartition(";")[2].strip()
        if not condition:
            return Strength.PARTIAL, "", text
        subject = re.split(r"[!=<>]=|[<>]", condition)[0].strip(" !(")
        if re.fullmatch(r"\w*[eE]rr\w*\s*!=\s*nil", condition):
            return Strength.NO_ERROR, subject, condition
        if re.search(r"==\s*nil|!=\s*nil", condition):
            return Strength.PRESENT, subject, condition
        exact = re.search(r"!=|Equal|==", condition) is not None
        written = self.source.text[found.start("condition") : found.end("condition")] if found else condition
        return Strength.EXACT if exact else Strength.PARTIAL, subject, " ".join(written.split())

    def skips(self) -> Iterator[Skip]:
        """What keeps tests from running."""
        if self.grammar.always_skipped:
            for found in self.grammar.always_skipped.finditer(self.code):
                yield self.skip(found, conditional=False)
        if self.grammar.maybe_skipped:
            for found in self.grammar.maybe_skipped.finditer(self.code):
                case = self.case_at(found.start())
                sure = case is not None and self.is_sure(case, found.start())
                yield self.skip(found, conditional=not sure)

    def is_sure(self, case: Case, at: int) -> bool:
        """Whether a place in a test is reached whatever happens."""
        before = self.code[case.at : at]
        if self.source.language in (Language.RUBY, Language.PYTHON):
            line = self.code[at : (self.code + "\n").index("\n", at)]
            return not re.search(r"\b(?:if|unless|except)\b", before + line)
        body = before.find("{")
        inside = before[body + 1 :] if body >= 0 else ""
        head = self.code[self.code.rfind("\n", 0, at) + 1 : at]
        conditional = re.search(r"\b(?:if|unless|case|switch|when)\b|\[|&&|\|\|", head)
        return body >= 0 and inside.count("{") == inside.count("}") and not conditional

    def case_at(self, at: int) -> Case | None:
        """The innermost test around a place."""
        around = [case for case in self.cases if case.at <= at < case.end]
        return max(around, key=lambda case: case.at, default=None)

    def skip(self, found: re.Match[str], *, conditional: bool) -> Skip:
        """One skip, with the test that it is about."""
        at = found.start() + len(found[0]) - len(found[0].lstrip())
        first = self.source.line(at)
        case = self.case_at(at) or self.following(at)
        end = (self.code + "\n").index("\n", found.end())
        return Skip(
            at=at,
            what=case.name if case else "*",
            text=" ".join(self.source.text[at:end].split()),
            conditional=conditional,
            issue=names_issue(self.source.said_at(first, self.source.line(end))),
        )

    def following(self, at: int) -> Case | None:
        """The test that an annotation stands above."""
        after = next((case for case in self.cases if case.at > at), None)
        between = self.code[at : after.at] if after else "{"
        return after if "{" not in between and ";" not in between else None


def _limited(found: list[re.Match[str]], last: int) -> list[tuple[re.Match[str], int]]:
    """Each with where the next one begins that is no further to the right: no test goes on beyond that."""
    limited: list[tuple[re.Match[str], int]] = []
    open_: list[re.Match[str]] = []
    for item in reversed(found):
        while open_ and len(open_[-1]["indent"]) > len(item["indent"]):
            open_.pop()
        limited.append((item, open_[-1].start() if open_ else last))
        open_.append(item)
    return limited[::-1]


def of_code(code: str) -> Strength:
    """How much an assertion says, judged by its words."""
    for strength, pattern in STRENGTHS:
        if pattern.search(code):
            if strength is Strength.PRESENT and re.search(r"[=!]=", code):
                return Strength.EXACT
            return strength
    if re.search(r"[<>]", code):
        return Strength.PARTIAL
    if re.match(r"\W*\w*\.?(?:assert|assertTrue|True|IsTrue|ok|True|assertFalse|False)\s*!?\s*\(", code):
        return Strength.PRESENT
    return Strength.PARTIAL
