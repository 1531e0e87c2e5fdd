"""
What an answer says itself, apart from what it quotes.

Block quotes, code, and comments that nobody sees are somebody else's words: a verdict in one of them is
not the reviewer's. JSON may stand in a fence, as agents like to put it, if that is labelled as JSON or
not at all. Where it cannot be told whose words they are (HTML, a quotation or a piece of code that goes over
several lines of a paragraph), they approve nothing, and no approval stands beside them if they speak of one.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence

import msgspec

from planforge.rules.verdicts.blocks import Kind, read

MAX_BYTES = 1_000_000
MAX_LINES = 50_000
NEVER_CLOSED = "a code fence is never closed, so part of the answer may be hidden"
NOT_CLEAR = "it is not clear whose words part of the answer is"

JSON_START = re.compile(r"\n* {0,3}\{")
JSON_LABELS = ("", "json", "jsonc", "json5")
SAYS = re.compile(
    r"verdict|severity|approve|reject|revis|blocking|critical|required|\bhigh\b|should_?loop", re.IGNORECASE
)
COMMENT = re.compile(r"(?<!\\)<!--(?:-?>|.*?-->)")
ATTRIBUTES = re.compile(r"(?<!\\)<[A-Za-z][A-Za-z0-9-]*\s[^<>\n]*>")
OPEN_VALUE = re.compile(
    r"(?<!\\)<[A-Za-z][^<>\n]*?=\s*(?P<mark>[\"'])(?:(?!(?P=mark))[^\n])*\n.*?(?:(?P=mark)|\Z)", re.DOTALL
)
"""A tag with a value that continues in the next line."""
CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
ACROSS = re.compile(
    r"(?<!\\)<(?=[A-Za-z/!?])[^<>\n]*\n.*?(?:>|\Z)"  # a tag or a comment
    r"|\]\([^()\n]*\n.*?(?:\)|\Z)"  # where a link leads
    r"|~~[^~\n]*\n.*?(?:~~|\Z)"  # struck out
    r"|\"[^\"\n]*\n[^\"]*\"",
    re.DOTALL,
)
QUOTED = re.compile(r"(?P<mark>\"\"\"|''').*?(?:(?P=mark)|\Z)|[“„«][^“”„«»]*\n[^“”„«»]*[“”»]", re.DOTALL)
"""A string of a program, or a quotation, over several lines."""
DEFINITION = re.compile(r"\[[^\[\]]*\]:")
PATCH = re.compile(r"^(?:@@ -|diff --git |\+\+\+ |--- )", re.MULTILINE)
TAG = re.compile(
    r"<(?P<end>/?)(?:(?i:blockquote|pre|code|del|strike|template|samp|kbd|cite|xmp)|q|s)(?:\s[^<>]*)?>"
)


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in its parts."""

    parts: tuple[tuple[bool, str], ...]
    """In order: whether it is a fence that may hold JSON, and what it says."""
    unclear: str
    """What may be somebody else's words."""
    closed: bool
    """Whether every fence was closed; if not, part of the answer may be hidden."""

    @property
    def prose(self) -> str:
        """What stands in no fence."""
        return "\n".join(text for fenced, text in self.parts if not fenced)

    @property
    def data(self) -> str:
        """The same, with the fences that may hold JSON."""
        return "\n".join(text for _, text in self.parts)

    @property
    def doubt(self) -> str:
        """Why an approval cannot be believed; empty if nothing speaks against it."""
        if not self.closed:
            return NEVER_CLOSED
        return NOT_CLEAR if SAYS.search(self.unclear) else ""


