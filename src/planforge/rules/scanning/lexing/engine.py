"""
Goes through a text once and says which parts are code, strings, comments and regular expressions.

A dialect names what opens something other than code, and what to do there. Strings may
have holes with code in them, to any depth; a stack remembers which string goes on after
the hole, so nothing recurses. Heredocs begin after the line that announces them. All
patterns are possessive or bounded, and no place is looked at more than a few times, so
the time is linear in the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What a part of a text is."""

    CODE = "code"
    STRING = "string"
    COMMENT = "comment"
    REGEX = "regex"


class Token(NamedTuple):
    """A part of a text, from `start` up to `end`."""

    kind: Kind
    start: int
    end: int


class Quote(NamedTuple):
    """A string: what its inside looks like, what ends it, and what opens a hole with code in it."""

    body: re.Pattern[str]
    end: str
    hole: str = ""
    close: str = "}"
    kind: Kind = Kind.STRING


def body(pattern: str) -> re.Pattern[str]:
    """What the inside of a string looks like: any number of these."""
    # Atomic, not possessive: before Python 3.11.5, that keeps what an alternative read that did not fit.
    return re.compile(f"(?>(?:{pattern})*)", re.DOTALL)


class Hole:
    """Code inside of a string."""

    def __init__(self, quote: Quote) -> None:
        self.quote = quote
        self.depth = 0


FALSE_HEREDOCS = 8
"""How many announced heredocs may turn out to have no end before the rest of the text is taken for one."""

TAIL = 24
"""How much of the code before a place is looked at to tell what it means."""


