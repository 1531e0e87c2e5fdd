"""One screen that fits a small terminal, folds what does not, and says what is unknown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from planforge.actions import Action
from planforge.app.items.plans import PlanRow, StepRow
from planforge.app.overview import Cost, Overview, PlanStatus, Running, Waiting, overview
from planforge.app.project import Project
from planforge.app.runs import RunRow
from planforge.interfaces.cli.status_page import age, cost, page
from planforge.kernel import budgets
from planforge.kernel.events import Amounts, RunStarted
from planforge.kernel.locks import held
from planforge.kernel.payloads import pack
from texts import forged

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def ago(**spans: int) -> str:
    return (NOW - timedelta(**spans)).isoformat()


def plan(number: int, status: str = "DONE", title: str = "A plan with a title of some length") -> PlanStatus:
    steps = tuple(
        StepRow(
            step=f"phase-{each}",
            title="Implement a/long/path.py, tests/test_path.py",
            kind="implement",
            status="done",
            attempts=1,
            landed="",
            score=800,
            reason="",
        )
        for each in (1, 2, 3)
    )
    row = PlanRow(
        plan=f"plan-{number:03}",
        title=title,
        status=status,
        path="x.md",
        content="",
        object="",
        rounds=1,
        branch=f"planforge/plan-{number:03}",
        landed="0" * 40,
        updated_at=ago(days=1),
    )
    return PlanStatus(plan=row, steps=steps, badge="verified", cost=Cost(tokens=40_000))


def busy(count: int) -> Overview:
    """A project with so many of everything."""
    numbers = range(1, count + 1)
    row = RunRow(
        run="run-001",
        flow="plan_run",
        subject="plan-001",
        status="done",
        reason="every step is done",
        until="",
        started_at=ago(days=1),
        updated_at=ago(days=1),
    )
    return Overview(
        root="/home/ada/project",
        events=12345,
        runs=tuple(msgspec.structs.replace(row, run=f"run-{each:03}") for each in numbers),
        plans=tuple(plan(each) for each in numbers),
        next=tuple(Action("resume", f"run-{each:03}") for each in numbers),
        running=tuple(
            Running(
                run=f"run-{each:03}",
                flow="plan_run",
                subject=f"plan-{each:03}",
                since=ago(minutes=4),
                steps=("phase-1",),
                roles=("developer",),
                cost=Cost(tokens=1234, money=120_000),
            )
            for each in numbers
        ),
        waiting=tuple(
            Waiting(
                what="question",
                name=f"question-{each:03}",
                about="may the public interface of the module change, which three others use? (yes | no)",
                since=ago(hours=each),
                command=f"planforge question show question-{each:03}",
            )
            for each in numbers
        ),
        cost=Cost(tokens=2_345_678, money=12_340_000, unknown=2),
        now=NOW.isoformat(),
    )


@pytest.mark.parametrize("count", [1, 2, 3, 5, 40])
def test_it_fits_a_small_terminal_however_much_there_is(count: int) -> None:
    lines = page(busy(count), (80, 24)).split("\n")
    assert len(lines) <= 23, "one is left for the prompt"
    assert max(map(len, lines)) <= 80
    assert any(line.endswith("planforge question show question-001") for line in lines), "whole"


def test_what_is_folded_says_how_much_and_where_it_is() -> None:
    text = page(busy(40), (80, 24))
    assert "more: planforge plan list" in text
    assert "more: planforge status --json" in text


def test_the_runs_that_are_not_shown_are_all_counted() -> None:
    quiet = msgspec.structs.replace(busy(10), running=(), waiting=(), plans=(), next=())
    assert "  run-010  plan_run" in page(quiet, (80, 24))
    assert "  and 7 more: planforge log" in page(quiet, (80, 24))
    assert "  and 14 more: planforge log" in page(msgspec.structs.replace(quiet, ended=17), (80, 24))


def test_a_run_that_was_cancelled_is_not_called_failed() -> None:
    found = busy(1)
    run = msgspec.structs.replace(found.runs[0], status="failed", reason="cancelled by Ada: enough")
    text = page(msgspec.structs.replace(found, runs=(run,)), (80, 24))
    assert "  run-001  plan_run  plan-001  cancelled  by Ada: enough" in text


def test_an_ordinary_project_shows_the_steps_of_its_plan_and_its_badge() -> None:
    text = page(busy(1), (80, 24))
    assert "plan-001  DONE  verified  A plan" in text
    assert "phase-3  done  1 attempt  score 800" in text
    assert "Running\n  run-001  plan_run plan-001  4 min  phase-1 (developer)  1234 tokens, $0.12" in text
    assert "Cost  2.3M tokens, $12.34, 2 guessed" in text


def test_what_is_piped_is_not_cut_to_a_width() -> None:
    assert "which three others use? (yes | no)" in page(busy(1), (0, 24))


def test_titles_cannot_move_a_cursor() -> None:
    found = msgspec.structs.replace(busy(1), plans=(plan(1, title="\x1b[2J\u202e"),))
    assert not set("\x1b\u202e") & set(page(found, (80, 24)))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Cost(), "nothing yet"),
        (Cost(unknown=1), "cost unknown"),
        (Cost(tokens=900), "900 tokens, money unknown"),
        (Cost(tokens=41_200, money=310_000), "41k tokens, $0.31"),
        (Cost(money=310_000), "tokens unknown, $0.31"),
    ],
)
def test_what_is_unknown_is_not_nothing(found: Cost, words: str) -> None:
    assert cost(found) == words


@pytest.mark.parametrize(
    ("since", "words"),
    [
        (ago(seconds=5), "5 s"),
        (ago(minutes=3), "3 min"),
        (ago(hours=25), "1 d"),
        (ago(hours=2), "2 h"),
        (ago(seconds=-9), "0 s"),
    ],
)
def test_ages_have_one_unit(since: str, words: str) -> None:
    assert age(NOW.isoformat(), since) == words


def test_what_goes_on_and_what_waits_come_from_the_ledger(tmp_path: Path) -> None:
    at = forged(tmp_path)
    project = Project(at.root)
    found = overview(project)
    (waits,) = found.waiting
    assert (waits.what, waits.name, waits.command) == (
        "plan",
        "plan-001",
        Action("plan show", "plan-001"),
    )
    assert found.plans[0].cost.tokens
    assert found.plans[0].cost.money is None
    assert found.cost.tokens == found.plans[0].cost.tokens
    assert found.running == ()
    assert found.ended == 1

    body = pack(project.ledger, b"{}")
    started = RunStarted(run="run-002", flow="plan_run", flow_version=1, subject="plan-001", request=body)
    project.ledger.append("run-002", [started], expected=0)
    scopes = ("run:run-002", "plan:plan-001", "role:run-002/developer")
    budgets.reserve(project.ledger, "run-002/3", scopes, Amounts(tokens=500))
    with held(project.lock("run-002"), "it"):
        (running,) = overview(project).running
        assert (running.run, running.roles) == ("run-002", ("developer",))
        assert overview(project).waiting == (), "somebody is at the plan"
    (left,) = overview(project).waiting
    assert (left.what, left.command) == ("run", Action("resume", "run-002"))
    project.ledger.close()
