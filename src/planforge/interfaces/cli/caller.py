"""Who calls a command, and for which project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planforge.app.project import Project


def here() -> Project:
    """The project that the current directory is in."""
    from planforge.app.project import Project

    return Project.find(Path.cwd())


def deciding(actor: str | None) -> tuple[Project, str]:
    """The project, and who decides something about its plans: `actor`, or the person whom git knows."""
    from planforge.app.decisions import deciders

    project = here()
    return project, deciders.person_or_script(project, actor)


def deciding_at_gate(actor: str | None, where: str = "at a gate") -> tuple[Project, str]:
    """The same where scripts do not decide: without a terminal, `actor` has to name a person."""
    from planforge.app.decisions import deciders

    project = here()
    return project, deciders.person(project, actor, terminal=sys.stdin.isatty(), where=where)


def settings_root() -> Path:
    """Where the settings are, if there are any; no repository is needed."""
    from planforge.app.evidence.scanning import project_of

    return project_of(Path.cwd())
