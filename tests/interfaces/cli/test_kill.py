"""
`kill -9` anywhere, then `planforge resume`: the same tree, no commit twice, no answered question asked again.

The kills are real. The process is killed as soon as its ledger has so many
events, at ten points spread over the whole story.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from programs import COMMAND, Told, environment, planforge, started
from repositories import git

POINTS = 10


def events_in(ledger: Path) -> int:
    """How many events another process's ledger has now."""
    if not ledger.exists():
        return 0
    try:
        with contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM events").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def play_and_kill(place: Path, *, at: int) -> None:
    """Start the demo in `place` and kill it once it has recorded `at` events."""
    process = started("demo", str(place), "--pace", "0.05", cwd=place.parent, heard=False)
    deadline = time.monotonic() + 60
    while events_in(place / ".planforge" / "ledger.db") < at:
        assert process.poll() is None, "the demo ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL


def answered(root: Path) -> set[str]:
    """The hashes of the prompts whose answers are on record."""
    log = [json.loads(line) for line in planforge("log", "-n", "0", "--json", cwd=root).stdout.splitlines()]
    done = {item["key"] for item in log if item["kind"] == "EffectCompleted"}
    prompts = set()
    for item in log:
        if item["kind"] == "EffectIntended" and item["event"]["effect"] == "RunAgent" and item["key"] in done:
            body = item["event"]["body"]
            effect = body["inline"]
            if body["object"]:
                name = body["object"]
                effect = json.loads((root / ".planforge" / "objects" / name[:2] / name[2:]).read_bytes())
            prompts.add(hashlib.sha256(effect["prompt"].encode()).hexdigest())
    return prompts


def asked(root: Path) -> Counter[str]:
    """How often the agent was asked what, by its own journal."""
    journal = root / ".planforge" / "rehearsal" / "journal.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    return Counter(item["prompt"] for item in map(json.loads, lines) if item["event"] == "asked")


@pytest.mark.dear(but="5")
@pytest.mark.parametrize("point", range(1, POINTS + 1))
def test_a_demo_killed_at_any_point_is_resumed_to_the_same_end(
    told: Told, tmp_path: Path, point: int
) -> None:
    total = events_in(told.root / ".planforge" / "ledger.db")
    root = tmp_path / "story"
    play_and_kill(root, at=max(1, total * point // (POINTS + 1)))
    before = answered(root)

    resumed = planforge("resume", cwd=root)

    assert resumed.returncode == 0, resumed.stderr
    branch = told.document["branch"]
    assert git(root, "rev-parse", f"{branch}^{{tree}}") == told.document["landed_tree"]
    steps = git(root, "log", "--format=%(trailers:key=Planforge-Step,valueonly,separator=)", branch)
    assert sorted(steps.split()) == ["plan-001/phase-1", "plan-001/phase-2"]
    counted = asked(root)
    assert all(counted[prompt] == 1 for prompt in before)
    assert len(counted) == told.document["agent_calls"]
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "worktree", "list", "--porcelain").count("worktree ") == 1
    git(root, "fsck", "--strict")
    assert planforge("verify", cwd=root).returncode == 0
    assert planforge("resume", cwd=root).stdout.strip() == "nothing to resume"


def hear_interrupts() -> None:
    """A shell's background job is deaf to SIGINT, and so would be all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.dear
@pytest.mark.parametrize("request_to_stop", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_told_to_stop_says_how_to_go_on(
    tmp_path: Path, request_to_stop: signal.Signals
) -> None:
    root = tmp_path / "story"
    process = subprocess.Popen(
        [*COMMAND, "demo", str(root), "--pace", "30"],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509  (no threads here)
    )
    while not (root / ".planforge" / "rehearsal" / "journal.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(request_to_stop)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "nothing is lost" in said
    assert "planforge resume run-001" in said
    assert "Traceback" not in said
