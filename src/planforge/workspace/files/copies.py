"""
Copies files and directories from one place to another, each copy on its own.

A copy shares its blocks with the original where the file system can do that, and is
written out where it cannot; never a hard link, through which one worktree could change
what another one has. Nothing is followed out of either place, nothing that is there is
overwritten, modes and times are kept.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress

import msgspec

from planforge.workspace.files.beneath import Directory

FICLONE = 0x40049409
CHUNK = 1024 * 1024

Allow = Callable[[int, int], None]
"""Told how many files and how many bytes were copied so far; raises if that is too much."""


class Copied(msgspec.Struct):
    """What was copied so far."""

    files: int = 0
    octets: int = 0
    """Bytes that were written out; what shares its blocks with the original costs nothing."""
    left_out: list[bytes] = msgspec.field(default_factory=list)
    """Links that would lead out of the place they are copied to."""

    def add(self, written: int, allow: Allow) -> None:
        """Count one more file."""
        self.files += 1
        self.octets += written
        allow(self.files, self.octets)


def file(source: Directory, target: Directory, name: bytes, new: bytes = b"") -> int:
    """Copy one file from a directory to another, under a new name if given; how much had to be written."""
    with source.opened(name, os.O_RDONLY) as reading:
        status = os.fstat(reading)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"`{os.fsdecode(name)}` is no regular file")
        with target.opened(new or name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) as writing:
            written = 0 if _cloned(reading, writing) else _poured(reading, writing)
            os.fchmod(writing, status.st_mode & 0o777)
            os.utime(writing, ns=(status.st_atime_ns, status.st_mtime_ns))
    return written


def tree(source: Directory, target: Directory, path: bytes, allow: Allow) -> Copied:
    """Copy the directory `path` of `source` to the same place in `target`."""
    copied = Copied()
    waiting = [path]
    while waiting:
        inner = waiting.pop()
        with source.enter(inner) as here, target.make(inner) as there:
            mode = os.fstat(here.handle).st_mode
            for entry in list(os.scandir(here.handle)):
                name = os.fsencode(entry.name)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(inner + b"/" + name)
                elif entry.is_symlink():
                    if not link(here, there, name, depth=inner.count(b"/") + 1):
                        copied.left_out.append(inner + b"/" + name)
                elif entry.is_file(follow_symlinks=False):
                    copied.add(file(here, there, name), allow)
            os.fchmod(there.handle, (mode & 0o777) | stat.S_IRWXU)
    return copied


def link(source: Directory, target: Directory, name: bytes, *, depth: int) -> bool:
    """Copy a link that lies `depth` directories deep, unless it leads out; whether it was copied."""
    leads_to = os.readlink(name, dir_fd=source.handle)
    if not stays(leads_to, depth):
        return False
    os.symlink(leads_to, name, dir_fd=target.handle)
    return True


def stays(leads_to: bytes, depth: int) -> bool:
    """
    Whether a link that lies `depth` directories deep is sure to stay in the place it lies in.

    Ways up are taken only at its beginning: further on, they may start from wherever another
    link leads.
    """
    parts = [part for part in leads_to.split(b"/") if part not in (b"", b".")]
    up = next((number for number, part in enumerate(parts) if part != b".."), len(parts))
    return not leads_to.startswith(b"/") and up <= depth and b".." not in parts[up:]


def _cloned(reading: int, writing: int) -> bool:
    with suppress(OSError, ImportError):
        import fcntl

        fcntl.ioctl(writing, FICLONE, reading)
        return True
    return False


def _poured(reading: int, writing: int) -> int:
    total = 0
    while chunk := os.read(reading, CHUNK):
        view = memoryview(chunk)
        while view:
            view = view[os.write(writing, view) :]
        total += len(chunk)
    return total
