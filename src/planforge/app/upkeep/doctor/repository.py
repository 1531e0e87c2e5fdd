"""The repository, and what is unusual about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from planforge.app.upkeep.doctor.findings import OK, Finding
from planforge.workspace.git import Git
from planforge.workspace.git import repository as unusual


def repository(start: Path) -> Iterator[Finding]:
    """Its path, your identity, and everything that Planforge handles specially."""
    git = Git.find(start)
    yield Finding(id="repository", status=OK, evidence=str(git.top))
    notes = unusual.survey(git)
    for note in notes:
        yield Finding(id=note.id, status=note.status, evidence=note.evidence, fix=note.fix)
    if not any(note.id in ("identity", "repository") for note in notes):
        name, email = git.identity()
        yield Finding(id="identity", status=OK, evidence=f"{name} <{email}>")
