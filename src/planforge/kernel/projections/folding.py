"""How a projection says what each kind of event does to its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from planforge.kernel.events import Event, Recorded

Kind = TypeVar("Kind", bound=Event)


class Folds:
    """What the events that a projection cares about do to it."""

    def __init__(self) -> None:
        self.table: dict[type[Event], Callable[[apsw.Connection, Any, Recorded], None]] = {}

    def of(
        self, kind: type[Kind]
    ) -> Callable[
        [Callable[[apsw.Connection, Kind, Recorded], None]], Callable[[apsw.Connection, Kind, Recorded], None]
    ]:
        """Marks the function that folds one kind of event in."""

        def mark(
            function: Callable[[apsw.Connection, Kind, Recorded], None],
        ) -> Callable[[apsw.Connection, Kind, Recorded], None]:
            self.table[kind] = function
            return function

        return mark
