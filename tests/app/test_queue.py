"""Who may land, and in which order, from a real ledger and real branches."""

from __future__ import annotations

from pathlib import Path

import pytest

from landings import Field, evidence, with_line
from planforge.app.items import plans
from planforge.app.landing import queue
from planforge.kernel import events
from planforge.kernel.effects import Queue
from planforge.kernel.evidence import Evidence, Outcome
from repositories import commit, git


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path / "field")


def found(field: Field, *names: str, onto: str = "main") -> Queue:
    return queue.queue(field.project, onto, git(field.root, "rev-parse", onto), names)


def order(field: Field, *names: str) -> list[str]:
    return [item.plan for item in found(field, *names).ready]


def held(field: Field, *names: str) -> dict[str, str]:
    return {item.plan: item.reason for item in found(field, *names).held}


def test_finished_plans_are_queued_in_the_order_in_which_they_were_done(field: Field) -> None:
    one, two = field.plan({"a.txt": "x\n"}), field.plan({"a.txt": "y\n"}, {"b.txt": "y\n"})
    ready = found(field).ready
    assert [item.plan for item in ready] == [one, two]
    assert (ready[1].commit, ready[1].branch) == (field.tip(two), f"planforge/{two}")
    assert [(step.step, step.files) for step in ready[1].steps] == [
        ("phase-1", ("a.txt",)),
        ("phase-2", ("b.txt",)),
    ]
    assert order(field, two) == [two]


def test_a_plan_that_is_built_on_another_comes_after_it_although_it_is_older(field: Field) -> None:
    base = field.commit({"new.txt": "x\n"}, field.git.commit_of("HEAD"), "made later")
    first = field.plan({"b.txt": "y\n"}, base=base)
    # What it is built on turns out to be the work of a plan that ended later.
    second = field.plan({"c.txt": "z\n"})
    run = field.new_run()
    applied = events.PatchApplied(
        plan=second,
        step="phase-1",
        attempt=2,
        content="c" * 64,
        scope=(),
        branch=f"planforge/{second}",
        commit=base,
        tree=field.git.tree_of(base),
        parent=field.git.commit_of("HEAD"),
    )
    field.say((run, applied))
    assert order(field) == [second, first]
    assert found(field).ready[1].after == (second,)


def test_a_plan_that_has_landed_is_not_queued_again(field: Field) -> None:
    one, two = field.plan({"a.txt": "x\n"}), field.plan({"b.txt": "y\n"})
    git(field.root, "merge", "--quiet", "--no-edit", f"planforge/{one}")
    assert (order(field), found(field).landed) == ([two], (one,))


def test_what_is_not_done_is_told_only_to_those_who_ask(field: Field) -> None:
    one = field.plan({"a.txt": "x\n"}, ended=False)
    two = field.plan({"a.txt": "x\n"})
    end = events.PlanEnded(
        plan=two, run="run-009", succeeded=False, reason="it blocks", branch=f"planforge/{two}", commit="c"
    )
    field.say(("run-009", end))
    made = events.ItemOpened(item="plan-009", title="", request="", path="p.md")
    field.say(("plan-009", made))
    assert (order(field), held(field)) == ([], {})
    assert held(field, one, two, "plan-009") == {
        one: "it is being carried out",
        two: "it is not done (it blocks)",
        "plan-009": "it has not been carried out",
    }


def test_a_commit_that_planforge_did_not_make_is_named_and_nothing_of_it_lands(field: Field) -> None:
    plan = field.plan({"a.txt": "x\n"})
    strange = field.commit({"b.txt": "mine\n"}, field.tip(plan), "A quick fix")
    later = field.commit({"b.txt": "more\n"}, strange, "Another")
    git(field.root, "update-ref", f"refs/heads/planforge/{plan}", later)
    assert order(field) == []
    said = f"`planforge/{plan}` has `{strange[:12]}` (A quick fix), which Planforge did not make"
    assert held(field) == {plan: said}


