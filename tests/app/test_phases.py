"""Phases in the ledger: made, stale, made anew, left out, tried again; on real git with rehearsed agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from planforge.app import cancellation, landing, runs
from planforge.app.decisions import approvals, statuses
from planforge.app.history import proof_checks, proofs
from planforge.app.history.replays import replayed
from planforge.app.items import plans
from planforge.app.overview import Overview, overview, report
from planforge.app.plans import phases, work
from planforge.app.plans.phases import PhasesView
from planforge.app.project import Project
from planforge.errors import InvalidInput, PhasesStale, RefusedByGate
from planforge.interfaces.cli.typed import line, text
from planforge.kernel import events
from planforge.kernel.replay.tape import Tape
from rehearsals import Rehearsal, copied
from repositories import git
from texts import BLOCKED, CLEAN, Scene, drive, forged, name_files, play, says, writes

FILES = ("one/a.txt", "two/b.txt", "three/c.txt")
AUDIT: Scene = (("Role: auditor", "Step: "), says(CLEAN))


def scenes(**broken: str) -> tuple[Scene, ...]:
    """Developers who write their text, some of them a wrong one."""
    found: list[Scene] = []
    for number, path in enumerate(FILES, 1):
        text = f"{broken[f'phase_{number}']}\n" if f"phase_{number}" in broken else "right\n"
        found.append((("Role: developer", path), writes(path, text=text)))
    return (*found, AUDIT)


def typed(view: Overview | PhasesView) -> list[str]:
    """What can be typed next, as a person does."""
    return list(map(line, view.next))


class Texts:
    """A plan about three texts, approved, and what is done with it."""

    def __init__(self, at: Rehearsal) -> None:
        self.at = at
        name_files(at, *FILES)
        self.project = Project(at.root)
        play(at, scenes())
        self.approve()

    def approve(self) -> None:
        approvals.approve(self.project, "1", actor="Ada")

    def run(self, *, parallel: bool = False, only: str = "") -> int:
        return drive(
            self.project, work.begin_plan_run(self.project, "1", parallel=parallel, only=only)
        ).exit_code

    def retry(self, phase: str | None = None) -> int:
        return drive(self.project, work.begin_retry(self.project, "1", phase)).exit_code

    def edit(self, old: str, new: str) -> None:
        path = self.project.root / plans.row(self.project, "1").path
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    @property
    def statuses(self) -> list[str]:
        return [step.status for step in plans.steps(self.project, "plan-001")]

    @property
    def status(self) -> str:
        return plans.row(self.project, "1").status

    @property
    def in_file(self) -> str:
        path = self.project.root / plans.row(self.project, "1").path
        return path.read_text().partition("**Status:** ")[2].split("\n")[0]

    @property
    def file(self) -> Path:
        return self.project.root / "docs/plans/plan-001-phases.md"

    def recorded(self, kind: type[events.Event]) -> list[events.Event]:
        return [item.event for item in self.project.ledger.since() if isinstance(item.event, kind)]

    def landed(self) -> list[str]:
        return git(self.at.root, "log", "--format=%s", "--reverse", "main..planforge/plan-001").splitlines()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return forged(tmp_path_factory.mktemp("texts"))


@pytest.fixture
def texts(one: Rehearsal, tmp_path: Path) -> Iterator[Texts]:
    made = Texts(copied(one, tmp_path))
    yield made
    made.project.ledger.close()


def test_a_plan_runs_to_its_end_and_each_phase_is_a_commit_of_its_own_files(texts: Texts) -> None:
    assert texts.run() == 0
    assert texts.statuses == ["done"] * 4
    assert (texts.status, texts.in_file) == ("DONE", "DONE")
    assert texts.landed() == [
        "plan-001 phase-1: Implement one/a.txt",
        "plan-001 phase-2: Implement two/b.txt",
        "plan-001 phase-3: Implement three/c.txt",
    ]
    changed = git(texts.at.root, "show", "--format=", "--name-only", "planforge/plan-001~1")
    assert changed.split() == ["two/b.txt"]
    assert phases.view(texts.project, "1").badge == "verified"


def test_a_phase_that_fails_stops_the_plan_and_the_same_yes_holds_for_going_on(texts: Texts) -> None:
    play(texts.at, scenes(phase_2="wrong"))
    assert texts.run() == 1
    assert texts.statuses == ["done", "failed", "pending", "pending"]
    assert (texts.status, texts.in_file) == ("IMPLEMENTING", "IMPLEMENTING")
    view = phases.view(texts.project, "1")
    assert view.badge == "failed"
    assert typed(view) == [
        "planforge plan retry plan-001 phase-2",
        "planforge plan skip plan-001 phase-2 --reason TEXT",
    ]
    assert typed(overview(texts.project)) == typed(view)
    play(texts.at, scenes())
    assert texts.retry() == 0
    assert typed(overview(texts.project)) == ["planforge plan run plan-001"]
    assert texts.statuses == ["done", "done", "pending", "pending"]
    assert texts.run() == 0
    assert texts.status == "DONE"
    landing_run = landing.begin(texts.project)
    assert landing_run is not None
    assert drive(texts.project, landing_run).exit_code == 0
    every = [row.run for row in runs.rows(texts.project)]
    assert len(every) == 5
    for run in every:  # also those that go on under a yes that another one used, and the one about a branch
        _, checked = proof_checks.checked(proofs.made(texts.project, run))
        assert checked.faults == ()
    used = [event for event in texts.recorded(events.DecisionUsed) if isinstance(event, events.DecisionUsed)]
    assert [(event.run, event.continues) for event in used] == [
        ("run-002", ""),
        ("run-003", "run-002"),
        ("run-004", "run-003"),
    ]
    for run in ("run-002", "run-003", "run-004"):
        assert replayed(texts.project.ledger, run).difference is None


@pytest.mark.dear
def test_a_phase_that_has_not_failed_is_not_tried_again(texts: Texts) -> None:
    play(texts.at, scenes(phase_2="wrong"))
    texts.run()
    with pytest.raises(RefusedByGate, match="`phase-1` is done already"):
        texts.retry("phase-1")
    with pytest.raises(RefusedByGate, match="`phase-3` waits for `phase-2`"):
        texts.retry("3")


@pytest.mark.dear
def test_the_next_agent_is_told_why_the_phase_had_failed(texts: Texts) -> None:
    told = ("two/b.txt", "Attempt: 1", "why the attempt before this one was not taken")
    play(texts.at, ((("Role: developer", *told), writes("two/b.txt")), *scenes(phase_2="wrong")))
    assert texts.run() == 1
    assert texts.retry() == 0
    retried = texts.recorded(events.StepRetried)
    assert [event.step for event in retried if isinstance(event, events.StepRetried)] == ["phase-2"]


@pytest.mark.dear
def test_one_phase_after_the_other_by_hand(texts: Texts) -> None:
    assert texts.run(only="one") == 0
    assert texts.statuses == ["done", "pending", "pending", "pending"]
    with pytest.raises(RefusedByGate, match="waits for `phase-2`"):
        texts.run(only="phase-3")
    assert texts.run(only="2") == 0
    assert texts.run() == 0
    assert texts.status == "DONE"


# Left out


@pytest.mark.dear
def test_a_failed_phase_is_left_out_with_a_reason_and_the_others_go_on(texts: Texts) -> None:
    play(texts.at, scenes(phase_2="wrong"))
    texts.run()
    with pytest.raises(InvalidInput, match="say why"):
        phases.skip(texts.project, "1", actor="Ada", reason=" ")
    view = phases.skip(texts.project, "1", actor="Ada", reason="by hand")
    assert [phase.status for phase in view.phases] == ["done", "skipped", "pending", "pending"]
    assert texts.run() == 0
    assert texts.status == "DONE"
    assert texts.landed() == [
        "plan-001 phase-1: Implement one/a.txt",
        "plan-001 phase-3: Implement three/c.txt",
    ]


def test_nothing_is_left_out_if_nothing_failed_and_none_is_named(texts: Texts) -> None:
    texts.run(only="one")
    with pytest.raises(RefusedByGate, match="no phase is in progress or has failed"):
        phases.skip(texts.project, "1", actor="Ada", reason="x")
    assert phases.skip(texts.project, "1", "3", actor="Ada", reason="x").phases[2].status == "skipped"
    with pytest.raises(RefusedByGate, match="`phase-3` is skipped already"):
        phases.skip(texts.project, "1", "phase-3", actor="Ada", reason="x")


@pytest.mark.dear
def test_a_run_reports_what_was_left_out_before_it(texts: Texts) -> None:
    texts.run(only="one")
    phases.skip(texts.project, "1", "phase-2", actor="Ada", reason="x")
    texts.run(only="one")
    told = report.of_run(texts.project, "run-003").steps
    assert [step.status for step in told] == ["done", "skipped", "done", "pending"]


def test_a_file_that_a_crash_left_behind_the_ledger_is_written_when_the_skip_is_tried_again(
    texts: Texts,
) -> None:
    texts.run(only="one")
    before = texts.file.read_bytes()
    phases.skip(texts.project, "1", "phase-3", actor="Ada", reason="x")
    texts.file.write_bytes(before)  # as if the process had died between the fact and the file
    with pytest.raises(RefusedByGate, match="`phase-3` is skipped already"):
        phases.skip(texts.project, "1", "phase-3", actor="Ada", reason="x")
    assert "**Status:** skipped" in texts.file.read_text()


@pytest.mark.dear
@pytest.mark.parametrize("keep_done", [True, False])
def test_phases_that_are_made_anew_twice_with_nothing_between_are_made_once(
    texts: Texts, keep_done: bool
) -> None:
    texts.run(only="one")
    for _ in range(2):
        phases.generate(texts.project, "1", keep_done=keep_done, actor="Ada")
    assert len(texts.recorded(events.PhasesGenerated)) == 2, "those of the run, and these"
    texts.run(only="one")
    phases.generate(texts.project, "1", keep_done=keep_done, actor="Ada")
    assert len(texts.recorded(events.PhasesGenerated)) == 3, "a phase had come further"


@pytest.mark.dear
def test_all_before_a_phase_is_left_out_to_come_to_it(texts: Texts) -> None:
    texts.run(only="one")
    view = phases.skip_to(texts.project, "1", "phase-3", actor="Ada", reason="the first is enough")
    assert [phase.status for phase in view.phases] == ["done", "skipped", "pending", "pending"]
    assert texts.run(only="phase-3") == 0


def test_a_plan_whose_phases_were_all_left_out_is_closed_by_an_override_alone(texts: Texts) -> None:
    texts.run(only="one")
    phases.skip_to(texts.project, "1", "phase-4", actor="Ada", reason="x")
    phases.skip(texts.project, "1", "phase-4", actor="Ada", reason="x")
    assert texts.run() == 0
    assert texts.status == "DONE"
    with pytest.raises(RefusedByGate, match="cannot be closed as done: its evidence is skipped"):
        statuses.move(texts.project, "1", "close", actor="Ada", reason="done with it")
    assert texts.status == "DONE"
    statuses.move(texts.project, "1", "close", actor="Ada", reason="x", override=True, without_landing=True)
    assert texts.status == "CLOSED"
    (moved,) = texts.recorded(events.ItemMoved)
    assert isinstance(moved, events.ItemMoved)
    assert moved.override


@pytest.mark.dear
def test_a_plan_with_evidence_is_closed_without_an_override(texts: Texts) -> None:
    texts.run()
    statuses.move(texts.project, "1", "close", actor="Ada", reason="enough", without_landing=True)
    (moved,) = texts.recorded(events.ItemMoved)
    assert isinstance(moved, events.ItemMoved)
    assert (moved.override, texts.status) == (False, "CLOSED")


# Edited, stale, made anew


def test_a_plan_edited_between_two_runs_is_blocked_with_the_remedy(texts: Texts) -> None:
    texts.run(only="one")
    texts.edit("`two/b.txt` — a text.", "`two/b.txt` — another text.")
    assert phases.view(texts.project, "1").stale
    with pytest.raises(PhasesStale) as refused:
        texts.run()
    remedy = "planforge plan phases plan-001 --regenerate"
    assert typed(overview(texts.project)) == [f"{remedy} --keep-done", remedy]
    assert f"`{remedy}`" in text(refused.value.hint)
    assert f"`{remedy} --keep-done`" in text(refused.value.hint)
    with pytest.raises(PhasesStale):
        phases.skip(texts.project, "1", "2", actor="Ada", reason="x")
    texts.approve()
    with pytest.raises(PhasesStale):
        texts.run()


@pytest.mark.dear
def test_keep_done_keeps_what_says_the_same_up_to_what_was_edited(texts: Texts) -> None:
    play(texts.at, scenes(phase_3="wrong"))
    texts.run()
    texts.edit("`two/b.txt` — a text.", "`two/b.txt` — another text.")
    view = phases.generate(texts.project, "1", keep_done=True, actor="Ada")
    assert [phase.status for phase in view.phases] == ["done", "pending", "pending", "pending"]
    with pytest.raises(RefusedByGate, match="not approved as it is now"):
        texts.run()
    assert typed(overview(texts.project)) == typed(view) == ["planforge plan approve plan-001"]
    texts.approve()
    assert typed(overview(texts.project)) == ["planforge plan run plan-001"]
    play(
        texts.at,
        (
            (("Role: developer", "two/b.txt"), writes("two/b.txt", text="right again\n")),
            *scenes(),
        ),
    )
    assert texts.run() == 0
    assert texts.landed() == [
        "plan-001 phase-1: Implement one/a.txt",
        "plan-001 phase-2: Implement two/b.txt",
        "plan-001 phase-2: Implement two/b.txt",
        "plan-001 phase-3: Implement three/c.txt",
    ]


def test_a_phase_that_moved_is_kept_under_its_new_name(texts: Texts) -> None:
    phases.generate(texts.project, "1", parallel=True, actor="Ada")
    texts.run(only="phase-2")
    texts.edit("- `one/a.txt` — a text.\n", "- `zero/z.txt` — a text.\n- `one/a.txt` — a text.\n")
    view = phases.generate(texts.project, "1", parallel=True, keep_done=True, actor="Ada")
    assert [(phase.title, phase.status) for phase in view.phases][2] == ("Implement two/b.txt", "done")
    made = texts.recorded(events.PhasesGenerated)[-1]
    assert isinstance(made, events.PhasesGenerated)
    assert [(step.step, step.was) for step in made.kept] == [("phase-3", "phase-2")]


def test_phases_that_are_made_anew_are_side_by_side_if_they_were_unless_somebody_says_otherwise(
    texts: Texts,
) -> None:
    assert typed(phases.view(texts.project, "1")) == ["planforge plan run plan-001"]
    assert phases.generate(texts.project, "1", parallel=True, actor="Ada").parallel
    assert phases.generate(texts.project, "1", actor="Ada").parallel
    assert not phases.generate(texts.project, "1", parallel=False, actor="Ada").parallel
    assert not phases.generate(texts.project, "1", actor="Ada").parallel


def test_without_keep_done_all_is_to_be_done_again_and_the_commits_stay(texts: Texts) -> None:
    texts.run(only="one")
    view = phases.generate(texts.project, "1", actor="Ada")
    assert [phase.status for phase in view.phases] == ["pending"] * 4
    assert texts.landed() == ["plan-001 phase-1: Implement one/a.txt"]


@pytest.mark.dear
def test_phases_side_by_side_are_cut_anew_from_a_chain_and_keep_what_is_done(texts: Texts) -> None:
    texts.run(only="one")
    assert texts.run(parallel=True) == 0
    generated = texts.recorded(events.PhasesGenerated)
    assert [getattr(event, "parallel", None) for event in generated] == [False, True]
    assert len(texts.landed()) == 3


@pytest.mark.dear
def test_what_is_done_but_not_on_the_branch_any_more_is_done_again(texts: Texts) -> None:
    texts.run(only="one")
    base = git(texts.at.root, "rev-parse", "main").strip()
    git(texts.at.root, "update-ref", "refs/heads/planforge/plan-001", base)
    assert texts.run() == 0
    assert len(texts.landed()) == 3


def test_phases_are_not_made_anew_while_a_run_is_at_the_plan(texts: Texts) -> None:
    work.begin_plan_run(texts.project, "1")
    with pytest.raises(RefusedByGate, match="has an unfinished run, `run-002`"):
        phases.generate(texts.project, "1", actor="Ada")
    with pytest.raises(RefusedByGate, match="has an unfinished run, `run-002`"):
        texts.run()
    with pytest.raises(RefusedByGate, match="has an unfinished run, `run-002`"):
        phases.skip(texts.project, "1", "1", actor="Ada", reason="x")


# The file


@pytest.mark.dear
def test_the_file_shows_what_the_ledger_has(texts: Texts) -> None:
    play(texts.at, scenes(phase_2="wrong"))
    texts.run()
    text = texts.file.read_text()
    assert [line for line in text.splitlines() if line.startswith("**Status:**")] == [
        "**Status:** done",
        "**Status:** failed",
        "**Status:** pending",
        "**Status:** pending",
    ]
    commit = plans.steps(texts.project, "plan-001")[0].landed
    assert f"**Commit:** `{commit}`" in text
    assert "**Error:** the tests failed" in text
    assert "**Modified:** `one/a.txt`" in text
    assert "**Evidence:** pass: 2 of 2 tests passed" in text
    assert "**Evidence:** fail: 1 of 3 tests failed" in text
    assert phases.view(texts.project, "1").edited == ()


@pytest.mark.dear
def test_a_file_that_somebody_edited_is_told_apart_put_aside_and_believed_by_nobody(texts: Texts) -> None:
    play(texts.at, scenes(phase_2="wrong"))
    texts.run()
    texts.file.write_text(texts.file.read_text().replace("**Status:** failed", "**Status:** done"))
    (difference,) = phases.view(texts.project, "1").edited
    assert "phase-2" in difference
    assert "done" in difference
    assert "failed" in difference
    with pytest.raises(RefusedByGate, match="waits for `phase-2`"):
        texts.run(only="phase-3")
    phases.skip(texts.project, "1", actor="Ada", reason="x")
    (aside,) = texts.file.parent.glob("plan-001-phases.edited-*.md")
    assert "**Status:** done" in aside.read_text()
    assert "**Status:** skipped" in texts.file.read_text()


@pytest.mark.dear
def test_a_file_that_is_gone_is_said_and_written_again(texts: Texts) -> None:
    texts.run(only="one")
    texts.file.unlink()
    assert "is gone" in phases.view(texts.project, "1").edited[0]
    texts.run(only="one")
    assert texts.file.exists()


# The audit and its fixes


@pytest.mark.dear
def test_what_the_audit_finds_is_mended_and_lands_when_it_passes(texts: Texts) -> None:
    play(
        texts.at,
        (
            (("Role: auditor", "Step: phase-4", "Round: 2"), says(CLEAN)),
            (("Role: auditor", "Step: phase-4"), says(BLOCKED)),
            (("Role: developer", "Fix: 1"), writes("two/b.txt", text="better\n")),
            *scenes(),
        ),
    )
    assert texts.run() == 0
    assert texts.landed()[-1] == "plan-001 phase-4: Post-implementation audit"
    assert git(texts.at.root, "show", "planforge/plan-001:two/b.txt") == "better"
    told = report.of_run(texts.project, "run-002").steps[3]
    assert [(each.attempt, each.accepted) for each in told.attempts] == [(2, True)], "the fix that was taken"
    assert replayed(texts.project.ledger, "run-002").difference is None


@pytest.mark.dear
def test_what_cannot_be_mended_lands_nothing_of_it_and_is_kept(texts: Texts) -> None:
    play(
        texts.at,
        (
            (("Role: auditor", "Step: phase-4"), says(BLOCKED)),
            (("Role: developer", "Fix: "), writes("two/b.txt", text="better\n")),
            *scenes(),
        ),
    )
    assert texts.run() == 6
    assert len(texts.landed()) == 3
    assert (texts.status, texts.in_file) == ("IMPLEMENTING", "IMPLEMENTING")
    kept = git(texts.at.root, "for-each-ref", "--format=%(refname)", "refs/planforge/archive/run-002")
    assert "phase-4-2" in kept
    assert "has not landed" in plans.steps(texts.project, "plan-001")[3].reason
    assert replayed(texts.project.ledger, "run-002").difference is None
    assert Tape(texts.project.ledger, "run-002").started.flow == "plan_run"


def test_an_approval_that_was_used_does_not_hold_for_other_content(texts: Texts) -> None:
    texts.run(only="one")
    texts.edit("`two/b.txt` — a text.", "`two/b.txt` — another text.")
    phases.generate(texts.project, "1", actor="Ada")
    with pytest.raises(RefusedByGate, match="not approved as it is now"):
        texts.run()


def test_a_status_line_that_a_crash_left_behind_the_end_of_a_run_is_written_when_it_is_resumed(
    texts: Texts,
) -> None:
    texts.run(only="one")
    run = work.begin_plan_run(texts.project, "1")
    texts.edit("`two/b.txt` — a text.", "`two/b.txt` — another text.")
    # As if a process had found that it cannot go on, said so, and died before it wrote the file.
    left = statuses.left_open(texts.project, "plan-001", run, "it cannot go on")
    texts.project.ledger.append(run, left, expected=texts.project.ledger.version(run))
    assert (texts.status, texts.in_file) == ("REVIEW", "IMPLEMENTING")
    assert not drive(texts.project, run).succeeded
    assert (texts.status, texts.in_file) == ("REVIEW", "REVIEW")


@pytest.mark.dear
def test_a_run_that_a_person_ended_needs_a_new_approval(texts: Texts) -> None:

    texts.run(only="one")
    run = work.begin_plan_run(texts.project, "1")
    cancellation.cancel(texts.project, run, reason="enough", actor="Ada")
    assert texts.status == "REVIEW"
    with pytest.raises(RefusedByGate, match="not approved as it is now"):
        texts.run()
    texts.approve()
    assert texts.run() == 0
    assert len(texts.landed()) == 3


def test_a_name_that_the_repository_has_a_file_of_is_a_phase_of_its_own_and_replays(texts: Texts) -> None:
    (texts.at.root / "deploy").write_text("old\n")
    git(texts.at.root, "add", "deploy")
    git(texts.at.root, "commit", "-m", "A file without an extension")
    items = "\n".join(f"- `{name}` — a text." for name in FILES)
    texts.edit(items, "- `deploy` — say more.\n- `pytest` — runs as before.")
    play(texts.at, ((("Role: developer", "deploy"), writes("deploy")), AUDIT))
    texts.approve()
    assert texts.run() == 0
    assert texts.landed() == ["plan-001 phase-1: Implement deploy"]
    assert replayed(texts.project.ledger, "run-002").difference is None
    git(texts.at.root, "rm", "-q", "deploy")
    git(texts.at.root, "commit", "-m", "It is gone")
    assert [phase.files for phase in phases.view(texts.project, "1").phases] == [("deploy",), ("deploy",)]


def does_nothing() -> tuple[Scene, ...]:
    return ((("Role: developer",), says("It is all there.")), AUDIT)


@pytest.mark.dear
def test_phases_made_anew_are_done_by_the_evidence_on_what_has_landed_for_them(texts: Texts) -> None:
    assert texts.run() == 0
    landed = texts.landed()
    before = [step.landed for step in plans.steps(texts.project, "plan-001")]
    phases.generate(texts.project, "1")
    texts.approve()
    play(texts.at, does_nothing())
    assert texts.run() == 0
    assert texts.statuses == ["done"] * 4
    assert texts.landed() == landed
    assert [step.landed for step in plans.steps(texts.project, "plan-001")] == before
    found = [event.found for event in texts.recorded(events.StepCompleted)[4:] if hasattr(event, "found")]
    assert found == before
    assert replayed(texts.project.ledger, "run-003").difference is None


@pytest.mark.dear
def test_a_phase_that_says_something_else_than_what_landed_is_not_done_by_changing_nothing(
    texts: Texts,
) -> None:
    assert texts.run() == 0
    texts.edit("- `two/b.txt` — a text.", "- `two/b.txt` — a longer text.")
    phases.generate(texts.project, "1", keep_done=True)
    texts.approve()
    play(texts.at, does_nothing())
    assert texts.run() == 1
    assert texts.statuses == ["done", "failed", "pending", "pending"]
    assert "changed nothing" in plans.steps(texts.project, "plan-001")[1].reason
    play(
        texts.at, ((("Role: developer", "two/b.txt"), writes("two/b.txt", text="longer\n")), *does_nothing())
    )
    assert texts.run() == 0
    assert texts.statuses == ["done"] * 4  # the third was not kept, since it waits for the second
    texts.edit("- `two/b.txt` — a longer text.", "- `two/b.txt` — a text.")
    phases.generate(texts.project, "1", keep_done=True)
    texts.approve()
    play(texts.at, does_nothing())
    assert texts.run() == 1, "what had landed first is not what is there"


@pytest.mark.dear
def test_a_phase_whose_work_a_person_took_back_on_the_branch_is_not_done_by_changing_nothing(
    texts: Texts, tmp_path: Path
) -> None:
    assert texts.run() == 0
    git(texts.at.root, "worktree", "add", "-q", str(tmp_path / "other"), "planforge/plan-001")
    git(tmp_path / "other", "revert", "--no-edit", "HEAD")
    git(texts.at.root, "worktree", "remove", str(tmp_path / "other"))
    phases.generate(texts.project, "1")
    texts.approve()
    play(texts.at, does_nothing())
    assert texts.run() == 1
    assert texts.statuses == ["done", "done", "failed", "pending"]
    assert "changed nothing" in plans.steps(texts.project, "plan-001")[2].reason
    assert replayed(texts.project.ledger, "run-003").difference is None
