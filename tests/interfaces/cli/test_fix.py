"""`planforge fix` from the outside, and every other command on what it leaves."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from calls import Command, caller
from fixing import REQUEST, fixed, prepared
from planforge.kernel import events
from programs import planforge
from rehearsals import Rehearsal, eventually
from repositories import git
from texts import writes

LARGE = writes("one/a.txt", "one/b.txt", "one/c.txt", "one/d.txt")
DEVELOPER = ("Role: developer",)


@pytest.fixture
def at(tmp_path: Path) -> Rehearsal:
    return prepared(tmp_path)


@pytest.fixture
def command(at: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(at.root, monkeypatch, capsys)


def test_a_fix_is_made_and_landed_by_one_command(at: Rehearsal, command: Command) -> None:
    said = command("fix", REQUEST, "--land")
    assert said.code == 0, said.err
    made, branch, landed, following = said.out.splitlines()
    assert made == "✓ run-001 done: 2 of 2 tests passed (1 file, 1 line)"
    assert branch.startswith("branch: planforge/fix-001 at ")
    assert landed.startswith("✓ fix-001 landed on planforge/landed/main as ")
    assert following == "next: planforge land --update-checkout"
    assert git(at.root, "show", "planforge/landed/main:one/a.txt") == "right"


def test_every_command_that_looks_at_plans_looks_at_a_fix(
    at: Rehearsal, command: Command, tmp_path: Path
) -> None:
    run, _ = fixed(at)
    assert "fix-001" in command("status").out
    assert command("status", "--json").document["next"] == ["planforge land"]
    assert f"request: {REQUEST}" in command("log", "--plan", "fix-1").out
    assert command("replay", run).code == 0
    assert command("prove", run, "--output", str(tmp_path / "a.proof")).code == 0
    assert command("check-proof", str(tmp_path / "a.proof")).code == 0
    assert "phase-1" in command("graph", "fix-1").out
    assert command("graph", "fix-1/phase-1", "--custody", "--json").document["goal"] == REQUEST
    assert "points" in command("score", "fix-1").out
    assert command("why", "fix-1/phase-1").code == 0
    assert [row["plan"] for row in command("plan", "list", "--json").document] == ["fix-001"]
    assert command("plan", "list").out.split()[-3:] == ["(no", "plan", "file)"]
    assert run in command("recover", "--plan", "fix-1").out
    assert "`fix-001` has no plan file" in command("plan", "show", "fix-1").err
    for words in (("diff",), ("skip", "--reason", "x"), ("skip-to", "phase-1", "--reason", "x")):
        said = command("plan", words[0], "fix-1", *words[1:])
        assert (said.code, said.err.count("`planforge plan evidence fix-001`")) == (3, 1)
    said = command("forge", "fix-1")
    assert (said.code, said.err.count("`planforge land fix-001`")) == (2, 1)
    assert command("budget", "--json").code == 0
    assert command("verify").code == 0
    assert command("rebuild").code == 0
    assert command("land", "fix-1", "--dry-run").code == 0
    refused = command("plan", "close", "fix-1", "--reason", "not wanted any more")
    assert "land it with `planforge land fix-001`" in refused.err
    closed = command("plan", "close", "fix-1", "--unlanded", "--reason", "not wanted any more")
    assert closed.out.strip() == "fix-001 is CLOSED"
    reopened = command("plan", "reopen", "fix-1", "--reason", "it is wanted")
    assert reopened.out == "fix-001 is DONE\nnext: planforge land fix-001\n"
    assert command("land", "fix-001").code == 0


def test_what_does_not_sound_small_is_refused_and_what_is_not_small_needs_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = prepared(tmp_path, (DEVELOPER, LARGE))
    command = caller(at.root, monkeypatch, capsys)
    refused = command("fix", "Rewrite everything")
    assert refused.code == 5
    assert "planforge forge 'Rewrite everything'" in refused.err
    large = command("fix", REQUEST, "--land")
    assert large.code == 6
    assert large.out.startswith("✗ run-001 failed: it is not small: it changes 4 files")
    assert f"next: planforge forge '{REQUEST}\n\nFound when fix-001 was tried: it is not small" in large.out
    assert "next: planforge fix --accept fix-001 --reason TEXT" in large.out
    assert command("fix", "--accept", "1", "--reason", "fine").code == 2
    assert command("fix", "--accept", "fix-1").code == 2
    accepted = command("fix", "--accept", "fix-1", "--reason", "fine", "--land", "--json")
    assert accepted.code == 0, accepted.err
    assert accepted.document["landing"]["landed"][0]["plan"] == "fix-001"
    assert accepted.document["next"] == ["planforge land --update-checkout"]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("one", "--again", "fix-1"),
        ("--again", "fix-1", "--only", "a.txt"),
        ("one", "--reason", "it is small"),
        ("one", "--onto", "main"),
        ("one", "--land", "--onto", "planforge/plan-001"),
        ("one", "--as", " "),
    ],
)
def test_words_that_make_no_sense_together_begin_nothing(
    words: tuple[str, ...], at: Rehearsal, command: Command
) -> None:
    assert command("fix", *words).code == 2
    assert at.events(events.RunStarted) == []


def test_a_fix_that_is_killed_goes_on_and_ends_in_the_same_tree(tmp_path: Path) -> None:
    calm = prepared(tmp_path / "calm")
    fixed(calm)
    wanted = git(calm.root, "rev-parse", "planforge/fix-001^{tree}")

    slow = prepared(tmp_path / "killed", (DEVELOPER, [{"sleep": 30}]))
    process = slow.start("fix", REQUEST)
    eventually(lambda: any(each.effect == "RunAgent" for each in slow.events(events.EffectIntended)))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    slow.script.write_text(calm.script.read_text())
    assert "planforge resume run-001" in planforge("status", cwd=slow.root).stdout
    resumed = planforge("resume", "run-001", cwd=slow.root)
    assert resumed.returncode == 0, resumed.stderr
    assert "next: planforge land fix-001" in resumed.stdout
    assert git(slow.root, "rev-parse", "planforge/fix-001^{tree}") == wanted
