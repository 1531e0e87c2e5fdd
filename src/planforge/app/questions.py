"""
Questions that a run has put to people, and their answers.

A question is left in the ledger and waits there, for days and without a process. An answer
is bound to all that was asked, is given once, by a person, and goes to the run that asked
when somebody takes it up again.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice, see
from planforge.errors import InvalidInput, NeedsPerson, NotFound, StaleView

if TYPE_CHECKING:
    # Looking at what waits must be quick, and needs none of the events.
    from planforge.app.deciders import Current
    from planforge.app.project import Project
    from planforge.kernel.driver import Call
    from planforge.kernel.effects import AskHuman, Reply
    from planforge.kernel.events import QuestionAsked
    from planforge.kernel.ledger import Write

TABLE = "questions"
WORDS = {"superseded": "it was asked anew", "closed": "its run has ended"}
BY_RESUMING = "the run was taken up again"


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that may be given, with what it costs and leads to as far as that is known."""

    name: str
    cost: str = ""
    consequence: str = ""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question as the ledger has it."""

    number: int
    run: str
    effect: str
    subject: str
    text: str
    choices: str
    content: str
    hash: str
    status: str
    """waiting, answered, taken, superseded or closed"""
    answer: str
    actor: str
    reason: str
    asked_at: str
    answered_at: str

    @property
    def name(self) -> str:
        """What people call it."""
        return f"question-{self.number:03}"


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
    from planforge.app import deciders
    from planforge.kernel.effects import Reply

    found = _asked(project, effect, call, subject)
    going_on = found.status == "waiting" and call.resumed and effect.resumed
    if going_on and not deciders.is_agent(project):
        # Where going on is an answer, who goes on has given it.
        found = _recorded(project, found, effect.resumed, project.person, BY_RESUMING)
    if found.status in ("answered", "taken"):
        return Reply(answer=found.answer, actor=found.actor, reason=found.reason)
    raise NeedsPerson(
        f"`{found.name}` waits for an answer: {effect.question}",
        Advice(
            "see {}, answer it, then run {}", Action("question show", found.name), Action("resume", call.run)
        ),
    )


def _asked(project: Project, effect: AskHuman, call: Call, subject: str) -> Question:
    """The question of this effect, put into the ledger if it is not there; asking again changes nothing."""
    from planforge.kernel.events import QuestionAsked
    from planforge.kernel.ledger import Write
    from planforge.kernel.objects import address
    from planforge.kernel.payloads import encode
    from planforge.kernel.redaction import Redactor

    redact = Redactor.of_environment()

    def event(number: int) -> QuestionAsked:
        asked = redact.struct(
            QuestionAsked(
                number=number,
                run=call.run,
                effect=call.key,
                subject=effect.subject or subject,
                text=effect.question,
                choices=effect.answers,
                content=effect.content,
                hash="",
            )
        )
        what = msgspec.structs.replace(asked, number=0)
        return msgspec.structs.replace(asked, hash=address(encode(what)))

    wanted = event(0).hash

    def decide() -> list[Write]:
        found = _of_effect(project, call)
        if found is not None and (found.hash == wanted or found.status != "waiting"):
            return []
        (last,) = next(project.ledger.query("SELECT coalesce(max(number), 0) FROM questions"))
        asked = event(last + 1)
        return [Write(_stream(project, asked), None, [asked])]

    project.ledger.transact(decide)
    asked = _of_effect(project, call)
    assert asked is not None
    return asked


def _of_effect(project: Project, call: Call) -> Question | None:
    where = f"{TABLE} WHERE run = ? AND effect = ? ORDER BY number DESC LIMIT 1"
    return next(iter(project.ledger.select(Question, where, call.run, call.key)), None)


def answered(project: Project, run: str) -> str:
    """The question that somebody has answered since the run came to wait for it; empty if there is none."""
    query = "SELECT number FROM questions WHERE run = ? AND status = 'answered' ORDER BY number LIMIT 1"
    return next((f"question-{number:03d}" for (number,) in project.ledger.query(query, run)), "")


# For people


def waiting(project: Project) -> QuestionList:
    """The questions that wait for an answer, oldest first."""
    found = project.ledger.select(Question, f"{TABLE} WHERE status = 'waiting' ORDER BY number")
    return QuestionList(questions=tuple(map(row, found)))


def every(project: Project) -> QuestionList:
    """All questions there have been."""
    found = project.ledger.select(Question, f"{TABLE} ORDER BY number")
    return QuestionList(questions=tuple(map(row, found)))


def show(project: Project, name: str) -> QuestionRow:
    """One question."""
    return row(find(project, name))


def find(project: Project, name: str) -> Question:
    """The question that `name` means: `question-007`, `question-7` or `7`."""
    number = re.fullmatch(r"(?:question-)?0*(\d{1,9})", name.strip())
    if number:
        for found in project.ledger.select(Question, f"{TABLE} WHERE number = ?", int(number[1])):
            return found
    raise NotFound(f"there is no question `{name}`", see("question list"))


def row(question: Question) -> QuestionRow:
    """A question for people and programs."""
    return QuestionRow(
        name=question.name,
        run=question.run,
        subject=question.subject,
        text=question.text,
        options=options(question),
        content=question.content,
        hash=question.hash,
        status=question.status,
        asked_at=question.asked_at,
        answer=question.answer,
        actor=question.actor,
        reason=question.reason,
        answered_at=question.answered_at,
    )


def options(question: Question) -> tuple[Option, ...]:
    """The answers there are to it."""
    return msgspec.json.decode(question.choices, type=tuple[Option, ...])


def answer(
    project: Project, name: str, option: str, *, actor: str, reason: str = "", seen: str | None = None
) -> Answered:
    """Give a person's answer, once, to exactly what is asked; `seen` is the hash of what they looked at."""
    from planforge.app import deciders

    question = find(project, name)
    deciders.require_other_author(project, question.subject, actor)
    chosen = _chosen(question, option)
    _record(project, question, chosen, actor, reason.strip(), seen)
    return Answered(question=show(project, name), next=Action("resume", question.run))


