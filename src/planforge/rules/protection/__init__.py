"""
Which changes need a person, whatever the evidence says.

A change can pass every test and still not be an agent's to make: what CI runs, what is
installed, what agents are told, what runs by itself, what is done to a database. Such
paths are known by name, and manifests, migrations and settings of checks by what is in
them. Names are compared as the least strict file system would, and as a reader would.

Pure: names and texts go in, reasons come out. What reads manifests is loaded when it is
asked for: settings name protected paths, and a command that only reads settings should
not wait for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from planforge.rules.protection.bounds import SizeSettings, outside, size_finding
from planforge.rules.protection.shapes import ProtectedChange, Protection
from planforge.rules.protection.table import Kind

__all__ = [
    "Kind",
    "ProtectedChange",
    "Protection",
    "SizeSettings",
    "ci_files",
    "holds_to_former_tests",
    "outside",
    "protected",
    "size_finding",
]


def protected(
    files: Iterable[str],
    before: Mapping[str, str],
    after: Mapping[str, str],
    settings: Protection | None = None,
    *,
    unread: Collection[str] = (),
) -> tuple[ProtectedChange, ...]:
    """
    Every reason why a change of `files` needs a person, in the order of the files.

    `before` and `after` have the texts of the changed files; one that is not there has none, and one that is
    there but was not read, because it is too large or no text, is named in `unread`. `before` may also have
    CI files that the change leaves alone: what they name is then known to be run by them.
    """
    from planforge.rules.protection import changes

    return changes.protected(files, before, after, settings or Protection(), unread)


def ci_files(paths: Iterable[str], settings: Protection | None = None) -> tuple[str, ...]:
    """Those of the paths that are CI files."""
    from planforge.rules.protection import changes

    return changes.ci_files(paths, settings or Protection())


def holds_to_former_tests(settings: Protection) -> bool:
    """Whether a person has to approve a change that makes earlier tests fail."""
    return settings.replace is None and Kind.FORMER_TESTS.value not in settings.remove
