"""Runs as they were before phases were in the ledger: they replay, so they must go as they went."""

from __future__ import annotations

import pytest

from driven import Driven, driven
from planforge.documents.phases import Phase, PhaseKind
from planforge.documents.plan import PlanStatus, parse_plan_id, render_new, with_status
from planforge.errors import PerformerFailed
from planforge.kernel.effects import Access, LandedStep, MarkPlan, RunAgent, WritePhases
from planforge.kernel.events import PlanEnded, PlanStarted, StepStarted
from planforge.kernel.evidence import Outcome
from planforge.workflows.earlier import waves
from planforge.workflows.plan_run import PlanRunRequest, PlanRunResult, plan_run
from worlds import BLOCKING, CLEAN, FILES, PLAN, World, approved, failing_agent

TEXT = render_new(
    plan=parse_plan_id("7"),
    title="Rate limits",
    created="2026-01-02",
    project="gateway",
    request="Stop floods",
    body=PLAN,
)


def run(world: World, *, parallel: bool = True, attempts: int = 2) -> Driven[PlanRunResult]:
    request = PlanRunRequest(
        plan="plan-007",
        run="run-002",
        path="docs/plans/plan-007-rate-limits.md",
        base="base",
        today="2026-01-02",
        parallel=parallel,
        attempts=attempts,
    )
    return driven(plan_run(request), world)


def started(flow: Driven[PlanRunResult]) -> list[str]:
    return [note.step for note in flow.notes if isinstance(note, StepStarted)]


def marks(flow: Driven[PlanRunResult]) -> list[str]:
    return [effect.status for effect in flow.effects if isinstance(effect, MarkPlan)]


def test_an_approved_plan_is_carried_out_and_audited() -> None:
    flow = run(approved(World(developer=["done"], auditor=[CLEAN]), TEXT))
    assert flow.result.done
    assert started(flow) == ["phase-1", "phase-2", "phase-3"]
    assert marks(flow) == ["IMPLEMENTING", "DONE"]
    assert isinstance(flow.notes[-1], PlanEnded)
    assert flow.notes[-1].succeeded


def test_a_plan_that_is_not_approved_starts_nothing() -> None:
    world = World(developer=["done"])
    world.text = TEXT
    with pytest.raises(PerformerFailed, match="not approved"):
        run(world)
    assert world.prompts == []


def test_phases_are_a_chain_unless_they_are_asked_for_in_parallel() -> None:
    chained = run(approved(World(developer=["done"], auditor=[CLEAN]), TEXT), parallel=False)
    bases = [note.base for note in chained.notes if isinstance(note, StepStarted)]
    assert bases == ["base", "commit-1", "commit-2"]
    together = run(approved(World(developer=["done"], auditor=[CLEAN]), TEXT), parallel=True)
    bases = [note.base for note in together.notes if isinstance(note, StepStarted)]
    assert bases[:2] == ["base", "base"]


def test_a_failed_step_stops_the_plan_and_keeps_what_landed() -> None:
    world = approved(World(developer=["done"], auditor=[CLEAN]), TEXT)
    world.outcomes = [Outcome.PASS, Outcome.FAIL, Outcome.FAIL]
    flow = run(world, parallel=False)
    assert not flow.result.done
    assert flow.result.reason.startswith("phase-2: the tests failed")
    assert flow.result.commit == "commit-1"
    assert started(flow) == ["phase-1", "phase-2", "phase-2"]
    assert marks(flow) == ["IMPLEMENTING", "REVIEW"]


def test_a_plan_edited_in_the_middle_stops_before_the_next_wave() -> None:
    world = approved(World(developer=["done"], auditor=[CLEAN]), TEXT)
    world.edits = {3: TEXT.replace("token bucket", "leaky bucket")}
    flow = run(world, parallel=False)
    assert not flow.result.done
    assert flow.result.voided
    assert started(flow) == ["phase-1"]
    assert "edited after it was approved" in flow.result.reason


def test_a_change_of_status_is_not_an_edit() -> None:
    world = approved(World(developer=["done"], auditor=[CLEAN]), TEXT)
    world.edits = {2: with_status(TEXT, PlanStatus.IMPLEMENTING)}
    assert run(world).result.done


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (BLOCKING, "phase-3: the audit says revision"),
        ("Looks good to me!", "phase-3: the audit says unknown"),
    ],
)
def test_the_final_audit_passes_only_on_a_clear_verdict(said: str, reason: str) -> None:
    flow = run(approved(World(developer=["done"], auditor=[said]), TEXT))
    assert not flow.result.done
    assert flow.result.reason.startswith(reason)


def test_an_auditor_that_fails_ends_the_plan_with_its_reason() -> None:
    flow = run(approved(World(developer=["done"], auditor=[failing_agent("no answer")]), TEXT))
    assert not flow.result.done
    assert flow.result.reason == "plan-007: no answer"
    assert marks(flow)[-1] == "REVIEW"


def test_steps_that_an_earlier_run_landed_are_kept() -> None:
    world = approved(World(developer=["done"], auditor=[CLEAN]), TEXT)
    world.landed = (
        LandedStep(step="phase-1", scope=FILES["phase-1"]),
        LandedStep(step="phase-2", scope=("other.py",)),
    )
    flow = run(world)
    assert started(flow) == ["phase-2", "phase-3"]
    begun = next(note for note in flow.notes if isinstance(note, PlanStarted))
    assert begun.kept == ("phase-1",)


def test_the_phases_file_follows_the_work() -> None:
    flow = run(approved(World(developer=["done"], auditor=[CLEAN]), TEXT), parallel=False)
    written = [
        effect.text.count("**Status:** done") for effect in flow.effects if isinstance(effect, WritePhases)
    ]
    assert written == [0, 1, 2, 3]


def test_a_plan_that_names_no_files_is_read_before_it_is_implemented() -> None:
    text = TEXT.replace("`gateway/limit.py`", "the limiter").replace("`gateway/clock.py`", "the clock")
    text = text.replace("`tests/test_limit.py`", "its tests").replace("`tests/test_clock.py`", "its tests")
    world = approved(World(developer=["limit.py is where it happens", "done"], auditor=[CLEAN]), text)
    world.changed = {"phase-2": ("gateway/limit.py",)}
    flow = run(world)
    assert flow.result.done
    asked = [effect for effect in flow.effects if isinstance(effect, RunAgent)]
    assert [(effect.role, effect.access) for effect in asked] == [
        ("developer", Access.READ),
        ("developer", Access.WRITE),
        ("auditor", Access.READ),
    ]
    assert "limit.py is where it happens" in asked[1].prompt


def phase(name: str, *needs: str) -> Phase:
    return Phase(id=name, title=name, kind=PhaseKind.IMPLEMENT, files=(), depends_on=needs, change_spec="")


def test_waves_hold_what_can_run_at_the_same_time() -> None:
    phases = [phase("a"), phase("b", "a"), phase("c", "a"), phase("d", "b", "c")]
    assert [[p.id for p in wave] for wave in waves(phases)] == [["a"], ["b", "c"], ["d"]]


def test_phases_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="wait for each other: a, b"):
        list(waves([phase("a", "b"), phase("b", "a")]))
