"""
What a confined program finds at each path, from its policy and from this machine.

A view is a list of places, each with what may be done there and below; the longest path that fits
decides. Bubblewrap makes mounts of it, Landlock rules.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path

from planforge.workspace.sandbox import home
from planforge.workspace.sandbox.policy import Policy

SERVICES = Path("/run")
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  (they are hidden, not used)
SYSTEM = (
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
)
"""What is never hidden as a whole, whatever somebody's home is said to be."""

STALE = 30.0
"""How many seconds it may take until we see that a tool was installed: looking takes longer than starting."""


class Access(StrEnum):
    """What may be done at a place."""

    SCRATCH = "scratch"
    """What is there is hidden; what the program puts there is its own and goes with it."""
    HIDDEN = "hidden"
    READ = "read"
    WRITE = "write"


class View:
    """The places of one program."""

    def __init__(self, policy: Policy, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        homes = home.own(env.get("HOME"))
        self.home = homes[0] if homes else Path("/")
        self.cwd = cwd.resolve()
        lately = int(time.monotonic() / STALE)
        self._lately = lately
        needed = home.needed(argv, env.get("PATH", os.defpath), cwd, lately)
        self._named = (*needed, *policy.visible, *policy.writable, cwd, self.home)
        places = _usual(homes, lately) | _put([*needed, cwd, *policy.visible], Access.READ)
        writable = _put(policy.writable, Access.WRITE)
        # What may be read may still be written to where everything around it may.
        self._places = {
            path: access
            for path, access in places.items()
            if access is not Access.READ or writable.keys().isdisjoint(path.parents)
        }
        self._places |= _put(policy.hidden, Access.HIDDEN) | writable
        self._places |= _put(policy.read_only, Access.READ)

    @cached_property
    def places(self) -> tuple[tuple[Path, Access], ...]:
        """Every place where something else holds than around it, outermost first."""
        found: dict[Path, Access] = {}
        for path in sorted(self._places, key=lambda path: (len(path.parts), path)):
            around, access = _at(found, path.parent), self._places[path]
            shut = around in (Access.SCRATCH, Access.HIDDEN)
            if access is not around and not (shut and access in (Access.SCRATCH, Access.HIDDEN)):
                found[path] = access
        return tuple(found.items())

    def access(self, path: Path) -> Access:
        """What may be done at `path`, which must not lead over links."""
        return _at(dict(self.places), path)

    def links(self) -> dict[Path, Path]:
        """The links to what the program was told of, where it would miss them, and their targets."""
        every = (pair for path in self._named for pair in _links_lately(path, self._lately))
        return {link: target for link, target in every if self.access(link.parent) is Access.SCRATCH}


def _put(paths: Iterable[Path], access: Access) -> dict[Path, Access]:
    return {path.resolve(): access for path in paths if os.access(path, os.F_OK)}


@lru_cache(maxsize=16)
def _usual(homes: tuple[Path, ...], lately: int) -> dict[Path, Access]:
    """What holds for every program."""
    del lately  # a new number makes us look again
    places = _put(masked(homes), Access.SCRATCH) | _put(home.secrets(homes), Access.HIDDEN)
    return places | _put([*home.shown(homes), *names()], Access.READ)


def masked(homes: Sequence[Path]) -> Iterator[Path]:
    """Where people keep what is theirs, programs what is temporary, and services their sockets."""
    temporary = (*map(Path, TEMPORARY), Path(tempfile.gettempdir()))
    for path in (*homes, *home.EVERYBODY, *temporary, SERVICES):
        if str(path.resolve()) not in SYSTEM:
            yield path


def names() -> Iterator[Path]:
    """How to look up hosts, where that is said among the sockets of services."""
    said = Path("/etc/resolv.conf")
    if said.resolve().is_relative_to(SERVICES):
        yield said


def _at(places: Mapping[Path, Access], path: Path) -> Access:
    for around in (path, *path.parents):
        if around in places:
            return places[around]
    return Access.READ


@lru_cache(maxsize=512)
def _links_lately(path: Path, lately: int) -> tuple[tuple[Path, Path], ...]:
    del lately  # a new number makes us look again
    return tuple(_links(path))


def _links(path: Path) -> Iterator[tuple[Path, Path]]:
    """The links on the way to `path` and where they lead, however many they are."""
    if path.resolve() == path:
        return
    so_far = Path("/")
    rest = list(path.absolute().parts[1:])
    for _ in range(200):  # links may go round in circles
        if not rest:
            return
        so_far, part = so_far.resolve(), rest.pop(0)
        so_far = so_far.parent if part == ".." else so_far / part
        if so_far.is_symlink():
            target = so_far.readlink()
            yield so_far, target
            rest[:0] = [part for part in target.parts if part != "/"]
            so_far = Path("/") if target.is_absolute() else so_far.parent
