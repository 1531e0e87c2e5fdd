"""Budgets: put aside before, counted while, settled after; nothing is granted that does not fit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from planforge.errors import BudgetGone, Conflict, InvalidInput, NotFound
from planforge.interfaces.cli.typed import text
from planforge.kernel import budgets
from planforge.kernel.budgets import (
    KINDS,
    MOST,
    account,
    accounts,
    allow,
    exhausted,
    reconcile,
    reserve,
    spend,
)
from planforge.kernel.events import Amounts, BudgetReconciled, BudgetReserved, BudgetSet, BudgetSpent, Event
from planforge.kernel.ledger import Ledger
from tries import tries

RUN, PLAN, STEP, ROLE = "run:run-001", "plan:plan-001", "step:plan-001/phase-1", "role:auditor"
NOTHING = Amounts(tokens=0, money=0, seconds=0, attempts=0)


def tokens(count: int | None) -> Amounts:
    return Amounts(tokens=count)


def standing(ledger: Ledger, scope: str = RUN) -> tuple[int | None, int | None, int | None, int]:
    """Put aside, spent, left, unknown: of tokens."""
    found = account(ledger, scope)
    return found.reserved.tokens, found.spent.tokens, found.left.tokens, found.unknown


def kinds(ledger: Ledger) -> list[str]:
    return [item.kind for item in ledger.stream(budgets.STREAM)]


def rows(ledger: Ledger) -> list[list[tuple[object, ...]]]:
    tables = ("budgets", "reservations")
    return [list(ledger.query(f"SELECT * FROM {name} ORDER BY 1, 2")) for name in tables]  # noqa: S608


# Reserve, spend, reconcile


def test_a_scope_that_nobody_used_has_spent_nothing_and_has_no_limit(ledger: Ledger) -> None:
    found = account(ledger, RUN)
    assert (found.limits, found.left, found.unknown) == (Amounts(), Amounts(), 0)
    assert (found.reserved, found.spent) == (NOTHING, NOTHING)
    assert accounts(ledger) == []


def test_what_is_reserved_is_put_aside_and_what_is_left_over_comes_back(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(1000), "A")
    reserve(ledger, "call-1", [RUN], tokens(400))
    assert standing(ledger) == (400, 0, 600, 0)
    reconcile(ledger, "call-1", tokens(150), "done")
    assert standing(ledger) == (0, 150, 850, 0)


def test_what_is_known_to_be_gone_is_spent_while_the_work_goes_on(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(1000), "A")
    reserve(ledger, "call-1", [RUN], tokens(400))
    spend(ledger, "call-1", tokens(100))
    assert standing(ledger) == (300, 100, 600, 0)
    spend(ledger, "call-1", tokens(250))
    assert standing(ledger) == (150, 250, 600, 0)


def test_what_goes_beyond_the_reservation_counts_at_once(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(1000), "A")
    reserve(ledger, "call-1", [RUN], tokens(400))
    spend(ledger, "call-1", tokens(900))
    assert standing(ledger) == (0, 900, 100, 0)
    with pytest.raises(BudgetGone):
        reserve(ledger, "call-2", [RUN], tokens(101))
    spend(ledger, "call-1", tokens(2000))
    assert standing(ledger) == (0, 2000, 0, 0)


def test_what_is_gone_does_not_come_back(ledger: Ledger) -> None:
    reserve(ledger, "call-1", [RUN], tokens(400))
    spend(ledger, "call-1", tokens(300))
    spend(ledger, "call-1", tokens(200))
    assert standing(ledger)[:2] == (100, 300)
    reconcile(ledger, "call-1", tokens(10), "it says")
    assert standing(ledger)[:2] == (0, 300)


@pytest.mark.parametrize(
    ("reserved", "known", "counted"),
    [(400, None, 400), (400, 100, 400), (400, 700, 700), (0, None, 0), (None, 30, 30)],
)
def test_usage_that_is_unknown_counts_as_its_reservation_or_as_what_is_known_if_that_is_more(
    ledger: Ledger, reserved: int | None, known: int | None, counted: int
) -> None:
    reserve(ledger, "call-1", [RUN], tokens(reserved))
    spend(ledger, "call-1", tokens(known))
    reconcile(ledger, "call-1", Amounts(), "it did not say")
    assert standing(ledger) == (0, counted, None, 1)


def test_a_kind_that_a_scope_limits_is_unknown_there_even_if_nobody_asked_for_it(ledger: Ledger) -> None:
    allow(ledger, RUN, Amounts(money=5), "A")
    reserve(ledger, "call-1", [RUN, PLAN], tokens(10))
    reconcile(ledger, "call-1", tokens(10), "done")
    assert (account(ledger, RUN).unknown, account(ledger, PLAN).unknown) == (1, 0)


def test_a_reservation_whose_owner_died_counts_in_full_until_somebody_reconciles_it(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(500), "A")
    reserve(ledger, "call-1", [RUN], tokens(400))
    with pytest.raises(BudgetGone):
        reserve(ledger, "call-2", [RUN], tokens(101))
    assert [found.reservation for found in budgets.unreconciled(ledger)] == ["call-1"]
    reconcile(ledger, "call-1", tokens(0), "it never began")
    reserve(ledger, "call-2", [RUN], tokens(500))


def test_all_four_kinds_are_counted_apart(ledger: Ledger) -> None:
    limits = Amounts(tokens=10, money=20, seconds=30, attempts=4)
    allow(ledger, RUN, limits, "A")
    reserve(ledger, "call-1", [RUN], Amounts(tokens=1, money=2, seconds=3, attempts=1))
    assert account(ledger, RUN).left == Amounts(tokens=9, money=18, seconds=27, attempts=3)
    reconcile(ledger, "call-1", Amounts(tokens=5, money=None, seconds=0, attempts=1), "done")
    found = account(ledger, RUN)
    assert (found.limits, found.reserved) == (limits, NOTHING)
    assert found.spent == Amounts(tokens=5, money=2, seconds=0, attempts=1)
    assert (found.left, found.unknown) == (Amounts(tokens=5, money=18, seconds=30, attempts=3), 1)


# Limits


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_kind_all_can_be_had_and_not_one_more(ledger: Ledger, kind: str) -> None:
    allow(ledger, RUN, Amounts(**{kind: 10}), "A")
    reserve(ledger, "call-1", [RUN], Amounts(**{kind: 9}))
    with pytest.raises(BudgetGone, match=kind):
        reserve(ledger, "call-2", [RUN], Amounts(**{kind: 2}))
    reserve(ledger, "call-3", [RUN], Amounts(**{kind: 1}))


def test_a_refusal_names_the_scope_the_kind_and_all_the_numbers(ledger: Ledger) -> None:
    allow(ledger, ROLE, Amounts(money=2_500_000), "A")
    reserve(ledger, "call-1", [ROLE], Amounts(money=1_000_000))
    reserve(ledger, "call-2", [ROLE], Amounts(money=1_000_001))
    spend(ledger, "call-2", Amounts(money=750_000))
    with pytest.raises(BudgetGone) as refused:
        reserve(ledger, "call-3", [ROLE], Amounts(money=600_000))
    words = "`role:auditor`: of $2.50 money $0.75 spent, $1.25 put aside, $0.60 asked for"
    assert refused.value.message == words
    assert text(refused.value.hint) == "allow `role:auditor` more money, or reconcile what is put aside"


@pytest.mark.parametrize("tight", [RUN, PLAN, STEP, ROLE])
def test_what_does_not_fit_into_one_scope_is_put_aside_in_none(ledger: Ledger, tight: str) -> None:
    scopes = [RUN, PLAN, STEP, ROLE]
    for scope in scopes:
        allow(ledger, scope, tokens(99 if scope == tight else 1000), "A")
    before = rows(ledger), ledger.head()
    with pytest.raises(BudgetGone, match=tight):
        reserve(ledger, "call-1", scopes, tokens(100))
    assert (rows(ledger), ledger.head()) == before
    reserve(ledger, "call-2", scopes, tokens(99))
    assert [standing(ledger, scope)[0] for scope in scopes] == [99] * 4


def test_a_scope_that_is_named_twice_counts_once(ledger: Ledger) -> None:
    reserve(ledger, "call-1", [RUN, PLAN, RUN], tokens(7))
    assert (standing(ledger, RUN)[0], standing(ledger, PLAN)[0]) == (7, 7)


def test_a_need_that_is_not_known_is_refused_only_where_nothing_is_left(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(10), "A")
    reserve(ledger, "call-1", [RUN], Amounts(attempts=1))
    spend(ledger, "call-1", tokens(9))
    reserve(ledger, "call-2", [RUN], Amounts(attempts=1))
    spend(ledger, "call-2", tokens(1))
    with pytest.raises(BudgetGone, match="of 10 tokens 10 spent, 0 put aside, unknown asked for"):
        reserve(ledger, "call-3", [RUN], Amounts(attempts=1))


def test_what_needs_none_of_a_kind_may_go_on_when_that_is_gone(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(10), "A")
    reserve(ledger, "call-1", [RUN], tokens(10))
    spend(ledger, "call-1", tokens(11))
    reserve(ledger, "call-2", [RUN], Amounts(tokens=0, attempts=1))
    assert account(ledger, RUN).reserved.attempts == 1


def test_more_may_be_allowed_and_less_and_what_was_spent_stays_spent(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(100), "A")
    reserve(ledger, "call-1", [RUN], tokens(100))
    allow(ledger, RUN, tokens(150), "A")
    reserve(ledger, "call-2", [RUN], tokens(50))
    allow(ledger, RUN, tokens(20), "A")
    assert standing(ledger) == (150, 0, 0, 0)
    allow(ledger, RUN, Amounts(), "A")
    reserve(ledger, "call-3", [RUN], tokens(MOST))


def test_limits_that_do_not_change_are_no_news(ledger: Ledger) -> None:
    for _ in range(2):
        allow(ledger, RUN, tokens(100), "A")
    assert kinds(ledger) == ["BudgetSet"]


def test_a_scope_is_exhausted_when_a_kind_that_it_limits_has_nothing_left(ledger: Ledger) -> None:
    allow(ledger, RUN, Amounts(tokens=10, attempts=2), "A")
    allow(ledger, PLAN, tokens(10), "A")
    reserve(ledger, "call-1", [RUN, PLAN, ROLE], Amounts(tokens=9, attempts=2))
    assert exhausted(ledger, [PLAN, ROLE]) == []
    spend(ledger, "call-1", tokens(12))
    assert exhausted(ledger, [RUN, PLAN, ROLE, RUN]) == [
        "`run:run-001` has no tokens left: of 10 tokens 12 spent, 0 put aside",
        "`run:run-001` has no attempts left: of 2 attempts 0 spent, 2 put aside",
        "`plan:plan-001` has no tokens left: of 10 tokens 12 spent, 0 put aside",
    ]


# Again


def test_the_same_reservation_after_a_crash_is_the_same_even_when_nothing_is_left(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(400), "A")
    first = reserve(ledger, "call-1", [RUN, PLAN], tokens(400))
    assert reserve(ledger, "call-1", [PLAN, RUN], tokens(400)) == first
    assert kinds(ledger) == ["BudgetSet", "BudgetReserved"]
    assert standing(ledger) == (400, 0, 0, 0)


@pytest.mark.parametrize(
    ("scopes", "amounts"), [([RUN], tokens(401)), ([RUN, PLAN], tokens(400)), ([RUN], Amounts(money=400))]
)
def test_another_reservation_of_the_same_name_is_refused(
    ledger: Ledger, scopes: list[str], amounts: Amounts
) -> None:
    reserve(ledger, "call-1", [RUN], tokens(400))
    with pytest.raises(Conflict, match="`call-1` is of 400 tokens, unknown money"):
        reserve(ledger, "call-1", scopes, amounts)
    assert standing(ledger)[0] == 400


def test_a_reservation_that_was_reconciled_is_not_taken_up_again(ledger: Ledger) -> None:
    reserve(ledger, "call-1", [RUN], tokens(400))
    reconcile(ledger, "call-1", tokens(5), "done")
    with pytest.raises(Conflict, match="reconciled already"):
        reserve(ledger, "call-1", [RUN], tokens(400))
    with pytest.raises(Conflict, match="reconciled already"):
        spend(ledger, "call-1", tokens(6))


def test_the_same_reconciliation_again_is_no_news_and_another_is_refused(ledger: Ledger) -> None:
    reserve(ledger, "call-1", [RUN], tokens(400))
    for reason in ("done", "done, says whoever took it up"):
        reconcile(ledger, "call-1", Amounts(tokens=5, seconds=3), reason)
    assert kinds(ledger) == ["BudgetReserved", "BudgetReconciled"]
    with pytest.raises(
        Conflict, match="with 5 tokens, unknown money, 3 seconds, unknown attempts, not with 6 "
    ):
        reconcile(ledger, "call-1", Amounts(tokens=6, seconds=3), "done")
    assert standing(ledger)[:2] == (0, 5)


def test_what_is_known_already_is_no_news(ledger: Ledger) -> None:
    reserve(ledger, "call-1", [RUN], tokens(400))
    for known in (0, 0, 7, 7, 5, None):
        spend(ledger, "call-1", tokens(known))
    assert kinds(ledger) == ["BudgetReserved", "BudgetSpent", "BudgetSpent"]


def test_the_order_of_reconciliation_does_not_matter_to_the_totals(tmp_path: Path) -> None:
    closings = {"call-1": tokens(3), "call-2": Amounts(), "call-3": tokens(900)}
    seen = set()
    for number, order in enumerate(permutations(closings)):
        ledger = Ledger.create(tmp_path / str(number))
        allow(ledger, RUN, tokens(1000), "A")
        for name in closings:
            reserve(ledger, name, [RUN], tokens(300))
        for name in order:
            reconcile(ledger, name, closings[name], "done")
        seen.add(standing(ledger))
        ledger.close()
    assert seen == {(0, 3 + 300 + 900, 0, 1)}


# Bad input


@pytest.mark.parametrize("scope", ["", "run", "run:", ":run-001", "team:a", "Run:run-001"])
def test_a_scope_of_no_known_sort_is_refused(ledger: Ledger, scope: str) -> None:
    with pytest.raises(InvalidInput, match="is no scope"):
        allow(ledger, scope, tokens(1), "A")
    with pytest.raises(InvalidInput, match="is no scope"):
        reserve(ledger, "call-1", [RUN, scope], tokens(1))
    assert ledger.head() == 0


def test_a_reservation_in_no_scope_would_count_nowhere_and_is_refused(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="needs a scope"):
        reserve(ledger, "call-1", [], tokens(1))


@pytest.mark.parametrize("amount", [-1, MOST + 1, 2**80, 1.5, "9", True])
def test_an_amount_that_is_none_is_refused(ledger: Ledger, amount: int) -> None:
    reserve(ledger, "call-1", [RUN], tokens(1))
    for ask in (
        lambda: allow(ledger, RUN, tokens(amount), "A"),
        lambda: reserve(ledger, "call-2", [RUN], tokens(amount)),
        lambda: spend(ledger, "call-1", tokens(amount)),
        lambda: reconcile(ledger, "call-1", tokens(amount), "done"),
    ):
        with pytest.raises(InvalidInput, match="is no amount of tokens"):
            ask()
    assert ledger.head() == 1


def test_a_reservation_that_was_never_made_cannot_be_spent_or_reconciled(ledger: Ledger) -> None:
    with pytest.raises(NotFound, match="no reservation `call-9`"):
        spend(ledger, "call-9", tokens(1))
    with pytest.raises(NotFound, match="no reservation `call-9`"):
        reconcile(ledger, "call-9", tokens(1), "done")


@pytest.mark.parametrize(
    "written",
    [
        [BudgetSpent(reservation="a", amounts=tokens(5))],
        [BudgetReconciled(reservation="a", spent=tokens(5), reason="")],
        [BudgetReserved(reservation="a", scopes=(RUN,), amounts=tokens(2**63 - 1))] * 2,
        [BudgetReserved(reservation=name, scopes=(RUN, RUN), amounts=tokens(2**63 - 1)) for name in "ab"],
        [
            BudgetSet(scope=RUN, limits=tokens(-(2**63)), actor=""),
            BudgetReserved(reservation="a", scopes=(RUN,), amounts=tokens(-(2**63))),
            BudgetSpent(reservation="a", amounts=tokens(2**63 - 1)),
            BudgetReconciled(reservation="a", spent=tokens(-(2**63)), reason=""),
            BudgetReconciled(reservation="a", spent=tokens(1), reason=""),
            BudgetSpent(reservation="a", amounts=tokens(1)),
        ],
    ],
)
def test_events_that_no_command_of_ours_writes_are_folded_all_the_same(
    ledger: Ledger, written: list[Event]
) -> None:
    ledger.append(budgets.STREAM, written, expected=0)
    before = rows(ledger)
    ledger.rebuild()
    assert rows(ledger) == before


def test_a_scope_that_an_event_names_twice_counts_once(ledger: Ledger) -> None:
    event = BudgetReserved(reservation="a", scopes=(RUN, PLAN, RUN), amounts=tokens(7))
    ledger.append(budgets.STREAM, [event], expected=0)
    assert standing(ledger)[0] == 7


# Many at once

PROGRAM = """
import sys
from pathlib import Path
from planforge.errors import BudgetGone
from planforge.kernel.budgets import reserve
from planforge.kernel.events import Amounts
from planforge.kernel.ledger import Ledger