def spoken(text: str) -> Spoken:
    """Take out what is quoted, commented or code."""
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    if _is_json(normal):
        return Spoken(parts=((False, normal),), unclear="", closed=True)
    parts: list[tuple[bool, str]] = []
    unclear: list[str] = []
    depth = 0
    found, closed = read(normal)
    for (kind, info, _), block in itertools.groupby(found, lambda line: (line.kind, line.info, line.block)):
        said = [line.text for line in block]
        if kind is Kind.HTML:
            unclear += said
        elif kind is Kind.TEXT:
            said = [COMMENT.sub("", line) if "`" not in line else line for line in said]
            unclear += _unclear(said)
            unclear += said if depth else ()
            parts.append((False, "\n".join(said)))
        elif kind is Kind.BLANK:
            parts += ((False, line) for line in said)
        elif kind is Kind.CODE and info is not None and info.lower().split(maxsplit=1)[:1] in _JSON:
            parts.append((True, "\n".join(said)))
        if kind in (Kind.HTML, Kind.TEXT):
            depth = max(depth + _opened("\n".join(said)), 0)
    prose = "\n".join(said for fenced, said in parts if not fenced)
    unclear += (each[0] for each in QUOTED.finditer(prose))
    unclear += [prose] if PATCH.search(prose) else ()
    return Spoken(parts=tuple(_joined(parts)), unclear="\n".join(unclear), closed=closed)


_JSON = ([], *([label] for label in JSON_LABELS))


def _joined(parts: Sequence[tuple[bool, str]]) -> Iterator[tuple[bool, str]]:
    """Prose between two fences in one piece."""
    for fenced, group in itertools.groupby(parts, lambda part: part[0]):
        if fenced:
            yield from group
        else:
            yield False, "\n".join(text for _, text in group)


def _is_json(text: str) -> bool:
    """Whether the answer is one JSON object and nothing else, so that Markdown has no say in it."""
    bare = text.strip()
    if not JSON_START.match(text) or not bare.endswith("}"):
        return False
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return True


def _unclear(paragraph: Sequence[str]) -> Iterator[str]:
    """What goes over several lines of a paragraph and is not its own words, or may not be."""
    text = "\n".join(paragraph)
    yield from _code_across(text)
    yield from (found[0] for pattern in (ACROSS, ATTRIBUTES, OPEN_VALUE) for found in pattern.finditer(text))
    if len(paragraph) > 1 and DEFINITION.search(text):
        yield text
    for line in paragraph:
        if "<!--" in line:
            yield line


def _code_across(text: str) -> Iterator[str]:
    """Pieces of inline code that go over several lines: from a run of backticks to the next one as long."""
    runs = list(re.finditer(r"(?<!\\)`+", text))
    nexts: dict[int, int] = {}
    following: dict[int, int] = {}
    for at in range(len(runs) - 1, -1, -1):
        length = len(runs[at][0])
        following[at] = nexts.get(length, -1)
        nexts[length] = at
    at = 0
    while at < len(runs):
        end = following[at]
        if end < 0:
            at += 1
            continue
        if "\n" in (piece := text[runs[at].start() : runs[end].end()]):
            yield piece
        at = end + 1


def _opened(text: str) -> int:
    """How many HTML elements that quote or strike out are open after a text."""
    tags = [found["end"] for found in TAG.finditer(CODE_SPAN.sub("", text))]
    return tags.count("") - tags.count("/")


NEARLY = re.compile(
    r"^(?>(?:<[^<>\n]*>|[^\w\n]|[\d_])*)(?ai:verdict)(?>(?:<[^<>\n]*>|[^\w\n]|_)*)"
    r"(?P<said>[A-Za-z][A-Za-z \t]*)[^\w\n]*$",
    re.MULTILINE,
)
AGAINST = ("reject", "rejected", "revision", "revision required", "needs revision", "changes requested")


def dissent(prose: str) -> str:
    """Why an approval does not stand: a line that is nearly a verdict, and against it."""
    for found in NEARLY.finditer(prose):
        said = " ".join(found["said"].split())
        if said.lower() in AGAINST:
            return f"another line says `{said}`"
    return ""


def too_large(text: str) -> str:
    """Why an answer is too large to be read; empty if it is not."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        return "the answer is larger than 1 MB"
    if text.count("\n") + text.count("\r") > MAX_LINES:
        return f"the answer has more than {MAX_LINES:,} lines"
    return ""


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; one that has a key twice is refused."""
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a key is given twice")
    return read


def plain(value: object) -> str:
    """A string that any encoder takes: JSON escapes can smuggle in lone surrogates."""
    return value.encode("utf-8", "replace").decode().strip() if isinstance(value, str) else ""
