"""
Agents that speak the Agent Client Protocol on their standard streams.

`ask` puts one task to one of them.
"""

from __future__ import annotations

import asyncio

from planforge.actions import see
from planforge.agents import exits
from planforge.agents.acp.conversation import Conversation
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Place, Task
from planforge.errors import AgentUnavailable, CannotPerform
from planforge.kernel.effects import AgentAnswer

GRACE = 1.0
"""How long, in seconds, an agent may take to end once it is let go."""


async def ask(name: str, profile: Profile, task: Task, place: Place) -> AgentAnswer:
    """
    Start the agent, put the task, and return its answer, or raise what kind of failure it was.

    Whatever comes of it, also if the asking itself is called off, nothing that was started is left.
    """
    process = await _started(name, place)
    try:
        conversation = Conversation(name, profile, task, place, process)
        try:
            return await conversation.answer()
        finally:
            await conversation.close()
    finally:
        try:
            await _let_go(process)
        finally:
            await place.end(process)


async def _started(name: str, place: Place) -> asyncio.subprocess.Process:
    try:
        return await place.launch(place.argv, env={**place.env, **place.variables}, cwd=place.cwd)
    except (CannotPerform, OSError) as error:
        raise AgentUnavailable(f"agent `{name}`: {error}", see("agent list")) from error


async def _let_go(process: asyncio.subprocess.Process) -> None:
    """Let the agent end by itself for a moment: it knows of children that have left its group."""
    assert process.stdin is not None
    process.stdin.close()
    await exits.ended(process, GRACE)
