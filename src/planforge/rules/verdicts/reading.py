"""
What an answer says itself, apart from what it quotes.

Block quotes, code, and comments that nobody sees are somebody else's words: a verdict in one of them is
not the reviewer's. JSON may stand in a fence, as agents like to put it, if that is labelled as JSON or
not at all.
"""

from __future__ import annotations

import re

import msgspec

MAX_BYTES = 1_000_000
TOO_LARGE = "the answer is larger than 1 MB"

QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>.*)")
JSON_LABELS = ("", "json", "jsonc", "json5")


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in its parts."""

    prose: str
    """What stands in no fence."""
    data: str
    """The same, with the fences that may hold JSON."""
    closed: bool
    """Whether every fence was closed; if not, part of the answer may be hidden."""


def spoken(text: str) -> Spoken:
    """Take out what is quoted, commented or code."""
    normal = COMMENT.sub("", QUOTED_LINE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    prose: list[str] = []
    data: list[str] = []
    fence, is_data = "", False
    for line in normal.split("\n"):
        found = FENCE.fullmatch(line)
        mark, info = (found["fence"], found["info"].strip()) if found else ("", "")
        if fence and mark.startswith(fence) and not info:
            fence = ""
        elif fence:
            data += [line] if is_data else []
        elif mark and not (mark[0] == "`" and "`" in info):
            fence, is_data = (
                mark,
                info.lower().split(maxsplit=1)[:1] in ([], *([each] for each in JSON_LABELS)),
            )
        else:
            prose.append(line)
            data.append(line)
    return Spoken(prose="\n".join(prose), data="\n".join(data), closed=not fence)


def is_too_large(text: str) -> bool:
    """Whether it is more than anybody reads."""
    return len(text.encode("utf-8", "replace")) > MAX_BYTES


def plain(value: object) -> str:
    """A string that any encoder takes: JSON escapes can smuggle in lone surrogates."""
    return value.encode("utf-8", "replace").decode().strip() if isinstance(value, str) else ""
