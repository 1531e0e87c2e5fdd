"""
Confines a program by Landlock, where namespaces cannot be had: rules that a process puts on itself.

Rules only ever allow, and hold for everything below a path. So a hidden directory is one that no rule
covers: what lies around it is allowed piece by piece. What is read-only inside of
what is writable cannot be told apart; docs/sandbox.md says so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

import planforge
from planforge.workspace import launch
from planforge.workspace.sandbox.view import Access, View

DEVICES = ("full", "null", "ptmx", "pts", "random", "tty", "urandom", "zero")
SHARED_MEMORY = "/dev/shm"  # noqa: S108  (no lock between processes works without it)
PACKAGES = str(Path(planforge.__file__).parents[1])


def launcher(status: int | None, limits: str, rules: Sequence[str] = ()) -> list[str]:
    """
    The command that starts a program within limits, and stays with it.

    By `rules` it is confined, or told to become the program.
    """
    told = "" if status is None else str(status)
    return [
        *(sys.executable, "-I", "-S", "-c", launch.BOOT),
        *(PACKAGES, str(os.getpid()), told, limits, *rules, "--"),
    ]


def furnish(scratch: Path, view: View) -> dict[str, str]:
    """
    Make a directory for temporary files and a home in `scratch`; the variables that lead there.

    Many programs fail if they find a file in their home and cannot read it. In this home they find what they
    may use, by links, and nothing else.
    """
    temporary, home, real = scratch / "tmp", scratch / "home", view.home.resolve()
    temporary.mkdir()
    if view.access(real) is not Access.SCRATCH:
        return {"TMPDIR": str(temporary)}
    home.mkdir()
    shown = {path: path for path, access in view.places if access in (Access.READ, Access.WRITE)}
    shown |= {link: link.parent / target for link, target in view.links().items()}
    for path, target in shown.items():
        if path.is_relative_to(real) and view.access(path.parent) is Access.SCRATCH:
            link = home / path.relative_to(real)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
    return {"TMPDIR": str(temporary), "HOME": str(home)}


def rules(view: View, scratch: Path, *, network: bool) -> Iterator[str]:
    """What the program may do, as `launch` understands it; `scratch` is a directory of its own."""
    yield from ("landlock", str(int(network)), f"w:{scratch}", f"w:{SHARED_MEMORY}")
    yield from (f"d:/dev/{name}" for name in DEVICES)
    places = {Path("/"): Access.READ} | dict(view.places) | {Path("/dev"): Access.HIDDEN}
    shut = (path for path, access in places.items() if access in (Access.HIDDEN, Access.SCRATCH))
    above = {parent for path in shut for parent in path.parents}
    for path, access in places.items():
        if access is Access.WRITE:
            yield f"w:{path}"
        elif access is Access.READ:
            yield from (f"r:{open_}" for open_ in _open(path, places, above))


def _open(place: Path, places: Mapping[Path, Access], above: Set[Path]) -> Iterator[Path]:
    """What of a place can be allowed as a whole: not what anything hidden is in."""
    if place not in above:
        yield place
        return
    try:
        children = list(place.iterdir())
    except OSError:
        return
    for child in children:
        if child not in places and not child.is_symlink():
            yield from _open(child, places, above)
