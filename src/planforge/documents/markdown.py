"""
Sections of a Markdown document, found and changed without disturbing the rest.

A section is a `## Heading` and all that follows it up to the next one. Headings
inside code fences are text. Every change is an insertion or a replacement at
exact offsets, so bytes that were not meant, line endings included, stay as they
were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from planforge.errors import InvalidDocument

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>.*)")
ITEM_FENCE = re.compile(
    r"[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)+(?P<fence>`{3,}|~{3,})(?P<info>.*)"
)  # the first line of a list item
SECTION = re.compile(r" {0,3}##(?:[ \t]+(?P<name>.*))?")
CLOSING_MARKS = re.compile(r"(?:^|[ \t])#+$")
RULE = re.compile(r" {0,3}(?:-[ \t]*){3,}")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a document: where it starts, what it says, and whether a fence holds it."""

    start: int
    end: int
    text: str
    fenced: bool = False


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A `## Heading` and its body, as offsets into the document."""

    name: str
    start: int
    body_start: int
    end: int


def raw_lines(text: str) -> Iterator[Line]:
    """The lines of a document without their endings; `end` is past the ending."""
    for found in LINE.finditer(text):
        yield Line(start=found.start(), end=found.end(), text=found[0].rstrip("\r\n"))


def lines(text: str) -> Iterator[Line]:
    """The lines of a document; fence marks themselves count as fenced."""
    open_fence = ""
    for line in raw_lines(text):
        before, open_fence = open_fence, _fence_after(open_fence, line.text)
        yield msgspec.structs.replace(line, fenced=bool(before or open_fence))


def open_fence(text: str) -> str:
    """The mark of the code fence that is still open where the text ends, or nothing."""
    fence = ""
    for line in raw_lines(text):
        fence = _fence_after(fence, line.text)
    return fence


def fenced_blocks(text: str) -> tuple[str, ...]:
    """The contents of the closed code fences, in order."""
    blocks: list[str] = []
    fence, start = "", 0
    for line in raw_lines(text):
        before, fence = fence, _fence_after(fence, line.text)
        if fence and not before:
            start = line.end
        elif before and not fence:
            blocks.append(text[start : line.start])
    return tuple(blocks)


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open after a line: a fence ends only with its own mark, as long or longer."""
    found = FENCE.fullmatch(line) or (None if fence else ITEM_FENCE.fullmatch(line))
    if not found:
        return fence
    mark, info = found["fence"], found["info"]
    if fence:
        return "" if mark.startswith(fence) and not info.strip() else fence
    return "" if mark[0] == "`" and "`" in info else mark


def sections(text: str) -> tuple[Section, ...]:
    """Every `## Heading` outside code fences, in order."""
    heads = [(line, heading(line)) for line in lines(text) if heading(line) is not None]
    starts = [line.start for line, _ in heads] + [len(text)]
    return tuple(
        Section(name=name or "", start=line.start, body_start=line.end, end=end)
        for (line, name), end in zip(heads, starts[1:], strict=True)
    )


def heading(line: Line) -> str | None:
    """The name of the section that a line starts, if it starts one."""
    found = None if line.fenced else SECTION.fullmatch(line.text)
    return CLOSING_MARKS.sub("", (found["name"] or "").strip()).strip() if found else None


def find(text: str, name: str) -> Section | None:
    """The first section of that name, in any case."""
    return next((each for each in sections(text) if each.name.lower() == name.lower()), None)


def body(text: str, name: str) -> str | None:
    """What the section of that name holds, or nothing when there is no such section."""
    section = find(text, name)
    return text[section.body_start : section.end] if section else None


def append(text: str, name: str, content: str) -> str:
    """The document with more at the end of one section, above the rule that may close it."""
    section = find(text, name)
    if section is None:
        raise InvalidDocument(f"the document has no `## {name}` section")
    return inserted(text, content_end(text, section), content.strip("\r\n"))


def inserted(text: str, at: int, paragraph: str) -> str:
    """The document with a paragraph of its own below the line that ends at `at`."""
    newline, rest = newline_of(text), text[at:]
    # Without a blank line a rule that follows would turn our last line into a heading, or be a part of it.
    following = [line.text.strip() for line in raw_lines(rest)][1:2]
    gap = newline if any(following) else ""
    return text[:at] + newline * 2 + in_newlines(paragraph, newline) + gap + rest


def content_end(text: str, section: Section) -> int:
    """Where the last line ends that is neither blank nor a closing rule, before its line ending."""
    inside = list(raw_lines(text[section.start : section.end]))
    while len(inside) > 1:
        last, above = inside[-1].text, inside[-2].text
        if last.strip() and not (is_rule(last) and (not above.strip() or len(inside) == 2)):
            break
        inside.pop()
    return section.start + inside[-1].start + len(inside[-1].text)


def is_rule(line: str) -> bool:
    """Whether a line is a `---` rule."""
    return RULE.fullmatch(line) is not None


def without_rules(text: str) -> str:
    """The text without the rules between its parts, and without blank lines around it."""
    kept = (line.text for line in lines(text) if line.fenced or not is_rule(line.text))
    return "\n".join(kept).strip("\n")


def newline_of(text: str) -> str:
    """The line ending a document uses, by its first line."""
    found = re.search(r"\r\n|\r|\n", text)
    return found[0] if found else "\n"


def in_newlines(text: str, newline: str) -> str:
    """The same text with one kind of line ending."""
    return newline.join(re.split(r"\r\n|\r|\n", text))


def quoted(text: str) -> str:
    """The text as a block quote: nothing in it can be a heading, a rule or a fence of the document."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
