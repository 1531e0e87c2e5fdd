"""What a plan or a task comes after, as a person says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from planforge.app.items import plans, task_rows
from planforge.kernel.events import ItemLinked
from planforge.kernel.ledger import Write
from planforge.kernel.work.items import Kind, is_named
from planforge.kernel.work.links import Before, before, require_order

if TYPE_CHECKING:
    from planforge.app.project import Project


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """An item and everything that it comes after."""

    schema_version: int = 1
    item: str
    after: tuple[Before, ...]


def linked(project: Project, name: str) -> Linked:
    """What an item comes after."""
    item = _named(project, name)
    return Linked(item=item, after=before(project.ledger, item))


def link(project: Project, name: str, after: Sequence[str], *, actor: str) -> None:
    """Say what an item comes after, in place of what was said before; nothing, if it need not wait."""
    item = _named(project, name)
    wanted = tuple(dict.fromkeys(_named(project, each) for each in after))

    def decide() -> list[Write]:
        require_order(project.ledger, item, wanted)
        if {each.item for each in before(project.ledger, item)} == {*wanted}:
            return []
        return [Write(item, None, [ItemLinked(item=item, after=wanted, actor=actor)])]

    project.ledger.transact(decide)


def _named(project: Project, name: str) -> str:
    """The item that a name means; a number alone is a plan's."""
    if is_named(name, Kind.TASK):
        return task_rows.row(project, name).task
    return plans.row(project, name).plan
