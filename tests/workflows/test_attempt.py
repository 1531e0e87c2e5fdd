from __future__ import annotations

from typing import Any

import pytest

from driven import Driven, driven
from planforge.errors import SecretFound
from planforge.kernel.effects import (
    ClaimLease,
    CloseWorktree,
    Commit,
    Decision,
    Effect,
    HandOver,
    Inspection,
    Land,
    Leased,
    OpenWorktree,
    PassGate,
    ReleaseLease,
    RunAgent,
    RunCheck,
    RunFormerTests,
)
from planforge.kernel.events import (
    AttemptInspected,
    AttemptRejected,
    ContextComposed,
    PatchApplied,
    PatchProposed,
    RecordedFinding,
    StepCompleted,
    StepFailed,
    StepStarted,
    VerifyFailed,
    VerifyOk,
)
from planforge.kernel.evidence import Outcome
from planforge.workflows.attempt import LANDING_TRIES, StepResult, implement
from worlds import BASE, FILES, World, change, failing_agent


def step(
    world: World, *, files: tuple[str, ...] | None = None, handoffs: int = 2, **more: object
) -> Driven[StepResult]:
    return driven(
        implement(change(FILES["phase-1"] if files is None else files, handoffs=handoffs, **more)), world
    )


def kinds(flow: Driven[StepResult]) -> list[str]:
    return [type(note).__name__ for note in flow.notes if not isinstance(note, ContextComposed)]


def rejections(flow: Driven[StepResult]) -> list[str]:
    return [note.reason for note in flow.notes if isinstance(note, AttemptRejected)]


def test_a_change_whose_evidence_passes_lands() -> None:
    flow = step(World(developer=["did it"]))
    assert flow.result == StepResult(
        step="phase-1",
        done=True,
        tip="commit-1",
        reason="as told: pass",
        files=("gateway/limit.py", "tests/test_limit.py"),
        changed_lines=20,
    )
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


def test_where_the_same_step_had_landed_the_evidence_on_what_is_there_decides_and_not_the_agent() -> None:
    world = World(developer=["nothing to do"])
    world.changed = {"phase-1": ()}
    world.outcomes = [Outcome.FAIL, Outcome.CANNOT_TELL]
    flow = step(world, attempts=3, landed="commit-0")
    assert rejections(flow) == [
        "the agent changed nothing, and the tests failed (as told: fail: test_one)",
        "the agent changed nothing, and the tests could not tell (as told: cannot_tell)",
    ]
    completed = flow.notes[-1]
    assert isinstance(completed, StepCompleted)
    assert completed.found == "commit-0"
    assert flow.result.done
    assert not any(isinstance(effect, Land) for effect in flow.effects)


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
    silent = failing_agent("agent `x` did not answer within 5 s")
    world = World(developer=[silent, silent, "did it"])
    flow = step(world)
    assert flow.result.done
    assert rejections(flow) == ["agent `x` did not answer within 5 s"]
    opened = [effect.name for effect in flow.effects if isinstance(effect, OpenWorktree)]
    closed = [effect.name for effect in flow.effects if isinstance(effect, CloseWorktree)]
    assert sorted(set(opened)) == closed == ["phase-1-1", "phase-1-2"]


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
    assert completed.score.measures.tests_passed == 10
    assert verified[-1].tree == "tree of commit-2"


# Leases


def asked(flow: Driven[StepResult], kind: type[Effect[Any]]) -> list[Any]:
    return [effect for effect in flow.effects if isinstance(effect, kind)]


def test_every_attempt_leases_its_files_lands_under_the_fence_and_gives_them_back() -> None:
    world = World(developer=["done"])
    world.outcomes = [Outcome.FAIL]
    flow = step(world)
    claims, releases, (land,) = asked(flow, ClaimLease), asked(flow, ReleaseLease), asked(flow, Land)
    assert [claim.paths for claim in claims] == [FILES["phase-1"]] * 2
    assert [release.lease.fence for release in releases] == [1, 2]
    assert (land.lease, land.files) == (Leased(holder="run-001/phase-1", fence=2), FILES["phase-1"])
    started = [note for note in flow.notes if isinstance(note, StepStarted)]
    assert [(note.holder, note.fence) for note in started] == [("run-001/phase-1", 1), ("run-001/phase-1", 2)]


def test_a_step_that_names_no_files_leases_everything() -> None:
    world = World(developer=["done"])
    world.changed = {"phase-1": ("anything.py",)}
    (claim,) = asked(step(world, files=()), ClaimLease)
    assert claim.paths == ("**",)


