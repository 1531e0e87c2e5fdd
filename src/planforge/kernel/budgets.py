"""
What work may cost, put aside before it begins.

Four kinds (tokens, money, seconds, attempts) in four sorts of scope (`run:run-001`,
`plan:plan-001`, `step:plan-001/phase-1`, `role:auditor`). Before a call its cost is
reserved in every scope that it belongs to, in all of them or in none; while it goes
on, what is known to be gone is counted; afterwards the reservation is reconciled
with what was spent. What nobody could tell counts as what was reserved, and so does
a reservation whose owner died. Whoever asks for more than is left is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import asdict

from planforge.errors import BudgetGone, Conflict, InvalidInput, NotFound
from planforge.kernel.events import (
    Amounts,
    BudgetReconciled,
    BudgetReserved,
    BudgetSet,
    BudgetSpent,
    Event,
)
from planforge.kernel.ledger import Ledger, Write
from planforge.kernel.wording import money

STREAM = "budgets"
SORTS = ("run", "plan", "step", "role")
KINDS = Amounts.__struct_fields__
MOST = 10**15
"""More than this of anything is a mistake, and thousands of such mistakes still add up in 64 bits."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Where a scope stands."""

    scope: str
    limits: Amounts
    """None is no limit."""
    reserved: Amounts
    """Put aside by work that is under way, or that died; less what of it is known to be gone."""
    spent: Amounts
    left: Amounts
    """None where there is no limit; never below 0, also where more was spent than was allowed."""
    unknown: int
    """How many amounts nobody could tell; each is in `spent` as what was reserved for it."""


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """What one call put aside, and what became of it."""

    reservation: str
    scopes: tuple[str, ...]
    amounts: Amounts
    spent: Amounts
    """What is known to be gone; None where nothing was said of it."""
    reconciled: Amounts | None
    """The final amounts; None while it is open."""


class _Standing(msgspec.Struct, frozen=True):
    """One kind in one scope."""

    limit: int | None
    reserved: int
    spent: int
    unknown: int

    @property
    def used(self) -> int:
        return self.reserved + self.spent


# Commands


def allow(ledger: Ledger, scope: str, limits: Amounts, actor: str) -> None:
    """Say what a scope may spend, all that it has spent already included; None is no limit."""
    _require_scopes([scope])
    _require_amounts(limits)

    def decide() -> Iterable[Event]:
        if account(ledger, scope).limits != limits:
            yield BudgetSet(scope=scope, limits=limits, actor=actor)

    _settle(ledger, decide)


def reserve(ledger: Ledger, reservation: str, scopes: Iterable[str], amounts: Amounts) -> Reservation:
    """
    Put `amounts` aside in all `scopes`, or raise `BudgetGone` and put nothing aside.

    None of a kind means that the need is not known: nothing is put aside, and it is refused only where
    nothing is left. The same reservation again, by whoever takes the work up after a crash, is the same one.
    """
    wanted = tuple(dict.fromkeys(scopes))
    _require_scopes(wanted)
    _require_amounts(amounts)

    def decide() -> Iterable[Event]:
        known = find(ledger, reservation)
        if known is not None:
            _require_same(known, wanted, amounts)
            return
        for scope in wanted:
            _require_room(scope, _standings(ledger, scope), amounts)
        yield BudgetReserved(reservation=reservation, scopes=wanted, amounts=amounts)

    _settle(ledger, decide)
    return _get(ledger, reservation)


def spend(ledger: Ledger, reservation: str, amounts: Amounts) -> None:
    """
    Say what is known to be gone so far, in all. It never becomes less; None adds nothing to what is known.

    More than was reserved counts at once, although nobody was asked: it is gone.
    """
    _require_amounts(amounts)

    def decide() -> Iterable[Event]:
        known = _get(ledger, reservation)
        if known.reconciled is not None:
            raise Conflict(
                f"reservation `{reservation}` was reconciled already; nothing more can be spent on it"
            )
        before = asdict(known.spent)
        if any(_is_news(amount, before[kind]) for kind, amount in asdict(amounts).items()):
            yield BudgetSpent(reservation=reservation, amounts=amounts)

    _settle(ledger, decide)


def reconcile(ledger: Ledger, reservation: str, spent: Amounts, reason: str) -> None:
    """Close a reservation with what was spent; None is unknown and counts as what was reserved."""
    _require_amounts(spent)

    def decide() -> Iterable[Event]:
        known = _get(ledger, reservation)
        if known.reconciled is None:
            yield BudgetReconciled(reservation=reservation, spent=spent, reason=reason)
        elif known.reconciled != spent:
            raise Conflict(
                f"reservation `{reservation}` was reconciled already, with {told(known.reconciled)}, "
                f"not with {told(spent)}"
            )

    _settle(ledger, decide)


# Questions


def account(ledger: Ledger, scope: str) -> Account:
    """Where one scope stands; one that nobody has used has spent nothing and has no limit."""
    standings = _standings(ledger, scope)
    return Account(
        scope=scope,
        limits=_amounts(standings, lambda standing: standing.limit),
        reserved=_amounts(standings, lambda standing: standing.reserved),
        spent=_amounts(standings, lambda standing: standing.spent),
        left=_amounts(standings, _left),
        unknown=sum(standing.unknown for standing in standings.values()),
    )


