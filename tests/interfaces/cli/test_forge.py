"""`planforge forge`: going on with plans, ending forges from another terminal, carrying out at once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from calls import Command, caller
from decided import of
from planforge.app import forges
from planforge.app.history.replays import replayed
from planforge.app.project import Project
from planforge.kernel.events import (
    CancelRequested,
    DecisionMade,
    ItemOpened,
    PlanStarted,
    RunEnded,
    RunStarted,
)
from planforge.workspace.launch.trees import COOKIE
from programs import planforge
from rehearsals import Rehearsal, copied, eventually
from repositories import git
from texts import BLOCKED, CLEAN, PLAN, forged, play, says, writes

MEDIUM = '{"maxSeverity": "medium", "concerns": [{"title": "no metrics", "severity": "medium"}]}'
ADA = "Ada Lovelace <ada@example.org>"


@pytest.fixture(scope="module")
def forged_once(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return forged(tmp_path_factory.mktemp("forged"))


@pytest.fixture
def at(forged_once: Rehearsal, tmp_path: Path) -> Rehearsal:
    """A repository with one plan in review."""
    return copied(forged_once, tmp_path / "here")


@pytest.fixture
def call(at: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(at.root, monkeypatch, capsys)


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that do not survive the test."""
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


def plan_file(at: Rehearsal, number: int = 1) -> Path:
    return next((at.root / "docs/plans").glob(f"plan-{number:03}-*texts.md"))


def agents_of(at: Rehearsal) -> list[int]:
    """The processes that play the script of this repository."""
    mine = f"PLANFORGE_REHEARSAL_SCRIPT={at.script}".encode()
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mine in environ.read_bytes().split(b"\0"):
                found.append(int(environ.parent.name))
        except OSError:
            continue
    return found


def at_work(at: Rehearsal) -> list[str]:
    """Whoever is asked at this moment, in every forge."""
    ledger = (project := Project(at.root)).ledger
    try:
        return [each.doing for each in forges.unfinished(project)]
    finally:
        ledger.close()


def seconds_to_end(at: Rehearsal) -> float:
    """How long it took from the request that a run be ended to its end."""
    ledger = at.ledger
    try:
        wanted = [item for item in ledger.since() if isinstance(item.event, CancelRequested | RunEnded)]
    finally:
        ledger.close()
    asked, end = (datetime.fromisoformat(item.at) for item in wanted[-2:])
    return (end - asked).total_seconds()


def hangs(at: Rehearsal, *when: str) -> None:
    play(at, ((when, [{"hang": True}]), (("Role: drafter",), says(PLAN))))


# Ending one from another terminal


@pytest.mark.parametrize("resumed", [False, True], ids=["new", "resumed"])
def test_a_forge_is_ended_at_once_from_another_terminal(
    at: Rehearsal, running: list[subprocess.Popen[str]], *, resumed: bool
) -> None:
    hangs(at, "Role: auditor")
    process = at.start("forge", "1" if resumed else "More texts")
    running.append(process)
    eventually(lambda: at_work(at) == ["auditor"] and agents_of(at))
    plan = 1 if resumed else 2

    cancelled = planforge("forge", "cancel", str(plan), "--reason", "by hand", "--json", cwd=at.root)
    out, err = process.communicate(timeout=20)

    assert cancelled.returncode == 0, cancelled.stderr
    assert json.loads(cancelled.stdout)["status"] == "CANCELLED"
    assert seconds_to_end(at) < 10
    assert process.returncode == 130, err
    assert out.count("cancelled by Ada Lovelace") == 1
    assert agents_of(at) == []
    assert "**Status:** CANCELLED" in plan_file(at, plan).read_text()
    (asked,) = at.events(CancelRequested)
    assert (asked.run, asked.actor, asked.with_plan) == ("run-002", ADA, True)
    project = Project.find(at.root)
    assert replayed(project.ledger, "run-002").agrees
    assert not list((at.root / ".planforge" / "worktrees").glob("*/*"))
    again = planforge("forge", str(plan), cwd=at.root)
    assert (again.returncode, "CANCELLED" in again.stderr) == (5, True)


def test_a_run_that_carries_out_a_plan_is_ended_at_once_and_what_its_agent_left_is_kept(
    at: Rehearsal, running: list[subprocess.Popen[str]]
) -> None:
    play(at, ((("Role: developer",), [*writes("one/a.txt"), {"hang": True}]),))
    assert planforge("plan", "approve", "1", cwd=at.root).returncode == 0
    process = at.start("plan", "run", "1")
    running.append(process)
    eventually(lambda: list((at.root / ".planforge" / "worktrees").rglob("one/a.txt")))

    assert planforge("cancel", "run-002", "--reason", "no", cwd=at.root).returncode == 0
    _, err = process.communicate(timeout=20)

    assert process.returncode == 130, err
    assert agents_of(at) == []
    assert "one/a.txt" in git(at.root, "log", "--all", "--name-only", "--format=")
    assert "**Status:** REVIEW" in plan_file(at).read_text()
    assert [event.reason for event in at.events(RunEnded)][-1] == f"cancelled by {ADA}: no"
    assert replayed(Project.find(at.root).ledger, "run-002").agrees


