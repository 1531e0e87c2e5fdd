"""
Plans as graphs: what may be recorded about them, and what is refused.

Each command decides and records in one transaction, so of two that would exclude
each other exactly one wins. Nothing is overwritten: a changed plan is a new
revision, and what belongs to an older one is refused from then on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from planforge.actions import Action, Advice
from planforge.errors import InvalidGraph, InvalidInput, NotFound, RefusedByGate
from planforge.kernel import dependencies
from planforge.kernel.events import (
    GateOpened,
    ItemOpened,
    PlannedRisk,
    PlannedStep,
    PlanRescoped,
    RiskRaised,
    RiskSettled,
)
from planforge.kernel.graph.answers import run_query
from planforge.kernel.graph.attempts import (
    fail_step,
    require_attempt,
    start_step,
)
from planforge.kernel.graph.steps import (
    current,
    find,
    newest,
    plain,
    revision,
    risks,
    score_of,
    views,
)
from planforge.kernel.ledger import Ledger, Write
from planforge.kernel.paths import normalise
from planforge.kernel.projections.revisions import content_of, open_risks
from planforge.kernel.work.items import Kind, following

__all__ = [
    "check_steps",
    "create_plan",
    "fail_step",
    "find",
    "newest",
    "open_gate",
    "raise_risk",
    "require_attempt",
    "rescope",
    "run_query",
    "score_of",
    "settle_risk",
    "start_step",
]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
HEAVIEST = 1_000_000_000
"""More than any step weighs; sums of weights stay exact anywhere."""


# What can be a plan


def check_steps(steps: Sequence[PlannedStep], risks: Sequence[PlannedRisk] = ()) -> None:
    """Refuse steps and risks that cannot be a plan; a cycle is refused with its whole path."""
    _check_names([step.step for step in steps], "step")
    _check_names([risk.risk for risk in risks], "risk")
    known = {step.step for step in steps}
    for step in steps:
        _check_step(step, known)
    for risk in risks:
        _check_blocks(risk.risk, risk.blocks, known)
    path = dependencies.cycle({step.step: step.depends_on for step in steps})
    if path:
        raise InvalidGraph(f"steps wait for each other: `{' → '.join(path)}`")


def _check_names(found: Sequence[str], what: str) -> None:
    for name, count in Counter(found).items():
        if not NAME.fullmatch(name):
            raise InvalidGraph(
                f"`{name}` cannot be the id of a {what}", "use letters, digits, `.`, `_` and `-`"
            )
        if count > 1:
            raise InvalidGraph(f"there are {count} {what}s with the id `{name}`")


def _check_step(step: PlannedStep, known: set[str]) -> None:
    if step.step in step.depends_on:
        raise InvalidGraph(f"step `{step.step}` depends on itself: `{step.step} → {step.step}`")
    for needed in step.depends_on:
        if needed not in known:
            raise InvalidGraph(f"step `{step.step}` depends on `{needed}`, which is not in the plan")
    if not 1 <= step.weight <= HEAVIEST:
        raise InvalidGraph(f"step `{step.step}` has the weight {step.weight}, not one from 1 to {HEAVIEST}")
    if "" in step.gates:
        raise InvalidGraph(f"step `{step.step}` has a gate without a name")
    for path in step.files:
        try:
            normalise(path)
        except InvalidInput as error:
            raise InvalidGraph(f"step `{step.step}`: {error.message}", error.hint) from error


def _check_blocks(risk: str, blocks: Sequence[str], known: set[str]) -> None:
    for step in blocks:
        if step not in known:
            raise InvalidGraph(f"risk `{risk}` blocks `{step}`, which is not in the plan")


# Plans


def create_plan(
    ledger: Ledger,
    goal: str,
    *,
    title: str = "",
    constraints: Sequence[str] = (),
    criteria: Sequence[str] = (),
    steps: Sequence[PlannedStep] = (),
    risks: Sequence[PlannedRisk] = (),
) -> str:
    """Record a plan under the next free number, and return its id."""
    if not goal.strip():
        raise InvalidInput("a plan needs a goal")
    check_steps(steps, risks)

    def decide() -> list[Write]:
        newest = "kind = 'plan' AND item GLOB 'plan-[0-9]*' ORDER BY length(item) DESC, item DESC LIMIT 1"
        names = ledger.query(f"SELECT item FROM items WHERE {newest}")  # noqa: S608  (a constant)
        plan = following(Kind.PLAN, (name for (name,) in names))
        created = ItemOpened(
            item=plan,
            title=title or goal.strip().splitlines()[0][:80],
            request=goal,
            path="",
            constraints=tuple(constraints),
            criteria=tuple(criteria),
            steps=tuple(steps),
            risks=tuple(risks),
        )
        return [Write(plan, 0, [created])]

    (recorded,) = ledger.transact(decide)
    return recorded.stream


def rescope(
    ledger: Ledger,
    plan: str,
    reason: str,
    steps: Sequence[PlannedStep],
    risks: Sequence[PlannedRisk] = (),
) -> str:
    """
    Give the plan a new revision, and return its node.

    Steps that are done and planned exactly as they were stay done. Risks that are open go on holding back the
    steps that are still there: settling one takes a reason of its own.
    """
    check_steps(steps, risks)
    named = {risk.risk for risk in risks}

    def decide() -> list[Write]:
        former = revision(ledger, plain(plan))
        _refuse_while_it_runs(ledger, former.plan)
        done = dict(ledger.query(DONE, former.plan, former.revision))
        carried = open_risks(ledger.query, former.node, steps)
        event = PlanRescoped(
            plan=former.plan,
            revision=former.revision + 1,
            reason=reason,
            steps=tuple(steps),
            risks=(*risks, *(risk for risk in carried if risk.blocks and risk.risk not in named)),
            kept=tuple(step.step for step in steps if done.get(step.step) == content_of(step)),
        )
        return [Write(former.plan, None, [event])]

    (recorded,) = ledger.transact(decide)
    return newest(ledger, recorded.stream)


DONE = "SELECT step, content FROM steps WHERE plan = ? AND revision = ? AND status = 'done'"


def _refuse_while_it_runs(ledger: Ledger, plan: str) -> None:
    unfinished = "SELECT run FROM runs WHERE subject = ? AND run IN unfinished ORDER BY run"
    for (run,) in ledger.query(unfinished, plan):
        raise RefusedByGate(
            f"`{plan}` has an unfinished run, `{run}`",
            Advice("run {} or {}", Action("resume", run), Action("cancel", run)),
        )


# Risks and gates


def raise_risk(
    ledger: Ledger, plan: str, risk: str, description: str, severity: str, blocks: Sequence[str]
) -> None:
    """Hold back the steps that a newly found risk blocks."""
    _check_names([risk], "risk")

    def decide() -> list[Write]:
        found = revision(ledger, plain(plan))
        if risks(ledger, "WHERE node = ?", f"{found.node}!{risk}"):
            raise InvalidGraph(f"`{found.node}` has a risk `{risk}` already", "give it another id")
        known = views(ledger, "WHERE plan = ? AND revision = ?", found.plan, found.revision)
        _check_blocks(risk, blocks, {view.step for view in known})
        event = RiskRaised(
            plan=found.plan, risk=risk, description=description, severity=severity, blocks=tuple(blocks)
        )
        return [Write(found.plan, None, [event])]

    ledger.transact(decide)


def settle_risk(ledger: Ledger, plan: str, risk: str, reason: str, actor: str) -> None:
    """Let go on what a risk held back. A risk that is settled already stays as it is."""
    if not reason.strip():
        raise InvalidInput(f"say why risk `{risk}` is settled")

    def decide() -> list[Write]:
        found = revision(ledger, plain(plan))
        known = risks(ledger, "WHERE revision = ? ORDER BY risk", found.node)
        same = [item for item in known if item.risk == risk]
        if not same:
            listed = ", ".join(f"`{item.risk}`" for item in known)
            raise NotFound(f"`{found.node}` has no risk `{risk}`", f"it has {listed}" if listed else None)
        event = RiskSettled(plan=found.plan, risk=risk, reason=reason, actor=actor)
        return [Write(found.plan, None, [event])] if same[0].open else []

    ledger.transact(decide)


def open_gate(ledger: Ledger, step: str, gate: str, actor: str) -> None:
    """A person's yes to a step as it is planned now. A gate that is open already stays as it is."""

    def decide() -> list[Write]:
        found = current(ledger, step)
        gates = dict(ledger.query("SELECT gate, open FROM gates WHERE node = ? ORDER BY gate", found.node))
        if gate not in gates:
            listed = ", ".join(f"`{name}`" for name in gates)
            raise NotFound(f"`{found.node}` has no gate `{gate}`", f"it has {listed}" if listed else None)
        ((content,),) = ledger.query("SELECT content FROM steps WHERE node = ?", found.node)
        event = GateOpened(plan=found.plan, step=found.step, gate=gate, content=content, actor=actor)
        return [] if gates[gate] else [Write(found.plan, None, [event])]

    ledger.transact(decide)
