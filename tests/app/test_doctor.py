"""What is wrong is found with its evidence and the command that fixes it; the safe fixes lose nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.machinery import BuiltinImporter, FrozenImporter
from pathlib import Path

import pytest

from planforge.agents.known import KNOWN
from planforge.app.project import Project
from planforge.app.upkeep import doctor
from planforge.app.upkeep.doctor import Diagnosis, Finding, machine, project
from planforge.interfaces.cli.typed import line, text
from planforge.kernel.events import Payload, RunEnded, RunStarted
from planforge.kernel.ledger import Ledger
from planforge.kernel.locks import held
from planforge.workspace import sandbox
from planforge.workspace.archive.quarantine import Quarantine
from planforge.workspace.launch import trees
from planforge.workspace.processes import cookies
from planforge.workspace.worktrees import Worktrees
from programs import environment, planforge
from rehearsals import eventually
from repositories import commit, empty_repository, git, repository, write

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {"app.py": "", "pytest.ini": "[pytest]\n", "tests/test_app.py": "def test_it(): pass\n"}
    root = repository(tmp_path.resolve() / "project", files)
    Project.create(root)
    return root


def by_id(found: Diagnosis) -> dict[str, Finding]:
    return {item.id: item for item in found.findings}


def begun(root: Path, run: str = "run-001", *, ended: bool = False) -> Worktrees:
    """A run in the ledger, and its worktrees."""
    project = Project(root)
    started = RunStarted(run=run, flow="forge", flow_version=1, subject="", request=Payload())
    end = RunEnded(run=run, succeeded=False, reason="gave up", exit_code=1)
    project.ledger.append(run, [started, *([end] if ended else [])], expected=0)
    project.ledger.close()
    (root / ".planforge" / "locks" / f"{run}.lock").touch()
    return Worktrees(project.git, project.state, run)


def test_a_project_in_order_is_healthy_and_everything_looked_at_is_named(root: Path) -> None:
    found = doctor.diagnose(root)
    assert found.healthy, found
    ids = by_id(found)
    wanted = {"python", "sqlite", "git", "sandbox", "repository", "identity", "ledger", "clock", "settings"}
    assert wanted | {"check tests", "disk"} <= set(ids)
    assert ids["identity"].evidence == "Ada Lovelace <ada@example.org>"
    assert "(detected: " in ids["check tests"].evidence
    assert [item for item in found.findings if item.status != "ok" and not item.fix] == []
    assert found.mended == ()


def test_looking_changes_nothing(root: Path) -> None:
    def everything() -> dict[str, bytes]:
        files = (path for path in root.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files if not path.name.endswith(("-shm", "-wal"))}

    doctor.diagnose(root)
    before = everything()
    doctor.diagnose(root)
    assert everything() == before


def test_the_level_of_the_sandbox_is_the_one_that_works_here(root: Path) -> None:
    found = by_id(doctor.diagnose(root))["sandbox"]
    assert found.evidence.startswith(f"{sandbox.strongest()}: ")


def test_a_weak_sandbox_is_a_warning_and_none_a_failure(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works = {sandbox.Level.PROCESSES, sandbox.Level.NONE}

    def explain() -> tuple[sandbox.Tried, ...]:
        return tuple(sandbox.Tried(level=level, works=level in works, why="so") for level in sandbox.Level)

    monkeypatch.setattr(machine, "explain", explain)
    (found,) = machine.sandbox(root)
    assert found.status == "warn"
    assert found.evidence == "processes: so; bubblewrap does not work: so; landlock does not work: so"
    assert "bubblewrap" in text(found.fix)
    works.remove(sandbox.Level.PROCESSES)
    (found,) = machine.sandbox(root)
    assert found.status == "fail"


def test_a_level_that_the_settings_lower_is_told_and_none_must_be_asked_for(root: Path) -> None:
    (root / "planforge.toml").write_text('[sandbox]\nlevel = "none"\n')
    refused = by_id(doctor.diagnose(root))["sandbox level"]
    assert refused.status == "fail"
    assert "unconfined = true" in text(refused.fix)
    (root / "planforge.toml").write_text('[sandbox]\nlevel = "none"\nunconfined = true\n')
    found = doctor.diagnose(root)
    if sandbox.strongest() is not sandbox.Level.NONE:
        assert by_id(found)["sandbox level"].status == "warn"


def test_a_repository_without_a_commit_fails_with_the_fix(tmp_path: Path) -> None:
    root = empty_repository(tmp_path / "empty")
    Project.create(root)
    found = by_id(doctor.diagnose(root))["commits"]
    assert (found.status, found.fix) == ("fail", "git commit --allow-empty -m start")


def test_a_repository_that_is_the_home_itself_is_a_warning(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "home" not in {found.id for found in project.repository(root)}
    monkeypatch.setenv("HOME", str(root))
    found = {found.id: found for found in project.repository(root)}["home"]
    assert found.status == "warn"
    assert f"`{root}` is a home" in found.evidence
    assert "`visible`" in text(found.fix)


def test_settings_that_are_wrong_are_told_once(root: Path) -> None:
    (root / "planforge.toml").write_text("[workspace]\nports = 99\n")
    found = doctor.diagnose(root)
    failed = [item for item in found.findings if item.status == "fail"]
    assert [item.id for item in failed] == ["settings"]
    assert "`workspace.ports` must be 0 to 19" in failed[0].evidence


def test_programs_that_the_settings_name_are_looked_for(root: Path) -> None:
    (root / "planforge.toml").write_text(
        '[check]\ncommand = ["no-such-runner"]\nreport = "junit"\n'
        '[workspace]\nsetup = ["no-such-installer"]\nsmoke = ["sh", "-c", "true"]\n'
    )
    ids = by_id(doctor.diagnose(root))
    assert ids["check"].evidence == "`no-such-runner` is not on PATH"
    assert ids["check"].fix == "install it, or change `[check]` in planforge.toml"
    assert ids["setup"].status == "fail"
    assert ids["smoke"].evidence == "sh -c true"


def test_a_project_whose_tests_nobody_can_find_is_warned(tmp_path: Path) -> None:
    root = repository(tmp_path / "bare", {"README.md": ""})
    Project.create(root)
    found = by_id(doctor.diagnose(root))["check"]
    assert (found.status, found.fix) == ("warn", "set `[check]` in planforge.toml")


def test_agents_are_told_with_their_path_and_those_that_are_wanted_must_be_there(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "codex-acp"
    write(tmp_path / "bin", {"codex-acp": "#!/bin/sh\n"})
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (root / "planforge.toml").write_text('[agents]\ndefault = "claude"\nroles.auditor = "codex"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in KNOWN["codex-acp"].login_env:
        monkeypatch.delenv(name, raising=False)
    ids = by_id(doctor.diagnose(root))
    assert ids["agent codex"].evidence == f"{program}; not logged in"
    assert (ids["agent codex"].status, ids["agent codex"].fix) == ("fail", "codex login")
    assert ids["agent codex-acp"].status == "warn"
    assert ids["agent claude"].status == "fail"
    assert text(ids["agent claude"].fix).startswith("npm install")
    (root / "planforge.toml").write_text('[agents]\nroles.reviser = "nobody"\n')
    found = by_id(doctor.diagnose(root))["settings"]
    assert found.evidence == "`planforge.toml`: `agents.roles.reviser` is `nobody`, which is no agent"


def test_an_agent_is_ok_only_if_somebody_is_known_to_be_logged_in(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (root / "planforge.toml").write_text(
        '[agents]\ndefault = "codex"\nroles.auditor = "mine"\n[agents.profiles.mine]\ncommand = ["sh"]\n'
    )
    write(tmp_path, {"bin/codex-acp": "#!/bin/sh\n", ".codex/auth.json": '{"token": "x"}'})
    (tmp_path / "bin" / "codex-acp").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    ids = by_id(doctor.diagnose(root))
    assert ids["agent codex"].evidence == f"{tmp_path}/bin/codex-acp; logged in (file); not started"
    assert ids["agent codex"].status == "ok"
    assert ids["agent mine"].status == "unknown"
    assert ids["agent mine"].evidence.endswith("; login unknown")
    assert line(ids["agent mine"].fix) == "planforge agent test mine"


def test_an_agent_whose_package_is_missing_is_not_installed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "planforge.toml").write_text('[agents]\ndefault = "api-anthropic"\n')
    list(project.agents(root))  # which loads what it needs itself
    monkeypatch.setattr(sys, "path", [])  # nothing can be found there
    monkeypatch.setattr(sys, "meta_path", [BuiltinImporter, FrozenImporter])
    monkeypatch.delitem(sys.modules, "pydantic_ai", raising=False)
    (found,) = [item for item in project.agents(root) if item.id == "agent api-anthropic"]
    assert found.status == "fail"
    assert found.evidence == "`pydantic_ai` is not installed, and planforge.toml asks for it"


def check(root: Path, command: str, more: str = "") -> Finding:
    """What is said of a check with this command."""
    (root / "planforge.toml").write_text(f"[check]\ncommand = {command}\n{more}")
    (found,) = project.checks(root)
    return found


def test_a_tool_is_ok_only_if_it_is_there_and_not_just_what_starts_it(root: Path) -> None:
    python = json.dumps(sys.executable)
    assert check(root, f'[{python}, "-m", "pytest"]').status == "ok"
    missing = check(root, f'[{python}, "-m", "no_such_module.sub"]')
    assert missing.status == "fail"
    assert missing.evidence == f"`no_such_module` is not installed for `{sys.executable}`"
    assert missing.fix == "install it, or change `[check]` in planforge.toml"
    assert check(root, '["./missing"]').evidence == "`./missing` does not exist"
    assert check(root, '["/no/such/program"]').evidence == "`/no/such/program` does not exist"
    assert check(root, '["${root}/app.py"]').evidence == f"`{root}/app.py` cannot be executed"
    (root / "app.py").chmod(0o755)
    assert check(root, '["${checkout}/app.py"]').status == "ok"


def test_a_tool_that_worktrees_may_get_is_unknown(root: Path) -> None:
    setup = '[workspace]\nsetup = ["sh", "-c", "make venv"]\n'
    found = check(root, '["${checkout}/.venv/bin/python", "-m", "pytest"]', setup)
    assert found.status == "unknown"
    assert found.evidence.endswith("/.venv/bin/python` does not exist; `workspace.setup` may install it")
    assert check(root, '["no-such-runner"]', setup).status == "fail"


def test_a_program_of_node_is_looked_for_among_its_packages(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"bin/npx": "#!/bin/sh\n"})
    (tmp_path / "bin" / "npx").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    found = check(root, '["npx", "--no-install", "jest"]')
    assert (found.status, found.evidence) == ("fail", "`jest` is not installed in `node_modules`")
    write(root, {"node_modules/.bin/jest": "#!/bin/sh\n"})
    (root / "node_modules" / ".bin" / "jest").chmod(0o755)
    assert check(root, '["npx", "--no-install", "jest"]').status == "ok"


def test_files_for_worktrees_are_counted(root: Path) -> None:
    write(root, {".worktreeinclude": ".env\n", ".env": "", ".gitignore": ".env\n"})
    found = by_id(doctor.diagnose(root))["worktree files"]
    assert found.evidence == "`.worktreeinclude` names 1 file that git ignores; each worktree gets a copy"


@pytest.mark.parametrize(("limit", "status"), [("FREE_BYTES", "warn"), ("LEAST_BYTES", "fail")])
def test_a_disk_that_is_nearly_full_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch, limit: str, status: str
) -> None:
    monkeypatch.setattr(machine, limit, 1 << 62)
    found = by_id(doctor.diagnose(root))["disk"]
    assert (found.status, line(found.fix)) == (status, "planforge cleanup")


def test_a_clock_behind_the_ledger_fails(tmp_path: Path) -> None:
    root = repository(tmp_path / "ahead")
    Project.create(root)
    ahead = Ledger.open(root / ".planforge", lambda: datetime.now(UTC) + timedelta(hours=2))
    ahead.append("x", [RunEnded(run="x", succeeded=True, reason="", exit_code=0)], expected=0)
    ahead.close()
    found = by_id(doctor.diagnose(root))["clock"]
    assert found.status == "fail"
    assert found.evidence.startswith("the clock is 7")
    assert found.fix == "timedatectl set-ntp true"


def test_a_clock_that_jumps_while_we_look_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Jumping:
        """A clock that somebody sets ahead by an hour each time it is read."""

        def __init__(self) -> None:
            self.now = 0.0

        def time(self) -> float:
            self.now += 3600
            return self.now

        def monotonic(self) -> float:
            return 0.0

    monkeypatch.setattr(doctor, "time", Jumping())
    jumps = [item for item in doctor.diagnose(root).findings if "jumped by 3600.0 s" in item.evidence]
    assert [item.status for item in jumps] == ["warn"]


def test_a_look_that_crashes_is_a_finding_and_the_others_go_on(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(start: Path) -> Iterator[Finding]:
        raise ZeroDivisionError(f"in\n{start.name}")

    monkeypatch.setitem(doctor.LOOKS, "git", broken)
    ids = by_id(doctor.diagnose(root))
    assert ids["git"].evidence == "cannot be checked: ZeroDivisionError: in project"
    assert "disk" in ids


# What was left, and what `--fix` does about it


def test_a_state_directory_that_git_would_take_in_is_mended(root: Path) -> None:
    (root / ".planforge" / ".gitignore").unlink()
    assert line(by_id(doctor.diagnose(root))["state"].fix) == "planforge doctor --fix"
    found = doctor.mend(root)
    assert [item.said for item in found.mended] == ["wrote `.planforge/.gitignore`"]
    assert "state" not in by_id(found)
    assert git(root, "status", "--porcelain") == ""
    assert doctor.mend(root).mended == ()


def test_an_interrupted_run_is_told_with_the_way_on_and_left_alone(root: Path) -> None:
    worktrees = begun(root)
    worktrees.open("work", git(root, "rev-parse", "HEAD"))
    (worktrees.path("work") / "half.py").write_text("not done")
    found = doctor.mend(root)
    assert found.mended == ()
    assert line(by_id(found)["run-001"].fix) == "planforge resume run-001"
    assert (worktrees.path("work") / "half.py").exists()


def test_a_run_that_somebody_drives_is_left_alone(root: Path) -> None:
    worktrees = begun(root)
    checkout = worktrees.make_fresh(git(root, "rev-parse", "HEAD"))
    with held(Project(root).lock("run-001"), "run-001"):
        found = doctor.mend(root)
    assert found.mended == ()
    assert by_id(found)["run-001"].evidence == f"driven by process {os.getpid()}"
    assert checkout.exists()


def test_worktrees_of_ended_runs_are_archived_and_removed(root: Path) -> None:
    worktrees = begun(root, ended=True)
    worktrees.open("work", git(root, "rev-parse", "HEAD"))
    (worktrees.path("work") / "left.py").write_text("only here")
    before = by_id(doctor.diagnose(root))["worktrees of run-001"]
    assert "`work`" in before.evidence
    found = doctor.mend(root)
    assert "archived and removed 1 worktree of run-001" in [item.said for item in found.mended]
    assert not worktrees.path("work").exists()
    kept = git(root, "for-each-ref", "--format=%(refname)", "refs/planforge/archive").splitlines()
    assert any(git(root, "show", f"{ref}:left.py") == "only here" for ref in kept)
    assert "worktrees of run-001" not in by_id(found)


def test_checkouts_for_checks_of_a_run_that_died_are_removed_and_its_worktree_stays(root: Path) -> None:
    worktrees = begun(root)
    base = git(root, "rev-parse", "HEAD")
    worktrees.open("work", base)
    checkout = worktrees.make_fresh(base)
    found = doctor.mend(root)
    assert [item.said for item in found.mended] == ["removed 1 checkout for checks of run-001"]
    assert not checkout.exists()
    assert worktrees.path("work").exists()


def test_worktrees_of_no_known_run_are_left_to_the_person(root: Path) -> None:
    write(root / ".planforge" / "worktrees" / "run-077" / "work", {"x": ""})
    found = doctor.mend(root)
    assert line(by_id(found)["worktrees of run-077"].fix) == "planforge cleanup"
    assert (root / ".planforge" / "worktrees" / "run-077" / "work" / "x").exists()


@LINUX
def test_a_lock_of_git_whose_maker_is_dead_is_removed_and_others_are_not(root: Path) -> None:
    old, recent = root / ".git" / "index.lock", root / ".git" / "HEAD.lock"
    for lock in (old, recent):
        lock.write_text("")
    os.utime(old, (1, 1))
    ids = by_id(doctor.diagnose(root))
    assert line(ids["lock index"].fix) == "planforge doctor --fix"
    assert ids["lock HEAD"].fix == f"if no git is running, rm {recent}"
    found = doctor.mend(root)
    (mended,) = found.mended
    assert mended.said == f"removed `{old}`: it is from before this machine was started"
    assert not old.exists()
    assert recent.exists()


@LINUX
def test_a_lock_that_a_process_has_open_is_not_removed_however_old_it_is(root: Path) -> None:
    lock = root / ".git" / "index.lock"
    with lock.open("w"):
        os.utime(lock, (1, 1))
        found = doctor.mend(root)
    assert found.mended == ()
    assert f"process {os.getpid()} " in by_id(found)["lock index"].evidence
    assert lock.exists()


LEAVING = """
import os, subprocess, sys
from pathlib import Path
from planforge.workspace.processes import cookies, trees
from planforge.workspace.sandbox import RECORDS
cookie = cookies.make()
cookies.record(Path(sys.argv[1]) / RECORDS, cookie, "an-agent", None)
env = dict(os.environ) | {trees.COOKIE: cookie}
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
print(subprocess.Popen(["sleep", "600"], env=env, start_new_session=True, **quiet).pid)
"""


@pytest.fixture
def left() -> Iterator[list[int]]:
    """Processes that do not survive the test."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@LINUX
