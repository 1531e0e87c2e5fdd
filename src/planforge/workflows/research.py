"""
Choosing the files to plan from, before the plan is written: the research turn, then the artifact turn.

Planforge looks for the words of the request and offers a bounded list of files. The agent chooses from that
list: an answer that names another file is asked for once more, then it is no answer. What it chose is read
for it, and the plan is written from that. A plan that changes a file which is there and was not read goes
back once, with that file.
"""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

import msgspec

from planforge.documents import changes as finding
from planforge.documents import markdown
from planforge.documents import plan as plans
from planforge.errors import AgentMalformed, InvalidDocument, PerformerFailed
from planforge.kernel.effects import AgentAnswer, Gathered, Note, ReadFiles, Survey
from planforge.kernel.events import FilesChosen
from planforge.workflows import asking, prompts
from planforge.workflows.asking import Conversation, Fault, Question

ROLES = ("drafter", "reviser")
"""Those who write plans."""

NONE = "NONE"
"""What is answered where no file of the list matters."""

TURNS = 2
"""How often a plan is asked for that keeps to files which its writer has seen."""

ITEM = re.compile(r"^(?:[-*+]|\d{1,3}[.)])[ \t]+")


def wanted(setting: str, role: str, gathered: Gathered) -> bool:
    """Whether files are chosen before the role writes its plan."""
    return role in ROLES and (setting == "always" or (setting == "auto" and not gathered.tools))


class Written(NamedTuple):
    """A plan, and the files that its writer has seen."""

    answer: AgentAnswer
    shown: tuple[str, ...]


async def ask(
    question: Question, gathered: Gathered, talk: Conversation, fault: Fault, before: tuple[str, ...] = ()
) -> Written:
    """Have files chosen besides those seen `before`, then the plan written from them and no others."""
    shown = tuple(dict.fromkeys((*before, *await _chosen(question, gathered, talk))))
    for _ in range(TURNS):
        answer = await asking.ask(msgspec.structs.replace(question, shown=shown), gathered, talk, fault)
        # Whoever has tools can have read more than it was shown.
        unread = () if gathered.tools else await _unread(question.base, answer, shown)
        if not unread:
            return Written(answer, shown)
        shown = (*shown, *unread)
    problem = f"agent `{answer.agent}`: its plan changes {_list(unread)}, which it has not read"
    raise PerformerFailed(AgentMalformed.__name__, problem)


async def _chosen(question: Question, gathered: Gathered, talk: Conversation) -> tuple[str, ...]:
    """The files that the agent wants to see, of those that it is offered."""
    about = "\n\n".join(material.text for material in question.prompt.material)
    found = await Survey(base=question.base, text=about, files=question.files)
    if not found.paths:
        return ()
    prompt = prompts.research(question.prompt, found.paths)
    asked = msgspec.structs.replace(question, prompt=prompt, shown=())
    answer = await asking.ask(asked, gathered, talk, partial(outside, offered=found.paths))
    chosen = _paths(answer.text)
    await Note(
        FilesChosen(
            plan=question.plan,
            role=question.role,
            terms=found.terms,
            offered=found.paths,
            chosen=chosen,
            agent=answer.agent,
        )
    )
    return chosen


def outside(answer: AgentAnswer, offered: tuple[str, ...]) -> str:
    """Why an answer does not choose from the files that were offered; empty if it does."""
    chosen = _paths(answer.text)
    if not chosen and answer.text.strip() != NONE:
        return f"it names no file, and does not say {NONE}"
    beyond = tuple(path for path in chosen if path not in offered)
    return f"{_list(beyond)} is not among the files that it may choose from" if beyond else ""


def _paths(text: str) -> tuple[str, ...]:
    """What an answer names, a path in each line."""
    lines = (ITEM.sub("", line.strip()).strip("` ") for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and line != NONE))


async def _unread(base: str, answer: AgentAnswer, shown: tuple[str, ...]) -> tuple[str, ...]:
    """The files that a plan changes, that are there, and that its writer has not seen."""
    try:
        changes = markdown.body(plans.drafted_body(answer.text), "Changes") or ""
    except InvalidDocument:
        return ()
    files = dict.fromkeys(path for entry in finding.entries(changes) for path in entry.files)
    beyond = tuple(path for path in files if path not in shown)
    if not beyond:
        return ()
    found = await ReadFiles(base=base, paths=beyond)
    return tuple(source.path for source in found.sources)


def _list(paths: tuple[str, ...]) -> str:
    return ", ".join(f"`{path}`" for path in paths[:3]) + (" and more" if len(paths) > 3 else "")
