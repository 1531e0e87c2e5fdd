"""Whether the ledger is what was written, and its tables what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from planforge.app.history.ledgers import compare
from planforge.errors import LedgerUnreadable
from planforge.kernel.events import Event, Payload, Recorded
from planforge.kernel.ledger import Fault, Ledger

if TYPE_CHECKING:
    from planforge.app.project import Project


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at and what was wrong."""

    schema_version: int = 1
    intact: bool
    events: int
    objects: int
    faults: tuple[Fault, ...]


def verify(project: Project) -> Verification:
    """Check the chain, then every object that an event refers to, then the tables."""
    ledger = project.ledger
    faults = list(ledger.faults())
    referred: dict[str, Recorded] = {}
    if not faults:  # otherwise what the events say is not to be relied on
        for recorded in ledger.since():
            for name in _objects(recorded.event):
                referred.setdefault(name, recorded)
        faults += _strayed(ledger)
    faults += _damaged(ledger, referred)
    return Verification(intact=not faults, events=ledger.head(), objects=len(referred), faults=tuple(faults))


def _strayed(ledger: Ledger) -> Iterator[Fault]:
    """Rows of the tables that do not follow from the events."""
    found = compare(ledger)
    for difference in found.differences:
        yield Fault(seq=0, stream="", kind="", problem=str(difference))
    if more := found.differing - len(found.differences):
        yield Fault(seq=0, stream="", kind="", problem=f"{more} more rows do not follow from the events")


def _damaged(ledger: Ledger, referred: dict[str, Recorded]) -> Iterator[Fault]:
    for name, recorded in referred.items():
        try:
            ledger.objects.get(name)
        except LedgerUnreadable as error:
            yield Fault(seq=recorded.seq, stream=recorded.stream, kind=recorded.kind, problem=error.message)


def _objects(event: Event) -> list[str]:
    """The addresses of all objects that an event refers to."""
    found = []
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, Payload) and value.object:
            found.append(value.object)
        elif name == "object" and value:
            found.append(value)
        elif name == "evidence":
            parts = [(part.output, *(item.object for item in part.attached)) for part in value.parts]
            found += [value.output, *(name for names in parts for name in names if name)]
    return found
