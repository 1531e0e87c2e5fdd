"""Directories as an agent leaves them: closed ones opened up, weighed, and removed whatever is in them."""

from __future__ import annotations

import errno
import stat
import time
from pathlib import Path

from planforge.errors import GitFailed
from planforge.kernel import directories

WAITS = (0.01, 0.1, 0.5, 1.0)


def open_up(directory: Path) -> None:
    """
    Take away what would keep us from reading what is in a directory.

    Links are not followed. What belongs to somebody else stays closed: whoever reads it will say so.
    """
    _allow(directory, stat.S_IRWXU)
    for parent, names, others in directories.walk(directory):
        for name in names:
            _allow(Path(parent, name), stat.S_IRWXU)
        for name in others:
            _allow(Path(parent, name), stat.S_IRUSR)


def _allow(path: Path, wanted: int) -> None:
    try:
        mode = path.lstat().st_mode
        closed = (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and mode & wanted != wanted
        if closed:
            path.chmod(stat.S_IMODE(mode) | wanted)
    except OSError:
        return


def remove(path: Path) -> None:
    """Remove a directory, also one that nobody may write to, such as a module cache."""
    for waited in (*WAITS, None):
        try:
            directories.remove(path)
        except FileNotFoundError:
            return  # somebody else removed it at the same time
        except OSError as error:
            # A git or an agent whose parent was killed may still be writing for a moment.
            if waited is None or error.errno != errno.ENOTEMPTY:
                raise GitFailed(f"cannot remove `{path}`: {error.strerror or error}") from error
            time.sleep(waited)
        else:
            return


def size(path: Path) -> int:
    """How many bytes of the disk a directory takes up."""
    total = 0
    for parent, _, files in directories.walk(path):
        for name in (".", *files):
            try:
                total += Path(parent, name).lstat().st_blocks * 512
            except OSError:
                continue
    return total
