"""Removing what nobody needs any more: a dry run unless told otherwise, and only what is kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice
from planforge.agents import homes
from planforge.app import runs
from planforge.app.evidence import screening
from planforge.errors import InvalidInput, Locked, PlanforgeError
from planforge.kernel.locks import held, is_held
from planforge.workspace.worktrees import cleanup
from planforge.workspace.worktrees.cleanup import Item, Kind, Standing, Wishes

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.app.runs import RunRow

OLDEST = 36_500
"""How many days old work may be asked to be at most: a hundred years."""


class Cleanup(msgspec.Struct, frozen=True, kw_only=True):
    """What was or would be removed, and what stays."""

    schema_version: int = 1
    dry: bool
    """Nothing was removed."""
    gone: tuple[Item, ...]
    """What was removed, or would be."""
    stays: tuple[Item, ...]
    bytes: int
    """How much of the disk that frees. What git then gives back at its next `gc` is not counted."""

    notes: tuple[str, ...] = ()
    """What of the worktrees the archive could not take, and where it is kept instead."""

    @property
    def refused(self) -> tuple[Item, ...]:
        """What was asked to go and stays because it is kept nowhere else."""
        return tuple(item for item in self.stays if item.unarchived)


def clean(
    project: Project, *, yes: bool, older_than: int | None, archived: bool, interrupted: bool
) -> Cleanup:
    """Remove what can go, or with `yes` left out just say what that is."""
    if older_than is not None and not 0 <= older_than <= OLDEST:
        raise InvalidInput(f"`--older-than` is a number of days from 0 to {OLDEST}")
    if archived and older_than is None:
        raise InvalidInput(
            "`--archived` removes work that has landed nowhere, so say how old it must be",
            Advice("for example {}", Action("cleanup", archived=True, older_than=90)),
        )
    before = None if older_than is None else datetime.now(UTC) - timedelta(days=older_than)
    wishes = Wishes(before=before, archived=archived, interrupted=interrupted)
    rows = {row.run: row for row in runs.rows(project)}
    found = cleanup.survey(
        project.git,
        project.state,
        lambda run: _standing(project, rows.get(run), run),
        lambda run: _last(rows.get(run)),
        wishes,
    )
    found += _homes(project, lambda run: _standing(project, rows.get(run), run), wishes)
    stays = [item for item in found if not item.goes]
    gone = [item for item in found if item.goes]
    notes: list[str] = []
    if yes:
        plans = {run: row.subject for run, row in rows.items()}
        tried = [_remove(project, item, wishes, plans.get(item.run, ""), notes) for item in gone]
        gone = [item for item in tried if item.goes]
        stays += [item for item in tried if not item.goes]
    return Cleanup(
        dry=not yes,
        gone=tuple(gone),
        stays=tuple(stays),
        bytes=sum(item.bytes for item in gone),
        notes=tuple(notes),
    )


def _homes(project: Project, standing: Callable[[str], Standing], wishes: Wishes) -> list[Item]:
    """The private homes of agents. Those of a run that can be resumed hold its conversations."""
    found = []
    for home in homes.left(project.state):
        match standing(home.run):
            case Standing.DRIVEN:
                goes, reason = False, f"`{home.run}` is being driven"
            case Standing.INTERRUPTED if not wishes.interrupted:
                goes, reason = False, f"`{home.run}` can be resumed with its conversations"
            case _:
                goes, reason = True, "a renewed login is brought back first"
        item = Item(
            kind=Kind.HOME,
            name=f"{home.run}/{home.name}",
            run=home.run,
            goes=goes,
            reason=reason,
            bytes=home.bytes,
        )
        found.append(item)
    return found


def _standing(project: Project, row: RunRow | None, run: str) -> Standing:
    if is_held(project.lock(run)):
        return Standing.DRIVEN
    return Standing.INTERRUPTED if row is not None and row.unfinished else Standing.ENDED


def _last(row: RunRow | None) -> datetime | None:
    return datetime.fromisoformat(row.updated_at) if row is not None else None


def _remove(project: Project, item: Item, wishes: Wishes, plan: str, notes: list[str]) -> Item:
    """Remove one thing as the only process that is at its run; what could not be removed stays, with why."""
    try:
        with held(project.lock(item.run), f"`{item.run}`"):
            if item.kind is Kind.HOME:
                notes += homes.remove(project.state / homes.HOMES / item.name)
            else:
                secret = screening.finder(project, plan)
                notes += cleanup.remove(project.git, project.state, item, wishes, secret)
    except Locked:
        return msgspec.structs.replace(item, goes=False, reason=f"`{item.run}` is being driven")
    except (PlanforgeError, OSError) as error:
        said = error.message if isinstance(error, PlanforgeError) else str(error)
        return msgspec.structs.replace(item, goes=False, reason=said, unarchived=True)
    return item
