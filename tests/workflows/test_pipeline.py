from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driven import Driven, driven
from planforge.errors import AgentEmpty, CannotPerform
from planforge.kernel.effects import (
    Access,
    ClaimLease,
    Commit,
    Decision,
    HandOver,
    Inspection,
    Land,
    OpenWorktree,
    PassGate,
    RunAgent,
    RunCheck,
)
from planforge.kernel.events import (
    AttemptRejected,
    FrictionNoted,
    ItemMoved,
    PatchApplied,
    PhasesGenerated,
    RecordedFinding,
    StageEnded,
    StageStarted,
    TaskEnded,
    TierEscalated,
)
from planforge.kernel.evidence import Outcome
from planforge.kernel.work.lifecycle.tables import TASK
from planforge.rules.pipelines import Pipeline, Stage
from planforge.rules.pipelines.builtin import BUG_QUICK, BUILTIN, DEFAULT, MODULE, POLISH
from planforge.workflows.course import PipelineRequest, Player, Standing
from planforge.workflows.pipeline import pipeline
from tries import tries
from worlds import BASE, BLOCKING, CLEAN, World, versions

LONG = "What is done and why, in words that somebody else can follow. " * 5
YES, NO = "It is right.\n\n**Verdict:** Approved\n", "Not yet.\n\n**Verdict:** Revision Required\n"
BOTH = "**Verdict:** Approved\n\n**Verdict:** Revision Required\n"
WRITERS = {"developer", "fixer", "tester"}


def players(of: Pipeline) -> dict[str, Player]:
    roles = {role for stage in of.stages for role in (stage.role, stage.revised_by) if role}
    return {
        role: Player(persona=f"{role}-persona", access=Access.WRITE if role in WRITERS else Access.READ)
        for role in roles
    }


def world(**says: Sequence[str | CannotPerform]) -> World:
    told: dict[str, Sequence[str | CannotPerform]] = {
        "planner": versions(LONG),
        "developer": [LONG],
        "fixer": [LONG],
        "reviewer": [YES],
        "collator": [LONG],
    }
    made = World(**(told | says))
    for stage in ("implement", "develop", "fix"):
        made.changed[stage] = ("gateway/limit.py",)
    return made


def request(of: Pipeline = DEFAULT, **more: object) -> PipelineRequest:
    asked = PipelineRequest(
        task="task-007",
        title="Rate limits",
        request="Stop floods",
        run="run-002",
        path="docs/tasks/task-007-rate-limits",
        pipeline=of,
        players=players(of),
        base=BASE,
        base_tree="tree of base",
    )
    return msgspec.structs.replace(asked, **more)


def run(made: World, of: Pipeline = DEFAULT, **more: object) -> Driven[TaskEnded]:
    return driven(pipeline(request(of, **more)), made)


def ends(flow: Driven[TaskEnded]) -> list[tuple[str, str]]:
    return [(note.stage, note.outcome) for note in flow.notes if isinstance(note, StageEnded)]


def last(flow: Driven[TaskEnded]) -> StageEnded:
    return [note for note in flow.notes if isinstance(note, StageEnded)][-1]


def asked(flow: Driven[TaskEnded]) -> list[str]:
    return [effect.role for effect in flow.effects if isinstance(effect, RunAgent)]


def landings(flow: Driven[TaskEnded]) -> list[Land]:
    return [effect for effect in flow.effects if isinstance(effect, Land)]


def statuses(flow: Driven[TaskEnded]) -> list[str]:
    return [note.status for note in flow.notes if isinstance(note, ItemMoved)]


def issues(flow: Driven[TaskEnded]) -> list[str]:
    return [note.issue for note in flow.notes if isinstance(note, FrictionNoted)]


# The way through


def test_a_task_goes_through_every_stage_and_lands() -> None:
    flow = run(world())
    assert flow.result.succeeded
    assert [stage for stage, _ in ends(flow)] == [stage.name for stage in DEFAULT.stages]
    assert {outcome for _, outcome in ends(flow)} == {"completed", "approved"}
    assert statuses(flow) == [
        "planned",
        "plan-approved",
        "implementing",
        "implemented",
        "review-approved",
        "approved",
        "committed",
    ]
    assert [(landing.branch, landing.commit) for landing in landings(flow)] == [
        ("planforge/task-007", flow.result.commit)
    ]
    assert isinstance(flow.notes[-1], TaskEnded)
    assert flow.notes[-1].succeeded