def test_processes_that_a_planforge_left_which_died_are_ended(root: Path, left: list[int]) -> None:
    state = str(root / ".planforge")
    ran = subprocess.run(
        [sys.executable, "-c", LEAVING, state], env=environment(), capture_output=True, text=True, check=True
    )
    left.append(int(ran.stdout))
    before = by_id(doctor.diagnose(root))["processes"]
    said = f"`an-agent` left process {left[0]}, and its Planforge has died"
    assert (before.evidence, line(before.fix)) == (said, "planforge doctor --fix")
    found = doctor.mend(root)
    assert [item.said for item in found.mended] == ["ended 1 process of `an-agent`"]
    assert "processes" not in by_id(found)
    eventually(lambda: not Path(f"/proc/{left[0]}/cwd").exists())


@LINUX
def test_what_a_planforge_that_lives_has_started_is_left_alone(root: Path) -> None:
    cookie = cookies.make()
    cookies.record(root / ".planforge" / sandbox.RECORDS, cookie, "an-agent", None)
    with subprocess.Popen(["sleep", "600"], env=environment({trees.COOKIE: cookie})) as process:
        try:
            assert "processes" not in by_id(doctor.diagnose(root))
            assert doctor.mend(root).mended == ()
            assert process.poll() is None
        finally:
            process.kill()


