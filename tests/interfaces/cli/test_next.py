"""What a screen says to type next can be typed, and leads on: for plans edited, stopped, done, closed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from calls import Command, Said, caller
from planforge.app import forges
from planforge.app.plans import work
from planforge.app.project import Project
from planforge.kernel.events import AuditRecorded
from rehearsals import Rehearsal, copied
from repositories import git
from texts import BLOCKED, CLEAN, play, says, scenes
from texts import PLAN as NEW

PLAN = "docs/plans/plan-001-some-texts.md"
IN_REVIEW = ["planforge plan show plan-001", "planforge plan approve plan-001"]
CLEAN_AUDIT = ((("Role: auditor",), says(CLEAN)),)


@pytest.fixture
def at(two_texts: Rehearsal, tmp_path: Path) -> Rehearsal:
    made = copied(two_texts, tmp_path)
    made.settings("[run]\nattempts = 1\n")
    play(made, scenes())
    return made


@pytest.fixture
def call(at: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(at.root, monkeypatch, capsys)


def edit(at: Rehearsal) -> None:
    path = at.root / PLAN
    path.write_text(path.read_text().replace("`two/b.txt` — a text.", "`two/b.txt` — a longer text."))


def following(said: Said) -> list[str]:
    """The commands that a screen says to type next."""
    return [line.removeprefix("next: ") for line in said.out.splitlines() if line.startswith("next: ")]


def suggested(said: Said) -> list[str]:
    """The commands in a hint."""
    hint = said.err.rpartition("hint: ")[2]
    return [each for each in hint.split("`")[1::2] if each.startswith("planforge ")]


def typed(call: Command, command: str) -> Said:
    """What comes of typing a command, with a reason where one is asked for."""
    return call(*shlex.split(command.removeprefix("planforge ")))


@pytest.mark.dear
def test_a_plan_that_was_edited_after_its_phases_were_made_is_led_through_making_them_anew(
    call: Command, at: Rehearsal
) -> None:
    call("plan", "phases", "1", "--regenerate")
    edit(at)
    said = call("plan", "approve", "1")
    assert following(said)[0] == "planforge plan phases plan-001 --regenerate --keep-done"
    assert "planforge plan run" not in call("status").out
    assert "planforge plan phases plan-001 --regenerate --keep-done" in call("status").out
    again = typed(call, following(said)[0])
    assert following(again) == ["planforge plan run plan-001"]
    assert typed(call, following(again)[0]).code == 0


def test_a_plan_that_was_edited_after_its_approval_is_said_to_be_so(call: Command, at: Rehearsal) -> None:
    assert call("plan", "approve", "1").code == 0
    void = "APPROVED, but edited since, so its approval is void: "
    (waiting,) = call("status", "--json").document["waiting"]
    assert waiting["about"].startswith("APPROVED: ")
    edit(at)
    (waiting,) = call("status", "--json").document["waiting"]
    assert waiting["about"].startswith(void)
    assert void.split(",")[1] in " ".join(call("status").out.split())
    assert typed(call, waiting["command"]).code == 0
    (waiting,) = call("status", "--json").document["waiting"]
    assert waiting["about"].startswith("APPROVED: ")


def test_a_phases_file_that_nobody_touched_is_not_said_to_be_edited_when_the_plan_was(
    call: Command, at: Rehearsal
) -> None:
    call("plan", "phases", "1", "--regenerate")
    edit(at)
    shown = call("plan", "phases", "1")
    assert "the plan has changed since its phases were generated" in shown.err
    assert "edited text" not in shown.err
    path = at.root / "docs/plans/plan-001-phases.md"
    path.write_text(path.read_text().replace("pending", "done", 1))
    assert "plan-001-phases.md: " in call("plan", "phases", "1").err


@pytest.mark.dear
@pytest.mark.parametrize("command", ["run", "run-one", "retry"])
def test_a_plan_that_is_done_is_landed_and_not_approved_once_more(call: Command, command: str) -> None:
    call("plan", "approve", "1")
    assert call("plan", "run", "1").code == 0
    said = call("plan", command, "1")
    assert said.code == 5
    assert "`plan-001` is DONE" in said.err
    assert suggested(said) == ["planforge plan land plan-001"]
    assert typed(call, suggested(said)[0]).code == 0
    assert "nothing to land" in call("plan", "land", "1").out
    assert following(call("plan", "phases", "1")) == ["planforge land --update-checkout"]


@pytest.mark.dear
def test_a_plan_that_is_done_and_cannot_be_cancelled_is_landed_before_the_checkout_is_updated(
    call: Command,
) -> None:
    call("plan", "approve", "1")
    assert call("plan", "run", "1").code == 0
    refused = call("plan", "cancel", "1", "--reason", "not wanted")
    assert refused.code == 2
    assert suggested(refused) == ["planforge plan land plan-001"]
    assert call("status", "--json").document["next"] == ["planforge land"]
    assert call("land").code == 0
    assert call("status", "--json").document["next"] == ["planforge land --update-checkout"]


@pytest.mark.parametrize("command", ["run", "run-one", "retry"])
def test_a_plan_that_was_given_up_is_not_approved_to_be_run(call: Command, command: str) -> None:
    call("plan", "cancel", "1", "--reason", "not wanted")
    said = call("plan", command, "1")
    assert said.code == 5
    assert "`plan-001` is CANCELLED" in said.err
    assert "planforge plan approve" not in said.err
    assert 'planforge forge "what you want"' in said.err


@pytest.mark.dear
def test_phases_that_are_made_anew_for_a_plan_that_is_done_want_a_yes(call: Command) -> None:
    call("plan", "approve", "1")
    assert call("plan", "run", "1").code == 0
    assert call("plan", "land", "1").code == 0
    again = call("plan", "phases", "1", "--regenerate")
    assert following(again) == ["planforge plan approve plan-001"]
    status = call("status", "--json").document
    assert status["next"][0] == following(again)[0]
    assert "planforge land" not in status["next"]
    assert [each["command"] for each in status["waiting"]] == following(again)
    approved = typed(call, following(again)[0])
    assert following(approved) == ["planforge plan run plan-001"]
    ran = typed(call, following(approved)[0])
    assert ran.code == 0, "what has landed already is done by the evidence on it"
    assert "nothing to change" in call("log", "--plan", "1").out
    assert following(call("plan", "phases", "1")) == ["planforge land --update-checkout"]
    assert "nothing to land" in call("plan", "land", "1").out


def test_a_run_that_was_interrupted_is_what_the_phases_say_to_go_on_with(
    call: Command, at: Rehearsal
) -> None:
    call("plan", "approve", "1")
    project = Project(at.root)
    run = work.begin_plan_run(project, "1")
    project.ledger.close()
    assert following(call("plan", "phases", "1")) == [f"planforge resume {run}", f"planforge cancel {run}"]
    refused = call("plan", "run", "1")
    assert suggested(refused) == [f"planforge resume {run}", f"planforge cancel {run}"]
    ended = typed(call, suggested(refused)[1])
    assert ended.code == 0
    assert "it is not wanted any more" in ended.out


def test_commands_about_phases_that_are_not_there_yet_lead_to_where_they_are_shown(call: Command) -> None:
    for words in (("retry", "1"), ("skip", "1", "--reason", "x"), ("skip-to", "1", "2", "--reason", "x")):
        said = call("plan", *words)
        assert said.code == 5
        assert suggested(said) == ["planforge plan show plan-001"]
    assert following(call("plan", "phases", "1")) == IN_REVIEW


def test_hints_about_phases_name_the_plan_and_all_that_the_command_wants(call: Command) -> None:
    call("plan", "approve", "1")
    call("plan", "phases", "1", "--regenerate")
    waits = call("plan", "run-phase", "1", "phase-2")
    assert suggested(waits) == [
        "planforge plan run plan-001",
        "planforge plan skip-to plan-001 phase-2 --reason TEXT",
    ]
    none = call("plan", "retry", "1")
    assert suggested(none) == ["planforge plan phases plan-001"]
    unnamed = call("plan", "skip", "1", "--reason", "x")
    assert suggested(unnamed) == ["planforge plan skip plan-001 phase-1 --reason TEXT"]
    assert typed(call, suggested(waits)[1]).code == 0
    again = call("plan", "retry", "1", "phase-1")
    assert "`phase-1` is skipped already" in again.err
    assert suggested(again) == ["planforge plan phases plan-001 --regenerate"]


def test_a_plan_that_does_not_land_says_what_to_do_about_it(call: Command, at: Rehearsal) -> None:
    refused = call("plan", "land", "1")
    assert refused.code == 5
    assert following(refused) == IN_REVIEW
    call("plan", "approve", "1")
    play(at, scenes("wrong\n"))
    call("plan", "run", "1")
    refused = call("plan", "land", "1")
    assert following(refused)[0] == "planforge plan retry plan-001 phase-2"
    assert following(call("plan", "phases", "1")) == following(refused)


@pytest.mark.dear
def test_a_plan_that_is_done_and_held_back_is_not_said_to_have_phases_left(
    call: Command, at: Rehearsal
) -> None:
    call("plan", "approve", "1")
    call("plan", "run", "1")
    branch = "refs/heads/planforge/plan-001"
    by_hand = git(at.root, "commit-tree", f"{branch}^{{tree}}", "-p", branch, "-m", "by hand")
    git(at.root, "update-ref", branch, by_hand)
    refused = call("plan", "land", "1")
    assert refused.code == 5
    assert "which Planforge did not make" in refused.out
    assert following(refused) == []


def test_a_plan_that_cannot_be_closed_says_how_it_can(call: Command) -> None:
    call("plan", "approve", "1")
    refused = call("plan", "close", "1")
    assert refused.code == 5
    assert suggested(refused)[-1] == "planforge plan close plan-001 --override --reason TEXT"
    assert typed(call, suggested(refused)[-1]).code == 0


@pytest.mark.dear
def test_a_plan_that_has_not_landed_is_closed_only_if_that_is_said_and_can_be_taken_back(
    call: Command, at: Rehearsal
) -> None:
    call("plan", "approve", "1")
    call("plan", "run", "1")
    refused = call("plan", "close", "1", "--reason", "done")
    assert refused.code == 5
    assert "`plan-001` has not landed" in refused.err
    assert suggested(refused) == [
        "planforge plan land plan-001",
        "planforge plan close plan-001 --unlanded --reason TEXT",
    ]
    assert call("plan", "close", "1", "--unlanded").code == 2
    said = typed(call, suggested(refused)[1])
    assert said.out == "plan-001 is CLOSED\n"
    assert "its work has not landed and stays on `planforge/plan-001`" in said.err
    assert git(at.root, "log", "-1", "--format=%s", "planforge/plan-001").startswith("plan-001 phase-")
    assert call("plan", "land", "1").code == 5
    back = said.err.split("`")[-2]
    assert back == "planforge plan reopen plan-001 --reason TEXT"
    reopened = typed(call, back)
    assert reopened.out.startswith("plan-001 is DONE\n")
    assert following(reopened) == ["planforge plan land plan-001"]
    assert typed(call, following(reopened)[0]).code == 0
    assert typed(call, suggested(refused)[1].replace("--unlanded ", "")).code == 0


@pytest.mark.dear
def test_a_stopped_plan_with_work_on_its_branch_is_closed_only_if_both_are_said(
    call: Command, at: Rehearsal
) -> None:
    call("plan", "approve", "1")
    play(at, scenes("wrong\n"))
    call("plan", "run", "1")
    refused = call("plan", "close", "1", "--override", "--reason", "by hand")
    assert refused.code == 5
    assert suggested(refused)[-1] == "planforge plan close plan-001 --override --unlanded --reason TEXT"
    assert typed(call, suggested(refused)[-1]).code == 0
    refused = call("plan", "run", "1")
    assert suggested(refused)[0] == "planforge plan reopen plan-001 --reason TEXT"
    reopened = typed(call, suggested(refused)[0])
    assert reopened.out.startswith("plan-001 is REVIEW\n")
    assert following(reopened) == IN_REVIEW
    play(at, scenes())
    approved = typed(call, following(reopened)[1])
    assert typed(call, following(approved)[0]).code == 0
    assert call("plan", "land", "1").code == 0


def test_a_plan_that_was_given_up_is_taken_back_into_review(call: Command) -> None:
    call("plan", "cancel", "1", "--reason", "not wanted")
    refused = call("forge", "1")
    assert suggested(refused)[0] == "planforge plan reopen plan-001 --reason TEXT"
    reopened = typed(call, suggested(refused)[0])
    assert reopened.out.startswith("plan-001 is REVIEW\n")
    assert call("plan", "reopen", "1", "--reason", "x").code == 2
    assert typed(call, following(reopened)[0]).code == 0


@pytest.mark.dear
def test_a_plan_that_has_landed_is_closed_without_further_words(call: Command) -> None:
    call("plan", "approve", "1")
    call("plan", "run", "1")
    call("plan", "land", "1")
    said = call("plan", "close", "1")
    assert (said.code, said.err) == (0, "")


def test_what_waits_for_a_person_is_named_when_there_is_nothing_to_resume(
    call: Command, at: Rehearsal
) -> None:
    play(at, ((("Role: auditor",), says("I have no opinion.")),))
    assert call("forge", "1").code == 6
    said = call("resume")
    assert said.code == 0
    assert following(said) == ["planforge question show question-001"]


def test_a_reviser_that_changes_nothing_ends_the_forge_and_the_screen_says_how_to_go_on(
    call: Command, at: Rehearsal
) -> None:
    told = (at.root / PLAN).read_text().partition("---")[2].partition("## Audit Log")[0]
    revised = told[told.index("## Objective") :].replace("\n\n", "\n \n")
    revision = says(f"# Plan: Some texts\n\n{revised}")
    play(at, ((("Role: auditor",), says(BLOCKED)), (("Role: reviser",), revision)))
    said = call("forge", "1")
    assert said.code == 6
    assert "the reviser changed nothing: edit the plan yourself" in said.out
    assert len(at.events(AuditRecorded)) == 2  # that of before, and one
    assert following(said) == ["planforge plan show plan-001"]
    assert typed(call, following(said)[0]).code == 0
    assert "then: edit the plan and run `planforge forge plan-001`" in said.out
    edit(at)
    play(at, ((("Role: auditor",), says(CLEAN)),))
    assert typed(call, "planforge forge plan-001").code == 0


@pytest.mark.dear
def test_resume_goes_on_with_every_run_and_says_what_each_waits_for(call: Command, at: Rehearsal) -> None:
    project = Project(at.root)
    for request in ("The first thing", "The second thing", "The third thing"):
        forges.begin_forge(project, request)
    project.ledger.close()
    nonsense, drafted = says("Sure! What shall I do?"), says(NEW)
    play(
        at,
        (
            (("Role: drafter", "The second thing"), drafted),
            (("Role: drafter",), nonsense),
            *CLEAN_AUDIT,
        ),
    )
    said = call("resume", "--json")
    assert said.code == 6
    assert [each["run"] for each in said.document["resumed"]] == ["run-003"]
    assert [each["run"] for each in said.document["stopped"]] == ["run-002", "run-004"]
    waits = [f"planforge question show question-00{number}" for number in (1, 2)]
    assert said.document["next"] == waits
    assert [typed(call, each).code for each in waits] == [0, 0]
    for number in (1, 2):
        assert call("question", "answer", str(number), "ask again", "--as", "Ada").code == 0
    assert "`question-001` was answered by Ada: it can go on" in call("forge", "status").out
    play(at, ((("Role: drafter", "The third thing"), drafted), (("Role: drafter",), nonsense), *CLEAN_AUDIT))
    said = call("resume")
    assert said.code == 6
    assert "⏸ run-002 stopped: " in said.out
    assert "✓ run-004 done: no blocking finding" in said.out
    assert following(said)[-1] == "planforge question show question-003"


def test_asking_forge_for_an_audit_leads_to_the_command_for_it(call: Command, at: Rehearsal) -> None:
    said = call("forge", "audit", "1")
    assert said.code == 2
    assert suggested(said) == ["planforge plan audit 1", "planforge plan audit 1 --structural"]
    play(at, ((("Role: auditor",), says(CLEAN)),))
    assert [typed(call, each).code for each in suggested(said)] == [0, 0]


@pytest.mark.parametrize(
    "words", [("plan", "approve"), ("plan", "bogus"), ("plan", "diff", "1", "--rounds", "1")]
)
def test_a_usage_error_is_a_document_where_one_is_asked_for(call: Command, words: tuple[str, ...]) -> None:
    said = call(*words, "--json")
    assert said.code == 2
    assert said.document["error"]["code"] == 2
    assert said.document["error"]["message"]
    assert call(*words).out == ""


def test_the_help_of_plan_is_a_word_away(call: Command) -> None:
    assert call("plan", "help").out.startswith("Usage: planforge plan")