ledger = Ledger.open(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
won = 0
for number in range(int(sys.argv[3])):
    try:
        reserve(ledger, f"{sys.argv[2]}-{number}", ["run:run-001", "role:auditor"], Amounts(tokens=7))
        won += 1
    except BudgetGone:
        pass
print(won, flush=True)
"""


def race(ledger: Ledger, processes: int, tries: int) -> list[int]:
    """How many reservations of 7 tokens each process got, all of them trying at once."""
    argv = [sys.executable, "-c", PROGRAM, str(ledger.directory)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    running = [
        subprocess.Popen([*argv, str(number), str(tries)], text=True, **pipes)  # type: ignore[call-overload]
        for number in range(processes)
    ]
    try:
        assert [process.stdout.readline() for process in running] == ["ready\n"] * processes
        for process in running:
            process.stdin.write("go\n")
            process.stdin.flush()
        return [int(process.communicate(timeout=60)[0]) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()


def test_of_two_processes_that_want_the_last_part_one_gets_it(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(13), "A")
    assert sorted(race(ledger, 2, 1)) == [0, 1]
    assert standing(ledger) == (7, 0, 6, 0)


def test_processes_that_reserve_at_once_get_all_there_is_and_no_more(ledger: Ledger) -> None:
    allow(ledger, RUN, tokens(7 * 25 + 6), "A")
    assert sum(race(ledger, 4, 10)) == 25
    assert standing(ledger, RUN)[:3] == (175, 0, 6)
    assert standing(ledger, ROLE)[:2] == (175, 0)
    assert list(ledger.faults()) == []


# Any history, against a model

SCOPES = (RUN, PLAN, ROLE)
amounts = st.builds(Amounts, tokens=st.none() | st.integers(0, 40), attempts=st.none() | st.integers(0, 3))
names = st.sampled_from([f"call-{number}" for number in range(8)])


class Model(RuleBasedStateMachine):
    """The same history told to a ledger, and kept as plain lists whose totals are worked out each time."""

    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.ledger = Ledger.create(self.directory)
        self.limits: dict[str, Amounts] = {scope: Amounts() for scope in SCOPES}
        self.reserved: dict[str, tuple[frozenset[str], Amounts]] = {}
        self.known: dict[str, dict[str, int]] = {}
        self.closed: dict[str, Amounts] = {}

    def teardown(self) -> None:
        self.ledger.close()
        shutil.rmtree(self.directory)

    def spent(self, scope: str, kind: str) -> int:
        return sum(self._spent(name, kind) for name in self._in(scope))

    def aside(self, scope: str, kind: str) -> int:
        names = [name for name in self._in(scope) if name not in self.closed]
        return sum(max(self._asked(name, kind) - self.known[name].get(kind, 0), 0) for name in names)

    def _in(self, scope: str) -> list[str]:
        return [name for name, (scopes, _) in self.reserved.items() if scope in scopes]

    def _asked(self, name: str, kind: str) -> int:
        return getattr(self.reserved[name][1], kind) or 0

    def _spent(self, name: str, kind: str) -> int:
        known = self.known[name].get(kind, 0)
        if name not in self.closed:
            return known
        told = getattr(self.closed[name], kind)
        return max(known, self._asked(name, kind) if told is None else told)

    def _fits(self, scopes: Iterable[str], asked: Amounts) -> bool:
        for scope in scopes:
            for kind in KINDS:
                limit, need = getattr(self.limits[scope], kind), getattr(asked, kind)
                used = self.spent(scope, kind) + self.aside(scope, kind)
                if limit is not None and need != 0 and used + (need or 1) > limit:
                    return False
        return True

    @rule(scope=st.sampled_from(SCOPES), limits=amounts)
    def allow(self, scope: str, limits: Amounts) -> None:
        allow(self.ledger, scope, limits, "A")
        self.limits[scope] = limits

    @rule(name=names, scopes=st.sets(st.sampled_from(SCOPES), min_size=1), asked=amounts)
    def reserve(self, name: str, scopes: set[str], asked: Amounts) -> None:
        before = self.ledger.head()
        if name in self.reserved:
            same = self.reserved[name] == (frozenset(scopes), asked) and name not in self.closed
            if same:
                reserve(self.ledger, name, scopes, asked)
            else:
                with pytest.raises(Conflict):
                    reserve(self.ledger, name, scopes, asked)
            assert self.ledger.head() == before
        elif self._fits(scopes, asked):
            reserve(self.ledger, name, scopes, asked)
            self.reserved[name], self.known[name] = (frozenset(scopes), asked), {}
            for scope in scopes:
                self._require_within_limits(scope, asked)
        else:
            with pytest.raises(BudgetGone):
                reserve(self.ledger, name, scopes, asked)
            assert self.ledger.head() == before

    def _require_within_limits(self, scope: str, asked: Amounts) -> None:
        found = account(self.ledger, scope)
        for kind in KINDS:
            limit, used = (
                getattr(found.limits, kind),
                getattr(found.spent, kind) + getattr(found.reserved, kind),
            )
            assert limit is None or getattr(asked, kind) == 0 or used <= limit

    @rule(name=names, gone=amounts)
    def spend(self, name: str, gone: Amounts) -> None:
        if name not in self.reserved or name in self.closed:
            with pytest.raises((NotFound, Conflict)):
                spend(self.ledger, name, gone)
            return
        spend(self.ledger, name, gone)
        for kind in KINDS:
            if (amount := getattr(gone, kind)) is not None:
                self.known[name][kind] = max(amount, self.known[name].get(kind, 0))

    @rule(name=names, gone=amounts)
    def reconcile(self, name: str, gone: Amounts) -> None:
        if name not in self.reserved or self.closed.get(name, gone) != gone:
            with pytest.raises((NotFound, Conflict)):
                reconcile(self.ledger, name, gone, "done")
            return
        reconcile(self.ledger, name, gone, "done")
        self.closed[name] = gone

    @rule()
    def rebuild(self) -> None:
        before = rows(self.ledger)
        self.ledger.rebuild()
        assert rows(self.ledger) == before

    @invariant()
    def the_accounts_are_those_of_the_model(self) -> None:
        for scope in SCOPES:
            found = account(self.ledger, scope)
            assert found.limits == self.limits[scope]
            for kind in KINDS:
                spent, aside = self.spent(scope, kind), self.aside(scope, kind)
                assert (getattr(found.spent, kind), getattr(found.reserved, kind)) == (spent, aside)
                limit = getattr(self.limits[scope], kind)
                left = None if limit is None else max(limit - spent - aside, 0)
                assert getattr(found.left, kind) == left
        open_ones = [found.reservation for found in budgets.unreconciled(self.ledger)]
        assert open_ones == sorted(set(self.reserved) - set(self.closed))


TestAnyHistory = Model.TestCase
TestAnyHistory.settings = settings(max_examples=tries(30), stateful_step_count=25, deadline=None)
