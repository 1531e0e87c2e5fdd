"""The agents of a project: a real repository, programs on a PATH made for the test, a file by hand."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from planforge.agents import homes, programs
from planforge.agents.known import KNOWN
from planforge.agents.profiles import Profile
from planforge.app import settings
from planforge.app.agents import registry
from planforge.app.agents.registry import AgentRow
from planforge.app.project import Project
from planforge.errors import InvalidInput, NotFound
from planforge.kernel.effects import Access
from planforge.workspace import processes, sandbox
from planforge.workspace.sandbox import Level
from repositories import repository

WRITTEN = """\
# ours, by hand

[agents]
default = "claude"   # everybody likes it

[agents.roles]
auditor = "mine"

# the one we made
[agents.profiles.mine]
# it needs no login
command = ["my-agent"]

[agents.profiles.mine.read]
args = ["--read-only"]

# how often
[run]
attempts = 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create(repository(tmp_path / "project"))


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH besides what git and the sandbox need."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    return place


def install(place: Path, name: str, script: str = "echo 1.2.3") -> Path:
    (place / name).write_text(f"#!/bin/sh\n{script}\n")
    (place / name).chmod(0o755)
    return place / name


def write(project: Project, text: str) -> None:
    (project.root / "planforge.toml").write_bytes(text.encode())


def text(project: Project) -> str:
    return (project.root / "planforge.toml").read_bytes().decode()


def row(project: Project | None, name: str) -> AgentRow:
    return next(row for row in registry.listed(project).agents if row.name == name)


# Looking


def test_every_agent_is_listed_with_what_is_known_of_its_program(project: Project, bin_: Path) -> None:
    program = install(bin_, "gemini")
    found = row(project, "gemini")
    assert (found.found, found.path, found.version, found.vendor) == (True, str(program), "1.2.3", "google")
    assert len(found.sha256) == 64
    assert found.login == "no"
    missing = row(project, "goose")
    assert (missing.found, missing.path, missing.install) == (False, "", KNOWN["goose"].install)
    assert (project.state / programs.CACHE).exists()


def test_without_a_project_they_are_listed_all_the_same(bin_: Path) -> None:
    install(bin_, "claude")
    assert row(None, "claude-cli").found
    assert registry.listed(None).sandbox == sandbox.strongest().value


def test_the_list_says_which_roles_each_agent_gets(project: Project, bin_: Path) -> None:
    for name in ("claude", "codex-acp", "gemini"):
        install(bin_, name)
    assert row(project, "claude-cli").roles == ("default",)  # nothing is set: it is the first one
    write(project, '[agents]\ndefault = "gemini"\nroles.auditor = "codex"\n')
    again = Project(project.root)
    assert row(again, "gemini").roles == ("default",)
    assert row(again, "codex-acp").roles == ("auditor",)
    assert row(again, "claude-cli").roles == ()


def test_the_list_says_how_firmly_agents_are_confined_and_why_not(project: Project, bin_: Path) -> None:
    write(project, '[sandbox]\nlevel = "processes"\n')
    found = registry.listed(Project(project.root))
    assert (found.sandbox, found.strongest) == ("processes", sandbox.strongest().value)
    write(project, '[sandbox]\nlevel = "none"\n')
    refused = registry.listed(Project(project.root))
    assert refused.sandbox == ""
    assert "without any sandbox" in refused.sandbox_problem


def test_measuring_starts_those_that_are_installed_and_leaves_no_home(project: Project, bin_: Path) -> None:
    install(bin_, "gemini", 'read line; echo \'{"jsonrpc":"2.0","id":0,"result":{}}\'; cat > /dev/null')
    measured = {row.name: row.startup_seconds for row in registry.listed(project, measure=True).agents}
    assert measured["gemini"] is not None
    assert measured["goose"] is None
    assert row(Project(project.root), "gemini").startup_seconds == measured["gemini"]
    assert not list(homes.left(project.state))


# Adding and removing


def test_an_added_agent_can_be_chosen_and_nothing_else_in_the_file_has_changed(
    project: Project, bin_: Path
) -> None:
    write(project, WRITTEN)
    added = registry.add(
        project,
        "other",
        ["my-agent", "--home", "${home}", 'say "hi"\n'],
        speaks="claude",
        vendor="anthropic",
        env={"A": "b", "odd key": "é\\"},
        inherit=["KEY"],
        login=[".other/auth.json"],
    )
    assert text(project) == f"{WRITTEN}\n{added.text}"
    assert settings.read(project.root).agents.profiles["other"] == Profile(
        command=("my-agent", "--home", "${home}", 'say "hi"\n'),
        speaks="claude",
        vendor="anthropic",
        env={"A": "b", "odd key": "é\\"},
        inherit=("KEY",),
        login=(".other/auth.json",),
    )
    assert added.found == ""
    install(bin_, "my-agent")
    assert registry.add(project, "third", ["my-agent"]).found == str(bin_ / "my-agent")


