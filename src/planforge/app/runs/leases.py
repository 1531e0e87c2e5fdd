"""Who holds which files and who waits for them, and a person's way to take a lease away."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import see
from planforge.errors import InvalidInput, NotFound
from planforge.kernel import leases
from planforge.kernel.leases.rules import LATE, Lease, Waiting
from planforge.kernel.leases.tables import moment

if TYPE_CHECKING:
    from planforge.app.project import Project


class HeldLease(msgspec.Struct, frozen=True, kw_only=True):
    """A live lease and how long it lasts."""

    fence: int
    holder: str
    paths: tuple[str, ...]
    granted_at: str
    until: str
    seconds_left: float


class LeaseList(msgspec.Struct, frozen=True, kw_only=True):
    """Every live lease, and everybody who waits for one."""

    schema_version: int = 1
    leases: tuple[HeldLease, ...]
    waiting: tuple[Waiting, ...]
    clock_behind_seconds: float = 0
    """How far the clock is behind the newest event about leases, where that is worth saying."""


class TakenLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that a person has ended."""

    schema_version: int = 1
    lease: Lease
    actor: str
    reason: str


def listed(project: Project) -> LeaseList:
    """What is held and who waits, as the ledger has it."""
    now, late = moment(project.ledger)
    held = tuple(
        HeldLease(
            fence=lease.fence,
            holder=lease.holder,
            paths=lease.paths,
            granted_at=lease.granted_at,
            until=lease.until,
            seconds_left=max((datetime.fromisoformat(lease.until) - now).total_seconds(), 0),
        )
        for lease in leases.held(project.ledger)
    )
    behind = late.total_seconds() if late > LATE else 0
    return LeaseList(leases=held, waiting=tuple(leases.waiting(project.ledger)), clock_behind_seconds=behind)


def take_away(project: Project, name: str, reason: str) -> TakenLease:
    """End the lease that `name` means: a fence, one of its paths or globs, or a file that it covers."""
    if not reason.strip():
        raise InvalidInput("a lease is taken away only for a reason", 'say why: `--reason "it hangs"`')
    found = leases.find(project.ledger, name)
    if found is None:
        kind = f"no live lease has fence {name}" if name.isdecimal() else f"`{name}` is not leased"
        raise NotFound(kind, see("lease list"))
    actor = project.person
    taken = leases.force(project.ledger, found.fence, actor, reason)
    return TakenLease(lease=taken, actor=actor, reason=reason.strip())