def test_every_stage_begins_and_ends_with_a_fact() -> None:
    flow = run(world(reviewer=[NO, YES]))
    begun = [(note.stage, note.iteration) for note in flow.notes if isinstance(note, StageStarted)]
    ended = [(note.stage, note.iteration) for note in flow.notes if isinstance(note, StageEnded)]
    assert begun == ended


def test_whoever_is_asked_has_a_name_of_task_persona_stage_and_iteration() -> None:
    flow = run(world(reviewer=[YES, NO, YES]))
    names = [note.name for note in flow.notes if isinstance(note, StageStarted)]
    assert names[:3] == [
        "task-007:planner-persona:plan:1",
        "task-007:reviewer-persona:review-plan:1",
        "task-007:developer-persona:implement:1",
    ]
    assert "task-007:fixer-persona:implement:2" in names
    assert "Name: task-007:fixer-persona:implement:2" in "".join(
        effect.prompt for effect in flow.effects if isinstance(effect, RunAgent)
    )


def test_only_whoever_changes_the_tree_may_write() -> None:
    flow = run(world())
    access = {effect.role: effect.access for effect in flow.effects if isinstance(effect, RunAgent)}
    assert access == {
        "planner": Access.READ,
        "reviewer": Access.READ,
        "developer": Access.WRITE,
        "collator": Access.READ,
    }


def test_nobody_is_asked_to_land_or_to_measure() -> None:
    assert asked(run(world())) == ["planner", "reviewer", "developer", "reviewer", "collator"]


def test_a_stage_may_name_its_tier_and_its_model() -> None:
    stages = tuple(
        msgspec.structs.replace(stage, model="small-1") if stage.name == "plan" else stage
        for stage in DEFAULT.stages
    )
    flow = run(world(), msgspec.structs.replace(DEFAULT, stages=stages))
    found = {effect.worktree: effect for effect in flow.effects if isinstance(effect, RunAgent)}
    assert found["plan-1"].model == "small-1"
    assert found["review-plan-1"].tier == "heavy"


def test_what_stages_leave_is_what_they_said() -> None:
    made = world(reviewer=[YES])
    run(made)
    assert made.documents["PLAN.md"].strip() == LONG.strip()
    assert made.documents["CODE_REVIEW.md"].strip() == YES.strip()
    assert "outcome: pass" in made.documents["VALIDATION_REPORT.md"]
    assert "ada said yes" in made.documents["APPROVAL.md"]


# Back


def test_a_revision_goes_back_with_what_has_to_change() -> None:
    flow = run(world(reviewer=[YES, "The clock is missing.\n\n**Verdict:** Revision Required", YES]))
    assert flow.result.succeeded
    assert ends(flow)[2:6] == [
        ("implement", "completed"),
        ("review-code", "revision"),
        ("implement", "completed"),
        ("review-code", "approved"),
    ]
    fixing = next(
        effect for effect in flow.effects if isinstance(effect, RunAgent) and effect.role == "fixer"
    )
    assert "what has to change" in fixing.prompt
    assert fixing.base == "commit-1"


@pytest.mark.parametrize(
    ("plans", "reason"),
    [
        ([LONG, LONG], "the planner changed nothing: edit `PLAN.md` yourself"),
        ([LONG, f"{LONG}\n \n"], "the planner changed nothing: edit `PLAN.md` yourself"),
        (
            [LONG, f"{LONG} And more.", LONG],
            "the planner went back to version 1, which was judged before: edit `PLAN.md` yourself",
        ),
    ],
)
def test_a_document_that_comes_back_as_it_was_is_not_reviewed_again(plans: list[str], reason: str) -> None:
    flow = run(world(planner=plans, reviewer=[NO]))
    assert (flow.result.succeeded, flow.result.stage, flow.result.reason) == (False, "plan", reason)
    assert asked(flow).count("reviewer") == len(plans) - 1
    assert last(flow).document == "PLAN.md"


def test_a_change_that_comes_back_as_it_was_is_not_reviewed_again() -> None:
    made = world(reviewer=[YES, NO])
    made.trees["commit-3"] = "tree of commit-1"
    flow = run(made)
    assert (flow.result.succeeded, flow.result.stage) == (False, "implement")
    assert flow.result.reason.endswith(" went back to version 1, which was judged before")
    assert asked(flow).count("reviewer") == 3  # the plan once, the change twice


def test_a_plan_that_was_revised_is_implemented_by_whoever_implements() -> None:
    flow = run(world(reviewer=[NO, YES]))
    assert asked(flow) == ["planner", "reviewer", "planner", "reviewer", "developer", "reviewer", "collator"]


