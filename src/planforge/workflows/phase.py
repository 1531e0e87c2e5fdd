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
from planforge.workflows.attempt import Change, StepResult
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


def change_of(
    request: PlanRunRequest,
    text: str,
    phase: Phase,
    base: str,
    *,
    earlier: tuple[str, ...] = (),
    closure: tuple[str, ...] = (),
    notes: str = "",
    problem: str = "",
    landed: str = "",
) -> Change:
    """The change that a phase asks for; `notes` is what phases that only read have found."""

    def asked(attempt: int, why: str) -> Prompt:
        return prompts.implement(
            request.plan,
            phase,
            attempt=attempt,
            objective=objective_of(text),
            notes=notes,
            problem=why,
        )

    return Change(
        plan=request.plan,
        run=request.run,
        step=phase.id,
        title=phase.title,
        base=base,
        files=phase.files,
        prompt=asked,
        branch=branch_of(request.plan),
        content=plans.content_hash(text),
        attempts=request.attempts,
        handoffs=request.handoffs,
        escalate_after=request.escalate_after,
        earlier=earlier,
        closure=closure,
        problem=problem,
        landed=landed,
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


async def read(change: Change, phase: Phase, text: str) -> StepResult:
    """Have the code read before anything is changed."""
    prompt = prompts.read(change.plan, phase, plans.approvable(text))
    answer = await ask(change, "developer", prompt, worktree=phase.id, commit=change.base)
    return StepResult(step=phase.id, done=True, tip=change.base, reason="read", notes=answer.text)


def notes_of(results: Sequence[StepResult]) -> str:
    """What phases that only read have found."""
    return "".join(result.notes for result in results)
