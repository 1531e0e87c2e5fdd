"""What the plan graph answers to the queries in `queries`: from the tables, and from the events."""

from __future__ import annotations

from functools import singledispatch

import msgspec

from planforge.errors import NotFound
from planforge.kernel import dependencies
from planforge.kernel.events import ItemOpened, PhasesGenerated, PlannedStep, PlanRescoped, PlanStarted
from planforge.kernel.graph import custody, queries, steps
from planforge.kernel.graph.blockers import blockers
from planforge.kernel.graph.queries import GraphQuery, QueryResult
from planforge.kernel.graph.steps import Revision
from planforge.kernel.ledger import Ledger
from planforge.kernel.projections.revisions import MET


def run_query(ledger: Ledger, query: GraphQuery) -> QueryResult:
    """The answer to one query."""
    return _answer(query, ledger)


@singledispatch
def _answer(query: object, ledger: Ledger) -> QueryResult:
    raise TypeError(f"`{type(query).__name__}` is not a query, asked of {ledger}")


@_answer.register(queries.Plan)
def _(query: queries.Plan, ledger: Ledger) -> QueryResult:
    found = steps.revision(ledger, query.plan)
    title, status = next(
        ledger.query("SELECT title, status FROM plans WHERE plan = ?", found.plan), (found.plan, "")
    )
    needs = needed(ledger, found)
    listed = steps.views(ledger, "WHERE plan = ? AND revision = ? ORDER BY ordinal", *_place(found))
    known = steps.revisions(ledger, found.plan)
    return queries.PlanView(
        node=found.node,
        plan=found.plan,
        revision=found.revision,
        title=title,
        status=status,
        supersedes=known[found.revision - 2].node if found.revision > 1 else "",
        superseded_by=steps.superseded_by(ledger, *_place(found)),
        reason=found.reason,
        steps=tuple(msgspec.structs.replace(step, depends_on=tuple(needs[step.step])) for step in listed),
        risks=tuple(steps.risks(ledger, "WHERE revision = ? ORDER BY risk", found.node)),
    )


@_answer.register(queries.NextSteps)
def _(query: queries.NextSteps, ledger: Ledger) -> QueryResult:
    found = steps.revision(ledger, query.plan)
    later = steps.superseded_by(ledger, *_place(found))
    listed = () if later else steps.views(ledger, READY, *_place(found), query.limit)
    return queries.StepList(plan=found.node, superseded_by=later, steps=tuple(listed))


READY = "WHERE plan = ? AND revision = ? AND status = 'pending' AND waiting = 0 ORDER BY ordinal LIMIT ?"
"""Answered by an index that holds the ready steps and no others."""


@_answer.register(queries.WithoutEvidence)
def _(query: queries.WithoutEvidence, ledger: Ledger) -> QueryResult:
    found = steps.revision(ledger, query.plan)
    where = "WHERE plan = ? AND revision = ? AND (status = 'done' OR landed <> '') AND verified IS NULL"
    return queries.StepList(
        plan=found.node,
        superseded_by=steps.superseded_by(ledger, *_place(found)),
        steps=tuple(steps.views(ledger, f"{where} ORDER BY ordinal", *_place(found))),
    )


@_answer.register(queries.Blocked)
def _(query: queries.Blocked, ledger: Ledger) -> QueryResult:
    found = steps.find(ledger, query.step)
    return queries.Blockers(step=found, blockers=tuple(blockers(ledger, found)))


@_answer.register(queries.Closure)
def _(query: queries.Closure, ledger: Ledger) -> QueryResult:
    node = steps.find(ledger, query.node).node
    near, far = ("source", "target") if query.direction == "up" else ("target", "source")
    # Without a limit, how far away a step is must be no part of its row: then each is followed only once.
    away, within = ("0", "?2 = 0") if query.depth is None else ("away + 1", "away < ?2")
    along = "edges.kind = 'STEP_DEPENDS_ON'"
    rows = ledger.query(
        f"WITH RECURSIVE reached(node, away) AS (SELECT ?1, 0 UNION SELECT edges.{far}, {away}"  # noqa: S608
        f" FROM reached JOIN edges ON edges.{near} = reached.node AND {along} WHERE {within})"
        " SELECT DISTINCT steps.node FROM reached JOIN steps ON steps.node = reached.node"
        " WHERE steps.node <> ?1 ORDER BY steps.ordinal",
        *(node, query.depth or 0),
    )
    return queries.Reached(node=node, direction=query.direction, steps=tuple(name for (name,) in rows))


@_answer.register(queries.CriticalPath)
def _(query: queries.CriticalPath, ledger: Ledger) -> QueryResult:
    found = steps.revision(ledger, query.plan)
    needs = needed(ledger, found)
    statement = "SELECT step, weight, status FROM steps WHERE plan = ? AND revision = ?"
    rows = list(ledger.query(statement, *_place(found)))
    weights = {step: weight for step, weight, _ in rows}
    left = {step for step, _, status in rows if status not in MET}

    def chain(among: set[str] | None) -> queries.Chain:
        path, weight = dependencies.heaviest(needs, weights, among)
        return queries.Chain(steps=tuple(f"{found.node}/{step}" for step in path), weight=weight)

    return queries.CriticalPaths(plan=found.node, left=chain(left), whole=chain(None))


