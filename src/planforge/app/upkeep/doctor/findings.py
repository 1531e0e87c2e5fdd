"""What was found: a status, its evidence, and how to fix it."""

from __future__ import annotations

import msgspec

from planforge.actions import Action, Hint

OK, WARN, FAIL, UNKNOWN = "ok", "warn", "fail", "unknown"

FIX = Action("doctor", fix=True)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    id: str
    status: str
    """ok, warn, fail, or unknown if it cannot be checked"""
    evidence: str
    fix: Hint = ""


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """One repair, or a failed one."""

    id: str
    done: bool
    said: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all checks."""

    schema_version: int = 1
    healthy: bool
    findings: tuple[Finding, ...]
    mended: tuple[Mended, ...] = ()
    """The repairs that were made first, with `--fix`."""


def mebibytes(size: int) -> str:
    """A size in words."""
    return f"{size // (1024 * 1024)} MiB"