@LINUX
def test_a_process_that_merely_sits_in_a_worktree_is_told_and_never_killed(root: Path) -> None:
    place = root / ".planforge" / "worktrees" / "run-001" / "work"
    place.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], cwd=place) as process:
        try:
            found = by_id(doctor.mend(root))[f"process {process.pid}"]
            assert found.fix == f"kill {process.pid}"
            assert process.poll() is None
        finally:
            process.kill()


def test_files_kept_outside_git_are_told(root: Path) -> None:
    write(root, {"secret.pem": "x"})
    Quarantine(root / ".planforge", "run-001").copy("work", root, [b"secret.pem"], "it holds a secret")
    found = by_id(doctor.diagnose(root))["quarantine"]
    assert found.evidence.endswith(": it holds a secret")
    assert line(found.fix) == "planforge recover"


def test_what_cannot_be_mended_is_said_and_the_rest_is_mended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktrees = begun(root, ended=True)
    worktrees.open("work", git(root, "rev-parse", "HEAD"))
    (root / ".planforge" / ".gitignore").unlink()

    def refuse(self: Worktrees) -> None:
        raise OSError(28, "No space left on device", "archive")

    monkeypatch.setattr(Worktrees, "sweep", refuse)
    found = doctor.mend(root)
    assert [(item.id, item.done, item.said) for item in found.mended] == [
        ("state", True, "wrote `.planforge/.gitignore`"),
        ("worktrees", False, "No space left on device: archive"),
    ]
    assert worktrees.path("work").exists()


# The command


def test_the_command_exits_with_1_if_something_fails_and_0_when_it_was_mended(root: Path) -> None:
    commit(root, {".gitignore": ""}, "ready")
    (root / ".planforge" / ".gitignore").unlink()
    failed = planforge("doctor", cwd=root)
    assert failed.returncode == 1
    assert "✗ fail  state" in failed.stdout
    assert "fix: planforge doctor --fix" in failed.stdout
    mended = planforge("doctor", "--fix", cwd=root)
    assert mended.returncode == 0, mended.stdout
    assert mended.stdout.startswith("repaired state: wrote `.planforge/.gitignore`\n\n")


def test_the_command_prints_json(root: Path) -> None:
    (root / ".planforge" / ".gitignore").unlink()
    found = json.loads(planforge("doctor", "--fix", "--json", cwd=root).stdout)
    assert found["mended"] == [{"id": "state", "done": True, "said": "wrote `.planforge/.gitignore`"}]
    assert {"id", "status", "evidence", "fix"} == set(found["findings"][0])
