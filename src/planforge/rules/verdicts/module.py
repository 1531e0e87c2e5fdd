"""
The verdict of a module's review: APPROVE or REJECT, over a table of required and suggested findings.

An approval holds only if nothing in the table is required; an approval over a required finding says two
things at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planforge.rules.findings import Finding, Severity, evidence_in
from planforge.rules.verdicts.answers import dissent, spoken, too_large
from planforge.rules.verdicts.judgement import Judgement, Verdict, judged, stated, unknown

VOCABULARY = {"approve": Verdict.APPROVED, "reject": Verdict.REVISION}
LINE = re.compile(
    r"^[ \t]*(?:(?:[-*+#]+|\d{1,9}[.)])[ \t]+)*\\?"
    r"(?ai:\*\*verdict:\*\*|\*\*verdict\*\*:|verdict:)(?P<said>.*)$",
    re.MULTILINE,
)
SEVERITIES = {"required": Severity.BLOCKING, "suggested": Severity.SUGGESTION}
CELL = re.compile(r"(?<!\\)\|")


def parse_module(text: str) -> Judgement:
    """Decide what a reviewer of a module says; never raises, and never guesses."""
    if fault := too_large(text):
        return unknown(fault)
    answer = spoken(text)
    rows = list(_rows(answer.prose))
    findings = tuple(row for row in rows if isinstance(row, Finding))
    doubts = [row for row in rows if isinstance(row, str)]
    doubts += filter(None, (answer.doubt, dissent(answer.prose)))
    if any(finding.severity is Severity.BLOCKING for finding in findings):
        doubts.insert(0, "it approves, yet lists something required")
    said = [" ".join(each["said"].replace("*", " ").split()).lower() for each in LINE.finditer(answer.prose)]
    verdict, fault = stated(said, VOCABULARY, "Verdict:", "is neither APPROVE nor REJECT")
    if fault:
        return unknown(fault, findings)
    if verdict is Verdict.APPROVED and doubts:
        return unknown(doubts[0], findings)
    return judged(verdict, f"it says {said[0].upper()}", findings)


def _rows(prose: str) -> Iterator[Finding | str]:
    """The findings of every table with a severity column; a doubt for a row whose severity nobody knows."""
    header: list[str] = []
    for line in prose.split("\n"):
        cells = [cell.strip(" *`_") for cell in CELL.split(line.strip().strip("|"))]
        if "|" not in line:
            header = []
        elif not header:
            header = [cell.lower() for cell in cells]
        elif "severity" in header and not all(set(cell) <= set("-: ") for cell in cells):
            yield _finding(dict(zip(header, cells, strict=False)))


def _finding(row: dict[str, str]) -> Finding | str:
    said = row.get("severity", "")
    severity = SEVERITIES.get(said.lower())
    if severity is None:
        return f"`{said[:40]}` is neither required nor suggested"
    return Finding(
        severity=severity,
        title=row.get("issue") or "untitled finding",
        location=row.get("file", ""),
        recommendation=row.get("suggested fix", ""),
        evidence=evidence_in(row.get("evidence", ""), row.get("issue", ""), row.get("file", "")),
    )
