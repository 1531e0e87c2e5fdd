"""One file under the scanner: its text, what its parts are, and where in it something is."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from planforge.rules.scanning.issues import RULES, Issue
from planforge.rules.scanning.languages import Language, Role
from planforge.rules.scanning.lexing import Kind, Token, blanked, tokens
from planforge.rules.scanning.python_assertions import resolve_aliases

Node = ast.expr | ast.stmt | ast.ExceptHandler
"""What of Python's syntax tree has a place."""

SNIPPET = 120
ALIASED = re.compile(r"=[^=\n(]*\.\w*[aA]ssert\w*[ \t]*(?:$|[,#)])", re.MULTILINE)
"""Where an assertion may get another name."""
BRACKETS = re.compile(r"[()\[\]{}]")
CLOSES = {")": "(", "]": "[", "}": "{"}

ISSUE_WORD = r"(?:issue|issues|bug|bugs|ticket|tickets|pr|gh|bpo|sf|defect|patch|case|lp)"
ISSUE = re.compile(
    r"https?://\S+"
    r"|(?:^|[\s(\[/\w])#\d+\b"
    rf"|\b{ISSUE_WORD}[ \-_:]{{0,2}}\#?\d+\b"
    r"|\b(?!(?i:UTF|ISO|SHA|RFC|PEP|CP|AES|MD|HTTP|UCS|IPV|PY|WIN|X|ECMA|IEEE|TLS|SSL|M|F|J|AC|CR|STEP"
    r"|PHASE)-)"
    r"[A-Z][A-Z0-9]{1,9}-\d+\b",
)
ISSUE_ANY_CASE = re.compile(rf"\b{ISSUE_WORD}[ \-_:]{{0,2}}(?:no\.? ?)?\#?\d+\b", re.IGNORECASE)


def names_issue(text: str) -> bool:
    """Whether a text has a link to an issue: a URL, `#12`, `owner/name#12`, `ABC-12`, `issue 12`."""
    return bool(ISSUE.search(text) or ISSUE_ANY_CASE.search(text))


LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.Pass)
UNINTERESTING = frozenset(("ctx", "type_comment", "kind"))


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node, in order."""
    if isinstance(node, LEAVES):
        return []
    found: list[ast.AST] = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            found.extend(item for item in value if isinstance(item, ast.AST))
        elif isinstance(value, ast.AST) and field not in UNINTERESTING:
            found.append(value)
    return found


def walk(nodes: Iterable[ast.AST], stop: tuple[type[ast.AST], ...]) -> Iterator[ast.AST]:
    """These nodes and all below them, but nothing below nodes of the kinds to stop at."""
    open_ = list(nodes)
    while open_:
        node = open_.pop()
        yield node
        if not isinstance(node, stop):
            open_.extend(children(node))


class Comment(NamedTuple):
    """A comment with its marks."""

    text: str
    start: int
    line: int
    alone: bool
    """Whether nothing stands before it on its line."""


class Source:
    """A text with its language and what it is for."""

    def __init__(self, path: str, text: str, language: Language, role: Role) -> None:
        self.path = path
        self.text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        self.language = language
        self.role = role

    @cached_property
    def parts(self) -> list[Token]:
        """What the parts of the text are, by the lexer."""
        return tokens(self.text, self.language)

    @cached_property
    def code(self) -> str:
        """The code alone, everything else blank."""
        return blanked(self.text, self.parts)

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree of Python; None if there is none."""
        if self.language is not Language.PYTHON:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        if ALIASED.search(self.text):
            resolve_aliases(tree)
        return tree

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of Python's syntax tree, each before those below it."""
        return self._walked[0]

    @cached_property
    def _walked(self) -> tuple[list[ast.AST], dict[int, tuple[int, int]]]:
        """The nodes, and for each where it is among them and where those below it end."""
        nodes: list[ast.AST] = []
        spans: dict[int, tuple[int, int]] = {}
        open_: list[ast.AST | tuple[int, int]] = [] if self.tree is None else [self.tree]
        while open_:
            node = open_.pop()
            if isinstance(node, tuple):
                spans[node[0]] = (node[1], len(nodes))
                continue
            if isinstance(node, ast.stmt | ast.mod | ast.ExceptHandler):
                open_.append((id(node), len(nodes)))
            nodes.append(node)
            open_.extend(reversed(children(node)))
        return nodes, spans

    def below(self, node: ast.stmt | ast.mod | ast.ExceptHandler) -> list[ast.AST]:
        """A statement of Python and all that is in it; the tree is walked once for all who ask."""
        nodes, spans = self._walked
        start, end = spans[id(node)]
        return nodes[start:end]

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return self.text.split("\n")

    @cached_property
    def starts(self) -> list[int]:
        """Where each line starts."""
        found = [0]
        for line in self.lines:
            found.append(found[-1] + len(line) + 1)
        return found

    def line(self, offset: int) -> int:
        """The number of the line that a place is on, from 1."""
        return min(bisect_right(self.starts, offset), len(self.lines))

    def column(self, offset: int) -> int:
        """How far to the right on its line a place is, from 1."""
        return offset - self.starts[self.line(offset) - 1] + 1

    def offset(self, line: int, column_in_bytes: int) -> int:
        """The place that the syntax tree of Python means."""
        start = self.starts[min(line, len(self.lines)) - 1]
        content = self.lines[min(line, len(self.lines)) - 1]
        if content.isascii():
            return start + column_in_bytes
        return start + len(content.encode()[:column_in_bytes].decode("utf-8", "replace"))

    def start(self, node: Node) -> int:
        """Where a node of Python's syntax tree begins."""
        return self.offset(node.lineno, node.col_offset)

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node of Python's syntax tree."""
        end = self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        return self.text[self.start(node) : end]

    @cached_property
    def comments(self) -> list[Comment]:
        """All comments, in order."""
        if self.language is Language.PYTHON:
            found = self._python_comments()
            if found is not None:
                return found
        return [self._comment(part.start, part.end) for part in self.parts if part.kind is Kind.COMMENT]

    def _python_comments(self) -> list[Comment] | None:
        if "#" not in self.text:
            return []
        try:
            found = [
                (self.starts[token.start[0] - 1] + token.start[1], len(token.string))
                for token in tokenize.generate_tokens(io.StringIO(self.text).readline)
                if token.type == tokenize.COMMENT
            ]
        except (tokenize.TokenError, SyntaxError):
            return None
        return [self._comment(start, start + length) for start, length in found]

    def _comment(self, start: int, end: int) -> Comment:
        line = self.line(start)
        before = self.text[self.starts[line - 1] : start]
        return Comment(self.text[start:end], start, line, not before.strip())

    @cached_property
    def comment_lines(self) -> dict[int, Comment]:
        """The comment that begins on a line."""
        return {comment.line: comment for comment in self.comments}

    def said_at(self, first: int, last: int) -> str:
        """The lines from `first` to `last`, with the comments that stand directly above them."""
        above = first - 1
        while (comment := self.comment_lines.get(above)) and comment.alone:
            above -= 1
        return "\n".join(self.lines[above:last])

    @cached_property
    def pairs(self) -> dict[int, int]:
        """For every opening bracket in the code, where it closes."""
        found: dict[int, int] = {}
        open_: list[tuple[str, int]] = []
        waiting = dict.fromkeys("([{", 0)
        for mark in BRACKETS.finditer(self.code):
            if mark[0] in waiting:
                open_.append((mark[0], mark.start()))
                waiting[mark[0]] += 1
            elif waiting[CLOSES[mark[0]]]:
                while open_:
                    kind, at = open_.pop()
                    waiting[kind] -= 1
                    if kind == CLOSES[mark[0]]:
                        found[at] = mark.start()
                        break
        return found

    def strings(self, start: int, end: int) -> Iterator[str]:
        """The strings that begin between two places, as they are written."""
        first = bisect_left(self.parts, start, key=lambda part: part.start)
        for part in self.parts[first:]:
            if part.start >= end:
                return
            if part.kind is Kind.STRING:
                yield self.text[part.start : part.end]

    def issue(
        self, rule: str, at: int | Node, message: str, *, about: tuple[int, int] | None = None
    ) -> Issue:
        """What a rule says about a place or a node; `about` is where what it is about begins and ends."""
        at = at if isinstance(at, int) else self.start(at)
        line = self.line(at)
        return Issue(
            rule=rule,
            severity=RULES[rule].severity,
            path=self.path,
            line=line,
            column=at - self.starts[line - 1] + 1,
            message=message,
            snippet=self.lines[line - 1].strip()[:SNIPPET],
            lines=(line, line) if about is None else (self.line(about[0]), self.line(about[1])),
        )
