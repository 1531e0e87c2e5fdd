"""The demo played by real programs: the same story as the rehearsal agent's, through the same flows."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from programs import COMMAND, environment
from real.conftest import PROGRAM, Programs

OTHERWISE = {
    *("agent", "by"),  # who played
    *("base", "commit", "landed", "landed_commit"),  # commits have a date
    *("seconds", "time_cost_ms", "output"),  # how long it took, which the output of the tests says too
}
"""What differs from one telling to the next."""

AGENTS = {"claude": "claude-agent-acp", "claude-cli": "claude", "codex-cli": "codex"}


def told(place: Path, path: str, *words: str) -> dict[str, Any]:
    """The document of a demo."""
    process = subprocess.run(
        [*COMMAND, "demo", str(place), "--pace", "0", "--json", *words],
        cwd=place.parent,
        env=environment({"PATH": path}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    document = json.loads(process.stdout)
    assert isinstance(document, dict)
    return document


def story(value: Any) -> Any:
    """A document without what differs from one telling to the next."""
    if isinstance(value, dict):
        return {key: story(part) for key, part in value.items() if key not in OTHERWISE}
    return [story(part) for part in value] if isinstance(value, list) else value


@pytest.fixture(scope="session")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return told(tmp_path_factory.mktemp("demo") / "rehearsed", environment()["PATH"])


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.check("plays the demo like the rehearsal agent")
def test_the_same_story_is_told(
    agent: str,
    programs: Programs,
    rehearsed: dict[str, Any],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    assert programs[AGENTS[agent]].exists()
    record_property(PROGRAM, agent)
    document = told(tmp_path / "real", programs.path, "--agent", agent)
    assert story(document) == story(rehearsed)
    trees = [attempt["tree"] for phase in document["phases"] for attempt in phase["attempts"]]
    assert len(set(filter(None, trees))) == 3, "three attempts changed files"
    agents = {attempt["agent"] for phase in document["phases"] for attempt in phase["attempts"]}
    assert "rehearsal" not in agents
    assert any(name.startswith(agent) for name in agents)
