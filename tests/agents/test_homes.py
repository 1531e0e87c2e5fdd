"""Private homes on a real disk, with agents that are real programs and do what they like in there."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from planforge.agents import homes
from planforge.agents.api import keys as api_keys
from planforge.agents.homes import Furnished, prepare
from planforge.agents.known import KNOWN
from planforge.agents.profiles import REHEARSAL, Profile, Way
from planforge.errors import AgentUnavailable, InvalidInput
from planforge.interfaces.cli.typed import text
from planforge.kernel.effects import Access

LOGIN = {"tokens": {"access_token": "one", "account_id": "ada"}, "last_refresh": "2026-01-01"}
AGENT = Profile(
    command=("sh",),
    directories={"AGENT_HOME": ".agent"},
    login=(".agent/auth.json",),
    login_env=("AGENT_KEY",),
)


class World(NamedTuple):
    """A person's home, a project, and the place for a private home."""

    person: Path
    root: Path
    place: Path

    def furnish(self, profile: Profile = AGENT, access: Access = Access.WRITE, **more: Any) -> Furnished:
        cwd = more.pop("cwd", self.root)
        return prepare(
            self.place, profile, access=access, root=self.root, cwd=cwd, person=self.person, **more
        )

    @property
    def login(self) -> Path:
        return self.person / ".agent" / "auth.json"

    def log_in(self, login: object = LOGIN) -> bytes:
        self.login.parent.mkdir(exist_ok=True)
        self.login.write_text(json.dumps(login))
        self.login.chmod(0o600)
        return self.login.read_bytes()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for name in ("AGENT_HOME", "AGENT_KEY"):
        monkeypatch.delenv(name, raising=False)
    person, root = tmp_path / "ada", tmp_path / "project"
    person.mkdir()
    root.mkdir()
    return World(person, root, homes.place(root / ".planforge", "run-001", "forge:plan-001:auditor", "agent"))


