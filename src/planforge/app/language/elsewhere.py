"""
Where the functions are that commands need and that other parts of Planforge bring: one table.

They are looked up when a command needs one. A command whose function is not there is refused with what can be
done instead, and nothing else is the worse for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from planforge.errors import NotFound
from planforge.rules.commands import Command, shapes, usage


class Place(NamedTuple):
    """Where a function is, how it is called, and what to do where it is not."""

    module: str
    function: str
    called: str
    """What it is given after the project, for whoever brings it."""
    hint: str
    wants: str = ""
    """A parameter that it must have, where the function was there before it could do this."""


PLACES: dict[type[Command], Place] = {
    shapes.PlanCreate: Place(
        "planforge.app.work",
        "create_plan",
        "description, *, context: str, actor: str -> PlanRow",
        "have it drafted and audited: `!forge <description>`",
    ),
    shapes.PlanPhases: Place(
        "planforge.app.phases",
        "generate",
        "name, *, parallel: bool, keep_done: bool, actor: str",
        "see what it would be split into: `!plan phases <id>`",
    ),
    shapes.PlanRunOne: Place(
        "planforge.app.work",
        "begin_plan_run",
        'name, *, parallel: bool, only: None | "one" | phase -> run',
        "carry out all that is left: `!plan run <id>`",
        "only",
    ),
    shapes.PlanSkip: Place(
        "planforge.app.phases",
        "skip",
        "name, phase: str | None, *, actor: str, reason: str",
        "edit the plan, approve it again and run it",
    ),
    shapes.PlanSkipTo: Place(
        "planforge.app.phases",
        "skip_to",
        "name, phase: str, *, actor: str, reason: str",
        "edit the plan, approve it again and run it",
    ),
    shapes.PlanAudit: Place(
        "planforge.app.work",
        "begin_audit",
        "name -> run",
        "its form is in order; an agent audits a plan when it is forged",
    ),
    shapes.ForgeResume: Place(
        "planforge.app.work",
        "resume_forge",
        "name -> run",
        "read it, edit it, approve it: `!plan show <id>`",
    ),
    shapes.Fix: Place(
        "planforge.app.work",
        "begin_fix",
        "description -> run",
        "have it planned first: `!forge <description>`",
    ),
}
PLACES[shapes.PlanRunPhase] = PLACES[shapes.PlanRetry] = PLACES[shapes.PlanRunOne]


def function(kind: type[Command]) -> Callable[..., Any]:
    """What does the command, or `NotFound` with what to do instead."""
    found = find(kind)
    if found is None:
        raise NotFound(f"`{usage(kind)}` cannot be done by this Planforge yet", PLACES[kind].hint)
    return found


def find(kind: type[Command]) -> Callable[..., Any] | None:
    """What does the command, if it is there."""
    place = PLACES[kind]
    try:
        found: Callable[..., Any] | None = getattr(import_module(place.module), place.function, None)
    except ModuleNotFoundError as error:
        if error.name != place.module:
            raise
        return None
    if found is not None and place.wants and place.wants not in inspect.signature(found).parameters:
        return None
    return found
