"""`planforge question`: list and answer the questions of runs."""

from __future__ import annotations

import click

from planforge.app.decisions import questions
from planforge.app.decisions.questions import Answered, QuestionList, QuestionRow
from planforge.interfaces.cli.caller import deciding_at_gate, here
from planforge.interfaces.cli.layout import table, visible
from planforge.interfaces.cli.options import actor_option
from planforge.interfaces.cli.output import JsonGroup, show
from planforge.interfaces.cli.typed import line

SEEN = "The hash of the question you read, as `question show` prints it; refused if it has changed."


@click.group(cls=JsonGroup)
def question() -> None:
    """Answer the questions of runs

    A run that cannot decide asks a question and waits, for days if necessary. Each option shows its cost and
    consequence, if known. A question is answered once, by a person.
    """


@question.command(name="list")
@click.option("--all", "everything", is_flag=True, help="Also questions that are answered or void.")
def list_(everything: bool) -> None:
    """List the questions that wait for an answer, oldest first

    \b
    Examples:
      planforge question list
      planforge question list --json | jq -r '.questions[].name'
    """
    project = here()
    found = questions.every(project) if everything else questions.waiting(project)
    show(found, lambda found: _listed(found, everything=everything))


@question.command(name="show")
@click.argument("name", metavar="QUESTION")
def show_(name: str) -> None:
    """Show a question with its options

    QUESTION is its name or number: `question-007`, `7`.

    \b
    Examples:
      planforge question show 1
      planforge question show 1 --json | jq -r .hash
    """
    show(questions.show(here(), name), _view)


@question.command()
@click.argument("name", metavar="QUESTION")
@click.argument("option", metavar="OPTION")
@click.option("--reason", default="", metavar="TEXT", help="Why or how; the agent is told.")
@actor_option("Who answers, if there is no terminal")
@click.option("--seen", metavar="HASH", help=SEEN)
def answer(name: str, option: str, reason: str, actor: str | None, seen: str | None) -> None:
    """Answer a question with one of its options

    OPTION is its name or its number in the list. Exits with 2 if there is no such option, and with 5 if the
    question is answered or void, if it has changed since you read it, or if you may not answer it.

    \b
    Examples:
      planforge question answer 1 "ask again"
      planforge question answer 1 2 --as "Ada Lovelace" --reason "the service was down"
      planforge question answer 1 1 --seen 0c5d9a1be7f2
    """
    project, who = deciding_at_gate(actor, where="what is asked")
    show(questions.answer(project, name, option, actor=who, reason=reason, seen=seen), _answered)


def _listed(found: QuestionList, *, everything: bool) -> str:
    if not found.questions:
        return "no questions yet" if everything else "no question is waiting"
    rows = [
        (
            each.name,
            *((each.status,) if everything else ()),
            each.run,
            each.subject,
            each.asked_at[:10],
            visible(" ".join(each.text.split())),
        )
        for each in found.questions
    ]
    return table(rows) + (
        "" if everything else f"\n\nnext: planforge question show {found.questions[0].name}"
    )


def _view(question: QuestionRow) -> str:
    about = " ".join(part for part in (question.run, question.subject) if part)
    head = [f"{question.name}  {question.status}  {about}", f"hash   {question.hash}"]
    if question.content:
        head.append(f"about  {question.content}")
    head.append(f"asked  {_clock(question.asked_at)}")
    if question.actor:
        why = f": {visible(question.reason)}" if question.reason else ""
        by = f"{visible(question.actor)} on {_clock(question.answered_at)}"
        head.append(f"answer {visible(question.answer)}, by {by}{why}")
    text = "\n".join(visible(line) for line in question.text.splitlines())
    parts = ["\n".join(head), text, "\n".join(_options(question))]
    if question.status == "waiting":
        parts.append(f"next: planforge question answer {question.name} OPTION --seen {question.hash[:12]}")
    return "\n\n".join(parts)


def _options(question: QuestionRow) -> list[str]:
    lines = []
    for number, option in enumerate(question.options, start=1):
        lines.append(f"  {number}  {visible(option.name)}")
        if option.cost:
            lines.append(f"     costs: {visible(option.cost)}")
        if option.consequence:
            lines.append(f"     then:  {visible(option.consequence)}")
    return lines


def _answered(answered: Answered) -> str:
    question = answered.question
    said = f"answered {question.name} with `{visible(question.answer)}`, by {visible(question.actor)}"
    return f"{said}\nnext: {line(answered.next)}"


def _clock(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"
