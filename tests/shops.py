"""A shop: a small project whose rehearsed agents take tasks through pipelines, within this process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planforge.app import driver
from planforge.app.decisions import gates
from planforge.app.project import Project
from planforge.app.upkeep.setup import initialise
from planforge.kernel.events import RunEnded
from repositories import repository

PLAN = "# Plan\n\n" + "A function of its own counts the lines of a text, and is tested. " * 5
DONE = "The function is in `lines.py` and its test beside it; an empty text has no lines. " * 4
YES, NO = "Right.\n\n**Verdict:** Approved\n", "An empty text?\n\n**Verdict:** Revision Required\n"
FRICTION = '```friction\n{"issue": "skill_missing", "skill": "writing-tests", "detail": "no fixtures"}\n```\n'
CHECK = """\
import unittest

import lines


class CountTest(unittest.TestCase):
    def test_one_line(self):
        self.assertEqual(lines.count("a"), 1)
"""
GOOD, BAD = "def count(text):\n    return len(text.splitlines())\n", "def count(text):\n    return 1\n"
HALF = "def count(text):\n    return text.count('\\n') + 1\n"

Scene = dict[str, Any]


def scene(*when: str, say: str, **files: str) -> Scene:
    writes = [{"write": {"path": f"{name}.py", "text": text}} for name, text in files.items()]
    return {"when": list(when), "do": [*writes, {"say": say}]}


STORY = (
    scene("Stage: plan", say=PLAN),
    scene("Stage: review-plan", say=YES),
    scene("Stage: implement", "Iteration: 1", say=f"{DONE}\n\n{FRICTION}", lines=HALF),
    scene("Stage: review-code", "Iteration: 1", say=NO),
    scene("Stage: implement", say=DONE, lines=GOOD),
    scene("Stage: review-code", say=YES),
    scene("Stage: triage", say="It is small."),
    scene("Stage: writeback", say="Nothing to add."),
)

NEVER = (
    *STORY[:3],
    scene("Stage: review-code", say=NO),
    scene("Stage: implement", "Iteration: 2", say=DONE, lines=f"{GOOD}\n\n# so?\n"),
    scene("Stage: implement", "Iteration: 3", say=DONE, lines=GOOD),
    *STORY[6:],
)
"""Whoever reviews the code is never content."""

SHORT = """
[pipelines.short]
requires = ["validate"]
stages = [
  {name = "implement", role = "developer", writes = ["code"]},
  {name = "validate", role = "tester", verdict = "evidence", judges = ["code"]},
  {name = "land", role = "collator", lands = true},
]
"""

RED = "def count(text):\n    return 2\n"
TWICE = (
    scene("Stage: implement", "Iteration: 1", say=DONE, lines=RED),
    scene("Stage: implement", say=DONE, lines=GOOD),
)
"""The first change does not pass, and the second one does."""


def opened(place: Path, scenes: Sequence[Scene] = STORY, more: str = "") -> Project:
    """The shop at a place, made if it is not there; its agents play these scenes from now on."""
    root, script = place / "shop", place / "rehearsal" / "script.json"
    script.parent.mkdir(exist_ok=True)
    script.write_text(json.dumps({"name": "story", "scenes": list(scenes)}))
    settings = (
        '[check]\ncommand = ["python3", "-m", "unittest"]\nreport = "unittest"\n\n'
        '[agents]\ndefault = "rehearsal"\n\n'
        f'[agents.profiles.rehearsal]\nwrites = ["{script.parent}"]\n\n'
        f'[agents.profiles.rehearsal.env]\nPLANFORGE_REHEARSAL_SCRIPT = "{script}"\n{more}'
    )
    if not root.exists():
        repository(root, {"test_lines.py": CHECK, "lines.py": BAD, "planforge.toml": settings})
        initialise(root)
    return Project.find(root)


def go(project: Project, run: str) -> RunEnded:
    """Drive a run before nobody."""
    return driver.drive(project, run, lambda _: None)


def decided(project: Project, *, approve: bool = True) -> None:
    """Have Ada decide at the gate that waits."""
    waiting = gates.waiting(project).gates[-1]
    if approve:
        gates.approve(project, waiting.name, actor="Ada")
    else:
        gates.reject(project, waiting.name, actor="Ada", reason="not like that")
