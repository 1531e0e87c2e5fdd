"""
What a reviewer says: one finding at a time, on one scale of severity.

Agents and documents have many words for how bad something is. They are all
aliases on the way in; inside there are four severities, and only `blocking`
sends work back. What shows that a finding is so is its evidence; by its
fingerprint it is known again in the next round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from planforge.rules import fingerprints


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    BLOCKING = "blocking"
    MEDIUM = "medium"
    MINOR = "minor"
    SUGGESTION = "suggestion"

    @property
    def rank(self) -> int:
        """A number that is higher the worse the severity is."""
        return RANKS[self]

    @classmethod
    def parse(cls, text: str) -> Severity | None:
        """The severity that a word stands for, or nothing for a word we do not know."""
        return WORDS.get(text.strip().lower())


RANKS = {Severity.BLOCKING: 4, Severity.MEDIUM: 3, Severity.MINOR: 2, Severity.SUGGESTION: 1}

ALIASES = {
    "critical": Severity.BLOCKING,
    "high": Severity.BLOCKING,
    "error": Severity.BLOCKING,
    "required": Severity.BLOCKING,
    "warning": Severity.MEDIUM,
    "major": Severity.MEDIUM,
    "low": Severity.MINOR,
    "info": Severity.SUGGESTION,
    "suggested": Severity.SUGGESTION,
}

MEANINGS = {
    Severity.BLOCKING: (
        "it must not ship: a wrong result, lost data, a security hole, a design fault, a contradiction, "
        "something critical that is missing, a change that nobody could write or test from the text, a "
        "claimed restriction that nothing enforces"
    ),
    Severity.MEDIUM: (
        "it works and will hurt: a missing edge case or error path, a test that would not notice, a document "
        "that becomes wrong"
    ),
    Severity.MINOR: "a small thing: a name, the style, a sentence that is not clear",
    Severity.SUGGESTION: "an idea for later; nothing is wrong with the work as it is",
}
"""What each severity means; reviewers are told so."""

WORDS = {**{severity.value: severity for severity in Severity}, **ALIASES}


class Evidence(StrEnum):
    """What supports a finding, as the reviewer states it; the weakest first."""

    CLAIMED = "claimed"
    """Only the reviewer's word."""
    LOCATED = "located"
    """A file is named, so that one can look."""
    QUOTED = "quoted"
    """The text or the code that shows it is given."""
    EXECUTED = "executed"
    """A program was run: there is its output, or it is a program that found it."""

    @classmethod
    def parse(cls, text: str) -> Evidence | None:
        """The class that a word stands for, or nothing for a word we do not know."""
        return EVIDENCE_WORDS.get(text.strip().lower())


EVIDENCE_WORDS = {
    **{evidence.value: evidence for evidence in Evidence},
    **dict.fromkeys(("none", "asserted", "assertion", "claim", "opinion"), Evidence.CLAIMED),
    **dict.fromkeys(("location", "line", "file"), Evidence.LOCATED),
    **dict.fromkeys(("quote", "quotation", "cited", "citation", "code", "text"), Evidence.QUOTED),
    **dict.fromkeys(("ran", "run", "reproduced", "output", "test", "tested"), Evidence.EXECUTED),
}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that somebody found wrong, or could be better."""

    severity: Severity
    title: str
    detail: str = ""
    location: str = ""
    recommendation: str = ""
    """What to do about it, if the reviewer says so."""
    evidence: Evidence = Evidence.CLAIMED

    @property
    def fingerprint(self) -> str:
        """Identifies the finding in the next round; see `fingerprints`."""
        return fingerprints.fingerprint(self.title, self.location, self.detail)


LOOKED_AT = 20_000
"""So much of what is said about one finding is looked at for evidence."""
FILE = re.compile(r"[^\s:]*(?:/[^\s:]+|[^\s:/]\.[A-Za-z]\w{0,9})(?::\d+(?:[:-]\d+)*|\#L\d+\S*)?")
QUOTATION = re.compile(
    r"^[ \t]*(?:>|```|~~~)|\"[^\"\s]+(?:[ \n][^\"\s]+){2,}\"|“[^“”]{3,}”|`[^`\s]+(?:[ \n][^`\s]+){2,}`",
    re.MULTILINE,
)
OUTPUT = re.compile(
    r"^[ \t]*(?:\$|>>>) \S|\bexit(?:ed|s)?(?: with)?(?: code| status)? \d|\bTraceback \(most|^E {3}|^FAILED ",
    re.MULTILINE,
)


def evidence_in(said: str, detail: str = "", location: str = "") -> Evidence:
    """What shows a finding: the class that is named, or what is to be seen in the evidence given for it."""
    named = Evidence.parse(said)
    if named is not None:
        return named
    if any(OUTPUT.search(text[:LOOKED_AT]) for text in (said, detail)):
        return Evidence.EXECUTED
    if said.strip() or QUOTATION.search(detail[:LOOKED_AT]):
        return Evidence.QUOTED
    return Evidence.LOCATED if names_a_file(location) else Evidence.CLAIMED


def names_a_file(location: str) -> bool:
    """Whether a location is that of a file, with or without a line."""
    return len(location) < LOOKED_AT and FILE.fullmatch(location.strip(" `")) is not None


def scale(words: Mapping[str, Severity]) -> str:
    """What each word for a severity means, a line for each."""
    lines = (f"- `{word}`: {MEANINGS[severity]}." for word, severity in words.items())
    return "\n".join(["What each severity means:", *lines])


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The worst severity among findings, or nothing when there are none."""
    return max((finding.severity for finding in findings), key=lambda severity: severity.rank, default=None)
