"""
Why a step cannot start, each reason named.

What the graph knows (dependencies, risks, gates) is refused by `start_step`. Leases
and budgets come and go by themselves, so they are said here and decided by those
who grant them.
"""

from __future__ import annotations

from collections.abc import Iterator

from planforge.actions import TEXT, Action
from planforge.errors import InvalidInput
from planforge.kernel.graph.queries import Blocker, StepView
from planforge.kernel.graph.steps import superseded_by, views
from planforge.kernel.hints import recorded
from planforge.kernel.ledger import Ledger
from planforge.kernel.projections.revisions import MET
from planforge.kernel.wording import counted
from planforge.kernel.work import decisions

WAITS = "status = 'waiting' AND subject = ? AND step = ?"
"""The gates that an attempt at a step stands at."""


def waits_for(ledger: Ledger, step: StepView) -> list[Blocker]:
    """The unmet dependencies, open risks and closed gates of a step."""
    return [*_dependencies(ledger, step), *_risks(ledger, step), *_gates(ledger, step)]


def blockers(ledger: Ledger, step: StepView) -> list[Blocker]:
    """Everything that keeps a step from being started now."""
    found = list(_status(ledger, step))
    if step.status in MET or any(blocker.kind == "status" and blocker.name != "failed" for blocker in found):
        return found
    return [*found, *waits_for(ledger, step), *_leases(ledger, step), *_budgets(ledger, step)]


def _status(ledger: Ledger, step: StepView) -> Iterator[Blocker]:
    later = superseded_by(ledger, step.plan, step.revision)
    name = "superseded" if later else step.status
    if later:
        there = views(ledger, "WHERE node = ?", f"{later}/{step.step}")
        reason = f"the plan goes on as {later}"
        help_ = Action("why", f"{later}/{step.step}") if there else Action("graph", later)
    elif name == "in-progress":
        reason = f"{step.holder or 'a run'} is at attempt {step.attempts}"
        help_ = Action("log", run=step.plan)
        for gate in decisions.select(ledger, "gate", WAITS, step.plan, step.step):
            reason, help_ = f"{reason}, which waits for a person at {gate.label}", gate.look
    elif name == "done":
        reason, help_ = "it is done", Action("score", step.node)
    elif name == "skipped":
        reason = f"it was left out: {step.reason}"
        help_ = Action("plan phases", step.plan, regenerate=True, keep_done=True)
    elif name == "failed":
        reason = f"it failed after {counted(step.attempts, 'attempt')}: {step.reason}"
        help_ = Action("graph", step.node, custody=True)
    else:
        return
    yield Blocker(kind="status", name=name, reason=reason, help=recorded(help_))


def _dependencies(ledger: Ledger, step: StepView) -> Iterator[Blocker]:
    unmet = """
    SELECT edges.target, coalesce(needed.status, 'unknown') FROM edges
    LEFT JOIN steps AS needed ON needed.node = edges.target
    WHERE edges.source = ? AND edges.kind = 'STEP_DEPENDS_ON'
    AND coalesce(needed.status, '') NOT IN ('done', 'skipped')
    ORDER BY needed.ordinal, edges.target
    """
    for node, status in ledger.query(unmet, step.node):
        yield Blocker(kind="dependency", name=node, reason=f"is {status}", help=recorded(Action("why", node)))


def _risks(ledger: Ledger, step: StepView) -> Iterator[Blocker]:
    still_open = """
    SELECT risks.risk, risks.severity, risks.description FROM edges JOIN risks ON risks.node = edges.target
    WHERE edges.source = ? AND edges.kind = 'STEP_BLOCKED_BY' AND risks.open ORDER BY risks.risk
    """
    for risk, severity, description in ledger.query(still_open, step.node):
        help_ = Action("why", step.node, settle=risk, reason=TEXT)
        yield Blocker(kind="risk", name=risk, reason=f"{severity}: {description}", help=recorded(help_))


def _gates(ledger: Ledger, step: StepView) -> Iterator[Blocker]:
    closed = "SELECT gate FROM gates WHERE node = ? AND NOT open ORDER BY gate"
    for (gate,) in ledger.query(closed, step.node):
        help_ = Action("why", step.node, open=gate)
        yield Blocker(kind="gate", name=gate, reason="nobody has opened it", help=recorded(help_))


def _leases(ledger: Ledger, step: StepView) -> Iterator[Blocker]:
    from planforge.kernel import leases

    try:
        found = leases.blocking(ledger, step.holder or "", step.files) if step.files else []
    except InvalidInput as error:  # a plan file may name what nobody can lease
        yield Blocker(kind="lease", name=", ".join(step.files), reason=error.message)
        return
    for held in found:
        what = f"leased to {held.holder}" if held.fence else f"waited for by {held.holder}"
        fence = f" (fence {held.fence})" if held.fence else ""
        reason = f"{what} until {held.until}{fence}"
        yield Blocker(kind="lease", name=held.path, reason=reason, help=recorded(Action("lease list")))


def _budgets(ledger: Ledger, step: StepView) -> Iterator[Blocker]:
    from planforge.kernel import budgets

    scopes = dict.fromkeys((f"plan:{step.plan}", f"step:{step.plan}/{step.step}", f"step:{step.node}"))
    for scope in scopes:
        for reason in budgets.exhausted(ledger, (scope,)):
            yield Blocker(kind="budget", name=scope, reason=reason, help=recorded(Action("budget")))
