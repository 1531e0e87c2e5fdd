"""
Files in a directory in which somebody else may have put links.

An agent does in its home what it likes while it runs. Whoever writes there again, or reads what it left, must
not be led anywhere else by it: every directory on the way is opened as such, and no link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from planforge.errors import InvalidInput

LARGEST = 1024 * 1024
"""How large a file may be that is read there."""


MOST_ENTRIES, DEEPEST = 10_000, 6
"""How many entries of a home are looked at to find a file, and how many directories down."""


def directory(home: Path, parts: Sequence[str]) -> int:
    """A descriptor of a directory in `home`; it is made, and whatever else has its name is removed."""
    handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            following = _opened(handle, part)
            os.close(handle)
            handle = following
    except BaseException:
        os.close(handle)
        raise
    return handle


def _opened(parent: int, name: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    try:
        return os.open(name, flags, dir_fd=parent)
    except OSError:
        os.unlink(name, dir_fd=parent)
        os.mkdir(name, 0o700, dir_fd=parent)
        return os.open(name, flags, dir_fd=parent)


def write(home: Path, path: str, content: bytes, *, executable: bool = False) -> None:
    """Write a file of the home that only its owner can read."""
    *parents, name = path.split("/")
    handle = directory(home, parents)
    try:
        temporary = f".{name}.{os.urandom(4).hex()}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        mode = 0o700 if executable else 0o600
        with os.fdopen(os.open(temporary, flags, mode, dir_fd=handle), "wb") as file:
            file.write(content)
        try:
            os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
        except IsADirectoryError:
            os.unlink(temporary, dir_fd=handle)
            raise InvalidInput(f"`{home / path}` is a directory") from None
    finally:
        os.close(handle)


def remove(home: Path, path: str) -> None:
    """Remove a file of the home, if it is there."""
    *parents, name = path.split("/")
    handle = directory(home, parents)
    try:
        with suppress(FileNotFoundError, IsADirectoryError):
            os.unlink(name, dir_fd=handle)
    finally:
        os.close(handle)


def find(place: Path, ending: str) -> Iterator[Path]:
    """The files beneath a directory whose names end so, within limits; no directory is a link."""
    waiting, looked = [(place, 0)], 0
    while waiting:
        place, depth = waiting.pop()
        with suppress(OSError), os.scandir(place) as entries:
            for entry in islice(entries, MOST_ENTRIES - looked):
                looked += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting += [(Path(entry.path), depth + 1)] if depth < DEEPEST else []
                elif entry.name.endswith(ending):
                    yield Path(entry.path)


def tail(path: Path, most: int) -> bytes:
    """The last bytes of a plain file that no link leads to; nothing of anything else."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        status = os.fstat(opened)
        return os.pread(opened, most, max(0, status.st_size - most)) if stat.S_ISREG(status.st_mode) else b""
    finally:
        os.close(opened)


def read(home: Path, path: str) -> bytes | None:
    """A file of the home, if it is a plain one of a sensible size and no link leads to it; else None."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    *parents, name = path.split("/")
    opened: list[int] = []
    try:
        opened.append(os.open(home, flags | os.O_DIRECTORY))
        for part in parents:
            opened.append(os.open(part, flags | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(name, flags, dir_fd=opened[-1]))
        if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
            return None
        content = os.read(opened[-1], LARGEST + 1)
        return content if len(content) <= LARGEST else None
    except OSError:
        return None
    finally:
        for handle in opened:
            os.close(handle)