def test_forges_of_two_plans_run_side_by_side_and_the_one_that_is_named_is_ended(
    at: Rehearsal, call: Command, running: list[subprocess.Popen[str]]
) -> None:
    hangs(at, "Role: auditor")
    running += [at.start("forge", "1"), at.start("forge", "More texts")]
    eventually(lambda: len(call("forge", "status", "--json").document) == 2)
    eventually(lambda: at_work(at) == ["auditor", "auditor"])

    second = call("forge", "1")
    assert (second.code, "is being worked on by `run-" in second.err) == (7, True)
    assert "planforge forge cancel plan-001" in second.err
    either = call("forge", "cancel")
    assert (either.code, "2 forges are under way" in either.err) == (2, True)
    assert call("forge", "cancel", "2").code == 0
    eventually(lambda: running[1].poll() is not None or running[0].poll() is not None)
    (left,) = call("forge", "status", "--json").document
    assert (left["plan"], left["status"]) == ("plan-001", "running")
    assert left["next"] == f"planforge log --run {left['run']}"
    assert call(*left["next"].split()[1:]).code == 0
    assert "the auditor is at work" in call("forge", "status").out
    assert call("forge", "cancel").code == 0
    assert call("forge", "status").out == "no forge is under way\n"
    assert call("forge", "cancel").code == 3


# Going on with one


def test_what_looks_like_a_plan_is_gone_on_with_and_what_does_not_is_a_request(
    at: Rehearsal, call: Command
) -> None:
    play(at, ((("Role: auditor",), says(CLEAN)),))
    for name in ("plan-001", "plan-1", "1"):
        said = call("forge", name, "--json")
        assert said.code == 0, said.err
        assert (said.document["plan"], said.document["agent_calls"]) == ("plan-001", 1)
    assert [f"### Review {number}" in plan_file(at).read_text() for number in (1, 2, 3, 4, 5)] == [
        True
    ] * 4 + [False]
    assert call("forge", "17").code == 3
    assert call("forge", "0").code == 2


@pytest.mark.dear
def test_a_plan_that_was_cancelled_before_its_first_draft_can_be_taken_back(
    at: Rehearsal, call: Command
) -> None:
    project = Project(at.root)
    forges.begin(project, "More texts")
    project.ledger.close()
    assert call("forge", "cancel", "2").code == 0
    line = call("plan", "list").out.splitlines()[1]
    assert line.startswith("plan-002  CANCELLED")
    assert line.endswith("(no draft was finished)")
    back = "planforge plan reopen plan-002 --reason TEXT"
    for words in (("plan", "show", "2"), ("plan", "show", "2", "--recorded"), ("forge", "2")):
        said = call(*words)
        assert said.code
        assert f"reopen it: `{back}`" in said.err
        assert "its text is still there" not in said.err
    assert call(*back.split()[1:]).code == 0
    assert "run `planforge forge plan-002`" in call("plan", "show", "2").err
    play(at, ((("Role: auditor",), says(CLEAN)), (("Role: drafter",), says(PLAN))))
    assert call("forge", "plan-002").code == 0
    assert call("plan", "list").out.splitlines()[1].endswith("-more-texts.md")


@pytest.mark.parametrize("word", ["status", "cancel", "help", "audit"])
def test_the_reserved_words_are_never_a_request(at: Rehearsal, call: Command, word: str) -> None:
    for words in ((word,), ("--cap", "2", word)):
        said = call("forge", *words)
        assert "Traceback" not in said.err
    assert len(at.events(RunEnded)) == 1
    assert call("forge", "--cap", "2", word).code == 2
    told = call("forge", "help")
    assert (told.code, "Usage: planforge forge" in told.out) == (0, True)


def hinted(text: str) -> list[str]:
    """The commands in a hint."""
    return [each for each in text.rpartition("hint: ")[2].split("`")[1::2] if each.startswith("planforge ")]


def test_words_that_only_point_at_something_start_no_draft_and_lead_to_the_newest_plan(
    at: Rehearsal, call: Command
) -> None:
    for words in ("this", "It!", " that ", "the plan", "plan", "this issue", "same", "please fix it", "..."):
        said = call("forge", words)
        assert said.code == 2
        assert "does not say what you want" in said.err
        assert hinted(said.err) == ["planforge forge plan-001"]
    assert len(at.events(RunStarted)) == 1
    play(at, ((("Role: auditor",), says(CLEAN)),))
    assert call(*hinted(said.err)[0].split()[1:]).code == 0


