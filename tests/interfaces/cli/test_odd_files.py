"""Plan files that are not what they should be: every command says so, and what can be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from calls import Command, caller
from rehearsals import Rehearsal, copied
from texts import forged

COMMANDS = ("show", "approve", "run", "run-one", "phases", "diff", "audit")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return forged(tmp_path_factory.mktemp("texts"))


@pytest.fixture
def at(one: Rehearsal, tmp_path: Path) -> Rehearsal:
    return copied(one, tmp_path)


@pytest.fixture
def call(at: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(at.root, monkeypatch, capsys)


def file(at: Rehearsal) -> Path:
    return at.root / "docs/plans/plan-001-some-texts.md"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_plan_that_is_not_utf_8_is_an_error_in_words(call: Command, at: Rehearsal, command: str) -> None:
    file(at).write_bytes(b"\xff\xfe# Plan: lost\n")
    said = call("plan", command, "1", "--json")
    assert said.code == 2
    assert "error: `docs/plans/plan-001-some-texts.md` is not UTF-8" in said.err
    assert "`planforge plan show plan-001 --recorded`" in said.err
    assert call("status").code == 0
    assert call("plan", "list").code == 0
    assert call("plan", "show", "1", "--recorded").out.startswith("# Plan: Some texts")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_plan_that_cannot_be_read_is_an_error_in_words(call: Command, at: Rehearsal, command: str) -> None:
    file(at).unlink()
    file(at).mkdir()
    said = call("plan", command, "1")
    assert said.code == 3
    assert "error: `docs/plans/plan-001-some-texts.md` cannot be read: Is a directory" in said.err
    assert call("status").code == 0


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("**Status:** REVIEW\n", "", "the header ends without a `**Status:**` line"),
        ("**ID:** plan-001\n", "**ID:** plan-002\n", "its header says that it is `plan-002`"),
        ("# Plan: Some texts", "# Some texts", "expected `# Plan: <title>`"),
        ("**ID:** plan-001\n", "**ID:** plan-001\n**Parallel:** maybe\n", "is neither yes nor no"),
        ("`one/a.txt` — a text.", "`one/a.txt` (after `b.txt`)", "which the plan does not change"),
    ],
)
def test_a_plan_that_could_not_be_carried_out_is_not_approved_at_all(
    call: Command, at: Rehearsal, before: str, after: str, problem: str
) -> None:
    file(at).write_text(file(at).read_text().replace(before, after, 1))
    said = call("plan", "approve", "1")
    assert said.code == 5
    assert problem in said.err
    assert "hint: edit `docs/plans/plan-001-some-texts.md`" in said.err
    assert [row["status"] for row in call("plan", "list", "--json").document] == ["REVIEW"]
    assert "DecisionMade" not in call("log").out
