from __future__ import annotations

import pytest

from driven import Driven, driven
from planforge.documents.phases import Phase, PhaseKind
from planforge.kernel.effects import CloseWorktree, Commit, Land, OpenWorktree, RunAgent, RunCheck
from planforge.kernel.events import (
    AttemptRejected,
    PatchApplied,
    PatchProposed,
    StepCompleted,
    StepFailed,
    StepStarted,
    VerifyFailed,
    VerifyOk,
)
from planforge.kernel.evidence import Outcome
from planforge.workflows.step import LANDING_TRIES, StepRequest, StepResult, implement
from worlds import FILES, World, failing_agent


def step(world: World, *, attempts: int = 3, files: tuple[str, ...] = FILES["phase-1"]) -> Driven[StepResult]:
    request = StepRequest(
        plan="plan-007",
        run="run-001",
        content="content",
        branch="planforge/plan-007",
        objective="No floods",
        notes="",
        phase=Phase(
            id="phase-1",
            title="Limit callers",
            kind=PhaseKind.IMPLEMENT,
            files=files,
            depends_on=(),
            change_spec="- `gateway/limit.py` — a bucket",
        ),
        base="base",
        attempts=attempts,
    )
    return driven(implement(request), world)


def kinds(flow: Driven[StepResult]) -> list[str]:
    return [type(note).__name__ for note in flow.notes]


def rejections(flow: Driven[StepResult]) -> list[str]:
    return [note.reason for note in flow.notes if isinstance(note, AttemptRejected)]


def test_a_change_whose_evidence_passes_lands() -> None:
    flow = step(World(developer=["did it"]))
    assert flow.result == StepResult(step="phase-1", done=True, tip="commit-1", reason="as told: pass")
    assert kinds(flow) == ["StepStarted", "PatchProposed", "VerifyOk", "PatchApplied", "StepCompleted"]


def test_what_the_agent_claims_is_recorded_and_changes_nothing() -> None:
    world = World(developer=["All 10 tests pass!"])
    world.outcomes = [Outcome.FAIL]
    flow = step(world)
    proposed = next(note for note in flow.notes if isinstance(note, PatchProposed))
    assert proposed.claim == "All 10 tests pass!"
    assert rejections(flow) == ["the tests failed (as told: fail: test_one)"]
    assert flow.result.done
    assert flow.result.tip == "commit-2"


def test_the_next_attempt_is_told_what_was_wrong_with_the_last() -> None:
    world = World(developer=["done"])
    world.outcomes = [Outcome.FAIL]
    step(world)
    first, second = [prompt for _, prompt in world.prompts]
    assert "Attempt: 1" in first
    assert "not taken" not in first
    assert "Attempt: 2" in second
    assert "the tests failed (as told: fail: test_one)" in second


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.CANNOT_TELL])
def test_a_step_whose_evidence_never_passes_fails_and_lands_nothing(outcome: Outcome) -> None:
    world = World(developer=["all green, promise"])
    world.outcomes = [outcome] * 9
    flow = step(world, attempts=3)
    assert not flow.result.done
    assert len(rejections(flow)) == 3
    assert isinstance(flow.notes[-1], StepFailed)
    assert not any(isinstance(effect, Land) for effect in flow.effects)
    assert not any(isinstance(note, VerifyOk) for note in flow.notes)


def test_an_agent_that_changes_nothing_is_not_done() -> None:
    world = World(developer=["nothing to do"])
    world.changed = {"phase-1": ()}
    flow = step(world, attempts=1)
    assert rejections(flow) == ["the agent changed nothing"]
    assert not any(isinstance(effect, RunCheck) for effect in flow.effects)


def test_a_file_that_the_step_does_not_name_refuses_the_attempt() -> None:
    world = World(developer=["done, and tidied up"])
    world.changed = {"phase-1": (*FILES["phase-1"], "setup.py")}
    flow = step(world, attempts=1)
    assert rejections(flow) == ["it changed `setup.py`, which the step does not name"]