def accounts(ledger: Ledger) -> list[Account]:
    """Where every scope stands, by name."""
    scopes = [scope for (scope,) in ledger.query("SELECT DISTINCT scope FROM budgets ORDER BY scope")]
    return [account(ledger, scope) for scope in scopes]


def exhausted(ledger: Ledger, scopes: Iterable[str]) -> list[str]:
    """Why nothing more can be done in these scopes, a line for each limit with nothing left."""
    return [
        f"`{scope}` has no {kind} left: {_standing_in_words(kind, standing)}"
        for scope in dict.fromkeys(scopes)
        for kind, standing in _standings(ledger, scope).items()
        if standing.limit is not None and standing.used >= standing.limit
    ]


def find(ledger: Ledger, reservation: str) -> Reservation | None:
    """One reservation, if there is such a one."""
    return next(iter(ledger.select(Reservation, "reservations WHERE reservation = ?", reservation)), None)


def unreconciled(ledger: Ledger) -> list[Reservation]:
    """The reservations that are open: work that is under way, or whose owner died."""
    return ledger.select(Reservation, "reservations WHERE reconciled IS NULL ORDER BY reservation")


def told(amounts: Amounts) -> str:
    """Amounts in words: `150 tokens, 1.50 money, unknown seconds`."""
    return ", ".join(f"{_in_words(kind, amount)} {kind}" for kind, amount in asdict(amounts).items())


def _settle(ledger: Ledger, decide: Callable[[], Iterable[Event]]) -> None:
    def writes() -> Iterable[Write]:
        events = list(decide())
        return [Write(STREAM, None, events)] if events else []

    ledger.transact(writes)


def _get(ledger: Ledger, reservation: str) -> Reservation:
    found = find(ledger, reservation)
    if found is None:
        raise NotFound(f"there is no reservation `{reservation}`")
    return found


def _standings(ledger: Ledger, scope: str) -> dict[str, _Standing]:
    standings = {kind: _Standing(None, 0, 0, 0) for kind in KINDS}
    rows = ledger.query("SELECT kind, allowed, reserved, spent, unknown FROM budgets WHERE scope = ?", scope)
    for kind, *row in rows:
        standings[kind] = _Standing(*row)
    return standings


def _amounts(standings: dict[str, _Standing], of: Callable[[_Standing], int | None]) -> Amounts:
    return Amounts(**{kind: of(standing) for kind, standing in standings.items()})


def _left(standing: _Standing) -> int | None:
    return None if standing.limit is None else max(standing.limit - standing.used, 0)


def _require_room(scope: str, standings: dict[str, _Standing], amounts: Amounts) -> None:
    for kind, asked in asdict(amounts).items():
        standing, limit = standings[kind], standings[kind].limit
        if limit is None or asked == 0:
            continue
        if standing.used + (1 if asked is None else asked) > limit:
            raise BudgetGone(
                f"`{scope}`: {_standing_in_words(kind, standing)}, {_in_words(kind, asked)} asked for",
                f"allow `{scope}` more {kind}, or reconcile what is put aside",
            )


def _standing_in_words(kind: str, standing: _Standing) -> str:
    limit, spent, aside = standing.limit, standing.spent, standing.reserved
    return (
        f"of {_in_words(kind, limit)} {kind} {_in_words(kind, spent)} spent, "
        f"{_in_words(kind, aside)} put aside"
    )


def _in_words(kind: str, amount: int | None) -> str:
    if amount is None:
        return "unknown"
    if kind != "money":
        return str(amount)
    return money(amount)


def _require_same(known: Reservation, scopes: tuple[str, ...], amounts: Amounts) -> None:
    name = known.reservation
    if known.reconciled is not None:
        raise Conflict(
            f"reservation `{name}` was reconciled already, with {told(known.reconciled)}",
            "reserve under another name",
        )
    if set(known.scopes) != set(scopes) or known.amounts != amounts:
        raise Conflict(
            f"reservation `{name}` is of {told(known.amounts)} in {_listed(known.scopes)}, "
            f"not of {told(amounts)} in {_listed(scopes)}"
        )


def _require_scopes(scopes: Iterable[str]) -> None:
    known = list(scopes)
    if not known:
        raise InvalidInput("a reservation needs a scope, such as `run:run-001`")
    for scope in known:
        sort, _, name = scope.partition(":")
        if sort not in SORTS or not name:
            sorts = ", ".join(f"`{sort}:…`" for sort in SORTS)
            raise InvalidInput(f"`{scope}` is no scope of a budget: there are {sorts}")


def _require_amounts(amounts: Amounts) -> None:
    for kind, amount in asdict(amounts).items():
        if amount is not None and (type(amount) is not int or not 0 <= amount <= MOST):
            raise InvalidInput(f"`{amount}` is no amount of {kind}: a whole number from 0 to {MOST}")


def _is_news(amount: int | None, known: int | None) -> bool:
    return amount is not None and (known is None or amount > known)


def _listed(scopes: Iterable[str]) -> str:
    return ", ".join(f"`{scope}`" for scope in sorted(scopes))
