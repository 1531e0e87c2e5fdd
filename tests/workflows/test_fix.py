"""A small change, driven by hand: what is asked for, in which order, and what is never asked for."""

from __future__ import annotations

import msgspec
import pytest

from driven import Driven, driven
from planforge.errors import PerformerFailed
from planforge.kernel import effects
from planforge.kernel.events import PlanEnded, PlanStarted
from planforge.kernel.evidence import Outcome
from planforge.rules.small import Limits
from planforge.workflows.fix import FixRequest, FixResult, fix
from worlds import BASE, World

REQUEST = FixRequest(
    fix="fix-001",
    run="run-001",
    title="Say it better",
    request="Say it better in a.py",
    content="c" * 64,
    base=BASE,
    attempts=2,
)


def fixed(world: World, request: FixRequest = REQUEST) -> Driven[FixResult]:
    world.approved.add(request.content)
    world.changed.setdefault("phase-1", ("a.py",))
    return driven(fix(request), world)


def test_one_step_is_made_under_the_approval_of_the_words_and_nothing_else_is_asked_for() -> None:
    flow = fixed(World(developer=["did it"]))
    assert flow.result.done
    assert isinstance(flow.notes[-1], PlanEnded)
    assert flow.notes[-1].commit == "commit-1"
    asked = [type(effect) for effect in flow.effects]
    assert asked[:2] == [effects.TakeApproval, effects.OpenBranch]
    assert asked.count(effects.RunAgent) == asked.count(effects.RunCheck) == 1
    assert {effects.ClaimLease, effects.Inspect, effects.Land} <= set(asked)
    assert not {effects.ReadPlan, effects.WritePlan, effects.ShowPhases, effects.MarkPlan} & set(asked)
    (started,) = (note for note in flow.notes if isinstance(note, PlanStarted))
    assert (started.branch, started.content) == ("planforge/fix-001", REQUEST.content)


def test_without_the_approval_nothing_is_begun() -> None:
    with pytest.raises(PerformerFailed, match="not approved"):
        driven(fix(REQUEST), World(developer=["did it"]))


def test_the_agent_is_told_what_is_small() -> None:
    world = World(developer=["did it"])
    fixed(world, msgspec.structs.replace(REQUEST, limits=Limits(max_files=7, max_lines=70)))
    ((_, prompt),) = world.prompts
    assert "at most 7 files and 70 lines" in prompt
    assert REQUEST.request in prompt


def test_a_change_that_is_not_small_ends_the_run_and_is_not_tried_again() -> None:
    world = World(developer=["did it"])
    world.changed["phase-1"] = ("a.py", "b.py", "c.py", "d.py")
    flow = fixed(world)
    assert (flow.result.done, flow.result.large) == (False, True)
    (ended,) = (note for note in flow.notes if isinstance(note, PlanEnded))
    assert (ended.succeeded, ended.commit) == (False, "commit-1")
    assert ended.reason.startswith("it is not small: it changes 4 files")


def test_evidence_that_fails_uses_up_the_attempts() -> None:
    world = World(developer=["did it"])
    world.outcomes = [Outcome.FAIL, Outcome.FAIL]
    flow = fixed(world)
    assert (flow.result.done, flow.result.large) == (False, False)
    assert sum(isinstance(effect, effects.RunAgent) for effect in flow.effects) == 2


def test_an_acceptance_asks_no_agent_and_takes_only_the_commit_that_was_looked_at() -> None:
    world = World()
    world.tip = "commit-1"
    accepting = msgspec.structs.replace(REQUEST, accepts="commit-1", accepted_because="Ada: fine")
    flow = fixed(world, accepting)
    assert flow.result.done
    assert flow.result.reason == "accepted although it is not small: Ada: fine"
    assert not any(isinstance(effect, effects.RunAgent | effects.Land) for effect in flow.effects)
    world.tip = "commit-2"
    moved = fixed(world, accepting)
    assert not moved.result.done
