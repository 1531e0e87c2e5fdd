"""The plan graph for people: plans in waves, what a step waits for, what its evidence is worth."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import REQUEST, Action, Advice
from planforge.errors import InvalidInput, NotFound
from planforge.kernel import dependencies as routes
from planforge.kernel import graph
from planforge.kernel.events import Event
from planforge.kernel.graph.queries import (
    Blocked,
    Blockers,
    CriticalPath,
    CriticalPaths,
    GraphQuery,
    Moment,
    Plan,
    PlanView,
    QueryResult,
    StepView,
)
from planforge.kernel.ledger.rows import read_event
from planforge.kernel.scores import (
    FORMULA,
    LINT,
    ROLLBACKS,
    SIZE,
    TESTS,
    WARNINGS,
    Measures,
    StepScore,
    compute,
)

if TYPE_CHECKING:
    from planforge.app.project import Project

NAME = re.compile(
    r"(?P<prefix>plan-|fix-)?0*(?P<number>[1-9][0-9]{0,8})(?P<revision>\.r[0-9]+)?(?P<rest>[/!].*)?"
)

PARTS = (
    ("diff_size", SIZE),
    ("warnings_delta", WARNINGS),
    ("lint_delta", LINT),
    ("rollback_count", ROLLBACKS),
)
"""The measures that add points of their own, with the most that each can add."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A plan as a graph."""

    schema_version: int = 1
    plan: PlanView
    waves: tuple[tuple[str, ...], ...]
    """The nodes of the steps; each wave needs only the ones before it."""
    critical: CriticalPaths


class Points(msgspec.Struct, frozen=True, kw_only=True):
    """What one measure added to a score."""

    measure: str
    earned: int
    of: int


class ScoreView(msgspec.Struct, frozen=True, kw_only=True):
    """A step, the score on record, and how it came about."""

    step: str
    title: str
    kind: str
    status: str
    score: StepScore | None
    points: tuple[Points, ...]
    reason: str
    """Why there is no score, or none above 0; empty if there is."""


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of some steps."""

    schema_version: int = 1
    steps: tuple[ScoreView, ...]


def node(project: Project, name: str) -> str:
    """
    The node that a person means: `1`, `plan-1` and `plan-001` are the plan, `1/phase-2` is a step of it.

    A fix is always named in full, `fix-1` or `fix-001`, since a number alone is a plan.

    A number alone stands for the newest revision; the full name of a step is exact.
    """
    found = NAME.fullmatch(name.strip())
    if found is None:
        return name.strip()
    plan = f"{found['prefix'] or 'plan-'}{int(found['number']):03}"
    rest = found["rest"] or ""
    if rest and not found["prefix"] and not found["revision"]:
        return f"{graph.newest(project.ledger, plan)}{rest}"
    return f"{plan}{found['revision'] or ''}{rest}"


def latest(project: Project) -> str:
    """The plan that changed last."""
    for (plan,) in project.ledger.query("SELECT plan FROM plans ORDER BY updated_at DESC, plan DESC LIMIT 1"):
        return str(plan)
    raise NotFound("there is no plan yet", Advice("run {}", Action("forge", REQUEST)))


def ask(project: Project, query: GraphQuery) -> QueryResult:
    """The answer to one query."""
    return graph.run_query(project.ledger, query)


def picture(project: Project, plan: str) -> Picture:
    """A plan in waves, with its critical path."""
    view = ask(project, Plan(plan=plan))
    critical = ask(project, CriticalPath(plan=plan))
    assert isinstance(view, PlanView)
    assert isinstance(critical, CriticalPaths)
    waves = routes.waves({step.step: step.depends_on for step in view.steps})
    named = tuple(tuple(f"{view.node}/{step}" for step in wave) for wave in waves)
    return Picture(plan=view, waves=named, critical=critical)


def fact(moment: Moment) -> Event:
    """The event of a moment."""
    return read_event(moment.seq, moment.kind, moment.revision, bytes(moment.body))


def why(project: Project, step: str) -> Blockers:
    """What keeps a step from being started."""
    found = ask(project, Blocked(step=node(project, step)))
    assert isinstance(found, Blockers)
    return found


def open_gate(project: Project, step: str, gate: str) -> None:
    """Let a step through a gate, in the name of whoever is at the keyboard."""
    graph.open_gate(project.ledger, node(project, step), gate, project.person)


def settle_risk(project: Project, step: str, risk: str, reason: str) -> None:
    """Settle a risk that holds a step back, with the reason on record."""
    if not reason.strip():
        raise InvalidInput(f"say why risk `{risk}` is settled", 'add `--reason "…"`')
    found = graph.find(project.ledger, node(project, step))
    graph.settle_risk(project.ledger, found.plan, risk, reason, project.person)


def scores(project: Project, name: str) -> Scores:
    """The score of a step, or of every step of a plan."""
    wanted = node(project, name)
    if "/" in wanted:
        steps: tuple[StepView, ...] = (graph.find(project.ledger, wanted),)
    else:
        view = ask(project, Plan(plan=wanted))
        assert isinstance(view, PlanView)
        steps = view.steps
    return Scores(steps=tuple(_scored(project, step) for step in steps))


def _scored(project: Project, step: StepView) -> ScoreView:
    score = graph.score_of(project.ledger, step.node)
    return ScoreView(
        step=step.node,
        title=step.title,
        kind=step.kind,
        status=step.status,
        score=score,
        points=points(score) if score else (),
        reason=_reason(step, score),
    )


def points(score: StepScore) -> tuple[Points, ...]:
    """What each measure added: what the value would lose without it. What is left was for the tests."""
    if not score.value or score.formula != FORMULA:
        return ()
    found = []
    for name, most in PARTS:
        without = compute(msgspec.structs.replace(score.measures, **{name: None})).value
        found.append(Points(measure=name, earned=score.value - (without or 0), of=most))
    tests = score.value - sum(part.earned for part in found)
    return (Points(measure="tests_passed", earned=tests, of=TESTS), *found)


def _reason(step: StepView, score: StepScore | None) -> str:
    if score is None:
        changes_nothing = f"a step of kind `{step.kind}` has no score" if step.status == "done" else ""
        return changes_nothing or f"the step is {step.status}"
    if score.value:
        return ""
    return _nothing(score.measures)


def _nothing(measures: Measures) -> str:
    if measures.compile_ok is False:
        return "it does not compile"
    if measures.regression_hits:
        return f"{measures.regression_hits} regressions"
    unknown = [
        name
        for name in ("compile_ok", "regression_hits", "tests_passed", "tests_total")
        if getattr(measures, name) is None
    ]
    return f"unknown: {', '.join(unknown)}" if unknown else "no test passed"
