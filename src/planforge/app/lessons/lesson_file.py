"""
The file of lessons on disk.

It belongs to people. It is read anew for every change and replaced whole, under a lock; an edit that comes in
between is kept, and the change is made to that. No link is followed on the way to it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from planforge.errors import Conflict, InvalidDocument, InvalidInput
from planforge.kernel.locks import held
from planforge.kernel.objects import write_atomically
from planforge.kernel.paths import exact
from planforge.workspace.files import beneath

if TYPE_CHECKING:
    from planforge.app.project import Project

LARGEST = 1024 * 1024
"""A larger file is not read."""

Changed = TypeVar("Changed")

TRIES = 5
"""How often a change is made anew to a file that somebody else has changed meanwhile."""


def path(project: Project) -> str:
    """Where it is, from the top of the repository."""
    return exact(project.settings.lessons.file)


def text(project: Project) -> str:
    """What it says now; nothing if there is none."""
    place = path(project)
    try:
        return beneath.read(project.root, place, LARGEST).decode()
    except UnicodeDecodeError as error:
        raise InvalidDocument(f"`{place}` is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return ""
        raise InvalidInput(f"cannot read `{place}`: {error.strerror}") from error


def change(project: Project, made: Callable[[str], tuple[str, Changed]]) -> Changed:
    """Make a change to the file as it is at this moment, and return what was changed."""
    with held(project.state / "locks" / "lessons.lock", "a change of the lessons", wait=True):
        for _ in range(TRIES):
            before = text(project)
            after, changed = made(before)
            if after == before or _written(project, before, after):
                return changed
    raise Conflict(f"`{path(project)}` changes all the time", "try again when nobody is editing it")


def _written(project: Project, before: str, after: str) -> bool:
    """Whether it was written: not if it says something else by now than it did before."""
    place: Path = project.root / path(project)
    try:
        with beneath.Directory.at(project.root) as root:
            root.make(path(project).rpartition("/")[0]).close()
        if text(project) != before:
            return False
        write_atomically(place, after.encode())
    except OSError as error:
        raise InvalidInput(f"cannot write `{path(project)}`: {error.strerror}") from error
    return True
