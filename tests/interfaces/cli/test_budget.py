"""Budgets in runs of the real program: a run that would go over waits, and goes on when it may."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from planforge.kernel import leases
from planforge.kernel.events import BudgetReconciled, BudgetReserved, PatchApplied, RunParked
from programs import document, planforge
from rehearsals import Rehearsal, eventually
from repositories import git
from workshops import workshop


def account(plan: Rehearsal, scope: str) -> dict[str, Any]:
    (found,) = [item for item in document("budget", cwd=plan.root) if item["scope"] == scope]
    assert isinstance(found, dict)
    return found


@pytest.mark.dear(but="tokens")
@pytest.mark.parametrize(
    ("limited", "raised", "said", "setting"),
    [
        (
            "[budget]\nreserve_tokens = 4000\n[budget.run]\ntokens = 9000\n",
            "[budget]\nreserve_tokens = 4000\n[budget.run]\ntokens = 90000\n",
            "`run:run-002`: of 9000 tokens 7980 spent, 0 put aside, 4000 asked for",
            "`budget.run.tokens`",
        ),
        (
            "[budget.run]\nattempts = 1\n",
            "[budget.run]\nattempts = 9\n",
            "`run:run-002`: of 1 attempts 1 spent, 0 put aside, 1 asked for",
            "`budget.run.attempts`",
        ),
        (
            "[budget]\nreserve_money = 1\n[budget.plan]\nmoney = 1.5\n",
            "",
            "`plan:plan-001`: of $1.50 money $1.00 spent, $0.00 put aside, $1.00 asked for",
            "`budget.plan.money`",
        ),
    ],
    ids=["tokens", "attempts", "money"],
)
def test_a_run_whose_budget_is_used_up_waits_and_goes_on_when_it_may_spend_more(
    plan: Rehearsal, limited: str, raised: str, said: str, setting: str
) -> None:
    plan.settings(limited)

    process = planforge("plan", "run", "1", cwd=plan.root)

    assert process.returncode == 6, process.stderr
    assert f"error: the budget is used up: {said}\n" in process.stderr
    assert f"raise {setting} in `planforge.toml`, then run `planforge resume run-002`" in process.stderr
    status = document("status", cwd=plan.root)
    assert [run["status"] for run in status["runs"]] == ["done", "waiting"]
    assert said in status["runs"][1]["reason"]
    assert status["next"][0] == "planforge resume run-002"
    (parked,) = plan.events(RunParked)
    assert said in parked.reason
    assert leases.held(plan.ledger) == []
    landed = len(plan.events(PatchApplied))

    assert planforge("resume", "run-002", cwd=plan.root).returncode == 6  # nothing has changed
    assert len(plan.events(PatchApplied)) == landed

    plan.settings(raised)
    resumed = planforge("resume", "run-002", cwd=plan.root)
    assert resumed.returncode == 0, resumed.stderr
    assert git(plan.root, "rev-list", "--count", "HEAD..planforge/plan-001") == "2"
    assert [event.attempt for event in plan.events(PatchApplied)] == [2, 1]


@pytest.mark.dear
def test_an_agent_that_was_killed_with_its_driver_stays_on_the_account(
    plan: Rehearsal, running: list[subprocess.Popen[str]]
) -> None:
    plan.settings("[budget]\nreserve_tokens = 4000\nreserve_minutes = 2\n")
    plan.scene("Step: phase-1", do=[{"hang": True}])
    process = plan.start("plan", "run", "1")
    running.append(process)
    eventually(lambda: len(plan.events(BudgetReserved)) > len(plan.events(BudgetReconciled)))
    process.kill()
    process.communicate()
    found = account(plan, "run:run-002")
    assert (found["reserved"]["tokens"], found["reserved"]["seconds"]) == (4000, 120)

    plan.as_it_was()
    assert planforge("resume", cwd=plan.root).returncode == 0
    found = account(plan, "run:run-002")
    assert found["reserved"]["tokens"] == 4000
    assert found["spent"]["tokens"] == 3720 + 4260 + 3530 + 4095
    assert (found["reserved"]["attempts"], found["spent"]["attempts"]) == (1, 3)


@pytest.mark.dear
def test_the_accounts_are_shown_with_limits_and_what_is_left(plan: Rehearsal) -> None:
    plan.settings("[budget]\nreserve_money = 0.25\n[budget.run]\ntokens = 200000\nmoney = 5.0\n")
    assert planforge("plan", "run", "1", cwd=plan.root).returncode == 0
    found = account(plan, "run:run-002")
    assert found["limits"] == {"tokens": 200000, "money": 5000000, "seconds": None, "attempts": None}
    assert found["spent"]["tokens"] + found["left"]["tokens"] == 200000
    assert found["left"]["money"] == 4000000
    assert found["unknown"] == 4  # no rehearsal agent says what it costs

    lines = planforge("budget", cwd=plan.root).stdout.splitlines()
    assert lines[0].split() == ["scope", "kind", "limit", "spent", "reserved", "left", "unknown"]
    (tokens,) = [line.split() for line in lines if line.startswith("run:run-002")]
    assert tokens == ["run:run-002", "tokens", "200000", "15605", "0", "184395", "4"]
    assert ["money", "$5.00", "$1.00", "$0.00", "$4.00"] in [line.split() for line in lines]
    log = planforge("log", "--stream", "budgets", "-n", "0", cwd=plan.root).stdout
    assert "run:run-002 may spend 200000 tokens, $5.00" in log


def test_a_project_that_has_spent_nothing_says_so(tmp_path: Path) -> None:
    assert planforge("budget", cwd=workshop(tmp_path)).stdout == "nothing spent yet\n"


def test_a_budget_that_makes_no_sense_is_refused_before_anything_begins(plan: Rehearsal) -> None:
    events = document("status", cwd=plan.root)["events"]
    plan.settings("[budget.run]\ntokens = -1\n")
    process = planforge("plan", "run", "1", cwd=plan.root)
    assert process.returncode == 2
    assert "`budget.run.tokens` must be at least 0, not -1" in process.stderr
    assert document("status", cwd=plan.root)["events"] == events
