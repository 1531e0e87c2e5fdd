"""
Answer what a person said in a chat, and do what the answer asks for, once.

The agent only reads. Its answer may end with a block of actions (`rules/commands/actions.py`); they are one
effect, so what was asked for and what came of it are on record. Nothing that an action does asks an agent for
further actions: this flow is the only one that reads them, and it does so for what a person said.
"""

from __future__ import annotations

import msgspec

from planforge.kernel.effects import Access, CloseWorktree, Effect, OpenWorktree
from planforge.kernel.wording import counted
from planforge.rules.commands import Command, Malformed, asked
from planforge.rules.commands.actions import FORMS, LABEL, MOST
from planforge.workflows import asking
from planforge.workflows.asking import Question
from planforge.workflows.context import Material, Prompt
from planforge.workflows.prompts import BOUNDS, SAFETY

ROLE = "assistant"
SUBJECT = "chat"
WORKTREE = "chat"

ASKED = f"""\
A person who works with Planforge says something to you. Answer them in a few plain sentences, from what is
below and from the code in the current directory. {BOUNDS}"""

CLOSING = f"""\
If, and only if, the person wants something done that one of these actions does, end your answer with one
fence labelled `{LABEL}` that holds a JSON list of at most {MOST} of them, such as
[{{"action": "planShow", "planId": "plan-001"}}]:
{chr(10).join(f"- {form}" for form in FORMS)}
Nothing else is understood. What needs a person, such as an approval, is not done; they are told what to type.
{SAFETY}"""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange of the same chat before this one."""

    text: str
    answer: str


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was said, and what the agent is told about the project."""

    text: str
    base: str
    state: str
    earlier: tuple[Said, ...] = ()


class ActionDone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one action."""

    command: str
    """As a person would type it."""
    exit_code: int
    text: str
    runs: tuple[str, ...] = ()
    """What it began; nobody drives it yet."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What became of all of them."""

    done: tuple[ActionDone, ...]


class TakeActions(Effect[Taken], frozen=True, kw_only=True):
    """Do what an agent's answer asks for, as far as agents may."""

    commands: tuple[Command, ...]
    depth: int
    """How far from a person: 1 is what an answer to one asks for."""

    @property
    def about(self) -> str:
        """How many there are."""
        return counted(len(self.commands), "action")


class ChatResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, and what came of it."""

    text: str
    problem: str = ""
    """Why nothing of what it asks for was done; empty if it asks for nothing that cannot be read."""
    done: tuple[ActionDone, ...] = ()


async def chat(request: ChatRequest) -> ChatResult:
    """Ask once, and do what the answer asks for."""
    await OpenWorktree(name=WORKTREE, commit=request.base)
    question = Question(
        plan=SUBJECT,
        role=ROLE,
        access=Access.READ,
        worktree=WORKTREE,
        base=request.base,
        prompt=prompt(request),
    )
    answer = await asking.ask(question, await asking.gathering(question))
    await CloseWorktree(name=WORKTREE)
    found = asked(answer.text)
    if isinstance(found, Malformed):
        return ChatResult(text=found.text, problem=found.problem)
    if not found.commands:
        return ChatResult(text=found.text)
    taken = await TakeActions(commands=found.commands, depth=1)
    return ChatResult(text=found.text, done=taken.done)


def prompt(request: ChatRequest) -> Prompt:
    """What the agent is told."""
    earlier = "\n\n".join(f"They said:\n{each.text}\n\nYou said:\n{each.answer}" for each in request.earlier)
    material = (
        Material(name="what they say", text=request.text),
        Material(name="the state of the project", text=request.state),
        Material(name="what was said before", text=earlier),
    )
    return Prompt(head=f"Role: {ROLE}", asked=ASKED, material=material, closing=CLOSING)
