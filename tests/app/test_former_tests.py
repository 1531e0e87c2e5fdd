"""A change that has its tests pass by changing those that were there waits for a person; really run."""

from __future__ import annotations

from pathlib import Path

import pytest

from decided import of
from fixing import ADA, fixed
from planforge.app.decisions import gates
from planforge.app.project import Project
from planforge.errors import NeedsPerson
from planforge.kernel.events import DecisionAsked, EffectCompleted, PatchApplied
from rehearsals import Actions, Rehearsal
from repositories import repository
from texts import SETTINGS, drive, play

CODE = "def total(prices):\n    return sum(prices)\n"
TESTS = """\
import unittest

from shop import total


class TotalTest(unittest.TestCase):
    def test_all_count(self):
        self.assertEqual(total([1, 2]), 3)
"""
CHECKED = SETTINGS.partition("[agents]")
WRONG = CODE.replace("sum(prices)", "sum(prices) + 1")


def at_work(place: Path, code: str, tests: str) -> Rehearsal:
    """A repository with a test, and an agent that changes the code and the test."""
    root = repository(
        place / "workshop", {"shop.py": CODE, "tests/__init__.py": "", "tests/test_shop.py": TESTS}
    )
    check = '[check]\ncommand = ["python3", "-m", "unittest"]\nreport = "unittest"\n\n'
    (root / "planforge.toml").write_text((check + CHECKED[1] + CHECKED[2]).format(place=place))
    (place / "rehearsal").mkdir()
    made = Rehearsal(root, place / "rehearsal" / "script.json")
    files = {"shop.py": code, "tests/test_shop.py": tests}
    does: Actions = [{"write": {"path": path, "text": text}} for path, text in files.items()]
    play(made, ((("Role: developer",), [*does, {"say": "All tests pass."}]),))
    Project.create(root).ledger.close()
    return made


@pytest.mark.dear
def test_it_waits_with_what_fails_named_and_lands_after_a_yes(tmp_path: Path) -> None:
    target = at_work(tmp_path, WRONG, TESTS.replace("3)", "4)"))
    with pytest.raises(NeedsPerson):
        fixed(target, "Let the total be one more")
    (raised,) = of(target.events(DecisionAsked), "gate")
    (reason,) = raised.reasons
    assert reason.startswith("`tests/test_shop.py`: as they were before the change, the tests failed (1 of 1")
    assert "test_all_count" in reason
    assert target.events(PatchApplied) == []

    project = Project(target.root)
    gates.approve(project, "gate-001", actor=ADA, reason="it is one more now")
    assert drive(project, "run-001").exit_code == 0
    project.ledger.close()
    (applied,) = target.events(PatchApplied)
    assert applied.tree == raised.content


def test_tests_of_before_that_still_pass_stop_nobody(tmp_path: Path) -> None:
    target = at_work(tmp_path, CODE + "\n\nRATE = 7\n", TESTS.replace("[1, 2]), 3", "[2, 2]), 4"))
    _, code = fixed(target, "Add a rate")
    assert code == 0
    asked = [event.effect for event in target.events(EffectCompleted)]
    assert asked.count("RunFormerTests") == 1
    assert of(target.events(DecisionAsked), "gate") == []


def test_a_change_that_only_adds_tests_costs_no_second_run(tmp_path: Path) -> None:
    more = "\n    def test_none(self):\n        self.assertEqual(total([]), 0)\n"
    target = at_work(tmp_path, CODE + "\n\nRATE = 7\n", TESTS + more)
    _, code = fixed(target, "Add a rate")
    assert code == 0
    assert "RunFormerTests" not in [event.effect for event in target.events(EffectCompleted)]
