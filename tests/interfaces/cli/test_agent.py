"""`planforge agent` as a person meets it: the command as a process, in a real repository."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from planforge.app.demo.story import REQUEST
from planforge.app.project import Project
from programs import document, planforge
from repositories import fingerprint, repository
from workshops import workshop


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = repository(tmp_path / "project")
    Project.create(place)
    return place


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """A machine without any agent, and a person without any login."""
    keys = {name: "" for name in os.environ if name.endswith(("_API_KEY", "_TOKEN"))}
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "ada"), **keys}


def install(place: Path, name: str, script: str) -> Path:
    place.mkdir(exist_ok=True)
    (place / name).write_text(f"#!/bin/sh\n{script}\n")
    (place / name).chmod(0o755)
    return place / name


@pytest.mark.dear
def test_list_says_how_to_get_what_is_missing_and_that_one_can_do_without(
    root: Path, alone: dict[str, str]
) -> None:
    shown = planforge("agent", "list", cwd=root, extra=alone)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(
        "no agent is installed; to see Planforge work without one: planforge demo\n"
    )
    assert "npm install -g @openai/codex" in shown.stdout
    assert "sandbox: " in shown.stdout
    assert "rehearsal" not in shown.stdout


def test_list_shows_which_program_would_be_started_and_an_impostor_gives_itself_away(
    root: Path, alone: dict[str, str], tmp_path: Path
) -> None:
    true = install(tmp_path / "true", "claude", "echo 2.1.0 '(Claude Code)'")
    path = f"{true.parent}:{alone['PATH']}"
    shown = planforge("agent", "list", cwd=root, extra=alone | {"PATH": path}).stdout
    line = next(line for line in shown.splitlines() if line.startswith("claude-cli"))
    assert line.split()[:2] == ["claude-cli", "2.1.0"]
    assert "no: `claude auth login`" in line
    assert "default" in line
    assert str(true) in line
    fake = install(tmp_path / "fake", "claude", "echo 2.1.0 '(Claude Code)'; : steal")
    path = f"{fake.parent}:{path}"
    again = planforge("agent", "list", cwd=root, extra=alone | {"PATH": path}).stdout
    other = next(line for line in again.splitlines() if line.startswith("claude-cli"))
    assert str(fake) in other
    assert other.split()[-1] != line.split()[-1]


def test_list_as_json_has_all_of_it_and_no_secret(root: Path, alone: dict[str, str], tmp_path: Path) -> None:
    install(tmp_path / "bin", "gemini", "echo 0.61.0")
    extra = alone | {"PATH": f"{tmp_path / 'bin'}:{alone['PATH']}", "GEMINI_API_KEY": "AIza-very-secret"}
    shown = planforge("agent", "list", "--json", cwd=root, extra=extra)
    assert "very-secret" not in shown.stdout + (root / ".planforge" / ".programs.json").read_text()
    found = json.loads(shown.stdout)
    gemini = next(agent for agent in found["agents"] if agent["name"] == "gemini")
    assert (gemini["login"], gemini["version"], gemini["roles"]) == ("yes (variable)", "0.61.0", ["default"])
    assert found["names"]["claude"] == ["claude-acp", "claude-cli"]


def test_list_works_where_there_is_no_project(tmp_path: Path, alone: dict[str, str]) -> None:
    shown = planforge("agent", "list", cwd=tmp_path, extra=alone)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_list_cannot_be_made_to_do_anything_to_a_terminal(
    root: Path, alone: dict[str, str], tmp_path: Path
) -> None:
    place = tmp_path / "a\x1b[31mb"
    install(place, "gemini", r"printf '\033]0;owned\007'")
    shown = planforge("agent", "list", cwd=root, extra=alone | {"PATH": f"{place}:{alone['PATH']}"})
    assert "gemini" in shown.stdout
    assert "\x1b" not in shown.stdout


def test_add_and_remove_tell_what_they_wrote_and_took_out(root: Path, alone: dict[str, str]) -> None:
    arguments = (
        "mine",
        "--env",
        "A=b=c",
        "--inherit",
        "KEY",
        "--vendor",
        "us",
        "--",
        "my-agent",
        "--acp",
        "-x",
    )
    added = planforge("agent", "add", *arguments, cwd=root, extra=alone)
    assert added.returncode == 0, added.stderr
    table = '[agents.profiles.mine]\ncommand = ["my-agent", "--acp", "-x"]\nvendor = "us"\n'
    table += 'env = { A = "b=c" }\ninherit = ["KEY"]\n'
    assert (root / "planforge.toml").read_text() == table
    assert added.stdout == (
        f"added `mine` to planforge.toml\n\n{table}\n`my-agent` is not on PATH yet\n"
        "next: planforge agent test mine\n"
    )
    assert "mine" in planforge("agent", "list", cwd=root, extra=alone).stdout
    removed = planforge("agent", "remove", "mine", cwd=root)
    assert removed.stdout == f"removed `mine` from planforge.toml:\n\n{table}"
    assert (root / "planforge.toml").read_text() == ""


def test_add_as_json(root: Path) -> None:
    added = document("agent", "add", "mine", "x", cwd=root)
    assert added["name"] == "mine"
    assert added["text"].startswith("[agents.profiles.mine]")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add", "mine"), 2, "Missing argument"),
        (("add", "claude", "--", "x"), 2, "`claude` is known to Planforge"),
        (("add", "A!", "--", "x"), 2, "`A!` is no name for an agent"),
        (("add", "mine", "--env", "A", "--", "x"), 2, "is not of the form NAME=VALUE"),
        (("add", "mine", "--speaks", "klingon", "--", "x"), 2, "klingon"),
        (("add", "mine", "--", "x", "${nope}"), 2, "`${nope}` stands for nothing"),
        (("add", "mine", "--login", "/etc/passwd", "--", "x"), 2, "is no path in a home"),
        (("remove", "claude"), 2, "`claude` is known to Planforge"),
        (("remove", "nobody"), 3, "has no agent `nobody`"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(
    root: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    shown = planforge("agent", *arguments, cwd=root)
    assert (shown.returncode, shown.stdout) == (code, "")
    assert said in shown.stderr
    assert not (root / "planforge.toml").exists()


def test_without_an_agent_a_command_that_needs_one_says_so_and_nothing_is_half_done(
    root: Path, alone: dict[str, str]
) -> None:
    before = fingerprint(root), sorted((root / ".planforge").rglob("*"))
    shown = planforge("forge", "Add a greeting", cwd=root, extra=alone)
    assert shown.returncode == 4
    assert "looked for `claude-agent-acp`, `claude`, `codex-acp`, `codex`, `gemini`" in shown.stderr
    assert "planforge demo" in shown.stderr
    assert (fingerprint(root), sorted((root / ".planforge").rglob("*"))) == before
    assert planforge("log", cwd=root, extra=alone).stdout == "no events yet\n"


@pytest.mark.dear
def test_without_an_agent_an_approved_plan_is_not_begun_and_stays_approved(
    tmp_path: Path, alone: dict[str, str]
) -> None:
    root = workshop(tmp_path)
    assert planforge("forge", REQUEST, cwd=root).returncode == 0
    assert planforge("plan", "approve", "1", cwd=root).returncode == 0
    written = root / "planforge.toml"
    written.write_text(written.read_text().replace('default = "rehearsal"', 'default = ""'))
    before = planforge("log", "--json", cwd=root).stdout
    shown = planforge("plan", "run", "1", cwd=root, extra=alone)
    assert shown.returncode == 4, shown.stderr
    assert "no agent program on PATH" in shown.stderr
    assert planforge("log", "--json", cwd=root).stdout == before
    assert document("plan", "show", "1", cwd=root)["approved_by"]
