"""Which agent is meant by a name, from real programs on a PATH made for the test; what profiles may say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from planforge.agents import profiles, roster
from planforge.agents.known import KNOWN
from planforge.agents.profiles import REHEARSAL, Profile, Way
from planforge.agents.roster import choose
from planforge.errors import InvalidInput, NoAgent
from planforge.interfaces.cli.typed import text

Install = Callable[..., None]

REAL = [name for name, profile in KNOWN.items() if profile.command and not profile.by_name]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts programs on a PATH that holds nothing else."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def install(*programs: str) -> None:
        for program in programs:
            path = tmp_path / program
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)

    return install


# Which one is meant


def test_an_agent_is_found_by_its_name(install: Install) -> None:
    install("gemini")
    assert choose("gemini", {}) == ("gemini", KNOWN["gemini"])


def test_an_unknown_agent_is_refused_and_the_known_ones_are_named(install: Install) -> None:
    with pytest.raises(InvalidInput) as caught:
        choose("cluade", {"mine": Profile(command=("mine",))})
    assert caught.value.message == "there is no agent `cluade`; did you mean `claude`?"
    assert text(caught.value.hint).startswith("known are `claude`, `claude-acp`,")
    assert text(caught.value.hint).endswith("`rehearsal`, `mine`")


@pytest.mark.parametrize("name", REAL)
def test_an_agent_that_is_not_installed_is_told_how_to_be(install: Install, name: str) -> None:
    with pytest.raises(NoAgent) as caught:
        choose(name, {})
    assert f"`{KNOWN[name].command[0]}`, which is not on PATH" in caught.value.message
    assert KNOWN[name].install in text(caught.value.hint)
    assert "planforge demo" in text(caught.value.hint)


def test_an_own_agent_that_is_not_installed_is_asked_for(install: Install) -> None:
    with pytest.raises(NoAgent) as caught:
        choose("mine", {"mine": Profile(command=("my-agent", "--acp"))})
    assert text(caught.value.hint).startswith("put `my-agent` on PATH")


def test_a_file_that_cannot_be_run_is_no_agent(install: Install, tmp_path: Path) -> None:
    (tmp_path / "gemini").write_text("not a program")
    with pytest.raises(NoAgent):
        choose("gemini", {})


@pytest.mark.parametrize(
    ("installed", "taken"),
    [
        (["claude"], "claude-cli"),
        (["claude-agent-acp"], "claude-acp"),
        (["claude", "claude-agent-acp"], "claude-acp"),
    ],
)
def test_a_vendors_name_is_the_best_of_its_agents_that_is_installed(
    install: Install, installed: list[str], taken: str
) -> None:
    install(*installed)
    assert choose("claude", {}) == (taken, KNOWN[taken])


def test_a_vendors_name_with_nothing_installed_names_every_way_to_have_it(install: Install) -> None:
    with pytest.raises(NoAgent) as caught:
        choose("codex", {})
    assert caught.value.message == "agent `codex` needs `codex-acp` or `codex`, which is not on PATH"
    assert "@openai/codex" in text(caught.value.hint)
    assert "codex-acp" in text(caught.value.hint)


def test_without_a_name_the_first_real_agent_that_is_installed_is_taken(install: Install) -> None:
    install("opencode")
    assert choose("", {})[0] == "opencode"
    install("codex-acp")
    assert choose("", {})[0] == "codex-acp"


def test_without_a_name_an_own_agent_will_do(install: Install) -> None:
    install("my-agent")
    mine = Profile(command=("my-agent",))
    assert choose("", {"mine": mine}) == ("mine", mine)


def test_no_agent_at_all_names_all_that_were_looked_for_and_how_to_do_without(install: Install) -> None:
    with pytest.raises(NoAgent) as caught:
        choose("", {"mine": Profile(command=("my-agent",))})
    for name in REAL:
        assert f"`{KNOWN[name].program}`" in caught.value.message
    assert "`my-agent`" in caught.value.message
    assert "python" not in caught.value.message  # the rehearsal agent is never taken for a real one
    assert "planforge demo" in text(caught.value.hint)
    assert "planforge agent list" in text(caught.value.hint)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("name", [name for name, profile in KNOWN.items() if profile.by_name])
def test_an_agent_that_must_be_named_is_taken_only_then(install: Install, name: str) -> None:
    if KNOWN[name].installed:
        assert choose(name, {}) == (name, KNOWN[name])
    with pytest.raises(NoAgent):
        choose("", {})
    assert name not in roster.others("nobody", {})


def test_an_agent_whose_package_is_missing_is_not_installed() -> None:
    wanting = Profile(command=KNOWN[REHEARSAL].command, needs="a_package_that_nobody_has", install="pip it")
    with pytest.raises(NoAgent) as caught:
        choose("wanting", {"wanting": wanting})
    assert caught.value.message == (
        "agent `wanting` needs `a_package_that_nobody_has`, which is not installed"
    )


def test_an_adapter_without_the_program_that_it_starts_is_no_agent(install: Install) -> None:
    install("pi-acp")
    with pytest.raises(NoAgent) as caught:
        choose("pi", {})
    assert caught.value.message == "agent `pi` needs `pi`, which is not on PATH"
    install("pi")
    assert choose("pi", {})[0] == "pi"


def test_an_agent_that_is_named_and_missing_is_replaced_by_no_other(install: Install) -> None:
    install("gemini", "opencode")
    with pytest.raises(NoAgent, match="agent `claude` needs"):
        choose("claude", {})


def test_agents_of_other_vendors_are_those_that_are_installed_and_known_to_be(install: Install) -> None:
    install("claude", "codex", "codex-acp", "gemini", "opencode")
    assert roster.others("anthropic", {}) == ("codex-acp", "codex-cli", "gemini")
    assert roster.others("google", {}) == ("claude-cli", "codex-acp", "codex-cli")
    assert roster.others("anthropic", {"opencode": Profile(vendor="zhipu")})[-1] == "opencode"


def test_a_vendor_is_known_by_every_name() -> None:
    assert [roster.vendor_of(name, {}) for name in ("claude", "claude-cli", "gemini", "opencode")] == [
        *("anthropic", "anthropic", "google", "")
    ]
    assert roster.vendor_of("cluade", {}) == ""


# What a person says about one


def test_a_known_agent_can_be_given_another_environment_alone(install: Install) -> None:
    install("gemini")
    _, profile = choose("gemini", {"gemini": Profile(env={"MODEL": "small"})})
    assert profile == msgspec.structs.replace(KNOWN["gemini"], env=KNOWN["gemini"].env | {"MODEL": "small"})


def test_a_known_agent_can_be_given_another_threshold_alone(install: Install) -> None:
    install("gemini")
    _, profile = choose("gemini", {"gemini": Profile(handoff_tokens=700_000)})
    assert profile == msgspec.structs.replace(KNOWN["gemini"], handoff_tokens=700_000)


def test_what_is_said_about_a_vendors_name_holds_for_whichever_of_its_agents_is_taken(
    install: Install,
) -> None:
    own = {"claude": Profile(env={"MODEL": "small"})}
    install("claude")
    assert choose("claude", own)[1].env["MODEL"] == "small"
    assert choose("claude-cli", own)[1].env["MODEL"] == "small"
    own["claude-cli"] = roster.complete("claude-cli", {"env": {"MODEL": "large"}})
    assert choose("claude", own)[1].env["MODEL"] == "large"


def test_a_known_agent_can_be_given_another_command(install: Install) -> None:
    install("wrapped-claude")
    mine = Profile(command=("wrapped-claude", "--acp"))
    assert choose("claude", {"claude": mine}) == ("claude", mine)


def test_an_own_agent_needs_a_command(install: Install) -> None:
    with pytest.raises(InvalidInput, match="agent `mine` has no `command`"):
        choose("", {"mine": Profile(env={"A": "b"})})


def test_an_own_name_can_stand_for_several(install: Install) -> None:
    install("gemini")
    own = {"any": Profile(either=("codex-cli", "gemini"))}
    assert choose("any", own)[0] == "gemini"
    with pytest.raises(InvalidInput, match="`any` stands for `claude`, which is no agent with a command"):
        choose("any", {"any": Profile(either=("claude",))})


def test_a_table_about_a_known_agent_overrides_only_what_it_says_deep_in_its_ways_as_well() -> None:
    profile = roster.complete("codex-acp", {"read": {"env": {"A": "b"}}, "login": [], "usage": "none"})
    known = KNOWN["codex-acp"]
    assert profile.read == Way(mode=known.read.mode, env=known.read.env | {"A": "b"})
    assert (profile.login, profile.usage) == ((), "none")  # which are the defaults, and said all the same
    assert profile.login_env == known.login_env
    assert profile.command == known.command


def test_a_table_with_a_command_for_a_vendors_name_keeps_the_rest_of_what_speaks_the_same() -> None:
    profile = roster.complete("claude", {"command": ["wrapped"], "speaks": "claude"})
    assert profile == msgspec.structs.replace(KNOWN["claude-cli"], command=("wrapped",))
    assert roster.complete("claude", {"command": ["w"]}).read == KNOWN["claude-acp"].read


def test_a_misspelt_setting_of_a_profile_is_not_passed_over() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `comand`"):
        msgspec.convert({"comand": ["x"]}, Profile)


@pytest.mark.parametrize(
    ("name", "said", "problem"),
    [
        ("mine", {"command": ["a", "${nope}"]}, "`${nope}` stands for nothing"),
        ("mine", {"env": {"A": "${HOME}"}}, "`${HOME}` stands for nothing"),
        ("mine", {"read": {"meta": {"a": [{"b": "${x}"}]}}}, "`${x}` stands for nothing"),
        ("mine", {"files": {"a/../../b": ""}}, "the file `a/../../b` is no path in a home"),
        ("mine", {"write": {"files": {"/etc/passwd": ""}}}, "the file `/etc/passwd` is no path in a home"),
        ("mine", {"login": ["../secret"]}, "the login `../secret` is no path in a home"),
        ("mine", {"directories": {"X": "/abs"}}, "the directory `/abs` is no path in a home"),
        ("a/b", {}, "`a/b` is no name for an agent"),
        ("..", {}, "`..` is no name for an agent"),
        ("mine", {"command": [""]}, "the program in `command` has no name"),
    ],
)
def test_what_makes_no_sense_in_a_profile_is_found_before_anything_starts(
    name: str, said: dict[str, Any], problem: str
) -> None:
    assert problem in next(profiles.problems(name, msgspec.convert(said, Profile)))


def test_blanks_are_filled_and_a_doubled_dollar_is_one() -> None:
    values = dict.fromkeys(profiles.BLANKS, "x")
    assert profiles.fill("a ${home} $b $${home} $$$$", values) == "a x $b ${home} $$"
    assert not list(profiles.problems("mine", Profile(command=("a", "$${anything}", "$HOME"))))


@pytest.mark.parametrize("name", KNOWN)
def test_the_known_profiles_have_no_problem_themselves(name: str) -> None:
    assert not list(profiles.problems(name, KNOWN[name]))


@pytest.mark.parametrize("name", REAL)
def test_every_real_agent_says_how_it_is_kept_from_writing_and_pointed_elsewhere(name: str) -> None:
    profile = KNOWN[name]
    assert profile.read != profile.write
    assert profile.endpoint != Way()
    assert profile.model != Way()
    assert profile.install
    assert profile.login_command
    assert profile.directories
