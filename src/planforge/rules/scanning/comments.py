"""Where comments admit that something is not done, in any language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.languages import Role
from planforge.rules.scanning.lexing import Kind
from planforge.rules.scanning.others.grammar import GRAMMARS
from planforge.rules.scanning.outlines import Outline
from planforge.rules.scanning.source import Comment, Source, names_issue

MARKS = re.compile(r"[ \t]*(?:///?!?|/\*+!?|\*+/?|#+!?|--|;+|<!--)?[ \t]*")
MARKER = re.compile(r"(?:TODO|FIXME|HACK|XXX)(?=[:\s(\[,!?.\-]|$)")
MARKER_INSIDE = re.compile(r"(?<![\w.\-*'\"`/])(?:TODO|FIXME|HACK|XXX)(?=:|\()")
MODULE = r"M-\d{3,}"
ABANDONED = re.compile(
    rf"\bstub(?:bed)? (?:out )?for {MODULE}\b|\bpending {MODULE}(?: implementation)?\b|\bwaiting (?:on"
    rf"|for) {MODULE}\b"
    rf"|\bnot yet implemented:? \(?{MODULE}\b|\bblocked (?:on|by) {MODULE}\b|\buntil {MODULE} (?:lands"
    rf"|exists|is (?:done|ready|merged))\b",
    re.IGNORECASE,
)
BLOCKED = re.compile(rf"\bBLOCKED on {MODULE}\b")
SOFT = re.compile(
    r"^will assert\b|\bwill assert (?:\w+ )?(?:later|once|when|after|until)\b"
    r"|\btracked as (?:a )?follow-?up\b"
    r"|\bassert(?:ion)?s? (?:to be |will be )?added later\b|\bplaceholder (?:test|assertion)\b",
    re.IGNORECASE,
)
UNFINISHED = re.compile(r"\bnot yet implemented\b|\bnot implemented yet\b", re.IGNORECASE)
"""Said of a test only where it asserts nothing; elsewhere it is said of what the test is about."""
UNCOVERED = re.compile(
    r"^(?:pragma:? no[ -]?(?:cover|branch)\b|istanbul ignore\b|c8 ignore\b|v8 ignore\b|:nocov:"
    r"|@codeCoverageIgnore\b|coverage:ignore"
    r"|LCOV_EXCL\w*|GCOVR?_EXCL\w*|tarpaulin::skip|NOSONAR\b|ExcludeFromCodeCoverage)",
    re.IGNORECASE,
)
DOCUMENTING = re.compile(r"/\*\*|///|//!")


def issues(source: Source, outline: Outline) -> Iterator[Issue]:
    """What the comments of a file show."""
    spans = [(case.at, case.end, not case.assertions and not case.may_assert) for case in outline.cases]
    for comment in source.comments:
        for line, at in _lines(comment):
            yield from _line(source, comment, line, at)
            if source.role is Role.TEST:
                yield from _in_test(source, comment, line, at, spans)
    if source.role is Role.SOURCE:
        yield from _strings(source)


def _lines(comment: Comment) -> Iterator[tuple[str, int]]:
    """The lines of a comment without its marks, each with where it begins."""
    at = comment.start
    for line in comment.text.split("\n"):
        marks = MARKS.match(line)
        skipped = marks.end() if marks else 0
        yield line[skipped:].rstrip().removesuffix("*/").rstrip(), at + skipped
        at += len(line) + 1


def _line(source: Source, comment: Comment, line: str, at: int) -> Iterator[Issue]:
    found = MARKER.match(line) or MARKER_INSIDE.search(line)
    if found and not names_issue(_around(source, comment)):
        yield source.issue("todo", at + found.start(), f"`{found[0]}` without a link to an issue")
    if found := ABANDONED.search(line):
        yield source.issue("abandoned", at + found.start(), f"`{found[0]}`: a module of the same work")
    if UNCOVERED.match(line):
        yield source.issue("uncovered", at, "taken out of the measurement of coverage")


def _around(source: Source, comment: Comment) -> str:
    """A comment with those that belong to it: the lines directly above and below, if they stand alone."""
    texts = [comment.text]
    if comment.alone:
        for step in (-1, 1):
            line = comment.line + step
            while (other := source.comment_lines.get(line)) and other.alone and len(texts) < 40:
                texts.append(other.text)
                line += step
    return "\n".join(texts)


def _in_test(
    source: Source, comment: Comment, line: str, at: int, spans: list[tuple[int, int, bool]]
) -> Iterator[Issue]:
    found = SOFT.search(line) or UNFINISHED.search(line)
    if found:
        bare = [nothing for start, end, nothing in spans if start <= at < end]
        if bare and (found.re is SOFT or bare[-1]):
            yield source.issue("soft-pass", at + found.start(), f"`{found[0]}`: the test is not finished")
    disabled = comment.alone and not DOCUMENTING.match(comment.text) and _is_test(source, line)
    if disabled and _goes_on(source, comment):
        yield source.issue("commented-test", at, f"`{line[:60]}` is commented out")


def _goes_on(source: Source, comment: Comment) -> bool:
    """Whether more of a test is commented out than its first line, which may be only the name of one."""
    following = source.comment_lines.get(comment.line + 1)
    if "\n" in comment.text or (following is not None and following.alone):
        return True
    return comment.text.rstrip().endswith(("}", ")", ";", "pass"))


def _is_test(source: Source, line: str) -> bool:
    grammar = GRAMMARS.get(source.language)
    return bool(grammar and grammar.commented and grammar.commented.match(line))


def _strings(source: Source) -> Iterator[Issue]:
    """A string that says `BLOCKED on M-001` is a marker that somebody meant to be seen at run time."""
    if "BLOCKED on M-" not in source.text:
        return
    documented = _documentation(source)
    for part in source.parts:
        found = BLOCKED.search(source.text, part.start, part.end) if part.kind is Kind.STRING else None
        if found and source.line(part.start) not in documented:
            yield source.issue("abandoned", found.start(), f"`{found[0]}`: a module of the same work")


def _documentation(source: Source) -> set[int]:
    """The lines on which strings of Python begin that nothing is done with."""
    return {
        node.lineno
        for node in (source.nodes if source.tree else ())
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
