"""
Parsers of reviews, each with one of three verdicts: approved, revision, or unknown.

Each kind of answer has its own closed vocabulary: `audit.py` of plans, `review.py` of stages, `module.py` of
modules, `polish.py` of deliverables, `sarif.py` of tools. In all of them a quotation, a piece of code or a
hidden comment is not a verdict, and two different verdicts are `unknown`.
"""

from __future__ import annotations

from planforge.rules.findings import Severity, scale
from planforge.rules.verdicts import module, polish
from planforge.rules.verdicts.audit import NO_VERDICT, parse_audit
from planforge.rules.verdicts.judgement import Judgement, Verdict
from planforge.rules.verdicts.module import parse_module
from planforge.rules.verdicts.polish import parse_polish
from planforge.rules.verdicts.review import parse_review
from planforge.rules.verdicts.sarif import parse_sarif

__all__ = [
    "KINDS",
    "NO_VERDICT",
    "SCALES",
    "Judgement",
    "Verdict",
    "parse_audit",
    "parse_module",
    "parse_polish",
    "parse_review",
    "parse_sarif",
]

KINDS = {
    "audit": parse_audit,
    "review": parse_review,
    "polish": parse_polish,
    "module": parse_module,
    "sarif": parse_sarif,
}

SCALES = {
    "audit": scale({severity.value: severity for severity in Severity}),
    "module": scale(module.SEVERITIES),
    "polish": scale(polish.SEVERITIES),
}
"""What the severities mean that a kind of review is written in, for those that have any."""
