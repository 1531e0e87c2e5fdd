"""Agents that have no tools: what they are shown, what they choose from, what they cannot be asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from calls import Command, caller
from planforge.agents.known import KNOWN
from planforge.agents.profiles import Profile
from planforge.agents.roster import complete
from planforge.app.history.replays import replayed
from planforge.app.plans import work
from planforge.app.project import Project
from planforge.errors import InvalidInput
from planforge.kernel import budgets
from planforge.kernel.events import FilesChosen
from rehearsals import Rehearsal
from repositories import repository
from texts import CHECK, CLEAN, PLAN, SETTINGS, play, says

CHANGED = PLAN.replace("- `one/a.txt` — a text.", "- `one/old.txt` — another text.")
BLIND = "You have no tools here"
READS = "\n[agents.profiles.rehearsal.read]\ntools = false\n"


@pytest.fixture
def at(tmp_path: Path) -> Rehearsal:
    root = repository(tmp_path / "workshop", {"one/old.txt": "an old text\n", "check.sh": CHECK})
    (root / "planforge.toml").write_text(SETTINGS.format(place=tmp_path) + READS)
    (tmp_path / "rehearsal").mkdir()
    Project.create(root).ledger.close()
    made = Rehearsal(root, tmp_path / "rehearsal" / "script.json")
    play(
        made,
        (
            (("Role: drafter", "Turn: research", "- `one/old.txt`", BLIND), says("one/old.txt")),
            (("Role: drafter", "an old text", BLIND), says(CHANGED)),
            (("Role: auditor", "an old text", BLIND), says(CLEAN)),
        ),
    )
    return made


@pytest.fixture
def call(at: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(at.root, monkeypatch, capsys)


def test_a_plan_is_forged_by_an_agent_that_sees_only_what_it_is_shown(at: Rehearsal, call: Command) -> None:
    assert call("forge", "Say something else in `one/old.txt`").code == 0
    (chosen,) = at.events(FilesChosen)
    assert (chosen.role, chosen.chosen, chosen.agent) == ("drafter", ("one/old.txt",), "rehearsal")
    assert "the drafter plans from one/old.txt, of " in call("log", "--kind", "FilesChosen").out
    ledger = at.ledger
    # The research turn is paid for like any other.
    spent = budgets.account(ledger, "run:run-001").spent.tokens
    assert spent == 3 * 300 + len("one/old.txt") + len(CHANGED) + len(CLEAN)
    replay = replayed(ledger, "run-001")
    assert replay.difference is None
    assert replay.ended


def test_a_role_is_shown_with_what_its_agent_can_do(call: Command) -> None:
    assert "no: it gets the files of its task in the prompt" in call("role", "show", "auditor").out
    rows = {row["role"]: row["tools"] for row in call("role", "list", "--json").document}
    assert (rows["auditor"], rows["developer"]) == (False, True)


def test_an_agent_without_tools_cannot_be_the_developer_and_the_hint_can_be_typed(
    at: Rehearsal, call: Command
) -> None:
    with (at.root / "planforge.toml").open("a") as file:
        file.write("[agents.profiles.rehearsal.write]\ntools = false\n")
    refused = call("fix", "Say something else in `one/old.txt`")
    assert refused.code == 2
    assert "agent `rehearsal` has no tools and cannot change files, as a developer has to" in refused.err
    assert "`planforge agent list`" in refused.err
    assert call("agent", "list").code == 0
    with pytest.raises(InvalidInput, match="has no tools"):
        work.require_agents(Project(at.root), ("developer",))


@pytest.mark.parametrize(
    ("name", "said", "reading", "tools"),
    [
        ("claude-cli", {}, True, True),
        ("goose", {}, True, False),
        ("goose", {}, False, True),
        ("api-openai", {}, True, True),
        ("api-openai", {"read": {"mode": "text"}}, True, False),
        ("api-local", {"read": {"mode": "text"}}, False, True),
        ("codex-cli", {"read": {"tools": False}}, True, False),
        ("mine", {"command": ("python", "-m", "planforge.agents.api", "--tools", "none")}, False, False),
        ("mine", {"command": ("python", "-m", "planforge.agents.api", "--mode=text")}, True, False),
        ("mine", {"command": ("my-agent", "--tools", "none")}, True, True),
    ],
)
def test_whether_an_agent_has_tools_is_known_from_its_profile(
    name: str, said: dict[str, object], reading: bool, tools: bool
) -> None:
    assert complete(name, said).has_tools(reading=reading) is tools


def test_nobody_who_is_known_is_without_tools_when_it_writes() -> None:
    found: dict[str, Profile] = {name: profile for name, profile in KNOWN.items() if profile.command}
    assert all(profile.has_tools(reading=False) for profile in found.values())
