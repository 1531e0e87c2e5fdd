"""
Words for a severity where prose states one.

Three shapes count: a label, a cell of a table, parentheses. `marks_in` finds them, each with the words around
it that tell what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from planforge.rules.findings import WORDS


class Mark(msgspec.Struct, frozen=True):
    """A severity word in prose, and the words around it that tell what it is about."""

    word: str
    title: str


KNOWN = "|".join(WORDS)
# In a bare cell or in parentheses only words that mean a severity and little else:
# "(required)" and "(info)" are ordinary English, so they need the label or the column.
LOOSE = "blocking|critical|high|medium|minor|low|suggestion"
LABEL = re.compile(
    r"(?ai:severity(?:[ ](?:level|rating))?)[\"'*_`]*[ \t]*[:=：](?:[^\w\r\n]|_)*"  # noqa: RUF001
    rf"(?P<word>[^\W_][\w-]*(?:(?:[ \t]*(?:[/,&+→]|\b(?:or|to|and)\b)[ \t]*|[–—])(?:{KNOWN})\b)*)",  # noqa: RUF001
    re.IGNORECASE,
)
LABEL_ABOVE = re.compile(
    rf"severity[*_`]*:[*_` \t]*\n\s*(?:[-*+][ \t]+)?[*_`]*(?P<word>{KNOWN})[*_`.]*[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
PARENTHESIS = re.compile(rf"(?<!\])\([\s*_`]*(?P<word>{LOOSE})[\s*_`]*\)", re.IGNORECASE)
CELL_BREAK = re.compile(r"(?<!\\)\|")
SEVERITY_COLUMN = re.compile(r"\b(?:severity|sev|level|priority)\b", re.IGNORECASE)
TITLE_REACH = 200


def marks_in(prose: str) -> Iterator[Mark]:
    """Severity words in the three shapes that count: a label, a table cell, parentheses.

    After a label or in a severity column any word is a mark, so that one nobody
    knows is noticed. Words that are merely bold, or just stand there, are not.
    """
    for pattern in (LABEL, LABEL_ABOVE, PARENTHESIS):
        for found in pattern.finditer(prose):
            yield Mark(found["word"].strip("_-"), _title(prose, found.start(), found.end()))
    table: list[list[str]] = []
    for line in (*prose.split("\n"), ""):
        if "|" in line:
            row = CELL_BREAK.split(line.strip().removeprefix("|").removesuffix("|"))
            table.append([_bare(cell) for cell in row])
        elif table:
            yield from _table_marks(table)
            table = []


def _table_marks(table: list[list[str]]) -> Iterator[Mark]:
    headed = len(table) > 1 and not any(table[1])
    header = table[0] if headed else []
    column = next((at for at, name in enumerate(header) if SEVERITY_COLUMN.search(name)), None)
    elsewhere = re.compile(_words_elsewhere(headed, column), re.IGNORECASE)
    for row in table[2:] if headed else table:
        for at, cell in enumerate(row):
            if (at == column and cell) or elsewhere.fullmatch(cell):
                yield Mark(cell, " — ".join(filter(None, row))[:TITLE_REACH])


def _words_elsewhere(headed: bool, column: int | None) -> str:
    """What counts outside a severity column: a table of risks must not read as "nothing blocks"."""
    if column is not None:
        return "blocking|critical"  # "high" beside a severity column is a confidence or an effort
    return "blocking|critical|high" if headed else LOOSE


def _title(prose: str, start: int, end: int) -> str:
    """What a mark is about: the rest of its line, or else one of the two lines above it."""
    line_start = max(prose.rfind("\n", 0, start) + 1, start - TITLE_REACH)
    rest = prose[line_start:start] + prose[end : end + TITLE_REACH].partition("\n")[0]
    for _ in range(3):
        if title := _bare(rest):
            return title[:TITLE_REACH]
        above = max(prose.rfind("\n", 0, max(line_start - 1, 0)) + 1, line_start - TITLE_REACH)
        rest, line_start = prose[above:line_start], above
    return _bare(prose[start:end])


def _bare(text: str) -> str:
    """The text without markup, bullets and symbols at its edges."""
    start = next((at for at, letter in enumerate(text) if letter.isalnum()), len(text))
    end = next((at for at in range(len(text), start, -1) if text[at - 1].isalnum()), start)
    return text[start:end]
