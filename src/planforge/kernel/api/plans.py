"""Plans, and questions to the plan graph, for other programs."""

from __future__ import annotations

from collections.abc import Iterable

from planforge.kernel import graph, leases
from planforge.kernel.api.shapes import Commands
from planforge.kernel.events import PlannedRisk, PlannedStep, Recorded
from planforge.kernel.graph.answers import run_query
from planforge.kernel.graph.queries import (
    GraphQuery,
    NextSteps,
    Plan,
    PlanView,
    QueryResult,
    StepList,
)
from planforge.kernel.leases.rules import Lease
from planforge.kernel.projections.revisions import MET


class Plans(Commands):
    """Plans and their revisions. A plan is named by its id, such as `plan-001`, for its newest revision."""

    def create(
        self,
        goal: str,
        constraints: Iterable[str] = (),
        *,
        criteria: Iterable[str] = (),
        steps: Iterable[PlannedStep] = (),
        risks: Iterable[PlannedRisk] = (),
        title: str = "",
    ) -> str:
        """Record a plan and return its id. Cycles, unknown and doubled ids are refused (`InvalidGraph`)."""
        return graph.create_plan(
            self._ledger,
            self._redact.text(goal),
            title=self._redact.text(title),
            constraints=tuple(map(self._redact.text, constraints)),
            criteria=tuple(map(self._redact.text, criteria)),
            steps=tuple(map(self._redact.struct, steps)),
            risks=tuple(map(self._redact.struct, risks)),
        )

    def next_steps(self, plan: str, limit: int = 20) -> tuple[str, ...]:
        """The nodes of the steps that can start now, in the order of the plan."""
        found = run_query(self._ledger, NextSteps(plan=plan, limit=limit))
        assert isinstance(found, StepList)
        return tuple(step.node for step in found.steps)

    def rescope(
        self, plan: str, reason: str, steps: Iterable[PlannedStep], risks: Iterable[PlannedRisk] = ()
    ) -> str:
        """
        Give the plan a new revision, which supersedes the one before, and return its node.

        What is done and planned as it was stays done. Attempts under way at the old one are refused from then
        on (`Superseded`); whoever makes them gives the files back with `step.release`.
        """
        return graph.rescope(
            self._ledger,
            plan,
            self._redact.text(reason),
            tuple(map(self._redact.struct, steps)),
            tuple(map(self._redact.struct, risks)),
        )

    def view(self, plan: str) -> PlanView:
        """The plan's newest revision with its steps and risks."""
        found = run_query(self._ledger, Plan(plan=plan))
        assert isinstance(found, PlanView)
        return found

    def is_done(self, plan: str) -> bool:
        """Whether there are steps in the newest revision, and every one of them is done or was left out."""
        steps = self.view(plan).steps
        return bool(steps) and all(step.status in MET for step in steps)

    def newest(self) -> str:
        """The id of the plan that was made last; empty if there is none."""
        newest = "SELECT plan FROM plans ORDER BY length(plan) DESC, plan DESC LIMIT 1"
        return next((str(plan) for (plan,) in self._ledger.query(newest)), "")

    def raise_risk(self, plan: str, risk: PlannedRisk) -> None:
        """Hold back the steps that a newly found risk blocks."""
        risk = self._redact.struct(risk)
        graph.raise_risk(self._ledger, plan, risk.risk, risk.description, risk.severity, risk.blocks)

    def settle_risk(self, plan: str, risk: str, *, reason: str, actor: str) -> None:
        """Let go on what a risk held back."""
        graph.settle_risk(self._ledger, plan, risk, self._redact.text(reason), actor)


class Graph(Commands):
    """Questions to the plan graph."""

    def query(self, query: GraphQuery) -> QueryResult:
        """The answer to one query; see `planforge.kernel.graph.queries`."""
        return run_query(self._ledger, query)

    def file_lease(self, path: str) -> Lease | None:
        """The live lease that covers the file at `path`, if there is one."""
        return leases.of_path(self._ledger, path)

    def timeline(self, plan: str) -> list[Recorded]:
        """Everything that was recorded in the plan's own stream, oldest first."""
        return list(self._ledger.stream(plan))
