"""
What an item comes after. Nothing of it is carried out, and nothing of it lands, before all of that is over.

Over is what has landed, and what nothing more will come of.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from planforge.errors import InvalidInput
from planforge.kernel.work.actions import OVER
from planforge.kernel.work.items import Rows


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """An item that another one comes after."""

    item: str
    status: str
    over: bool


BEFORE = """SELECT items.item, status, EXISTS (SELECT 1 FROM unlanded WHERE plan = items.item)
  FROM links JOIN items ON items.item = links.after WHERE links.item = ?
  ORDER BY kind, length(items.item), items.item
"""


def before(rows: Rows, item: str) -> tuple[Before, ...]:
    """Everything that an item comes after, with how it stands."""
    return tuple(
        Before(item=name, status=status, over=status in OVER or (status == "DONE" and not unlanded))
        for name, status, unlanded in rows.query(BEFORE, item)
    )


def waits_for(rows: Rows, item: str) -> tuple[str, ...]:
    """What has to be over before an item goes on."""
    return tuple(each.item for each in before(rows, item) if not each.over)


def require_order(rows: Rows, item: str, after: Iterable[str]) -> None:
    """Refuse an order that leads back to where it begins: nothing in it could ever start."""
    ways: dict[str, tuple[str, ...]] = {name: (item, name) for name in after}
    for name in (reached := [*ways]):
        if name == item:
            raise InvalidInput(
                f"that goes round: {', which comes after '.join(f'`{each}`' for each in ways[name])}"
            )
        for each in before(rows, name):
            if each.item not in ways:
                ways[each.item] = (*ways[name], each.item)
                reached.append(each.item)
