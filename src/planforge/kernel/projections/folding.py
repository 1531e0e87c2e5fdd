"""How a projection says what each kind of event does to its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import apsw
import msgspec

from planforge.kernel.events import Event, Recorded

Kind = TypeVar("Kind", bound=Event)
Fold = Callable[[apsw.Connection, Kind, Recorded], None]


class Folds:
    """What the events that a projection cares about do to it."""

    def __init__(self) -> None:
        self.table: dict[type[Event], Fold[Any]] = {}

    def of(self, kind: type[Kind]) -> Callable[[Fold[Kind]], Fold[Kind]]:
        """Marks the function that folds one kind of event in."""

        def mark(function: Fold[Kind]) -> Fold[Kind]:
            self.table[kind] = function
            return function

        return mark


def text_of(value: object) -> str:
    """A list or a structure as a column has it."""
    return msgspec.json.encode(value).decode()


def update(db: apsw.Connection, table: str, key: str, value: str, **columns: str | int | None) -> None:
    """Give the row whose column `key` has this value other values in some columns."""
    assigned = ", ".join(f"{column} = ?" for column in columns)
    statement = f"UPDATE {table} SET {assigned} WHERE {key} = ?"  # noqa: S608  (names of tables and columns)
    db.execute(statement, (*columns.values(), value))
