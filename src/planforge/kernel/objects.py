"""
Bodies too large for an event, kept under the hash of their content.

An object is written whole or not at all (a temporary file, synced, then renamed),
and reading one checks it, so a damaged object is noticed and never believed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from planforge.errors import LedgerUnreadable, LedgerUnwritable
from planforge.kernel.files import read_regular

encode = msgspec.json.Encoder(order="deterministic").encode
"""One encoding for one value, so that equal values have equal addresses and fingerprints."""


def address(content: bytes) -> str:
    """The name that `content` is kept under."""
    import hashlib  # readers do not need it, and must be quick

    return hashlib.sha256(content).hexdigest()


class Objects:
    """A directory of content-addressed files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, content: bytes) -> str:
        """Keep `content` and return its address."""
        name = address(content)
        path = self._path(name)
        if not _holds(path, content):
            try:
                if not path.parent.exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    _sync(self._directory)
                _write(path, content)
            except OSError as error:
                raise LedgerUnwritable(f"object `{name[:12]}` cannot be written: {error.strerror}") from error
        return name

    def get(self, name: str) -> bytes:
        """The content kept under `name`, checked."""
        try:
            content = read_regular(self._path(name))
        except OSError as error:
            raise LedgerUnreadable(f"object `{name[:12]}` is missing from the ledger's objects") from error
        if address(content) != name:
            raise LedgerUnreadable(f"object `{name[:12]}` was changed after it was written")
        return content

    def _path(self, name: str) -> Path:
        return self._directory / name[:2] / name[2:]


def _holds(path: Path, content: bytes) -> bool:
    """Whether the file is there and whole. A damaged one is written again while its content is at hand."""
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def write_atomically(path: Path, content: bytes) -> None:
    """
    Put `content` at `path` so that a crash leaves the old file or the new one, never half of it.

    One that takes the place of another has its permissions. What a crash left beside it is removed with the
    next write: these files lie among those of people.
    """
    _write(path, content)
    for other in path.parent.iterdir():
        if other.name.startswith(f".{path.name}.") and other.suffix == ".part" and _is_left(other.name):
            other.unlink(missing_ok=True)


def _is_left(temporary: str) -> bool:
    """Whether the process is gone that began to write this."""
    *_, process, _, _ = temporary.split(".")
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):  # it is somebody else's, or none of ours
        return False
    return False


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
    mode = stat.S_IMODE(path.stat().st_mode) if path.is_file() else None
    opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(opened, "wb") as file:
            if mode is not None:
                os.fchmod(opened, mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(directory: Path) -> None:
    """Make the names in a directory last."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
