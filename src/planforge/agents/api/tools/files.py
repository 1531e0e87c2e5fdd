"""
Files read, written and edited.
"""

from __future__ import annotations

import os
from pathlib import Path

from planforge.agents.api.tools import Refused
from planforge.agents.api.tools.paths import changeable, inside, regular

FILE_LIMIT = 20 * 1024 * 1024
"""How large a file may be, in bytes, to be read or edited at all."""

READ_LINES = 2000
READ_CHARACTERS = 100_000
"""How much of a file one reading gives."""

WRITE_LIMIT = 5 * 1024 * 1024


def read(root: Path, path: str, first_line: int = 1, last_line: int = 0) -> str:
    """The lines of a text file from `first_line` to `last_line` (0: as far as one answer goes)."""
    text = _text(inside(root, path), path)
    lines = text.splitlines(keepends=True)
    if not lines:
        return "(the file is empty)"
    if first_line < 1 or first_line > len(lines):
        raise Refused(f"`{path}` has lines 1 to {len(lines)}")
    wanted = lines[first_line - 1 : last_line or None][:READ_LINES]
    given, size = 0, 0
    for line in wanted:
        size += len(line)
        if size > READ_CHARACTERS and given:
            break
        given += 1
    shown = "".join(wanted[:given])
    note = f"\n(lines {first_line} to {first_line + given - 1} of {len(lines)})"
    if len(shown) > READ_CHARACTERS:
        shown, note = (
            shown[:READ_CHARACTERS],
            f"\n(the first {READ_CHARACTERS} characters of line {first_line})",
        )
    return shown if given == len(lines) and len(shown) <= READ_CHARACTERS else shown + note


def write(root: Path, path: str, content: str) -> str:
    """Put `content` into the file, which is made if need be with the directories above it."""
    target = changeable(root, path)
    data = content.encode(errors="surrogateescape")
    if len(data) > WRITE_LIMIT:
        raise Refused(f"`{path}`: more than {WRITE_LIMIT} bytes")
    existed = target.exists()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _put(target, data)
    except OSError as error:
        raise Refused(f"`{path}`: {error.strerror}") from error
    return f"{'wrote' if existed else 'made'} `{path}`, {len(data)} bytes"


def edit(root: Path, path: str, old: str, new: str) -> str:
    """Replace `old`, which must be there exactly once, by `new`."""
    target = changeable(root, path)
    text = _text(target, path)
    if not old:
        raise Refused("what is to be replaced is empty; use `write` for a new file")
    if old == new:
        raise Refused("both texts are the same")
    if old not in text and "\r\n" in text:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    found = text.count(old)
    if found != 1:
        where = "is not there" if not found else f"is there {found} times; give more of what is around it"
        raise Refused(f"`{path}` is unchanged: the text to replace {where}")
    try:
        _put(target, text.replace(old, new).encode())
    except OSError as error:
        raise Refused(f"`{path}`: {error.strerror}") from error
    return f"edited `{path}` at line {text[: text.index(old)].count(chr(10)) + 1}"


def _text(real: Path, shown: str) -> str:
    with os.fdopen(regular(real, shown), "rb") as file:
        data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise Refused(f"`{shown}` is larger than {FILE_LIMIT} bytes; use `search` or a command")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise Refused(f"`{shown}` is binary, {len(data)} bytes")
    return text


def _put(target: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, 0o666), "wb") as file:
        file.write(data)