def test_a_step_that_names_no_files_may_change_any() -> None:
    world = World(developer=["done"])
    world.changed = {"phase-1": ("anything.py",)}
    assert step(world, files=()).result.done


def test_an_agent_that_fails_uses_up_an_attempt_and_leaves_no_worktree() -> None:
    world = World(developer=[failing_agent("agent `x` did not answer within 5 s"), "did it"])
    flow = step(world)
    assert flow.result.done
    assert rejections(flow) == ["agent `x` did not answer within 5 s"]
    opened = [effect.name for effect in flow.effects if isinstance(effect, OpenWorktree)]
    closed = [effect.name for effect in flow.effects if isinstance(effect, CloseWorktree)]
    assert opened == closed == ["phase-1-1", "phase-1-2"]


def test_every_attempt_starts_in_a_worktree_of_its_own_at_the_same_commit() -> None:
    world = World(developer=["done"])
    world.outcomes = [Outcome.FAIL, Outcome.FAIL]
    flow = step(world)
    asked = [effect for effect in flow.effects if isinstance(effect, RunAgent)]
    assert [(effect.worktree, effect.base) for effect in asked] == [
        (f"phase-1-{n}", "base") for n in (1, 2, 3)
    ]


def test_a_branch_that_moved_on_gets_the_change_on_top_checked_again() -> None:
    world = World(developer=["done"])
    world.moves = ["elsewhere"]
    flow = step(world)
    checks = [effect for effect in flow.effects if isinstance(effect, RunCheck)]
    applied = next(note for note in flow.notes if isinstance(note, PatchApplied))
    assert [check.commit for check in checks] == ["commit-1", "commit-2"]
    assert (applied.commit, applied.parent, applied.tree) == ("commit-2", "elsewhere", "tree of commit-2")


def test_a_change_that_breaks_together_with_what_landed_meanwhile_does_not_land() -> None:
    world = World(developer=["done"])
    world.moves = ["elsewhere"]
    world.outcomes = [Outcome.PASS, Outcome.FAIL]
    flow = step(world, attempts=2)
    assert rejections(flow)[0].startswith("together with what landed meanwhile, the tests failed")
    starts = [note.base for note in flow.notes if isinstance(note, StepStarted)]
    assert starts == ["base", "elsewhere"]
    assert flow.result.done


def test_a_conflict_sends_the_step_back_to_where_the_branch_is_now() -> None:
    world = World(developer=["done"])
    world.moves = ["elsewhere"]
    world.conflicts = ("gateway/limit.py",)
    flow = step(world, attempts=2)
    assert rejections(flow) == ["it conflicts with what landed meanwhile in `gateway/limit.py`"]
    assert [note.base for note in flow.notes if isinstance(note, StepStarted)] == ["base", "elsewhere"]


def test_a_branch_that_never_stands_still_ends_the_landing() -> None:
    world = World(developer=["done"])
    world.moves = [f"move-{n}" for n in range(LANDING_TRIES * 2)]
    flow = step(world, attempts=1)
    assert not flow.result.done
    assert rejections(flow) == [f"`planforge/plan-007` moved {LANDING_TRIES} times during one landing"]


def test_the_commit_names_plan_step_and_title_and_has_trailers() -> None:
    flow = step(World(developer=["done"]))
    commit = next(effect for effect in flow.effects if isinstance(effect, Commit))
    assert commit.message == (
        "plan-007 phase-1: Limit callers\n\n"
        "Planforge-Run: run-001\nPlanforge-Step: plan-007/phase-1\nPlanforge-Attempt: 1\n"
    )


def test_the_score_is_of_the_evidence_on_the_tree_that_landed() -> None:
    world = World(developer=["done"])
    world.moves = ["elsewhere"]
    flow = step(world)
    completed = next(note for note in flow.notes if isinstance(note, StepCompleted))
    verified = [note.evidence for note in flow.notes if isinstance(note, VerifyOk | VerifyFailed)]
    assert completed.score is not None
    assert completed.score.tests_passed == 10
    assert verified[-1].tree == "tree of commit-2"