class Cursor:
    """How far a text has been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens: list[Token] = []
        self.holes: list[Hole] = []
        self.tail = ""
        self.tail_end = 0
        self.heredocs: list[str] = []
        self.heredocs_after = -1
        self.false_heredocs = 0
        self.no_regex_before = 0

    def take(self, kind: Kind, end: int) -> None:
        """Say what the text up to `end` is."""
        if end <= self.at:
            return
        start, self.at = self.at, end
        if kind is Kind.CODE:
            self._remember(start, end)
            if self.tokens and self.tokens[-1].kind is Kind.CODE:
                start = self.tokens.pop().start
        elif kind is not Kind.COMMENT:
            self.tail, self.tail_end = '"', end
        self.tokens.append(Token(kind, start, end))

    def _remember(self, start: int, end: int) -> None:
        segment = self.text[start:end].rstrip()
        if segment:
            glued = self.tail_end == start and not segment[0].isspace()
            self.tail = ((self.tail if glued else "") + segment)[-TAIL:]
            self.tail_end = start + len(segment)

    def string(self, quote: Quote, start: int) -> None:
        """Take a string whose inside begins at `start`, as far as its end or its next hole."""
        found = quote.body.match(self.text, start)
        end = found.end() if found else start
        if self.text.startswith(quote.end, end):
            self.take(quote.kind, end + len(quote.end))
        elif quote.hole and self.text.startswith(quote.hole, end):
            self.take(quote.kind, end + len(quote.hole))
            self.holes.append(Hole(quote))
            self.tail, self.tail_end = "", self.at
        else:
            self.take(quote.kind, end)

    def announce(self, name: str, end: int) -> None:
        """A heredoc of this name begins on the next line."""
        self.take(Kind.CODE, end)
        if not self.heredocs:
            self.heredocs_after = self.text.find("\n", end)
        self.heredocs.append(name)

    def take_heredocs(self) -> None:
        """The heredocs that were announced on the line that ends here."""
        for name in self.heredocs:
            ending = re.compile(rf"^[ \t]*{re.escape(name)}[ \t]*\r?$", re.MULTILINE)
            found = ending.search(self.text, self.at)
            if found:
                self.take(Kind.STRING, found.end())
            elif self.false_heredocs < FALSE_HEREDOCS:
                self.false_heredocs += 1
            else:
                self.take(Kind.STRING, len(self.text))
        self.heredocs = []


Handler = Callable[[Cursor, re.Match[str]], None]


class Dialect(NamedTuple):
    """How a language is written."""

    openers: re.Pattern[str]
    handlers: Mapping[str, Handler]
    in_hole: re.Pattern[str] | None = None
    """What to stop at in code inside of a string: the brackets as well."""
    begin: Callable[[Cursor], None] | None = None


def dialect(
    openers: Mapping[str, tuple[str, Handler]],
    *,
    brackets: str = "",
    begin: Callable[[Cursor], None] | None = None,
) -> Dialect:
    """A dialect of patterns, each with what to do there; `brackets` are those that end a hole in a string."""
    parts = [f"(?P<{name}>{pattern})" for name, (pattern, _) in openers.items()]
    nested = [
        *parts,
        f"(?P<open>{re.escape(brackets[:1])})",
        f"(?P<close>{re.escape(brackets[1:])})",
    ]
    handlers = {name: handler for name, (_, handler) in openers.items()}
    return Dialect(
        openers=re.compile("|".join(parts), re.MULTILINE),
        handlers={**handlers, "open": open_bracket, "close": close_bracket},
        in_hole=re.compile("|".join(nested), re.MULTILINE) if brackets else None,
        begin=begin,
    )


def read(text: str, language: Dialect) -> list[Token]:
    """The parts of a text, which together are the text."""
    cursor = Cursor(text)
    if language.begin:
        language.begin(cursor)
    while cursor.at < len(text):
        openers = language.in_hole if cursor.holes and language.in_hole else language.openers
        found = openers.search(text, cursor.at)
        stop = found.start() if found else len(text)
        if cursor.heredocs and _heredocs_begin(cursor, stop):
            continue
        cursor.take(Kind.CODE, stop)
        if found and found.lastgroup:
            language.handlers[found.lastgroup](cursor, found)
            if cursor.at <= stop:
                cursor.take(Kind.CODE, max(found.end(), stop + 1))
    return cursor.tokens


def _heredocs_begin(cursor: Cursor, stop: int) -> bool:
    if 0 <= cursor.heredocs_after < cursor.at:  # a string ran over the end of the line
        cursor.heredocs_after = cursor.text.find("\n", cursor.at)
    if not 0 <= cursor.heredocs_after < stop:
        return False
    cursor.take(Kind.CODE, cursor.heredocs_after + 1)
    cursor.take_heredocs()
    return True


def open_bracket(cursor: Cursor, found: re.Match[str]) -> None:
    """A bracket inside of a hole, which is not the one that ends it."""
    cursor.take(Kind.CODE, found.end())
    cursor.holes[-1].depth += 1


def close_bracket(cursor: Cursor, found: re.Match[str]) -> None:
    """A bracket inside of a hole: the one that ends it, or not."""
    hole = cursor.holes[-1]
    if hole.depth:
        hole.depth -= 1
        cursor.take(Kind.CODE, found.end())
    else:
        cursor.holes.pop()
        cursor.string(hole.quote, found.end())


def comment(cursor: Cursor, found: re.Match[str]) -> None:
    """All that was found is a comment."""
    cursor.take(Kind.COMMENT, found.end())


def whole_string(cursor: Cursor, found: re.Match[str]) -> None:
    """All that was found is a string."""
    cursor.take(Kind.STRING, found.end())


def code(cursor: Cursor, found: re.Match[str]) -> None:
    """What was found only looks like something else."""
    cursor.take(Kind.CODE, found.end())


def quoted(quote: Quote) -> Handler:
    """What was found opens this string."""

    def handle(cursor: Cursor, found: re.Match[str]) -> None:
        cursor.string(quote, found.end())

    return handle


def until(end: str) -> Handler:
    """What was found opens a comment that goes on until `end`."""

    def handle(cursor: Cursor, found: re.Match[str]) -> None:
        at = cursor.text.find(end, found.end())
        cursor.take(Kind.COMMENT, at + len(end) if at >= 0 else len(cursor.text))

    return handle


NESTING = re.compile(r"/\*|\*/")


def nested_comment(cursor: Cursor, found: re.Match[str]) -> None:
    """A `/*` comment that may have others in it."""
    depth = 1
    for mark in NESTING.finditer(cursor.text, found.end()):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            cursor.take(Kind.COMMENT, mark.end())
            return
    cursor.take(Kind.COMMENT, len(cursor.text))