def test_a_person_who_says_no_sends_it_back_with_the_reason() -> None:
    made = world()
    made.decisions = [
        Decision(approved=False, actor="ada", reason="no clock"),
        Decision(approved=True, actor="ada", reason=""),
    ]
    flow = run(made)
    assert flow.result.succeeded
    assert ("approve", "revision") in ends(flow)
    assert any("no clock" in prompt for role, prompt in made.prompts if role == "fixer")


def test_tests_that_fail_send_it_back() -> None:
    made = world()
    made.outcomes = [Outcome.FAIL]
    flow = run(made)
    assert flow.result.succeeded
    assert ("validate", "revision") in ends(flow)
    assert any("test_one" in prompt for role, prompt in made.prompts if role == "fixer")


# To a person


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_a_stage_asks_for_so_many_revisions_and_then_for_a_person(rounds: int) -> None:
    stages = tuple(msgspec.structs.replace(stage, max_iterations=rounds) for stage in DEFAULT.stages)
    flow = run(world(reviewer=[NO]), msgspec.structs.replace(DEFAULT, stages=stages))
    reviews = [outcome for stage, outcome in ends(flow) if stage == "review-plan"]
    assert reviews == ["revision"] * (rounds - 1) + ["escalated"]
    assert (flow.result.succeeded, flow.result.stage, flow.result.refused) == (False, "review-plan", False)
    assert "max iterations reached" in flow.result.reason
    assert statuses(flow)[-1] == "escalated"
    assert landings(flow) == []


def test_more_rounds_are_for_the_stage_that_is_gone_on_with() -> None:
    flow = run(world(reviewer=[NO]), start="plan", rounds=2)
    assert [outcome for stage, outcome in ends(flow) if stage == "review-plan"].count("revision") == 2
    made = world(reviewer=[NO])
    made.documents["PLAN.md"] = LONG
    flow = run(made, start="review-plan", rounds=2, standing=(_plan(),), status="planned")
    assert [outcome for stage, outcome in ends(flow) if stage == "review-plan"].count("revision") == 4


def _plan() -> Standing:
    return Standing(stage="plan", iteration=1, document="PLAN.md", object=f"object of {LONG.strip()}\n")


def test_two_verdicts_are_a_persons_to_read_at_once() -> None:
    flow = run(world(reviewer=[BOTH, YES]))
    assert ends(flow)[-1] == ("review-plan", "escalated")
    assert asked(flow) == ["planner", "reviewer"]
    assert issues(flow) == ["x_verdict_malformed"]


def test_an_answer_without_a_verdict_is_asked_for_once_more_in_short() -> None:
    made = world(reviewer=["Looks fine to me.", YES, YES])
    flow = run(made)
    assert flow.result.succeeded
    reviews = [prompt for role, prompt in made.prompts if role == "reviewer"]
    assert "All is one." in reviews[0]
    assert "All is one." not in reviews[1]
    assert "You must produce a result" in reviews[1]


def test_no_verdict_twice_is_never_an_approval() -> None:
    flow = run(world(reviewer=["Looks fine to me."]))
    assert ends(flow)[-1] == ("review-plan", "escalated")
    assert asked(flow) == ["planner", "reviewer", "reviewer"]
    assert issues(flow) == ["x_agent_failed"]


def test_an_agent_that_gives_nothing_twice_is_a_persons_to_look_at() -> None:
    flow = run(world(planner=[AgentEmpty("it said nothing")]))
    assert ends(flow) == [("plan", "escalated")]
    assert "twice: it said nothing" in flow.result.reason
    assert flow.result.refused is False


def test_tests_that_cannot_tell_are_no_approval_and_no_revision() -> None:
    made = world()
    made.outcomes = [Outcome.CANNOT_TELL]
    flow = run(made)
    assert ends(flow)[-1] == ("validate", "escalated")
    assert landings(flow) == []


def test_a_task_that_is_stuck_is_not_begun() -> None:
    flow = run(world(), status="escalated", start="plan")
    assert not flow.result.succeeded
    assert flow.effects == []


# Policies


def failing(*numbers: int) -> list[Outcome]:
    return [Outcome.FAIL if number else Outcome.PASS for number in numbers]


def test_a_module_that_does_not_get_better_gets_another_approach_and_then_a_person() -> None:
    made = world()
    made.outcomes = [Outcome.FAIL] * 30
    flow = run(made, MODULE)
    tests = [note for note in flow.notes if isinstance(note, StageEnded) and note.stage == "test"]
    assert [note.outcome for note in tests] == ["revision"] * 6 + ["escalated"]
    assert "another approach" in tests[3].reason
    assert "diagnosis" in tests[6].reason
    assert landings(flow) == []


