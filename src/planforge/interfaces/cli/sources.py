"""Text that a person hands to a command: a file, or standard input for `-`."""

from __future__ import annotations

import sys
from pathlib import Path

from planforge.errors import InvalidInput
from planforge.kernel.files import read_regular

LIMIT = 64 * 1024 * 1024
"""How many bytes one text may have; standard input may have no end."""


def text(source: str | Path) -> str:
    """All of it, which must be UTF-8."""
    is_input = str(source) == "-"
    shown = "standard input" if is_input else f"`{source}`"
    try:
        content = sys.stdin.buffer.read(LIMIT + 1) if is_input else read_regular(Path(source), LIMIT + 1)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}", "name a file, or use `-`"
        ) from error
    if len(content) > LIMIT:
        raise InvalidInput(f"{shown} has more than {LIMIT} bytes", "give a part of it")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{shown} is not UTF-8 at byte {error.start}", "save it as UTF-8") from error


def request(word: str) -> str:
    """What a person wants, in words; `-` reads it from standard input."""
    return text(word) if word == "-" else word