def test_a_change_whose_lease_is_lost_does_not_land_and_the_next_attempt_leases_anew() -> None:
    world = World(developer=["done"])
    world.lost = {1}
    flow = step(world)
    assert rejections(flow) == ["it cannot land: its lease ran out"]
    assert flow.result.done
    assert [effect.lease.fence for effect in asked(flow, Land)] == [1, 2]


# Handing over


def test_a_full_agent_is_followed_by_one_that_gets_the_state_and_nothing_else() -> None:
    world = World(developer=["done"])
    world.full = 1
    flow = step(world)
    assert flow.result.done
    first, second = [prompt for _, prompt in world.prompts]
    assert "state 1" in second
    assert "so far" not in second
    assert first not in second
    bases = [effect.base for effect in asked(flow, RunAgent)]
    assert bases == ["base", "part-1"]
    (commit,) = asked(flow, Commit)
    assert commit.parent == "base"


def test_the_successor_lands_under_its_own_fence() -> None:
    world = World(developer=["done"])
    world.full = 1
    flow = step(world)
    (handover,) = asked(flow, HandOver)
    (land,), (release,) = asked(flow, Land), asked(flow, ReleaseLease)
    assert handover.lease == Leased(holder="run-001/phase-1", fence=1)
    assert land.lease == release.lease == Leased(holder="phase-1.2", fence=2)


def test_handing_over_ends_after_so_many_times_and_says_so() -> None:
    world = World(developer=["done"])
    world.full = 99
    flow = step(world, attempts=2, handoffs=2)
    assert not flow.result.done
    assert rejections(flow) == ["it handed over 2 times and was still not done"] * 2
    # It is the last successor's lease that is given back: the next attempt would wait for it otherwise.
    assert [release.lease.fence for release in asked(flow, ReleaseLease)] == [3, 6]
    assert len(asked(flow, HandOver)) == 2 * 2
    assert len(asked(flow, RunAgent)) == 2 * 3


def test_a_successor_that_fails_gives_back_the_lease_that_it_had_and_leaves_no_worktree() -> None:
    mute = failing_agent("agent `x` ended without an answer")
    world = World(developer=["so far", mute, mute, "done"])
    world.full = 1
    flow = step(world)
    assert flow.result.done
    assert rejections(flow) == ["agent `x` ended without an answer"]
    assert [release.lease.fence for release in asked(flow, ReleaseLease)] == [2, 3]
    assert [effect.name for effect in asked(flow, CloseWorktree)] == ["phase-1-1", "phase-1-2"]


def test_an_agent_is_told_under_which_lease_it_works_and_which_turn_it_is() -> None:
    world = World(developer=["done"])
    world.full = 1
    world.outcomes = [Outcome.FAIL]
    flow = step(world)
    turns = [(effect.turn, effect.lease.fence) for effect in asked(flow, RunAgent)]
    assert turns == [(1, 1), (2, 2), (1, 3)]


def test_an_agent_that_nobody_can_follow_has_no_turn() -> None:
    (asking,) = asked(step(World(developer=["done"]), handoffs=0), RunAgent)
    assert asking.turn == 0


# What is seen of a change


def seen(severity: str = "blocking", *protected: str) -> Inspection:
    finding = RecordedFinding(severity=severity, title="a test was deleted", location="t.py:3")
    return Inspection(findings=(finding,), protected=protected)


def test_a_blocking_finding_refuses_the_attempt_before_anything_of_it_is_run() -> None:
    world = World(developer=["done"])
    world.inspections = [seen()]
    flow = step(world)
    assert rejections(flow) == ["a test was deleted (t.py:3)"]
    assert kinds(flow)[:4] == ["StepStarted", "PatchProposed", "AttemptInspected", "AttemptRejected"]
    names = [type(effect).__name__ for effect in flow.effects]
    assert names.index("Inspect") < names.index("ReleaseLease") < names.index("RunCheck")
    assert flow.result.done


def test_a_finding_that_does_not_block_is_on_record_and_the_change_lands() -> None:
    world = World(developer=["done"])
    world.inspections = [seen("medium")]
    flow = step(world)
    assert flow.result.tip == "commit-1"
    inspected = next(note for note in flow.notes if isinstance(note, AttemptInspected))
    assert [item.severity for item in inspected.findings] == ["medium"]


def test_nothing_seen_is_not_worth_a_fact() -> None:
    assert not any(isinstance(note, AttemptInspected) for note in step(World(developer=["done"])).notes)