def test_a_module_lands_once_it_is_green_and_approved() -> None:
    made = world(reviewer=["| R1 | required | a.py | no clock |\n\nVerdict: REJECT", "Verdict: APPROVE"])
    made.outcomes = failing(1, 0, 0, 0)
    flow = run(made, MODULE)
    assert flow.result.succeeded
    assert [outcome for stage, outcome in ends(flow) if stage == "review"] == ["revision", "approved"]


def polished(*severities: str) -> str:
    issues = [{"severity": each, "description": f"thing {at}"} for at, each in enumerate(severities)]
    return json.dumps({"issues": issues})


def test_a_deliverable_is_polished_until_it_is_good_enough() -> None:
    flow = run(world(reviewer=[polished("critical"), polished(*["minor"] * 6), polished("minor")]), POLISH)
    assert flow.result.succeeded
    assert [outcome for stage, outcome in ends(flow) if stage == "review"] == [
        "revision",
        "revision",
        "approved",
    ]
    assert "good enough" in last(flow).reason
    assert last(flow).verdict == "approved"


def test_a_plan_is_audited_as_often_as_its_cap_says() -> None:
    flow = run(world(drafter=[LONG], reviser=versions(LONG)[1:], auditor=[BLOCKING]), BUILTIN["forge"])
    assert [outcome for stage, outcome in ends(flow) if stage == "audit"] == ["revision"] * 4 + ["escalated"]
    assert "CAP_REACHED" in flow.result.reason


def test_no_policy_makes_an_approval_of_tests_that_fail() -> None:
    stages = tuple(
        msgspec.structs.replace(stage, policy="convergence") if stage.name == "validate" else stage
        for stage in DEFAULT.stages
    )
    made = world()
    made.outcomes = [Outcome.FAIL] * 9
    flow = run(made, msgspec.structs.replace(DEFAULT, stages=stages))
    assert ends(flow)[-1] == ("validate", "escalated")
    assert landings(flow) == []


def test_what_cannot_be_read_is_a_persons_under_every_policy() -> None:
    for said in ("not a review at all", '{"issues": [{"severity": "minor", "description": ""}]}'):
        flow = run(world(reviewer=[said]), POLISH)
        assert ends(flow)[-1] == ("review", "escalated")


# Gates


def test_nothing_is_begun_behind_a_gate_that_is_closed() -> None:
    made = world()
    made.fields["task.status"] = "blocked"
    flow = run(made)
    assert ends(flow) == [("plan", "escalated")]
    assert last(flow).reason.startswith("illegal-status: ")
    assert flow.result.refused
    assert asked(flow) == []


def test_a_gate_that_makes_no_sense_is_closed() -> None:
    made = world()
    made.fields = {}
    flow = run(made)
    assert last(flow).reason.startswith("tool-error: there is no field `task.status`")
    assert asked(flow) == []


@pytest.mark.parametrize(("size", "passes"), [(198, False), (199, True), (200, True)])
def test_a_stub_is_not_what_a_stage_must_leave(size: int, passes: bool) -> None:
    flow = run(world(planner=["x" * size]))  # and the end of its line
    assert flow.result.succeeded is passes
    if not passes:
        assert ends(flow) == [("plan", "escalated")]
        assert last(flow).reason.startswith("output-stub: ")


def test_a_stage_waits_for_the_verdict_of_another() -> None:
    flow = run(world(), start="implement", standing=(_plan(),), status="plan-approved")
    assert last(flow).reason.startswith(("artifact-missing", "predecessor-verdict-missing"))
    made = world()
    made.documents["PLAN.md"] = LONG
    flow = run(made, start="implement", standing=(_plan(),), status="plan-approved")
    assert last(flow).reason.startswith("predecessor-verdict-missing: `review-plan` came to no verdict")
    assert asked(flow) == []


# Changes


def test_a_change_that_is_not_taken_is_tried_again_and_told_why() -> None:
    bad = RecordedFinding(severity="blocking", title="a test was deleted", location="tests/test_limit.py")
    made = world()
    made.inspections = [Inspection(findings=(bad,))]
    flow = run(made)
    assert flow.result.succeeded
    told = [prompt for role, prompt in made.prompts if role in ("developer", "fixer")]
    assert len(told) == 2
    assert "a test was deleted" in told[1]


def test_an_agent_that_changes_nothing_has_changed_nothing() -> None:
    made = world()
    made.changed.clear()
    flow = run(made)
    assert ends(flow)[-1] == ("implement", "escalated")
    assert "the agent changed nothing" in flow.result.reason
    assert asked(flow).count("developer") + asked(flow).count("fixer") == 3


