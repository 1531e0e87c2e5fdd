from __future__ import annotations

import pytest

from planforge.app.items import plan_rounds
from planforge.app.project import Project
from planforge.errors import InvalidInput
from programs import document, planforge
from rehearsals import Rehearsal


def test_what_changed_between_two_rounds_comes_with_what_was_found(plan: Rehearsal) -> None:
    project = Project.find(plan.root)
    found = plan_rounds.diff(project, "1", "1", "2")
    assert [line[0] for line in found.lines[:3]] == ["-", "+", "@"]
    assert any(line.startswith("+") and "without regard to case" in line for line in found.lines)
    assert [reason.severity for reason in found.reasons] == ["blocking", "medium"]
    assert (found.before.verdict, found.after.verdict) == ("revision", "approved")


def test_what_a_person_has_edited_since_is_told(plan: Rehearsal) -> None:
    project = Project.find(plan.root)
    assert plan_rounds.diff(project, "1").lines == ()
    (path,) = (plan.root / "docs" / "plans").glob("plan-001-*[a-z].md")
    path.write_text(path.read_text().replace("## Risks\n", "## Risks\n\nMine.\n"))
    found = plan_rounds.diff(project, "plan-001")
    assert (found.before.round, found.after.round) == ("2", "now")
    assert "+Mine." in found.lines
    shown = planforge("plan", "diff", "1", cwd=plan.root)
    assert "+Mine." in shown.stdout
    assert document("plan", "diff", "1", "--rounds", "1", "now", "--json", cwd=plan.root)["reasons"]


@pytest.mark.parametrize(
    ("rounds", "problem"),
    [(("2", "1"), "comes after"), (("1", "7"), "no round 7"), (("first", "2"), "no round first")],
)
def test_rounds_that_there_are_not_are_refused(
    plan: Rehearsal, rounds: tuple[str, str], problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        plan_rounds.diff(Project.find(plan.root), "1", *rounds)
