"""
Opens what lies in a directory and nothing else, whatever is swapped meanwhile.

Looking where a path leads and then opening it is a race: who may write there can put
a link in between. Here one call does both (`openat2` on Linux), or the path is walked
a name at a time, each directory held open while the next name is looked up in it.
No link is followed, `..` and absolute paths are refused.

Failures are `OSError`, as for `open`: `ELOOP` for a link on the way, `EXDEV` for a
path that would leave. What a hard link shares with the outside cannot be seen here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Self

Name = str | bytes

OPENAT2 = 437
"""The number of the system call, the same on every architecture."""

RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08

TRIES = 100
"""How often a lookup that was disturbed is tried; each failure means that somebody moved something."""

LOOK = getattr(os, "O_PATH", os.O_RDONLY)
"""Opens a directory that may be entered but not listed, too, where there is such a thing."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class Directory:
    """A directory that is open. Paths are looked up in it and do not lead out of it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    @classmethod
    def at(cls, path: Path) -> Self:
        """Open a directory that is trusted to be where it is."""
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        os.close(self.handle)

    def open(self, path: Name, flags: int, mode: int = 0o600) -> int:
        """A descriptor for what is at `path`, which the caller closes."""
        parts = parts_of(path)
        # A pipe that an agent left must not make us wait for its other end.
        flags |= os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        if not parts:
            return os.open(b".", flags, mode, dir_fd=self.handle)
        return (_opened if has_openat2() else _walked)(self.handle, parts, flags, mode)

    @contextmanager
    def opened(self, path: Name, flags: int, mode: int = 0o600) -> Iterator[int]:
        """The same, closed in the end."""
        handle = self.open(path, flags, mode)
        try:
            yield handle
        finally:
            os.close(handle)

    def enter(self, path: Name) -> Directory:
        """The directory at `path`, open."""
        return Directory(self.open(path, os.O_RDONLY | os.O_DIRECTORY))

    def make(self, path: Name) -> Directory:
        """The directory at `path`, open; it and those on the way are made if they are not there."""
        here = self.enter(b".")
        try:
            for part in parts_of(path):
                with suppress(FileExistsError):  # if it is no directory, entering it fails
                    os.mkdir(part, 0o755, dir_fd=here.handle)
                inside = here.enter(part)
                here.close()
                here = inside
        except BaseException:
            here.close()
            raise
        return here

    def read(self, path: Name, limit: int) -> bytes:
        """The content of the regular file at `path`, which has at most `limit` bytes."""
        with self.opened(path, os.O_RDONLY) as handle:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", path)
            content = bytearray()
            while chunk := os.read(handle, min(1024 * 1024, limit + 1 - len(content))):
                content += chunk
            if len(content) > limit:
                raise OSError(errno.EFBIG, f"it has more than {limit} bytes", path)
            return bytes(content)


def read(root: Path, path: Name, limit: int) -> bytes:
    """The content of the regular file at `path` in `root`, which has at most `limit` bytes."""
    with Directory.at(root) as directory:
        return directory.read(path, limit)


def parts_of(path: Name) -> list[bytes]:
    """The names that a path is made of, if it can only lead down."""
    plain = os.fsencode(path)
    parts = [part for part in plain.split(b"/") if part not in (b"", b".")]
    if not plain or plain.startswith(b"/") or b".." in parts:
        raise OSError(errno.EXDEV, "the path leads out of its directory", path)
    if b"\0" in plain:
        raise OSError(errno.EINVAL, "there is a null byte in the path", path)
    return parts


@cache
def has_openat2() -> bool:
    """Whether the system call is there; an old kernel and some containers do without."""
    if sys.platform != "linux":
        return False
    here = os.open("/", LOOK | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_opened(here, [b"."], LOOK | os.O_DIRECTORY | os.O_CLOEXEC, 0))
    except OSError:
        return False
    finally:
        os.close(here)
    return True


def _opened(directory: int, parts: list[bytes], flags: int, mode: int) -> int:
    resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS
    # The system call does not take a mode where nothing may be made.
    how = _How(flags, mode if flags & os.O_CREAT else 0, resolve)
    path = b"/".join(parts)
    for _ in range(TRIES):
        handle: int = _syscall()(OPENAT2, directory, path, ctypes.byref(how), ctypes.sizeof(how))
        if handle >= 0:
            return handle
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), path)


@cache
def _syscall() -> ctypes._NamedFuncPointer:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    function.argtypes = (
        *(ctypes.c_long, ctypes.c_int, ctypes.c_char_p),
        *(ctypes.c_void_p, ctypes.c_size_t),
    )
    return function


def _walked(directory: int, parts: list[bytes], flags: int, mode: int) -> int:
    """The same without the system call."""
    here = os.dup(directory)
    try:
        for part in parts[:-1]:
            inside = _step(part, LOOK | os.O_DIRECTORY | os.O_CLOEXEC, 0, here)
            os.close(here)
            here = inside
        return _step(parts[-1], flags, mode, here)
    finally:
        os.close(here)


def _step(name: bytes, flags: int, mode: int, directory: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=directory)
    except NotADirectoryError:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise
