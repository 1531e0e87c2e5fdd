"""
Whether the tables are what follows from the events, and folding them anew.

The events are folded into a database of their own, which is thrown away, and that
is compared with the ledger's tables row by row. Both are read as they were at one
moment, and nobody who writes meanwhile has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from planforge.kernel import projections
from planforge.kernel.ledger import Ledger
from planforge.kernel.ledger.storage import GUARDS
from planforge.kernel.projections import NAMES, project

if TYPE_CHECKING:
    import apsw

    from planforge.app.project import Project

SHOWN = 20
"""How many differences are named."""

Row = tuple[Any, ...]
Progress = Callable[[int, int], None]
"""Told how many events are folded, of how many."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A row that is not what the events say."""

    table: str
    row: str
    """Its key."""
    problem: str

    def __str__(self) -> str:
        return f"table `{self.table}`: {f'row `{self.row}` ' if self.row else ''}{self.problem}"


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and whether the tables were folded anew."""

    schema_version: int = 1
    events: int
    tables: int
    rows: int
    differing: int
    differences: tuple[Difference, ...]
    """The first of them."""
    changed: bool


def rebuild(project: Project, *, check: bool, progress: Progress | None = None) -> Rebuilt:
    """Compare the tables with the events; if they differ, fold them anew, unless this is only a check."""
    found = compare(project.ledger, progress)
    if found.differing and not check:
        project.ledger.rebuild()
        return msgspec.structs.replace(found, changed=True)
    return found


def compare(ledger: Ledger, progress: Progress | None = None) -> Rebuilt:
    """Every row of the ledger's tables against the row that the events give."""
    with closing(Ledger.open(ledger.directory)) as moment, closing(_empty()) as anew:
        list(moment.query("BEGIN"))
        events = _fold(moment, anew, progress)
        rows = sum(count for name in NAMES for (count,) in anew.execute(f"SELECT count(*) FROM {name}"))  # noqa: S608
        named: list[Difference] = []
        differing = 0
        for difference in _differences(moment, anew):
            differing += 1
            if differing <= SHOWN:
                named.append(difference)
    return Rebuilt(
        events=events,
        tables=len(NAMES),
        rows=rows,
        differing=differing,
        differences=tuple(named),
        changed=False,
    )


def _empty() -> apsw.Connection:
    """A database that is in memory as long as it fits, and gone when it is closed."""
    db = apsw.Connection("")
    db.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    projections.create(db)
    return db


def _fold(moment: Ledger, anew: apsw.Connection, progress: Progress | None) -> int:
    head, folded = moment.head(), 0
    anew.execute("BEGIN")
    for recorded in moment.since():
        project(anew, recorded.event, recorded)
        folded += 1
        if progress and folded % 1000 == 0:
            progress(folded, head)
    anew.execute("COMMIT")
    return folded


def _differences(moment: Ledger, anew: apsw.Connection) -> Iterator[Difference]:
    """Tables and indexes that are not made as they should be, then rows that are not as they should be."""
    query = "SELECT name, tbl_name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*'"
    wanted = {name: (table, sql) for name, table, sql in anew.execute(query)}
    others = "AND (tbl_name NOT IN ('events', 'head', 'cursors') OR type = 'trigger')"
    found = {
        name: (table, sql) for name, table, sql in moment.query(f"{query} {others}") if name not in GUARDS
    }
    for name in sorted(wanted.keys() | found.keys()):
        table, _ = wanted.get(name) or found[name]
        what = "it" if name == table else f"`{name}`"
        if name not in found:
            yield Difference(table=table, row="", problem=f"{what} is gone")
        elif name not in wanted:
            yield Difference(table=table, row="", problem=f"{what} is none of Planforge's")
        elif wanted[name] != found[name]:
            yield Difference(table=table, row="", problem=f"{what} is made in another way")
        elif name in NAMES:  # and not a view or an index
            yield from _rows(moment, anew, table)


def _rows(moment: Ledger, anew: apsw.Connection, table: str) -> Iterator[Difference]:
    described = list(anew.execute(f"PRAGMA table_info({table})"))
    columns = [name for _, name, *_ in described]
    # The key comes first, so that rows are found in its order and told apart by it.
    key = [name for _, name, _, _, _, place in sorted(described, key=lambda one: one[5]) if place] or columns
    rest = [name for name in columns if name not in key]
    chosen = f"SELECT {', '.join(key + rest)} FROM {table} ORDER BY {', '.join(key)}"  # noqa: S608
    for wanted, found in _pairs(anew.execute(chosen), moment.query(chosen), len(key)):
        row = " ".join(map(str, (wanted or found or ())[: len(key)]))
        if found is None:
            yield Difference(table=table, row=row, problem="is gone")
        elif wanted is None:
            yield Difference(table=table, row=row, problem="follows from no event")
        else:
            parts = zip(key + rest, wanted, found, strict=True)
            differing = [f"`{name}` {here!r}, not {there!r}" for name, there, here in parts if there != here]
            yield Difference(table=table, row=row, problem=f"has {', '.join(differing)}")


def _pairs(wanted: Iterable[Row], found: Iterable[Row], key: int) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows that differ, side by side; None where one side has no such row."""
    left, right = iter(wanted), iter(found)
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and _order(one[:key]) < _order(other[:key])):
            yield one, None
            one = next(left, None)
        elif one is None or _order(one[:key]) > _order(other[:key]):
            yield None, other
            other = next(right, None)
        else:
            if one != other:
                yield one, other
            one, other = next(left, None), next(right, None)


def _order(key: Row) -> tuple[Any, ...]:
    """As SQLite orders rows: nothing before something."""
    return tuple((value is not None, value) for value in key)
