"""Real programs that attack what is around their worktree, at every level that is meant to hold them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from planforge.errors import CannotPerform, InvalidInput, RefusedByGate
from planforge.workspace import launch, processes, sandbox
from planforge.workspace.sandbox import Level, Sandboxing, needs
from planforge.workspace.sandbox.policy import Policy, git_directories
from planforge.workspace.sandbox.view import Access, View
from repositories import git, repository
from workspace.sandbox import confining
from workspace.sandbox.confining import PATIENCE, SECRETS, World, forget_levels, required, world

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")

CONFINING = (Level.BUBBLEWRAP, Level.LANDLOCK)
"""The levels that promise something about files."""

ROOT = Path(__file__).parents[3]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = world(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    return made


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A directory that is not one for temporary files, which are hidden anyway."""
    place = ROOT / "build" / "tests"
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as name:
        yield Path(name)


# Which levels work


def test_the_strongest_level_is_the_first_that_works_and_each_says_why() -> None:
    explained = sandbox.explain()
    assert [tried.level for tried in explained] == list(Level)
    assert sandbox.strongest() is next(tried.level for tried in explained if tried.works)
    assert all(tried.why and "\n" not in tried.why for tried in explained)


def test_a_level_is_enough_for_itself_and_for_all_that_are_weaker() -> None:
    assert sandbox.enough(Level.BUBBLEWRAP, Level.LANDLOCK)
    assert sandbox.enough(Level.PROCESSES, Level.PROCESSES)
    assert not sandbox.enough(Level.PROCESSES, Level.LANDLOCK)
    assert not sandbox.enough(Level.NONE, Level.PROCESSES)


def explained(path: str) -> dict[str, list[object]]:
    """What a new process finds out with another PATH."""
    code = (
        "import json\nfrom planforge.workspace import sandbox\n"
        "print(json.dumps({t.level: (t.works, t.why) for t in sandbox.explain()}))"
    )
    env = {**os.environ, "PATH": path}
    said = subprocess.check_output([sys.executable, "-c", code], env=env, timeout=PATIENCE)
    found: dict[str, list[object]] = json.loads(said)
    return found


