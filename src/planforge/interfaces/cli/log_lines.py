"""The output of `planforge log`, without click: click takes longer to load than the answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planforge.kernel.events import Recorded
    from planforge.kernel.filters import Filter
    from planforge.kernel.ledger import Ledger

SHOWN = 30
"""How many events the log shows unless told otherwise."""

FIELDS = ("seq", "at", "stream", "version", "key", "kind", "event", "hash")
"""The fields of an event in JSON, in this order."""


def log(
    *,
    last: int | None = None,
    streams: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    plan: str | None = None,
    since: int = 0,
    follow: bool = False,
    as_json: bool = False,
) -> Iterator[str]:
    """The newest events that match, oldest first; then, to follow them, new ones as they come."""
    from planforge.app.items import plans
    from planforge.kernel.filters import Filter

    project = here()
    ledger, named = project.ledger, plans.named(project, plan) if plan else ""
    until = ledger.head()
    wanted = Filter(kinds=tuple(kinds), streams=streams, plan=named, after=min(since, until))
    if last is None:
        last = 0 if since else SHOWN
    lines = _objects if as_json else _Columns().lines
    shown = False
    for page in _on_record(ledger, wanted, last, until, whole=not as_json):
        shown = True
        yield lines(page)
    if follow:
        for item in _followed(ledger, wanted, until):
            yield lines([item])
    elif not shown and not as_json:
        yield "no events yet" if wanted == Filter() else "no such events yet"


def _on_record(
    ledger: Ledger, wanted: Filter, last: int, until: int, *, whole: bool
) -> Iterator[list[Recorded]]:
    """The newest `last` events, or all for 0; `whole` yields them as one list, so that columns line up."""
    from planforge.kernel.filters import newest, pages

    if last > 0:
        found = newest(ledger, wanted, last, until=until)
    elif whole:
        found = [item for page in pages(ledger, wanted, until=until) for item in page.events]
    else:
        yield from (page.events for page in pages(ledger, wanted, until=until) if page.events)
        return
    if found:
        yield found


def _followed(ledger: Ledger, wanted: Filter, after: int) -> Iterator[Recorded]:
    """New events, until standard output has no reader."""
    from planforge.interfaces.cli.streams import is_read
    from planforge.kernel.bus import INTERVAL, subscribe

    with subscribe(ledger, wanted, after=after) as subscription:
        while True:
            if (item := subscription.next(INTERVAL)) is not None:
                yield item
            elif not is_read(sys.stdout):
                return


def _objects(recorded: list[Recorded]) -> str:
    """One JSON object a line."""
    import msgspec

    bodies = ({name: getattr(item, name) for name in FIELDS} for item in recorded)
    return "\n".join(msgspec.json.encode(body).decode() for body in bodies)


class _Columns:
    """Lines of a growing table: each column keeps the greatest width so far."""

    def __init__(self) -> None:
        self._widest: tuple[str, ...] = ()

    def lines(self, recorded: list[Recorded]) -> str:
        """The lines of more events."""
        from planforge.interfaces.cli.event_words import said

        rows = [(str(it.seq), it.at[11:19], it.stream, it.key, it.kind, said(it.event)) for it in recorded]
        known = [self._widest] if self._widest else []
        columns = list(zip(*known, *rows, strict=True))
        # The last column needs no width.
        self._widest = (*(max(column, key=len) for column in columns[:-1]), "")
        return "\n".join(table([*known, *rows]).split("\n")[len(known) :])
