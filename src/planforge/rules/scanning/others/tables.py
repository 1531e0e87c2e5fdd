"""How many rows the tables of tests have, as far as they are written out."""

from __future__ import annotations

import re

from planforge.rules.scanning.languages import Language
from planforge.rules.scanning.source import Source

MARKERS = {
    Language.CSHARP: re.compile(r"\[\s*(?:InlineData|TestCase|DataRow)\s*\("),
    Language.RUST: re.compile(r"#\[\s*(?:case|test_case)\b(?=[^\]\n]*\()"),
    Language.PHP: re.compile(r"\#\[\s*(?:\\?[\w\\]+\\)?TestWith\b"),
}
UNKNOWN = re.compile(
    r"@(?:MethodSource|ArgumentsSource|EnumSource|CsvFileSource)\b|\[\s*(?:MemberData|ClassData"
    r"|TestCaseSource)\b"
)
LISTED = re.compile(r"@(?:ValueSource|CsvSource)\s*\(")
GO_TABLE = re.compile(
    r"(?::=|=)\s*(?:\[\s*\d*(?:\.\.\.)?\s*\]|map\s*\[[^\]\n]*\])\s*(?:\*?\s*[\w.]+|struct\s*\{[^{}]*\})\s*\{"
)


def elements(source: Source, open_: int) -> list[tuple[int, int]]:
    """Where the elements between two brackets begin and end."""
    close = source.pairs.get(open_)
    if close is None:
        return []
    found: list[tuple[int, int]] = []
    start = at = open_ + 1
    while at < close:
        character = source.code[at]
        if character in "([{" and at in source.pairs:
            at = source.pairs[at]
        elif character == ",":
            found.append((start, at))
            start = at + 1
        at += 1
    return found if not source.code[start:close].strip() else [*found, (start, close)]


def each(source: Source, found: re.Match[str]) -> tuple[int | None, int]:
    """The rows of `it.each(table)(name, …)`, and where the list of arguments with the name opens."""
    first = source.code.find("(", found.start(), found.end() + 1)
    if first < 0:  # a template: a line of names, then a line for each row
        parts = list(source.strings(found.end() - 1, found.end()))
        tail = source.code.find("(", found.end())
        lines = source.text[found.end() : tail].count("\n") - 1 if tail >= 0 else 0
        return (lines if parts and lines > 0 else None), tail
    close = source.pairs.get(first)
    if close is None:
        return None, -1
    following = re.compile(r"\s*\(").match(source.code, close + 1)
    table = re.compile(r"\s*\[").match(source.code, first + 1)
    rows = len(elements(source, table.end() - 1)) if table else None
    return rows, following.end() - 1 if following else -1


def rows(source: Source, start: int, parameters: int, body: int) -> int | None:
    """The rows of a test that is a function: by what is written above it, or by the table in it."""
    above = source.code[start:parameters]
    if UNKNOWN.search(above):
        return None
    if marker := MARKERS.get(source.language):
        return max(len(marker.findall(above)), 1)
    if listed := LISTED.search(source.code, start, parameters):
        brace = source.code.find("{", listed.end(), parameters)
        return max(len(elements(source, brace)), 1) if brace >= 0 else 1
    if source.language is Language.GO:
        end = source.pairs.get(body, body)
        tables = [
            len(elements(source, found.end() - 1)) for found in GO_TABLE.finditer(source.code, body, end)
        ]
        return max(tables, default=1) or 1
    return 1
