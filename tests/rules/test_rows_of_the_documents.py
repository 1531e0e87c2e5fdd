"""
Every row that the documents have about verdicts and gates, by its name.

The other tests go further; this one says that nothing was left out. Where Planforge is stricter than a
document, the row says so: a person decides, and nothing is ever approved that the document would not approve.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from planforge.rules.findings import Severity
from planforge.rules.gates.evaluation import Reason, evaluate
from planforge.rules.gates.grammar import InvalidGate, Kind, in_markdown, parse
from planforge.rules.verdicts import KINDS, Verdict

A, R, U = Verdict.APPROVED, Verdict.REVISION, Verdict.UNKNOWN
BLOCKING, MEDIUM, MINOR, SUGGESTION = Severity


def concerns(*severities: str, **more: object) -> str:
    return json.dumps({"concerns": [{"title": "x", "severity": each} for each in severities], **more})


def issue(severity: str, **more: object) -> dict[str, object]:
    return {"severity": severity, "description": "x", "location": "a.py:3", "recommendation": "y", **more}


def review(*issues: object, **more: object) -> str:
    return json.dumps({"issues": issues, **more})


FINDINGS = (
    "| # | Severity | File | Issue | Suggested Fix |\n|---|---|---|---|---|\n| 1 | {} | a.py | x | y |\n"
)
Outcome = tuple[Verdict, Severity | None]
VERDICTS: list[tuple[str, str, str, Outcome]] = [
    # plan-and-forge, severity model and verdict parsing
    ("audit", "severity: blocking", "severity: blocking", (R, BLOCKING)),
    ("audit", "severity: high, as before", "severity: high", (R, BLOCKING)),
    ("audit", "severity: medium", "severity: medium", (A, MEDIUM)),
    ("audit", "severity: minor", "severity: minor", (A, MINOR)),
    ("audit", "severity: low, as before", "severity: low", (A, MINOR)),
    ("audit", "severity: suggestion", "severity: suggestion", (A, SUGGESTION)),
    ("audit", "ready to approve", "It is ready to approve.", (A, MINOR)),
    ("audit", "needs revision, no markers", "It needs revision.", (R, BLOCKING)),
    ("audit", "no severity markers: a person", "I read it.", (U, None)),
    ("audit", "case does not matter: HIGH", "Severity: HIGH", (R, BLOCKING)),
    ("audit", "case does not matter: High", "Severity: High", (R, BLOCKING)),
    # notes §1.6, 1: JSON first
    ("audit", "the first JSON object in the text", 'So {"maxSeverity": "minor"}, no more', (A, MINOR)),
    ("audit", "nested under verdict", '{"verdict": {"maxSeverity": "medium"}}', (A, MEDIUM)),
    ("audit", "accepted by maxSeverity", '{"maxSeverity": "suggestion"}', (A, SUGGESTION)),
    ("audit", "accepted by a boolean shouldLoop", '{"shouldLoop": false}', (A, None)),
    ("audit", "accepted by the severity of a concern", concerns("minor"), (A, MINOR)),
    ("audit", "not accepted by a summary", '{"summary": "fine", "concerns": []}', (U, None)),
    ("audit", "maxSeverity is the top one", concerns("minor", maxSeverity="medium"), (A, MEDIUM)),
    ("audit", "else the worst of the concerns", concerns("minor", "blocking", "medium"), (R, BLOCKING)),
    ("audit", "an invalid top one (stricter)", concerns("minor", maxSeverity="bad"), (U, MINOR)),
    ("audit", "shouldLoop as it says: true", '{"maxSeverity": "minor", "shouldLoop": true}', (R, MINOR)),
    ("audit", "shouldLoop as it says: false", '{"maxSeverity": "minor", "shouldLoop": false}', (A, MINOR)),
    (
        "audit",
        "shouldLoop false over blocking (stricter)",
        '{"maxSeverity": "high", "shouldLoop": false}',
        (U, None),
    ),
    ("audit", "shouldLoop else: blocking", '{"maxSeverity": "blocking"}', (R, BLOCKING)),
    (
        "audit",
        "shouldLoop true with none is blocking",
        '{"maxSeverity": "none", "shouldLoop": true}',
        (R, BLOCKING),
    ),
    # notes §1.6, 2: markers in three shapes
    ("audit", "`Severity: X`", "Severity: medium", (A, MEDIUM)),
    ("audit", "bold is tolerated", "**Severity:** medium", (A, MEDIUM)),
    ("audit", "a cell of a table", "| naming | medium |", (A, MEDIUM)),
    ("audit", "in parentheses", "- naming (medium)", (A, MEDIUM)),
    ("audit", "free bold words are ignored", "It is **blocking** me.", (U, None)),
    ("audit", "alias high", "- x (high)", (R, BLOCKING)),
    ("audit", "alias low", "- x (low)", (A, MINOR)),
    ("audit", "rank: none < suggestion", "Severity: none\nSeverity: suggestion", (A, SUGGESTION)),
    ("audit", "rank: suggestion < minor", "Severity: suggestion\nSeverity: minor", (A, MINOR)),
    ("audit", "rank: minor < medium", "Severity: minor\nSeverity: medium", (A, MEDIUM)),
    ("audit", "rank: medium < blocking", "Severity: medium\nSeverity: blocking", (R, BLOCKING)),
    ("audit", "markers beat sentences: approved", "Severity: minor\n\nIt needs revision.", (A, MINOR)),
    ("audit", "markers beat sentences: revision", "Severity: blocking\n\nReady to approve.", (R, BLOCKING)),
    ("audit", "none is a clean pass", "Severity: none", (A, None)),
    # notes §1.6, 3 and 4
    ("audit", "a sentence asks for revision", "This needs revision", (R, BLOCKING)),
    ("audit", "a sentence approves", "This is ready to approve", (A, MINOR)),
    ("audit", "malformed is for a person", '{"maxSeverity":', (U, None)),
    ("audit", "no output is no evidence of a pass", "", (U, None)),
    # forge-orchestrate and notes §4.5: the verdict line
    *[
        ("review", f"approved: {said}", f"**Verdict:** {said}", (A, None))
        for said in ("Approved", "Approve", "[Approved]", "approved", "APPROVE")
    ],
    *[
        ("review", f"revision: {said}", f"**Verdict:** {said}", (R, None))
        for said in (
            "Revision Required",
            "Revision",
            "Needs Revision",
            "Changes Requested",
            "REVISION required",
        )
    ],
    ("review", "free-form prose", "**Verdict:** I would approve it", (U, None)),
    ("review", "missing bold markers", "Verdict: Approved", (U, None)),
    ("review", "a missing verdict line", "# Review\n\nApproved", (U, None)),
    ("review", "a missing artifact reads as nothing", "", (U, None)),
    ("review", "a typo", "**Verdict:** Aproved", (U, None)),
    ("review", "n/a is no verdict of a review", "**Verdict:** n/a", (U, None)),
    ("review", "absent is never guessed", "**Verdict:**", (U, None)),
    # thoughtforge-design and notes §3.9: the review JSON
    ("polish", "an empty list of issues", review(), (A, None)),
    ("polish", "severity critical", review(issue("critical")), (R, BLOCKING)),
    ("polish", "severity medium", review(issue("medium")), (A, MEDIUM)),
    ("polish", "severity minor", review(issue("minor")), (A, MINOR)),
    ("polish", "no other severity", review(issue("major")), (U, None)),
    ("polish", "counts from the issues alone: too low", review(issue("critical"), critical=0), (R, BLOCKING)),
    ("polish", "counts from the issues alone: too high", review(critical=9, medium=9, minor=9), (A, None)),
    ("polish", "counts are not negative", review(critical=-1), (U, None)),
    ("polish", "counts are whole numbers", review(minor=1.5), (U, None)),
    ("polish", "an issue has a description", review({"severity": "minor"}), (U, None)),
    ("polish", "an issue has nothing else", review(issue("minor", verdict="approved")), (U, None)),
    ("polish", "tests all pass", review(tests={"total": 3, "passed": 3, "failed": 0}), (A, None)),
    ("polish", "tests fail", review(tests={"total": 3, "passed": 2, "failed": 1}), (R, None)),
    ("polish", "tests have all three numbers", review(tests={"total": 3, "passed": 3}), (U, None)),
    ("polish", "malformed is asked for again", "{", (U, None)),
    # autoforge: APPROVE or REJECT over required and suggested findings
    ("module", "APPROVE", "Verdict: APPROVE", (A, None)),
    ("module", "REJECT", "Verdict: REJECT", (R, None)),
    ("module", "REJECT with required", "Verdict: REJECT\n\n" + FINDINGS.format("required"), (R, BLOCKING)),
    (
        "module",
        "APPROVE with suggested",
        "Verdict: APPROVE\n\n" + FINDINGS.format("suggested"),
        (A, SUGGESTION),
    ),
    ("module", "APPROVE with required", "Verdict: APPROVE\n\n" + FINDINGS.format("required"), (U, BLOCKING)),
    ("module", "a DECISION_REQUEST is no review", "STATUS: DECISION_REQUEST", (U, None)),
]


@pytest.mark.parametrize(
    ("kind", "row", "text", "outcome"), VERDICTS, ids=[f"{kind}: {row}" for kind, row, _, _ in VERDICTS]
)
def test_a_verdict(kind: str, row: str, text: str, outcome: Outcome) -> None:
    judgement = KINDS[kind](text)
    assert (judgement.verdict, judgement.max_severity) == outcome, judgement.reason
    assert judgement.loops is (outcome[0] is R)


class World:
    """A task that is planned, and a plan that was approved."""

    def size(self, path: str) -> int | None:
        return {"S1/T1/PLAN.md": 200, "S1/T1/STUB.md": 199, "B1/x": 1}.get(path)

    def field(self, name: str) -> str | None:
        return {"task.status": "planned"}[name]

    def verdict(self, stage: str) -> str | None:
        return {"review-plan": "approved", "review-code": "revision", "triage": "n/a", "validate": None}[
            stage
        ]


PLACES = {"engineering": "e", "sprint": "S1", "task": "T1", "bug": "B1"}
GATES, OUTPUTS = Kind.GATES, Kind.OUTPUTS
HELD: list[tuple[str, str, Kind, Reason | None]] = [
    ("artifact is there", "artifact {sprint}/{task}/PLAN.md", GATES, None),
    ("artifact min= met", "artifact {sprint}/{task}/PLAN.md min=200", GATES, None),
    ("artifact min= missed", "artifact {sprint}/{task}/PLAN.md min=201", GATES, Reason.ARTIFACT_MISSING),
    ("artifact missing", "artifact {engineering}/none", GATES, Reason.ARTIFACT_MISSING),
    ("{bug}", "artifact {bug}/x", GATES, None),
    ("require ==", "require task.status == planned", GATES, None),
    ("require == fails", "require task.status == draft", GATES, Reason.ILLEGAL_STATUS),
    ("require !=", "require task.status != draft", GATES, None),
    ("require != fails", "require task.status != planned", GATES, Reason.ILLEGAL_STATUS),
    ("require in", "require task.status in [draft, planned]", GATES, None),
    ("require in fails", "require task.status in [draft, blocked]", GATES, Reason.ILLEGAL_STATUS),
    ("forbid ==", "forbid task.status == planned", GATES, Reason.ILLEGAL_STATUS),
    ("forbid == holds not", "forbid task.status == blocked", GATES, None),
    ("forbid !=", "forbid task.status != draft", GATES, Reason.ILLEGAL_STATUS),
    ("forbid in", "forbid task.status in [planned, blocked]", GATES, Reason.ILLEGAL_STATUS),
    ("after approved", "after review-plan = approved", GATES, None),
    ("after revision", "after review-code = revision", GATES, None),
    ("after n/a", "after triage = n/a", GATES, None),
    ("after another verdict", "after review-code = approved", GATES, Reason.PREDECESSOR_VERDICT_MISSING),
    ("after no verdict", "after validate = approved", GATES, Reason.PREDECESSOR_VERDICT_MISSING),
    ("comments", "# forbid task.status == planned", GATES, None),
    ("no directives", "", GATES, None),
    ("outputs: PLAN.md of 200 bytes", "artifact {sprint}/{task}/PLAN.md min=200", OUTPUTS, None),
    ("outputs: output-stub", "artifact {sprint}/{task}/STUB.md min=200", OUTPUTS, Reason.OUTPUT_STUB),
    ("outputs: output-missing", "artifact {sprint}/{task}/NONE.md", OUTPUTS, Reason.OUTPUT_MISSING),
    ("outputs: require-failed", "require task.status == draft", OUTPUTS, Reason.REQUIRE_FAILED),
]


@pytest.mark.parametrize(("row", "text", "kind", "reason"), HELD, ids=[row for row, _, _, _ in HELD])
def test_a_gate(row: str, text: str, kind: Kind, reason: Reason | None) -> None:
    found = evaluate(parse(text, "implement", kind), World(), PLACES)
    assert (found.ok, found.reason_code) == (reason is None, reason)


BROKEN: Mapping[str, Callable[[], object]] = {
    "a duplicate block for a phase": lambda: in_markdown("```gates phase=a\n```\n```gates phase=a\n```"),
    "an unknown directive": lambda: parse("demand x", "a"),
    "an unterminated fence": lambda: in_markdown("```gates phase=a\nartifact x"),
    "an unknown verdict": lambda: parse("after plan = maybe", "a"),
    "an unknown operator": lambda: parse("require task.status > 3", "a"),
    "an unknown place": lambda: parse("artifact {home}/x", "a"),
    "forbid in outputs": lambda: parse("forbid task.status == x", "a", OUTPUTS),
    "after in outputs": lambda: parse("after plan = approved", "a", OUTPUTS),
}


@pytest.mark.parametrize("row", BROKEN)
def test_a_definition_that_is_an_error(row: str) -> None:
    with pytest.raises(InvalidGate):
        BROKEN[row]()
