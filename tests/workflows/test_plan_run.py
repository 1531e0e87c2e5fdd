"""A plan carried out: which phases begin, what stops them, and what is left for the next run."""

from __future__ import annotations

import pytest

from driven import Driven, driven
from planforge.documents.plan import PlanStatus, render_new, with_status
from planforge.errors import NotFound, PerformerFailed, RefusedByGate
from planforge.kernel.effects import Access, KnownPhases, MarkPlan, Note, RunAgent, ShowPhases, Together
from planforge.kernel.events import (
    AuditRecorded,
    PatchApplied,
    PlanEnded,
    PlanPaused,
    PlanStarted,
    StepCompleted,
    StepFailed,
    StepRetried,
    StepStarted,
)
from planforge.kernel.evidence import Outcome
from planforge.workflows.auditing import signature
from planforge.workflows.plan_run import PlanRunRequest, PlanRunResult, plan_run
from worlds import BLOCKING, CLEAN, PLAN, World, approved, failing_agent

TEXT = render_new(
    plan="plan-007",
    title="Rate limits",
    created="2026-01-02",
    project="gateway",
    request="Stop floods",
    body=PLAN,
)
OTHER = BLOCKING.replace("no clock", "no tests of the clock")


def run(
    world: World, *, parallel: bool = True, attempts: int = 2, only: str = "", fixes: int = 0
) -> Driven[PlanRunResult]:
    request = PlanRunRequest(
        plan="plan-007",
        run="run-002",
        path="docs/plans/plan-007-rate-limits.md",
        base="base",
        today="2026-01-02",
        parallel=parallel,
        attempts=attempts,
        only=only,
        fixes=fixes,
    )
    return driven(plan_run(request), world)


def world(*audits: str, text: str = TEXT) -> World:
    return approved(World(developer=["done"], auditor=audits or [CLEAN]), text)


def started(flow: Driven[PlanRunResult]) -> list[str]:
    return [note.step for note in flow.notes if isinstance(note, StepStarted)]


def marks(flow: Driven[PlanRunResult]) -> list[str]:
    return [effect.status for effect in flow.effects if isinstance(effect, MarkPlan)]


def test_an_approved_plan_is_carried_out_and_audited() -> None:
    flow = run(world())
    assert flow.result.done
    assert started(flow) == ["phase-1", "phase-2", "phase-3"]
    assert marks(flow) == ["IMPLEMENTING", "AUDITING", "DONE"]
    assert isinstance(flow.notes[-1], PlanEnded)
    assert flow.notes[-1].succeeded


def test_a_plan_that_is_not_approved_starts_nothing() -> None:
    refused = World(developer=["done"])
    refused.text = TEXT
    with pytest.raises(PerformerFailed, match="not approved"):
        run(refused)
    assert refused.prompts == []


def test_phases_are_a_chain_unless_they_are_asked_for_in_parallel() -> None:
    chained = run(world(), parallel=False)
    bases = [note.base for note in chained.notes if isinstance(note, StepStarted)]
    assert bases == ["base", "commit-1", "commit-2"]
    together = _together(run_of(parallel=True))
    assert together.after == {"phase-3": ("phase-1", "phase-2")}
    assert _together(run_of(parallel=False)).after == {
        "phase-2": ("phase-1",),
        "phase-3": ("phase-1", "phase-2"),
    }


def run_of(*, parallel: bool) -> PlanRunRequest:
    return PlanRunRequest(
        plan="plan-007", run="r", path="p.md", base="base", today="2026-01-02", parallel=parallel
    )


def _together(request: PlanRunRequest, answers: World | None = None) -> Together[object]:
    """The phases as the run has them go at once."""
    flow, known = plan_run(request), answers or world()
    asked = flow.send(None)
    while not isinstance(asked, Together):
        asked = flow.send(None if isinstance(asked, Note) else known(asked))
    for each in (*asked.flows.values(), flow):
        each.close()
    return asked


def test_a_failed_phase_stops_those_that_depend_on_it_and_keeps_what_landed() -> None:
    failing = world()
    failing.outcomes = [Outcome.PASS, Outcome.FAIL, Outcome.FAIL]
    flow = run(failing, parallel=False)
    assert not flow.result.done
    assert flow.result.reason.startswith("phase-2: the tests failed")
    assert started(flow) == ["phase-1", "phase-2", "phase-2"]
    assert marks(flow) == ["IMPLEMENTING", "IMPLEMENTING"]
    paused = flow.notes[-1]
    assert isinstance(paused, PlanPaused)
    assert (paused.failed, paused.left) == (("phase-2",), ("phase-2", "phase-3"))
    assert paused.commit == "commit-1"