def _chosen(question: Question, option: str) -> str:
    """The option that is meant: by its name, or by its number in the list."""
    names = [each.name for each in options(question)]
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


def _recorded(project: Project, question: Question, chosen: str, actor: str, reason: str) -> Question:
    """The question with this answer, or with the one that somebody else was quicker to give."""
    with suppress(StaleView):
        _record(project, question, chosen, actor, reason, None)
    return find(project, question.name)


def _record(
    project: Project, question: Question, chosen: str, actor: str, reason: str, seen: str | None
) -> None:
    from planforge.app import deciders
    from planforge.kernel.events import QuestionAnswered
    from planforge.kernel.ledger import Write
    from planforge.kernel.redaction import Redactor

    answered = QuestionAnswered(
        number=question.number,
        run=question.run,
        hash=question.hash,
        answer=chosen,
        actor=actor,
        reason=Redactor.of_environment().text(reason),
    )

    def decide() -> list[Write]:
        found = find(project, question.name)
        deciders.require_current(seen, _current(project, found))
        if found.status != "waiting":
            raise _too_late(project, found)
        return [Write(_stream(project, found), None, [answered])]

    project.ledger.transact(decide)


def _stream(project: Project, question: Question | QuestionAsked) -> str:
    """The stream of the plan that it is about, or one of its own."""
    plans = project.ledger.query("SELECT plan FROM plans WHERE plan = ?", question.subject)
    return next((plan for (plan,) in plans), f"question-{question.number:03}")


def _too_late(project: Project, question: Question) -> StaleView:
    if question.actor:
        when = question.answered_at[:16].replace("T", " ")
        why = f"{question.actor} answered `{question.answer}` on {when} UTC"
    else:
        why = WORDS[question.status]
    current = _current(project, question)
    hint = Advice("see {}", current.next if current.what != question.name else Action("question list"))
    return StaleView(f"`{question.name}` is not open to an answer: {why}", hint, current=current)


def _current(project: Project, question: Question) -> Current:
    """What is asked now: this, or what has taken its place."""
    from planforge.app.deciders import Current

    where = f"{TABLE} WHERE run = ? AND effect = ? AND number > ? ORDER BY number"
    later = project.ledger.select(Question, where, question.run, question.effect, question.number)
    now = later[-1] if later else question
    return Current(
        what=now.name,
        status=now.status,
        hash=now.hash,
        actor=now.actor,
        answer=now.answer,
        reason=now.reason,
        at=now.answered_at or now.asked_at,
        next=Action("question show", now.name),
    )
