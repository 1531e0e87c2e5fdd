"""Brings in what others wrote about work to be done, as a plan or as what a plan is forged from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planforge.documents.imports import LIMIT, Imported, issues
from planforge.errors import InvalidInput

if TYPE_CHECKING:
    from planforge.app.project import Project


def issue(project: Project, ref: str) -> Imported:
    """The issue on GitHub that `owner/repo#12`, `#12` or an address means, asked for through `gh`."""
    found = issues.reference(ref)
    if found is None:
        raise InvalidInput(
            f"`{ref}` names no issue", "write it like `owner/repo#12`, `#12`, or as its address"
        )
    return _asked(project, found)


def _asked(project: Project, found: issues.Reference) -> Imported:
    from planforge.app import github

    words = ["issue", "view", found.number, "--json", issues.FIELDS]
    if not found.repository:  # then `gh` asks the repository where it is from
        return issues.read(github.ask(words, cwd=project.root, limit=LIMIT), f"#{found.number}")
    words += ["--repo", found.repository]
    return issues.read(github.ask(words, cwd=Path("/"), limit=LIMIT), str(found))