def test_what_was_added_and_removed_again_leaves_the_file_as_it_was(project: Project) -> None:
    for before in (WRITTEN, WRITTEN.rstrip(), "", "\n", WRITTEN.replace("\n", "\r\n"), "# no tables\n"):
        write(project, before)
        registry.add(project, "other", ["x"])
        after = text(project)
        assert ("\r\n" in before) == ("\r\n" in after.removeprefix(before) if before else False)
        removed = registry.remove(Project(project.root), "other")
        assert 'command = ["x"]' in removed.text
        assert text(project).rstrip() == before.rstrip()


def test_a_project_without_settings_gets_them_with_its_first_agent(project: Project) -> None:
    registry.add(project, "mine", ["x"])
    assert text(project) == '[agents.profiles.mine]\ncommand = ["x"]\n'


def test_a_removed_agent_takes_its_tables_along_and_leaves_comments_of_others(project: Project) -> None:
    write(project, WRITTEN.replace('auditor = "mine"', 'auditor = "codex"'))
    removed = registry.remove(project, "mine")
    assert removed.text == (
        "[agents.profiles.mine]\n# it needs no login\n"
        'command = ["my-agent"]\n\n[agents.profiles.mine.read]\nargs = ["--read-only"]\n'
    )
    left = text(project)
    assert "# the one we made" in left
    assert "# how often\n[run]\nattempts = 2\n" in left
    assert "mine" not in tomllib.loads(left)["agents"].get("profiles", {})


@pytest.mark.parametrize(
    ("settings_", "user"),
    [
        (WRITTEN, "agents.roles.auditor"),
        ('[agents]\ndefault = "mine"\n[agents.profiles.mine]\ncommand = ["x"]\n', "agents.default"),
        (
            '[agents.limits]\nswitch_to = ["mine"]\n[agents.profiles.mine]\ncommand = ["x"]\n',
            "agents.limits.switch_to",
        ),
        (
            '[agents.profiles.mine]\ncommand = ["x"]\n[agents.profiles.any]\neither = ["mine"]\n',
            "agents.profiles.any.either",
        ),
    ],
)
def test_an_agent_that_somebody_relies_on_stays(project: Project, settings_: str, user: str) -> None:
    write(project, settings_)
    with pytest.raises(InvalidInput, match=f"agent `mine` is in use: `{user}`"):
        registry.remove(project, "mine")
    assert text(project) == settings_


def test_a_known_agent_stays_but_what_the_file_says_about_it_can_go(project: Project) -> None:
    with pytest.raises(InvalidInput, match="`claude` is known to Planforge"):
        registry.remove(project, "claude")
    with pytest.raises(NotFound, match="has no agent `nobody`"):
        registry.remove(project, "nobody")
    write(project, '[agents]\ndefault = "gemini"\n\n[agents.profiles.gemini]\nhandoff_tokens = 5\n')
    registry.remove(Project(project.root), "gemini")
    assert text(project) == '[agents]\ndefault = "gemini"\n'


@pytest.mark.parametrize("name", ["claude", "Mine", "a b", "a.b", "../x", "", "-x", "x" * 64, "a]\n[b"])
def test_a_name_that_is_taken_or_makes_no_sense_is_refused(project: Project, name: str) -> None:
    write(project, WRITTEN)
    with pytest.raises(InvalidInput):
        registry.add(project, name, ["x"])
    assert text(project) == WRITTEN


def test_an_agent_is_not_added_twice(project: Project) -> None:
    write(project, WRITTEN)
    with pytest.raises(InvalidInput, match=r"`planforge.toml` has `agents.profiles.mine` already"):
        registry.add(project, "mine", ["x"])
    assert text(project) == WRITTEN


