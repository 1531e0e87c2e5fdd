"""
Directories as a program may leave them: with paths that are longer than the system takes, deeper than Python
recurses, closed to whoever made them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path


def walk(
    directory: Path, onerror: Callable[[OSError], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """
    Like `os.walk`, at any depth: each directory with the names of its directories and of all else in it.
    A directory that is taken out of the names is not walked.

    Links are not followed. `onerror` hears of a directory that cannot be listed: its path may be too long.
    """
    waiting = [str(directory)]
    while waiting:
        place = waiting.pop()
        names: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(place) as listing:
                for entry in listing:
                    (names if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        except OSError as error:
            if onerror is not None:
                onerror(error)
            continue
        yield place, names, others
        waiting += [f"{place.rstrip('/')}/{name}" for name in reversed(names)]


def remove(directory: Path) -> None:
    """
    Remove a directory with everything in it, whatever its depth and its modes.

    What lies deeper is moved up, so that no path is longer than a name and no more than two directories are
    open at once.
    """
    _open_up(str(directory), None)
    top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        waiting = _emptied(top, top)
        while waiting:
            name = waiting.pop()
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
            try:
                waiting += _emptied(inner, top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    directory.rmdir()


def _emptied(directory: int, top: int) -> list[str]:
    """Remove the files of a directory and move its directories up; their names there."""
    moved = []
    with os.scandir(directory) as listing:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
    for name, is_directory in entries:
        if not is_directory:
            os.unlink(name, dir_fd=directory)
            continue
        _open_up(name, directory)
        new = name if directory == top else os.urandom(16).hex()
        if new != name:
            os.rename(name, new, src_dir_fd=directory, dst_dir_fd=top)
        moved.append(new)
    return moved


def _open_up(name: str, directory: int | None) -> None:
    """Have a directory that can be listed, emptied and moved."""
    mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, stat.S_IMODE(mode) | stat.S_IRWXU, dir_fd=directory)
