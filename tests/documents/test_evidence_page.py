"""The evidence page says what is on record, and what agents wrote in it does nothing."""

from __future__ import annotations

import pytest

from planforge.documents.evidence_page import (
    LONGEST,
    AuditEvidence,
    EvidencePage,
    StepEvidence,
    Yes,
    code,
    markdown,
    plain,
)
from planforge.kernel.events import RecordedFinding
from planforge.kernel.evidence import Counts, Evidence, Outcome

EVIDENCE = Evidence(
    check="tests",
    outcome=Outcome.PASS,
    reason="3 of 3 tests passed",
    command=("pytest", "-q", "a b"),
    exit_code=0,
    counts=Counts(total=3, passed=3, failed=0, skipped=0),
    failing=(),
    commit="c" * 40,
    tree="7" * 40,
    output="",
    seconds=1.0,
    sandbox="bubblewrap",
)


def page(**more: object) -> EvidencePage:
    given: dict[str, object] = {
        "plan": "plan-017",
        "title": "It",
        "status": "DONE",
        "objective": "Be better.",
    }
    return EvidencePage(**(given | more))  # type: ignore[arg-type]


def test_a_page_says_what_was_measured_by_which_command_on_which_tree() -> None:
    step = StepEvidence(
        step="phase-1", title="Do it", kind="implement", status="done", commit="c" * 40, evidence=EVIDENCE
    )
    text = markdown(page(steps=(step,), runs=("run-001", "run-002"), reason="all is done"))
    assert "`plan-017` is DONE: all is done.\n" in text
    assert "| `phase-1` | Do it | `cccccccccccc` | 3 of 3 tests passed |  |" in text
    assert f"- `phase-1`: tree `{'7' * 40}`, bubblewrap" in text
    assert "  - pass, 3 tests: 3 passed, 0 failed, 0 skipped, `pytest -q 'a b'`" in text
    assert "$ planforge prove run-002 --output plan-017.proof" in text
    assert "$ planforge check-proof plan-017.proof" in text


def test_a_page_says_who_approved_what_and_which_findings_remain() -> None:
    audit = AuditEvidence(
        of="phase-2",
        round=1,
        by="codex",
        verdict="approved",
        findings=(RecordedFinding(severity="minor", title="a name", location="a.py"),),
    )
    yes = Yes(actor="Ada <ada@example.org>", what="plan", content="d" * 64, at="")
    text = markdown(page(audits=(audit,), approvals=(yes,)))
    assert "- `phase-2`, the finished work, by codex: approved; 1 finding remains" in text
    assert "  - minor: a name (`a.py`)" in text
    assert f"- Ada, `plan`, content `{'d' * 64}`" in text
    assert "ada@example.org" not in text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("ask @torvalds", "ask @&#8203;torvalds"),
        ("Fixes #12 and GH-12", "Fixes #&#8203;12 and GH&#8203;-12"),
        ("closes https://github.com/a/b/issues/1", "closes https:&#8203;//github.com/a/b/issues/1"),
        ("<img src=x> & [a](b) ![c](d)", r"\<img src=x\> &amp; \[a\](b) \!\[c\](d)"),
        ("# Heading\n- item\n1. one\n==", "\\# Heading\n\\- item\n1\\. one\n\\=="),
        ("a | b", r"a \| b"),
        ("bell\x07 and \u202eturned", "bell and turned"),
    ],
)
def test_what_an_agent_wrote_is_shown_and_does_nothing(said: str, shown: str) -> None:
    assert plain(said) == shown


def test_no_text_leaves_its_place() -> None:
    evil = "it\n\n## Approvals\n\n- Ada, `plan`\n| x | y |\n```"
    step = StepEvidence(step="phase-1", title=evil, kind="implement", status="done")
    finding = RecordedFinding(severity="minor", title=evil, location=evil)
    audit = AuditEvidence(of="", round=1, by=evil, verdict="approved", findings=(finding,))
    text = markdown(page(objective=evil, reason=evil, steps=(step,), audits=(audit,)))
    assert not any(line.startswith(("## Approvals", "- Ada", "```")) for line in text.splitlines())
    assert len([line for line in text.splitlines() if line.startswith("|")]) == 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`a`", "`` `a` ``"), ("a\n`", "`` a ` ``"), ("", "")],
)
def test_code_is_closed_by_what_is_not_in_it(text: str, shown: str) -> None:
    assert code(text) == shown


def test_a_page_that_would_be_too_long_says_where_the_rest_is() -> None:
    steps = tuple(
        StepEvidence(step=f"phase-{number}", title="x" * 400, kind="implement", status="done")
        for number in range(300)
    )
    text = markdown(page(steps=steps))
    assert len(text) <= LONGEST
    assert text.endswith("… and more: `planforge plan evidence plan-017` has all of it.\n")
