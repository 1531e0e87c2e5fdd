"""Runs decided again, proved and back-tested from the command line, in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from forgeries import HISTORIES, Forgery, forged
from planforge.kernel.ledger import Ledger
from programs import Told, document, planforge

RUN = "run-001"


def events(root: Path) -> str:
    """Everything that the ledger and the note of its end say."""
    ledger = Ledger.open(root / ".planforge")
    try:
        rows = [*ledger.query("SELECT * FROM events"), *ledger.query("SELECT * FROM head")]
        return sha256(repr(rows).encode()).hexdigest()
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def proof(told: Told, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("proof") / "run.proof"
    process = planforge("prove", RUN, "-o", str(path), cwd=told.root)
    assert process.returncode == 0, process.stderr
    return path


@pytest.fixture
def copy(told: Told, tmp_path: Path) -> Path:
    root = tmp_path / "copy"
    shutil.copytree(told.root, root, symlinks=True)
    return root


def test_a_run_is_the_same_again_and_nothing_is_written(copy: Path) -> None:
    before = events(copy)
    process = planforge("replay", RUN, cwd=copy)
    assert process.returncode == 0, process.stderr
    assert f"✓ {RUN} matches its recording" in process.stdout
    found = document("replay", RUN, cwd=copy)
    assert (found["ended"], found["difference"]) == (True, None)
    assert found["counts"]["scores"] == 2
    assert found["counts"]["effects"] > 40
    assert events(copy) == before


def test_a_run_that_differs_is_shown_with_both_sides(told: Told, tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(Path(__file__).parents[3] / "src", source)
    prompts = source / "planforge" / "workflows" / "prompts.py"
    prompts.write_text(prompts.read_text().replace("Work only inside", "Please work only inside"))
    extra = {"PYTHONPATH": str(source)}
    process = planforge("replay", RUN, cwd=told.root, extra=extra)
    assert process.returncode == 1
    assert "another effect is on record under" in process.stdout
    assert "-Work only inside" in process.stdout
    assert "+Please work only inside" in process.stdout
    found = json.loads(planforge("replay", RUN, "--json", cwd=told.root, extra=extra).stdout)
    assert [field["path"] for field in found["difference"]["fields"]] == ["body.prompt"]
    assert found["difference"]["recorded"]["effect"] == "RunAgent"
    assert found["difference"]["asked"]["effect"] == "RunAgent"


def test_a_run_that_is_not_there_is_said(told: Told) -> None:
    for words in (["replay", "run-009"], ["backtest", "run-009"], ["prove", "run-009", "-o", "x"]):
        process = planforge(*words, cwd=told.root)
        assert process.returncode == 3
        assert "there is no `run-009` here" in process.stderr


def test_a_proof_is_checked_with_no_repository_and_no_ledger(proof: Path, tmp_path: Path) -> None:
    process = planforge("check-proof", str(proof), cwd=tmp_path, extra={"PATH": str(tmp_path)})
    assert process.returncode == 0, process.stderr
    assert "is what was recorded" in process.stdout
    assert "matches its recording" in process.stdout
    assert list(tmp_path.iterdir()) == []
    found = document("check-proof", str(proof), cwd=tmp_path)
    assert found["holds"]
    assert found["reruns"] == []
    assert f"head: {found['proof']['head']['seq']} {found['proof']['head']['hash']}" in process.stdout


def test_the_head_of_a_proof_is_in_the_ledger(told: Told, proof: Path) -> None:
    head = document("check-proof", str(proof), cwd=told.root)["proof"]["head"]
    log = planforge("log", "-n", "0", "--json", cwd=told.root).stdout.splitlines()
    assert json.loads(log[head["seq"] - 1])["hash"] == head["hash"]


def test_the_checks_of_a_proof_are_run_again_only_if_asked_to(proof: Path, tmp_path: Path) -> None:
    process = planforge("check-proof", str(proof), "--rerun", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert "this is code from the proof" in process.stderr
    assert process.stdout.count(" again: pass: ") == 3
    assert process.stdout.count(" again: fail: ") == 1
    assert planforge("check-proof", str(proof), "--repo", str(tmp_path), cwd=tmp_path).returncode == 2


def test_checks_are_run_again_from_a_repository(told: Told, proof: Path, tmp_path: Path) -> None:
    process = planforge("check-proof", str(proof), "--rerun", "--repo", str(told.root), cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert list((told.root / ".git").glob("worktrees/*")) == []


def test_a_proof_that_does_not_hold_names_the_event_and_exits_with_1(tmp_path: Path) -> None:
    def lie(forgery: Forgery) -> None:
        forgery.change(forgery.find("AttemptRejected"), reason="no reason")

    forgery = forged("done-after-retries-and-rejections", lie)
    path = tmp_path / "forged"
    path.write_bytes(forgery.data())
    process = planforge("check-proof", str(path), "--rerun", cwd=tmp_path)
    assert process.returncode == 1
    seq = forgery.find("AttemptRejected")["seq"]
    assert f"✗ event {seq} (AttemptRejected of run-002): decided again, it differs" in process.stdout
    assert "code from the proof" not in process.stderr
    process = planforge("check-proof", str(path), "--json", cwd=tmp_path)
    assert process.returncode == 1
    assert json.loads(process.stdout)["proof"]["faults"][0]["seq"] == seq


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04"])
def test_what_is_no_proof_exits_with_2(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    process = planforge("check-proof", "file", cwd=tmp_path)
    assert process.returncode == 2
    assert process.stderr.startswith("error: this is not a proof")
    assert len(process.stderr.strip().splitlines()) == 1
    assert planforge("check-proof", "nowhere", cwd=tmp_path).returncode == 3


def test_a_proof_is_not_written_over_anything_unless_forced(told: Told, proof: Path, tmp_path: Path) -> None:
    other = tmp_path / "mine"
    other.write_text("mine")
    process = planforge("prove", RUN, "-o", str(other), cwd=told.root)
    assert process.returncode == 2
    assert "--force" in process.stderr
    assert other.read_text() == "mine"
    assert document("prove", RUN, "-o", str(other), "--force", cwd=told.root)["events"] > 100
    assert other.read_bytes() == proof.read_bytes()


def test_a_history_in_a_directory_that_nobody_may_write_to_is_checked(tmp_path: Path) -> None:
    place = tmp_path / "read-only"
    place.mkdir()
    shutil.copy(HISTORIES / "interrupted-by-kill-9.proof", place / "p")
    place.chmod(0o500)
    process = planforge("check-proof", os.fspath(place / "p"), cwd=place)
    assert process.returncode == 0, process.stderr
    assert "matches its recording so far" in process.stdout
    place.chmod(0o700)


def test_a_setting_that_is_none_is_a_mistake_in_the_command(told: Told) -> None:
    process = planforge("backtest", RUN, "--set", "run.speed=2", cwd=told.root)
    assert process.returncode == 2
    assert "known are `forge.cap`" in process.stderr
    assert planforge("backtest", RUN, "--set", "forge.cap=2", cwd=told.root).returncode == 2


def test_a_backtest_without_changes_ends_as_it_did_and_costs_the_same(told: Told) -> None:
    process = planforge("backtest", RUN, cwd=told.root)
    assert process.returncode == 0, process.stderr
    assert "it decides everything the same way" in process.stdout
    found = document("backtest", RUN, cwd=told.root)["backtest"]
    assert found["cost"] == found["recorded_cost"]
    assert found["end"] == found["recorded_end"]
    assert found["cost"]["agent_calls"] > 5
