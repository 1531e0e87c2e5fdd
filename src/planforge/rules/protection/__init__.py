"""
Which changes need a person, whatever the evidence says.

A change can pass every test and still not be an agent's to make: what CI runs, what is
installed, what agents are told, what runs by itself, what is done to a database. Such
paths are known by name, and manifests, migrations and settings of checks by what is in
them. Names are compared as the least strict file system would, and as a reader would.

Pure: names and texts go in, reasons come out (`changes.py`). What a project says about it
stands here, where a command that only reads settings does not wait for what reads manifests.
"""

from __future__ import annotations

import msgspec

from planforge.rules.protection.table import Kind


class ProtectedChange(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a person has to look."""

    path: str
    kind: Kind
    why: str

    def __str__(self) -> str:
        return f"`{self.path}`: {self.why}"


class Protection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a project says about its protected paths."""

    add: tuple[str, ...] = ()
    """Paths and globs that are protected too."""
    remove: tuple[str, ...] = ()
    """Paths and globs that are not protected after all, or kinds, such as `licence`."""
    replace: tuple[str, ...] | None = None
    """If given, these are protected and nothing else is."""

    @property
    def holds_to_former_tests(self) -> bool:
        """Whether a person has to approve a change that makes earlier tests fail."""
        return self.replace is None and Kind.FORMER_TESTS.value not in self.remove
