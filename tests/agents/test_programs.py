"""Which program a name leads to, with real programs in directories on PATH."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from planforge.agents import programs
from planforge.agents.homes import prepare
from planforge.agents.known import KNOWN
from planforge.agents.profiles import REHEARSAL, Profile
from planforge.agents.programs import Memory, find, login
from planforge.kernel.effects import Access

AGENT = Profile(command=("some-agent",), env={"QUIET": "1"}, directories={"AGENT_HOME": ".agent"})


def put(directory: Path, script: str, name: str = "some-agent") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that comes first on PATH."""
    place = tmp_path / "first"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return place


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_program_is_found_with_its_path_its_hash_and_its_version(first: Path) -> None:
    program = put(first, "echo 'some-agent version 1.2.3-beta.4 (of today)'")
    found = find(AGENT, Memory())
    assert found is not None
    assert (found.path, found.real, found.sha256) == (str(program), str(program), sha256(program))
    assert found.version == "1.2.3-beta.4"
    assert found.seconds is not None


def test_a_program_that_is_not_there_is_not_found(first: Path) -> None:
    assert find(AGENT, Memory()) is None


def test_an_impostor_earlier_on_path_is_seen_by_its_path_and_its_hash(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = put(tmp_path / "true", "echo 1.0.0")
    monkeypatch.setenv("PATH", f"{first}{os.pathsep}{true.parent}{os.pathsep}{os.environ['PATH']}")
    memory = Memory(tmp_path / "memory.json")
    before = find(AGENT, memory)
    assert before is not None
    assert before.path == str(true)
    fake = put(first, "echo 1.0.0 # and something else")
    after = find(AGENT, memory)
    assert after is not None
    assert (after.path, after.sha256, after.version) == (str(fake), sha256(fake), "1.0.0")
    assert after.sha256 != before.sha256


def test_a_link_is_followed_to_the_script_that_is_started(first: Path, tmp_path: Path) -> None:
    script = put(tmp_path / "lib", "echo 2.0", "index.js")
    (first / "some-agent").symlink_to(script)
    found = find(AGENT, Memory())
    assert found is not None
    assert (found.path, found.real, found.sha256) == (str(first / "some-agent"), str(script), sha256(script))


def test_what_is_known_is_remembered_until_the_file_is_another_one(first: Path, tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = put(first, f"echo x >> {started}; echo 1.0.0")
    for _ in range(3):
        memory = Memory(tmp_path / "memory.json")
        found = find(AGENT, memory)
        memory.keep()
    assert started.read_text() == "x\n"
    before = program.stat()
    program.write_text(program.read_text().replace("1.0.0", "9.0.0"))
    os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))  # as somebody would who hides it
    after = find(AGENT, Memory(tmp_path / "memory.json"))
    assert found is not None
    assert after is not None
    assert (found.version, after.version) == ("1.0.0", "9.0.0")
    assert after.sha256 == sha256(program) != found.sha256


def test_a_memory_that_cannot_be_read_is_begun_anew(first: Path, tmp_path: Path) -> None:
    put(first, "echo 1.0.0")
    file = tmp_path / "memory.json"
    file.write_text("{half")
    memory = Memory(file)
    assert find(AGENT, memory) is not None
    memory.keep()
    assert len(json.loads(file.read_text())) == 1


def test_a_large_program_is_hashed_once(first: Path, tmp_path: Path) -> None:
    program = put(first, "exit 0")
    with program.open("ab") as file:
        file.write(os.urandom(60 * 1024 * 1024))
    quiet = Profile(command=("some-agent",), version=())
    seconds = []
    for _ in range(2):
        began = time.process_time()
        memory = Memory(tmp_path / "memory.json")
        assert find(quiet, memory) is not None
        memory.keep()
        seconds.append(time.process_time() - began)
    assert seconds[1] < seconds[0] / 3


def test_asking_for_the_version_leaves_nothing_in_the_home_and_sees_no_secret(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "ada"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SOME_API_KEY", "secret")
    seen = tmp_path / "seen"
    put(first, f'env > {seen}; touch ~/mark "$AGENT_HOME.mark"; echo 1.0')
    found = find(AGENT, Memory())
    assert found is not None
    assert found.version == "1.0"
    assert not list(home.iterdir())
    assert "secret" not in seen.read_text()
    assert "QUIET=1" in seen.read_text()


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("exit 3", ""),
        ("printf 'no number here\\nsecond'", "no number here"),
        (r"printf '\033[31mred\033[0m\007'", "[31mred[0m"),
        ("head -c 3000000 /dev/zero", ""),
        ("echo 'v10.20.30'", "10.20.30"),
    ],
)
def test_whatever_a_program_says_is_made_fit_to_be_shown(first: Path, script: str, version: str) -> None:
    put(first, script)
    found = find(AGENT, Memory())
    assert found is not None
    assert found.version == version


