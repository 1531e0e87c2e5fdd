"""Bad places and bad input: one clear line, a hint where there is something to do, the right exit code."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from calls import caller
from planforge.kernel.ledger.storage import FORMAT
from programs import COMMAND, Told, environment, planforge, started
from repositories import empty_repository, git, repository


def ready(place: Path) -> Path:
    repository(place)
    assert planforge("init", cwd=place).returncode == 0
    return place


def nowhere(place: Path) -> Path:
    return place


def bare(place: Path) -> Path:
    git(place, "init", "--quiet", "--bare")
    return place


def inside_git(place: Path) -> Path:
    return repository(place) / ".git"


def without_state(place: Path) -> Path:
    return repository(place)


def without_ledger(place: Path) -> Path:
    (ready(place) / ".planforge" / "ledger.db").unlink()
    return place


def garbage_ledger(place: Path) -> Path:
    for path in (ready(place) / ".planforge").glob("ledger.db*"):
        path.unlink()
    (place / ".planforge" / "ledger.db").write_bytes(b"this is not a database, " * 200)
    return place


def empty_ledger(place: Path) -> Path:
    (ready(place) / ".planforge" / "ledger.db").write_bytes(b"")
    return place


def another_database(place: Path) -> Path:
    path = ready(place) / ".planforge" / "ledger.db"
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE mine(x)").connection.close()
    return place


def newer_ledger(place: Path) -> Path:
    connection = sqlite3.connect(ready(place) / ".planforge" / "ledger.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    return place


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (nowhere, "no git repository"),
        (bare, "bare repository"),
        (inside_git, "inside `.git`"),
        (without_state, "has no `.planforge`"),
        (without_ledger, "there is no ledger"),
        (garbage_ledger, "corrupt"),
        (empty_ledger, "not a Planforge ledger"),
        (another_database, "not a Planforge ledger"),
        (newer_ledger, f"has format 99, this Planforge reads format {FORMAT}"),
    ],
)
@pytest.mark.parametrize("command", [["status"], ["log"], ["plan", "list"], ["verify"], ["resume"]])
def test_a_bad_place_gives_one_clear_line_and_exit_3(
    tmp_path: Path, make: Callable[[Path], Path], words: str, command: list[str]
) -> None:
    process = planforge(*command, cwd=make(tmp_path))
    assert process.returncode == 3
    assert process.stdout == ""
    first, *rest = process.stderr.splitlines()
    assert first.startswith("error: ")
    assert words in first
    assert all(line == "" or line.startswith("hint: ") for line in rest)


def damage_a_page(root: Path) -> None:
    """Overwrite the middle of the ledger file, past its header."""
    path = root / ".planforge" / "ledger.db"
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()
    content = bytearray(path.read_bytes())
    content[4096 : len(content) - 4096] = b"\xa5" * (len(content) - 8192)
    path.write_bytes(content)


@pytest.mark.parametrize("command", [["status"], ["log"], ["plan", "list"], ["verify"]])
def test_a_ledger_with_damaged_pages_gives_one_clear_line(
    told: Told, tmp_path: Path, command: list[str]
) -> None:
    root = tmp_path / "story"
    shutil.copytree(told.root, root)
    damage_a_page(root)
    process = planforge(*command, cwd=root)
    assert process.returncode == 3
    assert "the ledger" in process.stderr
    assert "corrupt" in process.stderr
    assert "Traceback" not in process.stderr


def unwritable(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where nothing can be written, also for root."""
    words = [*COMMAND, *command]
    if os.geteuid() == 0:
        words = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            'mount --bind -o ro . . && cd "$PWD" && exec "$@"',
            "sh",
            *words,
        ]
    else:
        for directory in (place, place / ".planforge"):
            if directory.exists():
                directory.chmod(0o555)
    try:
        return subprocess.run(
            words, cwd=place, env=environment(), capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        for directory in (place, place / ".planforge"):
            if directory.exists():
                directory.chmod(0o755)


def test_a_directory_that_cannot_be_written_can_be_read(tmp_path: Path) -> None:
    process = unwritable(ready(tmp_path), "status")
    assert process.returncode == 0, process.stderr
    assert "planforge forge" in process.stdout


def test_to_make_a_project_ready_where_nothing_can_be_written_gives_one_clear_line(tmp_path: Path) -> None:
    process = unwritable(ready(tmp_path), "init")
    assert process.returncode == 3, process.stderr
    assert process.stderr.startswith("error: cannot")
    assert "Traceback" not in process.stderr


def test_init_in_a_directory_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    process = unwritable(repository(tmp_path), "init")
    assert process.returncode == 3, process.stderr
    assert process.stderr.startswith("error: cannot write in")


def test_without_git_on_the_path_that_is_what_is_said(tmp_path: Path) -> None:
    process = planforge("status", cwd=repository(tmp_path), extra={"PATH": str(tmp_path / "nothing")})
    assert process.returncode == 3
    assert process.stderr.startswith("error: `git` is not on PATH")


def test_with_json_a_failure_is_a_document_too(tmp_path: Path) -> None:
    process = planforge("status", "--json", cwd=repository(tmp_path))
    assert process.returncode == 3
    assert json.loads(process.stdout)["error"]["code"] == 3
    assert process.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["nonsense"], 2, "there is no command `nonsense`\n"),
        (["hlep"], 2, "there is no command `hlep`; did you mean `--help`?"),
        (["plan", "aprove"], 2, "there is no command `aprove`; did you mean `approve`?"),
        (["status", "--nonsense"], 2, "No such option"),
        (["log", "-n", "many"], 2, "not a valid integer"),
        (["plan", "show", "x"], 2, "is not a plan id"),
        (["plan", "show", "4"], 3, "there is no `plan-004`"),
        (["plan", "approve", "4"], 3, "there is no `plan-004`"),
        (["plan", "run", "4"], 3, "there is no `plan-004`"),
        (["resume", "run-004"], 3, "there is no `run-004`"),
        (["cancel", "run-004", "--reason", "x"], 3, "there is no `run-004`"),
        (["forge", "   "], 2, "the request is empty"),
        (["forge", "more speed"], 4, "`planforge demo`"),
    ],
)
def test_bad_input_has_its_own_exit_code(tmp_path: Path, command: list[str], code: int, words: str) -> None:
    root = ready(tmp_path)
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    (bin_directory / "git").symlink_to(shutil.which("git") or "git")
    process = planforge(*command, cwd=root, extra={"PATH": str(bin_directory)})
    assert process.returncode == code, process.stderr
    assert words in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("[agents\n", "planforge.toml"),
        ("[forge]\ncapp = 3\n", "there is no setting `forge.capp`; did you mean `forge.cap`?"),
        ("[forge]\ncap = 0\n", "`forge.cap` must be at least 1"),
        ("[run]\njobs = -1\n", "`run.jobs` must be at least 1"),
        ("[check]\ncommand = ['x']\nreport = 'guess'\n", "`check.report` must be one of"),
        ("[agents]\ndefault = 'nobody'\n", "`agents.default` is `nobody`, which is no agent"),
        ("[agents]\ndefault = 'mine'\n[agents.profiles.mine]\nenv = {}\n", "agent `mine` has no `command`"),
        ("[agents]\ndefault = 'rehearsal'\n[forge]\nplans = '../elsewhere'\n", "leads out of the repository"),
    ],
)
def test_a_slip_in_the_settings_is_an_error_and_nothing_is_begun(
    tmp_path: Path, settings: str, words: str
) -> None:
    root = ready(tmp_path)
    (root / "planforge.toml").write_text(settings)
    process = planforge("forge", "more speed", cwd=root)
    assert process.returncode == 2, process.stderr
    assert words in process.stderr
    assert json.loads(planforge("status", "--json", cwd=root).stdout)["events"] == 0