def test_changes_that_are_never_taken_are_a_persons() -> None:
    bad = RecordedFinding(severity="blocking", title="a test was deleted", location="tests/test_limit.py")
    made = world()
    made.inspections = [Inspection(findings=(bad,))] * 3
    flow = run(made)
    assert ends(flow)[-1] == ("implement", "escalated")
    assert "a test was deleted" in flow.result.reason


def test_protected_paths_need_a_person_where_no_stage_is_theirs() -> None:
    without = _unattended()
    made = world()
    made.inspections = [Inspection(protected=("ci.yml: a CI file",))]
    flow = run(made, without)
    gates = [effect for effect in flow.effects if isinstance(effect, PassGate)]
    assert [(gate.gate, gate.reasons) for gate in gates] == [("protected/commit", ("ci.yml: a CI file",))]
    assert flow.result.succeeded
    made = world()
    made.inspections = [Inspection(protected=("ci.yml: a CI file",))]
    made.decisions = [Decision(approved=False, actor="ada", reason="not that")]
    flow = run(made, without)
    assert (flow.result.succeeded, flow.result.refused, landings(flow)) == (False, True, [])


def _unattended() -> Pipeline:
    """A pipeline in which no stage is a person's."""
    stages = tuple(stage for stage in BUG_QUICK.stages if stage.name != "approve")
    stages = (*stages[:-1], msgspec.structs.replace(stages[-1], gate=""))
    return Pipeline(name="own", stages=stages, requires=("review-code",))


def test_tests_of_before_that_fail_need_a_person_even_where_one_has_seen_the_change() -> None:
    for chosen in (_unattended(), BUG_QUICK):
        made = world()
        made.inspections = [Inspection(former=("tests/test_limit.py",))]
        made.former = [Outcome.FAIL]
        flow = run(made, chosen)
        gates = [effect for effect in flow.effects if isinstance(effect, PassGate)]
        assert gates[-1].gate == "protected/commit"
        assert gates[-1].reasons[-1].startswith("`tests/test_limit.py`: as they were before the change")
        assert flow.result.succeeded


def test_tests_of_before_that_pass_need_nobody() -> None:
    made = world()
    made.inspections = [Inspection(former=("tests/test_limit.py",))]
    flow = run(made, _unattended())
    assert flow.result.succeeded
    assert not any(isinstance(effect, PassGate) for effect in flow.effects)


def test_what_an_earlier_run_left_is_looked_at_before_it_lands() -> None:
    earlier: Any = {"commit": "commit-9", "tree": "tree of commit-9", "start": "commit"}
    earlier |= {"status": "approved"}
    made = world()
    made.inspections = [Inspection(protected=("ci.yml: a CI file",))]
    own = _unattended()
    alone = Pipeline(name="own", stages=own.stages[-1:])
    flow = run(made, alone, **earlier)
    (gate,) = [effect for effect in flow.effects if isinstance(effect, PassGate)]
    assert gate.reasons == ("ci.yml: a CI file",)
    assert flow.result.succeeded
    made = world()
    bad = RecordedFinding(severity="blocking", title="a test was deleted", location="tests/test_limit.py")
    made.inspections = [Inspection(findings=(bad,))]
    flow = run(made, alone, **earlier)
    assert (flow.result.succeeded, landings(flow)) == (False, [])
    assert "a test was deleted" in flow.result.reason


# Landing


@pytest.mark.parametrize("name", ["default", "bug"])
def test_a_plan_that_was_edited_after_it_was_approved_lands_nothing(name: str) -> None:
    class Edited(World):
        def on_PassGate(self, effect: PassGate) -> object:  # noqa: N802
            decision = super().on_PassGate(effect)
            self.documents["PLAN.md"] += "and something else"
            return decision

    made = world()
    edited = Edited()
    edited.__dict__.update(made.__dict__)
    flow = run(edited, BUILTIN[name])
    assert ends(flow)[-1] == ("commit", "escalated")
    assert (
        "what `approve` judged has changed since; the task has to be resumed at `review-plan`"
        in flow.result.reason
    )
    assert (flow.result.refused, flow.result.stage) == (True, "review-plan")
    assert landings(flow) == []
    made.documents = dict(edited.documents)
    again = run(
        made,
        BUILTIN[name],
        start="review-plan",
        status="plan-revision-required",
        standing=_left_by(flow),
        commit=last(flow).commit,
        tree=f"tree of {last(flow).commit}",
    )
    assert again.result.succeeded, again.result.reason
    assert statuses(again)[-1] == "committed"


