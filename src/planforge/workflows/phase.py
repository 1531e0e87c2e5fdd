"""
One phase of a plan: what it is asked, and how each kind of phase is done.

A phase that implements is a step; one that reads leaves notes for those after it;
one that audits is in `auditing.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from planforge.documents import markdown
from planforge.documents import plan as plans
from planforge.documents.phases import Phase
from planforge.kernel.effects import Access, AgentAnswer
from planforge.kernel.events import PlannedStep
from planforge.workflows import asking, prompts
from planforge.workflows.asking import Fault, Question, usable
from planforge.workflows.context import Prompt, closure_of
from planforge.workflows.step import StepRequest, StepResult

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
    """How the plan ended."""

    plan: str
    branch: str
    commit: str
    done: bool
    """All that was asked for is done."""
    reason: str
    voided: bool
    """It stopped because the approval no longer holds."""
    left: int = 0
    """How many phases are still to be done."""
    person: bool = False
    """A person has to look at what an audit says."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The plan's phases, and those that are done."""

    phases: tuple[Phase, ...]
    done: tuple[str, ...]


def branch_of(plan: str) -> str:
    """The branch a plan lands on."""
    return f"planforge/{plan}"


def planned(phase: Phase) -> PlannedStep:
    """A phase as events have it."""
    return PlannedStep(
        step=phase.id,
        title=phase.title,
        kind=phase.kind.value,
        files=phase.files,
        depends_on=phase.depends_on,
    )


def step_of(
    request: PlanRunRequest,
    text: str,
    phase: Phase,
    base: str,
    known: Known,
    *,
    notes: str = "",
    problem: str = "",
    landed: str = "",
) -> StepRequest:
    """What the step of a phase needs to know."""
    return StepRequest(
        plan=request.plan,
        run=request.run,
        content=plans.content_hash(text),
        branch=branch_of(request.plan),
        objective=(markdown.body(text, "Objective") or "").strip(),
        notes=notes,
        phase=phase,
        base=base,
        attempts=request.attempts,
        handoffs=request.handoffs,
        earlier=known.done,
        closure=closure_of(known.phases, phase.id),
        escalate_after=request.escalate_after,
        problem=problem,
        landed=landed,
    )


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where somebody only looks: a worktree, and the commit that is in it."""

    worktree: str
    commit: str


async def ask(
    request: StepRequest, role: str, place: Place, prompt: Prompt, fault: Fault = usable
) -> AgentAnswer:
    """Ask somebody who looks and changes nothing."""
    question = Question(
        plan=request.plan,
        step=request.phase.id,
        attempt=1,
        role=role,
        access=Access.READ,
        worktree=place.worktree,
        base=place.commit,
        files=request.phase.files,
        earlier=request.earlier,
        closure=request.closure,
        prompt=prompt,
    )
    return await asking.ask(question, await asking.gathering(question), fault=fault)


async def read(request: StepRequest, text: str) -> StepResult:
    """Have the code read before anything is changed."""
    phase, base = request.phase, request.base
    prompt = prompts.read(request.plan, phase, plans.approvable(text))
    answer = await ask(request, "developer", Place(worktree=phase.id, commit=base), prompt)
    return StepResult(step=phase.id, done=True, tip=base, reason="read", notes=answer.text)


def notes_of(results: Sequence[StepResult]) -> str:
    """What phases that only read have found."""
    return "".join(result.notes for result in results)
