"""
Ports for what a worktree starts, so that two that run at once do not meet.

Ports come in slots of twenty. Whoever has a slot holds its first port for datagrams,
which the operating system gives to one process at a time and takes back when that dies,
`kill -9` included: there is no list to go stale, and it holds between all projects and
users of a machine. The other ports were free when the slot was taken; a server that
was not given them can still come and take one.
"""

from __future__ import annotations

import errno
import os
import socket
import zlib
from collections.abc import Iterator
from contextlib import closing

from planforge.errors import CannotPerform

FIRST, LAST = 20_000, 32_000
"""Below what systems hand out by themselves."""

SLOT = 20
MOST = SLOT - 1
"""How many ports one worktree can have."""


class Ports:
    """A range of ports that is ours until it is given back or this process ends."""

    def __init__(self, first: int, count: int, handle: int) -> None:
        self.first = first
        self.count = count
        self._handle: int | None = handle

    @property
    def env(self) -> dict[str, str]:
        """The same for programs."""
        return {
            "PORT": str(self.first),
            "PLANFORGE_PORT_BASE": str(self.first),
            "PLANFORGE_PORT_COUNT": str(self.count),
        }

    def give_back(self) -> None:
        """Let others have them."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def take(count: int, wish: str) -> Ports:
    """Take `count` ports, 1 to 19; the same ones for the same `wish` as long as nobody else has them."""
    assert 1 <= count <= MOST
    for start in _slots(wish):
        holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with closing(holder):
            if _binds(holder, "127.0.0.1", start) and all(_free(start + 1 + n) for n in range(count)):
                return Ports(start + 1, count, holder.detach())
    raise CannotPerform(
        f"no {count} ports in a row are free between {FIRST} and {LAST}",
        "set `ports = 0` under `[workspace]` in planforge.toml if nothing here needs one",
    )


def _slots(wish: str) -> Iterator[int]:
    slots = (LAST - FIRST) // SLOT
    begin = zlib.crc32(wish.encode("utf-8", "surrogateescape"))
    return (FIRST + (begin + number) % slots * SLOT for number in range(slots))


def _free(port: int) -> bool:
    """Whether nothing listens there, at whatever address of this machine."""
    for family, address in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
        try:
            server = socket.socket(family, socket.SOCK_STREAM)
        except OSError:  # no such family here
            continue
        with closing(server):
            if family == socket.AF_INET6:
                server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if not _binds(server, address, port):
                return False
    return True


def _binds(server: socket.socket, address: str, port: int) -> bool:
    """Whether the port can be had; if there is no such address, nobody else can have it there either."""
    try:
        server.bind((address, port))
    except OSError as error:
        return error.errno == errno.EADDRNOTAVAIL
    return True
