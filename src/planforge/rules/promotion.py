"""
What of a plan's history may be worth a lesson, and what is to become of it.

Candidates are what stood in the way and was got over: findings that blocked and were settled, what an audit
of the work found, refusals that came twice, friction. For each there is a decision: a lesson that says so
already is updated, one that nobody has is added, and one that came from this plan before needs nothing. The
decision is proposed here and made by a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from planforge.kernel.events import (
    AttemptRejected,
    AuditRecorded,
    Event,
    FrictionNoted,
    RecordedFinding,
    StageEnded,
)
from planforge.rules import fingerprints
from planforge.rules.findings import Severity
from planforge.rules.lessons import Lesson, Status, alike

OFTEN = 2
"""From so many times on, a refusal is worth a lesson."""

LONGEST = 500
"""So many characters of a candidate are kept."""

STRUCTURE = "structure"
"""Who audits the form of a plan: Planforge itself, every time, so that nobody has to learn it."""

MEANT = (Status.ACTIVE, Status.STALE)
"""Lessons that may be updated; what was superseded has given way to another."""

NUMBERS = re.compile(r"\b[0-9a-f]{7,64}\b|\d+")


class Decision(StrEnum):
    """What becomes of what was learned."""

    UPDATE = "update"
    ADD = "add"
    NONE = "none"


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Something that may be worth a lesson."""

    kind: str
    """finding, audit, refusal or friction"""
    text: str
    step: str = ""
    """Where in the plan it was, if that is known."""
    location: str = ""
    times: int = 1


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What could become of a candidate."""

    number: int
    candidate: Candidate
    decision: Decision
    lesson: str = ""
    """The id of the lesson that says so already, or the opposite."""
    likeness: int = 0
    """How much that is like it, in hundredths."""
    reason: str


# What may be worth one


def candidates(history: Iterable[Event]) -> tuple[Candidate, ...]:
    """What there is in the history of a plan or a task, oldest first; what was said twice is there once."""
    events = list(history)
    found: dict[str, Candidate] = {}
    for candidate in (*_settled(events), *_audited(events), *_recurring(events), *_friction(events)):
        key = fingerprints.fingerprint(candidate.text, candidate.location)
        found.setdefault(key, candidate)
    return tuple(found.values())


def _settled(events: Sequence[Event]) -> Iterator[Candidate]:
    """Findings of a plan or of a stage that blocked and were settled."""
    plan = [event for event in events if isinstance(event, AuditRecorded) and not event.step]
    yield from _gone([event.findings for event in plan if event.by != STRUCTURE], "")
    stages = [event for event in events if isinstance(event, StageEnded) and event.verdict]
    for stage in dict.fromkeys(event.stage for event in stages):
        yield from _gone([event.findings for event in stages if event.stage == stage], stage)


def _gone(rounds: Sequence[tuple[RecordedFinding, ...]], step: str) -> Iterator[Candidate]:
    left = {_known_by(finding) for finding in rounds[-1] if _blocks(finding)} if rounds else set()
    for found in rounds[:-1]:
        for finding in filter(_blocks, found):
            if _known_by(finding) not in left:
                yield _of(finding, "finding", step)


def _audited(events: Sequence[Event]) -> Iterator[Candidate]:
    """What an audit of the work itself found."""
    for event in events:
        if isinstance(event, AuditRecorded) and event.step:
            for finding in event.findings:
                if Severity.parse(finding.severity) in (Severity.BLOCKING, Severity.MEDIUM):
                    yield _of(finding, "audit", event.step)


def _recurring(events: Sequence[Event]) -> Iterator[Candidate]:
    """Reasons for which attempts were rejected more than once; the numbers in them may differ."""
    reasons: dict[str, list[AttemptRejected]] = {}
    for event in events:
        if isinstance(event, AttemptRejected):
            reasons.setdefault(NUMBERS.sub("#", fingerprints.wording(event.reason)), []).append(event)
    for same in reasons.values():
        if len(same) >= OFTEN:
            steps = {event.step for event in same}
            step = same[0].step if len(steps) == 1 else ""
            yield Candidate(kind="refusal", text=_short(same[-1].reason), step=step, times=len(same))


def _friction(events: Sequence[Event]) -> Iterator[Candidate]:
    noted = [event for event in events if isinstance(event, FrictionNoted)]
    for event in noted:
        about = f"{event.issue} {event.skill}".strip()
        same = sum((each.issue, each.skill) == (event.issue, event.skill) for each in noted)
        text = _short(f"{about}: {event.detail}" if event.detail else about)
        yield Candidate(kind="friction", text=text, step=event.stage, times=same)


def _blocks(finding: RecordedFinding) -> bool:
    return Severity.parse(finding.severity) is Severity.BLOCKING


def _known_by(finding: RecordedFinding) -> str:
    return fingerprints.fingerprint(finding.title, finding.location)


def _of(finding: RecordedFinding, kind: str, step: str) -> Candidate:
    return Candidate(kind=kind, text=_short(finding.title), step=step, location=finding.location)


def _short(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= LONGEST else said[:LONGEST].rpartition(" ")[0] + " …"


# What becomes of it


def proposals(found: Iterable[Candidate], lessons: Sequence[Lesson], subject: str) -> tuple[Proposal, ...]:
    """What could become of each candidate of a plan or task, numbered from 1."""
    return tuple(_proposal(number, each, lessons, subject) for number, each in enumerate(found, 1))


def _proposal(number: int, candidate: Candidate, lessons: Sequence[Lesson], subject: str) -> Proposal:
    near = next(iter(alike(candidate.text, [each for each in lessons if each.status in MEANT])), None)
    if near is None:
        reason = "no lesson says so"
        return Proposal(number=number, candidate=candidate, decision=Decision.ADD, reason=reason)
    if near.contrary:
        decision, reason = Decision.ADD, "a lesson says nearly the opposite: supersede it if it is wrong"
    elif comes_from(near.lesson, subject) and near.lesson.is_active:
        decision, reason = Decision.NONE, f"the lesson comes from {subject} already"
    else:
        decision, reason = Decision.UPDATE, "the lesson says nearly the same"
        reason += "" if near.lesson.is_active else " and is stale; it would be active again"
    return Proposal(
        number=number,
        candidate=candidate,
        decision=decision,
        lesson=near.lesson.id,
        likeness=near.percent,
        reason=reason,
    )


def comes_from(lesson: Lesson, subject: str) -> bool:
    """Whether a lesson names a plan or a task as its source."""
    return re.search(rf"(?<![\w-]){re.escape(subject)}(?!\w)", lesson.source) is not None
