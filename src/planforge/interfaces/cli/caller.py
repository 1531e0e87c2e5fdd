"""Who calls a command, and for which project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planforge.app.project import Project


def here() -> Project:
    """The project that the current directory is in."""
    from planforge.app.project import Project

    return Project.find(Path.cwd())


def settings_root() -> Path:
    """Where the settings are, if there are any; no repository is needed."""
    from planforge.app.evidence.scanning import project_of

    return project_of(Path.cwd())
