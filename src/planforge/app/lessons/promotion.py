"""
What a plan has taught, and what a person decides about it.

The history of a plan says what may be worth a lesson, and for each candidate what could become of it
(`rules/promotion`). The decision is a person's: to update a lesson, to add one, or that none is needed. It is
written into the file first and then on record; until there is one, the plan is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import TEXT, Action, Advice, see
from planforge.app import lessons
from planforge.app.items import plans, task_rows
from planforge.app.lessons import LONGEST, SENTENCE, SENTENCES, LessonChange, New, lesson_file
from planforge.documents import lessons as document
from planforge.errors import InvalidDocument, InvalidInput, NotFound
from planforge.kernel.events import Event, LessonDecided
from planforge.rules import promotion
from planforge.rules.promotion import Decision, Proposal

if TYPE_CHECKING:
    from planforge.app.project import Project


class DecisionRow(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody decided about the lessons of a plan."""

    decision: str
    lesson: str
    actor: str
    reason: str
    at: str


class Promotion(msgspec.Struct, frozen=True, kw_only=True):
    """What of a plan may be worth a lesson, what could become of it, and what was decided so far."""

    schema_version: int = 1
    plan: str
    planned: str
    """What the plan itself says is to become of it."""
    proposals: tuple[Proposal, ...]
    decisions: tuple[DecisionRow, ...]


def proposed(project: Project, name: str) -> Promotion:
    """What of a plan or a task may be worth a lesson, and what could become of each."""
    subject = _subject(project, name)
    known = document.parse(lesson_file.text(project))
    found = promotion.candidates(_history(project, subject))
    return Promotion(
        plan=subject,
        planned=_planned(project, subject),
        proposals=promotion.proposals(found, known, subject),
        decisions=tuple(_decisions(project, subject)),
    )


# Deciding


def accept(
    project: Project,
    name: str,
    number: int,
    new: New,
    *,
    actor: str,
    today: str,
    update: str = "",
    distinct: bool = False,
) -> LessonChange:
    """Do what is proposed for a candidate, or something else; `new` says what is different about it."""
    found = proposed(project, name)
    proposal = _numbered(found, number)
    candidate = proposal.candidate
    if proposal.decision is Decision.NONE and not (update or distinct):
        raise InvalidInput(
            f"candidate {number} is lesson `{proposal.lesson}` already, which comes from `{found.plan}`",
            Advice(
                "if there is nothing else, run {}",
                Action("lesson promote", found.plan, none=True, reason=TEXT),
            ),
        )
    source = f"{found.plan}/{candidate.step}" if candidate.step else found.plan
    wanted = msgspec.structs.replace(new, source=source)
    if update or (proposal.decision is Decision.UPDATE and not distinct):
        return lessons.update(project, update or proposal.lesson, wanted, actor=actor)
    # What the candidate says was held against the lessons; another text has to be yet.
    distinct = distinct or not new.text
    wanted = msgspec.structs.replace(wanted, text=new.text or _beginning(candidate.text))
    return lessons.add(project, wanted, actor=actor, today=today, distinct=distinct)


def none_needed(project: Project, name: str, *, actor: str, reason: str) -> LessonChange:
    """Record that a plan has taught nothing that is worth a lesson, and why."""
    why = lessons.clean(reason)
    if not why:
        raise InvalidInput("that no lesson is needed has a reason", "say it: `--reason TEXT`")
    subject = _subject(project, name)
    lessons.record(project, subject, "none", "", actor, why)
    return LessonChange(file=lesson_file.path(project), done="none needed", decided=(subject,))


def _numbered(found: Promotion, number: int) -> Proposal:
    for proposal in found.proposals:
        if proposal.number == number:
            return proposal
    raise NotFound(
        f"`{found.plan}` has no candidate {number}; it has {len(found.proposals)}",
        see("lesson promote", found.plan),
    )


def _beginning(text: str) -> str:
    """As many sentences as a lesson may have."""
    ends = [found.end() for found in SENTENCE.finditer(text)]
    return text[: ends[SENTENCES - 1] if len(ends) >= SENTENCES else LONGEST].rstrip()


# What is on record


def _subject(project: Project, name: str) -> str:
    """The plan or the task that a name means; a number alone is a plan's."""
    if name.strip().startswith("task-"):
        return task_rows.row(project, name).task
    return plans.row(project, name).plan


def _planned(project: Project, subject: str) -> str:
    if subject.startswith("task-"):
        return ""
    try:
        return document.planned(plans.text(project, plans.row(project, subject)))
    except (NotFound, InvalidDocument):
        return ""


def _history(project: Project, subject: str) -> Iterator[Event]:
    """What the runs of a plan or a task have recorded, in order."""
    runs = project.ledger.query("SELECT run FROM runs WHERE subject = ?", subject)
    streams = [subject, *(run for (run,) in runs)]
    recorded = [item for stream in streams for item in project.ledger.stream(stream)]
    yield from (item.event for item in sorted(recorded, key=lambda item: item.seq))


def _decisions(project: Project, subject: str) -> Iterator[DecisionRow]:
    for item in project.ledger.stream(subject):
        match item.event:
            case LessonDecided(decision=decision, lesson=lesson, actor=actor, reason=reason):
                yield DecisionRow(decision=decision, lesson=lesson, actor=actor, reason=reason, at=item.at)
