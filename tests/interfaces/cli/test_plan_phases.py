"""The commands about phases: what each prints, how each ends, and what it says to type next."""

from __future__ import annotations

from pathlib import Path

import pytest

from calls import Command, caller
from planforge.app.plans import work
from planforge.app.project import Project
from planforge.kernel.events import PhasesGenerated, StepSkipped
from rehearsals import Rehearsal, copied
from texts import BLOCKED, CLEAN, play, says, scenes


@pytest.fixture
def at(two_texts: Rehearsal, tmp_path: Path) -> Rehearsal:
    made = copied(two_texts, tmp_path)
    made.settings("[run]\nattempts = 1\n")
    play(made, scenes())
    return made


@pytest.fixture
def call(at: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(at.root, monkeypatch, capsys)


def test_phases_are_shown_before_there_are_any(call: Command) -> None:
    shown = call("plan", "phases", "1")
    assert shown.code == 0
    assert "3 phases, one after the other" in shown.out
    assert call("plan", "phases", "1", "--json").document["path"] == ""


@pytest.mark.parametrize("words", [("--keep-done",), ("--parallel",), ("--chain",), ("--unknown",)])
def test_options_that_make_no_sense_are_refused(call: Command, words: tuple[str, ...]) -> None:
    assert call("plan", "phases", "1", *words).code == 2


def test_a_failed_phase_is_retried_and_each_screen_says_what_is_next(call: Command, at: Rehearsal) -> None:
    assert call("plan", "approve", "1").code == 0
    play(at, scenes("wrong\n"))
    ran = call("plan", "run", "1")
    assert ran.code == 1
    assert "left: phase-2, phase-3\nnext: planforge plan retry plan-001 phase-2" in ran.out
    shown = call("plan", "phases", "1")
    assert "plan-001  failed" in shown.out
    assert "next: planforge plan retry plan-001 phase-2" in shown.out
    assert "[failed]" in call("plan", "show", "1").out
    assert "failed" in call("plan", "list").out
    play(at, scenes())
    assert call("plan", "retry", "1").code == 0
    done = call("plan", "run", "1")
    assert done.code == 0
    assert "next: planforge plan land plan-001" in done.out
    assert call("plan", "show", "1", "--json").document["badge"] == "verified"


@pytest.mark.dear
def test_a_failed_phase_is_left_out_only_with_a_reason(call: Command, at: Rehearsal) -> None:
    call("plan", "approve", "1")
    play(at, scenes("wrong\n"))
    call("plan", "run", "1")
    assert call("plan", "skip", "1").code == 2
    skipped = call("plan", "skip", "1", "--reason", "by hand", "--json")
    assert [phase["status"] for phase in skipped.document["phases"]] == ["done", "skipped", "pending"]
    assert call("plan", "skip", "1", "--reason", "again").code == 5
    assert call("plan", "skip-to", "1", "phase-9", "--reason", "x").code == 3
    assert call("plan", "run-phase", "1", "3").code == 0
    assert call("plan", "close", "1", "--unlanded", "--reason", "done").code == 0


@pytest.mark.dear
def test_an_edited_plan_is_blocked_with_the_remedy_and_goes_on_after_it(call: Command, at: Rehearsal) -> None:
    call("plan", "approve", "1")
    one = call("plan", "run-one", "1")
    assert one.code == 0
    assert "phase-1 done as asked; 2 phases left" in one.out
    path = next((at.root / "docs/plans").glob("plan-001-some*.md"))
    path.write_text(path.read_text().replace("`two/b.txt` — a text.", "`two/b.txt` — another text."))
    blocked = call("plan", "run", "1")
    assert blocked.code == 5
    assert "planforge plan phases plan-001 --regenerate --keep-done" in blocked.err
    assert "nothing runs until you regenerate them" in call("plan", "phases", "1").err
    again = call("plan", "phases", "1", "--regenerate", "--keep-done", "--json").document
    assert [phase["status"] for phase in again["phases"]] == ["done", "pending", "pending"]
    assert again["next"] == ["planforge plan approve plan-001"]
    assert call("plan", "run", "1").code == 5
    assert call("plan", "approve", "1").code == 0
    assert call("plan", "run", "1").code == 0


def test_a_plan_that_is_not_done_is_closed_by_an_override_alone(call: Command) -> None:
    call("plan", "approve", "1")
    refused = call("plan", "close", "1", "--reason", "enough")
    assert refused.code == 5
    assert "`plan-001` cannot be closed as done: it is APPROVED" in refused.err
    assert call("plan", "close", "1", "--reason", "enough", "--override").code == 0


def test_a_plan_in_review_is_audited_once_more_and_not_revised(call: Command, at: Rehearsal) -> None:
    path = next((at.root / "docs/plans").glob("plan-001-some*.md"))
    play(at, ((("Role: auditor",), says(BLOCKED)),))
    audited = call("plan", "audit", "1")
    assert audited.code == 6
    assert "### Review 2" in path.read_text()
    play(at, ((("Role: auditor",), says(CLEAN)),))
    assert call("plan", "audit", "plan-1").code == 0
    assert "### Review 3" in path.read_text()
    assert call("plan", "audit", "1", "--structural").code == 0
    path.write_text(path.read_text().replace("## Risks", "## Dangers"))
    assert call("plan", "audit", "1", "--structural").code == 1
    refused = call("plan", "audit", "1")
    assert (refused.code, "then run `planforge plan audit plan-001` again" in refused.err) == (5, True)
    assert call("plan", "audit", "no-such-plan.md").code == 2


def test_a_plan_that_is_approved_is_not_audited_again(call: Command) -> None:
    call("plan", "approve", "1")
    refused = call("plan", "audit", "1")
    assert refused.code == 5
    assert "`plan-001` is APPROVED" in refused.err


def test_a_plan_is_given_up_with_the_run_that_was_at_it(call: Command, at: Rehearsal) -> None:
    call("plan", "approve", "1")
    project = Project(at.root)
    run = work.begin_plan_run(project, "1")
    project.ledger.close()
    cancelled = call("plan", "cancel", "1", "--reason", "the request was withdrawn", "--json")
    assert cancelled.code == 0
    assert cancelled.document["status"] == "CANCELLED"
    (row,) = [item for item in call("status", "--json").document["runs"] if item["run"] == run]
    assert row["status"] == "failed"
    assert call("plan", "cancel", "1", "--reason", "again").code == 2


def made_of(path: Path, what: str) -> None:
    """Damage a file."""
    text = path.read_text()
    path.unlink()
    if what == "link":
        path.symlink_to("/etc/passwd")
    elif what == "directory":
        path.mkdir()
    elif what == "unwritten":
        head, changes, rest = text.partition("## Changes\n")
        path.write_text(f"{head}{changes}\n{rest[rest.index('## ') :]}")
    else:
        path.write_bytes({"empty": b"", "mark": b"\xef\xbb\xbf", "binary": b"\xff\0"}[what])


def test_phases_are_not_made_of_what_lies_outside(call: Command, at: Rehearsal) -> None:
    assert call("plan", "phases", "1", "--regenerate").code == 0
    made_of(next((at.root / "docs/plans").glob("plan-001-some*.md")), "link")
    for words in (("phases", "1", "--regenerate"), ("approve", "1"), ("run", "1")):
        said = call("plan", *words)
        assert (said.code, said.out) == (2, "")
        assert "leads out of the repository" in said.err.splitlines()[0]


@pytest.mark.parametrize("what", ["empty", "mark", "unwritten"])
def test_phases_are_not_made_of_a_plan_that_is_not_whole(call: Command, at: Rehearsal, what: str) -> None:
    assert call("plan", "phases", "1", "--regenerate").code == 0
    made_of(next((at.root / "docs/plans").glob("plan-001-some*.md")), what)
    shown = (at.root / "docs/plans/plan-001-phases.md").read_bytes()
    for words in ((), ("--keep-done",)):
        said = call("plan", "phases", "1", "--regenerate", *words)
        assert (said.code, said.out) == (call("plan", "approve", "1").code, "")
        assert said.code == 5
        assert "is not a whole plan: " in said.err.splitlines()[0]
        assert "run `planforge plan phases plan-001 --regenerate` again" in said.err
    assert len(at.events(PhasesGenerated)) == 1
    assert [each.read_bytes() for each in (at.root / "docs/plans").glob("*-phases*")] == [shown]


@pytest.mark.parametrize("what", ["empty", "binary", "directory", "link"])
def test_a_skip_that_is_refused_leaves_every_file_as_it_is(call: Command, at: Rehearsal, what: str) -> None:
    def files() -> list[tuple[str, bool, bytes]]:
        return [
            (each.name, each.is_symlink(), each.read_bytes() if each.is_file() else b"")
            for each in sorted((at.root / "docs/plans").iterdir())
        ]

    assert call("plan", "phases", "1", "--regenerate").code == 0
    for path in ("plan-001-phases.md", "plan-001-some-texts.md"):
        made_of(at.root / "docs/plans" / path, what)
        before = files()
        for words in (("skip", "1"), ("skip", "1", "phase-1"), ("skip-to", "1", "phase-9")):
            if (path, words[-1]) != ("plan-001-phases.md", "phase-1"):
                assert call("plan", *words, "--reason", "x").code in (2, 3, 5)
        assert files() == before
    assert at.events(StepSkipped) == []