def test_a_repository_without_a_commit_has_nothing_to_start_from(tmp_path: Path) -> None:
    empty_repository(tmp_path)
    planforge("init", cwd=tmp_path)
    (tmp_path / "planforge.toml").write_text("[agents]\ndefault = 'rehearsal'\n")
    process = planforge("forge", "more speed", cwd=tmp_path)
    assert process.returncode == 3
    assert "no commit to start from" in process.stderr


def test_a_run_that_another_process_drives_is_locked(tmp_path: Path) -> None:
    root = tmp_path / "story"
    driver = started("demo", str(root), "--pace", "30", cwd=tmp_path, heard=False)
    try:
        while not (root / ".planforge" / "rehearsal" / "journal.jsonl").exists():
            assert driver.poll() is None
            time.sleep(0.01)
        process = planforge("resume", "run-001", cwd=root)
        assert process.returncode == 7
        assert f"process {driver.pid}" in process.stderr
        assert planforge("resume", cwd=root).stdout.strip() == "nothing to resume"
        assert json.loads(planforge("status", "--json", cwd=root).stdout)["runs"][0]["status"] == "running"
    finally:
        driver.kill()
        driver.wait()


def test_without_home_and_without_an_account_a_command_works_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = caller(repository(tmp_path / "here"), monkeypatch, capsys)

    def unknown(number: int) -> object:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)  # as for a user by number alone
    assert call("init").code == 0
    assert call("agent", "list").code == 0
    assert "sandbox" in call("doctor").out