def test_a_protected_change_lands_when_a_person_has_said_yes_to_that_tree() -> None:
    world = World(developer=["done"])
    world.inspections = [Inspection(protected=("`ci.yml`: a CI file",))]
    flow = step(world)
    (gate,) = [effect for effect in flow.effects if isinstance(effect, PassGate)]
    assert (gate.gate, gate.tree, gate.reasons) == (
        "protected/phase-1",
        "tree of commit-1",
        ("`ci.yml`: a CI file",),
    )
    names = [type(effect).__name__ for effect in flow.effects]
    assert names.index("RunCheck") < names.index("PassGate") < names.index("Land")


def test_a_protected_change_that_moves_to_another_commit_needs_another_yes() -> None:
    world = World(developer=["done"])
    world.inspections = [Inspection(protected=("`ci.yml`: a CI file",))]
    world.moves = ["elsewhere"]
    flow = step(world)
    assert [effect.tree for effect in flow.effects if isinstance(effect, PassGate)] == [
        "tree of commit-1",
        "tree of commit-2",
    ]


def test_a_person_who_says_no_refuses_the_attempt_and_the_next_one_is_told_why() -> None:
    world = World(developer=["done"])
    world.inspections = [Inspection(protected=("`ci.yml`: a CI file",))]
    world.decisions = [Decision(approved=False, actor="ada", reason="leave CI alone")]
    flow = step(world)
    assert rejections(flow) == ["ada said no to it: leave CI alone"]
    assert "leave CI alone" in world.prompts[1][1]
    landed = [effect.commit for effect in flow.effects if isinstance(effect, Land)]
    assert landed == ["commit-2"]


REWRITTEN = Inspection(former=("tests/test_limit.py",))


def test_tests_that_were_rewritten_are_run_as_they_were_once_the_new_ones_pass() -> None:
    world = World(developer=["done"])
    world.inspections = [REWRITTEN]
    flow = step(world)
    (former,) = [effect for effect in flow.effects if isinstance(effect, RunFormerTests)]
    assert (former.commit, former.parent, former.files) == ("commit-1", BASE, ("tests/test_limit.py",))
    names = [type(effect).__name__ for effect in flow.effects]
    assert names.index("RunCheck") < names.index("RunFormerTests") < names.index("Land")
    assert flow.result.done
    assert not any(isinstance(effect, PassGate) for effect in flow.effects)
    assert not any(isinstance(note, AttemptInspected) for note in flow.notes)


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.CANNOT_TELL])
def test_where_they_do_not_pass_any_more_a_person_has_to_say_that_they_need_not(outcome: Outcome) -> None:
    world = World(developer=["done"])
    world.inspections = [REWRITTEN]
    world.former = [outcome]
    flow = step(world)
    (gate,) = [effect for effect in flow.effects if isinstance(effect, PassGate)]
    (reason,) = gate.reasons
    assert reason.startswith("`tests/test_limit.py`: as they were before the change, the tests ")
    (inspected,) = [note for note in flow.notes if isinstance(note, AttemptInspected)]
    assert inspected.protected == gate.reasons


def test_tests_of_before_that_fail_land_nothing_if_the_person_says_no() -> None:
    world = World(developer=["done"])
    world.inspections = [REWRITTEN] * 3
    world.former = [Outcome.FAIL] * 3
    world.decisions = [Decision(approved=False, actor="ada", reason="the tests were right")] * 3
    flow = step(world)
    assert not flow.result.done
    assert not any(isinstance(effect, Land) for effect in flow.effects)


def test_tests_of_before_are_not_run_for_a_change_whose_own_tests_fail() -> None:
    world = World(developer=["done"])
    world.inspections = [REWRITTEN]
    world.outcomes = [Outcome.FAIL]
    flow = step(world)
    assert not any(isinstance(effect, RunFormerTests) for effect in flow.effects)


def test_a_secret_refuses_the_attempt_and_leaves_no_worktree() -> None:
    class Leaky(World):
        def on_Commit(self, effect: Commit) -> object:  # noqa: N802
            return (
                SecretFound("`a.py:3` holds a secret") if effect.attempt == 1 else super().on_Commit(effect)
            )

    flow = step(Leaky(developer=["done"]))
    assert rejections(flow) == ["`a.py:3` holds a secret"]
    closed = [effect.name for effect in flow.effects if isinstance(effect, CloseWorktree)]
    assert closed == ["phase-1-1", "phase-1-2"]
    assert flow.result.done