def act(furnished: Furnished, script: str) -> str:
    """Have the agent do something, as a process of its own with what it was furnished with."""
    env = {"PATH": os.environ["PATH"], **furnished.env}
    process = subprocess.run(
        [*furnished.argv, "-c", script],
        env=env,
        cwd=furnished.home,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout


def names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def renewed(**changes: object) -> str:
    return json.dumps(
        {"tokens": {"access_token": "two", "account_id": "ada"}, "last_refresh": "now"} | changes
    )


# What is in it


def test_an_agent_finds_a_home_of_its_own_and_every_variable_leads_there(world: World) -> None:
    furnished = world.furnish()
    said = act(
        furnished, 'echo "$HOME"; echo "$TMPDIR"; echo "$AGENT_HOME"; touch "$TMPDIR/a" "$AGENT_HOME/b" ~/c'
    )
    home = furnished.home
    assert said.split() == [str(home), str(home / "tmp"), str(home / "agent_home")]
    assert not list(world.person.iterdir())


def test_only_its_owner_can_look_into_it(world: World) -> None:
    world.log_in()
    files = {"agent_home/deep/config.toml": "a = 1", "bin/start": "#!/bin/sh\nexit 3\n"}
    furnished = world.furnish(Profile(command=("sh",), files=files, **_login()))
    modes = {
        str(path.relative_to(furnished.home)): stat.S_IMODE(path.stat().st_mode)
        for path in furnished.home.rglob("*")
    }
    assert stat.S_IMODE(furnished.home.stat().st_mode) == 0o700
    assert modes == {
        "agent_home": 0o700,
        "agent_home/auth.json": 0o600,
        "agent_home/deep": 0o700,
        "agent_home/deep/config.toml": 0o600,
        "bin": 0o700,
        "bin/start": 0o700,
        "tmp": 0o700,
    }


def _login() -> dict[str, Any]:
    return {"directories": AGENT.directories, "login": AGENT.login}


def test_arguments_come_in_an_order_in_which_the_later_ones_can_override(world: World) -> None:
    profile = Profile(
        command=("sh", "-e"),
        read=Way(args=("reading",)),
        write=Way(args=("writing", "${cwd}")),
        confined=Way(args=("confined",)),
        endpoint=Way(args=("at", "${endpoint}")),
        model=Way(args=("-m", "${model}")),
    )
    read = world.furnish(profile, Access.READ)
    assert read.argv[1:] == ("-e", "reading")
    written = world.furnish(
        profile, Access.WRITE, model="large", endpoint="http://127.0.0.1:1/", confined=True
    )
    assert written.argv[1:] == (
        *("-e", "writing", str(world.root), "confined", "at", "http://127.0.0.1:1", "-m", "large"),
    )


def test_the_program_is_started_by_the_path_that_it_was_found_at(world: World) -> None:
    assert Path(world.furnish().argv[0]).is_absolute()
    with pytest.raises(AgentUnavailable, match="`no-such-agent` is not on PATH") as caught:
        world.furnish(Profile(command=("no-such-agent",), install="get it"))
    assert text(caught.value.hint) == "get it"


def test_our_sandbox_changes_the_modes_of_a_session_and_only_then(world: World) -> None:
    profile = Profile(
        command=("sh",),
        read=Way(mode="read-only", meta={"in": ["${cwd}"]}),
        write=Way(mode="workspace"),
        confined=Way(mode="anything", env={"MODE": "anything"}),
    )
    inside, outside = world.furnish(profile, confined=True), world.furnish(profile)
    assert (inside.profile.read.mode, inside.profile.write.mode) == ("anything", "anything")
    assert (outside.profile.read.mode, outside.profile.write.mode) == ("read-only", "workspace")
    assert (inside.env.get("MODE"), outside.env.get("MODE")) == ("anything", None)
    assert outside.profile.read.meta == {"in": [str(world.root)]}


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "new\nline", "$${home}", "\x7f", "ünï"])
def test_a_path_with_odd_letters_stands_right_in_configuration_files(world: World, name: str) -> None:
    cwd = world.root / name
    files = {"a.json": '{"at": "${cwd}"}', "b.toml": 'at = "${cwd}"', "c.txt": "${cwd}"}
    home = world.furnish(Profile(command=("sh",), files=files), cwd=cwd).home
    assert json.loads((home / "a.json").read_text()) == {"at": str(cwd)}
    assert tomllib.loads((home / "b.toml").read_text()) == {"at": str(cwd)}
    assert (home / "c.txt").read_text() == str(cwd)


@pytest.mark.parametrize("model", ['a"b', "a\\b", "-x", "a\nb"])
def test_what_is_no_name_of_a_model_is_refused(world: World, model: str) -> None:
    with pytest.raises(InvalidInput, match="is no name of a model"):
        world.furnish(model=model)