def test_a_person_is_asked_anew_about_what_was_edited_while_it_waited() -> None:
    """In a pipeline where nobody but them judges the document."""
    of = Pipeline(
        name="own",
        stages=(
            Stage(name="plan", role="planner", writes=("plan",), document="PLAN.md"),
            Stage(name="approve", role="approver", verdict="person", judges=("plan",)),
        ),
    )

    class Edited(World):
        def on_PassGate(self, effect: PassGate) -> object:  # noqa: N802
            if self.documents["PLAN.md"].endswith("and something else"):
                return super().on_PassGate(effect)
            self.documents["PLAN.md"] += "and something else"
            return Decision(approved=False, actor="", reason="`PLAN.md` was edited", void=True)

    made = Edited()
    made.__dict__.update(world().__dict__)
    flow = run(made, of)
    assert flow.result.succeeded, flow.result.reason
    first, second = [effect for effect in flow.effects if isinstance(effect, PassGate)]
    assert (first.gate, second.gate) == ("approve", "approve")
    assert [each.path for each in first.documents] == ["docs/tasks/task-007-rate-limits/PLAN.md"]
    assert first.documents != second.documents
    assert ends(flow)[-1] == ("approve", "approved")


def test_a_person_is_shown_which_verdicts_are_void_and_which_were_overridden() -> None:
    class Edited(World):
        def on_RunCheck(self, effect: RunCheck) -> object:  # noqa: N802
            self.documents["PLAN.md"] += "and something else"
            return super().on_RunCheck(effect)

    edited = Edited()
    edited.__dict__.update(world().__dict__)
    (gate,) = [effect for effect in run(edited).effects if isinstance(effect, PassGate)]
    assert {"review-plan: void", "review-code: approved"} <= set(gate.reasons)
    first = world()
    flow = run(first)
    standing = tuple(
        msgspec.structs.replace(each, overridden="overridden by Ada: it is right")
        if each.stage in ("review-code", "validate")
        else each
        for each in _left_by(flow)
        if each.stage != "approve"
    )
    made = world()
    made.documents = dict(first.documents)
    left: Any = {"commit": flow.result.commit, "tree": f"tree of {flow.result.commit}"}
    again = run(made, start="validate", status="review-approved", standing=standing, **left)
    (gate,) = [effect for effect in again.effects if isinstance(effect, PassGate)]
    assert "review-code: approved (overridden by Ada: it is right)" in gate.reasons
    assert "validate: approved" in gate.reasons  # it has been judged since


def test_a_change_after_its_review_lands_nothing() -> None:
    late = Stage(name="fix", role="fixer", writes=("code",))
    stages = (*DEFAULT.stages[:-1], late, DEFAULT.stages[-1])
    flow = run(world(), msgspec.structs.replace(DEFAULT, stages=stages))
    assert ends(flow)[-1] == ("commit", "escalated")
    assert (
        "what `approve` judged has changed since; the task has to be resumed at `review-code`"
        in flow.result.reason
    )
    no_gate = msgspec.structs.replace(DEFAULT.stages[-1], gate="")
    stages = (*DEFAULT.stages[:-1], late, no_gate)
    flow = run(world(), msgspec.structs.replace(DEFAULT, stages=stages))
    assert "`review-code`, `validate`, `approve` has not approved" in flow.result.reason
    assert flow.result.stage == "review-code"
    assert landings(flow) == []


def test_a_branch_that_is_elsewhere_is_not_moved() -> None:
    made = world()
    made.moves = ["somewhere"]
    flow = run(made)
    assert ends(flow)[-1] == ("commit", "escalated")
    assert "moved to somewhere meanwhile; rebased onto that, the change is not what was approved" in (
        flow.result.reason
    )


def test_the_tree_that_lands_has_passed() -> None:
    made = world()
    made.outcomes = [Outcome.PASS, Outcome.FAIL]
    flow = run(made)
    assert ends(flow)[-1] == ("commit", "escalated")
    assert landings(flow) == []


def _left_by(flow: Driven[TaskEnded]) -> tuple[Standing, ...]:
    """What the stages of an earlier run came to."""
    came = {note.stage: note for note in flow.notes if isinstance(note, StageEnded)}
    return tuple(
        Standing(
            stage=note.stage,
            iteration=note.iteration,
            verdict=note.verdict,
            judged=note.judged,
            document=note.document,
            object=note.object,
        )
        for note in came.values()
    )


