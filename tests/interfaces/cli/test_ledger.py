"""`planforge rebuild` and `planforge schema`."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from pathlib import Path

import pytest

from kernel.another_client import another_client
from kernel.histories import STORY
from kernel.ledger_contract import tables, tell
from planforge.kernel import events
from planforge.kernel.events import EVENTS
from planforge.kernel.ledger import Ledger
from programs import COMMAND, document, environment, planforge


@pytest.fixture
def root(tmp_path: Path) -> Path:
    ledger = Ledger.create(tmp_path / ".planforge")
    tell(ledger)
    ledger.close()
    return tmp_path


def test_rebuilding_says_that_nothing_differs(root: Path) -> None:
    for words in (["rebuild"], ["rebuild", "--check"]):
        process = planforge(*words, cwd=root)
        assert (process.returncode, process.stderr) == (0, "")
        assert process.stdout.startswith(f"nothing differs: {len(STORY)} events, ")


def test_a_row_changed_by_hand_is_reported_by_a_check_and_mended_without(root: Path) -> None:
    another_client(root / ".planforge", "UPDATE items SET status = 'DONE' WHERE kind = 'plan'")
    line = "differs: table `items`: row `plan-001` has `status` 'DONE', not 'REVIEW'\n"
    for _ in range(2):
        checked = planforge("rebuild", "--check", cwd=root)
        assert (checked.returncode, checked.stdout) == (1, line)
    found = planforge("rebuild", "--check", "--json", cwd=root)
    assert found.returncode == 1
    assert json.loads(found.stdout)["differences"][0]["row"] == "plan-001"
    verified = planforge("verify", cwd=root)
    assert verified.returncode == 1
    assert "not intact: table `items`: row `plan-001` has `status` 'DONE', not 'REVIEW'" in verified.stdout
    mended = planforge("rebuild", cwd=root)
    assert mended.returncode == 0
    assert mended.stdout.startswith(f"{line}rebuilt: ")
    assert document("rebuild", "--check", cwd=root)["differing"] == 0


@pytest.mark.dear
def test_a_rebuild_killed_at_any_moment_leaves_the_tables_as_they_were_or_as_they_should_be(
    tmp_path: Path,
) -> None:
    ledger = Ledger.create(tmp_path / ".planforge")
    plans = [
        events.ItemOpened(item=f"plan-{number:04}", title="", request="", path="") for number in range(2000)
    ]
    ledger.append("plans", plans, expected=0)
    right, history = tables(ledger), list(ledger.since())
    spoil = "UPDATE items SET title = 'mine' WHERE item > 'plan-1000'"
    moments = random.Random(5)
    for _ in range(8):
        another_client(tmp_path / ".planforge", spoil)
        spoilt = tables(ledger)
        assert spoilt != right
        process = subprocess.Popen(
            [*COMMAND, "rebuild"], cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL
        )
        time.sleep(0.2 + moments.random() * 0.6)
        process.kill()
        process.wait()
        assert tables(ledger) in (spoilt, right)
    assert planforge("rebuild", cwd=tmp_path).returncode == 0
    assert (tables(ledger), list(ledger.since()), list(ledger.faults())) == (right, history, [])
    ledger.close()


def test_one_schema_or_all_are_printed_anywhere(tmp_path: Path) -> None:
    one = json.loads(planforge("schema", "StepCompleted", cwd=tmp_path).stdout)
    assert (one["title"], one["revision"]) == ("StepCompleted", 1)
    every = json.loads(planforge("schema", cwd=tmp_path).stdout)
    assert every["StepCompleted"] == one
    assert set(EVENTS) < set(every)


def test_schemas_are_listed_with_revision_and_description(tmp_path: Path) -> None:
    lines = planforge("schema", "--list", cwd=tmp_path).stdout.splitlines()
    assert ["PlanStarted", "1", "A run began to carry out the plan."] in [
        re.split(" {2,}", line) for line in lines
    ]
    listed = document("schema", "--list", cwd=tmp_path)
    assert [item["name"] for item in listed] == [line.split()[0] for line in lines]


def test_an_unknown_schema_is_a_usage_error(tmp_path: Path) -> None:
    process = planforge("schema", "StepComplete", cwd=tmp_path)
    assert process.returncode == 2
    assert process.stderr.startswith("error: there is no schema `StepComplete`\n\nhint: did you mean")
