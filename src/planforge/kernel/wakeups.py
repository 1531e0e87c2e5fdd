"""
How a writer wakes those who wait for events, in whatever process they are.

Whoever waits has an `Ear`: a datagram socket in a directory that belongs to the ledger
and to this user alone. After a commit the writer sends a byte to each and waits for
none: an ear that is full will be emptied anyway, one whose owner died is removed. While
there are no ears it looks for them now and then only, so whoever opens one looks at the
ledger itself until it is sure to be called. A byte may be lost; so may all of them,
where sockets cannot be made. Nothing but promptness depends on it, because everybody
also looks now and then.

The directory is in `$XDG_RUNTIME_DIR`, or among the temporary files, since the path
of a socket must be short. Its name can be foreseen, so what is found there is used
only if it is a directory of ours that nobody else can enter.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from socket import socket

SETTLED_NANOSECONDS = 2_000_000_000
"""A directory that changed less than this ago may change again without a newer time of change."""

UNSEEN_SECONDS = 0.005
"""How long a writer that found no ears does not look for any."""

ABANDONED_SECONDS = 60
"""How old an ear must be that never got its final name before it is taken for dead."""

TRIES = 20
"""How often the directory may be taken away by others while an ear is made."""


def meeting_place(directory: Path) -> str:
    """Where those who wait for events of the ledger in `directory` have their ears."""
    from hashlib import sha256

    ledger = os.path.realpath(directory / "ledger.db")
    return f"{_private()}/planforge-{os.geteuid()}-{sha256(os.fsencode(ledger)).hexdigest()[:16]}"


def _private() -> str:
    for place in (os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.geteuid()}"):
        with suppress(OSError):
            if place and Path(place).stat().st_uid == os.geteuid():
                return place
    return os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  (see the docstring)


@contextmanager
def _entered(place: str) -> Iterator[int]:
    """The directory, open, if it is ours alone. A link to one is not."""
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"`{place}` belongs to somebody else")
        yield handle
    finally:
        os.close(handle)


class Waker:
    """The writer's side. When nobody listens it costs next to nothing."""

    def __init__(self, directory: Path) -> None:
        self._place = meeting_place(directory)
        self._names: list[str] = []
        self._listed = -1
        """The directory's time of change that the names are from; -1 if they must be read again."""
        self._alone = 0.0
        """Until when nobody is taken to listen."""

    def wake(self) -> None:
        """Tell everybody who listens. Whatever is in the way, what was committed stays so."""
        if (now := time.monotonic()) < self._alone:
            return
        if not os.access(self._place, os.F_OK):  # the exception of `stat` costs six times this
            self._alone = now + UNSEEN_SECONDS
            return
        try:
            changed = os.stat(self._place).st_mtime_ns  # noqa: PTH116  (this must be quick)
            if changed != self._listed:
                self._list(changed)
            if self._names:
                self._send()
        except OSError:
            return

    def _list(self, changed: int) -> None:
        self._names = []
        with _entered(self._place) as handle:
            self._names = [name for name in os.listdir(handle) if name[0] != "."]  # noqa: PTH208
        self._listed = changed if time.time_ns() - changed > SETTLED_NANOSECONDS else -1

    def _send(self) -> None:
        send = _sender().sendto
        for name in tuple(self._names):
            try:
                send(b"\0", f"{self._place}/{name}")
            except (ConnectionRefusedError, FileNotFoundError):
                self._names.remove(name)
                _remove(self._place, name)
            except OSError:  # it is full, so whoever owns it has enough to wake up for
                continue


@cache
def _sender() -> socket:
    """One for all ledgers of the process: a writer does not say when it is done."""
    from atexit import register
    from socket import AF_UNIX, SOCK_DGRAM, socket

    sender = socket(AF_UNIX, SOCK_DGRAM)
    sender.setblocking(False)
    register(sender.close)
    return sender


class Ear:
    """The subscriber's side: `wait` returns early when a writer calls. Without a socket it just waits."""

    def __init__(self, directory: Path) -> None:
        self._place = meeting_place(directory)
        self._called = threading.Event()
        self._name = ""
        self._socket: socket | None = None
        self.sure = 0.0
        """From when on every writer knows of it."""
        self._open()

    @property
    def hears(self) -> bool:
        """Whether writers can call."""
        return self._socket is not None

    def _open(self) -> None:
        for _ in range(TRIES):
            try:
                self._bind()
            except FileNotFoundError:  # whoever listened last has just taken the directory away
                continue
            except OSError:
                return
            else:
                return

    def _bind(self) -> None:
        from secrets import token_hex
        from socket import AF_UNIX, SOCK_DGRAM, socket

        with suppress(FileExistsError):
            os.mkdir(self._place, 0o700)  # noqa: PTH102
        with _entered(self._place) as handle:
            listening = socket(AF_UNIX, SOCK_DGRAM)
            try:
                listening.setblocking(False)
                name = f"{os.getpid()}-{token_hex(4)}"
                # A writer that finds the name before the socket is ready would take its owner for dead.
                listening.bind(f"{self._place}/.{name}")
                os.rename(f"{self._place}/.{name}", f"{self._place}/{name}")  # noqa: PTH104
                _sweep(handle)
            except OSError:
                listening.close()
                raise
        self._name, self._socket = name, listening
        self.sure = time.monotonic() + UNSEEN_SECONDS

    def wait(self, seconds: float) -> bool:
        """Wait for a call, at most so long; whether there was one."""
        if self._socket is None:
            return self._called.wait(max(seconds, 0))
        from select import POLLIN, poll

        poller = poll()
        poller.register(self._socket, POLLIN)
        poller.poll(max(seconds, 0) * 1000)
        return self._drain()

    async def wait_async(self, seconds: float) -> bool:
        """The same for an event loop."""
        import asyncio

        if self._socket is None:
            await asyncio.sleep(max(seconds, 0))
            return self._called.is_set()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0)):
                await asyncio.get_running_loop().sock_recv(self._socket, 1)
                self._drain()
                return True
        return False

    def _drain(self) -> bool:
        """Take in all calls so far: whatever they were about is to be seen by who looks now."""
        assert self._socket is not None
        called = False
        with suppress(BlockingIOError):
            while self._socket.recv(1):
                called = True
        return called

    def renew(self) -> None:
        """Be there again if somebody cleaned up the temporary files."""
        if self._socket is None or not os.path.lexists(f"{self._place}/{self._name}"):
            self._release()
            self._open()

    def call(self) -> None:
        """Wake whoever waits on this ear."""
        self._called.set()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.sendto(b"\0", f"{self._place}/{self._name}")

    def close(self) -> None:
        """Listen no more, and leave nothing behind."""
        if self._socket is not None:
            self._release()
            _remove(self._place, self._name)

    def _release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _remove(place: str, name: str) -> None:
    """Take away an ear, and nothing that is not one; the directory too, if it was the last."""
    with suppress(OSError), _entered(place) as handle:
        if stat.S_ISSOCK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=handle)
    with suppress(OSError):
        os.rmdir(place)  # noqa: PTH106  (which fails while others listen)


def _sweep(handle: int) -> None:
    """Take away ears whose owners were killed before they had named them."""
    for name in os.listdir(handle):
        with suppress(OSError):
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
            old = time.time() - found.st_mtime > ABANDONED_SECONDS
            if name.startswith(".") and old and stat.S_ISSOCK(found.st_mode):
                os.unlink(name, dir_fd=handle)