def test_a_failed_phase_does_not_stop_those_beside_it() -> None:
    failing = world()
    failing.outcomes = [Outcome.FAIL, Outcome.FAIL]
    flow = run(failing, parallel=True)
    assert started(flow) == ["phase-1", "phase-1", "phase-2"]
    assert [note.step for note in flow.notes if isinstance(note, StepCompleted)] == ["phase-2"]
    paused = flow.notes[-1]
    assert isinstance(paused, PlanPaused)
    assert paused.left == ("phase-1", "phase-3")


def test_a_plan_edited_in_the_middle_begins_no_other_phase() -> None:
    edited = world()
    edited.edits = {3: TEXT.replace("token bucket", "leaky bucket")}
    flow = run(edited, parallel=False)
    assert not flow.result.done
    assert flow.result.voided
    assert started(flow) == ["phase-1"]
    assert "edited after it was approved" in flow.result.reason


def test_a_change_of_status_is_not_an_edit() -> None:
    marked = world()
    marked.edits = {2: with_status(TEXT, PlanStatus.IMPLEMENTING)}
    assert run(marked).result.done


def test_what_is_done_or_was_left_out_is_not_begun_again() -> None:
    known = world()
    known.phases = KnownPhases(statuses={"phase-1": "done", "phase-2": "skipped"})
    flow = run(known)
    assert started(flow) == ["phase-3"]
    begun = next(note for note in flow.notes if isinstance(note, PlanStarted))
    assert (begun.kept, begun.skipped) == (("phase-1",), ("phase-2",))


def test_a_plan_with_nothing_left_is_done_without_asking_anybody() -> None:
    known = world()
    known.phases = KnownPhases(statuses={"phase-1": "done", "phase-2": "skipped", "phase-3": "skipped"})
    flow = run(known)
    assert flow.result.done
    assert known.prompts == []
    assert isinstance(flow.notes[-1], PlanEnded)


def test_what_was_interrupted_comes_before_what_failed_and_that_before_the_rest() -> None:
    text = TEXT.replace("- `gateway/clock.py`", "- `other/third.py` — a third.\n- `gateway/clock.py`")
    known = world(text=text)
    known.changed = {"phase-3": ("other/third.py",)}
    known.phases = KnownPhases(
        statuses={"phase-2": "failed", "phase-3": "in-progress"}, problems={"phase-2": "it broke"}
    )
    together = _together(run_of(parallel=True), known)
    assert list(together.flows) == ["phase-3", "phase-2", "phase-1", "phase-4"]


def test_one_phase_alone_is_the_next_and_the_plan_waits_for_the_others() -> None:
    flow = run(world(), only="one")
    assert flow.result.done
    assert started(flow) == ["phase-1"]
    assert flow.result.reason == "phase-1 done as asked; 2 phases left"
    assert isinstance(flow.notes[-1], PlanPaused)
    assert flow.notes[-1].failed == ()


def test_a_phase_is_run_by_name() -> None:
    assert started(run(world(), only="phase-2")) == ["phase-2"]
    assert started(run(world(), only="2")) == ["phase-2"]


def test_a_phase_that_waits_for_others_is_not_run_by_name() -> None:
    with pytest.raises(RefusedByGate, match="`phase-3` waits for `phase-1`, `phase-2`"):
        run(world(), only="phase-3")
    with pytest.raises(NotFound, match="there is no phase `phase-9`"):
        run(world(), only="phase-9")


def test_a_phase_that_failed_is_tried_again_knowing_why_and_what_changed() -> None:
    known = world()
    known.phases = KnownPhases(
        statuses={"phase-1": "failed"},
        problems={"phase-1": "the tests failed (3 of 9)"},
        changed={"phase-1": ("gateway/limit.py",)},
    )
    flow = run(known)
    retried = [note for note in flow.notes if isinstance(note, StepRetried)]
    assert [(note.step, note.changed) for note in retried] == [("phase-1", ("gateway/limit.py",))]
    assert "the tests failed (3 of 9)" in known.prompts[0][1]


@pytest.mark.parametrize(
    ("kind", "role", "access"),
    [
        ("read", "developer", Access.READ),
        ("implement", "developer", Access.WRITE),
        ("audit", "auditor", Access.READ),
    ],
)
def test_the_tools_of_a_phase_are_those_of_its_kind(kind: str, role: str, access: Access) -> None:
    text = TEXT
    for path in ("gateway/limit.py", "gateway/clock.py", "tests/test_limit.py", "tests/test_clock.py"):
        text = text.replace(f"`{path}`", "something")
    known = approved(World(developer=["limit.py is where it happens", "done"], auditor=[CLEAN]), text)
    known.changed = {"phase-2": ("gateway/limit.py",)}
    flow = run(known)
    assert flow.result.done
    asked = [effect for effect in flow.effects if isinstance(effect, RunAgent)]
    at = ["read", "implement", "audit"].index(kind)
    assert (asked[at].role, asked[at].access) == (role, access)
    if kind == "implement":
        assert "limit.py is where it happens" in asked[at].prompt