def test_a_program_that_does_not_end_is_ended_with_its_children(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PATIENCE", 0.5)
    pid = tmp_path / "pid"
    put(first, f"sleep 600 & echo $! > {pid}; wait")
    began = time.monotonic()
    found = find(AGENT, Memory())
    assert found is not None
    assert (found.version, found.seconds) == ("", None)  # and it is asked again the next time
    assert time.monotonic() - began < 10
    until = time.monotonic() + 10
    while _runs(int(pid.read_text())):  # who is killed is gone a moment later
        assert time.monotonic() < until
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_version_is_not_asked_where_a_program_has_none(first: Path, tmp_path: Path) -> None:
    put(first, f"touch {tmp_path}/started")
    found = find(Profile(command=("some-agent",), version=()), Memory())
    assert found is not None
    assert found.seconds is None
    assert not (tmp_path / "started").exists()


def test_what_is_recorded_of_a_program_needs_no_start(first: Path, tmp_path: Path) -> None:
    program = put(first, f"touch {tmp_path}/started; echo 1.0")
    memory = Memory()
    known = find(AGENT, memory, version=False)
    assert known is not None
    assert (known.path, known.sha256, known.version) == (str(program), sha256(program), "")
    assert not (tmp_path / "started").exists()
    find(AGENT, memory)
    again = find(AGENT, memory, version=False)
    assert again is not None
    assert again.version == "1.0"


def test_start_up_is_the_time_until_an_agent_answers(tmp_path: Path) -> None:
    profile = KNOWN[REHEARSAL]
    furnished = prepare(tmp_path / "home", profile, access=Access.READ, root=tmp_path, cwd=tmp_path)
    seconds = programs.start_up(furnished, tmp_path)
    assert seconds is not None
    assert 0 < seconds < 20
    memory = Memory(tmp_path / "memory.json")
    programs.started_in(profile, memory, seconds)
    found = find(profile, memory, version=False)
    assert found is not None
    assert found.startup == round(seconds, 3)


@pytest.mark.parametrize("script", ["exit 1", "sleep 600", "while true; do echo noise; done", "cat"])
def test_an_agent_that_does_not_answer_has_no_start_up(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(programs, "PATIENCE", 0.5)
    put(first, script)
    furnished = prepare(tmp_path / "home", AGENT, access=Access.READ, root=tmp_path, cwd=tmp_path)
    assert programs.start_up(furnished, tmp_path) is None


def test_who_is_logged_in_is_told_by_a_variable_or_a_file_and_by_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT_KEY", raising=False)
    profile = Profile(command=("sh",), login=(".agent/auth.json",), login_env=("AGENT_KEY",))
    assert login(profile, tmp_path) == "no"
    (tmp_path / ".agent").mkdir()
    (tmp_path / ".agent/auth.json").write_text("{}")
    assert login(profile, tmp_path) == "no"
    (tmp_path / ".agent/auth.json").write_text('{"token": "secret"}')
    assert login(profile, tmp_path) == "yes (file)"
    for blank in ("", " "):
        monkeypatch.setenv("AGENT_KEY", blank)
        assert login(profile, tmp_path) == "yes (file)"
    monkeypatch.setenv("AGENT_KEY", "secret")
    assert login(profile, tmp_path) == "yes (variable)"
    assert login(Profile(command=("sh",)), tmp_path) == "unknown"


@pytest.mark.parametrize(
    ("holds", "told"),
    [
        ("", "no"),
        ("{ }\n", "no"),
        ('{"OPENAI_API_KEY": null, "tokens": null}', "no"),
        ('{"OPENAI_API_KEY": "", "tokens": null, "last_refresh": "2026-01-01"}', "no"),
        ('{"tokens": {"id_token": "x", "access_token": " ", "refresh_token": ""}}', "no"),
        ('{"OPENAI_API_KEY": null, "tokens": {"access_token": "x", "refresh_token": "x"}}', "yes (file)"),
        ('{"claudeAiOauth": {"accessToken": "x", "refreshToken": "", "expiresAt": 1500000000000}}', "no"),
        (
            '{"claudeAiOauth": {"accessToken": "x", "refreshToken": "x", "expiresAt": 1500000000000}}',
            "yes (file)",
        ),
        ('{"claudeAiOauth": {"accessToken": "x", "expiresAt": 95000000000000}}', "yes (file)"),
        ('{"claudeAiOauth": {"accessToken": "x", "expiresAt": null}}', "yes (file)"),
        ('{"mcpOAuth": {"a": {"accessToken": "x"}}, "claudeAiOauth": {"accessToken": ""}}', "no"),
        ('{"access_token": "x", "token_type": "Bearer", "expiry_date": "2020-01-01T00:00:00Z"}', "no"),
        ('{"token_type": "Bearer", "access_token": ""}', "no"),
        ('{"anthropic": {"type": "oauth", "access": "", "refresh": "x", "expires": 0}}', "yes (file)"),
        ('{"anthropic": {"type": "api_key", "key": "x"}}', "yes (file)"),
        ('{"a": "secret"}', "unknown"),
        ("ANTHROPIC_API_KEY: secret\n", "unknown"),
    ],
)
def test_a_login_file_counts_for_what_is_in_it(tmp_path: Path, holds: str, told: str) -> None:
    (tmp_path / "auth.json").write_text(holds)
    assert login(Profile(command=("sh",), login=("auth.json",)), tmp_path) == told


def test_what_is_no_file_is_no_login_and_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "directory" / "with" / "much").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe")
    for name in ("directory", "pipe"):
        assert login(Profile(command=("sh",), login=(name,)), tmp_path) == "no"


def test_elsewhere_than_on_linux_a_login_without_a_file_may_be_in_a_keychain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert login(Profile(command=("sh",), login=("a",)), tmp_path) == "unknown"
