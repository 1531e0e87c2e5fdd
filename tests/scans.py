"""One file put to all rules of the scanner."""

from __future__ import annotations

from planforge.rules.scanning.inspection import opened
from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.scanner import examine


def scan(path: str, text: str, *, strict_xfail: bool = False) -> tuple[Issue, ...]:
    """Where a text breaks a rule; nothing if the scanner would not look at such a file."""
    source = opened(path, text)
    return examine(source, strict_xfail=strict_xfail).issues if source else ()