def test_the_phases_file_is_shown_when_the_run_begins_and_after_each_phase() -> None:
    flow = run(world(), parallel=False)
    assert len([effect for effect in flow.effects if isinstance(effect, ShowPhases)]) == 4


def test_what_cannot_be_done_for_one_phase_fails_that_phase_alone() -> None:
    broken = approved(World(developer=["done"], auditor=[failing_agent("no answer")]), TEXT)
    flow = run(broken)
    failed = [note for note in flow.notes if isinstance(note, StepFailed)]
    assert [(note.step, note.reason) for note in failed] == [("phase-3", "no answer")]
    assert flow.result.reason == "phase-3: no answer"
    assert isinstance(flow.notes[-1], PlanPaused)


# The audit of the finished work, and its fixes


def audits(flow: Driven[PlanRunResult]) -> list[tuple[int, str]]:
    return [(note.round, note.decision) for note in flow.notes if isinstance(note, AuditRecorded)]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (BLOCKING, "phase-3: the audit says revision"),
        ("Looks good to me!", "phase-3: agent `scripted`: the answer states no verdict"),
    ],
)
def test_the_final_audit_passes_only_on_a_clear_verdict(said: str, reason: str) -> None:
    flow = run(world(said))
    assert not flow.result.done
    assert flow.result.reason.startswith(reason)
    assert not any(isinstance(note, PlanEnded) for note in flow.notes)


def test_what_blocks_is_mended_audited_again_and_lands_as_the_audit_passes() -> None:
    mended = world(BLOCKING, CLEAN)
    mended.changed["phase-3"] = ("gateway/clock.py",)
    flow = run(mended, fixes=3)
    assert flow.result.done
    assert audits(flow) == [(1, "continue"), (2, "done")]
    landed = [note for note in flow.notes if isinstance(note, PatchApplied)]
    assert [note.step for note in landed] == ["phase-1", "phase-2", "phase-3"]
    assert "no clock" in mended.prompts[-2][1]
    assert mended.prompts[-2][0] == "developer"


def test_nothing_that_was_mended_lands_if_no_audit_passes() -> None:
    mended = world(BLOCKING, OTHER)
    mended.changed["phase-3"] = ("gateway/clock.py",)
    flow = run(mended, fixes=1)
    assert not flow.result.done
    assert "what was mended is kept, and has not landed" in flow.result.reason
    assert [note.step for note in flow.notes if isinstance(note, PatchApplied)] == ["phase-1", "phase-2"]


def test_the_same_failure_after_a_fix_that_changed_the_same_files_ends_the_loop() -> None:
    stuck = world(BLOCKING)
    stuck.changed["phase-3"] = ("gateway/clock.py",)
    flow = run(stuck, fixes=5)
    assert audits(flow) == [(1, "continue"), (2, "continue"), (3, "escalate")]
    assert "the same failure 2 times in a row" in flow.result.reason


def test_a_fix_that_goes_back_to_what_was_audited_before_is_not_audited_again() -> None:
    undone = world(BLOCKING, OTHER, BLOCKING)
    undone.changed["phase-3"] = ("gateway/clock.py",)
    undone.trees["commit-5"] = "tree of commit-3"
    flow = run(undone, parallel=False, fixes=5)
    assert audits(flow) == [(1, "continue"), (2, "continue"), (3, "continue")]
    assert "the developer went back to version 1, which was judged before" in flow.result.reason


def test_a_fix_that_is_refused_uses_up_a_fix_and_the_next_knows_why() -> None:
    refused = world(BLOCKING, CLEAN)
    refused.changed["phase-3"] = ("gateway/clock.py",)
    refused.outcomes = [Outcome.PASS, Outcome.PASS, Outcome.FAIL]
    flow = run(refused, parallel=False, fixes=2)
    assert flow.result.done
    fixes = [prompt for role, prompt in refused.prompts if "Fix: " in prompt and role == "developer"]
    assert len(fixes) == 2
    assert "the tests failed" in fixes[1]
    assert "last try" not in fixes[0]
    assert "last try" in fixes[1]


def test_fixes_that_are_all_refused_end_the_audit_with_the_reason() -> None:
    refused = world(BLOCKING)
    refused.changed["phase-3"] = ("elsewhere.py",)
    flow = run(refused, fixes=2)
    assert not flow.result.done
    assert audits(flow) == [(1, "continue")]
    assert "no fix was taken, the last because it changed `elsewhere.py`" in flow.result.reason


def test_a_signature_is_of_the_words_and_the_files_and_not_of_how_they_are_set() -> None:
    assert signature("No  Clock\n", ("b", "a")) == signature("no clock", ("a", "b"))
    assert signature("no clock", ("a",)) != signature("no clock", ("b",))
    assert signature("no clock", ()) != signature("no tests", ())
    assert len(signature("", ())) == 16
