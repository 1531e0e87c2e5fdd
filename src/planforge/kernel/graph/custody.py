"""From the goal to what landed: steps, attempts, patches, evidence and approvals, from the events."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from planforge.kernel import events
from planforge.kernel.evidence import Evidence
from planforge.kernel.graph import queries, steps
from planforge.kernel.graph.steps import Revision
from planforge.kernel.ledger import Ledger


class _Step(msgspec.Struct, kw_only=True):
    """A step while its events are read. An attempt number can come again: a plan can be begun again."""

    attempts: list[queries.AttemptRecord] = []
    approvals: list[queries.Approval] = []

    def begin(self, number: int, base: str = "", holder: str = "") -> None:
        """Another attempt."""
        self.attempts.append(
            queries.AttemptRecord(
                attempt=number, base=base, holder=holder, patches=(), evidence=(), rejected=""
            )
        )

    def change(self, number: int, changed: Callable[[queries.AttemptRecord], queries.AttemptRecord]) -> None:
        """Something happened in the newest attempt with this number."""
        if all(known.attempt != number for known in self.attempts):
            self.begin(number)
        place = max(place for place, known in enumerate(self.attempts) if known.attempt == number)
        self.attempts[place] = changed(self.attempts[place])


def chain(ledger: Ledger, node: str) -> queries.CustodyChain:
    """How what landed follows from what was asked for; of one step, with the steps whose work it keeps."""
    step = steps.find(ledger, node) if "/" in node else None
    found = steps.revision(ledger, step.plan if step else node)
    known = steps.revisions(ledger, found.plan)
    created: events.ItemOpened | None = None
    approvals: list[queries.Approval] = []
    by_node: dict[str, _Step] = {}
    starts = [0, *(revision.seq for revision in known[1:])]
    for item in steps.happened(ledger, found.plan):
        event = item.event
        revision = known[bisect_right(starts, item.seq) - 1]
        if name := getattr(event, "step", ""):
            _take(by_node.setdefault(f"{revision.node}/{name}", _Step()), item.seq, event)
        elif isinstance(event, events.ItemOpened):
            created = event
        elif isinstance(event, events.DecisionUsed) and event.kind == "approval":
            _use(approvals, event)
        else:
            approvals += _approval(item.seq, event)
    kept = dict(_kept(ledger, known))
    wanted = _back(step.node, kept) if step else _nodes(ledger, found, kept)
    return queries.CustodyChain(
        node=node,
        plan=found.plan,
        goal=created.request if created else "",
        constraints=created.constraints if created else (),
        criteria=created.criteria if created else (),
        approvals=tuple(approvals),
        steps=tuple(_record(ledger, name, by_node.get(name, _Step()), kept) for name in wanted),
    )


def _record(ledger: Ledger, node: str, step: _Step, kept: dict[str, str]) -> queries.StepRecord:
    view = steps.find(ledger, node)
    return queries.StepRecord(
        node=node,
        title=view.title,
        status=view.status,
        kept_from=kept.get(node, ""),
        attempts=tuple(step.attempts),
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


def _approval(seq: int, event: events.Event) -> Iterator[queries.Approval]:
    """A person's yes, if that is what the event says."""
    match event:
        case events.DecisionMade(kind="approval"):
            gate, subject, content = event.name, event.subject, event.content
        case events.RiskSettled():
            gate, subject, content = "risk", event.risk, event.reason
        case events.GateOpened():
            gate, subject, content = event.gate, event.step, event.content
        case _:
            return
    yield queries.Approval(seq=seq, gate=gate, subject=subject, content=content, actor=event.actor)


def _use(approvals: list[queries.Approval], event: events.DecisionUsed) -> None:
    for place, known in enumerate(approvals):
        if (known.gate, known.content, known.used_by) == (event.name, event.content, ""):
            approvals[place] = replace(known, used_by=event.run)
            return


def _take(step: _Step, seq: int, event: events.Event) -> None:
    match event:
        case events.StepStarted():
            step.begin(event.attempt, event.base, event.holder)
        case events.PatchProposed(commit=commit, tree=tree, agent=agent, files=files):
            patch = queries.PatchRecord(
                seq=seq, commit=commit, tree=tree, agent=agent, files=files, landed=False
            )
            step.change(event.attempt, lambda known: replace(known, patches=(*known.patches, patch)))
        case events.PatchApplied():
            step.change(
                event.attempt, lambda known: replace(known, patches=_applied(known.patches, seq, event))
            )
        case events.VerifyOk() | events.VerifyFailed():
            seen = _evidence(seq, event.evidence)
            step.change(event.attempt, lambda known: replace(known, evidence=(*known.evidence, seen)))
        case events.AttemptRejected():
            step.change(event.attempt, lambda known: replace(known, rejected=event.reason))
        case _:
            step.approvals += _approval(seq, event)


def _applied(
    patches: tuple[queries.PatchRecord, ...], seq: int, event: events.PatchApplied
) -> tuple[queries.PatchRecord, ...]:
    """The proposed patch landed; or, moved to where the branch was by then, another one in its place."""
    for place, known in enumerate(patches):
        if known.commit == event.commit:
            landed = replace(known, landed=True)
            return (*patches[:place], landed, *patches[place + 1 :])
    agent, files = (patches[-1].agent, patches[-1].files) if patches else ("", ())
    landed = queries.PatchRecord(
        seq=seq, commit=event.commit, tree=event.tree, agent=agent, files=files, landed=True
    )
    return (*patches, landed)


def _evidence(seq: int, found: Evidence) -> queries.EvidenceRecord:
    return queries.EvidenceRecord(
        seq=seq,
        check=found.check,
        outcome=found.outcome.value,
        reason=found.reason,
        tree=found.tree,
        output=found.output,
    )
