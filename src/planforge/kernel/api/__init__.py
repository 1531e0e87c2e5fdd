"""
The plan kernel for other programs: plans, steps, leases, budgets, handoffs, events, and no workflow of ours.

    kernel = Kernel.open(".")
    plan = kernel.plan.create("Read settings once", steps=[planned("load", files=["settings.py"])])
    for step in kernel.plan.next_steps(plan):
        kernel.step.execute(step, work, verify)

Take what you need: a script may use leases or scores alone, an orchestrator may
have its nodes start, propose and verify steps, and agents in processes of their
own may coordinate by nothing but events. Everything said here is in the ledger of
the directory, so `planforge log`, `graph`, `why` and `verify` show it.
"""

from __future__ import annotations

from planforge.kernel.api.execution import Steps
from planforge.kernel.api.holdings import Budgets, Handoffs, Leases
from planforge.kernel.api.kernel import Kernel
from planforge.kernel.api.plans import Graph, Plans
from planforge.kernel.api.shapes import TTL, Assignment, Proposal, StepOutcome, Verify, Work, planned
from planforge.kernel.budgets import Account
from planforge.kernel.bus import Subscription
from planforge.kernel.continuation import Action, TouchedFile
from planforge.kernel.events import Amounts, PlannedRisk, PlannedStep, Recorded
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.handoff import AgentContext, HandoffSummary
from planforge.kernel.leases.rules import Lease
from planforge.kernel.scores import StepScore
from planforge.kernel.tokens import TokenState

__all__ = [
    "TTL",
    "Account",
    "Action",
    "AgentContext",
    "Amounts",
    "Assignment",
    "Budgets",
    "Counts",
    "Evidence",
    "Graph",
    "HandoffSummary",
    "Handoffs",
    "Kernel",
    "Lease",
    "Leases",
    "Outcome",
    "PlannedRisk",
    "PlannedStep",
    "Plans",
    "Proposal",
    "Recorded",
    "StepOutcome",
    "StepScore",
    "Steps",
    "Subscription",
    "TokenState",
    "TouchedFile",
    "Verify",
    "Work",
    "planned",
]
