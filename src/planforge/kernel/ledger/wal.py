"""
What SQLite leaves out of a damaged write-ahead log without a word.

After a crash SQLite reads its log up to the first frame whose checksum is wrong and
takes that for the end: it cannot tell a write that the crash cut short from damage
done later. We can, most of the time. A commit is synced before the next one begins,
so after the end there can be one commit at most that was cut short. If there are
two, an acknowledged one cannot be read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import apsw

PAGE_BYTES = 2048
"""A commit writes a page of each table that it touches; most events are far smaller than one."""

HEADER = 32
FRAME_HEADER = 24
TRIES = 3


def unread(connection: apsw.Connection, path: Path) -> int:
    """How many transactions there are after the end that SQLite found; 0 if that is the end."""
    log = path.with_name(f"{path.name}-wal")
    known = -1
    for _ in range(TRIES):
        # This only asks. Frames that a living writer has added meanwhile are known the next time.
        try:
            found, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        except apsw.BusyError:  # somebody brings the log into the database, and so has read it
            return 0
        count = _commits(log, found)
        if count <= 1:
            return 0
        if found == known:
            return count
        known = found
    return 0


def _commits(log: Path, known: int) -> int:
    """How many commits of this generation of the log come after its first `known` frames."""
    try:
        content = log.read_bytes()
    except OSError:
        return 0
    size = FRAME_HEADER + int.from_bytes(content[8:12], "big")
    salt = content[16:24]
    if _checksum(content[:24], content[:4]) != content[24:32]:  # then SQLite has read nothing at all
        size, salt, known = _guess(content), content[HEADER + 8 : HEADER + 16], 0
    starts = range(HEADER + known * size, len(content) - size + 1, size)
    return sum(content[at + 8 : at + 16] == salt and any(content[at + 4 : at + 8]) for at in starts)


def _checksum(words: bytes, magic: bytes) -> bytes:
    """The sum that SQLite ends the header of the log with."""
    order: Literal["big", "little"] = "big" if magic[3] & 1 else "little"
    first = second = 0
    for at in range(0, len(words), 8):
        first = (first + int.from_bytes(words[at : at + 4], order) + second) & 0xFFFFFFFF
        second = (second + int.from_bytes(words[at + 4 : at + 8], order) + first) & 0xFFFFFFFF
    return first.to_bytes(4, "big") + second.to_bytes(4, "big")


def _guess(content: bytes) -> int:
    """The size of a frame where the header cannot be believed: frames all have the same salt."""
    salt = content[HEADER + 8 : HEADER + 16]
    for page in (2048, 4096, 1024, 8192, 16384, 32768, 65536, 512):
        at = HEADER + FRAME_HEADER + page
        if content[at + 8 : at + 16] == salt:
            return FRAME_HEADER + page
    return FRAME_HEADER + PAGE_BYTES
