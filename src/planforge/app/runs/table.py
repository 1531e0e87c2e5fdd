"""
The runs there are, as the ledger has them, and what can be done about those that are not over.

A run belongs to the process that holds its lock. When that process dies, the run is interrupted: everything
it had finished is in the ledger, and it can be resumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import NotFound, TryLater
from planforge.kernel.locks import is_held
from planforge.kernel.work import decisions

if TYPE_CHECKING:
    # Looking at the list of runs must be quick, and needs none of the events.
    from planforge.app.project import Project
    from planforge.kernel.events import Event, RunStarted


Asked = TypeVar("Asked", bound=msgspec.Struct)


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of runs."""

    run: str
    flow: str
    subject: str
    status: str
    """running, waiting, interrupted, done or failed"""
    reason: str
    until: str
    """From when on a waiting run can go on; empty if it waits for a person."""
    started_at: str
    updated_at: str

    @property
    def unfinished(self) -> bool:
        """Whether there is something left to do."""
        return self.status in ("running", "waiting", "interrupted")


def rows(project: Project, *, unfinished: bool = False, flow: str = "") -> list[RunRow]:
    """
    All runs, or those of one flow, oldest first.

    One that nobody drives although it is not finished is interrupted.
    """
    where = "WHERE (? = '' OR flow = ?)" + (" AND run IN unfinished" if unfinished else "")
    found = []
    for run in project.ledger.select(RunRow, f"runs {where} ORDER BY length(run), run", flow, flow):
        if run.status == "running" and not is_held(project.lock(run.run)):
            found.append(msgspec.structs.replace(run, status="interrupted"))
        elif run.status == "waiting" and (decided := _decided(project, run)):
            found.append(msgspec.structs.replace(run, reason=decided))
        else:
            found.append(run)
    return found


def started(project: Project, run: str) -> RunStarted:
    """How a run began."""
    from planforge.kernel.events import RunStarted

    for recorded in project.ledger.stream(run):
        if isinstance(recorded.event, RunStarted):
            return recorded.event
    raise unknown(run)


def request(project: Project, run: str, kind: type[Asked]) -> Asked:
    """What a run was asked."""
    from planforge.kernel.payloads import unpack

    return msgspec.json.decode(unpack(project.ledger, started(project, run).request), type=kind)


def of_subject(project: Project, subject: str, flow: str) -> list[str]:
    """The runs of a flow that were about something, oldest first."""
    query = "SELECT run FROM runs WHERE subject = ? AND flow = ? ORDER BY length(run), run"
    return [run for (run,) in project.ledger.query(query, subject, flow)]


def unknown(run: str) -> NotFound:
    """What to say of a run that is not there."""
    return NotFound(f"there is no `{run}` here", Advice("see {}", Action("status")))


def events(project: Project, run: str) -> list[Event]:
    """Everything that happened in a run, and to what it is about, in order."""
    subject = started(project, run).subject
    streams = [run] + ([subject] if subject else [])
    recorded = [item for stream in streams for item in project.ledger.stream(stream)]
    return [item.event for item in sorted(recorded, key=lambda item: item.seq)]


# Those that can go on


def to_resume(project: Project, run: str | None, *, now: bool = False) -> list[str]:
    """The runs that would be resumed; `now` is also those whose time has not come."""
    if run is not None:
        found = [row for row in rows(project) if row.run == run]
        if not found:
            raise unknown(run)
        unfinished = [row for row in found if row.unfinished]
    else:
        unfinished = [row for row in rows(project, unfinished=True) if _can_go_on(project, row)]
    due = [row for row in unfinished if now or not row.until or is_due(project, row.until)]
    if unfinished and not due:
        first = min(unfinished, key=lambda row: row.until)
        resume, at_once = Action("resume", first.run), Action("resume", first.run, now=True)
        raise TryLater(
            f"`{first.run}` is parked until {first.until[:16].replace('T', ' ')} UTC: its agent is limited",
            Advice("then run {}; at once: {}", resume, at_once),
        )
    return [row.run for row in due]


def waiting_for(project: Project, run: str | None) -> list[Action]:
    """What a person can do about runs that wait for somebody; about one alone, if it is named."""
    waiting = [row for row in rows(project, unfinished=True) if run in (None, row.run)]
    names = {row.run for row in waiting}
    return [each.look for each in decisions.waiting(project.ledger) if each.run in names]


def is_due(project: Project, until: str) -> bool:
    """Whether the time that a run is parked until has come."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(until) <= project.ledger.now()
    except (TypeError, ValueError):  # no time, or one without a zone: nothing that Planforge wrote
        return True


def _can_go_on(project: Project, row: RunRow) -> bool:
    """Whether a run can go on without anybody naming it: nothing stands in its way but, perhaps, a time."""
    if row.status != "waiting":
        return row.status == "interrupted"
    return bool(row.until or _decided(project, row))


def _decided(project: Project, row: RunRow) -> str:
    """What a person has decided since a run came to wait for them, in words; empty if nobody has."""
    for found in decisions.made_for(project.ledger, row.run, since=row.updated_at):
        return f"`{found.label}` was {found.word} by {found.actor}: it can go on"
    return ""
