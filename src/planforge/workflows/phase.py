"""
What the run of a plan is asked for with and how it ends, and how its phases ask an agent that only reads.

A phase that implements is a step; one that reads leaves notes for those after it (both in `plan_run.py`);
one that audits is in `auditing.py`.
"""

from __future__ import annotations

import msgspec

from planforge.documents import markdown
from planforge.documents.phases import Phase
from planforge.kernel.effects import Access, AgentAnswer
from planforge.kernel.events import PlannedStep
from planforge.workflows import asking
from planforge.workflows.asking import Fault, Question, usable
from planforge.workflows.attempt import Change
from planforge.workflows.context import Prompt

GATE = "plan"
EDITED = "it was edited after it was approved"


class PlanRunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which plan to carry out, from where, and how."""

    plan: str
    run: str
    path: str
    base: str
    today: str
    parallel: bool = False
    jobs: int = 2
    attempts: int = 3
    max_files: int = 5
    handoffs: int = 0
    escalate_after: int = 0
    only: str = ""
    """The one phase to do, or `one` for whichever is next; empty is all that are left."""
    fixes: int = 0
    """How often what an audit of the finished work finds may be mended."""


class PlanRunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the run of a plan ended."""

    done: bool
    """All that was asked for is done."""
    reason: str
    voided: bool
    """It stopped because the approval no longer holds."""
    person: bool = False
    """A person has to look at what an audit says."""


def planned(phase: Phase) -> PlannedStep:
    """A phase as events have it."""
    return PlannedStep(
        step=phase.id,
        title=phase.title,
        kind=phase.kind.value,
        files=phase.files,
        depends_on=phase.depends_on,
    )


def objective_of(text: str) -> str:
    """What the plan is for."""
    return (markdown.body(text, "Objective") or "").strip()


async def ask(
    change: Change, role: str, prompt: Prompt, *, worktree: str, commit: str, fault: Fault = usable
) -> AgentAnswer:
    """Ask an agent that reads what is in a worktree and changes nothing."""
    question = Question(
        plan=change.plan,
        step=change.step,
        attempt=1,
        role=role,
        access=Access.READ,
        worktree=worktree,
        base=commit,
        files=change.files,
        earlier=change.earlier,
        closure=change.closure,
        prompt=prompt,
    )
    return await asking.ask(question, await asking.gathering(question), fault=fault)
