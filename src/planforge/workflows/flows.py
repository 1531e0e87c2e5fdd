"""
The flows, each declared once: what it is asked, what its result means, how its work goes on.

Nothing else asks which flow a run is of. A new flow is its own module and a declaration here. What it asks
for beyond the usual effects is a group in `app/compose.py`, which it names in `needs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import NeedsPerson, RefusedByGate
from planforge.kernel.effects import Flow
from planforge.kernel.wording import counted
from planforge.workflows.chat import ChatRequest, ChatResult, chat
from planforge.workflows.course import PipelineRequest, PipelineResult
from planforge.workflows.demo import DemoRequest, DemoResult, demo
from planforge.workflows.fix import FixRequest, FixResult, fix
from planforge.workflows.forge import ForgeRequest, ForgeResult, forge
from planforge.workflows.landing import (
    LandRequest,
    LandResult,
    UpdateRequest,
    UpdateResult,
    land,
    update_checkout,
)
from planforge.workflows.pipeline import pipeline
from planforge.workflows.plan_run import PlanRunRequest, PlanRunResult, plan_run


class Outcome(msgspec.Struct, frozen=True):
    """What the result of a flow means for the person who started it."""

    succeeded: bool
    reason: str
    exit_code: int


def _ended(run: str, subject: str) -> Action:
    del subject
    return Action("cancel", run)


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that has to be known about a flow."""

    name: str
    flow: Callable[[Any], Flow[Any]]
    request: type[msgspec.Struct]
    version: int = 1
    """Goes up when the flow asks for other effects, or in another order, than recorded runs did."""
    outcome: Callable[[Any], Outcome]
    """What its result means."""
    again: Callable[[str], Advice]
    """How the work on a subject goes on if a run cannot be resumed, as after an upgrade."""
    end: Callable[[str, str], Action] = _ended
    """How a person ends a run of a subject."""
    needs: tuple[str, ...] = ()
    """Groups of effects that have to be performed besides the usual ones (`app/compose.py`)."""
    told: str = "run"
    """How it is told how a run ended, and what can be done then (`app/chat/endings.py`, `app/overview`)."""


# Plans


def _forged(result: ForgeResult) -> Outcome:
    exit_code = 0 if result.clean else NeedsPerson.exit_code if result.content else 1
    return Outcome(result.clean, result.reason, exit_code)


def _plan_ran(result: PlanRunResult) -> Outcome:
    exit_code = RefusedByGate.exit_code if result.voided else NeedsPerson.exit_code if result.person else 1
    return Outcome(result.done, result.reason, 0 if result.done else exit_code)


def _plan_again(plan: str) -> Advice:
    approve, run = Action("plan approve", plan), Action("plan run", plan)
    return Advice("{} and {}: what has landed is kept", approve, run)


def _demo_played(result: DemoResult) -> Outcome:
    if result.ran is None:
        return Outcome(False, "the plan was not approved", RefusedByGate.exit_code)
    return _plan_ran(result.ran)


# Fixes and tasks


def _fixed(result: FixResult) -> Outcome:
    exit_code = 0 if result.done else NeedsPerson.exit_code if result.large else 1
    return Outcome(result.done, result.reason, exit_code)


def _through_pipeline(result: PipelineResult) -> Outcome:
    exit_code = RefusedByGate.exit_code if result.refused else NeedsPerson.exit_code
    return Outcome(result.done, result.reason, 0 if result.done else exit_code)


# Landing, and talking


def _landed(result: LandResult) -> Outcome:
    exit_code = 0 if result.done else RefusedByGate.exit_code if result.refused else 1
    return Outcome(result.done, result.reason, exit_code)


def _updated(result: UpdateResult) -> Outcome:
    return Outcome(True, result.reason, 0)


def _land_again(branch: str) -> Advice:
    del branch
    return Advice("{} again: what has landed is kept", Action("land"))


def _answered(result: ChatResult) -> Outcome:
    done = f", with {counted(len(result.done), 'action')}" if result.done else ""
    return Outcome(not result.problem, result.problem or f"answered{done}", 1 if result.problem else 0)


DECLARED = (
    Declaration(
        name="forge",
        flow=forge,
        request=ForgeRequest,
        version=2,
        outcome=_forged,
        again=lambda _: Advice("forge it again"),
        end=lambda _, plan: Action("forge cancel", plan),
        told="forge",
    ),
    Declaration(
        name="plan_run",
        flow=plan_run,
        request=PlanRunRequest,
        version=2,
        outcome=_plan_ran,
        again=_plan_again,
    ),
    Declaration(
        name="fix",
        flow=fix,
        request=FixRequest,
        version=2,
        outcome=_fixed,
        again=lambda fix: Advice("{}: what was tried is kept", Action("fix", again=fix)),
    ),
    Declaration(
        name="pipeline",
        flow=pipeline,
        request=PipelineRequest,
        version=2,
        outcome=_through_pipeline,
        again=lambda task: Advice("{}: what there is of it is kept", Action("task resume", task)),
    ),
    Declaration(
        name="demo",
        flow=demo,
        request=DemoRequest,
        version=2,
        outcome=_demo_played,
        again=_plan_again,
        needs=("stage",),
    ),
    Declaration(
        name="land",
        flow=land,
        request=LandRequest,
        version=2,
        outcome=_landed,
        again=_land_again,
        needs=("landing",),
        told="landing",
    ),
    Declaration(
        name="update_checkout",
        flow=update_checkout,
        request=UpdateRequest,
        outcome=_updated,
        again=_land_again,
        needs=("landing",),
        told="landing",
    ),
    Declaration(
        name="chat",
        flow=chat,
        request=ChatRequest,
        outcome=_answered,
        again=lambda _: Advice("say it again"),
        needs=("actions",),
        told="answer",
    ),
)

FLOWS = {each.name: each for each in DECLARED}
