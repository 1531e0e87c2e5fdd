"""`planforge handoff`, as people and programs use it."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from planforge.kernel.api import Kernel, Proposal, TokenState, TouchedFile, planned
from programs import document, planforge


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which one step was handed over twice, and another one never."""
    found = tmp_path_factory.mktemp("handed")
    with Kernel.open(found) as kernel:
        steps = [planned("load", "Read settings", files=["a.py", "b.py"]), planned("save", files=["c.py"])]
        kernel.plan.create("Read settings once", steps=steps)
        assignment = kernel.step.start("plan-001/load", holder="w1")
        reported = TokenState(used=100_123, threshold=100_000, estimated=False)
        first = kernel.handoff.emit(assignment, reported, successor="w2")
        assignment = kernel.handoff.take(first, holder="w2")
        files = (TouchedFile(path="a.py", hash="0123456789abcdef"),)
        kernel.step.propose(assignment, Proposal(files=files, tree="7ree", changed_lines=1))
        guessed = TokenState(used=90_000, threshold=80_000, estimated=True)
        kernel.handoff.emit(assignment, guessed, successor="w3")
    return found


def test_handoffs_are_listed_oldest_first(place: Path) -> None:
    shown = planforge("handoff", "list", cwd=place)
    assert shown.stdout.splitlines() == [
        "plan-001/load#1  w1 → w2  100123 tokens",
        "plan-001/load#2  w2 → w3  about 90000 tokens",
    ]
    rows = document("handoff", "list", cwd=place)
    assert [row["handoff"] for row in rows] == ["plan-001/load#1", "plan-001/load#2"]
    assert [row["estimated"] for row in rows] == [False, True]


def test_where_nobody_has_handed_over_the_list_says_so(tmp_path: Path) -> None:
    Kernel.open(tmp_path).close()
    assert planforge("handoff", "list", cwd=tmp_path).stdout == "no handoffs\n"
    assert document("handoff", "list", cwd=tmp_path) == []


@pytest.mark.parametrize("name", ["plan-001/load", "1/load", "plan-1/load", "plan-001.r1/load", "1/load#2"])
def test_a_step_stands_for_its_newest_handoff_however_it_is_written(place: Path, name: str) -> None:
    found = document("handoff", "show", name, cwd=place)
    assert found["summary"]["context"] == {"used": 90_000, "threshold": 80_000, "estimated": True}
    assert found["summary"]["touched_files"] == [{"path": "a.py", "hash": "0123456789abcdef"}]
    assert [answer["answer"] for answer in found["answers"]] == ["node_view", "moments"]


def test_a_handoff_is_shown_for_people_with_queries_that_can_be_asked_again(place: Path) -> None:
    shown = planforge("handoff", "show", "1/load#1", cwd=place)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "plan-001/load  attempt 1  Read settings"
    assert "goal: Read settings once" in lines
    assert "context: 100123 of 100000 tokens" in lines
    assert "  verify  7ree" in lines, "what is next now, not what was next then"
    (asked,) = [line.strip() for line in lines if '"timeline"' in line]
    answer = document("graph", "--query", asked, cwd=place)
    assert [event["kind"] for event in answer["events"]][:1] == ["StepStarted"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("1/load#3", "there is no handoff `plan-001/load#3` here"),
        ("1/load#", "there is no handoff `plan-001/load#` here"),
        ("1/save", "nobody has handed over `plan-001/save`"),
        ("1/nothing", "`plan-001` has no step `nothing`"),
        ("9/load", "there is no plan `plan-009` in the graph"),
        ("#1", "there is no step"),
        ("nonsense", "there is no step `nonsense`"),
    ],
)
def test_what_is_not_there_is_not_found(place: Path, name: str, message: str) -> None:
    shown = planforge("handoff", "show", name, cwd=place)
    assert (shown.returncode, shown.stdout) == (3, "")
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_list_that_nobody_reads_to_its_end_is_no_failure(place: Path) -> None:
    from programs import COMMAND, environment

    shown = subprocess.run(
        ["bash", "-c", f"{shlex.join(COMMAND)} handoff list --json | head -c 1; exit ${{PIPESTATUS[0]}}"],
        cwd=place,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "[", "")


def test_the_list_is_json_that_others_can_read(place: Path) -> None:
    shown = planforge("handoff", "list", "--json", cwd=place)
    assert set(json.loads(shown.stdout)[0]) == {
        "handoff",
        "holder",
        "successor",
        "used",
        "threshold",
        "estimated",
    }