def test_words_that_point_at_what_was_given_are_its_title(at: Rehearsal, call: Command) -> None:
    (at.root / "notes.md").write_text("# Count the texts\n\nThere are many.\n")
    play(at, ((("Role: drafter",), says(PLAN)), (("Role: auditor",), says(CLEAN))))
    assert call("forge", "this", "--context", "notes.md").code == 0
    assert "Count the texts" in call("plan", "list").out
    assert "this" not in call("plan", "list").out


def test_a_plan_that_is_named_in_another_way_is_not_drafted_anew(at: Rehearsal, call: Command) -> None:
    for words in ("plan 1", "#1", "p1", "docs/plans/plan-001-some-texts.md", "plan-1/phase-1"):
        said = call("forge", words)
        assert (said.code, f"`{words}` is a name, not a request" in said.err) == (2, True)
        assert hinted(said.err) in (["planforge forge plan-1"], ["planforge forge plan-001"])
    for words in ("this one", "resume", "what we discussed", "the audit"):
        said = call("forge", words)
        assert (said.code, hinted(said.err)) == (2, ["planforge forge plan-001"])
    assert len(at.events(RunStarted)) == 1


NAMES = ("fix-004", "task-002", "run-001", "RUN-1", "phase-1", "gate-001", "question-1", "ws-099")


@pytest.mark.parametrize("command", ["forge", "fix", "plan create"])
def test_the_name_of_an_item_is_never_a_request(at: Rehearsal, call: Command, command: str) -> None:
    for name in NAMES:
        said = call(*command.split(), name)
        assert said.code in (2, 3), name
        known = call(*hinted(said.err)[0].split()[1:])  # a command, whether there is such an item or not
        assert known.code in (0, 3), name
    assert len(at.events(RunStarted)) == 1
    assert len(at.events(ItemOpened)) == 1


def test_a_plan_is_gone_on_with_by_the_name_of_its_task(at: Rehearsal, call: Command) -> None:
    play(at, ((("Role: auditor",), says(CLEAN)),))
    assert call("forge", "ws-001").code == 0
    assert len(at.events(ItemOpened)) == 1


def test_a_plan_that_its_editor_broke_is_refused_with_what_is_wrong_and_nothing_is_begun(
    at: Rehearsal, call: Command
) -> None:
    file, runs = plan_file(at), len(at.events(RunEnded))
    whole = file.read_text()
    for old, new, words in (
        ("## Testing", "## Tasting", "the section `## Testing` is missing"),
        ("- `one/a.txt` — a text.", "Some text, somewhere.", "names no file"),
        ("## Audit Log", "## Log", "the section `## Audit Log` is missing"),
        ("**ID:** plan-001", "**ID:** plan-009", "says that it is `plan-009`"),
        ("**Status:** REVIEW", "**Status:** FINE", "is not a status"),
    ):
        assert old in whole
        file.write_text(whole.replace(old, new))
        said = call("forge", "1")
        assert (said.code, words in said.err, "edit it, then run" in said.err) == (5, True, True), said.err
    file.write_bytes(b"\xff\xfe")
    assert call("forge", "1").code == 2
    file.unlink()
    assert call("forge", "1").code == 3
    assert len(at.events(RunEnded)) == runs


def test_an_approved_plan_is_handed_over_to_its_run_and_a_finished_one_is_not_forged_again(
    at: Rehearsal, call: Command
) -> None:
    play(at, ((("Role: developer",), writes("one/a.txt")), (("Role: auditor",), says(CLEAN))))
    assert call("plan", "approve", "1").code == 0
    said = call("forge", "plan-1", "--json")
    assert (said.code, said.document["flow"], said.document["status"]) == (0, "plan_run", "done"), said.err
    done = call("forge", "1")
    assert (done.code, "`plan-001` is DONE" in done.err, "planforge plan land" in done.err) == (5, True, True)
    assert call("plan", "close", "1", "--unlanded", "--reason", "over").code == 0
    closed = call("forge", "1")
    assert (closed.code, 'planforge forge "what you want"' in closed.err) == (5, True)


def test_a_cap_that_is_reached_again_is_said_in_the_audit_log_and_asks_for_a_person(
    at: Rehearsal, call: Command
) -> None:
    revised = PLAN.replace("None that", "Few that")
    play(at, ((("Role: auditor",), says(BLOCKED)), (("Role: reviser",), says(revised))))
    said = call("forge", "1", "--cap", "2")
    assert said.code == 6
    lines = plan_file(at).read_text().splitlines()
    assert "VERDICT: CAP_REACHED: still not approved after 2 of 2 rounds" in lines
    assert "**Status:** REVIEW" in lines
    assert [line[:12] for line in lines if line.startswith("### Review")] == [
        "### Review 1",
        "### Review 2",
        "### Review 3",
    ]
    assert call("replay", "run-002").code == 0


