"""
What a person says that is no command: put to an agent as a run, and what its answer asks for, done.

The run is of the flow `chat`, so its cost is counted, its agent confined, and the answer with everything that
came of it on record. What the answer asks for is done at depth 1. A process that Planforge has started
itself, an agent's, is not a person, and nothing it says is put to another agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from planforge.app import overview, runs
from planforge.app.chat.doing import perform
from planforge.app.chat.replies import Speaker, line, worded
from planforge.app.decisions import deciders
from planforge.app.plans import work
from planforge.errors import InvalidInput, RefusedByGate
from planforge.kernel.effects import AgentAnswer
from planforge.kernel.events import EffectCompleted
from planforge.kernel.payloads import unpack
from planforge.rules.commands import Malformed, asked, written
from planforge.workflows.chat import ROLE, SUBJECT, ActionDone, ChatRequest, Said, TakeActions, Taken

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.kernel.driver import Call

DEEPEST = 1
"""How far from a person an action may be."""
KEPT = 6
"""How many exchanges of a chat its agent is told of."""
LONGEST = 20_000
PLANS = 40
"""How many plans its agent is told of."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent said to a person, and what came of what it asked for."""

    run: str
    text: str
    agent: str = ""
    problem: str = ""
    """Why nothing of what it asks for was done."""
    actions: tuple[ActionDone, ...] = ()


def begin(project: Project, text: str, earlier: tuple[Said, ...] = (), speaker: Speaker = Speaker()) -> str:  # noqa: B008
    """Record that somebody said something; refused at any depth but a person's."""
    if speaker.depth or deciders.is_agent(project):
        raise RefusedByGate(
            "an agent does not ask an agent for actions", "say it yourself, in a terminal of your own"
        )
    said = text.strip()
    if not said:
        raise InvalidInput("nothing was said")
    if len(said) > LONGEST:
        raise InvalidInput(f"that has {len(said)} characters; at most {LONGEST} are put to an agent")
    work.require_agents(project, (ROLE,))
    request = ChatRequest(text=said, base=work.head(project), state=state(project), earlier=earlier[-KEPT:])
    return runs.begin(project, "chat", SUBJECT, lambda _: request)


def state(project: Project) -> str:
    """The project in a few lines, for an agent: plans, what is under way, what waits."""
    found = overview.overview(project)
    lines = [f"{item.plan.plan} {item.plan.status}: {item.plan.title}" for item in found.plans[-PLANS:]]
    if len(found.plans) > PLANS:
        lines.insert(0, f"and {len(found.plans) - PLANS} older plans")
    lines += [
        f"{run.run} ({run.flow} of {run.subject}) is {run.status}"
        for run in found.runs
        if run.unfinished and run.subject != SUBJECT
    ]
    lines += [f"{each.name} waits for an answer: {each.text}" for each in found.questions]
    lines += [f"the person could type: {line(hint)}" for hint in found.next]
    return "\n".join(lines)


def take_actions(project: Project) -> Callable[[TakeActions, Call], Awaitable[Taken]]:
    """What performs the actions that an answer asks for."""

    async def take(effect: TakeActions, call: Call) -> Taken:
        if effect.depth > DEEPEST:
            raise RefusedByGate("an agent's action does not ask for further actions")
        if call.resumed:  # some of them may have been done: twice is worse than not at all
            text = "not done again: the run was interrupted here; see `!status`"
            left = (ActionDone(command=written(each), exit_code=1, text=text) for each in effect.commands)
            return Taken(done=tuple(left))
        return Taken(done=tuple(_done(project, effect)))

    return take


def _done(project: Project, effect: TakeActions) -> list[ActionDone]:
    done = []
    for command in effect.commands:
        reply = perform(project, command, Speaker(depth=effect.depth))
        text = f"{reply.text}\n{worded(reply.hint)}" if reply.hint else reply.text
        done.append(
            ActionDone(command=written(command), exit_code=reply.exit_code, text=text, runs=reply.runs)
        )
    return done


def answer(project: Project, run: str) -> Answer | None:
    """What came of something that was said; None if no agent has answered yet."""
    said: AgentAnswer | None = None
    taken = Taken(done=())
    for recorded in project.ledger.stream(run):
        match recorded.event:
            case EffectCompleted(effect="RunAgent", outcome=outcome):
                said = msgspec.json.decode(unpack(project.ledger, outcome), type=AgentAnswer)
            case EffectCompleted(effect="TakeActions", outcome=outcome):
                taken = msgspec.json.decode(unpack(project.ledger, outcome), type=Taken)
    if said is None:
        return None
    found = asked(said.text)
    problem = found.problem if isinstance(found, Malformed) else ""
    return Answer(run=run, text=found.text, agent=said.agent, problem=problem, actions=taken.done)
