"""
Which events somebody cares about, and reading just those.

The quick read commands use this too, so it loads nothing that they do not have already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from planforge.actions import Action, Advice, Hint
from planforge.errors import InvalidInput
from planforge.kernel.events import EVENTS, Recorded
from planforge.kernel.ledger import PAGE, Ledger


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """The events that have one of the kinds, are in one of the streams, and name the plan. Empty: any."""

    kinds: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    plan: str = ""
    """Events of the plan's own stream, with this `plan`, or of a run that has it as its subject."""
    after: int = 0
    """Only those with a greater sequence number."""

    def __post_init__(self) -> None:
        kinds = tuple(map(kind_named, self.kinds))  # `STEP_STARTED` is `StepStarted`
        msgspec.structs.force_setattr(self, "kinds", kinds)

    def matches(self, recorded: Recorded) -> bool:
        """Whether it is one of them."""
        return (
            recorded.seq > self.after
            and (not self.kinds or recorded.kind in self.kinds)
            and (not self.streams or recorded.stream in self.streams)
            and (not self.plan or _names(recorded, self.plan))
        )


def _names(recorded: Recorded, plan: str) -> bool:
    event = recorded.event
    return plan in (recorded.stream, *(getattr(event, name, None) for name in ("plan", "item", "subject")))


class Page(NamedTuple):
    """Some events, and the sequence number up to which there are no others that match."""

    events: list[Recorded]
    until: int


def pages(
    ledger: Ledger, wanted: Filter, *, until: int, limit: int = sys.maxsize, backwards: bool = False
) -> Iterator[Page]:
    """
    The events up to `until` that match, a page at a time, oldest or newest first.

    Nothing is held open between two pages, and not more rows are looked at than it takes to find `limit`.
    """
    # A stream has an index, which leads straight to few events among many. It starts at the stream's first
    # event, so for a short range the events themselves are looked through.
    by = "version" if len(wanted.streams) == 1 and until - wanted.after > PAGE else "seq"
    where, values = _conditions(wanted, until, by)
    beyond, order = ("<", "DESC") if backwards else (">", "ASC")
    range_and_order = f"{by} {beyond} ? ORDER BY {by} {order} LIMIT ?"
    edge = sys.maxsize if backwards else 0
    while limit > 0:
        take = min(limit, PAGE)
        rows = list(ledger.read(f"WHERE {where} AND {range_and_order}", *values, edge, take))
        found = [row for row in rows if wanted.matches(row)]
        if len(rows) < take:
            yield Page(found, until)
            return
        yield Page(found, rows[-1].seq)
        edge = rows[-1].version if by == "version" else rows[-1].seq
        limit -= len(found)


def read(
    ledger: Ledger, wanted: Filter, *, until: int | None = None, limit: int = sys.maxsize
) -> Iterator[Recorded]:
    """The events that match, oldest first; the first `limit` of them."""
    end = ledger.head() if until is None else until
    for page in pages(ledger, wanted, until=end, limit=limit):
        yield from page.events


def newest(ledger: Ledger, wanted: Filter, limit: int, *, until: int | None = None) -> list[Recorded]:
    """The newest `limit` events that match, oldest first."""
    end = ledger.head() if until is None else until
    found = pages(ledger, wanted, until=end, limit=limit, backwards=True)
    return [item for page in found for item in page.events][::-1]


ALSO_CALLED = {"plancreated": "ItemOpened"}
"""What the kernel's document calls by another name."""


def kind_named(name: str) -> str:
    """The kind of event that somebody means: `STEP_STARTED` and `step-started` are `StepStarted`."""
    return named(name, EVENTS, "event")


def named(name: str, names: Iterable[str], what: str) -> str:
    """The one of `names` that is meant, however it is capitalised and divided."""
    known = {_plain(one): one for one in names}
    name = ALSO_CALLED.get(_plain(name), name)
    if _plain(name) not in known:
        raise _unknown(name, known.values(), what)
    return known[_plain(name)]


def _plain(name: str) -> str:
    return str(name).replace("_", "").replace("-", "").lower()


def _unknown(name: str, names: Iterable[str], what: str) -> InvalidInput:
    from difflib import get_close_matches

    plain = {_plain(one): one for one in names}
    near = [plain[one] for one in get_close_matches(_plain(name), plain, n=3)]
    hint: Hint = Advice("for all names, run {}", Action("schema", list=True))
    if near:
        hint = f"did you mean {' or '.join(f'`{one}`' for one in near)}?"
    return InvalidInput(f"there is no {what} `{name}`", hint)


def _conditions(wanted: Filter, until: int, by: str) -> tuple[str, list[str | int]]:
    """What SQLite can check without reading an event; `Filter.matches` has the last word."""
    # `+` keeps SQLite from choosing an index by the column.
    terms = ["+seq > ? AND +seq <= ?"] if by == "version" else ["seq > ? AND seq <= ?"]
    values: list[str | int] = [wanted.after, until]
    if wanted.kinds:
        terms.append(f"kind IN ({_places(wanted.kinds)})")
        values += wanted.kinds
    if wanted.streams:
        terms.append("stream = ?" if by == "version" else f"+stream IN ({_places(wanted.streams)})")
        values += wanted.streams
    if wanted.plan:
        terms.append("(+stream = ? OR instr(body, CAST(? AS BLOB)))")
        values += [wanted.plan, msgspec.json.encode(wanted.plan).decode()]
    return " AND ".join(terms), values


def _places(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))
