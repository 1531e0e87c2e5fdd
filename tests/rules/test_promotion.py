"""What of a plan's history may be worth a lesson, and what is proposed for it."""

from __future__ import annotations

import pytest

from planforge.kernel.events import (
    AttemptRejected,
    AuditRecorded,
    Event,
    FrictionNoted,
    RecordedFinding,
    StageEnded,
)
from planforge.rules.lessons import Lesson, Status
from planforge.rules.promotion import Candidate, Decision, candidates, comes_from, proposals


def finding(title: str, severity: str = "blocking", location: str = "") -> RecordedFinding:
    return RecordedFinding(severity=severity, title=title, location=location)


def audit(*findings: RecordedFinding, step: str = "", by: str = "claude") -> AuditRecorded:
    return AuditRecorded(
        plan="plan-001",
        step=step,
        round=1,
        by=by,
        verdict="revision",
        reason="",
        findings=findings,
        decision="continue",
        decision_reason="",
    )


def rejected(reason: str, step: str = "phase-1") -> AttemptRejected:
    return AttemptRejected(plan="plan-001", step=step, attempt=1, reason=reason)


def friction(issue: str, detail: str, skill: str = "") -> FrictionNoted:
    return FrictionNoted(task="task-001", workflow="w", persona="p", issue=issue, detail=detail, skill=skill)


def stage(*findings: RecordedFinding, name: str = "review") -> StageEnded:
    return StageEnded(
        task="task-001",
        stage=name,
        iteration=1,
        role="reviewer",
        name="n",
        outcome="revision",
        reason="",
        verdict="revision" if findings else "approved",
        findings=findings,
    )


def found(*history: Event) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in candidates(history)]


def test_what_blocked_and_was_settled_is_a_candidate_and_what_still_blocks_is_not() -> None:
    first = audit(finding("no rollback"), finding("no index"), finding("a typo", "minor"))
    assert found(first, audit(finding("**No index**"))) == [("finding", "no rollback")]
    assert found(first) == []
    assert found(first, audit(finding("no index", "minor"))) == [
        ("finding", "no rollback"),
        ("finding", "no index"),
    ]


def test_the_form_of_a_plan_teaches_nobody() -> None:
    assert found(audit(finding("no `## Changes`"), by="structure"), audit()) == []


def test_what_an_audit_of_the_work_found_is_one_whether_settled_or_not() -> None:
    history = [audit(finding("leaks"), finding("slow", "medium"), finding("ugly", "minor"), step="phase-3")]
    assert found(*history) == [("audit", "leaks"), ("audit", "slow")]
    assert candidates(history)[0].step == "phase-3"


def test_a_refusal_that_came_twice_is_one_whatever_numbers_were_in_it() -> None:
    once = rejected("`a.py` is outside of the step")
    assert found(once, rejected("another reason")) == []
    twice = candidates([rejected("3 tests fail"), once, rejected("1 tests fail")])
    assert twice == (Candidate(kind="refusal", text="1 tests fail", step="phase-1", times=2),)
    (spread,) = candidates([rejected("it hangs"), rejected("It hangs.", "phase-2")])
    assert (spread.step, spread.times) == ("", 2)


def test_friction_and_settled_stages_of_tasks_are_candidates() -> None:
    history = [
        stage(finding("no test", location="a.py:3")),
        stage(),
        friction("skill_missing", "says nothing of fixtures", "writing-tests"),
        friction("skill_missing", "says nothing of fixtures", "writing-tests"),
    ]
    first, second = candidates(history)
    assert (first.kind, first.text, first.step, first.location) == ("finding", "no test", "review", "a.py:3")
    assert (second.text, second.times) == ("skill_missing writing-tests: says nothing of fixtures", 2)


# What becomes of it

TEXT = "Migrations must be run before the tests."


def lesson(**more: object) -> Lesson:
    fields: dict[str, object] = {
        "id": "a",
        "date": "2026-01-01",
        "title": "A",
        "lesson": "Run migrations before tests.",
    }
    return Lesson(**fields | more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "decision", "reason"),
    [
        ([], Decision.ADD, "no lesson says so"),
        ([lesson(lesson="Whales sing.")], Decision.ADD, "no lesson says so"),
        ([lesson()], Decision.UPDATE, "the lesson says nearly the same"),
        ([lesson(source="plan-0011")], Decision.UPDATE, "the lesson says nearly the same"),
        ([lesson(source="run-3, plan-001/phase-2")], Decision.NONE, "the lesson comes from plan-001 already"),
        ([lesson(status=Status.STALE)], Decision.UPDATE, "is stale; it would be active again"),
        ([lesson(status=Status.SUPERSEDED)], Decision.ADD, "no lesson says so"),
        ([lesson(status=None)], Decision.ADD, "no lesson says so"),
        ([lesson(lesson="Never run migrations before tests.")], Decision.ADD, "says nearly the opposite"),
    ],
)
def test_a_candidate_is_held_against_the_lessons(
    known: list[Lesson], decision: Decision, reason: str
) -> None:
    (proposal,) = proposals([Candidate(kind="finding", text=TEXT)], known, "plan-001")
    assert (proposal.number, proposal.decision) == (1, decision)
    assert reason in proposal.reason
    assert bool(proposal.lesson) is (reason != "no lesson says so")


def test_a_source_names_a_plan_exactly() -> None:
    assert comes_from(lesson(source="plan-001/phase-2"), "plan-001")
    assert not comes_from(lesson(source="my-plan-001"), "plan-001")
    assert not comes_from(lesson(source="plan-0010"), "plan-001")