# Carrying it out at once


def test_a_clean_plan_is_carried_out_at_once_in_the_name_of_who_asked(at: Rehearsal, call: Command) -> None:
    scenes = (
        (("Role: drafter",), says(PLAN)),
        (("Role: auditor",), says(MEDIUM)),
        (("Role: developer",), writes("one/a.txt")),
    )
    play(at, scenes)
    said = call("forge", "More texts", "--implement", "--json")
    assert said.code == 0, said.err
    assert (said.document["forge"]["plan"], said.document["run"]["status"]) == ("plan-002", "done")
    assert said.document["implement"]["approved_by"] == ADA
    assert [event.actor for event in of(at.events(DecisionMade), "approval")] == [ADA]
    assert "! medium: no metrics" in said.err


def test_by_default_a_person_approves(at: Rehearsal, call: Command) -> None:
    play(at, ((("Role: drafter",), says(PLAN)), (("Role: auditor",), says(CLEAN))))
    said = call("forge", "More texts")
    assert (said.code, "next: planforge plan approve plan-002" in said.out) == (0, True)
    assert of(at.events(DecisionMade), "approval") == []


@pytest.mark.dear
def test_a_setting_has_every_clean_plan_carried_out_unless_it_is_told_otherwise(
    at: Rehearsal, call: Command
) -> None:
    at.settings("[forge]\nauto_implement = true\n")
    play(
        at,
        (
            (("Role: drafter",), says(PLAN)),
            (("Role: auditor",), says(CLEAN)),
            (("Role: developer",), writes("one/a.txt")),
        ),
    )
    assert call("forge", "More texts", "--no-implement").code == 0
    assert of(at.events(DecisionMade), "approval") == []
    assert call("forge", "2").code == 0
    assert len(at.events(PlanStarted)) == 1


@pytest.mark.parametrize(
    ("auditor", "because", "code"),
    [
        (BLOCKED, "cap-reached", 6),
        ('{"maxSeverity": "none"} but also Severity: blocking', "no-verdict", 6),
    ],
)
def test_what_is_not_clean_is_left_to_a_person_with_the_reason_and_two_commands(
    at: Rehearsal, call: Command, auditor: str, because: str, code: int
) -> None:
    play(at, ((("Role: drafter",), says(PLAN)), (("Role: auditor",), says(auditor))))
    said = call("forge", "More texts", "--implement", "--cap", "1", "--json")
    refusal = said.document["implement"]["refusal"]
    assert (said.code, refusal["because"]) == (code, because), said.document
    assert refusal["next"] == ["planforge plan approve plan-002", "planforge plan run plan-002"]
    assert (said.document["run"], of(at.events(DecisionMade), "approval")) == (None, [])


def test_a_plan_whose_form_is_not_right_is_warned_about_and_not_carried_out(
    at: Rehearsal, call: Command
) -> None:
    vague = PLAN.replace("- `one/a.txt` — a text.", "Some texts, somewhere in the project.")
    play(at, ((("Role: drafter",), says(vague)), (("Role: auditor",), says(CLEAN))))
    said = call("forge", "More texts", "--implement")
    assert said.code == 5
    assert "not carried out: the form of the plan is not right: `## Changes` names no file" in said.out
    assert "next: planforge plan approve plan-002\nthen: planforge plan run plan-002" in said.out
    assert said.out.count("next: ") == 1
    assert "STRUCTURE: `## Changes` names no file" in plan_file(at, 2).read_text()
    assert call("replay", "run-002").code == 0


def test_a_plan_with_phases_of_an_earlier_text_is_not_carried_out_at_once(
    at: Rehearsal, call: Command
) -> None:
    play(at, ((("Role: auditor",), says(CLEAN)),))
    assert call("plan", "phases", "1", "--regenerate").code == 0
    path = next((at.root / "docs/plans").glob("plan-001-some*.md"))
    path.write_text(path.read_text().replace("— a text.", "— another text."))
    said = call("forge", "1", "--implement", "--json")
    assert (said.code, said.document["implement"]["refusal"]["because"]) == (5, "phases")


def test_an_agent_cannot_have_a_plan_carried_out(
    at: Rehearsal, call: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("forge", "More texts", "--implement", "--as", "rehearsal").code == 5
    monkeypatch.setenv(COOKIE, "x")
    assert call("forge", "More texts", "--implement").code == 5
    assert call("forge", "cancel", "1").code == 5
    assert len(at.events(RunStarted)) == 1
