"""The phases of a plan as the ledger has them, with what their plan says about each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from planforge.app.items import plans
from planforge.documents import phases as documents
from planforge.documents.phases import Phase, PhaseKind
from planforge.documents.plan import content_hash
from planforge.errors import PlanforgeError
from planforge.kernel import events
from planforge.workspace.git.listing import Listing

if TYPE_CHECKING:
    from pathlib import Path

    from planforge.app.items.plans import PlanRow, StepRow
    from planforge.app.project import Project
    from planforge.kernel.events import PhasesGenerated
    from planforge.workspace.git import Git


class PhaseView(Phase, frozen=True, kw_only=True):
    """One phase and how far it has come."""

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
        )
        found.append(view(phase, rows.get(step.step)))
    return tuple(found)


def _said(project: Project, plan: PlanRow, made: PhasesGenerated) -> tuple[Phase, ...]:
    """The phases with their change specs, if the plan still says what they were made from."""
    text = plans.text(project, plan)
    if content_hash(text) != made.content:
        return ()
    return documents.decompose(text, max_files=made.max_files, parallel=made.parallel, present=made.present)


def present(git: Git, text: str, branch: str = "") -> tuple[str, ...]:
    """
    Of the names in a plan that are files only if the repository has them, those that it has: on the plan's
    branch, or else in what is checked out. A path with spaces is one, too, if its directory is there.
    """
    names = documents.doubtful(text)
    tip = git.ref(f"refs/heads/{branch}") if branch and names else None
    if not names or not (tip or git.has_commits()):
        return ()
    files = Listing(git, tip or "HEAD").entries
    directories = {path.rpartition("/")[0] for path in files} - {""}
    return tuple(
        path for path in names if path in files or (" " in path and path.rpartition("/")[0] in directories)
    )


def present_in(directory: Path, text: str) -> tuple[str, ...]:
    """The same of a text that is no plan of a project yet; none where there is no repository."""
    from planforge.workspace.git import Git

    try:
        return present(Git.find(directory), text) if documents.doubtful(text) else ()
    except PlanforgeError:
        return ()


def view(phase: Phase, row: StepRow | None) -> PhaseView:
    """A phase as far as it has come."""
    said = msgspec.structs.asdict(phase)
    if row is None:
        return PhaseView(**said)
    return PhaseView(
        **said,
        status=row.status,
        attempts=row.attempts,
        commit=row.landed,
        score=row.score,
        reason=row.reason,
    )