def needed(ledger: Ledger, revision: Revision) -> dict[str, list[str]]:
    """For each step of a revision, in order, the steps it depends on."""
    rows = ledger.query(
        "SELECT step, target FROM steps LEFT JOIN edges ON source = node AND edges.kind = 'STEP_DEPENDS_ON'"
        " WHERE plan = ? AND revision = ? ORDER BY ordinal, target",
        *_place(revision),
    )
    needs: dict[str, list[str]] = {}
    start = len(revision.node) + 1
    for step, target in rows:
        needs.setdefault(step, []).extend([target[start:]] if target is not None else [])
    return needs


@_answer.register(queries.Difference)
def _(query: queries.Difference, ledger: Ledger) -> QueryResult:
    before, after = (steps.revision(ledger, name, exact=True) for name in (query.before, query.after))
    old = {step.step: step for step in planned(ledger, before)}
    new = {step.step: step for step in planned(ledger, after)}
    both = [name for name in new if name in old]
    return queries.Differences(
        before=before.node,
        after=after.node,
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(_change(old[name], new[name]) for name in both if old[name] != new[name]),
        same=tuple(name for name in both if old[name] == new[name]),
    )


def _change(old: PlannedStep, new: PlannedStep) -> queries.StepChange:
    fields = (
        queries.FieldChange(field=name, before=getattr(old, name), after=getattr(new, name))
        for name in PlannedStep.__struct_fields__
        if getattr(old, name) != getattr(new, name)
    )
    return queries.StepChange(step=new.step, fields=tuple(fields))


def planned(ledger: Ledger, revision: Revision) -> tuple[PlannedStep, ...]:
    """The steps of a revision as they were planned."""
    event = steps.event_at(ledger, revision.seq)
    return event.steps if isinstance(event, ItemOpened | PhasesGenerated | PlanStarted | PlanRescoped) else ()


@_answer.register(queries.Timeline)
def _(query: queries.Timeline, ledger: Ledger) -> QueryResult:
    node, first, last = _period(ledger, query.node)
    found = steps.happened(ledger, node, max(query.after, first - 1), query.limit + 1)
    known = [item for item in found if last is None or item.seq < last]
    moments = tuple(known[: query.limit])
    more = moments[-1].seq if len(known) > query.limit else None
    return queries.Moments(node=query.node, events=moments, next=more)


def _period(ledger: Ledger, node: str) -> tuple[str, int, int | None]:
    """The node whose events are asked for, the first event that counts, and the first that no longer does."""
    if "/" in node:
        return steps.find(ledger, node).node, 0, None
    found = steps.revision(ledger, node)
    if node == found.plan:
        return found.plan, 0, None
    later = [item.seq for item in steps.revisions(ledger, found.plan) if item.revision == found.revision + 1]
    return found.plan, found.seq if found.revision > 1 else 0, later[0] if later else None


@_answer.register(queries.Custody)
def _(query: queries.Custody, ledger: Ledger) -> QueryResult:
    return custody.chain(ledger, query.node)


@_answer.register(queries.Neighbours)
def _(query: queries.Neighbours, ledger: Ledger) -> QueryResult:
    node = steps.exact(query.node)
    _node(ledger, node)
    ends = {"out": ("source",), "in": ("target",), "both": ("source", "target")}[query.direction]
    which = " AND kind = ?" if query.edge else ""
    values = (query.edge,) if query.edge else ()
    edges = {
        edge
        for end in ends
        for edge in ledger.select(queries.Edge, f"edges WHERE {end} = ?{which}", node, *values)
    }
    ordered = sorted(edges, key=lambda edge: (edge.kind, edge.source, edge.target))
    return queries.Edges(node=node, edges=tuple(ordered))


@_answer.register(queries.Node)
def _(query: queries.Node, ledger: Ledger) -> QueryResult:
    return _node(ledger, steps.exact(query.id))


def _node(ledger: Ledger, name: str) -> queries.NodeView:
    for kind, plan, shown, content, seq in ledger.query(
        "SELECT kind, plan, name, hash, seq FROM nodes WHERE id = ?", name
    ):
        view = queries.NodeView(id=name, kind=kind, plan=plan, name=shown, hash=content, seq=seq)
        return _with_state(ledger, view)
    hint = "write it like `plan-001`, `plan-001/phase-1`, `plan-001!risk-1` or `file:src/a.py`"
    raise NotFound(f"there is no node `{name}`", hint)


def _with_state(ledger: Ledger, view: queries.NodeView) -> queries.NodeView:
    if view.kind == "step":
        step = steps.find(ledger, view.id)
        later = steps.superseded_by(ledger, step.plan, step.revision)
        return msgspec.structs.replace(view, step=step, superseded_by=later)
    if view.kind == "risk":
        (risk,) = steps.risks(ledger, "WHERE node = ?", view.id)
        return msgspec.structs.replace(view, risk=risk)
    if view.kind == "plan":
        found = steps.revision(ledger, view.id, exact=True)
        return msgspec.structs.replace(view, superseded_by=steps.superseded_by(ledger, *_place(found)))
    return view


def _place(revision: Revision) -> tuple[str, int]:
    return revision.plan, revision.revision
