"""
A run told from the ledger: rounds, verdicts, steps, attempts, evidence, landing.

Nothing in it comes from memory or from an agent's word alone: a claim stands
beside the evidence, and both are what was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatchmethod
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action
from planforge.app import runs
from planforge.app.items import offers, plans, task_rows
from planforge.app.plans import fixes, phases
from planforge.kernel import events
from planforge.kernel.events import Event, RecordedFinding
from planforge.kernel.evidence import Evidence
from planforge.kernel.scores import StepScore
from planforge.kernel.wording import CANCELLED
from planforge.kernel.work.actions import after_forge, offered
from planforge.kernel.work.items import Kind, kind_of
from planforge.workflows.flows import told_of

if TYPE_CHECKING:
    from planforge.actions import Hint, Verb
    from planforge.app.project import Project

STAGE = "stage"
"""The kind of a step that is a stage of a pipeline."""

SHOWN: dict[Kind, Verb] = {Kind.PLAN: "plan show", Kind.TASK: "task show"}
"""What to do after a run if nothing is left to do."""


class Round(msgspec.Struct, kw_only=True):
    """One audit of the plan."""

    round: int
    by: str
    verdict: str
    findings: tuple[RecordedFinding, ...]
    decision: str
    reason: str


class Attempt(msgspec.Struct, kw_only=True):
    """One try of a step: what the agent said and what Planforge saw."""

    attempt: int
    base: str
    claim: str = ""
    agent: str = ""
    files: tuple[str, ...] = ()
    commit: str = ""
    tree: str = ""
    findings: tuple[events.RecordedFinding, ...] = ()
    protected: tuple[str, ...] = ()
    """Paths that needed a person."""
    evidence: list[Evidence] = []
    """The checks, in order; a second one is of the tree merged with what landed meanwhile."""
    accepted: bool = False
    rejected: str = ""
    landed: str = ""


class Step(msgspec.Struct, kw_only=True):
    """One step of the plan; people know it as a phase."""

    step: str = msgspec.field(name="id")
    title: str
    kind: str
    files: tuple[str, ...]
    depends_on: tuple[str, ...]
    status: str = "pending"
    attempts: list[Attempt] = []
    audit: Round | None = None
    score: StepScore | None = None
    reason: str = ""


class Document(msgspec.Struct, kw_only=True):
    """The whole run."""

    schema_version: int = 1
    run: str
    flow: str = ""
    plan: str = ""
    title: str = ""
    request: str = ""
    path: str = ""
    written: bool = False
    """Whether there ever was a draft."""
    status: str = "running"
    reason: str = ""
    exit_code: int | None = None
    rounds: list[Round] = []
    clean: bool | None = None
    warning: str = ""
    """What is wrong with the form of the plan although nothing blocks."""
    cancelled: bool = False
    """Whether somebody ended the run from outside."""
    approved_by: str = ""
    branch: str = ""
    base: str = ""
    steps: list[Step] = msgspec.field(default_factory=list, name="phases")
    left: list[str] = []
    """Phases that are still to be done, if the run ended before its plan."""
    landed_commit: str = ""
    landed_tree: str = ""
    score: int | None = None
    """The lowest score of any step: a plan is as good as its weakest step."""
    agent_calls: int = 0


def of_run(project: Project, run: str) -> Document:
    """The report of one run."""
    return tell(run, runs.events(project, run))


def following(project: Project, document: Document) -> tuple[Hint, ...]:
    """What a person can do after a run: how a forge went says that, or what the run was about."""
    plan, told = document.plan, told_of(document.flow)
    if told == "forge":
        return after_forge(plan, document.status, written=document.written, cancelled=document.cancelled)
    if told != "run":
        return ()
    shown = SHOWN.get(kind_of(plan))
    return about(project, plan) or ((Action(shown, plan),) if shown else ())


def about(project: Project, item: str) -> tuple[Hint, ...]:
    """What a person can do about a plan, a fix or a task as it is."""
    match kind_of(item):
        case Kind.TASK:
            return tuple(
                offered(item, task_rows.row(project, item).status, offers.known_of_task(project, item))
            )
        case Kind.FIX:
            return tuple(fixes.offered(project, plans.row(project, item)))
    return tuple(phases.offered(project, plans.row(project, item)))


def tell(run: str, history: Iterable[Event]) -> Document:
    """Fold a history into a report."""
    teller = _Teller(run)
    for event in history:
        teller.take(event)
    scores = [step.score.value for step in teller.document.steps if step.score]
    known = [value for value in scores if value is not None]
    teller.document.score = min(known) if known and len(known) == len(scores) else None
    return teller.document


class _Teller:
    """Takes events in order."""

    def __init__(self, run: str) -> None:
        self.document = Document(run=run)
        self._steps: dict[str, Step] = {}

    def _attempt(self, step: str, attempt: int) -> Attempt:
        """The newest one of that number: the attempts of a stage are counted anew in each round."""
        return next(item for item in reversed(self._steps[step].attempts) if item.attempt == attempt)

    @singledispatchmethod
    def take(self, event: Event) -> None:
        """Most events change nothing here."""

    @take.register
    def _(self, event: events.RunStarted) -> None:
        self.document.flow, self.document.plan = event.flow, event.subject

    @take.register
    def _(self, event: events.EffectCompleted) -> None:
        self.document.agent_calls += event.effect == "RunAgent"

    @take.register
    def _(self, event: events.RunParked) -> None:
        self.document.status, self.document.reason = "waiting", event.reason

    @take.register
    def _(self, event: events.RunEnded) -> None:
        self.document.status = "done" if event.succeeded else "failed"
        self.document.reason, self.document.exit_code = event.reason, event.exit_code
        self.document.cancelled = event.reason.startswith(CANCELLED)

    @take.register
    def _(self, event: events.ItemOpened) -> None:
        self.document.title, self.document.request = event.title, event.request
        self.document.path = event.path

    @take.register
    def _(self, event: events.PlanWritten) -> None:
        self.document.title, self.document.written = event.title, True

    @take.register
    def _(self, event: events.AuditRecorded) -> None:
        round_ = Round(
            round=event.round,
            by=event.by,
            verdict=event.verdict,
            findings=event.findings,
            decision=event.decision,
            reason=event.decision_reason,
        )
        if event.step:
            self._steps[event.step].audit = round_
        else:
            self.document.rounds.append(round_)

    @take.register
    def _(self, event: events.PlanForged) -> None:
        self.document.clean, self.document.warning = event.clean, event.warning

    @take.register
    def _(self, event: events.DecisionMade) -> None:
        if event.kind == "approval":
            self.document.approved_by = event.actor

    @take.register
    def _(self, event: events.PlanStarted) -> None:
        if event.run != self.document.run:
            return
        self.document.branch, self.document.base = event.branch, event.base
        for planned in event.steps:
            step = Step(
                step=planned.step,
                title=planned.title,
                kind=planned.kind,
                files=planned.files,
                depends_on=planned.depends_on,
                status=_before(event, planned.step),
            )
            self._steps[planned.step] = step
            self.document.steps.append(step)

    @take.register
    def _(self, event: events.PlanEnded) -> None:
        self.document.landed_commit = event.commit

    @take.register
    def _(self, event: events.PlanPaused) -> None:
        if event.run == self.document.run:
            self.document.landed_commit, self.document.left = event.commit, list(event.left)

    @take.register
    def _(self, event: events.StepStarted) -> None:
        step = self._steps[event.step]
        step.status = "in-progress"
        if step.kind == STAGE and not step.attempts[-1].base:
            step.attempts.pop()  # the round of the stage, which this attempt is
        if (
            step.kind in ("implement", STAGE) or event.attempt > 1
        ):  # the first look of an audit changes nothing
            step.attempts.append(Attempt(attempt=event.attempt, base=event.base))

    @take.register
    def _(self, event: events.PatchProposed) -> None:
        attempt = self._attempt(event.step, event.attempt)
        attempt.claim, attempt.agent = event.claim, event.agent
        attempt.files, attempt.commit, attempt.tree = event.files, event.commit, event.tree

    @take.register
    def _(self, event: events.AttemptInspected) -> None:
        attempt = self._attempt(event.step, event.attempt)
        attempt.findings, attempt.protected = event.findings, event.protected

    @take.register
    def _(self, event: events.VerifyOk | events.VerifyFailed) -> None:
        self._attempt(event.step, event.attempt).evidence.append(event.evidence)

    @take.register
    def _(self, event: events.AttemptRejected) -> None:
        self._attempt(event.step, event.attempt).rejected = event.reason

    @take.register
    def _(self, event: events.PatchApplied) -> None:
        attempt = self._attempt(event.step, event.attempt)
        attempt.accepted, attempt.landed = True, event.commit
        self.document.landed_commit, self.document.landed_tree = event.commit, event.tree

    @take.register
    def _(self, event: events.StageStarted) -> None:
        if event.stage not in self._steps:
            step = Step(step=event.stage, title=event.role, kind=STAGE, files=(), depends_on=())
            self._steps[event.stage] = step
            self.document.steps.append(step)
        self._steps[event.stage].status = "in-progress"
        self._steps[event.stage].attempts.append(Attempt(attempt=event.iteration, base=""))

    @take.register
    def _(self, event: events.StageEnded) -> None:
        if event.stage in self._steps:  # a person lets a stage pass outside of any run
            self._steps[event.stage].status = "failed" if event.outcome == "escalated" else "done"
            self._steps[event.stage].reason = f"{event.outcome}: {event.reason}"

    @take.register
    def _(self, event: events.TaskEnded) -> None:
        if event.run == self.document.run:
            self.document.branch, self.document.landed_commit = event.branch, event.commit

    @take.register
    def _(self, event: events.StepCompleted) -> None:
        if event.step in self._steps:  # a task lands what an earlier run has changed
            self._steps[event.step].status = "done"
            self._steps[event.step].score = event.score

    @take.register
    def _(self, event: events.StepFailed) -> None:
        if event.step in self._steps:
            self._steps[event.step].status = "failed"
            self._steps[event.step].reason = event.reason


def _before(event: events.PlanStarted, step: str) -> str:
    """The status of a step when the run began."""
    if step in event.kept:
        return "done"
    return "skipped" if step in event.skipped else "pending"
