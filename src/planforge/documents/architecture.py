"""
What a repository's documents say about its architecture, in a few hundred lines.

Of each document: its title, its first paragraph, and the sections called `## Key…` or `## Summary…`. Whatever
does not fit any more is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

import msgspec

from planforge.documents import markdown

LINES = 400
"""How long a pack may be."""

LEAST = 4
"""A title, a blank line, and something that they are worth it for."""

SECTIONS = ("key", "summary")


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """The documents in short, and those that are not in it."""

    text: str
    left_out: tuple[str, ...] = ()


def pack(documents: Mapping[str, str], lines: int = LINES) -> Pack:
    """The documents in short, each by its path, in order, as far as `lines` go."""
    kept: list[str] = []
    left_out: list[str] = []
    for path, text in documents.items():
        digest = list(_digest(path, text))
        room = lines - len(kept)
        if len(digest) > room:
            left_out.append(path)
            digest = digest[:room] if room >= LEAST else []
            if fence := markdown.open_fence("\n".join(digest)):
                digest[-1] = fence
        kept += digest
    return Pack(text="\n".join(kept).strip(), left_out=tuple(left_out))


def _digest(path: str, text: str) -> Iterator[str]:
    title = next((line for line in _prose(text) if line.startswith("# ")), "# " + path.rpartition("/")[2])
    yield f"{title} (`{path}`)"
    yield ""
    yield from _first_paragraph(text)
    for section in markdown.sections(text):
        if section.name.lower().startswith(SECTIONS):
            body = markdown.without_rules(text[section.body_start : section.end])
            yield from ("", f"## {section.name}", "", *body.splitlines())
    yield ""


def _prose(text: str) -> list[str]:
    return [line.text for line in markdown.lines(text) if not line.fenced]


def _first_paragraph(text: str) -> list[str]:
    groups = groupby(_prose(text), lambda line: bool(line.strip()) and not line.startswith("#"))
    return next((list(lines) for is_text, lines in groups if is_text), [])
