"""From the goal to what landed: steps, attempts, patches, evidence and approvals, from the events."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from planforge.kernel import events
from planforge.kernel.evidence import Evidence
from planforge.kernel.graph import queries, steps
from planforge.kernel.graph.steps import Revision
from planforge.kernel.ledger import Ledger


class _Attempt(msgspec.Struct, kw_only=True):
    """An attempt while its events are read."""

    attempt: int
    base: str = ""
    holder: str = ""
    patches: list[queries.PatchRecord] = []
    evidence: list[queries.EvidenceRecord] = []
    rejected: str = ""

    def record(self) -> queries.AttemptRecord:
        """It, as it stands."""
        return queries.AttemptRecord(
            attempt=self.attempt,
            base=self.base,
            holder=self.holder,
            patches=tuple(self.patches),
            evidence=tuple(self.evidence),
            rejected=self.rejected,
        )


class _Step(msgspec.Struct, kw_only=True):
    """A step while its events are read. An attempt number can come again: a plan can be begun again."""

    attempts: list[_Attempt] = []
    approvals: list[queries.Approval] = []

    def attempt(self, number: int) -> _Attempt:
        """The newest attempt with this number."""
        for known in reversed(self.attempts):
            if known.attempt == number:
                return known
        return self.begin(number)

    def begin(self, number: int, base: str = "", holder: str = "") -> _Attempt:
        """Another attempt."""
        self.attempts.append(_Attempt(attempt=number, base=base, holder=holder))
        return self.attempts[-1]


class _Plan(msgspec.Struct, kw_only=True):
    """A plan while its events are read."""

    goal: str = ""
    constraints: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    approvals: list[queries.Approval] = []


def chain(ledger: Ledger, node: str) -> queries.CustodyChain:
    """How what landed follows from what was asked for; of one step, with the steps whose work it keeps."""
    step = steps.find(ledger, node) if "/" in node else None
    found = steps.revision(ledger, step.plan if step else node)
    known = steps.revisions(ledger, found.plan)
    plan, by_node = _Plan(), dict[str, _Step]()
    starts = [0, *(revision.seq for revision in known[1:])]
    for item in steps.happened(ledger, found.plan):
        event = item.event
        revision = known[bisect_right(starts, item.seq) - 1]
        name = getattr(event, "step", "")
        if name:
            _take(by_node.setdefault(f"{revision.node}/{name}", _Step()), item.seq, event)
        else:
            _take_plan(plan, item.seq, event)
    kept = dict(_kept(ledger, known))
    wanted = _back(step.node, kept) if step else _nodes(ledger, found, kept)
    return queries.CustodyChain(
        node=node,
        plan=found.plan,
        goal=plan.goal,
        constraints=plan.constraints,
        criteria=plan.criteria,
        approvals=tuple(plan.approvals),
        steps=tuple(_record(ledger, name, by_node.get(name, _Step()), kept) for name in wanted),
    )


def _record(ledger: Ledger, node: str, step: _Step, kept: dict[str, str]) -> queries.StepRecord:
    view = steps.find(ledger, node)
    return queries.StepRecord(
        node=node,
        title=view.title,
        status=view.status,
        kept_from=kept.get(node, ""),
        attempts=tuple(attempt.record() for attempt in step.attempts),
        approvals=tuple(step.approvals),
    )


def _kept(ledger: Ledger, known: list[Revision]) -> Iterator[tuple[str, str]]:
    """For each step that keeps the work of a step of the revision before: that step."""
    for former, revision in pairwise(known):
        event = steps.event_at(ledger, revision.seq)
        if isinstance(event, events.PhasesGenerated):
            for step in event.kept:
                yield f"{revision.node}/{step.step}", f"{former.node}/{step.was}"
        if isinstance(event, events.PlanRescoped | events.PlanStarted):
            names = {step.step for step in event.steps}
            for name in event.kept:
                if name in names and steps.views(ledger, "WHERE node = ?", f"{former.node}/{name}"):
                    yield f"{revision.node}/{name}", f"{former.node}/{name}"


def _back(node: str, kept: dict[str, str]) -> list[str]:
    """A step, and the steps of earlier revisions whose work it keeps."""
    found = [node]
    while found[-1] in kept:
        found.append(kept[found[-1]])
    return found


def _nodes(ledger: Ledger, revision: Revision, kept: dict[str, str]) -> list[str]:
    where = "WHERE plan = ? AND revision = ? ORDER BY ordinal"
    views = steps.views(ledger, where, revision.plan, revision.revision)
    return [node for view in views for node in _back(view.node, kept)]


def _take_plan(plan: _Plan, seq: int, event: events.Event) -> None:
    match event:
        case events.ItemOpened():
            plan.goal, plan.constraints, plan.criteria = event.request, event.constraints, event.criteria
        case events.DecisionMade(kind="approval"):
            plan.approvals.append(
                queries.Approval(
                    seq=seq, gate=event.name, subject=event.subject, content=event.content, actor=event.actor
                )
            )
        case events.RiskSettled():
            plan.approvals.append(
                queries.Approval(
                    seq=seq, gate="risk", subject=event.risk, content=event.reason, actor=event.actor
                )
            )
        case events.DecisionUsed(kind="approval"):
            _use(plan, event)


def _use(plan: _Plan, event: events.DecisionUsed) -> None:
    for place, known in enumerate(plan.approvals):
        if (known.gate, known.content, known.used_by) == (event.name, event.content, ""):
            plan.approvals[place] = msgspec.structs.replace(known, used_by=event.run)
            return


def _take(step: _Step, seq: int, event: events.Event) -> None:
    match event:
        case events.StepStarted():
            step.begin(event.attempt, event.base, event.holder)
        case events.PatchProposed():
            _propose(step.attempt(event.attempt), seq, event)
        case events.PatchApplied():
            _apply(step.attempt(event.attempt), seq, event)
        case events.VerifyOk() | events.VerifyFailed():
            step.attempt(event.attempt).evidence.append(_evidence(seq, event.evidence))
        case events.AttemptRejected():
            step.attempt(event.attempt).rejected = event.reason
        case events.GateOpened():
            step.approvals.append(
                queries.Approval(
                    seq=seq, gate=event.gate, subject=event.step, content=event.content, actor=event.actor
                )
            )


def _propose(attempt: _Attempt, seq: int, event: events.PatchProposed) -> None:
    attempt.patches.append(
        queries.PatchRecord(
            seq=seq, commit=event.commit, tree=event.tree, agent=event.agent, files=event.files, landed=False
        )
    )


def _apply(attempt: _Attempt, seq: int, event: events.PatchApplied) -> None:
    """The proposed patch landed; or, moved to where the branch was by then, another one in its place."""
    for place, known in enumerate(attempt.patches):
        if known.commit == event.commit:
            attempt.patches[place] = msgspec.structs.replace(known, landed=True)
            return
    agent, files = (attempt.patches[-1].agent, attempt.patches[-1].files) if attempt.patches else ("", ())
    attempt.patches.append(
        queries.PatchRecord(
            seq=seq, commit=event.commit, tree=event.tree, agent=agent, files=files, landed=True
        )
    )


def _evidence(seq: int, found: Evidence) -> queries.EvidenceRecord:
    return queries.EvidenceRecord(
        seq=seq,
        check=found.check,
        outcome=found.outcome.value,
        reason=found.reason,
        tree=found.tree,
        output=found.output,
    )
