"""
The plan graph: nodes, edges, and the steps with how far each has come and what it waits for.

Events name a plan and a step; they are about the revision of the plan that is
newest at that point of the history. An event about something unknown is kept in
the history and changes nothing else here: whether it made sense is decided before
it is recorded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import apsw

from planforge.kernel import events
from planforge.kernel.events import ArtifactKind, PlannedRisk, Recorded
from planforge.kernel.projections import revisions
from planforge.kernel.projections.folding import Folds, update
from planforge.kernel.work.items import Kind, kind_of

TABLES = (
    revisions.TABLES
    + """
CREATE TABLE history(node TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(node, seq)) STRICT, WITHOUT ROWID;
"""
)

NAMES = (*revisions.NAMES, "history")

folds = Folds()


# Plans


@folds.of(events.ItemOpened)
def _(db: apsw.Connection, event: events.ItemOpened, recorded: Recorded) -> None:
    if kind_of(event.item) not in (Kind.PLAN, Kind.FIX):
        return
    former = revisions.newest(db, event.item)
    if former is not None:
        return  # somebody told of the plan before it was there; what it was then goes on
    if event.steps or event.risks:
        revisions.add(db, event.item, None, event.steps, recorded.seq, risks=event.risks)
    else:
        revisions.open_unplanned(db, event.item, recorded.seq)


@folds.of(events.PhasesGenerated)
def _(db: apsw.Connection, event: events.PhasesGenerated, recorded: Recorded) -> None:
    add = partial(revisions.add, db, event.plan, content=event.content)
    former = revisions.newest(db, event.plan)
    if former is None or not former.planned:
        add(None, event.steps, recorded.seq)
        return
    risks = revisions.open_risks(partial(revisions.rows, db), former.node, event.steps)
    kept = {step.step: revisions.Kept(step.status, step.was) for step in event.kept}
    reason = f"its phases were made anew by {event.actor}" if event.actor else "its phases were made anew"
    add(former, event.steps, recorded.seq, risks=risks, kept=kept, reason=reason)


@folds.of(events.PlanStarted)
def _(db: apsw.Connection, event: events.PlanStarted, recorded: Recorded) -> None:
    former = revisions.newest(db, event.plan)
    if former is None or not former.planned:
        kept, content = event.kept, event.content
        revisions.add(db, event.plan, None, event.steps, recorded.seq, kept=kept, content=content)
    else:
        _begin_again(db, event, former.number)


@folds.of(events.PlanRescoped)
def _(db: apsw.Connection, event: events.PlanRescoped, recorded: Recorded) -> None:
    former = revisions.newest(db, event.plan)
    revisions.add(
        db,
        event.plan,
        former,
        event.steps,
        recorded.seq,
        risks=event.risks,
        kept=event.kept,
        reason=event.reason if former else "",
    )


# What steps wait for


@folds.of(events.RiskRaised)
def _(db: apsw.Connection, event: events.RiskRaised, recorded: Recorded) -> None:
    revision = revisions.newest(db, event.plan)
    if revision is not None:
        risk = PlannedRisk(
            risk=event.risk, description=event.description, severity=event.severity, blocks=event.blocks
        )
        revisions.raise_risk(db, revision, risk, recorded.seq)


@folds.of(events.RiskSettled)
def _(db: apsw.Connection, event: events.RiskSettled, _: Recorded) -> None:
    revision = revisions.newest(db, event.plan)
    node = f"{revision.node}!{event.risk}" if revision else ""
    statement = "UPDATE risks SET open = 0, reason = ?, actor = ? WHERE node = ? AND open"
    db.execute(statement, (event.reason, event.actor, node))
    if db.changes():
        _wait(db, node, "STEP_BLOCKED_BY", -1)


@folds.of(events.GateOpened)
def _(db: apsw.Connection, event: events.GateOpened, _: Recorded) -> None:
    node = _step(db, event)
    same = "EXISTS (SELECT 1 FROM steps WHERE steps.node = gates.node AND content = ?)"
    statement = f"UPDATE gates SET open = 1, actor = ? WHERE node = ? AND gate = ? AND NOT open AND {same}"  # noqa: S608
    db.execute(statement, (event.actor, node, event.gate, event.content))
    if db.changes():
        db.execute("UPDATE steps SET waiting = waiting - 1 WHERE node = ?", (node,))


# How far steps have come


@folds.of(events.StepStarted)
def _(db: apsw.Connection, event: events.StepStarted, _: Recorded) -> None:
    _turn(db, event, "in-progress", attempts=event.attempt, holder=event.holder, verified=None)


@folds.of(events.AttemptRejected)
def _(db: apsw.Connection, event: events.AttemptRejected, recorded: Recorded) -> None:
    node = _step(db, event)
    update(db, "steps", "node", node, reason=event.reason)
    if recorded.stream == event.plan:
        # A run, which has a stream of its own, makes the next attempt itself. What anybody else gives back
        # is ready for whoever comes.
        statement = "UPDATE steps SET status = 'pending', holder = NULL WHERE node = ? AND attempts = ?"
        db.execute(f"{statement} AND status = 'in-progress'", (node, event.attempt))


@folds.of(events.StepCompleted)
def _(db: apsw.Connection, event: events.StepCompleted, recorded: Recorded) -> None:
    score = event.score.value if event.score else None
    node = _turn(db, event, "done", score=score, reason="", holder=None, completed=recorded.seq)
    if event.found:
        update(db, "steps", "node", node, landed=event.found)


@folds.of(events.StepFailed)
def _(db: apsw.Connection, event: events.StepFailed, _: Recorded) -> None:
    _turn(db, event, "failed", reason=event.reason, holder=None)


@folds.of(events.StepSkipped)
def _(db: apsw.Connection, event: events.StepSkipped, _: Recorded) -> None:
    _turn(db, event, "skipped", reason=event.reason, holder=None)


@folds.of(events.StepReopened)
def _(db: apsw.Connection, event: events.StepReopened, _: Recorded) -> None:
    _turn(db, event, "pending", reason=event.reason, holder=None, completed=None)


@folds.of(events.HandoffEmitted)
def _(db: apsw.Connection, event: events.HandoffEmitted, _: Recorded) -> None:
    statement = "UPDATE steps SET holder = ? WHERE node = ? AND holder = ?"
    db.execute(statement, (event.successor, _step(db, event), event.holder))


# What steps leave


@folds.of(events.PatchProposed)
def _(db: apsw.Connection, event: events.PatchProposed, recorded: Recorded) -> None:
    node = _step(db, event)
    if node:
        _patch(db, node, event.commit, event.tree, recorded.seq)
        for path in event.files:
            _artifact(db, node, ArtifactKind.FILE, path, None, recorded.seq)


@folds.of(events.PatchApplied)
def _(db: apsw.Connection, event: events.PatchApplied, recorded: Recorded) -> None:
    node = _step(db, event)
    if node:
        update(db, "steps", "node", node, landed=event.commit)
        _patch(db, node, event.commit, event.tree, recorded.seq)


def _checked(db: apsw.Connection, event: events.VerifyOk | events.VerifyFailed, recorded: Recorded) -> None:
    """Only evidence on the newest attempt says anything about the step as it is."""
    node, seen = _step(db, event), event.evidence
    if node:
        verified = recorded.seq if isinstance(event, events.VerifyOk) else None
        statement = "UPDATE steps SET verified = ? WHERE node = ? AND attempts = ?"
        db.execute(statement, (verified, node, event.attempt))
        if seen.output:
            _artifact(db, node, ArtifactKind.REPORT, seen.check, seen.output, recorded.seq)


folds.table |= {events.VerifyOk: _checked, events.VerifyFailed: _checked}


@folds.of(events.ArtifactRecorded)
def _(db: apsw.Connection, event: events.ArtifactRecorded, recorded: Recorded) -> None:
    node = _step(db, event)
    if node:
        _artifact(db, node, event.kind, event.name, event.hash, recorded.seq)


EDGES = {ArtifactKind.FILE: "STEP_TOUCHES_FILE", ArtifactKind.PATCH: "STEP_PRODUCES_PATCH"}
"""The edges to files and patches; symbols, tests and reports are recorded by a step and no more."""


def _artifact(
    db: apsw.Connection, step: str, kind: ArtifactKind, name: str, content: str | None, seq: int
) -> None:
    """Patches and reports are known by their content, the others by their name."""
    by_content = kind in (ArtifactKind.PATCH, ArtifactKind.REPORT)
    own = (content or "") if by_content else ""
    target = f"{kind.value}:{own if by_content else name}"
    revisions.node(db, target, kind.value, "", name, own, seq)
    revisions.edge(db, EDGES.get(kind, "STEP_RECORDS"), step, target, seq, content=content)


def _patch(db: apsw.Connection, step: str, commit: str, tree: str, seq: int) -> None:
    target = f"patch:{commit}"
    revisions.node(db, target, ArtifactKind.PATCH.value, "", commit, tree, seq)
    revisions.edge(db, "STEP_PRODUCES_PATCH", step, target, seq, content=tree)


def _begin_again(db: apsw.Connection, event: events.PlanStarted, revision: int) -> None:
    """What a run that was ended had under way is to be done again, and what is done and was not kept."""
    statement = "SELECT step FROM steps WHERE plan = ? AND revision = ? AND status IN ('done', 'in-progress')"
    for (step,) in list(revisions.rows(db, statement, event.plan, revision)):
        if step not in event.kept:
            again = events.StepReopened(plan=event.plan, step=step, reason="")
            _turn(db, again, "pending", holder=None)


def _step(db: apsw.Connection, event: Any) -> str:
    """The node of the step that an event is about, in the newest revision; empty if there is none."""
    statement = (
        "SELECT steps.node FROM revisions JOIN steps ON steps.node = revisions.node || '/' || ?"
        " WHERE revisions.plan = ? AND revisions.revision ="
        " (SELECT max(revision) FROM revisions WHERE plan = ?)"
    )
    for (node,) in revisions.rows(db, statement, event.step, event.plan, event.plan):
        return str(node)
    return ""


def _turn(db: apsw.Connection, event: events.OfStep, status: str, **columns: str | int | None) -> str:
    """Give a step another status and more. What depends on it then waits for one thing more or less."""
    node = _step(db, event)
    found = revisions.rows(db, "SELECT status, plan, revision FROM steps WHERE node = ?", node)
    for before, plan, revision in found:
        update(db, "steps", "node", node, status=status, **columns)
        less = (status in revisions.MET) - (before in revisions.MET)
        if less:
            _wait(db, node, "STEP_DEPENDS_ON", -less)
            statement = "UPDATE revisions SET unfinished = unfinished - ? WHERE plan = ? AND revision = ?"
            db.execute(statement, (less, plan, revision))
    return node


def _wait(db: apsw.Connection, node: str, kind: str, more: int) -> None:
    """The steps with such an edge to `node` wait for so many things more."""
    sources = "SELECT source FROM edges WHERE target = ? AND kind = ?"
    statement = f"UPDATE steps SET waiting = waiting + ? WHERE node IN ({sources})"  # noqa: S608  (a constant)
    db.execute(statement, (more, node, kind))


# What happened to a plan and to a step, to be found without looking at every event


REMEMBERED = [kind for kind in events.EVENTS.values() if hasattr(kind, "plan") or hasattr(kind, "item")]


def remember(db: apsw.Connection, event: Any, recorded: Recorded) -> None:
    """Note that an event is about a plan and, if it names one, a step."""
    insert = "INSERT OR IGNORE INTO history VALUES (?, ?)"
    db.execute(insert, (event.plan if hasattr(event, "plan") else event.item, recorded.seq))
    if node := _step(db, event) if getattr(event, "step", "") else "":
        db.execute(insert, (node, recorded.seq))
