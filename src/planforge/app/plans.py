"""Plans as the ledger and the files have them: lists, pages, phases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.errors import InvalidDocument, NotFound

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.documents.phases import Phase


class PlanRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of plans."""

    plan: str
    title: str
    status: str
    path: str
    content: str
    object: str
    rounds: int
    branch: str
    landed: str
    updated_at: str


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """A step as far as it has come."""

    step: str
    title: str
    kind: str
    status: str
    attempts: int
    landed: str
    score: int | None
    reason: str


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one plan on one page."""

    plan: PlanRow
    text: str
    edited: bool
    """The file on disk is not what Planforge last wrote or what was last approved."""
    approved_by: str
    """Whose approval of exactly this content is still unused; empty if nobody's."""
    content: str = ""
    """The hash of the plan as it is on disk now, which an approval is bound to."""
    steps: tuple[StepRow, ...]


def rows(project: Project) -> list[PlanRow]:
    """All plans, oldest first."""
    return project.ledger.select(PlanRow, "plans ORDER BY length(plan), plan")


def row(project: Project, name: str) -> PlanRow:
    """The plan that `name` means: `plan-007`, `plan-7` or `7`."""
    from planforge.documents.plan import parse_plan_id

    plan = parse_plan_id(name)
    for found in project.ledger.select(PlanRow, "plans WHERE plan = ?", plan):
        return found
    raise NotFound(f"there is no `{plan}` here", "see `planforge plan list`")


def steps(project: Project, plan: str) -> tuple[StepRow, ...]:
    """The steps of the plan's newest revision, in order."""
    newest = "(SELECT max(revision) FROM revisions WHERE plan = ?)"
    where = f"steps WHERE plan = ? AND revision = {newest} ORDER BY ordinal"
    return tuple(project.ledger.select(StepRow, where, plan, plan))


def text(project: Project, plan: PlanRow) -> str:
    """The plan file as it is on disk now."""
    path = project.root / plan.path
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        if not plan.object:
            raise _never_written(plan) from None
        hint = f"its last text is on record: `planforge plan show {plan.plan} --recorded`"
        raise NotFound(f"`{plan.path}` is gone", hint) from None


def view(project: Project, name: str) -> PlanView:
    """The plan that `name` means, in full."""
    from planforge.app import approvals
    from planforge.documents.plan import content_hash

    plan = row(project, name)
    on_disk = text(project, plan)
    content = content_hash(on_disk)
    approval = approvals.unused(project, plan.plan, approvals.PLAN_GATE, content)
    return PlanView(
        plan=plan,
        text=on_disk,
        edited=bool(plan.content) and content != plan.content,
        approved_by=approval.actor if approval else "",
        content=content,
        steps=steps(project, plan.plan),
    )


def recorded_text(project: Project, name: str) -> str:
    """The plan's text as Planforge last wrote it, whatever became of the file."""
    plan = row(project, name)
    if not plan.object:
        raise _never_written(plan)
    return project.ledger.objects.get(plan.object).decode()


def _never_written(plan: PlanRow) -> NotFound:
    return NotFound(f"`{plan.plan}` has no text: no draft of it was finished", "run `planforge forge` again")


def phases(project: Project, name: str, *, parallel: bool) -> tuple[Phase, ...]:
    """What the plan would be split into."""
    from planforge.documents.phases import decompose

    plan = row(project, name)
    return decompose(text(project, plan), max_files=project.settings.run.max_files, parallel=parallel)


def mark(project: Project, plan: str, status: str) -> None:
    """Write a status that the plan has, or may have next, into its file, changing nothing else in it."""
    from planforge.app import statuses
    from planforge.documents.plan import PlanStatus, with_status
    from planforge.kernel.objects import write_atomically

    found = row(project, plan)
    statuses.require_of(found, status)
    path: Path = project.root / found.path
    if path.exists():
        before = text(project, found)
        after = with_status(before, PlanStatus(status))
        if after != before:
            write_atomically(path, after.encode())


def mark_as_recorded(project: Project, plan: str) -> None:
    """Have the file say the status that the ledger says, if there is a file in which it can be said."""
    from contextlib import suppress

    for found in project.ledger.select(PlanRow, "plans WHERE plan = ? AND path <> ''", plan):
        with suppress(InvalidDocument, UnicodeDecodeError):  # somebody has made something else of it
            mark(project, found.plan, found.status)
