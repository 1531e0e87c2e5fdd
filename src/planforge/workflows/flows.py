"""The flows by name, so that a run can be taken up again from what its ledger says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from planforge.kernel.effects import Flow
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

Result = (
    ForgeResult
    | PlanRunResult
    | DemoResult
    | LandResult
    | UpdateResult
    | PipelineResult
    | FixResult
    | ChatResult
)


class Entry(NamedTuple):
    """A flow, its version, and the type of what it is asked."""

    flow: Callable[[Any], Flow[Result]]
    request: type[msgspec.Struct]
    version: int


FLOWS: dict[str, Entry] = {
    "forge": Entry(forge, ForgeRequest, 1),
    "plan_run": Entry(plan_run, PlanRunRequest, 1),
    "fix": Entry(fix, FixRequest, 1),
    "pipeline": Entry(pipeline, PipelineRequest, 2),
    "demo": Entry(demo, DemoRequest, 1),
    "land": Entry(land, LandRequest, 1),
    "update_checkout": Entry(update_checkout, UpdateRequest, 1),
    "chat": Entry(chat, ChatRequest, 1),
}
