"""
Says what is a secret in this project, so that none gets into git.

Every file that an agent changed is searched before anything of it is committed. What the file had
before is not new. What is found refuses the commit, and when the worktree is put away the file goes
into the quarantine instead of the archive.
"""

from __future__ import annotations

from datetime import UTC, datetime

from planforge.app.project import Project
from planforge.workspace import secrets
from planforge.workspace.keeping.contents import Finder
from planforge.workspace.secrets import Secret
from planforge.workspace.secrets.values import Values


def finder(project: Project, plan: str) -> Finder:
    """Finds the secrets of a file that neither the person's checkout nor the plan's branch has there."""
    known = ("HEAD", f"refs/heads/planforge/{plan}")

    def find(path: str, content: bytes) -> tuple[Secret, ...]:
        settings = project.settings.protect.secrets
        values = Values.of_environment(settings.variables)
        bases = [before for revision in known if (before := _before(project, revision, path)) is not None]
        found = secrets.find_new(path, b"\n".join(bases) if bases else None, content, values)
        return secrets.unexcused(found, settings.allow, datetime.now(UTC).date())

    return find


def _before(project: Project, revision: str, path: str) -> bytes | None:
    process = project.git.run("cat-file", "blob", f"{revision}:{path}", accept=(0, 1, 128))
    return None if process.returncode else process.stdout