def test_nothing_of_our_environment_comes_along_but_what_the_profile_names(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", "secret")
    monkeypatch.setenv("OTHER_KEY", "secret")
    monkeypatch.setenv("PROXY", "there")
    env = world.furnish(Profile(command=("sh",), login_env=("AGENT_KEY",), inherit=("PROXY",))).env
    assert set(env) == {"HOME", "TMPDIR", "AGENT_KEY", "PROXY"}


def test_a_key_in_a_file_is_in_nobodys_environment_and_gone_when_the_agent_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRST_KEY", "")
    monkeypatch.setenv("SECOND_KEY", "secret")
    monkeypatch.setenv("THIRD_KEY", "another")
    keys = ("FIRST_KEY", "SECOND_KEY", "THIRD_KEY")
    profile = Profile(command=("sh",), login_env=keys, login_file="KEY_FILE")
    furnished = world.furnish(profile)
    assert set(furnished.env) == {"HOME", "TMPDIR", "KEY_FILE"}
    file = Path(furnished.env["KEY_FILE"])
    assert (file.parent, file.read_text(), file.stat().st_mode & 0o777) == (furnished.home, "secret", 0o600)
    homes.leave(furnished)
    assert not file.exists()
    world.furnish(profile)
    assert "KEY_FILE" not in world.furnish(profile, endpoint="http://127.0.0.1:1").env
    assert not file.exists()


def test_the_keys_of_model_apis_are_handed_over_in_files(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "secret-google")
    monkeypatch.setenv("GEMINI_API_KEY", "secret-gemini")
    profile = msgspec.structs.replace(KNOWN["api-google"], command=("sh",), needs="")
    furnished = world.furnish(profile)
    assert not any("secret" in value for value in furnished.env.values())
    assert Path(furnished.env[api_keys.FILE_VARIABLE]).read_text() == "secret-google"


def test_tools_of_the_person_are_found_where_they_would_be_and_nothing_beside_them(world: World) -> None:
    for name in (".cargo/bin", ".cargo/credentials", "go/bin"):
        (world.person / name).mkdir(parents=True)
    tools = [world.person / ".cargo/bin", world.person / "missing", world.root, world.person]
    home = world.furnish(tools=tools).home
    assert (home / ".cargo/bin").readlink() == world.person / ".cargo/bin"
    assert names(home / ".cargo") == ["bin"]
    assert not (home / "go").exists()
    world.furnish(tools=tools)  # which find their links there already


def test_links_that_an_agent_left_in_its_home_are_not_followed_when_it_is_furnished_again(
    world: World,
) -> None:
    profile = Profile(command=("sh",), files={"conf/a.toml": "ours", "b": "ours"}, **_login())
    furnished = world.furnish(profile)
    victim = world.person / "victim"
    victim.mkdir()
    (victim / "a.toml").write_text("theirs")
    act(
        furnished,
        f"rm -r ~/conf ~/b ~/tmp; ln -s {victim} ~/conf; ln -s {victim}/a.toml ~/b; ln -s {victim} ~/tmp",
    )
    home = world.furnish(profile).home
    assert (victim / "a.toml").read_text() == "theirs"
    assert names(victim) == ["a.toml"]
    assert [(home / name).read_text() for name in ("conf/a.toml", "b")] == ["ours", "ours"]
    assert not (home / "tmp").is_symlink()


# The login


def test_a_login_is_brought_along_and_stays_where_it_was(world: World) -> None:
    before = world.log_in()
    furnished = world.furnish()
    assert act(furnished, 'cat "$AGENT_HOME/auth.json"').encode() == before
    assert homes.leave(furnished) == ()
    assert world.login.read_bytes() == before


def test_a_person_may_have_moved_the_directory_that_the_login_is_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = world.person / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "auth.json").write_text('{"moved": "yes"}')
    monkeypatch.setenv("AGENT_HOME", str(elsewhere))
    furnished = world.furnish()
    assert act(furnished, 'cat "$AGENT_HOME/auth.json"') == '{"moved": "yes"}'
    assert furnished.env["AGENT_HOME"] != str(elsewhere)


def test_a_renewed_login_is_brought_back_whole_with_its_permissions(world: World) -> None:
    world.log_in()
    world.login.chmod(0o640)
    furnished = world.furnish()
    act(furnished, f"echo '{renewed()}' > $AGENT_HOME/new; mv $AGENT_HOME/new $AGENT_HOME/auth.json")
    assert homes.leave(furnished) == (f"an agent renewed its login; `{world.login}` has the new one",)
    assert json.loads(world.login.read_text())["tokens"]["access_token"] == "two"
    assert stat.S_IMODE(world.login.stat().st_mode) == 0o640
    assert names(world.login.parent) == ["auth.json"]
    assert homes.leave(furnished) == ()


def test_a_login_that_is_a_link_stays_one(world: World) -> None:
    world.log_in()
    kept = world.person / "dotfiles.json"
    world.login.rename(kept)
    world.login.symlink_to(kept)
    furnished = world.furnish()
    act(furnished, f"echo '{renewed()}' > $AGENT_HOME/auth.json")
    homes.leave(furnished)
    assert world.login.is_symlink()
    assert json.loads(kept.read_text())["last_refresh"] == "now"


