"""
What was allowed, put aside and spent, scope by scope and kind by kind.

An open reservation counts as what it put aside, or as what is known to be gone if
that is more; one that nobody closes counts so for ever. Once it is reconciled it
counts as what was spent, and what is unknown then counts as before.
"""

from __future__ import annotations

import apsw
import msgspec

from planforge.kernel import events
from planforge.kernel.events import Amounts, Recorded
from planforge.kernel.projections.folding import Folds, text_of

TABLES = """
CREATE TABLE budgets(
  scope TEXT NOT NULL, kind TEXT NOT NULL, allowed INTEGER, reserved INTEGER NOT NULL,
  spent INTEGER NOT NULL, unknown INTEGER NOT NULL, PRIMARY KEY(scope, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations(
  reservation TEXT PRIMARY KEY, scopes TEXT NOT NULL, amounts TEXT NOT NULL, spent TEXT NOT NULL,
  reconciled TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_by_state ON reservations(reservation) WHERE reconciled IS NULL;
"""

NAMES = ("budgets", "reservations")

KINDS = Amounts.__struct_fields__

MOST = 2**63 - 1
"""What a table can hold. Nobody spends so much; a total that would be more stays here."""

folds = Folds()


class _Reservation(msgspec.Struct, frozen=True, kw_only=True):
    scopes: tuple[str, ...]
    amounts: Amounts
    spent: Amounts
    open: bool


@folds.of(events.BudgetSet)
def _(db: apsw.Connection, event: events.BudgetSet, _: Recorded) -> None:
    for kind in KINDS:
        insert = "INSERT INTO budgets VALUES (?, ?, ?, 0, 0, 0)"
        update = "ON CONFLICT(scope, kind) DO UPDATE SET allowed = excluded.allowed"
        db.execute(f"{insert} {update}", (event.scope, kind, getattr(event.limits, kind)))


@folds.of(events.BudgetReserved)
def _(db: apsw.Connection, event: events.BudgetReserved, _: Recorded) -> None:
    if _find(db, event.reservation) is not None:
        return  # the first one counts; `budgets.reserve` makes no second
    scopes = tuple(dict.fromkeys(event.scopes))
    values = (event.reservation, text_of(scopes), text_of(event.amounts), text_of(Amounts()))
    db.execute("INSERT INTO reservations VALUES (?, ?, ?, ?, NULL)", values)
    for scope in scopes:
        for kind in KINDS:
            _add(db, scope, kind, reserved=getattr(event.amounts, kind) or 0)


@folds.of(events.BudgetSpent)
def _(db: apsw.Connection, event: events.BudgetSpent, _: Recorded) -> None:
    found = _find(db, event.reservation)
    if found is None or not found.open:
        return
    known = {kind: _larger(getattr(found.spent, kind), getattr(event.amounts, kind)) for kind in KINDS}
    statement = "UPDATE reservations SET spent = ? WHERE reservation = ?"
    db.execute(statement, (text_of(Amounts(**known)), event.reservation))
    for kind in KINDS:
        aside, before, after = _of(found.amounts, kind), _of(found.spent, kind), known[kind] or 0
        freed = max(aside - after, 0) - max(aside - before, 0)
        for scope in found.scopes:
            _add(db, scope, kind, reserved=freed, spent=after - before)


@folds.of(events.BudgetReconciled)
def _(db: apsw.Connection, event: events.BudgetReconciled, _: Recorded) -> None:
    found = _find(db, event.reservation)
    if found is None or not found.open:
        return
    statement = "UPDATE reservations SET reconciled = ? WHERE reservation = ?"
    db.execute(statement, (text_of(event.spent), event.reservation))
    for kind in KINDS:
        aside, before, told = _of(found.amounts, kind), _of(found.spent, kind), getattr(event.spent, kind)
        final = max(before, aside if told is None else told)
        for scope in found.scopes:
            _add(
                db,
                scope,
                kind,
                reserved=-max(aside - before, 0),
                spent=final - before,
                unknown=told is None and _matters(db, found, scope, kind),
            )


def _matters(db: apsw.Connection, found: _Reservation, scope: str, kind: str) -> bool:
    """Whether it is worth saying that this was not told: somebody asked for it, counted it or limits it."""
    if getattr(found.amounts, kind) is not None or getattr(found.spent, kind) is not None:
        return True
    statement = "SELECT 1 FROM budgets WHERE scope = ? AND kind = ? AND allowed IS NOT NULL"
    return any(True for _ in db.execute(statement, (scope, kind)))


def _find(db: apsw.Connection, reservation: str) -> _Reservation | None:
    statement = "SELECT scopes, amounts, spent, reconciled FROM reservations WHERE reservation = ?"
    for scopes, amounts, spent, reconciled in db.execute(statement, (reservation,)):
        return _Reservation(
            scopes=msgspec.json.decode(scopes, type=tuple[str, ...]),
            amounts=msgspec.json.decode(amounts, type=Amounts),
            spent=msgspec.json.decode(spent, type=Amounts),
            open=reconciled is None,
        )
    return None


def _add(
    db: apsw.Connection, scope: str, kind: str, *, reserved: int = 0, spent: int = 0, unknown: bool = False
) -> None:
    row = (None, 0, 0, 0)
    statement = "SELECT allowed, reserved, spent, unknown FROM budgets WHERE scope = ? AND kind = ?"
    for found in db.execute(statement, (scope, kind)):
        row = found
    after = (_within(row[1] + reserved), _within(row[2] + spent), row[3] + unknown)
    db.execute("REPLACE INTO budgets VALUES (?, ?, ?, ?, ?, ?)", (scope, kind, row[0], *after))


def _within(number: int) -> int:
    return max(-MOST, min(number, MOST))


def _of(amounts: Amounts, kind: str) -> int:
    return getattr(amounts, kind) or 0


def _larger(one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return max(known) if known else None
