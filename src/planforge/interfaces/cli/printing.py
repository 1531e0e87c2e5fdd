"""How things look when they are printed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

LONGEST = 2000
"""So many characters of one line are shown; that there are more is said."""


def hush(stream: TextIO) -> None:
    """Point a stream that nobody reads any more at nothing: then it cannot fail again, not even at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def is_read(stream: TextIO) -> bool:
    """Whether anybody is left at the other end of a pipe; for anything else, yes."""
    from select import POLLERR, poll

    poller = poll()
    poller.register(stream, 0)
    return not any(event & POLLERR for _, event in poller.poll(0))


def as_document(value: object) -> str:
    """A structure as one indented JSON document."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def table(rows: Sequence[tuple[str, ...]], indent: str = "") -> str:
    """Columns that line up."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(indent + line.rstrip() for line in lines)


def visible(text: str) -> str:
    """The text with everything written out that a terminal would obey, reorder or not show."""
    shown = "".join(letter if _is_plain(letter) else _escaped(letter) for letter in text[:LONGEST])
    more = len(text) - LONGEST
    return f"{shown} … and {more} more characters" if more > 0 else shown


def _is_plain(letter: str) -> bool:
    if letter.isascii():
        return letter == "\t" or letter.isprintable()
    import unicodedata

    return unicodedata.category(letter)[0] != "C" and letter not in "\u2028\u2029"


def _escaped(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}"