def test_if_the_person_logged_in_anew_meanwhile_both_are_left(world: World) -> None:
    world.log_in()
    furnished = world.furnish()
    act(furnished, f"echo '{renewed()}' > $AGENT_HOME/auth.json")
    mine = world.log_in(LOGIN | {"last_refresh": "mine"})
    (note,) = homes.leave(furnished)
    assert "has changed meanwhile" in note
    assert world.login.read_bytes() == mine
    assert json.loads(act(furnished, 'cat "$AGENT_HOME/auth.json"'))["last_refresh"] == "now"


def test_two_agents_that_renew_the_same_login_do_not_undo_each_other(world: World, tmp_path: Path) -> None:
    world.log_in()
    first = world.furnish()
    second = world._replace(place=tmp_path / "second").furnish()
    for furnished, when in ((first, "first"), (second, "second")):
        act(furnished, f"echo '{renewed(last_refresh=when)}' > $AGENT_HOME/auth.json")
    assert "has the new one" in homes.leave(first)[0]
    assert "has changed meanwhile" in homes.leave(second)[0]
    assert json.loads(world.login.read_text())["last_refresh"] == "first"


@pytest.mark.parametrize(
    "made",
    [
        "echo garbage > $AGENT_HOME/auth.json",
        "echo '{}' > $AGENT_HOME/auth.json",
        "echo '[]' > $AGENT_HOME/auth.json",
        f"echo '{renewed(tokens={'access_token': 'two', 'account_id': 'mallory'})}' > $AGENT_HOME/auth.json",
        f"echo '{renewed(tokens='two')}' > $AGENT_HOME/auth.json",
        ": > $AGENT_HOME/auth.json",
        "rm $AGENT_HOME/auth.json",
        "rm $AGENT_HOME/auth.json; mkfifo $AGENT_HOME/auth.json",
        "rm $AGENT_HOME/auth.json; mkdir $AGENT_HOME/auth.json",
        "echo '{}' > ~/x; rm $AGENT_HOME/auth.json; ln -s ~/x $AGENT_HOME/auth.json",
        f"mkdir ~/x; echo '{renewed()}' > ~/x/auth.json; rm -r $AGENT_HOME; ln -s ~/x $AGENT_HOME",
        "head -c 2000000 /dev/zero > $AGENT_HOME/auth.json",
    ],
)
def test_what_is_not_the_persons_login_is_not_brought_back(world: World, made: str) -> None:
    before = world.log_in()
    furnished = world.furnish()
    act(furnished, made)
    homes.leave(furnished)
    assert world.login.read_bytes() == before
    assert names(world.login.parent) == ["auth.json"]


def test_an_agent_cannot_say_where_its_login_is_brought_back_to(world: World) -> None:
    world.log_in()
    furnished = world.furnish()
    record = next(furnished.home.parent.glob("*.login"))
    assert not record.is_relative_to(furnished.home)
    assert stat.S_IMODE(furnished.home.parent.stat().st_mode) & 0o022 == 0


def test_a_login_that_was_renewed_before_a_crash_is_brought_back_by_the_next_one(world: World) -> None:
    world.log_in()
    act(world.furnish(), f"echo '{renewed()}' > $AGENT_HOME/auth.json")
    again = world.furnish()
    assert json.loads(world.login.read_text())["last_refresh"] == "now"
    assert json.loads(act(again, 'cat "$AGENT_HOME/auth.json"'))["last_refresh"] == "now"


def test_at_an_endpoint_there_is_neither_login_nor_key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.log_in()
    monkeypatch.setenv("AGENT_KEY", "secret")
    assert world.furnish().login
    furnished = world.furnish(endpoint="http://127.0.0.1:1")
    assert "secret" not in furnished.env.values()
    assert not list(furnished.home.rglob("auth.json"))
    assert furnished.login == ()


def test_what_goes_with_a_login_file_is_there_only_with_one(world: World) -> None:
    profile = Profile(command=("sh",), files={"s": "key"}, logged_in=Way(files={"s": "file"}), **_login())
    assert (world.furnish(profile).home / "s").read_text() == "key"
    world.log_in()
    assert (world.furnish(profile).home / "s").read_text() == "file"


# Where it is, and its end