def test_a_bubblewrap_that_is_installed_and_refused_by_the_kernel_is_not_believed(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    found = explained(f"{tmp_path}:{os.environ['PATH']}")
    assert found["bubblewrap"] == [False, "bwrap: setting up uid map: Permission denied"]
    assert found["landlock"][0] == sandbox.tried(Level.LANDLOCK).works


def test_a_bubblewrap_that_confines_nothing_is_found_out(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    fake.chmod(0o755)
    found = explained(f"{tmp_path}:{os.environ['PATH']}")
    assert found["bubblewrap"] == [False, "a program could write where it must not"]


def test_a_missing_bubblewrap_is_said_with_the_package_it_comes_from(tmp_path: Path) -> None:
    for name in ("sh", "env"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    assert explained(str(tmp_path))["bubblewrap"] == [
        False,
        "`bwrap` is not on PATH; it comes with the package `bubblewrap`",
    ]


def test_no_sandbox_at_all_must_be_asked_for() -> None:
    with pytest.raises(RefusedByGate, match="without any sandbox"):
        sandbox.chosen("none")
    assert sandbox.chosen("none", unconfined=True) is Level.NONE
    assert sandbox.chosen("auto") is sandbox.strongest()


def test_a_level_that_was_asked_for_and_does_not_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_levels()
    monkeypatch.setenv("PATH", os.defpath.replace("/usr/bin", "/nowhere").replace("/bin", "/nowhere"))
    try:
        with pytest.raises(InvalidInput, match="`bubblewrap` does not work here: `bwrap` is not on PATH"):
            sandbox.chosen("bubblewrap")
    finally:
        forget_levels()


# Files


@pytest.mark.parametrize("level", CONFINING)
def test_an_attack_on_everything_around_changes_nothing_and_learns_nothing(here: World, level: Level) -> None:
    required(level)
    before = here.seen()
    came = here.attack(level)
    assert here.seen() == before
    told = {value for name, value in came.items() if name.startswith("read ")}
    for secret in (*SECRETS.values(), "LEDGER", "PROFILE-SECRET"):
        assert not any(secret in value for value in told)
    assert "print" not in came["read other worktree"]
    assert came["read main tree"] == "# A project\n"
    assert [name for name in came if name.startswith("link ") and came[name] == "done"] in (
        [],
        ["link own git"],
    )


def test_under_bubblewrap_neither_the_pointer_to_git_nor_any_permission_can_be_changed(here: World) -> None:
    required(Level.BUBBLEWRAP)
    before = here.own_git.read_bytes(), here.modes()
    came = here.attack(Level.BUBBLEWRAP)
    assert came["write own git"] == "Read-only file system"
    assert came["replace own git"] != "done"
    assert (here.own_git.read_bytes(), here.modes()) == before


@pytest.mark.parametrize("level", CONFINING)
def test_a_home_that_is_no_temporary_directory_is_hidden_as_well(elsewhere: Path, level: Level) -> None:
    required(level)
    made = world(elsewhere)
    before = made.seen()
    came = made.attack(level)
    assert made.seen() == before
    assert not [secret for secret in SECRETS.values() for value in came.values() if secret in value]


@pytest.mark.parametrize("level", CONFINING)
def test_of_a_repository_that_is_the_home_itself_nothing_is_seen_but_its_history(
    elsewhere: Path, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    required(level)
    monkeypatch.setenv("HOME", str(elsewhere / "person"))
    made = world(elsewhere, home="person", project="person")
    own = (".codex/auth.json", ".config/tok", ".local/state/tok", "secret.txt")
    for name in own:
        (made.home / name).parent.mkdir(parents=True, exist_ok=True)
        (made.home / name).write_text("OWN-SECRET")
    files = " ".join(f'"{made.home}/{name}"' for name in (*own, "README.md"))
    said = made.run(["sh", "-c", f"git log --oneline | wc -l; cat {files}"], level).output.decode()
    assert said.startswith("1\n")
    assert "OWN-SECRET" not in said
    assert "# A project" not in said
    before = made.seen()
    came = made.attack(level)
    assert made.seen() == before
    assert not [secret for secret in SECRETS.values() for value in came.values() if secret in value]


@pytest.mark.parametrize("place", ["", ".config", ".local/share"])
def test_a_repository_where_a_person_s_own_is_kept_is_not_shown_as_a_whole(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("HOME", str(elsewhere / "link"))
    (elsewhere / "link").symlink_to("person")
    made = elsewhere / "person" / place
    (made / ".git").mkdir(parents=True)
    policy = sandbox.verifying(elsewhere / "checkout", repository=made)
    assert made not in policy.visible
    assert made / ".git" in policy.visible
    other = elsewhere / "person" / "project"
    assert other in sandbox.verifying(elsewhere / "checkout", repository=other).visible


@pytest.mark.parametrize("level", Level)
def test_inside_of_the_worktree_everything_can_be_done(here: World, level: Level) -> None:
    required(level)
    script = (
        "set -e; mkdir -p deep/er; echo one > deep/er/file; mv deep/er/file moved; ln moved hard; "
        "ln -s moved soft; "
        "echo two >> moved; cat soft; rm -r deep; git status --short; git log --oneline | wc -l; "
        'echo kept > "${TMPDIR:-/tmp}/mine"; cat "${TMPDIR:-/tmp}/mine"; rm "${TMPDIR:-/tmp}/mine"'
    )
    ended = here.run(["sh", "-c", script], level)
    assert ended.output.decode() == "one\ntwo\n?? hard\n?? moved\n?? soft\n1\nkept\n"
    assert ended.exit_code == 0
    assert (here.worktree / "moved").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("level", CONFINING)
def test_where_a_program_is_and_where_its_tools_are_stays_writable_in_a_worktree(
    here: World, level: Level
) -> None:
    required(level)
    for name in ("part", ".venv/bin", ".venv/lib"):
        (here.worktree / name).mkdir(parents=True)
    tool = here.worktree / ".venv" / "bin" / "tool"
    tool.write_text("#!/bin/sh\necho x > inside && echo x > ../.venv/lib/installed && echo done\n")
    tool.chmod(0o755)
    policy = sandbox.verifying(here.worktree, repository=here.repository, visible=[tool.parent])
    extra = {"PATH": f"{tool.parent}:{os.environ['PATH']}"}
    ended = asyncio.run(
        processes.run(
            ["tool"], cwd=here.worktree / "part", seconds=PATIENCE, extra=extra, policy=policy, level=level
        )
    )
    assert ended.output == b"done\n"
    assert (here.worktree / ".venv" / "lib" / "installed").exists()


@pytest.mark.parametrize("level", CONFINING)
def test_whoever_only_reads_cannot_change_even_its_own_worktree(here: World, level: Level) -> None:
    required(level)
    policy = sandbox.reading(here.worktree, repository=here.repository)
    ended = here.run(
        ["sh", "-c", "cat README.md; echo x > README.md; touch new; git status --short"], level, policy
    )
    assert ended.output.startswith(b"# A project\n")
    assert git(here.worktree, "status", "--short") == ""


@pytest.mark.parametrize("level", CONFINING)
def test_what_an_agent_keeps_for_itself_it_can_change_and_nothing_beside_it(
    here: World, level: Level
) -> None:
    required(level)
    own = here.home / ".agent"
    own.mkdir()
    (own / "login").write_text("token")
    policy = sandbox.reading(here.worktree, repository=here.repository, own=[own])
    ended = here.run(
        ["sh", "-c", "cat ~/.agent/login; echo new > ~/.agent/session; echo x > ~/.agent2"], level, policy
    )
    assert ended.output.startswith(b"token")
    assert (own / "session").read_text() == "new\n"
    assert not (here.home / ".agent2").exists()


@pytest.mark.parametrize("level", CONFINING)
def test_what_the_settings_show_and_hide_is_shown_and_hidden(here: World, level: Level) -> None:
    required(level)
    (here.home / "shared").mkdir()
    (here.home / "shared" / "data").write_text("DATA")
    (here.repository / ".env").write_text("ENV-SECRET")
    settings = Sandboxing(visible=(str(here.home / "shared"),), hidden=(".env",))
    policy = settings.verifying(here.worktree, here.repository)
    script = "cat ~/shared/data; echo x > ~/shared/data; cat ../../../../.env; echo; cat ../../../../app.py"
    said = here.run(["sh", "-c", script], level, policy).output
    assert said.startswith(b"DATA")
    assert b"print('hello')" in said
    assert b"ENV-SECRET" not in said
    assert (here.home / "shared" / "data").read_text() == "DATA"


@pytest.mark.parametrize("level", CONFINING)
def test_a_program_is_found_through_links_a_first_line_and_an_environment_in_the_home(
    elsewhere: Path, level: Level
) -> None:
    required(level)
    if " " in str(elsewhere):
        pytest.skip("what follows `#!` cannot name a path with a space, and this clone is in one")
    made = world(elsewhere)
    tool, local = made.home / ".tools" / "v1", made.home / ".local" / "bin"
    for place in (tool / "bin", tool / "lib", local):
        place.mkdir(parents=True)
    (tool / "bin" / "interpreter").write_text(
        '#!/bin/sh\necho "interpreted $(cat "$(dirname "$0")/../lib/part")"\n'
    )
    (tool / "lib" / "part").write_text("with its library")
    (tool / "bin" / "real").write_text(f"#!{tool}/bin/interpreter\n")
    for name in ("interpreter", "real"):
        (tool / "bin" / name).chmod(0o755)
    (local / "program").symlink_to(tool / "bin" / "real")
    ended = made.run([str(local / "program")], level)
    assert (ended.exit_code, ended.output) == (0, b"interpreted with its library\n")


@pytest.mark.parametrize("level", CONFINING)
def test_a_home_and_a_repository_behind_links_work_the_same(elsewhere: Path, level: Level) -> None:
    required(level)
    (elsewhere / "disk").mkdir()
    (elsewhere / "people").symlink_to("disk")
    made = world(elsewhere, home="people/ada", project="people/ada/thing")
    (made.home / "short").symlink_to(made.home / "thing")
    linked = made._replace(repository=made.home / "short")
    ended = linked.run(["sh", "-c", "git status --short; cat ~/short/README.md"], level)
    assert ended.output == b"# A project\n"
    before = made.seen()
    linked.attack(level)
    assert made.seen() == before


@pytest.mark.parametrize("level", CONFINING)
def test_names_that_are_no_text_are_no_trouble(tmp_path: Path, level: Level) -> None:
    required(level)
    odd = tmp_path / os.fsdecode(b"a b\n\xff'\"$(x)")
    odd.mkdir()
    made = world(odd)
    before = made.seen()
    came = made.attack(level)
    assert made.seen() == before
    assert came["read main tree"] == "# A project\n"


@pytest.mark.parametrize("level", CONFINING)
def test_history_that_a_repository_borrows_from_another_is_seen(here: World, level: Level) -> None:
    required(level)
    borrower = here.home / "borrower"
    git(here.home, "clone", "--quiet", "--shared", str(here.repository), str(borrower))
    policy = sandbox.reading(borrower, repository=borrower)
    made = here._replace(repository=borrower, worktree=borrower)
    assert made.run(["git", "log", "--format=%s"], level, policy).output == b"first\n"
    assert here.repository / ".git" / "objects" in map(Path.resolve, git_directories(borrower))


def test_the_machine_s_own_temporary_files_are_another_directory_than_a_program_s(here: World) -> None:
    required(Level.BUBBLEWRAP)
    with tempfile.NamedTemporaryFile(prefix="planforge-test-") as file:
        script = f"ls {file.name}; touch {file.name}.planted /var/tmp/planforge-planted && echo private"
        said = here.run(["sh", "-c", script], Level.BUBBLEWRAP).output
        assert said.endswith(b"private\n")
        assert b"No such file" in said
        assert not Path(f"{file.name}.planted").exists()
    assert not Path("/var/tmp/planforge-planted").exists()


def test_the_temporary_files_of_a_landlocked_program_go_with_it(here: World) -> None:
    required(Level.LANDLOCK)
    said = here.run(
        ["sh", "-c", 'echo x > "$TMPDIR/x" && touch ~/y && echo "$TMPDIR"; touch /tmp/z'], Level.LANDLOCK
    )
    private, refused = said.output.decode().splitlines()
    assert "Permission denied" in refused
    assert not Path(private).exists()


def test_root_s_program_has_no_privilege_and_cannot_tell_the_kernel_anything(here: World) -> None:
    required(Level.BUBBLEWRAP)
    code = (
        "import os\n"
        "for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/sys/kernel/mm/ksm/run'):\n"
        "    try:\n        os.close(os.open(path, os.O_WRONLY)); print('opened', path)\n"
        "    except OSError: pass\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line[:6] in ('CapEff', 'CapPrm')])\n"
        "print(os.getpid() < 10, os.listdir('/run'))"
    )
    ended = here.run([sys.executable, "-c", code], Level.BUBBLEWRAP)
    assert ended.output.decode().splitlines() == [f"{['0' * 16] * 2}", "True []"]


def test_a_landlocked_program_of_root_has_no_privilege_either(here: World) -> None:
    required(Level.LANDLOCK)
    code = (
        "import os\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line[:6] in ('CapEff', 'CapPrm')])\n"
        "try: open(f'/proc/{os.getppid()}/environ', 'rb').read(); print('read')\n"
        "except OSError: print('refused')\n"
        "try: os.kill(os.getppid(), 0); print('signalled')\n"
        "except OSError: print('refused')"
    )
    ended = here.run([sys.executable, "-c", code], Level.LANDLOCK)
    assert ended.output.decode().splitlines()[:2] == [f"{['0' * 16] * 2}", "refused"]
    if launch.landlock_version() >= launch.SCOPE_ABI:
        assert ended.output.decode().splitlines()[2] == "refused"


@pytest.mark.parametrize("level", Level)
def test_the_environment_is_the_short_list_at_every_level(
    here: World, monkeypatch: pytest.MonkeyPatch, level: Level
) -> None:
    required(level)
    monkeypatch.setenv("SECRET_TOKEN", "leaked")
    assert b"leaked" not in here.run(["env"], level).output


def test_under_bubblewrap_the_environment_of_no_other_process_is_read(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    required(Level.BUBBLEWRAP)
    monkeypatch.setenv("SECRET_TOKEN", "leaked")
    assert b"leaked" not in here.run(["sh", "-c", "cat /proc/[0-9]*/environ"], Level.BUBBLEWRAP).output


# As somebody else


def python_for(command: list[str]) -> tuple[str, dict[str, str]] | None:
    """An interpreter that an ordinary user may start, and the environment in which it finds what we need."""
    import planforge

    packages = [str(Path(module.__file__ or "").parents[1]) for module in (planforge, msgspec, pytest)]
    path = os.pathsep.join([*packages, str(ROOT / "tests")])
    for candidate in (sys.executable, "/usr/bin/python3"):
        env = {"PATH": os.defpath, "PYTHONPATH": path, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
        # By way of `env`: the first program is looked up with the rights of root still.
        probe = [*command, "env", candidate, "-c", "import msgspec, pytest, planforge.workspace.processes"]
        if subprocess.run(probe, env=env, capture_output=True, check=False).returncode == 0:
            return candidate, env
    return None


@pytest.mark.parametrize("level", CONFINING)
def test_the_same_holds_for_an_ordinary_user(level: Level) -> None:
    required(level)
    if os.getuid() != 0:
        pytest.skip(
            "all of this has been run by an ordinary user already: only root can become somebody else"
        )
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    found = python_for(nobody)
    if found is None:
        pytest.skip("there is no interpreter that an ordinary user may start and that has what we need")
    python, env = found
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, 65534, 65534)
        process = subprocess.run(
            [*nobody, python, confining.__file__, level.value, name, python],
            env=env,
            cwd=name,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert process.returncode == 0, process.stderr.decode()
        answer = json.loads(Path(name, "answer").read_text())
    assert (answer["user"], answer["works"], answer["changed"]) == (65534, True, [])
    assert not [secret for secret in SECRETS.values() for value in answer["came"].values() if secret in value]
    assert answer["git"] == [0, ""]


@pytest.mark.parametrize("level", CONFINING)
def test_a_repository_of_somebody_else_is_still_a_repository_for_git(here: World, level: Level) -> None:
    required(level)
    if os.getuid() != 0:
        pytest.skip("only root can give a repository to somebody else")
    for path in (here.repository, here.repository / ".git", here.worktree):
        os.chown(path, 65534, 65534)
    ended = here.run(["git", "log", "--format=%s"], level)
    assert (ended.exit_code, ended.output) == (0, b"first\n")


# The network


@contextmanager
def server() -> Iterator[int]:
    """Something on this machine that answers whoever connects; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)

        def serve() -> None:
            try:
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        connection.sendall(b"HELLO")
            except OSError:
                pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)


CONNECT = (
    "import socket, sys\n"
    "try: print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5).recv(10))\n"
    "except OSError as error: print('no', error.strerror)"
)


@pytest.mark.parametrize("level", CONFINING)
def test_a_check_reaches_nothing_by_the_network_and_an_agent_does(here: World, level: Level) -> None:
    required(level)
    if level is Level.LANDLOCK and launch.landlock_version() < launch.NETWORK_ABI:
        pytest.skip("the kernel's Landlock has no rules for the network")
    with server() as port:
        argv = [sys.executable, "-c", CONNECT, str(port)]
        checked = sandbox.verifying(here.worktree, repository=here.repository)
        assert here.run(argv, level, checked).output.startswith(b"no ")
        allowed = sandbox.verifying(here.worktree, repository=here.repository, network=True)
        assert here.run(argv, level, allowed).output == b"b'HELLO'\n"
        assert here.run(argv, level).output == b"b'HELLO'\n"


def test_a_check_that_talks_to_itself_may_by_bubblewrap(here: World) -> None:
    required(Level.BUBBLEWRAP)
    code = (
        "import socket; server = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(server.getsockname(), 5); print('connected')"
    )
    policy = sandbox.verifying(here.worktree, repository=here.repository)
    assert here.run([sys.executable, "-c", code], Level.BUBBLEWRAP, policy).output == b"connected\n"


def test_under_bubblewrap_a_service_of_the_person_s_cannot_be_reached_by_its_socket(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    required(Level.BUBBLEWRAP)
    place = here.home / ".agent.sock"
    code = (
        "import socket, sys; client = socket.socket(socket.AF_UNIX)\n"
        "try: client.connect(sys.argv[1]); print('connected')\n"
        "except OSError as error: print(error.strerror)"
    )
    with socket.socket(socket.AF_UNIX) as service:
        monkeypatch.chdir(here.home)  # the whole path may be longer than that of a socket can be
        service.bind(place.name)
        service.listen()
        argv = [sys.executable, "-c", code, os.path.relpath(place, here.worktree)]
        assert here.run(argv, Level.BUBBLEWRAP).output == b"No such file or directory\n"
        assert here.run(argv, Level.PROCESSES).output == b"connected\n"


# What cannot be started


@pytest.mark.parametrize("level", Level)
def test_a_program_that_is_not_there_is_said_the_same_way_at_every_level(here: World, level: Level) -> None:
    required(level)
    with pytest.raises(CannotPerform) as caught:
        here.run(["no-such-program"], level)
    assert caught.value.message == "cannot start `no-such-program`: No such file or directory"
    (here.worktree / "plain").write_text("#!/bin/sh\n")
    with pytest.raises(CannotPerform) as caught:
        here.run(["./plain"], level)
    assert caught.value.message == "cannot start `./plain`: Permission denied"


def test_a_program_whose_interpreter_is_missing_inside_says_so(here: World) -> None:
    required(Level.BUBBLEWRAP)
    script = here.worktree / "script"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    with pytest.raises(CannotPerform) as caught:
        here.run(["./script"], Level.BUBBLEWRAP)
    said = "cannot start `./script` in the sandbox: execvp ./script: No such file or directory"
    assert caught.value.message == said


# Settings


def test_settings_add_to_what_a_role_may_do(here: World) -> None:
    settings = Sandboxing(
        visible=("~/data",), writable=("cache",), hidden=(".env",), network=True, memory_mb=100, processes=50
    )
    root = here.repository
    for policy in (settings.reading(here.worktree, root), settings.verifying(here.worktree, root)):
        assert here.home / "data" in policy.visible
        assert {root / ".env", here.state} <= set(policy.hidden)
        assert (policy.memory_bytes, policy.processes) == (100 * 2**20, 50)
        assert policy.network
    assert settings.reading(here.worktree, root).writable == ()
    assert settings.writing(here.worktree, root).writable == (here.worktree, root / "cache")
    assert settings.verifying(here.worktree, root).writable == (here.worktree, root / "cache")
    assert not Sandboxing().verifying(here.worktree, root).network
    assert (Sandboxing().writing(here.worktree, root).memory_bytes or 0) > 2**20


def test_a_level_that_does_not_exist_is_no_setting() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.toml.decode(b"level = 'strong'", type=Sandboxing)


# What is seen of a home


def view(policy: Policy, directory: Path, path: str = os.defpath) -> View:
    return View(policy, ["sh"], directory, {"HOME": str(directory), "PATH": path})


def test_the_longest_path_decides(elsewhere: Path) -> None:
    for name in ("a/b/c/d", "a/x"):
        (elsewhere / name).mkdir(parents=True)
    a = elsewhere / "a"
    policy = Policy(
        visible=(a,), hidden=(a / "b",), writable=(a / "b" / "c",), read_only=(a / "b" / "c" / "d",)
    )
    seen = view(policy, elsewhere / "a" / "x")
    wanted = {a: Access.READ, a / "b": Access.HIDDEN, a / "b/c": Access.WRITE, a / "b/c/d": Access.READ}
    assert {path: seen.access(path) for path in wanted} == wanted
    assert seen.access(a / "b" / "z") is Access.HIDDEN


def test_tools_are_seen_and_what_lies_beside_them_is_not(elsewhere: Path) -> None:
    person, work = elsewhere / "person", elsewhere / "work"
    shown = (
        *(".cargo/bin", ".cargo/registry", ".m2/repository", ".pyenv/shims", ".cache/pip"),
        *(".local/bin", ".local/lib", ".local/share/uv"),
    )
    hidden = (
        *(".cargo/credentials.toml", ".m2/settings.xml", ".ssh", ".config", ".cache/huggingface"),
        *(".local/share/keyrings", ".gnupg", "projects"),
    )
    for name in (*shown, *hidden):
        (person / name).mkdir(parents=True)
    work.mkdir()
    path = f"{person}/.local/bin:{person}/.cargo/bin:/usr/bin"
    seen = View(Policy(), ["sh"], work, {"HOME": str(person), "PATH": path})
    assert {seen.access(person / name) for name in shown} == {Access.READ}
    assert {seen.access(person / name) for name in hidden} == {Access.SCRATCH}


def test_a_directory_of_scripts_shows_no_more_than_itself_and_an_installation_all_of_it(
    elsewhere: Path,
) -> None:
    for name in ("scripts/bin", "scripts/private", "kit/bin", "kit/lib"):
        (elsewhere / name).mkdir(parents=True)
    path = f"{elsewhere}/scripts/bin:{elsewhere}/kit/bin"
    needed = needs.needed(["sh"], path, elsewhere)
    assert elsewhere / "scripts" / "bin" in needed
    assert elsewhere / "scripts" not in needed
    assert elsewhere / "kit" in needed


def test_a_secret_that_somebody_names_is_shown_to_those_they_name_it_to(elsewhere: Path) -> None:
    (elsewhere / ".ssh").mkdir()
    assert view(Policy(visible=(elsewhere,)), elsewhere).access(elsewhere / ".ssh") is Access.HIDDEN
    assert view(Policy(visible=(elsewhere / ".ssh",)), elsewhere).access(elsewhere / ".ssh") is Access.READ


def test_a_repository_with_its_history_elsewhere_is_seen_whole(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    linked = tmp_path / "linked"
    git(main, "worktree", "add", "--quiet", "--detach", str(linked))
    assert set(git_directories(linked)) == {main / ".git" / "worktrees" / "linked", main / ".git"}
    assert git_directories(tmp_path) == ()
