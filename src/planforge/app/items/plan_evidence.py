"""The evidence page of a plan, from the ledger, without secrets and without the paths of this machine."""

from __future__ import annotations

from contextlib import suppress
from functools import singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.app.items import plans
from planforge.documents import markdown
from planforge.documents.evidence_page import AuditEvidence, EvidencePage, StepEvidence, Yes
from planforge.documents.plan import content_hash
from planforge.errors import PlanforgeError
from planforge.kernel import events
from planforge.kernel.events import Event
from planforge.kernel.evidence import Evidence
from planforge.kernel.graph.steps import happened
from planforge.kernel.redaction import Redactor
from planforge.kernel.scores import StepScore

if TYPE_CHECKING:
    from planforge.app.items.plans import PlanRow
    from planforge.app.project import Project


def page(project: Project, name: str) -> EvidencePage:
    """Everything that is on record of a plan, as one page."""
    plan = plans.row(project, name)
    gathered = _Gathered()
    for item in happened(project.ledger, plan.plan):
        gathered.at = item.at
        gathered.take(item.event)
    objective, stale = _objective(project, plan, gathered)
    found = EvidencePage(
        plan=plan.plan,
        title=plan.title,
        status=plan.status,
        objective=objective,
        stale=stale,
        reason=gathered.reason,
        branch=plan.branch,
        base=gathered.base,
        commit=plan.landed,
        runs=tuple(gathered.runs),
        steps=tuple(gathered.step(row) for row in plans.steps(project, plan.plan)),
        audits=tuple(gathered.audits.values()),
        approvals=tuple(gathered.approvals),
        landed=tuple(dict.fromkeys(gathered.landed)),
        pull_requests=tuple(gathered.pull_requests),
    )
    return Redactor.of_environment().struct(_without_places(project, found))


def _objective(project: Project, plan: PlanRow, gathered: _Gathered) -> tuple[str, bool]:
    """What the plan that was carried out is for, and whether that cannot be told any more."""
    texts: list[str] = []
    with suppress(PlanforgeError):  # no file
        texts.append(plans.text(project, plan))
    with suppress(PlanforgeError):  # none that was ever drafted
        texts.append(plans.recorded_text(project, plan.plan))
    said = [(markdown.body(text, "Objective") or "").strip() for text in texts]
    for text, objective in zip(texts, said, strict=True):
        if objective and gathered.content in ("", content_hash(text)):
            return objective, False
    found = next((objective for objective in reversed(said) if objective), "")
    return (found, True) if found else (gathered.request, False)


def _without_places(project: Project, found: EvidencePage) -> EvidencePage:
    """The commands as anybody could type them: without where this repository and this home lie."""
    places = {str(project.root): ".", str(Path.home()): "~"}

    def shortened(words: tuple[str, ...]) -> tuple[str, ...]:
        for place, short in places.items():
            words = tuple(word.replace(place, short) for word in words) if len(place) > 1 else words
        return words

    def without(evidence: Evidence) -> Evidence:
        parts = tuple(
            msgspec.structs.replace(part, command=shortened(part.command)) for part in evidence.parts
        )
        return msgspec.structs.replace(evidence, command=shortened(evidence.command), parts=parts)

    steps = tuple(
        msgspec.structs.replace(step, evidence=without(step.evidence)) if step.evidence else step
        for step in found.steps
    )
    return msgspec.structs.replace(found, steps=steps)


class _Gathered:
    """What the events say, taken in order."""

    def __init__(self) -> None:
        self.at = ""
        self.request = ""
        self.content = ""
        """The content that was carried out last."""
        self.base = ""
        self.reason = ""
        self.runs: list[str] = []
        self.audits: dict[str, AuditEvidence] = {}
        self.approvals: list[Yes] = []
        self.landed: list[str] = []
        self.pull_requests: list[str] = []
        self._passed: dict[tuple[str, str], Evidence] = {}
        self._applied: dict[str, events.PatchApplied] = {}
        self._scores: dict[str, StepScore | None] = {}
        self._agents: dict[tuple[str, str], str] = {}

    def step(self, row: plans.StepRow) -> StepEvidence:
        """One step, with the evidence of the tree that it landed as."""
        applied = self._applied.get(row.step) if row.landed else None
        return StepEvidence(
            step=row.step,
            title=row.title,
            kind=row.kind,
            status=row.status,
            attempts=row.attempts,
            commit=row.landed,
            tree=applied.tree if applied else "",
            agent=self._agents.get((row.step, row.landed), ""),
            evidence=self._passed.get((row.step, applied.tree)) if applied else None,
            score=self._scores.get(row.step),
            reason=row.reason,
        )

    @singledispatchmethod
    def take(self, event: Event) -> None:
        """Most events change nothing here."""

    @take.register
    def _(self, event: events.ItemOpened) -> None:
        self.request = event.request

    @take.register
    def _(self, event: events.PlanStarted) -> None:
        self.content, self.base = event.content, self.base or event.base
        self.runs.append(event.run)

    @take.register
    def _(self, event: events.PlanEnded) -> None:
        self.reason = event.reason

    @take.register
    def _(self, event: events.DecisionMade) -> None:
        if event.approves:
            yes = Yes(
                actor=event.actor, what=event.name, content=event.content, at=self.at, reason=event.reason
            )
            self.approvals.append(yes)

    @take.register
    def _(self, event: events.AuditRecorded) -> None:
        self.audits[event.step] = AuditEvidence(
            of=event.step, round=event.round, by=event.by, verdict=event.verdict, findings=event.findings
        )

    @take.register
    def _(self, event: events.PatchProposed) -> None:
        self._agents[event.step, event.commit] = event.agent

    @take.register
    def _(self, event: events.VerifyOk) -> None:
        self._passed[event.step, event.evidence.tree] = event.evidence

    @take.register
    def _(self, event: events.PatchApplied) -> None:
        self._applied[event.step] = event

    @take.register
    def _(self, event: events.StepCompleted) -> None:
        self._scores[event.step] = event.score

    @take.register
    def _(self, event: events.PlanLanded) -> None:
        self.landed.append(event.branch)

    @take.register
    def _(self, event: events.PullRequestOpened) -> None:
        self.pull_requests.append(event.url)
