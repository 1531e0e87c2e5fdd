"""The evidence page of a plan that was really carried out, from the ledger alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from landings import Field
from planforge.app.decisions import approvals
from planforge.app.items import plan_evidence
from planforge.app.plans import work
from planforge.app.project import Project
from planforge.documents import evidence_page
from planforge.kernel import events
from texts import CLEAN, drive, forged, play, says, writes

MINOR = '{"maxSeverity": "minor", "concerns": [{"title": "ask @bob about #3", "severity": "minor"}]}'


@pytest.mark.dear
def test_a_plan_is_shown_with_its_objective_its_trees_its_audits_and_its_approval(tmp_path: Path) -> None:
    at = forged(tmp_path)
    play(at, ((("Role: developer",), writes("one/a.txt")), (("Role: auditor",), says(MINOR))))
    project = Project(at.root)
    approval = approvals.approve(project, "1", actor="Ada <ada@example.org>")
    assert drive(project, work.begin_plan_run(project, "1", parallel=False)).succeeded
    page = plan_evidence.page(project, "1")
    assert page.objective == "The project has a few texts more than before."
    assert not page.stale
    implemented, audited = page.steps
    assert implemented.evidence is not None
    assert implemented.evidence.tree == implemented.tree == project.git.tree_of("planforge/plan-001")
    assert (implemented.commit, page.commit) == (page.commit, project.git.commit_of("planforge/plan-001"))
    assert audited.evidence is None
    assert [(audit.of, len(audit.findings)) for audit in page.audits] == [("", 0), ("phase-2", 1)]
    (yes,) = page.approvals
    assert (yes.actor, yes.content) == ("Ada <ada@example.org>", approval.content)
    text = evidence_page.markdown(page)
    assert "> The project has a few texts more than before." in text
    assert "minor: ask @&#8203;bob about #&#8203;3" in text
    assert str(at.root) not in text


@pytest.mark.dear
def test_a_plan_that_was_edited_afterwards_is_shown_as_it_was_carried_out(tmp_path: Path) -> None:
    at = forged(tmp_path)
    play(at, ((("Role: developer",), writes("one/a.txt")), (("Role: auditor",), says(CLEAN))))
    path = next((at.root / "docs/plans").glob("plan-001-*.md"))
    project = Project(at.root)
    approvals.approve(project, "1", actor="Ada")
    assert drive(project, work.begin_plan_run(project, "1", parallel=False)).succeeded
    carried_out = path.read_text()
    path.write_text(carried_out.replace("The project has a few texts more", "The project has no texts more"))
    page = plan_evidence.page(project, "1")
    assert (page.objective, page.stale) == ("The project has a few texts more than before.", False)


@pytest.mark.dear
def test_what_was_carried_out_from_an_edited_file_that_is_gone_is_said_to_be_unknown(tmp_path: Path) -> None:
    at = forged(tmp_path)
    play(at, ((("Role: developer",), writes("one/a.txt")), (("Role: auditor",), says(CLEAN))))
    path = next((at.root / "docs/plans").glob("plan-001-*.md"))
    path.write_text(path.read_text().replace("a few texts more", "one text more"))
    project = Project(at.root)
    approvals.approve(project, "1", actor="Ada")
    assert drive(project, work.begin_plan_run(project, "1", parallel=False)).succeeded
    assert plan_evidence.page(project, "1").objective == "The project has one text more than before."
    path.unlink()
    page = plan_evidence.page(project, "1")
    assert page.stale
    assert "The plan was edited after it was carried out" in evidence_page.markdown(page)


def test_a_secret_that_got_on_record_gets_no_further(tmp_path: Path) -> None:
    field = Field(tmp_path / "field")
    plan = field.plan({"x.txt": "one\n"})
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"[:36]
    finding = events.RecordedFinding(severity="minor", title=f"the token {token} is in a.py")
    audit = events.AuditRecorded(
        plan=plan,
        round=1,
        by="codex",
        verdict="approved",
        reason="",
        findings=(finding,),
        decision="done",
        decision_reason="",
    )
    field.say((plan, audit))
    page = plan_evidence.page(field.project, plan)
    assert token not in evidence_page.markdown(page)
    assert "redacted" in evidence_page.markdown(page)