@pytest.mark.parametrize(
    "settings_",
    [
        'agents = { default = "claude" }\n',
        '[agents]\nprofiles = { mine = { command = ["x"] } }\n',
        '[agents]\nprofiles.mine.command = ["x"]\n',
        '[agents.profiles]\nmine = { command = ["x"] }\n',
        '[agents.profiles.mine]\ncommand = ["""\n[agents.profiles.other]\n""", \'y\']\n',
    ],
)
def test_a_file_that_is_written_otherwise_is_changed_rightly_or_not_at_all(
    project: Project, settings_: str
) -> None:
    write(project, settings_)
    before = tomllib.loads(settings_)
    changes: list[Callable[[], object]] = [
        lambda: registry.add(project, "more", ["x"]),
        lambda: registry.remove(project, "mine"),
    ]
    for change in changes:
        try:
            change()
        except (InvalidInput, NotFound):
            assert text(project) == settings_
        else:
            said = tomllib.loads(text(project))
            said.get("agents", {}).get("profiles", {}).pop("more", None)
            expected = {**before, "agents": {**before["agents"]}}
            assert said == expected or said.get("agents", {}).get("profiles", {}) == {}
            write(project, settings_)


def test_a_header_inside_of_a_text_is_no_header(project: Project) -> None:
    settings_ = (
        '[agents.profiles.mine]\ncommand = ["x"]\n'
        "[agents.profiles.other]\ncommand = ['y', '''\n[agents.profiles.mine]\n''']\n"
    )
    write(project, settings_)
    with pytest.raises(InvalidInput, match="does not change"):
        registry.remove(project, "mine")
    assert text(project) == settings_


def test_settings_that_are_a_link_or_have_permissions_keep_both(project: Project, tmp_path: Path) -> None:
    real = tmp_path / "shared.toml"
    real.write_text(WRITTEN)
    real.chmod(0o640)
    (project.root / "planforge.toml").symlink_to(real)
    registry.add(project, "other", ["x"])
    assert (project.root / "planforge.toml").is_symlink()
    assert "other" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_agents_that_are_added_at_the_same_time_are_all_there(project: Project) -> None:
    write(project, WRITTEN)
    threads = [
        threading.Thread(target=registry.add, args=(Project(project.root), f"agent-{number}", ["x"]))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(settings.read(project.root).agents.profiles) == 9


# What the settings say about agents


def test_the_settings_override_only_what_they_say_of_a_known_agent(project: Project) -> None:
    write(project, "[agents.profiles.gemini]\nresume_after = 0\nenv.MODEL = 'x'\nread.mode = 'default'\n")
    profile = settings.read(project.root).agents.profiles["gemini"]
    known = KNOWN["gemini"]
    assert (profile.resume_after, profile.env, profile.read.mode) == (
        0,
        known.env | {"MODEL": "x"},
        "default",
    )
    assert (profile.command, profile.endpoint) == (known.command, known.endpoint)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("env.A = '${HOME}'", "`${HOME}` stands for nothing"),
        ("files.'../x' = 'y'", "the file `../x` is no path in a home"),
    ],
)
def test_settings_that_would_fail_later_fail_at_once(project: Project, table: str, problem: str) -> None:
    write(project, f"[agents.profiles.mine]\ncommand = ['x']\n{table}\n")
    with pytest.raises(InvalidInput) as caught:
        settings.read(project.root)
    assert f"`agents.profiles.mine`: {problem}" in caught.value.message


# In the sandbox


@pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK])
def test_a_confined_agent_finds_its_home_and_its_temporary_files_there(
    project: Project, tmp_path: Path, level: Level
) -> None:
    if not sandbox.tried(level).works:
        pytest.skip(f"{level} does not work here")
    worktree = project.state / "worktrees" / "w"
    worktree.mkdir(parents=True)
    furnished = homes.prepare(
        homes.place(project.state, "run-001", "w", "mine"),
        Profile(command=("sh",)),
        access=Access.READ,
        root=project.root,
        cwd=worktree,
        confined=True,
    )
    policy = sandbox.Sandboxing().reading(worktree, project.root, state=project.state, own=[furnished.home])
    script = 'echo $HOME $TMPDIR; touch ~/a "$TMPDIR/b" && ! touch here && ! (echo forged > "$HOME.login")'
    running = processes.run(
        [*furnished.argv, "-c", script],
        cwd=worktree,
        seconds=30,
        extra=furnished.env,
        policy=policy,
        level=level,
    )
    ended = asyncio.run(running)
    assert (ended.exit_code, ended.output.decode().split()[:2]) == (
        0,
        [str(furnished.home), str(furnished.home / "tmp")],
    ), ended.output
    assert (furnished.home / "a").exists()
    assert (furnished.home / "tmp" / "b").exists()


# What the page says


def test_the_examples_of_the_page_about_agents_are_settings() -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
    examples = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        assert settings.parse(example.encode()).agents.profiles


def test_every_known_agent_is_on_the_page_about_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
    assert all(f"`{name}`" in page for name in KNOWN)
