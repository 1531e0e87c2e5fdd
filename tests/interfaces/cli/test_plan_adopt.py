"""Plan files that this ledger does not know, as in a clone: said, offered, taken in with their numbers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from calls import Command, Said, caller
from rehearsals import Rehearsal, copied
from texts import play, scenes

HERE = "docs/plans"
PLAN = f"{HERE}/plan-001-some-texts.md"


@pytest.fixture
def at(two_texts: Rehearsal, tmp_path: Path) -> Rehearsal:
    """A repository with a plan that was approved and begun elsewhere, and with an empty ledger."""
    made = copied(two_texts, tmp_path)
    play(made, scenes())
    shutil.rmtree(made.root / ".planforge")
    place, text = made.root / HERE, (made.root / PLAN).read_text()
    text = text.replace("**Status:** REVIEW", "**Status:** APPROVED")
    assert "**Status:** APPROVED" in text
    (made.root / PLAN).unlink()
    (place / "plan-007-some-texts.md").write_text(text.replace("plan-001", "plan-007"))
    (place / "plan-007-phases.md").write_text("# Phases\n\n- [x] phase-1 done\n")
    over = text.replace("plan-001", "plan-004").replace("ws-001", "PROJ-12")
    (place / "plan-004-older.md").write_text(over.replace("APPROVED", "DONE").replace("Some texts", "Older"))
    return made


@pytest.fixture
def call(at: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    called = caller(at.root, monkeypatch, capsys)
    assert called("init").code == 0
    return called


def statuses(said: Said) -> dict[str, str]:
    return {each["plan"]: each["status"] for each in said.document}


def test_a_ledger_that_does_not_know_plan_files_says_so_and_what_to_type(call: Command) -> None:
    listed = call("plan", "list")
    assert listed.out == "no plans known here yet\n"
    assert listed.err == "2 plan files are not known here; adopt them: `planforge plan adopt --all`\n"
    status = call("status")
    assert "2 plan files" in status.out
    assert "planforge plan adopt --all" in status.out
    assert call("status", "--json").document["next"] == ["planforge plan adopt --all"]
    shown = call("plan", "show", "7")
    assert "adopt it: `planforge plan adopt plan-007`" in shown.err
    assert call("plan", "adopt", "plan-007").code == 0
    assert call("plan", "show", "7").code == 0
    assert call("plan", "list").err.startswith("1 plan file is not known here")


def test_plans_are_taken_in_with_their_numbers_and_nothing_that_their_files_claim(
    call: Command, at: Rehearsal
) -> None:
    said = call("plan", "adopt", "--all")
    assert (said.code, said.err) == (0, "")
    assert statuses(call("plan", "list", "--json")) == {"plan-004": "CLOSED", "plan-007": "DRAFT"}
    assert "(its file said APPROVED)" in said.out
    assert "**Status:** DRAFT" in (at.root / HERE / "plan-007-some-texts.md").read_text()
    assert call("plan", "run", "7").code == 5, "an approval is never taken from a file"
    shown = call("plan", "phases", "7", "--json").document["phases"]
    assert {phase["status"] for phase in shown} == {"pending"}
    assert len(list((at.root / HERE).glob("plan-007-phases.edited-*.md"))) == 1
    assert call("plan", "show", "PROJ-12", "--json").document["plan"]["plan"] == "plan-004"
    assert call("plan", "create", "Another text").code == 0
    assert set(statuses(call("plan", "list", "--json"))) == {"plan-004", "plan-007", "plan-008"}
    assert call("plan", "list").err == ""
    assert "adopt" not in call("status").out


@pytest.mark.dear
def test_what_was_taken_in_is_approved_and_carried_out_like_any_other(call: Command) -> None:
    said = call("plan", "adopt", "--all")
    assert said.out.splitlines()[-1] == "next: planforge plan show plan-007"
    assert call("plan", "show", "plan-007").code == 0
    assert call("plan", "approve", "7").code == 0
    assert call("plan", "run", "7").code == 0
    assert call("plan", "land", "7").code == 0
    assert call("plan", "reopen", "4", "--reason", "is it?").out.startswith("plan-004 is REVIEW\n")


def test_a_file_that_is_no_plan_is_named_in_a_line_and_does_not_stop_the_others(
    call: Command, at: Rehearsal
) -> None:
    place = at.root / HERE
    (place / "plan-002-prose.md").write_text("# Notes\n")
    (place / "plan-003-other.md").write_text((place / "plan-004-older.md").read_text())
    (place / "plan-005-bytes.md").write_bytes(b"\xff\xfe")
    (place / "plan-006-link.md").symlink_to("plan-004-older.md")
    (place / "plan-009-a.md").write_text("x")
    (place / "plan-009-b.md").write_text("x")
    said = call("plan", "adopt", "--all")
    assert said.code == 2
    assert said.err.splitlines() == [
        f"! {HERE}/plan-002-prose.md: line 1: expected `# Plan: <title>`, found `# Notes`",
        f"! {HERE}/plan-003-other.md: its header says that it is `plan-004`",
        f"! {HERE}/plan-005-bytes.md: it is not UTF-8",
        f"! {HERE}/plan-006-link.md: it is no regular file",
        f"! {HERE}/plan-009-a.md: there are several files of `plan-009`",
        f"! {HERE}/plan-009-b.md: there are several files of `plan-009`",
    ]
    assert set(statuses(call("plan", "list", "--json"))) == {"plan-004", "plan-007"}
    assert call("plan", "adopt").code == 2
    assert "`plan-007` is known already" in call("plan", "adopt", "7").err
    assert call("plan", "adopt", "8").code == 3


def test_plan_files_are_looked_for_where_the_settings_say(call: Command, at: Rehearsal) -> None:
    (at.root / HERE).rename(at.root / "plans")
    at.settings('[forge]\nplans = "plans"\n')
    assert "2 plan files" in call("status").out
    assert call("plan", "adopt", "--all").code == 0
    assert call("plan", "show", "7", "--json").document["plan"]["path"] == "plans/plan-007-some-texts.md"
