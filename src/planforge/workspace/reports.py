"""
Reads how many tests ran, and which failed, from what a test program left.

A reader returns what it can prove. None means that no count could be read, which
is not the same as a count of zero.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from planforge.kernel.evidence import Counts

REPORT_LIMIT = 16 * 1024 * 1024

RAN = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
ENDED = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)(?: \(([a-z0-9=, ]+)\))?\s*$", re.MULTILINE)
FAILING = re.compile(r"^(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \(([^)\s]+)\)", re.MULTILINE)


class Tally(NamedTuple):
    """The counts, and the names of the tests that failed."""

    counts: Counts
    failing: tuple[str, ...]


def read_unittest(output: str) -> Tally | None:
    """Read the closing lines of Python's own `unittest`; where there are several, none can be believed."""
    ran = list(RAN.finditer(output))
    ended = ENDED.search(output, ran[0].end()) if len(ran) == 1 else None
    if ended is None:
        return None
    parts = dict(part.split("=") for part in (ended[1] or "").replace(" ", "").split(",") if "=" in part)
    numbers = {name: int(value) for name, value in parts.items()}
    total = int(ran[0][1])
    bad = sum(numbers.get(name, 0) for name in ("failures", "errors", "unexpectedsuccesses"))
    skipped = numbers.get("skipped", 0)
    found = FAILING.findall(output) if bad else []
    names = (where if where.endswith(name) else f"{where}.{name}" for name, where in found)
    counts = Counts(total=total, passed=max(total - bad - skipped, 0), failed=bad, skipped=skipped)
    return Tally(counts, tuple(sorted(set(names))))


def read_junit(path: Path) -> Tally | None:
    """Read a JUnit XML report, as pytest and most other runners can write it."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > REPORT_LIMIT:
            return None
        root = ElementTree.parse(path).getroot()  # noqa: S314  (bounded above; expat refuses entity bombs)
    except (OSError, ElementTree.ParseError, LookupError, ValueError):  # the last two: an odd encoding
        return None
    total = skipped = 0
    failing = []
    for case in root.iter("testcase"):
        total += 1
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failing.append(f"{case.get('classname', '')}.{case.get('name', '')}".strip("."))
        elif "skipped" in kinds:
            skipped += 1
    counts = Counts(total=total, passed=total - len(failing) - skipped, failed=len(failing), skipped=skipped)
    return Tally(counts, tuple(sorted(failing)))
