"""Text for a terminal: tables, widths, cuts, and control characters made visible."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

COLOUR = re.compile(r"\x1b\[[0-9;]*m")

LINES, COLUMNS = 24, 80

LEAST_ROOM = 20
"""A last column with less room than this goes to the line below."""

LONGEST = 2000
"""The most characters of one line that are shown; a note counts the rest."""


def terminal() -> tuple[int, int]:
    """The size of the terminal; piped output is not cut to a width."""
    try:
        if sys.stdout.isatty():
            size = os.get_terminal_size(sys.stdout.fileno())
            return size.columns or COLUMNS, max(size.lines or LINES, LINES)
    except (OSError, ValueError):
        pass
    return 0, LINES


def table(rows: Sequence[tuple[str, ...]], indent: str = "", room: int | None = None) -> str:
    """Columns that line up. A row that is wider than `room` or the terminal continues in the line below."""
    if not rows:
        return ""
    widths = [max(width(row[column]) for row in rows) for column in range(len(rows[0]))]
    start = len(indent) + sum(widths[:-1]) + 2 * (len(widths) - 1)
    room = terminal()[0] if room is None else room
    lines: list[str] = []
    for row in rows:
        cells = list(map(padded, row, widths))
        line = (indent + "  ".join(cells)).rstrip()
        if not room or width(line) <= room:
            lines.append(line)
        elif room - start >= LEAST_ROOM:
            first, *more = _wrapped(row[-1], room - start)
            lines.append((indent + "  ".join([*cells[:-1], first])).rstrip())
            lines += [" " * start + line for line in more]
        else:
            lines += _folded(cells, indent, room)
    return "\n".join(lines)


def section(title: str, rows: Sequence[tuple[str, ...]]) -> str:
    """A title with a table below it; nothing if there are no rows."""
    return f"{title}\n{table(rows, '  ')}" if rows else ""


def paragraphs(*parts: str) -> str:
    """The parts that have text, with an empty line between two."""
    return "\n\n".join(filter(None, parts))


def _folded(cells: Sequence[str], indent: str, room: int) -> list[str]:
    """A row whose last column has no room: the cells that do not fit stand below, indented."""
    lines = [indent + cells[0]]
    for cell in cells[1:]:
        longer = f"{lines[-1]}  {cell}"
        if width(longer.rstrip()) <= room:
            lines[-1] = longer
        else:
            lines += [f"{indent}    {line}" for line in _wrapped(cell.rstrip(), room - len(indent) - 4)]
    return [line.rstrip() for line in lines]


def width(text: str) -> int:
    """How many columns a text takes on a terminal: two for wide characters, none for accents and colours."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    import unicodedata

    letters = COLOUR.sub("", text)
    return sum(
        0 if unicodedata.category(letter) in ("Mn", "Me", "Cf") else 1 + _is_wide(letter)
        for letter in letters
    )


def cut(text: str, room: int) -> str:
    """A text that takes `room` columns at most; `…` stands for the rest."""
    if width(text) <= room:
        return text
    text = text[:room]
    while text and width(text) >= room:
        text = text[:-1]
    return f"{text.rstrip()}…" if room else ""


def _is_wide(letter: str) -> bool:
    import unicodedata

    return unicodedata.east_asian_width(letter) in "WF"


def padded(cell: str, columns: int) -> str:
    """A cell, padded to a width."""
    return cell + " " * (columns - width(cell))


def _wrapped(text: str, room: int) -> list[str]:
    """The words of a text in lines of `room` columns; a word that is longer stays whole."""
    lines = [""]
    for word in text.split(" ") if width(text) > room else [text]:
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and width(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def listed(names: Sequence[str], room: int) -> str:
    """As many names as fit into `room` columns, and the number of the others."""
    shown = ", ".join(names)
    if len(shown) <= room:
        return shown
    for count in range(min(len(names) - 1, room // 2), 0, -1):
        shown = f"{', '.join(names[:count])} and {len(names) - count:,} more"
        if len(shown) <= room:
            return shown
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{names[0][: max(room - len(more) - 1, 1)]}…{more}"


def visible(text: str) -> str:
    """The text with control characters and invisible characters escaped."""
    shown = "".join(letter if _is_plain(letter) else _escaped(letter) for letter in text[:LONGEST])
    more = len(text) - LONGEST
    return f"{shown} … and {more} more characters" if more > 0 else shown


def plain(text: str) -> str:
    """A text of others on one line: everything that is not printable is escaped."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _is_plain(letter: str) -> bool:
    if letter.isascii():
        return letter == "\t" or letter.isprintable()
    import unicodedata

    return unicodedata.category(letter)[0] != "C" and letter not in "\u2028\u2029"


def _escaped(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}"
