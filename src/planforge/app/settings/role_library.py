"""The roles of a project: the files of its directory over those that come with Planforge."""

from __future__ import annotations

import errno
from pathlib import Path

from planforge.agents.roles import Library
from planforge.errors import InvalidInput
from planforge.workspace.files import beneath

TEXT_LIMIT = 256 * 1024
"""A document that is larger is not read."""


def library_at(root: Path, directory: str) -> Library:
    """The roles that a directory of a project has, over those that come with Planforge."""

    def read(path: str) -> bytes | None:
        try:
            return beneath.read(root, f"{directory}/{path}", TEXT_LIMIT)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise InvalidInput(f"cannot read `{directory}/{path}`: {error.strerror}") from error

    return Library(read, directory)
