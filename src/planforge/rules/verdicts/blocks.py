"""
Which lines of a Markdown answer are text, and which are a quotation, code or HTML.

The block structure of CommonMark, as far as it decides whose words a line is: quotations and the lines that
carry them on, items of lists, fences, indented code, HTML. Lines are told as they stand; what is in them is
left to others.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

QUOTATION = -1
"""The width of a container that is a quotation; an item of a list has that of its indentation."""
CODE_INDENT = 4
DEEPEST = 50
"""Nobody means what is nested more deeply."""


class Kind(Enum):
    """What a line is."""

    TEXT = "text"
    BLANK = "blank"
    QUOTED = "quoted"
    CODE = "code"
    HTML = "html"
    COMMENT = "comment"


class Line(NamedTuple):
    """One line, and whose it is."""

    text: str
    kind: Kind
    block: int = 0
    """Lines of one paragraph, fence or piece of HTML have the same number."""
    info: str | None = None
    """What the fence of a line of code is labelled; None if it has none."""


class _Html(NamedTuple):
    start: re.Pattern[str]
    end: re.Pattern[str] | None
    """None: it ends at a blank line."""
    interrupts: bool = True


BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|"
    "dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|"
    "main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|"
    "thead|title|tr|track|ul"
)
ATTRIBUTES = r"(?:\s+[a-z_:][\w.:-]*(?:\s*=\s*(?:[^\s\"'=<>`]+|'[^']*'|\"[^\"]*\"))?)*"
COMMENT = _Html(re.compile(r"<!--"), re.compile(r"-->"))
HTML = (
    COMMENT,
    _Html(
        re.compile(r"<(?:script|pre|style|textarea)(?:\s|>|$)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    ),
    _Html(re.compile(r"<\?"), re.compile(r"\?>")),
    _Html(re.compile(r"<![A-Za-z]"), re.compile(r">")),
    _Html(re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    _Html(re.compile(rf"</?(?:{BLOCK_TAGS})(?:\s|/?>|$)", re.IGNORECASE), None),
    _Html(
        re.compile(rf"<(?:[a-z][a-z0-9-]*{ATTRIBUTES}\s*/?|/[a-z][a-z0-9-]*\s*)>\s*$", re.IGNORECASE),
        None,
        interrupts=False,
    ),
)
FENCE = re.compile(r"(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
HEADING = re.compile(r"#{1,6}(?:\s|$)")
RULE = re.compile(r"(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$")
UNDERLINE = re.compile(r"(?:=+|-+)\s*$")
ITEM = re.compile(r"(?P<mark>[-+*]|(?P<number>\d{1,9})[.)])(?P<space>\s+|$)")


def read(text: str) -> tuple[list[Line], bool]:
    """Every line of an answer, and whether all fences and comments were closed where it ends."""
    reader = _Reader()
    found = [reader.read(line) for line in text.split("\n")]
    return found, not reader.fence and not (reader.html and reader.html.end)


class _Reader:
    """What is open where the next line begins."""

    def __init__(self) -> None:
        self.containers: list[int] = []
        self.empty = False
        """Whether the innermost item has nothing in it yet."""
        self.block = 0
        self.paragraph = False
        self.code = False
        self.fence = ""
        self.info = ""
        self.html: _Html | None = None

    def read(self, raw: str) -> Line:
        line = raw.expandtabs(CODE_INDENT)
        matched, rest = self._matched(line)
        if matched == len(self.containers) and (told := self._inside(raw, rest)):
            return told
        started, matched, rest = self._containers(matched, rest)
        if not started and matched < len(self.containers):
            if self.paragraph and rest.strip() and not _opens(rest):
                return self._told(raw, Kind.TEXT)  # a line that carries on a paragraph of a quotation or item
            self._leave(matched)
        return self._leaf(raw, rest)

    def _matched(self, rest: str) -> tuple[int, str]:
        """How many containers go on in this line, and what is left of it in them."""
        for at, width in enumerate(self.containers):
            bare = rest.lstrip(" ")
            indent = len(rest) - len(bare)
            if width == QUOTATION:
                if indent >= CODE_INDENT or not bare.startswith(">"):
                    return at, rest
                rest = bare[1:].removeprefix(" ")
            elif not bare:
                if self.empty and at == len(self.containers) - 1:
                    return at, rest
                rest = ""
            elif indent >= width:
                rest = rest[width:]
            else:
                return at, rest
        return len(self.containers), rest

    def _inside(self, raw: str, rest: str) -> Line | None:
        """A line of a fence or of HTML that is open."""
        bare = rest.lstrip(" ")
        if self.fence:
            mark = bare.rstrip()
            closes = mark.startswith(self.fence) and not mark.strip(self.fence[0])
            told = self._told(raw, Kind.CODE, self.info)
            if closes and len(rest) - len(bare) < CODE_INDENT:
                self.fence = ""
                return self._told("", Kind.CODE)
            return told
        if self.html:
            kind = Kind.COMMENT if self.html is COMMENT else Kind.HTML
            if self.html.end is None and not bare:
                self.html = None
                return self._told(raw, Kind.BLANK)
            if self.html.end and self.html.end.search(rest):
                self.html = None
            return self._told(raw, kind)
        return None

    def _containers(self, matched: int, rest: str) -> tuple[bool, int, str]:
        """Quotations and items that begin in this line."""
        started = False
        while True:
            bare = rest.lstrip(" ")
            indent = len(rest) - len(bare)
            if indent >= CODE_INDENT or not bare or matched >= DEEPEST:
                return started, matched, rest
            found = ITEM.match(bare)
            if bare.startswith(">"):
                self._leave(matched)
                self.containers.append(QUOTATION)
                rest = bare[1:].removeprefix(" ")
            elif found and not RULE.match(bare) and self._may_begin(found, matched, bare):
                self._leave(matched)
                space = len(found["space"])
                content = bare[found.end() :]
                wide = space if content and space <= CODE_INDENT else 1
                self.containers.append(indent + len(found["mark"]) + wide)
                self.empty = not content
                rest = bare[len(found["mark"]) + wide :]
            else:
                return started, matched, rest
            started, matched = True, len(self.containers)

    def _may_begin(self, found: re.Match[str], matched: int, bare: str) -> bool:
        """Whether an item may stand here: in the middle of a paragraph only one with text, numbered 1."""
        if not self.paragraph or matched < len(self.containers):
            return True
        return bool(bare[found.end() :].strip()) and found["number"] in (None, "1")

    def _leave(self, matched: int) -> None:
        del self.containers[matched:]
        self.paragraph = self.code = self.empty = False
        self.fence, self.html = "", None

    def _leaf(self, raw: str, rest: str) -> Line:
        bare = rest.lstrip(" ")
        indent = len(rest) - len(bare)
        if not bare:
            self.paragraph = False
            return self._told(raw, Kind.BLANK)
        self.empty = False
        if indent >= CODE_INDENT and not self.paragraph:
            self.block += not self.code
            self.code = True
            return self._told(raw, Kind.CODE)
        self.code = False
        if indent < CODE_INDENT:
            if found := FENCE.match(bare):
                self._begin()
                self.fence, self.info = found["mark"], found["info"].strip()
                return self._told("", Kind.CODE)
            if html := _html(bare, self.paragraph):
                self._begin()
                self.html = None if html.end and html.end.search(bare) else html
                return self._told(raw, Kind.COMMENT if html is COMMENT else Kind.HTML)
            if HEADING.match(bare) or RULE.match(bare) or (self.paragraph and UNDERLINE.match(bare)):
                self._begin()
                return self._told(raw, Kind.TEXT)
        if not self.paragraph:
            self._begin()
            self.paragraph = True
        return self._told(raw, Kind.TEXT)

    def _begin(self) -> None:
        self.block += 1
        self.paragraph = self.code = False

    def _told(self, raw: str, kind: Kind, info: str | None = None) -> Line:
        quoted = QUOTATION in self.containers
        return Line(raw, Kind.QUOTED if quoted and kind is not Kind.BLANK else kind, self.block, info)


def _opens(rest: str) -> bool:
    """Whether a line begins a block that ends a paragraph."""
    bare = rest.lstrip(" ")
    if len(rest) - len(bare) >= CODE_INDENT:
        return False
    return bool(FENCE.match(bare) or HEADING.match(bare) or RULE.match(bare) or _html(bare, paragraph=True))


def _html(bare: str, paragraph: bool) -> _Html | None:
    if not bare.startswith("<"):
        return None
    for html in HTML:
        if html.start.match(bare) and (html.interrupts or not paragraph):
            return html
    return None
