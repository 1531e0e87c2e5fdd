"""
Questions that a run has put to people, and their answers.

A question is left in the ledger and waits there, for days and without a process. An answer
is bound to all that was asked, is given once, by a person, and goes to the run that asked
when somebody takes it up again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice
from planforge.app.decisions import deciders, record
from planforge.errors import InvalidInput, NeedsPerson, StaleView
from planforge.kernel.work import decisions

if TYPE_CHECKING:
    # Looking at what waits must be quick, and needs none of the events.
    from planforge.app.project import Project
    from planforge.kernel.driver import Call
    from planforge.kernel.effects import AskHuman, Reply
    from planforge.kernel.events import DecisionKind
    from planforge.kernel.ledger import Write
    from planforge.kernel.work.decisions import Decision

QUESTION: DecisionKind = "question"
BY_RESUMING = "the run was taken up again"


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that may be given, with what it costs and leads to as far as that is known."""

    name: str
    cost: str = ""
    consequence: str = ""


class QuestionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A question for people and programs."""

    name: str
    run: str
    subject: str
    text: str
    options: tuple[Option, ...]
    content: str
    """The hash of what it is about, if it is about something exact."""
    hash: str
    """The hash of all that is asked, for `--seen`."""
    status: str
    asked_at: str
    answer: str = ""
    actor: str = ""
    reason: str = ""
    answered_at: str = ""


class QuestionList(msgspec.Struct, frozen=True, kw_only=True):
    """Every question that waits for an answer, oldest first; or all."""

    schema_version: int = 1
    questions: tuple[QuestionRow, ...]


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has answered, and what to do next."""

    schema_version: int = 1
    question: QuestionRow
    next: Action
    """Resumes the run."""


# For runs


def reply(project: Project, effect: AskHuman, call: Call, subject: str) -> Reply:
    """What a person answered this effect with; the run waits if nobody has."""
    from planforge.kernel.effects import Reply

    found = _asked(project, effect, call, subject)
    going_on = found.status == "waiting" and call.resumed and effect.resumed
    if going_on and not deciders.is_agent(project):
        # Where going on is an answer, who goes on has given it; or somebody else was quicker.
        with suppress(StaleView):
            record.make(project, found, effect.resumed, actor=project.person, reason=BY_RESUMING)
        found = record.find(project, QUESTION, found.label)
    if found.status in ("decided", "used"):
        return Reply(answer=found.choice, actor=found.actor, reason=found.reason)
    raise NeedsPerson(
        f"`{found.label}` waits for an answer: {effect.question}",
        Advice(
            "see {}, answer it, then run {}", Action("question show", found.label), Action("resume", call.run)
        ),
    )


def _asked(project: Project, effect: AskHuman, call: Call, subject: str) -> Decision:
    """The question of this effect, put into the ledger if it is not there; asking again changes nothing."""
    from planforge.kernel.events import DecisionAsked
    from planforge.kernel.ledger import Write
    from planforge.kernel.redaction import Redactor

    asked = DecisionAsked(
        kind=QUESTION,
        number=0,
        subject=effect.subject or subject,
        name=call.run + call.key,
        run=call.run,
        text=effect.question,
        choices=effect.answers,
        content=effect.content,
    )
    wanted = decisions.hashed(Redactor.of_environment().struct(asked))

    def newest() -> Decision | None:
        return decisions.newest(project.ledger, QUESTION, wanted.subject, wanted.name)

    def decide() -> list[Write]:
        found = newest()
        if found is not None and (found.hash == wanted.hash or found.status != "waiting"):
            return []
        event = decisions.asked(project.ledger, wanted)
        return [Write(record.stream(project, event), None, [event])]

    project.ledger.transact(decide)
    found = newest()
    assert found is not None
    return found


# For people


def waiting(project: Project) -> QuestionList:
    """The questions that wait for an answer, oldest first."""
    return QuestionList(questions=tuple(map(row, decisions.waiting(project.ledger, QUESTION))))


def every(project: Project) -> QuestionList:
    """All questions there have been."""
    return QuestionList(questions=tuple(map(row, decisions.select(project.ledger, QUESTION))))


def show(project: Project, name: str) -> QuestionRow:
    """One question."""
    return row(record.find(project, QUESTION, name))


def row(question: Decision) -> QuestionRow:
    """A question for people and programs."""
    options = msgspec.json.decode(question.choices, type=tuple[Option, ...])
    return record.shown(QuestionRow, question, options=options)


def answer(
    project: Project, name: str, option: str, *, actor: str, reason: str = "", seen: str | None = None
) -> Answered:
    """Give a person's answer, once, to exactly what is asked; `seen` is the hash of what they looked at."""
    question = record.find(project, QUESTION, name)
    deciders.require_other_author(project, question.subject, actor)
    chosen = _chosen(row(question), option)
    answered = record.make(project, question, chosen, actor=actor, reason=reason, seen=seen)
    return Answered(question=row(answered), next=Action("resume", question.run))


def _chosen(question: QuestionRow, option: str) -> str:
    """The option that is meant: by its name, or by its number in the list."""
    names = [each.name for each in question.options]
    given = option.strip()
    found = [name for name in names if name.casefold() == given.casefold()]
    if not found and given.isdecimal() and len(given) < 10 and 0 < int(given) <= len(names):
        found = [names[int(given) - 1]]
    if not found:
        raise InvalidInput(
            f"`{option}` is no answer to `{question.name}`",
            "choose one of " + ", ".join(f"`{name}`" for name in names),
        )
    return found[0]
