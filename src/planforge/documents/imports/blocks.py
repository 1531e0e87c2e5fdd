"""
A Markdown document taken apart: each block of text, with the headings that it stands under.

Every line of the document is in one block or is one of its headings, so what is put together from the blocks
again leaves nothing out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from planforge.documents import markdown

HEADING = re.compile(r" {0,3}(?P<level>#{1,6})(?:[ \t]+(?P<name>.*?))?[ \t]*#*[ \t]*")
LABEL = re.compile(r"\*\*(?P<name>[^*\n]{1,60})\*\*(?P<colon>:)|\*\*(?P<inner>[^*\n]{1,60}):\*\*")
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<said>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
LABEL_LEVEL = 7


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines under some headings."""

    trail: tuple[str, ...]
    """The headings above it, the outermost first."""
    text: str


def blocks(text: str, *, labels: bool = False) -> tuple[Block, ...]:
    """The blocks of a document in order; with `labels`, a line like `**Goal**: …` is a heading too."""
    found = list(_blocks(text, labels))
    after = [each.trail for each in found[1:]] + [()]
    # A heading without text of its own is said by those beneath it.
    return tuple(
        each
        for each, following in zip(found, after, strict=True)
        if each.text.strip() or (each.trail and following[: len(each.trail)] != each.trail)
    )


def _blocks(text: str, labels: bool) -> Iterator[Block]:
    trail: list[tuple[int, str]] = []
    held: list[str] = []
    for line in markdown.lines(text):
        level, name, rest = (0, "", "") if line.fenced else _heading(line.text, labels)
        if not level:
            held.append(line.text)
            continue
        yield Block(trail=tuple(name for _, name in trail), text=_joined(held))
        trail = [*(each for each in trail if each[0] < level), (level, name)]
        held = [rest] if rest else []
    yield Block(trail=tuple(name for _, name in trail), text=_joined(held))


def _joined(lines: list[str]) -> str:
    while lines and (not lines[-1].strip() or markdown.is_rule(lines[-1])):
        lines = lines[:-1]
    while lines and not lines[0].strip():
        lines = lines[1:]
    return "\n".join(lines)


def _heading(line: str, labels: bool) -> tuple[int, str, str]:
    """How deep a heading a line is, its name, and what else is on the line; 0 if it is none."""
    if found := HEADING.fullmatch(line):
        return len(found["level"]), (found["name"] or "").strip(), ""
    found = LABEL.match(line) if labels else None
    if found:
        return LABEL_LEVEL, (found["name"] or found["inner"]).strip(), line[found.end() :].strip()
    return 0, "", ""


def without_front_matter(text: str) -> tuple[str, str]:
    """What stands between two rules at the very beginning of a document, and the document without it."""
    found = FRONT_MATTER.match(text)
    return (found["said"].strip(), text[found.end() :]) if found else ("", text)
