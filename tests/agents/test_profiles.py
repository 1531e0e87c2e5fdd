"""Which agent is chosen, from real programs on a PATH made for the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from planforge.agents.profiles import KNOWN, REHEARSAL, Profile, choose
from planforge.errors import InvalidInput, NoAgent


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program on a PATH that holds nothing else."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def install(program: str) -> None:
        path = tmp_path / program
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)

    return install


def test_an_agent_is_found_by_its_name(install: Callable[[str], None]) -> None:
    install("gemini")
    assert choose("gemini", {}) == ("gemini", KNOWN["gemini"])


def test_an_unknown_agent_is_refused_and_the_known_ones_are_named(install: Callable[[str], None]) -> None:
    with pytest.raises(InvalidInput) as caught:
        choose("cluade", {"mine": Profile(command=("mine",))})
    assert caught.value.message == (
        "there is no agent `cluade`; known are `claude`, `codex`, `gemini`, `opencode`, `rehearsal`, `mine`"
    )


@pytest.mark.parametrize("name", [name for name in KNOWN if name != REHEARSAL])
def test_an_agent_that_is_not_installed_is_told_how_to_be(install: Callable[[str], None], name: str) -> None:
    with pytest.raises(NoAgent) as caught:
        choose(name, {})
    assert f"`{KNOWN[name].command[0]}`, which is not on PATH" in caught.value.message
    assert caught.value.hint == KNOWN[name].install


def test_an_own_agent_that_is_not_installed_is_asked_for(install: Callable[[str], None]) -> None:
    with pytest.raises(NoAgent) as caught:
        choose("mine", {"mine": Profile(command=("my-agent", "--acp"))})
    assert caught.value.hint == "put `my-agent` on PATH"


def test_a_file_that_cannot_be_run_is_no_agent(install: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "gemini").write_text("not a program")
    with pytest.raises(NoAgent):
        choose("gemini", {})


def test_without_a_name_the_first_real_agent_that_is_installed_is_taken(
    install: Callable[[str], None],
) -> None:
    install("opencode")
    assert choose("", {})[0] == "opencode"
    install("codex-acp")
    assert choose("", {})[0] == "codex"


def test_without_a_name_an_own_agent_will_do(install: Callable[[str], None]) -> None:
    install("my-agent")
    mine = Profile(command=("my-agent",))
    assert choose("", {"mine": mine}) == ("mine", mine)


def test_the_rehearsal_agent_is_never_taken_for_a_real_one(install: Callable[[str], None]) -> None:
    with pytest.raises(NoAgent) as caught:
        choose("", {})
    assert "claude-agent-acp" in caught.value.message
    assert "python" not in caught.value.message
    assert caught.value.hint is not None
    assert "planforge demo" in caught.value.hint
    assert choose(REHEARSAL, {}) == (REHEARSAL, KNOWN[REHEARSAL])


def test_a_known_agent_can_be_given_another_environment_alone(install: Callable[[str], None]) -> None:
    install("claude-agent-acp")
    _, profile = choose("claude", {"claude": Profile(env={"MODEL": "small"})})
    assert profile == msgspec.structs.replace(KNOWN["claude"], env={"MODEL": "small"})
    _, profile = choose("claude", {"claude": Profile(inherit=("OTHER_KEY",))})
    assert profile == msgspec.structs.replace(KNOWN["claude"], inherit=("OTHER_KEY",))


def test_a_known_agent_can_be_given_another_command(install: Callable[[str], None]) -> None:
    install("wrapped-claude")
    mine = Profile(command=("wrapped-claude", "--acp"))
    assert choose("claude", {"claude": mine}) == ("claude", mine)


def test_an_own_agent_needs_a_command(install: Callable[[str], None]) -> None:
    with pytest.raises(InvalidInput, match="agent `mine` has no `command`"):
        choose("", {"mine": Profile(env={"A": "b"})})


def test_a_misspelt_setting_of_a_profile_is_not_passed_over() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `comand`"):
        msgspec.convert({"comand": ["x"]}, Profile)


def test_a_known_agent_can_be_given_another_threshold_alone(install: Callable[[str], None]) -> None:
    install("gemini")
    _, profile = choose("gemini", {"gemini": Profile(handoff_tokens=700_000)})
    assert profile == msgspec.structs.replace(KNOWN["gemini"], handoff_tokens=700_000)
