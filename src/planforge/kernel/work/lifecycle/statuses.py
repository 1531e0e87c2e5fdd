"""
Which event gives an item which status. Admission asks before an event is recorded, the projection after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from planforge.kernel import events
from planforge.kernel.work.items import KINDS, Kind, Query, kind_of
from planforge.kernel.work.lifecycle import tables
from planforge.kernel.work.lifecycle.tables import PLAN

MACHINES = {Kind(name): table for name, table in tables.MACHINES.items() if name in KINDS} | {Kind.FIX: PLAN}
"""The table of each kind that can be opened."""

AUDIT = "audit"
"""The kind of step that makes a plan `AUDITING`."""


class Given(NamedTuple):
    """An item and the status that an event gives it."""

    item: str
    status: str
    by: str = ""
    """What happened to it, as its table calls it, where the event says so."""
    counted: bool = False
    """Whether it has no document, and so no status but that of its steps."""


def given(query: Query, event: events.Event) -> Given | None:
    """The item that an event gives a status, and which one; None if it gives none."""
    leads = LEADS.get(type(event))
    return leads(query, event) if leads else None


def _moved(_: Query, event: events.ItemMoved) -> Given:
    return Given(event.item, event.status, event.by)


def _forged(_: Query, event: events.PlanForged) -> Given | None:
    return Given(event.plan, "REVIEW") if event.content else None  # there is something to review


def approves(query: Query, event: events.DecisionMade) -> bool:
    """Whether it is a yes to a plan that counts: asked for, and neither used nor taken back."""
    which = "kind = 'approval' AND number = ? AND subject = ? AND name = ? AND content = ? AND hash = ?"
    values = (event.number, event.subject, event.name, event.content, event.hash)
    counts = f"SELECT 1 FROM decisions WHERE {which} AND status = 'decided'"  # noqa: S608  (a constant)
    return event.approves and event.kind == "approval" and any(query(counts, *values))


def _approved(query: Query, event: events.DecisionMade) -> Given | None:
    return Given(event.subject, "APPROVED") if approves(query, event) else None


def _under_way(_: Query, event: events.PlanStarted | events.PlanPaused) -> Given:
    # A run that is over leaves the plan to another run, which goes on under the same approval.
    return Given(event.plan, "IMPLEMENTING")


def _ended(_: Query, event: events.PlanEnded) -> Given:
    # A plan that could not go on returns to review: a new approval is the way out.
    return Given(event.plan, "DONE" if event.succeeded else "REVIEW")


# A plan with a document gets most of its statuses from its run; one without has nothing but its steps.


def _step_started(query: Query, event: events.StepStarted) -> Given | None:
    counted = _has_no_document(query, event.plan)
    if _kind(query, event.plan, event.step) == AUDIT:
        return Given(event.plan, "AUDITING", counted=counted)
    return Given(event.plan, "IMPLEMENTING", counted=True) if counted else None


def _step_reopened(query: Query, event: events.StepReopened) -> Given | None:
    if MACHINES.get(kind_of(event.plan)) is not PLAN:
        return None
    counted = _has_no_document(query, event.plan)
    return Given(event.plan, "IMPLEMENTING" if counted else "REVIEW", counted=counted)


def _step_over(query: Query, event: events.StepCompleted | events.StepSkipped) -> Given | None:
    counted = _has_no_document(query, event.plan) and _is_done(query, event.plan)
    return Given(event.plan, "DONE", counted=True) if counted else None


def _rescoped(query: Query, event: events.PlanRescoped) -> Given | None:
    if not _has_no_document(query, event.plan):
        return None
    if _is_done(query, event.plan):
        return Given(event.plan, "DONE", counted=True)
    return Given(event.plan, "IMPLEMENTING", counted=True) if _status(query, event.plan) == "DONE" else None


LEADS: dict[type[events.Event], Callable[[Query, Any], Given | None]] = {
    events.ItemMoved: _moved,
    events.PlanForged: _forged,
    events.DecisionMade: _approved,
    events.PlanStarted: _under_way,
    events.PlanPaused: _under_way,
    events.PlanEnded: _ended,
    events.StepStarted: _step_started,
    events.StepReopened: _step_reopened,
    events.StepCompleted: _step_over,
    events.StepSkipped: _step_over,
    events.PlanRescoped: _rescoped,
}
"""What each kind of event that gives a status says about it."""


NEWEST = "(SELECT max(revision) FROM revisions WHERE plan = ?)"


def _has_no_document(query: Query, plan: str) -> bool:
    return any(query("SELECT 1 FROM items WHERE item = ? AND path = ''", plan))


def _status(query: Query, plan: str) -> str:
    return next((status for (status,) in query("SELECT status FROM items WHERE item = ?", plan)), "")


def _kind(query: Query, plan: str, step: str) -> str:
    """What kind of step it is, in the newest revision of its plan."""
    where = f"plan = ? AND step = ? AND revision = {NEWEST}"
    return next((kind for (kind,) in query(f"SELECT kind FROM steps WHERE {where}", plan, step, plan)), "")  # noqa: S608  (constants)


def _is_done(query: Query, plan: str) -> bool:
    """Whether a plan has steps, and none is left."""
    some = "EXISTS (SELECT 1 FROM steps WHERE steps.plan = revisions.plan)"
    where = f"plan = ? AND revision = {NEWEST} AND unfinished = 0 AND {some}"
    return any(query(f"SELECT 1 FROM revisions WHERE {where}", plan, plan))  # noqa: S608  (constants)
