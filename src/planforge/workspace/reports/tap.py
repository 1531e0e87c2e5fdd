"""
The Test Anything Protocol: what tape, ava and node's own runner print.

Points that are indented belong to a test one level up, and are not counted a second
time. Where the runner counts by itself in the comments at the end, its counts are
taken: node counts the tests within files, and prints the files as points.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from planforge.kernel.evidence import Counts
from planforge.workspace.reports.tally import LEFT_OUT, Tally, counted, counts_in, in_order, plain

PLAN = re.compile(r"^1\.\.(\d{1,9})(?:\s|$)", re.MULTILINE)
POINT = re.compile(r"^( *)(not )?ok\b(?: (\d{1,9}))?(?: -)? ?([^#\n]*)(?:# ?(\w+)[^\n]*)?$", re.MULTILINE)
BAIL = re.compile(r"^Bail out!(.*)$", re.MULTILINE)


def node_summary(mark: str) -> re.Pattern[str]:
    """What node's own runner prints at the end, each line after a mark."""
    numbers = ("pass (?P<passed>", "fail (?P<failed>", "cancelled (?P<cancelled>", "skipped (?P<skipped>")
    lines = (rf"{mark} {number}\d{{1,9}})\n" for number in numbers)
    suites = rf"(?:{mark} suites \d+\n)?"
    return re.compile(
        rf"^{mark} tests (?P<total>\d{{1,9}})\n{suites}{''.join(lines)}{mark} todo (?P<todo>\d{{1,9}})$",
        re.MULTILINE,
    )


OWN = (
    node_summary("#"),
    # node-tap
    re.compile(
        r"^# \{ total: (?P<total>\d{1,9})(?:, pass: (?P<passed>\d{1,9}))?(?:, fail: (?P<failed>\d{1,9}))?"
        r"(?:, skip: (?P<skipped>\d{1,9}))?(?:, todo: (?P<todo>\d{1,9}))? \}$",
        re.MULTILINE,
    ),
)
"""How runners count by themselves."""


class _Point(NamedTuple):
    depth: int
    ok: bool
    name: str
    directive: str


def read_tap(output: str) -> Tally | None:
    """Read one stream of TAP among whatever else was printed; several cannot be told apart."""
    text = plain(output)
    points = [_point(match) for match in POINT.finditer(text)]
    plans = PLAN.findall(text)
    if len(plans) != 1:
        return None if not plans else Tally(counted(), (), doubt="it printed several plans of TAP")
    failing = list(_failing(points))
    if (own := _own(text)) is not None:
        return Tally(own, in_order(failing), doubt=_doubt(text, own.failed, len(failing)))
    top = [point for point in points if point.depth == 0]
    skipped = sum(point.directive in ("skip", "todo") for point in top)
    bad = sum(_bad(point) for point in top)
    counts = counted(passed=len(top) - bad - skipped, failed=bad, skipped=skipped)
    doubt = "" if int(plans[0]) == len(top) else f"it planned {plans[0]} tests and ran {len(top)}"
    if BAIL.search(text):
        doubt = "it bailed out"
    elif LEFT_OUT.search(text):
        doubt = "its output is too long to be counted"
    names = in_order(point.name for point in top) if all(point.name for point in top) else None
    return Tally(counts, in_order(failing), names, doubt=doubt)


def _own(text: str) -> Counts | None:
    """What the runner counted by itself, if it did so once."""
    found = [match for pattern in OWN for match in pattern.finditer(text)]
    return counts_in(found[0]) if len(found) == 1 else None


def _point(match: re.Match[str]) -> _Point:
    return _Point(
        depth=len(match[1]),
        ok=not match[2],
        name=match[4].strip(),
        directive=(match[5] or "").lower(),
    )


def _failing(points: list[_Point]) -> Iterator[str]:
    """The names of failed tests; a parent is left out if one of its children failed."""
    below: dict[int, bool] = {}
    """At each depth, whether anything failed since the last point that was less deep."""
    for point in points:
        within = {depth: bad for depth, bad in below.items() if depth > point.depth}
        below = {depth: bad for depth, bad in below.items() if depth <= point.depth}
        because_of_others = any(within.values())
        below[point.depth] = below.get(point.depth, False) or _bad(point)
        if _bad(point) and not because_of_others:
            yield point.name or "unnamed"


def _bad(point: _Point) -> bool:
    return not point.ok and point.directive not in ("skip", "todo")


def _doubt(text: str, failed: int, named: int) -> str:
    if BAIL.search(text):
        return "it bailed out"
    return "" if failed or not named else f"it says that none failed and shows {named} that did"
