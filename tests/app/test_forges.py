"""Forges within this process: who is told what, and what becomes of a plan whose forge fails or is ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from planforge.app import cancellation, forges, runs
from planforge.app.decisions import questions
from planforge.app.history.replays import replayed
from planforge.app.items import plan_rounds, plans
from planforge.app.plans import creation, pages
from planforge.app.project import Project
from planforge.documents.imports import Imported
from planforge.documents.template import BUILT_IN
from planforge.errors import InvalidDocument, InvalidInput, Locked, NeedsPerson, RefusedByGate
from planforge.kernel.events import CancelRequested, ContextComposed, RunEnded
from planforge.kernel.locks import held
from rehearsals import Rehearsal, copied
from texts import BLOCKED, CLEAN, PLAN, drive, forged, play, says

RULE = "No new dependencies, ever."


@pytest.fixture(scope="module")
def forged_once(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return forged(tmp_path_factory.mktemp("forged"))


@pytest.fixture
def at(forged_once: Rehearsal, tmp_path: Path) -> Rehearsal:
    return copied(forged_once, tmp_path / "here")


@pytest.fixture
def project(at: Rehearsal) -> Iterator[Project]:
    found = Project.find(at.root)
    yield found
    found.ledger.close()


def file_of(project: Project) -> Path:
    return project.root / plans.row(project, "1").path


# What is told to whom


def test_what_every_plan_has_to_keep_to_is_told_to_all_three_and_is_on_record(
    at: Rehearsal, project: Project
) -> None:
    (at.root / ".context").mkdir()
    (at.root / ".context" / "project.md").write_text(RULE)
    play(
        at,
        (
            (("Role: drafter", RULE), says(PLAN)),
            (("Role: auditor", RULE, "Round: 1"), says(BLOCKED)),
            (("Role: auditor", RULE), says(CLEAN)),
            (("Role: reviser", RULE), says(PLAN.replace("None that", "Few that"))),
        ),
    )
    run = forges.begin(project, "More texts").run
    assert drive(project, run).succeeded
    composed = [item.event for item in project.ledger.stream(run) if isinstance(item.event, ContextComposed)]
    assert [event.role for event in composed] == ["drafter", "auditor", "reviser", "auditor"]
    for event in composed:
        (part,) = [part for part in event.parts if part.name == "constraints"]
        assert [source.path for source in part.sources] == [".context/project.md"]
    assert replayed(project.ledger, run).agrees


def test_constraints_keep_to_their_budget_and_say_what_was_left_out(at: Rehearsal, project: Project) -> None:
    (at.root / ".context").mkdir()
    (at.root / ".context" / "project.md").write_text(f"{RULE}\n" * 1000)
    play(at, ((("Role: auditor", RULE), says(CLEAN)),))
    run = forges.begin(project, "1").run
    assert drive(project, run).succeeded
    (event,) = [item.event for item in project.ledger.stream(run) if isinstance(item.event, ContextComposed)]
    (part,) = [part for part in event.parts if part.name == "constraints"]
    assert 1000 < part.tokens <= 2010
    assert "lines, about" in part.left_out


def test_constraints_that_cannot_be_read_are_refused_before_anything_is_begun(
    at: Rehearsal, project: Project
) -> None:
    (at.root / ".context").mkdir()
    (at.root / ".context" / "project.md").symlink_to("/etc/hostname")
    with pytest.raises(InvalidInput, match=r"cannot read `\.context/project\.md`, the constraints"):
        forges.begin(project, "More texts")
    assert len(runs.rows(project)) == 1


def test_what_was_raised_in_an_earlier_run_is_told_to_the_auditor_of_the_next(
    at: Rehearsal, project: Project
) -> None:
    play(at, ((("Role: auditor",), says(BLOCKED)),))
    assert drive(project, forges.begin(project, "1", cap=1).run).exit_code == 6
    play(at, ((("Role: auditor", "- blocking: it is vague", "Round: 3"), says(CLEAN)),))
    run = forges.begin(project, "1").run
    assert drive(project, run).succeeded
    assert replayed(project.ledger, run).agrees


def test_the_rounds_of_a_plan_show_what_a_person_made_of_it_between_two_runs(
    at: Rehearsal, project: Project
) -> None:
    file_of(project).write_text(file_of(project).read_text().replace("a text.", "a longer text."))
    play(at, ((("Role: auditor", "a longer text."), says(CLEAN)),))
    assert drive(project, forges.begin(project, "1").run).succeeded
    found = plan_rounds.diff(project, "1", "1", "2")
    assert "+- `one/a.txt` — a longer text." in found.lines
    assert not pages.view(project, "1").edited


# What becomes of a plan whose forge fails


def test_a_plan_that_nobody_has_drafted_is_drafted_when_it_is_taken_up(
    at: Rehearsal, project: Project
) -> None:
    play(at, ((("Role: drafter",), says("Sure!")),))
    first = forges.begin(project, "More texts").run
    with pytest.raises(NeedsPerson):
        drive(project, first)
    with pytest.raises(RefusedByGate, match="has an unfinished run, `run-002`"):
        forges.begin(project, "2")
    questions.answer(project, "1", "give up", actor="Ada")
    assert not drive(project, first).succeeded
    assert plans.row(project, "2").status == "DRAFT"

    play(at, ((("Role: drafter", "More texts"), says(PLAN)), (("Role: auditor",), says(CLEAN))))
    assert drive(project, forges.begin(project, "2").run).succeeded
    assert plans.row(project, "2").status == "REVIEW"


def test_what_was_given_with_a_request_is_told_again_when_the_plan_is_drafted_after_all(
    at: Rehearsal, project: Project
) -> None:
    play(at, ((("Role: drafter",), says("Sure!")),))
    told = Imported(title="notes", source="notes.md", text="twelve of them")
    first = forges.begin(project, "More texts", context=told).run
    with pytest.raises(NeedsPerson):
        drive(project, first)
    questions.answer(project, "1", "give up", actor="Ada")
    assert not drive(project, first).succeeded

    play(at, ((("Role: drafter", "twelve of them"), says(PLAN)), (("Role: auditor",), says(CLEAN))))
    assert drive(project, forges.begin(project, "2").run).succeeded
    assert "> twelve of them" in plans.text(project, plans.row(project, "2"))


def test_a_plan_that_was_made_and_never_written_is_drafted_into_its_file(
    at: Rehearsal, project: Project
) -> None:
    told = Imported(title="notes", source="notes.md", text="twelve of them")
    creation.create(project, "More texts", context=told)
    with pytest.raises(RefusedByGate, match="is empty or only a placeholder"):
        forges.audit(project, "2")
    play(at, ((("Role: drafter", "twelve of them"), says(PLAN)), (("Role: auditor",), says(CLEAN))))
    run = forges.begin(project, "2").run
    assert drive(project, run).succeeded
    text = plans.text(project, plans.row(project, "2"))
    assert "**Task:** ws-002\n" in text
    assert "> twelve of them" in text
    assert "The project has a few texts more than before." in text
    assert plans.row(project, "2").status == "REVIEW"
    assert replayed(project.ledger, run).agrees


def test_a_template_of_the_project_is_what_a_forged_plan_begins_as(at: Rehearsal, project: Project) -> None:
    own = BUILT_IN.replace("**Project:**", "**Team:** blue\n**Project:**")
    path = at.root / "docs/plans/.plan-template.md"
    path.write_text(own.replace("## Testing", "## Rollout\n\n_In which order._\n\n## Testing"))
    drafted = f"{PLAN}\n## Rollout\n\nOne after the other.\n"
    play(at, ((("Role: drafter", "_In which order._"), says(drafted)), (("Role: auditor",), says(CLEAN))))
    run = forges.begin(project, "More texts").run
    assert drive(project, run).succeeded
    text = plans.text(project, plans.row(project, "2"))
    assert text.startswith("# Plan: More texts\n\n**ID:** plan-002\n**Task:** ws-002\n")
    assert "**Team:** blue\n" in text
    assert "> More texts" in text
    assert "One after the other." in text
    assert replayed(project.ledger, run).agrees

    path.write_text("nothing of the kind\n")
    with pytest.raises(InvalidDocument, match=r"`docs/plans/.plan-template.md`: "):
        forges.begin(project, "Still more")
    assert len(plans.rows(project)) == 2


@pytest.mark.parametrize(("name", "status"), [("1", "REVIEW"), ("More texts", "DRAFT")])
def test_a_forge_that_fails_leaves_the_status_that_the_plan_had(
    at: Rehearsal, project: Project, name: str, status: str
) -> None:
    at.settings('[sandbox]\nlevel = "processes"\n')
    strays: list[dict[str, object]] = [{"write": {"path": "planted.txt", "text": "x"}}, {"say": CLEAN}]
    play(at, ((("Role: auditor",), strays), (("Role: drafter",), says(PLAN))))
    ended = drive(project, forges.begin(project, name).run)
    assert (ended.succeeded, "only reads" in ended.reason) == (False, True)
    plan = plans.rows(project)[-1]
    assert plan.status == status
    assert f"**Status:** {status}" in plans.text(project, plan)


def test_a_forge_that_fails_undoes_a_status_that_somebody_wrote_into_the_file(
    at: Rehearsal, project: Project
) -> None:
    file_of(project).write_text(
        file_of(project).read_text().replace("**Status:** REVIEW", "**Status:** DONE")
    )
    at.settings('[sandbox]\nlevel = "processes"\n')
    play(at, ((("Role: auditor",), [{"write": {"path": "x.txt", "text": "x"}}, {"say": CLEAN}]),))
    assert not drive(project, forges.begin(project, "1").run).succeeded
    assert "**Status:** REVIEW" in file_of(project).read_text()


# One forge for each plan


def test_of_two_that_begin_at_the_same_time_one_is_refused(at: Rehearsal, project: Project) -> None:
    play(at, ((("Role: auditor",), says(CLEAN)),))
    refused: list[str] = []
    both = threading.Barrier(2)

    def begin() -> None:
        mine = Project.find(at.root)
        both.wait()
        try:
            forges.begin(mine, "1")
        except RefusedByGate as error:
            refused.append(error.message)
        mine.ledger.close()

    threads = [threading.Thread(target=begin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["`plan-001` has an unfinished run, `run-002` (interrupted)"]
    assert len(runs.rows(project, unfinished=True)) == 1


# Ending one


def test_a_request_that_nobody_heard_is_honoured_by_whoever_takes_the_run_up(
    at: Rehearsal, project: Project
) -> None:
    play(at, ((("Role: auditor",), says(CLEAN)),))
    run = forges.begin(project, "1").run
    request = CancelRequested(run=run, actor="Ada", reason="never mind", with_plan=True)
    project.ledger.append(cancellation.requests(run), [request], expected=None)
    ended = drive(project, run)
    assert (ended.exit_code, ended.reason) == (130, "cancelled by Ada: never mind")
    assert plans.row(project, "1").status == "CANCELLED"
    assert replayed(project.ledger, run).agrees


def test_whoever_asks_for_an_end_is_told_if_nobody_answers_and_the_request_stands(
    at: Rehearsal, project: Project
) -> None:
    run = forges.begin(project, "1").run
    other = Project.find(at.root)
    with held(project.lock(run), "it"), pytest.raises(Locked, match="was asked to end 0 s ago"):
        cancellation.cancel(other, run, reason="no", actor="Ada", patience=0.3)
    other.ledger.close()
    assert drive(project, run).exit_code == 130
    assert plans.row(project, "1").status == "REVIEW"


def test_a_run_whose_driver_dies_while_it_is_asked_is_ended_by_who_asks(
    at: Rehearsal, project: Project
) -> None:
    run = forges.begin(project, "1").run
    holding, asked = threading.Event(), threading.Event()

    def hold() -> None:
        with held(project.lock(run), "it"):
            holding.set()
            asked.wait(10)

    dies = threading.Thread(target=hold)
    dies.start()
    holding.wait()
    other = Project.find(at.root)
    other.ledger.listeners.append(lambda _: asked.set())
    ended = cancellation.cancel(other, run, reason="no", actor="Ada")
    dies.join()
    other.ledger.close()
    assert ended.reason == "cancelled by Ada: no"
    (end,) = [item.event for item in project.ledger.stream(run) if isinstance(item.event, RunEnded)]
    assert end.reason == ended.reason


def test_a_run_that_came_to_its_own_end_is_not_said_to_be_cancelled(at: Rehearsal, project: Project) -> None:
    with pytest.raises(RefusedByGate, match="has ended already"):
        cancellation.cancel(project, "run-001", reason="no", actor="Ada")


# Signs of life


def test_the_plan_s_own_heartbeat_comes_before_that_of_the_settings(at: Rehearsal, project: Project) -> None:
    play(at, ((("Role: auditor",), says(CLEAN)),))
    run = forges.begin(project, "1").run
    assert (forges.pace(project, run).heartbeat, forges.pace(project, run).progress) == (45.0, 3.0)
    text = file_of(project).read_text()
    for value, seconds in (("2m", 120.0), ("off", 0.0), ("200", 1.0)):
        file_of(project).write_text(text.replace("**Status:**", f"**Heartbeat:** {value}\n**Status:**", 1))
        assert forges.pace(project, run).heartbeat == seconds
    file_of(project).write_text(text.replace("**Status:**", "**Heartbeat:** soon\n**Status:**", 1))
    found = forges.pace(project, run)
    assert (found.heartbeat, "`soon` is no heartbeat; it is 45 s" in found.problem) == (45.0, True)
    assert drive(project, run).succeeded


def test_a_new_plan_has_the_heartbeat_of_the_settings(at: Rehearsal, project: Project) -> None:
    at.settings("[forge]\nheartbeat_seconds = 0\nprogress_seconds = 1\n")
    pace = forges.pace(project, forges.begin_forge(project, "More texts"))
    assert (pace.heartbeat, pace.progress) == (0.0, 1.0)
