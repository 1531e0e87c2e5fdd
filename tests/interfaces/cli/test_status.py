"""The commands that look: quick, the same by either way, and not to be fooled."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from planforge.interfaces.cli.main import plain_form
from programs import Told, document, environment, planforge, python
from rehearsals import Rehearsal
from repositories import git

HEAVY = {"acp", "pydantic", "asyncio", "rich", "starlette", "uvicorn", "httpx", "mcp"}


@pytest.mark.parametrize("words", [["--version"], ["status", "--json"], ["status"], ["log", "-n", "20"]])
def test_a_read_command_loads_no_agent_async_or_web_library(told: Told, words: list[str]) -> None:
    assert loaded(*words, cwd=told.root) & HEAVY == set()


def test_a_run_loads_neither_the_library_of_the_protocol_nor_its_models(plan: Rehearsal) -> None:
    assert loaded("plan", "run", "1", cwd=plan.root) & {"acp", "asyncio", "pydantic"} == {"asyncio"}


def loaded(*words: str, cwd: Path) -> set[str]:
    """The packages that a command which succeeds has loaded in the end."""
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('loaded', *sorted(sys.modules), file=sys.stderr))\n"
        f"sys.argv = ['planforge', *{words!r}]\n"
        "from planforge.interfaces.cli.main import run\n"
        "run()\n"
    )
    process = python(code, cwd=cwd)
    assert process.returncode == 0, process.stderr
    found = {name.split(".")[0] for name in process.stderr.rpartition("loaded ")[2].split()}
    assert "planforge" in found
    return found


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["status", "--json"],
        ["log"],
        ["log", "-n", "3"],
        ["log", "--last", "0", "--json"],
        ["log", "--run", "plan-001", "-n", "50"],
        ["log", "--run", "nothing"],
    ],
)
def test_the_quick_way_and_the_way_through_click_print_the_same(told: Told, words: list[str]) -> None:
    assert plain_form(words) is not None
    code = f"from planforge.interfaces.cli.commands import call; raise SystemExit(call({words!r}))"
    by_click = python(code, cwd=told.root)
    quick = planforge(*words, cwd=told.root)
    assert (quick.returncode, timeless(quick.stdout)) == (by_click.returncode, timeless(by_click.stdout))
    assert quick.returncode == 0


def timeless(shown: str) -> str:
    """What is shown without what the clock says, which goes on between two commands."""
    return re.sub(r'\d+ (?:s|min|h|d) +|"now": "[^"]*"', "", shown)


@pytest.mark.parametrize(
    "words",
    [[], ["plan"], ["status", "--help"], ["log", "-n"], ["log", "-n", "x"], ["log", "-n5"], ["log", "extra"]],
)
def test_anything_but_the_plain_form_goes_to_click(words: list[str]) -> None:
    assert plain_form(words) is None


def test_version_says_which(tmp_path: Path) -> None:
    from planforge import __version__

    assert planforge("--version", cwd=tmp_path).stdout == f"planforge {__version__}\n"


def test_status_shows_plans_steps_and_what_to_type_next(told: Told) -> None:
    shown = planforge("status", cwd=told.root).stdout
    for words in (
        "plan-001  DONE",
        "phase-1  done  2 attempts  score",
        "run-001  demo",
        "planforge land",
    ):
        assert words in shown


def test_status_works_from_a_subdirectory(told: Told) -> None:
    assert document("status", cwd=told.root / "wordcount")["root"] == str(told.root)


def test_log_is_one_object_a_line_in_order(told: Told) -> None:
    events = [
        json.loads(line) for line in planforge("log", "-n", "0", "--json", cwd=told.root).stdout.splitlines()
    ]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert {"RunStarted", "AuditRecorded", "DecisionMade", "VerifyFailed", "PatchApplied", "RunEnded"} <= {
        event["kind"] for event in events
    }


def test_log_that_nobody_reads_to_its_end_is_no_error(told: Told) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "planforge", "log", "-n", "0", "--json"],
        cwd=told.root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def tampered(told: Told, place: Path, statement: str, *values: object) -> Path:
    """A copy of the story whose ledger somebody changed with another client, guards put back after."""
    root = place / "story"
    shutil.copytree(told.root, root)
    connection = sqlite3.connect(root / ".planforge" / "ledger.db")
    guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    assert connection.execute(statement, values).rowcount == 1
    for _, sql in guards:
        connection.execute(sql)
    connection.commit()
    connection.close()
    return root


def test_one_byte_of_one_event_changed_is_found_and_the_event_named(told: Told, tmp_path: Path) -> None:
    events = [
        json.loads(line) for line in planforge("log", "-n", "0", "--json", cwd=told.root).stdout.splitlines()
    ]
    seq = next(event["seq"] for event in events if event["kind"] == "VerifyFailed")
    statement = (
        "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), '2 of 6', '0 of 6') AS BLOB) WHERE seq = ?"
    )
    root = tampered(told, tmp_path, statement, seq)
    assert planforge("log", "-n", "0", "--json", cwd=root).returncode == 0
    process = planforge("verify", cwd=root)
    assert process.returncode == 1
    assert f"event {seq} (VerifyFailed of run-001)" in process.stdout
    found = json.loads(planforge("verify", "--json", cwd=root).stdout)
    assert not found["intact"]
    assert [fault["seq"] for fault in found["faults"]] == [seq]


def test_a_byte_that_makes_an_event_unreadable_is_named_too(told: Told, tmp_path: Path) -> None:
    root = tampered(told, tmp_path, "UPDATE events SET body = CAST('{' AS BLOB) WHERE seq = ?", 5)
    assert "event 5 " in planforge("verify", cwd=root).stdout
    process = planforge("log", "-n", "0", cwd=root)
    assert process.returncode == 3
    assert process.stderr.startswith("error: event 5 ")


def test_an_event_taken_off_the_end_is_missed(told: Told, tmp_path: Path) -> None:
    root = tampered(told, tmp_path, "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
    process = planforge("verify", cwd=root)
    assert process.returncode == 1
    assert "the ledger once ended at event" in process.stdout


def test_a_changed_object_is_found_and_the_event_that_refers_to_it_named(told: Told, tmp_path: Path) -> None:
    root = tmp_path / "story"
    shutil.copytree(told.root, root)
    victim = next(
        path for path in sorted((root / ".planforge" / "objects").glob("*/*")) if path.stat().st_size
    )
    content = bytearray(victim.read_bytes())
    content[0] ^= 1
    victim.write_bytes(content)
    process = planforge("verify", cwd=root)
    assert process.returncode == 1
    assert "was changed after it was written" in process.stdout
    assert "event " in process.stdout


def test_an_untouched_ledger_is_intact(told: Told) -> None:
    process = planforge("verify", cwd=told.root)
    assert process.returncode == 0
    assert process.stdout.startswith("intact: ")


def test_doctor_names_what_it_found_and_how_to_mend_it(told: Told) -> None:
    found = document("doctor", cwd=told.root)
    by_id = {finding["id"]: finding for finding in found["findings"]}
    assert found["healthy"]
    assert {"python", "sqlite", "git", "repository", "ledger", "check", "disk"} <= set(by_id)
    assert by_id["check"]["evidence"].startswith("python3 -m unittest")


def test_doctor_outside_a_repository_fails_with_the_fix(tmp_path: Path) -> None:
    process = planforge("doctor", "--json", cwd=tmp_path)
    assert process.returncode == 1
    failed = [finding for finding in json.loads(process.stdout)["findings"] if finding["status"] == "fail"]
    assert {finding["id"] for finding in failed} == {"repository", "ledger", "settings"}
    assert all(finding["fix"] for finding in failed)


def test_help_lists_every_command_with_examples_and_exit_codes(tmp_path: Path) -> None:
    text = planforge("--help", cwd=tmp_path).stdout
    for name in ("cancel", "demo", "doctor", "forge", "init", "log", "plan", "resume", "status", "verify"):
        assert f"\n  {name} " in text
    assert "planforge demo" in text
    assert "5 refused by a gate" in " ".join(text.split())


def test_the_archive_keeps_the_attempt_that_was_not_taken(told: Told) -> None:
    lie = next(step for step in told.document["phases"] if step["id"] == "phase-1")["attempts"][0]
    kept = git(told.root, "rev-parse", "refs/planforge/archive/run-001/phase-1-1")
    assert kept == lie["commit"]
