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

from planforge.workspace.sandbox import home, needs
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
        usual, shut = _usual(homes, lately)
        needed = needs.needed(argv, env.get("PATH", os.defpath), cwd, shut, policy.writable, lately)
        self._named = (*needed, *policy.visible, *policy.writable, cwd, self.home)
        places = usual | _shown(needed, homes, lately) | _put([cwd, *policy.visible], Access.READ)
        writable = _put(policy.writable, Access.WRITE)
        # What may be read may still be written to where everything around it may.
        within = tuple(f"{path}/".replace("//", "/") for path in writable)
        self._places = {
            path: access
            for path, access in places.items()
            if access is not Access.READ or path in writable or not str(path).startswith(within)
        }
        self._places |= _put(policy.hidden, Access.HIDDEN) | writable
        self._places |= _put(policy.read_only, Access.READ)

    @cached_property
    def places(self) -> tuple[tuple[Path, Access], ...]:
        """Every place where something else holds than around it, outermost first."""
        return tuple((path, self._known[str(path)]) for path in self._ordered if str(path) in self._known)

    @cached_property
    def _ordered(self) -> list[Path]:
        return sorted(self._places, key=lambda path: (len(path.parts), path.parts))

    @cached_property
    def _known(self) -> dict[str, Access]:
        """The same by name, which is quicker to look something up in."""
        found: dict[str, Access] = {}
        for path in self._ordered:
            around, access = _at(found, str(path.parent)), self._places[path]
            shut = around in (Access.SCRATCH, Access.HIDDEN)
            if access is not around and not (shut and access in (Access.SCRATCH, Access.HIDDEN)):
                found[str(path)] = access
        return found

    def access(self, path: Path) -> Access:
        """What may be done at `path`, which must not lead over links."""
        return _at(self._known, str(path))

    def links(self) -> dict[Path, Path]:
        """The links to what the program was told of, where it would miss them, and their targets."""
        every = (pair for path in self._named for pair in _links_lately(path, self._lately))
        return {link: target for link, target in every if self.access(link.parent) is Access.SCRATCH}


def _put(paths: Iterable[Path], access: Access) -> dict[Path, Access]:
    return {path.resolve(): access for path in paths if os.access(path, os.F_OK)}


@lru_cache(maxsize=16)
def _usual(homes: tuple[Path, ...], lately: int) -> tuple[dict[Path, Access], tuple[Path, ...]]:
    """What holds for every program, and what is shut; one that was given a home has that for itself."""
    kinds = zip(*(_of_home(place, lately) for place in (*homes, None)), strict=True)
    usual = {path: access for kind in kinds for part in kind for path, access in part.items()}
    return usual, tuple(path for path, access in usual.items() if access is Access.SCRATCH)


@lru_cache(maxsize=64)
def _of_home(place: Path | None, lately: int) -> tuple[dict[Path, Access], ...]:
    """What holds in a home, or on the machine: what is a program's own, what is hidden, what is shown."""
    del lately  # a new number makes us look again
    if place is None:
        own, hidden, found = shared(), home.machine_secrets(), names()
    else:
        own, hidden, found = iter([place]), home.secrets([place]), home.shown([place])
    masked = (path for path in own if str(path.resolve()) not in SYSTEM)
    return _put(masked, Access.SCRATCH), _put(hidden, Access.HIDDEN), _put(found, Access.READ)


@lru_cache(maxsize=64)
def _shown(needed: tuple[Path, ...], homes: tuple[Path, ...], lately: int) -> dict[Path, Access]:
    """What a program is started with, but nothing that is hidden as a whole, nor anything around that."""
    usual, shut = _usual(homes, lately)
    wide = {*shut, *(parent for place in shut for parent in place.parents)}
    found = _put(needed, Access.READ)
    return {path: access for path, access in found.items() if path not in wide and path not in usual}


def shared() -> Iterator[Path]:
    """Where people keep what is theirs, programs what is temporary, and services their sockets."""
    yield from (*home.EVERYBODY, *map(Path, TEMPORARY), Path(tempfile.gettempdir()), SERVICES)


def names() -> Iterator[Path]:
    """How to look up hosts, where that is said among the sockets of services."""
    said = Path("/etc/resolv.conf")
    if said.resolve().is_relative_to(SERVICES):
        yield said


def _at(places: Mapping[str, Access], path: str) -> Access:
    while path not in places:
        if path == "/":
            return Access.READ
        path = path.rpartition("/")[0] or "/"
    return places[path]


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
