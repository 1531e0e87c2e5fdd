"""What a project says about its protected paths, and the reasons that come out."""

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
