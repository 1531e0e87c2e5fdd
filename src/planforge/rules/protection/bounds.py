"""
Whether a change stays within its step: the files that the plan names, and about the size that steps have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from planforge.errors import InvalidInput
from planforge.kernel.paths import exact, matches, normalise_all
from planforge.rules.findings import Finding, Severity
from planforge.rules.protection.patterns import Patterns
from planforge.rules.protection.table import DEFAULTS, GENERATED, Kind

ENOUGH = 5
"""From so many landed steps on, it can be said how large a step of this project is."""


class SizeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How large a change may be before it is remarked upon, or refused."""

    lines: int = 800
    """Up to so many changed lines no change is large."""
    lines_per_file: int = 250
    """So many are allowed for each file that the step names."""
    factor: float = 8.0
    """So many times the middle one of the project's landed steps is not large either."""
    refuse: int = 10_000
    """A change of more lines is refused; 0 for never."""


def outside(files: Iterable[str], planned: Sequence[str]) -> tuple[Finding, ...]:
    """A finding for each changed file that the step does not name; none if it names no files at all."""
    scope = normalise_all(planned)
    if not scope:
        return ()
    return tuple(
        Finding(severity=Severity.BLOCKING, title="the step does not name this file", location=path)
        for path in files
        if not _is_named(path, scope)
    )


def _is_named(path: str, scope: Sequence[str]) -> bool:
    try:
        return any(matches(pattern, exact(path)) for pattern in scope)
    except InvalidInput:  # no plan can name it: a backslash, or bytes that are no text
        return False


def size_finding(
    changed: Mapping[str, int],
    planned: Sequence[str],
    landed: Sequence[int],
    settings: SizeSettings | None = None,
) -> Finding | None:
    """
    A finding if the change is far larger than its step.

    `changed` has the lines added and removed of each file, `landed` the sizes of the project's landed
    steps. What programs write is not counted. Large is what is more than all three: a fixed number of
    lines, so many for each planned file, and some times the median of what has landed, if enough has.
    """
    from statistics import median  # which loads a great deal, and not everybody asks

    given = settings or SizeSettings()
    size = counted(changed)
    allowed = max(given.lines, given.lines_per_file * len(planned))
    middle = median(landed) if len(landed) >= ENOUGH else 0
    allowed = max(allowed, round(given.factor * middle))
    refused = bool(given.refuse) and size > given.refuse
    if size <= allowed and not refused:
        return None
    usual = f"; half of the landed steps had at most {middle:g}" if middle else ""
    limit = given.refuse if refused else allowed
    return Finding(
        severity=Severity.BLOCKING if refused else Severity.MEDIUM,
        title=f"it changes {size} lines, which is far more than such a step needs",
        detail=f"{'refused' if refused else 'remarked upon'} above {limit} lines{usual}",
    )


def counted(changed: Mapping[str, int]) -> int:
    """The lines of a change that somebody wrote."""
    return sum(lines for path, lines in changed.items() if not BY_PROGRAMS.match(path))


BY_PROGRAMS = Patterns((*GENERATED, *DEFAULTS[Kind.LOCK_FILE]))