def test_such_a_commit_beneath_the_plans_own_is_named_as_well(field: Field) -> None:
    plan = field.plan({"a.txt": "x\n"})
    strange = field.commit({"b.txt": "mine\n"}, field.tip(plan), "A quick fix")
    top = field.commit({"c.txt": "z\n"}, strange, "phase-2")
    about = {"plan": plan, "run": "run-001", "branch": f"planforge/{plan}"}
    field.say(("run-001", events.PlanEnded(**about, succeeded=True, reason="", commit=top)))
    applied = events.PatchApplied(
        plan=plan,
        step="phase-2",
        attempt=1,
        content="c" * 64,
        scope=(),
        branch=f"planforge/{plan}",
        commit=top,
        tree=field.git.tree_of(top),
        parent=strange,
    )
    passed = events.VerifyOk(plan=plan, step="phase-2", attempt=1, evidence=_passed(field.git.tree_of(top)))
    field.say(("run-001", applied), ("run-001", passed))
    git(field.root, "update-ref", f"refs/heads/planforge/{plan}", top)
    assert "(A quick fix), which Planforge did not make" in held(field)[plan]


def _passed(tree: str) -> Evidence:
    return evidence(Outcome.PASS, "", tree)


def test_a_branch_that_was_set_back_or_removed_is_told(field: Field) -> None:
    one, two = field.plan({"a.txt": "x\n"}, {"b.txt": "y\n"}), field.plan({"a.txt": "x\n"})
    ended = field.tip(one)
    git(field.root, "update-ref", f"refs/heads/planforge/{one}", f"{ended}~1")
    git(field.root, "update-ref", "-d", f"refs/heads/planforge/{two}")
    assert held(field) == {
        one: f"`planforge/{one}` is not at `{ended[:12]}` any more, where it ended",
        two: f"its branch `planforge/{two}` is gone",
    }


def test_what_no_person_approved_or_no_check_passed_does_not_land(field: Field) -> None:
    one = field.plan({"a.txt": "x\n"}, approved=False)
    two = field.plan({"a.txt": "x\n"}, passed=False)
    assert held(field) == {
        one: f"`{field.tip(one)[:12]}` ({one} phase-1) was made under no approval that is on record",
        two: f"`{field.tip(two)[:12]}` ({two} phase-1) has no evidence that passed",
    }


def test_a_plan_does_not_bring_along_what_the_branch_does_not_have(field: Field) -> None:
    git(field.root, "checkout", "--quiet", "-b", "feature")
    theirs = commit(field.root, {"f.txt": "x\n"}, "Half a feature")
    plan = field.plan({"a.txt": "x\n"})
    said = f"it is built on `{theirs[:12]}` (Half a feature), which `main` does not have"
    assert held(field) == {plan: said}
    assert [item.plan for item in found(field, onto="feature").ready] == [plan]


def test_a_plan_that_was_rescoped_since_does_not_land(field: Field) -> None:
    plan = field.plan({"a.txt": "x\n"})
    field.say((plan, events.PlanRescoped(plan=plan, revision=2, reason="too large", steps=())))
    assert held(field) == {plan: "it was rescoped after it was carried out"}


def test_a_plan_that_was_opened_again_lands_only_if_somebody_names_it(field: Field) -> None:
    plan = field.plan({"a.txt": "x\n"})
    field.say(("run-009", events.StepReopened(plan=plan, step="phase-1", reason="it conflicts")))
    assert (order(field), held(field)) == ([], {})
    assert order(field, plan) == [plan]
    row = plans.row(field.project, plan)
    assert (row.status, queue.story(field.project, row).reopened) == ("REVIEW", "it conflicts")


# Work that is still under way


def test_the_newest_commit_of_each_step_under_way_is_looked_at(field: Field) -> None:
    done = field.plan({"a.txt": with_line(0, "done")})
    plan = field.plan({"b.txt": with_line(0, "landed")}, ended=False)
    run, base = f"run-{field.runs:03d}", field.git.commit_of("HEAD")
    started = next(event for event in field.recorded(events.PlanStarted) if event.plan == plan)
    more = tuple(
        events.PlannedStep(step=name, title="", kind="implement", files=(), depends_on=())
        for name in ("phase-1", "phase-2", "phase-3", "phase-20")
    )
    field.say(
        (
            run,
            events.PlanStarted(
                **{**{f: getattr(started, f) for f in started.__struct_fields__}, "steps": more}
            ),
        )
    )
    made = {}
    for label in ("phase-2-1", "phase-2-2", "phase-2-10.left", "phase-20-1", "phase-3.left", "caught-up"):
        made[label] = field.commit({"c.txt": label}, base, label)
        git(field.root, "update-ref", f"refs/planforge/archive/{run}/{label}", made[label])
    items = {item.name: item.commit for item in queue.work(field.project, base)}
    assert items == {
        done: field.tip(done),
        plan: field.tip(plan),
        f"{plan}/phase-2": made["phase-2-10.left"],
        f"{plan}/phase-20": made["phase-20-1"],
    }
