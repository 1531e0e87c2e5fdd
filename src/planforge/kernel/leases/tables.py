"""
What the tables say about leases: the half of `leases` that only reads.

A claim does not look at every lease there is. Plain paths are looked up, the path, the
directories above it and what lies below; only globs are gone through, the live ones.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from planforge.kernel.leases import rules as leasing
from planforge.kernel.leases.rules import Lease, Scene, Waiter
from planforge.kernel.ledger import Ledger
from planforge.kernel.paths import fixed, is_glob, overlap, parents

STREAM = "leases"

LARGEST = 2**63 - 1
"""The largest number that the tables can hold; no fence is larger."""


def moment(ledger: Ledger) -> tuple[datetime, timedelta]:
    """The time for leases, which never runs back, and how far the clock is behind it."""
    clock = ledger.now()
    for (at,) in ledger.query("SELECT at FROM lease_time"):
        newest = datetime.fromisoformat(at)
        return max(clock, newest), max(newest - clock, timedelta(0))
    return clock, timedelta(0)


def with_fence(ledger: Ledger, fence: int) -> Lease | None:
    """The lease with this fence, if no event has ended it."""
    known = abs(fence) <= LARGEST
    return next(iter(ledger.select(Lease, "leases WHERE fence = ?", fence)), None) if known else None


def fate(ledger: Ledger, fence: int) -> str:
    """What became of the lease with this fence; empty if nothing has."""
    if abs(fence) > LARGEST:
        return ""
    rows = ledger.query("SELECT holder, fate FROM ended_leases WHERE fence = ?", fence)
    return next((f"the lease of `{holder}` with fence {fence} {fate}" for holder, fate in rows), "")


def line(ledger: Ledger) -> tuple[Waiter, ...]:
    """Everybody in line, be their patience over or not, the first one first."""
    return tuple(ledger.select(Waiter, "lease_waiters ORDER BY place"))


def scene(ledger: Ledger, paths: tuple[str, ...] = ()) -> Scene:
    """What a decision about `paths` is made from."""
    now, late = moment(ledger)
    found = {
        lease.fence: lease
        for path in paths
        for lease in candidates(ledger, path)
        if any(overlap(path, own) for own in lease.paths)
    }
    return Scene(
        now=now,
        late=late,
        version=ledger.version(STREAM),
        leases=tuple(found[fence] for fence in sorted(found)),
        line=line(ledger),
    )


def candidates(ledger: Ledger, pattern: str, meets: Callable[[str, str], bool] = overlap) -> list[Lease]:
    """The leases that can overlap with a pattern, by their globs, and the plain paths above and below it."""
    start = fixed(pattern) if is_glob(pattern) else pattern
    globs = ledger.query("SELECT path, fence FROM lease_paths WHERE glob = 1")
    fences = {fence for path, fence in globs if meets(pattern, path)}
    if not start:
        fences |= _fences(ledger, "glob = 0")
    else:
        # A slash and the character after it: everything below sorts between the two.
        fences |= _fences(ledger, "path >= ? AND path < ? AND glob = 0", f"{start}/", f"{start}0")
        for path in (start, *parents(start)):
            fences |= _fences(ledger, "path = ? AND glob = 0", path)
    return [found for fence in sorted(fences) if (found := with_fence(ledger, fence))]


def _fences(ledger: Ledger, where: str, *values: str) -> set[int]:
    return {fence for (fence,) in ledger.query(f"SELECT fence FROM lease_paths WHERE {where}", *values)}  # noqa: S608


def behind(ledger: Ledger, waiter: Waiter, line: tuple[Waiter, ...]) -> set[str]:
    """Those whom a waiter waits for, the line being this."""
    seen = msgspec.structs.replace(scene(ledger, waiter.paths), line=line)
    return {held.holder for held in leasing.in_the_way(seen, waiter.holder, waiter.paths)}
