"""
The flows, each declared once: what it is asked, what its result means, how its work goes on.

Nothing else asks which flow a run is of. A new flow is its own module and a declaration here. What it asks
for beyond the usual effects is a group in `app/compose.py`, which it names in `needs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from planforge.actions import TEXT, Action, Advice
from planforge.errors import NeedsPerson, PlanforgeError, RefusedByGate
from planforge.kernel.effects import Flow
from planforge.kernel.events import CheckoutUpdated, PlanForged, RunStarted, TaskEnded
from planforge.kernel.wording import counted
from planforge.workflows.chat import ChatRequest, ChatResult, chat
from planforge.workflows.course import PipelineRequest
from planforge.workflows.demo import DemoRequest, demo
from planforge.workflows.fix import FixRequest, FixResult, fix
from planforge.workflows.forge import ForgeRequest, forge
from planforge.workflows.landing import LandRequest, LandResult, UpdateRequest, land, update_checkout
from planforge.workflows.pipeline import pipeline
from planforge.workflows.plan_run import PlanRunRequest, PlanRunResult, plan_run


class Outcome(msgspec.Struct, frozen=True):
    """What the result of a flow means for the person who started it."""

    succeeded: bool
    reason: str
    exit_code: int


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
    end: Callable[[str, str], Action] = lambda run, _: Action("cancel", run)
    """How a person ends a run of a subject."""
    in_order: bool = False
    """Whether it waits for what its item comes after (`kernel/work/links.py`)."""
    needs: tuple[str, ...] = ()
    """Groups of effects that have to be performed besides the usual ones (`app/compose.py`)."""
    told: str = "run"
    """How it is told how a run ended, and what can be done then (`app/chat/endings.py`, `app/overview`)."""


# Plans


def _forged(result: PlanForged) -> Outcome:
    exit_code = 0 if result.clean else NeedsPerson.exit_code if result.content else 1
    return Outcome(result.clean, result.reason, exit_code)


def _plan_ran(result: PlanRunResult) -> Outcome:
    exit_code = RefusedByGate.exit_code if result.voided else NeedsPerson.exit_code if result.person else 1
    return Outcome(result.done, result.reason, 0 if result.done else exit_code)


def _plan_again(plan: str) -> Advice:
    approve, run = Action("plan approve", plan), Action("plan run", plan)
    return Advice("{} and {}: what has landed is kept", approve, run)


def _demo_played(result: PlanRunResult | None) -> Outcome:
    if result is None:
        return Outcome(False, "the plan was not approved", RefusedByGate.exit_code)
    return _plan_ran(result)


# Fixes and tasks


def _fixed(result: FixResult) -> Outcome:
    exit_code = 0 if result.done else NeedsPerson.exit_code if result.large else 1
    return Outcome(result.done, result.reason, exit_code)


def _through_pipeline(result: TaskEnded) -> Outcome:
    exit_code = RefusedByGate.exit_code if result.refused else NeedsPerson.exit_code
    return Outcome(result.succeeded, result.reason, 0 if result.succeeded else exit_code)


# Landing, and talking


def _landed(result: LandResult) -> Outcome:
    exit_code = 0 if result.done else RefusedByGate.exit_code if result.refused else 1
    return Outcome(result.done, result.reason, exit_code)


def _updated(result: CheckoutUpdated) -> Outcome:
    place = f", {counted(result.files, 'file')} in `{result.place}`" if result.place else ""
    return Outcome(True, f"`{result.branch}` is at {result.now[:12]}{place}", 0)


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
        in_order=True,
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
        in_order=True,
        request=PipelineRequest,
        version=3,
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


def told_of(flow: str) -> str:
    """How a run is told, also one that a later Planforge has begun."""
    return FLOWS[flow].told if flow in FLOWS else "run"


def end_of(flow: str, run: str, subject: str) -> Action:
    """How a person ends a run, also one that a later Planforge has begun."""
    return FLOWS[flow].end(run, subject) if flow in FLOWS else Action("cancel", run)


def asked(started: RunStarted, request: bytes) -> tuple[Declaration, msgspec.Struct]:
    """The flow of a recorded run and its request, if this Planforge has that flow, in that version."""
    declared = FLOWS.get(started.flow)
    if declared is None:
        problem = f"`{started.run}` is a `{started.flow}`, which this Planforge does not know"
    elif declared.version != started.flow_version:
        recorded = f"`{started.run}` was recorded by version {started.flow_version} of `{started.flow}`"
        problem = f"{recorded}, this Planforge has version {declared.version}"
    else:
        try:
            return declared, msgspec.json.decode(request, type=declared.request)
        except msgspec.MsgspecError as error:
            problem = f"the request of `{started.run}` does not fit `{started.flow}` as it is now: {error}"
    raise PlanforgeError(problem, "use the Planforge version that recorded it")


def way_on(started: RunStarted) -> Advice:
    """What to do with a run that cannot be resumed, such as one of another version of Planforge."""
    cancel = Action("cancel", started.run, reason=TEXT)
    if started.flow not in FLOWS:
        return Advice("use the Planforge version that began it, or end it with {}", cancel)
    return Advice("end it with {}, then {}", cancel, FLOWS[started.flow].again(started.subject))
