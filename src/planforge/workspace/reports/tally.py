"""What a reader finds, and how files that may be anything are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar
from xml.parsers import expat

import msgspec

from planforge.kernel.evidence import Counts
from planforge.kernel.files import read_regular

REPORT_LIMIT = 100 * 1024 * 1024
"""How many bytes a report may have."""

NAMES_LIMIT = 200_000
"""How many names of tests are kept; where there are more, none are."""

CAUSE_LIMIT = 2_000
"""How many characters of what a failing test said are looked at."""

LEFT_OUT = re.compile(r"^\[\d+ bytes left out\]$", re.MULTILINE)
"""What `processes` writes where it dropped the middle of a long output."""

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


Shape = TypeVar("Shape")


class Refused(Exception):
    """The report is something that we do not read."""


class Tally(NamedTuple):
    """The counts, and the names of the tests that failed."""

    counts: Counts
    failing: tuple[str, ...]
    names: tuple[str, ...] | None = None
    """All tests, if the report names them; a name may be there more than once."""
    causes: tuple[str, ...] = ()
    """What each failing test said, if the report tells."""
    doubt: str = ""
    """Why the counts cannot be believed; empty if they can."""
    warnings: int | None = None
    """How often the runner warned, if it counts that."""


def counted(*, passed: int = 0, failed: int = 0, skipped: int = 0, total: int | None = None) -> Counts:
    """Counts; the total is the sum unless the runner has its own."""
    return Counts(
        total=passed + failed + skipped if total is None else total,
        passed=passed,
        failed=failed,
        skipped=skipped,
    )


COUNTED = {
    "passed": ("passed", "measured", "xpassed"),
    "failed": ("failed", "failures", "error", "errors", "unexpected successes", "cancelled"),
    "skipped": ("skipped", "xfailed", "incomplete", "todo"),
}
"""What the number in a group of a pattern counts by the group's name, or one beside a word by the word."""
TOTALS = ("total", "test", "tests")

WORDS = re.compile(r"(\d{1,9}) ([a-z]+)|([a-z]+(?: [a-z]+)?)(?:=|: )(\d{1,9})", re.IGNORECASE)


def numbers_in(text: str) -> Counter[str]:
    """The numbers in a text by the words beside them: `2 failed`, `failures=2`, `Failures: 2`."""
    found = Counter[str]()
    for before, word, name, after in WORDS.findall(text):
        found[(word or name).lower()] += int(before or after)
    return found


def counts_in(summary: re.Match[str]) -> Counts:
    """
    The counts of a summary, by the names of its groups and by the words in its group `words`.

    What failed `outside` of tests is in no total. Nor are `broken` files, whose tests could not be run: they
    are counted if no test failed. Where it is not said how many tests passed, the rest of the total did.
    """
    groups = summary.groupdict()
    numbers = numbers_in(groups.pop("words", None) or "")
    numbers.update({name: int(number or 0) for name, number in groups.items()})
    found = {kind: sum(numbers[name] for name in names) for kind, names in COUNTED.items()}
    beyond = numbers["outside"] + (0 if found["failed"] else numbers["broken"])
    found["failed"] += beyond
    total = next((numbers[name] + beyond for name in TOTALS if name in numbers), None)
    if total is not None and "passed" not in numbers:
        found["passed"] = max(total - found["failed"] - found["skipped"], 0)
    return counted(**found, total=total)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names as they are kept."""
    return tuple(sorted(names))


def whole(names: list[str]) -> tuple[str, ...] | None:
    """All names in order, or None where they are too many to keep."""
    return in_order(names) if len(names) <= NAMES_LIMIT else None


def added(tallies: Iterable[Tally]) -> Tally | None:
    """Several tallies of different tests as one."""
    known = list(tallies)
    if not known:
        return None
    names = [tally.names for tally in known]
    warnings = [tally.warnings for tally in known if tally.warnings is not None]
    return Tally(
        sum((tally.counts for tally in known), counted()),
        in_order(name for tally in known for name in tally.failing),
        None if None in names else whole([name for part in names for name in part or ()]),
        tuple(cause for tally in known for cause in tally.causes),
        next((tally.doubt for tally in known if tally.doubt), ""),
        sum(warnings) if warnings else None,
    )


def content_of(path: Path) -> bytes | None:
    """What is in a report, if it is a file of a bearable size."""
    try:
        content = read_regular(path, REPORT_LIMIT + 1)
    except OSError:
        return None
    return content if len(content) <= REPORT_LIMIT else None


def decoded(content: bytes | None, shape: type[Shape]) -> Shape | None:
    """A JSON document, if it has this shape."""
    try:
        return msgspec.json.decode((content or b"").removeprefix(b"\xef\xbb\xbf"), type=shape)
    except (msgspec.MsgspecError, RecursionError):
        return None


def parse_xml(
    content: bytes | None,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None] | None = None,
) -> bool:
    """Hand the elements of an XML document over one by one; whether it was read to its end."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(content or b"", True)
    except (expat.ExpatError, LookupError, ValueError, Refused):  # the two before: an odd encoding
        return False
    return True


def _refuse(*_: object) -> None:
    raise Refused


def plain(output: str) -> str:
    """Output without colours, and with one sort of line end."""
    return ESCAPES.sub("", output).replace("\r\n", "\n")
