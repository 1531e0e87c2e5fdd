"""The phases of a plan as the ledger has them, with what their plan says about each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from planforge.app import plans
from planforge.documents import phases as documents
from planforge.documents.phases import Phase, PhaseKind
from planforge.documents.plan import content_hash
from planforge.kernel import events

if TYPE_CHECKING:
    from planforge.app.plans import PlanRow, StepRow
    from planforge.app.project import Project
    from planforge.kernel.events import PhasesGenerated


class PhaseView(msgspec.Struct, frozen=True, kw_only=True):
    """One phase and how far it has come."""

    id: str
    title: str
    kind: str
    files: tuple[str, ...]
    depends_on: tuple[str, ...]
    change_spec: str
    status: str = "pending"
    attempts: int = 0
    commit: str = ""
    score: int | None = None
    reason: str = ""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """The phases that a plan has now, and the fact that they were made."""

    event: PhasesGenerated
    at: str
    seq: int


def newest(project: Project, plan: str) -> PhasesGenerated | None:
    """The phases that were made last, if any were."""
    made = made_last(project, plan)
    return made.event if made else None


def made_last(project: Project, plan: str) -> Made | None:
    """The same with when that was."""
    found = None
    for recorded in project.ledger.stream(plan):
        if isinstance(recorded.event, events.PhasesGenerated):
            found = Made(event=recorded.event, at=recorded.at, seq=recorded.seq)
    return found


def shown(project: Project, plan: PlanRow, made: PhasesGenerated) -> tuple[PhaseView, ...]:
    """The phases of the ledger, with what their plan said about each when they were made."""
    rows = {row.step: row for row in plans.steps(project, plan.plan)}
    specs = {phase.id: phase for phase in _said(project, plan, made)}
    found = []
    for step in made.steps:
        phase = specs.get(step.step) or Phase(
            id=step.step,
            title=step.title,
            kind=PhaseKind(step.kind),
            files=step.files,
            depends_on=step.depends_on,
            change_spec="",
        )
        found.append(view(phase, rows.get(step.step)))
    return tuple(found)


def _said(project: Project, plan: PlanRow, made: PhasesGenerated) -> tuple[Phase, ...]:
    """The phases with their change specs, if the plan still says what they were made from."""
    text = plans.text(project, plan)
    if content_hash(text) != made.content:
        return ()
    return documents.decompose(text, max_files=made.max_files, parallel=made.parallel)


def view(phase: Phase, row: StepRow | None) -> PhaseView:
    """A phase as far as it has come."""
    shown = PhaseView(
        id=phase.id,
        title=phase.title,
        kind=phase.kind.value,
        files=phase.files,
        depends_on=phase.depends_on,
        change_spec=phase.change_spec,
    )
    if row is None:
        return shown
    return msgspec.structs.replace(
        shown,
        status=row.status,
        attempts=row.attempts,
        commit=row.landed,
        score=row.score,
        reason=row.reason,
    )