def test_places_are_short_safe_and_one_for_each_name(tmp_path: Path) -> None:
    names = ["forge:plan-001:auditor", "forge-plan-001-auditor", "../../etc", "..", "", "x" * 300, "ä/ö"]
    places = {homes.place(tmp_path, "run-001", name, "codex-acp") for name in names}
    assert len(places) == len(names)
    for place in places:
        assert place.parent.parent == tmp_path / "homes" / "run-001"
        assert ".." not in place.parts
        assert len(place.parent.name) <= homes.SHORT


def test_a_home_is_removed_with_all_that_tools_left_in_it_and_nothing_beyond(world: World) -> None:
    world.log_in()
    (world.person / "tool").mkdir()
    (world.person / "tool" / "kept").touch()
    furnished = world.furnish(tools=[world.person / "tool"])
    act(
        furnished,
        f"mkdir -p ~/deep/down; touch ~/deep/down/a; chmod 500 ~/deep/down ~/deep; ln -s / ~/root; "
        f"echo '{renewed()}' > $AGENT_HOME/auth.json",
    )
    (found,) = homes.left(world.root / ".planforge")
    assert (found.run, found.path) == ("run-001", furnished.home)
    assert found.bytes > 0
    assert "has the new one" in homes.remove(furnished.home)[0]
    assert not (world.root / ".planforge" / "homes" / "run-001").exists()
    assert (world.person / "tool" / "kept").exists()
    assert not list(homes.left(world.root / ".planforge"))
    assert homes.remove(furnished.home) == ()


def test_what_a_process_had_half_written_about_a_login_when_it_died_goes_with_the_home(world: World) -> None:
    world.log_in()
    furnished = world.furnish()
    furnished.home.with_name(f".{furnished.home.name}.login.0badcafe.part").write_bytes(b"[")
    homes.remove(furnished.home)
    assert not (world.root / ".planforge" / "homes" / "run-001").exists()


# The known ones


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Profile], None]:
    """Puts the programs of a profile on PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")

    def pretend(profile: Profile) -> None:
        for name in (profile.program, *profile.starts):
            if not name.startswith("/"):
                (place / name).write_text("#!/bin/sh\n")
                (place / name).chmod(0o755)

    return pretend


@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("name", [name for name, profile in KNOWN.items() if profile.command])
def test_every_known_agent_is_furnished_with_files_that_parse_and_no_blanks_left(
    world: World, pretend: Callable[[Profile], None], name: str, access: Access
) -> None:
    profile = KNOWN[name]
    if profile.needs:
        pytest.importorskip(profile.needs)
    pretend(profile)
    furnished = world.furnish(profile, access, model="m", endpoint="http://127.0.0.1:1", confined=True)
    for path in furnished.home.rglob("*"):
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".toml":
            tomllib.loads(path.read_text())
    texts = [*furnished.argv, *furnished.env.values()]
    texts += [path.read_text() for path in furnished.home.rglob("*") if path.is_file()]
    assert not [text for text in texts if "${" in text]
    assert any("127.0.0.1:1" in text for text in texts) or name == REHEARSAL


def test_codex_does_not_find_its_home_among_temporary_files_for_then_it_runs_no_command(
    world: World, pretend: Callable[[Profile], None]
) -> None:
    pretend(KNOWN["codex-cli"])
    env = world.furnish(KNOWN["codex-cli"]).env
    assert not Path(env["CODEX_HOME"]).is_relative_to(env["TMPDIR"])


def test_gemini_is_told_to_use_the_login_of_a_person_who_has_one(
    world: World, pretend: Callable[[Profile], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEMINI_CLI_HOME", raising=False)
    pretend(KNOWN["gemini"])

    def selected() -> str:
        settings = world.furnish(KNOWN["gemini"]).home / "gemini_cli_home/.gemini/settings.json"
        return str(json.loads(settings.read_text())["security"]["auth"]["selectedType"])

    assert selected() == "gemini-api-key"
    (world.person / ".gemini").mkdir()
    (world.person / ".gemini/oauth_creds.json").write_text('{"access_token": "x"}')
    assert selected() == "oauth-personal"
