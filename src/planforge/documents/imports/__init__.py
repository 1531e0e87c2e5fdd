"""
What others wrote about work to be done, read: an issue, the documents of spec-kit, any Markdown.

Pure: bytes go in, an `Imported` comes out. Imported text is data. It may hold whatever its writers liked, so
it can end up neither as a heading of ours nor as a path outside the repository. Nothing of it is left out.
"""

from __future__ import annotations

import re

import msgspec

from planforge.errors import InvalidInput

LIMIT = 1024 * 1024
"""How many bytes one source may have."""

TITLE_LIMIT = 120

NOT_SHOWN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control and direction characters: no text needs them, and they can make one text look like another."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A source as read."""

    title: str
    text: str
    """The whole text, for the forge."""
    source: str
    """Where it is from, in words that a person can look it up by."""
    kind: str = "markdown"
    body: str = ""
    """What of it is the body of a plan, from `# Plan:` on."""
    context: str = ""
    """All the rest of it, which is quoted beneath."""


def decoded(content: bytes, source: str) -> str:
    """The text of a file: without a byte order mark, with one kind of line ends, nothing unseen in it."""
    if len(content) > LIMIT:
        raise InvalidInput(
            f"`{source}` has {len(content)} bytes, and an import at most {LIMIT}", "import a part of it"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"`{source}` is not UTF-8") from error
    return plain(text)


def plain(text: str) -> str:
    """The text with `\\n` for line ends, and with a mark in place of each character that nobody can see."""
    return NOT_SHOWN.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """A title: one line, and not too long a one."""
    words = " ".join(plain(text).split())
    return words if len(words) <= TITLE_LIMIT else words[: TITLE_LIMIT - 1].rstrip() + "…"
