"""`planforge lease` as a person meets it: the command as a process, in a real repository."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planforge.app.project import Project
from planforge.kernel import leases
from planforge.kernel.ledger import Ledger
from programs import document, planforge
from repositories import EMAIL, NAME, repository

HOUR = timedelta(hours=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = repository(tmp_path / "project")
    Project.create(place)
    return place


@pytest.fixture
def ledger(root: Path) -> Iterator[Ledger]:
    opened = Ledger.open(root / ".planforge")
    yield opened
    opened.close()


def test_list_says_when_nothing_is_leased(root: Path) -> None:
    shown = planforge("lease", "list", cwd=root)
    assert (shown.returncode, shown.stdout) == (0, "no file is leased\n")
    assert document("lease", "list", cwd=root) == {
        "schema_version": 1,
        "leases": [],
        "waiting": [],
        "clock_behind_seconds": 0,
    }


def test_list_shows_who_holds_what_until_when_and_who_waits_behind_whom(root: Path, ledger: Ledger) -> None:
    lease = leases.claim(ledger, "run-001/phase-1", ["src/**", "app.py"], ttl=HOUR)
    leases.line_up(ledger, "run-002/phase-3", ["app.py"], ttl=HOUR, patience=HOUR)
    shown = planforge("lease", "list", cwd=root).stdout.splitlines()
    assert shown[0] == "Leases"
    assert shown[1].split()[:2] == ["1", "run-001/phase-1"]
    assert "left" in shown[1]
    assert f"until {lease.until[:10]} {lease.until[11:19]} UTC  app.py, src/**" in shown[1]
    assert shown[3] == "Waiting"
    assert shown[4].split()[:3] == ["run-002/phase-3", "behind", "run-001/phase-1"]
    found = document("lease", "list", cwd=root)
    assert found["leases"][0]["paths"] == ["app.py", "src/**"]
    assert 3000 < found["leases"][0]["seconds_left"] <= 3600
    assert found["waiting"][0]["behind"] == ["run-001/phase-1"]


def test_list_does_not_show_what_has_run_out(root: Path) -> None:
    yesterday = datetime.now(UTC) - 24 * HOUR
    past = Ledger.open(root / ".planforge", lambda: yesterday)
    leases.claim(past, "w1", ["app.py"], ttl=HOUR)
    past.close()
    assert planforge("lease", "list", cwd=root).stdout == "no file is leased\n"


def test_list_says_that_the_clock_was_set_back(root: Path) -> None:
    tomorrow = datetime.now(UTC) + 24 * HOUR
    ahead = Ledger.open(root / ".planforge", lambda: tomorrow)
    leases.claim(ahead, "w1", ["app.py"], ttl=HOUR)
    ahead.close()
    shown = planforge("lease", "list", cwd=root).stdout
    assert "1 h 0 min left" in shown
    assert "behind the newest event about leases" in shown


@pytest.mark.parametrize("name", ["1", "app.py", "src/**", "src/deep/a.py"])
def test_release_takes_a_lease_away_and_keeps_who_and_why(root: Path, ledger: Ledger, name: str) -> None:
    lease = leases.claim(ledger, "w1", ["src/**", "app.py"], ttl=HOUR)
    shown = planforge("lease", "release", name, "--reason", "it hangs", cwd=root)
    assert (shown.returncode, shown.stdout) == (0, "took lease 1 from `w1`: `app.py`, `src/**`\n")
    assert leases.held(ledger) == []
    logged = planforge("log", "-n", "1", cwd=root).stdout
    assert f"lease 1 of w1 was taken away by {NAME} <{EMAIL}>: it hangs" in logged
    refused = planforge("lease", "release", str(lease.fence), "--reason", "again", cwd=root)
    assert (refused.returncode, refused.stdout) == (3, "")


def test_release_prints_json(root: Path, ledger: Ledger) -> None:
    leases.claim(ledger, "w1", ["app.py"], ttl=HOUR)
    found = document("lease", "release", "1", "--reason", " it hangs ", cwd=root)
    assert (found["lease"]["holder"], found["reason"]) == ("w1", "it hangs")
    assert found["actor"] == f"{NAME} <{EMAIL}>"


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["7", "--reason", "why"], 3, "no live lease has fence 7"),
        (["b.py", "--reason", "why"], 3, "`b.py` is not leased"),
        (["./1", "--reason", "why"], 3, "`./1` is not leased"),
        (["99999999999999999999", "--reason", "why"], 3, "no live lease has fence"),
        (["../app.py", "--reason", "why"], 2, "leads out of the repository"),
        (["1", "--reason", "  "], 2, "only for a reason"),
        (["1"], 2, "--reason"),
        ([], 2, "FENCE|PATH"),
    ],
)
def test_release_of_what_is_not_there_or_without_a_reason_is_refused(
    root: Path, ledger: Ledger, words: list[str], code: int, problem: str
) -> None:
    lease = leases.claim(ledger, "w1", ["app.py"], ttl=HOUR)
    refused = planforge("lease", "release", *words, cwd=root)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert problem in refused.stderr
    assert leases.held(ledger) == [lease]


@pytest.mark.parametrize("words", [[], ["list"], ["release"]])
def test_help_has_examples_that_can_be_typed(root: Path, words: list[str]) -> None:
    shown = planforge("lease", *words, "--help", cwd=root)
    assert shown.returncode == 0
    assert not words or "  planforge lease" in shown.stdout
