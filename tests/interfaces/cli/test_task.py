"""`planforge pipeline run`, `task` and `gate check`, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from programs import document, planforge
from repositories import repository

PLAN = "# Plan\n\n" + "Count the lines of a text with a function of its own, and test it. " * 5
OWN = """
[pipelines.small]
about = "a plan that is reviewed"
stages = [
  {name = "plan", role = "planner", writes = ["plan"], outputs = "artifact {task}/PLAN.md min=200"},
  {name = "review", role = "reviewer", verdict = "review", judges = ["plan"], max_iterations = 1},
]
"""


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a task whose review is never content."""
    place = tmp_path_factory.mktemp("stuck")
    root, script = place / "shop", place / "rehearsal" / "script.json"
    script.parent.mkdir()
    scenes = [
        {"when": ["Stage: plan"], "do": [{"say": PLAN}]},
        {"when": ["Stage: review"], "do": [{"say": "Why?\n\n**Verdict:** Revision Required\n"}]},
    ]
    script.write_text(json.dumps({"name": "story", "scenes": scenes}))
    settings = (
        '[agents]\ndefault = "rehearsal"\n\n'
        f'[agents.profiles.rehearsal]\nwrites = ["{script.parent}"]\n\n'
        f'[agents.profiles.rehearsal.env]\nPLANFORGE_REHEARSAL_SCRIPT = "{script}"\n{OWN}'
    )
    repository(root, {"lines.py": "\n", "planforge.toml": settings})
    assert planforge("init", cwd=root).returncode == 0
    process = planforge("pipeline", "run", "small", "Count lines", cwd=root)
    assert process.returncode == 6, process.stderr
    (root / "said").write_text(process.stderr)
    return root


def test_a_run_says_how_every_stage_ends_and_how_to_go_on(stuck: Path) -> None:
    said = (stuck / "said").read_text()
    assert "→ task-001  plan begins (task-001:planner:plan:1)" in said
    assert "✓ task-001  plan — completed" in said
    assert "⚠ task-001  review — escalated to human" in said
    assert "look at docs/tasks/task-001-count-lines/REVIEW.md" in said
    assert "planforge task resume task-001 --at review" in said


def test_a_task_that_is_stuck_shows_three_ways_on(stuck: Path) -> None:
    found = document("task", "show", "1", "--json", cwd=stuck)
    assert found["task"]["status"] == "escalated"
    assert [way["command"] for way in found["next"]] == [
        "planforge task resume task-001 --at review",
        "planforge task resume task-001 --at review --rounds 2",
        "planforge task override task-001 --stage review --reason TEXT",
        "planforge task abandon task-001 --reason TEXT",
    ]
    assert all(way["does"] and way["cost"] for way in found["next"])
    shown = planforge("task", "show", "task-001", cwd=stuck).stdout
    assert "⚠  review" in shown
    assert "planforge task resume task-001" in planforge("task", "show", "1", cwd=stuck).stdout
    assert "task-001  escalated" in planforge("status", cwd=stuck).stdout
    assert "planforge task show task-001" in planforge("status", cwd=stuck).stdout
    assert [row["task"] for row in document("task", "list", "--json", cwd=stuck)] == ["task-001"]


def test_the_log_of_a_task_has_five_fields_a_line(stuck: Path) -> None:
    lines = planforge("task", "log", "1", cwd=stuck).stdout.splitlines()
    assert lines
    assert all(line.count("|") == 4 for line in lines)
    told = document("task", "log", "1", "--json", cwd=stuck)
    fields = ("at", "agent", "persona", "status", "detail")
    assert ["|".join(each[name] for name in fields) for each in told] == lines


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--stage", "plan", "--subject", "task-001"), 0, None),
        (("--stage", "plan", "--subject", "1", "--outputs"), 0, None),
        (("--stage", "commit", "--subject", "1", "--pipeline", "default"), 1, "predecessor-verdict-missing"),
        (
            ("--stage", "implement", "--subject", "1", "--pipeline", "default"),
            1,
            "predecessor-verdict-missing",
        ),
        (
            ("--stage", "validate", "--subject", "1", "--pipeline", "default"),
            1,
            "predecessor-verdict-missing",
        ),
        (("--stage", "nope", "--subject", "1"), 2, "tool-error"),
        (("--stage", "plan", "--subject", "9"), 2, "tool-error"),
    ],
)
def test_a_gate_is_checked_by_hand(
    stuck: Path, arguments: tuple[str, ...], code: int, reason: str | None
) -> None:
    process = planforge("gate", "check", *arguments, cwd=stuck)
    assert process.returncode == code, process.stderr
    found = json.loads(process.stdout)
    assert found.get("reasonCode") == reason
    assert found.get("ok", False) is (code == 0)
    if code:
        assert found["detail"]
        assert found["remediation"]


def test_only_a_person_with_a_reason_changes_a_task(stuck: Path) -> None:
    assert planforge("task", "abandon", "1", "--as", "Ada", cwd=stuck).returncode == 2
    assert planforge("task", "abandon", "1", "--as", "rehearsal", "--reason", "x", cwd=stuck).returncode == 5
    assert planforge("task", "abandon", "1", "--reason", "x", cwd=stuck).returncode == 6
    assert planforge("task", "show", "7", cwd=stuck).returncode == 3
    assert planforge("pipeline", "run", "nope", "Count", cwd=stuck).returncode == 2