def test_an_approval_of_an_earlier_run_counts_for_what_it_was_about_only() -> None:
    first = world()
    flow = run(first)
    standing, commit = _left_by(flow), flow.result.commit
    made = world()
    made.documents = dict(first.documents)
    again = run(
        made, start="commit", status="approved", standing=standing, commit=commit, tree=f"tree of {commit}"
    )
    assert again.result.succeeded
    made = world()
    made.documents = dict(first.documents)
    again = run(
        made, start="commit", status="approved", standing=standing, commit="other", tree="another tree"
    )
    assert (again.result.succeeded, again.result.refused) == (False, True)


CONTENT: dict[str, dict[str, list[str]]] = {
    "forge": {"drafter": [LONG], "reviser": [f"{LONG} Revised."], "auditor": [CLEAN]},
    "module": {"reviewer": ["Verdict: APPROVE\n"]},
    "polish": {"reviewer": ['{"issues": []}']},
}
"""What agents say who are content, where that is not what they say everywhere."""

RESUMED = tuple(
    state for state in TASK.states if state not in (*TASK.final, "blocked", "escalated", "committed")
)


@pytest.mark.parametrize("status", RESUMED)
@pytest.mark.parametrize("of", BUILTIN.values(), ids=BUILTIN)
def test_a_task_that_goes_on_at_any_stage_in_any_status_comes_to_its_end(of: Pipeline, status: str) -> None:
    says = CONTENT.get(of.name, {})
    first = world(**says)
    flow = run(first, of)
    assert flow.result.succeeded
    for stage in of.stages:
        made = world(**says)
        made.documents = dict(first.documents)
        more = {"commit": flow.result.commit, "tree": f"tree of {flow.result.commit}"}
        again = run(
            made,
            of,
            start=stage.name,
            status=status,
            standing=_left_by(flow),
            **(more if flow.result.commit else {}),
        )
        assert again.result.succeeded, (stage.name, again.result.reason)
        landed = any(each.lands for each in of.stages)
        assert statuses(again)[-1] == ("committed" if landed else "delivered"), stage.name


@pytest.mark.parametrize("status", ["draft", "plan-revision-required", "code-revision-required"])
@pytest.mark.parametrize("of", BUILTIN.values(), ids=BUILTIN)
def test_a_task_that_has_left_nothing_begins_anew_in_any_status_that_it_is_resumed_in(
    of: Pipeline, status: str
) -> None:
    flow = run(world(**CONTENT.get(of.name, {})), of, start=of.stages[0].name, status=status)
    assert flow.result.succeeded, flow.result.reason


@pytest.mark.parametrize("status", RESUMED)
@pytest.mark.parametrize("of", [DEFAULT, BUG_QUICK], ids=lambda of: of.name)
def test_a_review_that_asks_for_a_revision_moves_a_task_in_any_status_along_its_table(
    of: Pipeline, status: str
) -> None:
    first = world()
    flow = run(first, of)
    for stage in of.stages:
        made = world(reviewer=[NO, YES])
        made.documents = dict(first.documents)
        more = {"commit": flow.result.commit, "tree": f"tree of {flow.result.commit}"}
        again = run(made, of, start=stage.name, status=status, standing=_left_by(flow), **more)
        assert again.result.succeeded, (stage.name, again.result.reason)
        assert statuses(again)[-1] == "committed"


# Friction


def test_friction_is_taken_out_of_answers_and_noted() -> None:
    fence = (
        '```friction\n{"issue": "skill_stale", "skill": "writing-plans", "detail": "old"}\nnonsense\n```\n'
    )
    made = world(planner=[f"{LONG}\n\n{fence}"])
    flow = run(made)
    noted = [note for note in flow.notes if isinstance(note, FrictionNoted)]
    assert [(note.persona, note.issue, note.skill) for note in noted] == [
        ("planner-persona", "skill_stale", "writing-plans"),
        ("orchestrator", "x_friction_unreadable", ""),
    ]
    assert "friction" not in made.documents["PLAN.md"]


# Whatever happens

SAID = st.sampled_from([YES, NO, BOTH, "nothing", "", LONG])


