"""What a run may cost: put aside before an agent is asked, and settled however the call ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from planforge.app.agents.budgets import Spending
from planforge.app.project import Project
from planforge.app.settings import read
from planforge.errors import AgentFailed, BudgetGone, InvalidInput
from planforge.interfaces.cli.typed import text
from planforge.kernel import budgets
from planforge.kernel.budgets import Account, accounts
from planforge.kernel.driver import Call
from planforge.kernel.effects import Access, AgentAnswer, RunAgent, Usage
from planforge.kernel.events import Amounts
from planforge.kernel.tokens import TokenState
from repositories import repository

RESERVES = "reserve_tokens = 1000\nreserve_minutes = 1\n"


def project(place: Path, text: str = "") -> Project:
    root = repository(place)
    (root / "planforge.toml").write_text(f"[budget]\n{RESERVES}{text}")
    return Project.create(root)


def again(place: Project, text: str) -> Project:
    """The same project with other settings, as the next process finds it."""
    (place.root / "planforge.toml").write_text(f"[budget]\n{RESERVES}{text}")
    return Project(place.root)


def asking(role: str = "developer", turn: int = 1) -> RunAgent:
    access = Access.WRITE if role == "developer" else Access.READ
    return RunAgent(role=role, access=access, worktree="phase-1-2", base="b", prompt="p", turn=turn)


def call(key: str = "/3") -> Call:
    return Call(run="run-001", key=key, intended_at="2026-01-02T03:04:05+00:00", resumed=False)


def answer(
    tokens: int | None = 100, money: int | None = None, context: TokenState | None = None
) -> AgentAnswer:
    return AgentAnswer(
        agent="a",
        text="done",
        stop_reason="end_turn",
        tool_calls=0,
        usage=Usage(input_tokens=tokens - 10, output_tokens=10) if tokens is not None else None,
        context=context,
        money=money,
    )


def spend(place: Project, found: AgentAnswer | None, effect: RunAgent | None = None, key: str = "/3") -> None:
    """One call from beginning to end; without an answer it fails."""

    async def story() -> None:
        async with Spending(place, "run-001", "plan-001").on(effect or asking(), call(key)) as bill:
            if found is None:
                raise AgentFailed("no")
            bill.settle(found)

    asyncio.run(story())


def account(place: Project, scope: str = "run:run-001") -> Account:
    return budgets.account(place.ledger, scope)


def test_a_call_is_charged_to_run_plan_role_and_step(tmp_path: Path) -> None:
    place = project(tmp_path)
    spend(place, answer(tokens=700))
    scopes = ["plan:plan-001", "role:run-001/developer", "run:run-001", "step:plan-001/phase-1"]
    assert [found.scope for found in accounts(place.ledger)] == scopes
    assert {(found.spent.tokens, found.reserved.tokens) for found in accounts(place.ledger)} == {(700, 0)}


def test_what_an_agent_does_not_report_costs_what_was_put_aside(tmp_path: Path) -> None:
    place = project(tmp_path)
    spend(place, answer(tokens=None))
    assert (account(place).spent.tokens, account(place).unknown) == (1000, 1)


def test_a_call_that_fails_costs_what_was_put_aside(tmp_path: Path) -> None:
    place = project(tmp_path)
    with pytest.raises(AgentFailed):
        spend(place, None)
    assert account(place).spent.tokens == 1000
    assert budgets.unreconciled(place.ledger) == []


def test_an_agent_that_handed_over_costs_at_least_what_was_in_its_context(tmp_path: Path) -> None:
    place = project(tmp_path)
    full = TokenState(used=100_000, threshold=100_000, estimated=False)
    spend(place, answer(tokens=None, context=full))
    assert account(place).spent.tokens == 100_000


def test_money_is_what_the_agent_says_or_what_was_put_aside(tmp_path: Path) -> None:
    place = project(tmp_path, "reserve_money = 0.5\n[budget.run]\nmoney = 2.0\n")
    spend(place, answer(money=120_000), key="/1")
    assert account(place).spent.money == 120_000
    spend(place, answer(), key="/2")
    assert account(place).spent.money == 620_000
    assert account(place).left.money == 1_380_000


def test_the_call_of_a_process_that_died_stays_counted_and_the_next_try_comes_on_top(tmp_path: Path) -> None:
    place = project(tmp_path)
    amounts = Amounts(tokens=1000, seconds=60, attempts=1)
    budgets.reserve(place.ledger, "run-001/3", ["run:run-001"], amounts)  # and it never came back
    assert (account(place).reserved.tokens, account(place).spent.tokens) == (1000, 0)
    spend(place, answer(tokens=300))
    assert (account(place).reserved.tokens, account(place).spent.tokens) == (1000, 300)
    assert [found.reservation for found in budgets.unreconciled(place.ledger)] == ["run-001/3"]


@pytest.mark.parametrize(
    ("limit", "setting"),
    [
        ("[budget.run]\ntokens = 1500\n", "`budget.run.tokens`"),
        ("[budget.plan]\ntokens = 1500\n", "`budget.plan.tokens`"),
        ("[budget.step]\nattempts = 1\n", "`budget.step.attempts`"),
        ("[budget.roles.developer]\nminutes = 1\n", "`budget.roles.developer.minutes`"),
        ("reserve_money = 0.9\n[budget.run]\nmoney = 1.5\n", "`budget.run.money`"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_and_the_way_on_is_named(
    tmp_path: Path, limit: str, setting: str
) -> None:
    place = project(tmp_path, limit)
    spend(place, answer(tokens=600), key="/1")
    with pytest.raises(BudgetGone) as refused:
        spend(place, answer(), key="/2")
    assert (
        text(refused.value.hint)
        == f"raise {setting} in `planforge.toml`, then run `planforge resume run-001`"
    )
    assert refused.value.message.startswith("the budget is used up: `")
    assert budgets.unreconciled(place.ledger) == []

    place = again(place, limit.replace("1.5", "9").replace("1500", "9000").replace("= 1\n", "= 9\n"))
    spend(place, answer(), key="/2")


def test_a_role_without_a_limit_is_not_held_back_by_that_of_another(tmp_path: Path) -> None:
    place = project(tmp_path, "[budget.roles.developer]\ntokens = 1000\n")
    spend(place, answer(tokens=600), key="/1")
    spend(place, answer(tokens=600), asking("auditor"), key="/2")
    with pytest.raises(BudgetGone, match="role:run-001/developer"):
        spend(place, answer(), key="/3")


def test_going_on_after_a_handover_is_no_attempt_of_its_own(tmp_path: Path) -> None:
    place = project(tmp_path, "[budget.step]\nattempts = 1\n")
    for turn in (1, 2, 3):
        spend(place, answer(), asking(turn=turn), key=f"/{turn}")
    assert account(place, "step:plan-001/phase-1").spent.attempts == 1
    with pytest.raises(BudgetGone, match="of 1 attempts 1 spent"):
        spend(place, answer(), asking(turn=0), key="/4")


def test_who_reads_makes_no_attempt(tmp_path: Path) -> None:
    place = project(tmp_path, "[budget.run]\nattempts = 0\n")
    spend(place, answer(), asking("auditor"))
    with pytest.raises(BudgetGone):
        spend(place, answer(), key="/2")


def test_a_call_waits_for_the_runs_other_calls_before_it_is_refused(tmp_path: Path) -> None:
    place = project(tmp_path, "[budget.run]\ntokens = 1500\n")

    async def story() -> list[str]:
        spending, order = Spending(place, "run-001", "plan-001"), list[str]()

        async def work(key: str, tokens: int) -> None:
            async with spending.on(asking(), call(key)) as bill:
                order.append(f"{key} begins")
                await asyncio.sleep(0)
                order.append(f"{key} ends")
                bill.settle(answer(tokens=tokens))

        async with asyncio.TaskGroup() as group:
            group.create_task(work("/1", 200))
            group.create_task(work("/2", 200))
        return order

    assert asyncio.run(story()) == ["/1 begins", "/1 ends", "/2 begins", "/2 ends"]
    assert account(place).spent.tokens == 400


def test_a_limit_that_is_gone_from_the_settings_is_lifted(tmp_path: Path) -> None:
    place = project(tmp_path, "[budget.run]\ntokens = 1000\n")
    spend(place, answer(tokens=600), key="/1")
    place = again(place, "")
    spend(place, answer(tokens=600), key="/2")
    assert account(place).limits == Amounts()


def test_a_limit_that_somebody_else_set_is_not_lifted(tmp_path: Path) -> None:
    place = project(tmp_path)
    budgets.allow(place.ledger, "run:run-001", Amounts(tokens=500), "ada")
    with pytest.raises(BudgetGone, match="of 500 tokens") as refused:
        spend(place, answer())
    assert "allow `run:run-001` more tokens" in text(refused.value.hint)


# Settings


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[budget.run]\ntokens = -1\n", "budget.run.tokens"),
        ("[budget.roles.auditor]\nmoney = -0.5\n", "budget.roles.auditor.money"),
        ("[budget.plan]\nminutes = nan\n", "budget.plan.minutes"),
        ("[budget.step]\nminutes = inf\n", "budget.step.minutes"),
        ("[budget]\nreserve_tokens = -5\n", "budget.reserve_tokens"),
        ("[run]\nhandoffs = -1\n", "run.handoffs"),
        ("[run]\nlease_seconds = 0\n", "run.lease_seconds"),
        ("[run]\nlease_seconds = 100000000000000000\n", "run.lease_seconds"),
        ("[run]\nlease_patience = -1\n", "run.lease_patience"),
        ('[agents.profiles.mine]\ncommand = ["x"]\nhandoff_tokens = -1\n', "profiles.mine.handoff_tokens"),
        ("[budget.run]\nmoney = 5.0\n", "budget.reserve_money"),
        ("[budget.run]\ntoken = 5\n", "token"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "planforge.toml").write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path)
    assert name in refused.value.message
    assert "\n" not in refused.value.message
