"""
Asking an agent, and asking once more where nothing came back that could be used.

The second time the prompt is short: without what is good to know but not needed, and with the plain demand
for a result. It is always a new conversation: one that went wrong is not gone on with. If that does not help
either, the failure is the caller's: an attempt that is refused, or a person who has to decide.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from planforge.errors import AgentEmpty, AgentFailed, AgentMalformed, AgentTimedOut, PerformerFailed
from planforge.kernel.effects import (
    Access,
    AgentAnswer,
    GatherContext,
    Gathered,
    Leased,
    Note,
    OpenWorktree,
    ReadFiles,
    RunAgent,
    Survey,
)
from planforge.kernel.events import ContextComposed, TierEscalated
from planforge.rules.escalation import HEAVY
from planforge.workflows.context import Composed, Prompt, compose

UNUSABLE = frozenset(error.__name__ for error in (AgentFailed, AgentEmpty, AgentMalformed, AgentTimedOut))
"""The failures after which it is worth asking again."""

TEXT_ONLY = """\
You have no tools here: you cannot open, search or change a file, and nothing that you write is run. Answer
in text alone. Where the task speaks of the code in the current directory, you have the files that stand above
and no others. Do not say of code that you have not seen what it does; where you would have to know, say that
you could not check it."""

Fault = Callable[[AgentAnswer], str]
"""Why an answer cannot be used; empty if it can."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of whom, where."""

    role: str
    access: Access
    worktree: str
    base: str
    plan: str
    step: str = ""
    attempt: int = 0
    files: tuple[str, ...] = ()
    """What the work is about, if it is about files."""
    earlier: tuple[str, ...] = ()
    """Steps that are done."""
    closure: tuple[str, ...] = ()
    """Those of them that the step depends on."""
    prompt: Prompt
    lease: Leased | None = None
    turn: int = 0
    tier: str = ""
    model: str = ""
    shown: tuple[str, ...] | None = None
    """Files that it is shown; None is those that it seems to be about, for an agent that has no tools."""


class Conversation:
    """The name of a conversation over several questions; after a failure there is a new one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._number = 1

    @property
    def name(self) -> str:
        """What the conversation is called now."""
        return self._name if self._number == 1 else f"{self._name}:{self._number}"

    def begin_anew(self) -> None:
        """Leave the conversation behind."""
        self._number += 1


def gathering(question: Question) -> GatherContext:
    """What has to be known before it can be asked."""
    return GatherContext(
        role=question.role,
        plan=question.plan,
        base=question.base,
        files=question.files,
        steps=question.earlier,
    )


async def escalated(reason: str, own: str, *, plan: str, attempt: int, role: str, step: str = "") -> str:
    """The tier of the next agent if there is a reason for another than its own: a heavier one, this once."""
    if not reason:
        return ""
    await Note(
        TierEscalated(
            plan=plan, step=step, attempt=attempt, role=role, tier=HEAVY, instead_of=own, reason=reason
        )
    )
    return HEAVY


def usable(answer: AgentAnswer) -> str:
    """Anything will do."""
    del answer
    return ""


async def ask(
    question: Question, gathered: Gathered, talk: Conversation | None = None, fault: Fault = usable
) -> AgentAnswer:
    """Ask, and if need be once more in short; raises what the second try failed with."""
    gathered, question = await _with_files(gathered, question)
    answer = await _answered(question, gathered, talk, fault, "")
    if isinstance(answer, AgentAnswer):
        return answer
    if talk:
        talk.begin_anew()
    if question.access is Access.WRITE:
        # Whatever the first one left is kept; the second one does not build on it.
        await OpenWorktree(name=question.worktree, commit=question.base)
    again = await _answered(question, gathered, talk, fault, answer.message or "nothing")
    if isinstance(again, AgentAnswer):
        return again
    if talk:
        talk.begin_anew()
    raise again


async def _with_files(gathered: Gathered, question: Question) -> tuple[Gathered, Question]:
    """The files that the agent is to see; without tools it is told that it sees no others."""
    blind = not gathered.tools and question.access is Access.READ
    if not blind and question.shown is None:
        return gathered, question
    shown = question.shown
    if shown is None:
        about = "\n\n".join(material.text for material in question.prompt.material)
        shown = (await Survey(base=question.base, text=about, files=question.files)).paths
    if shown:
        part = await ReadFiles(base=question.base, paths=shown)
        gathered = msgspec.structs.replace(gathered, parts=(*gathered.parts, part))
    if blind:
        prompt = question.prompt
        prompt = msgspec.structs.replace(prompt, asked=f"{TEXT_ONLY}\n\n{prompt.asked}")
        question = msgspec.structs.replace(question, prompt=prompt)
    return gathered, question


async def _answered(
    question: Question, gathered: Gathered, talk: Conversation | None, fault: Fault, problem: str
) -> AgentAnswer | PerformerFailed:
    """An answer that can be used, or why there is none."""
    composed = compose(question.prompt, gathered, question.closure, problem=problem)
    asking = RunAgent(
        role=question.role,
        access=question.access,
        worktree=question.worktree,
        base=question.base,
        prompt=composed.text,
        lease=question.lease,
        turn=question.turn,
        session=talk.name if talk else "",
        tier=question.tier,
        output=gathered.output,
        model=question.model,
    )
    # Noted when it is over: a replay that is told otherwise differs at the prompt itself and not at its size.
    try:
        answer = await asking
    except PerformerFailed as error:
        await Note(_composed(question, composed, problem))
        if error.error not in UNUSABLE:
            raise
        return error
    await Note(_composed(question, composed, problem))
    if found := fault(answer):
        return PerformerFailed(AgentMalformed.__name__, f"agent `{answer.agent}`: {found}")
    return answer


def _composed(question: Question, composed: Composed, problem: str) -> ContextComposed:
    return ContextComposed(
        plan=question.plan,
        step=question.step,
        attempt=question.attempt,
        role=question.role,
        parts=composed.parts,
        tokens=composed.tokens,
        simplified=bool(problem),
    )