@settings(max_examples=tries(600), deadline=None)
@given(
    of=st.sampled_from(list(BUILTIN.values())),
    says=st.dictionaries(
        st.sampled_from(["planner", "reviewer", "auditor", "developer"]),
        st.lists(SAID, min_size=1, max_size=8),
    ),
    outcomes=st.lists(st.sampled_from(list(Outcome)), max_size=6),
    decisions=st.lists(st.booleans(), max_size=4),
)
def test_every_run_ends_and_what_lands_was_approved(
    of: Pipeline, says: dict[str, list[str]], outcomes: list[Outcome], decisions: list[bool]
) -> None:
    made = world(**says)
    made.outcomes = outcomes
    made.decisions = [Decision(approved=said, actor="ada", reason="") for said in decisions]
    flow = run(made, of)
    assert isinstance(flow.notes[-1], TaskEnded)
    for landing in landings(flow):
        where = flow.effects.index(landing)
        assert where > 0
        came = {note.stage: note for note in flow.notes if isinstance(note, StageEnded)}
        assert all(came[name].verdict == "approved" for name in of.requires)
        assert landing.commit == came[of.stages[-1].name].commit
    status = TASK.initial
    for note in flow.notes:
        if isinstance(note, ItemMoved):
            assert TASK.after(status, note.by) == note.status
            status = note.status
    assert flow.result.succeeded == (not flow.result.stage)


# One way in which code changes

NAMED = f"""{LONG}

## Changes

- `gateway/limit.py` — a bucket for each caller
- `tests/test_limit.py` — tests of the bucket
"""


def of(flow: Driven[TaskEnded], kind: type) -> list[Any]:
    return [effect for effect in flow.effects if isinstance(effect, kind)]


def test_a_change_leases_the_files_that_the_plan_names_and_no_others() -> None:
    flow = run(world(planner=[NAMED]))
    assert flow.result.succeeded
    changing, landing = of(flow, ClaimLease)
    assert changing.paths == ("gateway/limit.py", "tests/test_limit.py")
    assert landing.paths == ("gateway/limit.py",)
    (prompt,) = [call.prompt for call in of(flow, RunAgent) if call.role == "developer"]
    assert "Change these files and no others:\n- `gateway/limit.py`\n- `tests/test_limit.py`" in prompt


def test_a_change_whose_files_nobody_names_leases_everything() -> None:
    assert [claim.paths for claim in of(run(world()), ClaimLease)] == [("**",), ("gateway/limit.py",)]


def test_a_change_outside_of_its_lease_is_rejected_like_that_of_a_phase() -> None:
    made = world(planner=[NAMED])
    made.changed["implement"] = ("gateway/limit.py", "ci.yml")
    flow = run(made)
    assert (flow.result.succeeded, flow.result.stage) == (False, "implement")
    reasons = {note.reason for note in flow.notes if isinstance(note, AttemptRejected)}
    assert reasons == {"it changed `ci.yml`, which the step does not name"}
    assert landings(flow) == []


def test_an_agent_that_is_full_hands_over_to_one_that_knows_the_plan() -> None:
    made = world(planner=[NAMED])
    made.full = 1
    flow = run(made, handoffs=1)
    assert flow.result.succeeded
    (handover,) = of(flow, HandOver)
    assert (handover.plan, handover.step) == ("task-007", "implement")
    first, second = [call for call in of(flow, RunAgent) if call.access is Access.WRITE]
    assert (first.turn, second.turn, first.lease != second.lease) == (1, 2, True)
    assert "state 1" in second.prompt
    assert "a bucket for each caller" in second.prompt
    (steps,) = [note for note in flow.notes if isinstance(note, PhasesGenerated)]
    assert [step.step for step in steps.steps] == ["implement"]


def test_attempts_without_progress_get_a_heavy_model_once() -> None:
    made = world()
    made.changed.clear()
    flow = run(made, attempts=4, escalate_after=2)
    tiers = [call.tier for call in of(flow, RunAgent) if call.access is Access.WRITE]
    assert tiers == ["", "", "heavy", ""]
    (note,) = [note for note in flow.notes if isinstance(note, TierEscalated)]
    assert (note.plan, note.step, note.attempt) == ("task-007", "implement", 3)


def test_an_agent_that_gives_nothing_uses_up_an_attempt() -> None:
    crashed = AgentEmpty("it said nothing")
    flow = run(world(developer=[crashed, crashed, LONG]))
    assert flow.result.succeeded
    assert [note.reason for note in flow.notes if isinstance(note, AttemptRejected)] == ["it said nothing"]


def test_all_that_a_task_changes_is_one_commit_on_where_it_began() -> None:
    flow = run(world(reviewer=[YES, NO, YES]))
    assert flow.result.succeeded
    assert [commit.parent for commit in of(flow, Commit)] == [BASE, BASE]
    assert [opened.commit for opened in of(flow, OpenWorktree) if opened.name.startswith("implement")] == [
        BASE,
        "commit-1",
    ]
    assert [note.commit for note in flow.notes if isinstance(note, PatchApplied)] == ["commit-2"]
