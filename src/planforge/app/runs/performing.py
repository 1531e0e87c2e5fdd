"""Functions of a project as performers of effects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.kernel.driver import Call

Performer = Callable[[Any, "Call"], Awaitable[object]]


def at_once(project: Project, perform: Callable[[Project, Any], object]) -> Performer:
    """Has a function perform an effect that takes no time."""

    async def performed(effect: Any, call: Call) -> object:
        del call
        return perform(project, effect)

    return performed


def aside(project: Project, perform: Callable[[Project, Any], object]) -> Performer:
    """Has a function perform an effect beside whatever else goes on."""

    async def performed(effect: Any, call: Call) -> object:
        del call
        return await asyncio.to_thread(perform, project, effect)

    return performed
