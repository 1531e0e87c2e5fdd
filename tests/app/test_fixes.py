"""Small changes without a plan: begun, made, measured, accepted, done again, given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from decided import of
from fixing import ADA, REQUEST, fixed, prepared
from planforge.actions import TEXT, Action
from planforge.app import cancellation, landing, overview, runs
from planforge.app.decisions import approvals, gates, statuses
from planforge.app.history import replays
from planforge.app.items import plans
from planforge.app.landing import queue
from planforge.app.plans import fixes, pages, work
from planforge.app.project import Project
from planforge.app.upkeep import recovery
from planforge.errors import InvalidInput, NeedsPerson, NotFound, RefusedByGate, StaleView
from planforge.interfaces.cli.typed import text
from planforge.kernel import events
from planforge.workflows.fix import FixRequest
from planforge.workspace.launch import trees
from rehearsals import Actions, Rehearsal
from repositories import git
from texts import drive, play, says, writes

LARGE = writes("one/a.txt", "one/b.txt", "one/c.txt", "one/d.txt")
DEVELOPER = ("Role: developer",)


def in_branch(at: Rehearsal, fix: str = "fix-001") -> list[str]:
    return git(at.root, "diff", "--name-only", "main", f"planforge/{fix}").splitlines()


def test_a_small_change_is_made_with_evidence_and_waits_to_land(tmp_path: Path) -> None:
    at = prepared(tmp_path)
    run, code = fixed(at)
    assert (run, code) == ("run-001", 0)
    assert in_branch(at) == ["one/a.txt"]
    assert not (at.root / "docs").exists()
    (ended,) = at.events(events.PlanEnded)
    assert ended.succeeded
    assert ended.reason == "2 of 2 tests passed (1 file, 1 line)"
    (approved,) = at.events(events.DecisionMade)
    (used,) = at.events(events.DecisionUsed)
    (applied,) = at.events(events.PatchApplied)
    assert (approved.actor, used.run) == (ADA, run)
    assert approved.content == used.content == applied.content
    assert at.events(events.LeaseGranted)
    assert at.events(events.LeaseReleased)
    (passed,) = at.events(events.VerifyOk)
    assert passed.evidence.tree == git(at.root, "rev-parse", "planforge/fix-001^{tree}")
    project = Project(at.root)
    assert plans.row(project, "fix-1").status == "DONE"
    assert [(row.plan, row.badge) for row in plans.listed(project)] == [("fix-001", "")]
    assert overview.overview(project).next == (Action("land"),)


def test_it_lands_through_the_queue_like_a_plan(tmp_path: Path) -> None:
    at = prepared(tmp_path)
    fixed(at)
    project = Project(at.root)
    preview = landing.preview(project, ["fix-1"])
    assert [item.plan for item in preview.ready] == ["fix-001"]
    run = landing.begin(project, ["fix-001"])
    assert run is not None
    assert drive(project, run).succeeded
    assert git(at.root, "show", "planforge/landed/main:one/a.txt") == "right"
    assert landing.begin(project) is None
    (landed,) = at.events(events.PlanLanded)
    assert landed.plan == "fix-001"


def test_words_that_do_not_sound_small_are_refused_with_the_command_for_a_plan(tmp_path: Path) -> None:
    at = prepared(tmp_path)
    project = Project(at.root)
    with pytest.raises(RefusedByGate) as refused:
        fixes.begin(project, "Rewrite everything, it's old", actor=ADA)
    assert refused.value.message == (
        "that does not sound small: it says “Rewrite everything”, which is seldom small"
    )
    assert """planforge forge 'Rewrite everything, it'"'"'s old'""" in text(refused.value.hint)
    assert runs.rows(project) == []
    assert plans.rows(project) == []


def test_they_are_taken_anyway_and_that_is_on_record(tmp_path: Path) -> None:
    at = prepared(tmp_path)
    run, code = fixed(at, "Rewrite everything", anyway=True)
    assert code == 0
    assert runs.request(Project(at.root), run, FixRequest).anyway == (
        "it says “Rewrite everything”, which is seldom small",
    )
    assert "begun although it says “Rewrite everything”" in at.events(events.RunEnded)[-1].reason


def test_a_change_that_is_not_small_is_kept_and_does_not_land(tmp_path: Path) -> None:
    at = prepared(tmp_path, (DEVELOPER, LARGE))
    run, code = fixed(at)
    assert code == 6
    (ended,) = at.events(events.PlanEnded)
    assert not ended.succeeded
    assert ended.reason.startswith("it is not small: it changes 4 files (`one/a.txt`, `one/b.txt`, ")
    assert git(at.root, "rev-parse", f"refs/planforge/archive/{run}/phase-1-1") == ended.commit
    project = Project(at.root)
    assert landing.begin(project) is None
    (held,) = landing.preview(project, ["fix-001"]).held
    assert held.reason == f"it is not done ({ended.reason})"
    assert overview.overview(project).next == (Action("fix", accept="fix-001", reason=TEXT),)
    forge, accept = fixes.offered(project, plans.row(project, "fix-001"))
    (request,) = forge.items
    assert request.startswith(f"{REQUEST}\n\nFound when fix-001 was tried: it is not small")
    assert accept == Action("fix", accept="fix-001", reason=TEXT)


def test_a_person_accepts_it_exactly_as_it_is(tmp_path: Path) -> None:
    at = prepared(tmp_path, (DEVELOPER, LARGE))
    fixed(at)
    tip = git(at.root, "rev-parse", "planforge/fix-001")
    project = Project(at.root)
    with pytest.raises(InvalidInput, match="needs a reason"):
        fixes.accept(project, "fix-001", actor=ADA, reason=" ")
    run = fixes.accept(project, "fix-001", actor=ADA, reason="four texts of one line")
    assert drive(project, run).exit_code == 0
    assert git(at.root, "rev-parse", "planforge/fix-001") == tip
    ended = at.events(events.PlanEnded)[-1]
    assert ended.reason == f"accepted although it is not small: {ADA}: four texts of one line"
    assert len(at.events(events.PatchProposed)) == 1
    with pytest.raises(RefusedByGate, match="no change that passed and waits to be accepted"):
        fixes.accept(project, "fix-001", actor=ADA, reason="again")
    assert [item.plan for item in landing.preview(project).ready] == ["fix-001"]


def test_what_is_on_the_branch_by_another_hand_is_not_accepted(tmp_path: Path) -> None:
    at = prepared(tmp_path, (DEVELOPER, LARGE))
    fixed(at)
    project = Project(at.root)
    run = fixes.accept(project, "fix-001", actor=ADA, reason="fine")
    git(at.root, "update-ref", "refs/heads/planforge/fix-001", "main")
    assert drive(project, run).exit_code == 1
    assert "any more" in at.events(events.PlanEnded)[-1].reason
    assert [item.reason for item in landing.preview(project, ["fix-001"]).held]


@pytest.mark.dear
def test_a_fix_whose_attempts_are_used_up_is_done_again_in_its_place(tmp_path: Path) -> None:
    at = prepared(tmp_path, (DEVELOPER, writes("one/a.txt", text="wrong\n")))
    _, code = fixed(at)
    assert code == 1
    project = Project(at.root)
    assert overview.overview(project).next == (Action("fix", again="fix-001"),)
    with pytest.raises(RefusedByGate, match="no change that passed"):
        fixes.accept(project, "fix-001", actor=ADA, reason="never mind")
    play(at, ((DEVELOPER, writes("one/a.txt")),))
    run = fixes.again(project, "fix-1", actor=ADA)
    assert drive(project, run).exit_code == 0
    assert {row.plan: row.status for row in plans.rows(project)} == {
        "fix-001": "CANCELLED",
        "fix-002": "DONE",
    }
    (moved,) = at.events(events.ItemMoved)
    assert moved.reason == "it is done again as fix-002"
    with pytest.raises(RefusedByGate, match="is done"):
        fixes.again(project, "fix-002", actor=ADA)
    with pytest.raises(RefusedByGate, match="CANCELLED"):
        fixes.again(project, "fix-001", actor=ADA)


@pytest.mark.dear
def test_a_fix_that_conflicts_at_landing_is_done_again_where_it_did(tmp_path: Path) -> None:
    at = prepared(tmp_path)
    fixed(at)
    (at.root / "one/a.txt").write_text("other\n")
    git(at.root, "add", "one/a.txt")
    git(at.root, "commit", "-qm", "Mine")
    project = Project(at.root)
    run = landing.begin(project)
    assert run is not None
    assert drive(project, run).exit_code == 1
    assert landing.report(project, run).next == [Action("fix", again="fix-001")]
    assert overview.overview(project).next[0] == Action("fix", again="fix-001")
    assert drive(project, fixes.again(project, "fix-001", actor=ADA)).exit_code == 0
    again = landing.begin(project)
    assert again is not None
    assert drive(project, again).succeeded
    assert git(at.root, "show", "planforge/landed/main:one/a.txt") == "right"


def test_a_protected_path_waits_for_a_person_as_in_a_plan(tmp_path: Path) -> None:
    manifest: Actions = writes("requirements.txt", text="requests\n")
    at = prepared(tmp_path, (DEVELOPER, manifest))
    project = Project(at.root)
    run = fixes.begin(project, "Use requests", actor=ADA)
    with pytest.raises(NeedsPerson):
        drive(project, run)
    (raised,) = of(at.events(events.DecisionAsked), "gate")
    assert raised.plan == "fix-001"
    assert any("requirements.txt" in reason for reason in raised.reasons)
    assert in_branch(at) == []
    ended = cancellation.cancel(project, run, reason="not now", actor=ADA)
    assert not ended.succeeded
    assert overview.overview(project).next[-1] == Action("fix", again="fix-001")
    statuses.move(project, "fix-001", "cancel", actor=ADA, reason="never")
    assert plans.row(project, "fix-001").status == "CANCELLED"


def test_only_what_was_named_may_be_changed(tmp_path: Path) -> None:
    at = prepared(tmp_path, (DEVELOPER, writes("one/b.txt")))
    project = Project(at.root)
    run = fixes.begin(project, REQUEST, actor=ADA, files=["one/a.txt"])
    assert drive(project, run).exit_code == 1
    assert "one/b.txt" in at.events(events.AttemptRejected)[-1].reason
    assert at.events(events.LeaseGranted)[0].paths == ("one/a.txt",)
    with pytest.raises(InvalidInput):
        fixes.begin(project, REQUEST, actor=ADA, files=["../elsewhere"])


def test_an_agent_that_says_it_is_done_and_changes_nothing_is_not_believed(tmp_path: Path) -> None:
    at = prepared(tmp_path, (DEVELOPER, says("All done.")))
    _, code = fixed(at)
    assert code == 1
    assert at.events(events.PatchApplied) == []


def test_agents_ask_for_no_fix_and_approve_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = prepared(tmp_path)
    project = Project(at.root)
    with pytest.raises(RefusedByGate, match="name of an agent"):
        fixes.begin(project, REQUEST, actor="claude")
    monkeypatch.setenv(trees.COOKIE, "abc")
    with pytest.raises(RefusedByGate, match="started by Planforge"):
        fixes.begin(project, REQUEST, actor=ADA)
    assert plans.rows(project) == []


def test_a_recorded_fix_replays_and_what_it_left_can_be_recovered(tmp_path: Path) -> None:
    at = prepared(tmp_path, (DEVELOPER, LARGE))
    run, _ = fixed(at)
    project = Project(at.root)
    assert replays.replayed(project.ledger, run).difference is None
    found = recovery.archived(project, plan="fix-1")
    assert {item.run for item in found.work} == {run}
    assert queue.story(project, plans.row(project, "fix-001")).ended is not None


def test_two_fixes_have_two_numbers_and_a_plan_has_its_own(tmp_path: Path) -> None:
    at = prepared(tmp_path)
    fixed(at)
    play(at, ((DEVELOPER, writes("one/b.txt")),))
    fixed(at, "Say it in b.txt too")
    project = Project(at.root)
    assert [row.plan for row in plans.rows(project)] == ["fix-001", "fix-002"]
    assert work.new_plan(project, "A plan", "A plan").item == "plan-001"


def test_what_is_no_fix_is_told_so(tmp_path: Path) -> None:
    at = prepared(tmp_path)
    project = Project(at.root)
    with pytest.raises(InvalidInput, match="is not a fix"):
        fixes.accept(project, "plan-001", actor=ADA, reason="why not")
    with pytest.raises(NotFound, match="there is no `fix-007`"):
        fixes.again(project, "fix-7", actor=ADA)
    with pytest.raises(InvalidInput, match="say what is to be changed"):
        fixes.begin(project, "  ", actor=ADA)
    run = fixes.begin(project, REQUEST, actor=ADA)
    with pytest.raises(RefusedByGate, match=f"has an unfinished run, `{run}`"):
        fixes.again(project, "fix-001", actor=ADA)
    with pytest.raises(NotFound, match="`fix-001` has no plan file"):
        pages.view(project, "fix-001")
    with pytest.raises(StaleView):
        approvals.approve(project, "fix-001", actor=ADA)


def test_a_protected_change_lands_on_the_branch_once_a_person_has_let_it_through(tmp_path: Path) -> None:
    at = prepared(tmp_path, (DEVELOPER, writes("requirements.txt", text="requests\n")))
    project = Project(at.root)
    run = fixes.begin(project, "Use requests", actor=ADA)
    with pytest.raises(NeedsPerson):
        drive(project, run)
    gates.approve(project, "1", actor=ADA)
    assert runs.to_resume(project, None) == [run]
    assert drive(project, run).exit_code == 0
    assert in_branch(at) == ["requirements.txt"]
    assert len(at.events(events.PatchProposed)) == 1
