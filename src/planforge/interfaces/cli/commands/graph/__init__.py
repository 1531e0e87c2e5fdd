"""Commands about the plan graph: `graph`, `why`, `score`."""

from __future__ import annotations

from typing import Any

import click

from planforge.app.history import graphs
from planforge.app.project import Project
from planforge.errors import InvalidInput
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.commands.graph import drawing
from planforge.interfaces.cli.output import JsonCommand, show, talk
from planforge.kernel.graph import queries
from planforge.kernel.graph.queries import GraphQuery


@click.command(cls=JsonCommand)
@click.argument("plan", required=False, metavar="[PLAN|STEP]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot", "json"]),
    default="text",
    show_default=True,
    help="How to draw the plan.",
)
@click.option("--next", "next_", is_flag=True, help="Only the steps that can start now.")
@click.option("--critical", is_flag=True, help="Only the heaviest chain of steps.")
@click.option("--timeline", is_flag=True, help="What happened to the plan or step.")
@click.option(
    "--custody",
    is_flag=True,
    help="The chain from the goal to the landed commits, with evidence and approvals.",
)
@click.option("--without-evidence", is_flag=True, help="Only steps that are done although no check passed.")
@click.option("--up", metavar="STEP", help="All steps that STEP depends on.")
@click.option("--down", metavar="STEP", help="All steps that depend on STEP.")
@click.option("--diff", nargs=2, metavar="BEFORE AFTER", help="What changed between two revisions.")
@click.option("--query", "text", metavar="JSON", help="Any query of the graph, as JSON.")
def graph(plan: str | None, form: str, text: str | None, **asked: Any) -> None:
    """Show plans, steps and what they depend on

    Without PLAN, shows the plan that changed last. A plan's id or number means its newest revision;
    `plan-001.r1` is exactly the first.

    \b
    Marks: ✓ done  ▶ in progress  ✗ failed  ○ ready  · waits  * on the critical path

    \b
    Examples:
      planforge graph 1
      planforge graph 1 --format mermaid
      planforge graph 1 --next --json
      planforge graph 1/phase-2 --custody
      planforge graph --down 1/phase-1
      planforge graph --diff plan-001 plan-001.r2
      planforge graph --query '{"query": "critical_path", "plan": "plan-001"}'
    """
    project = here()
    query = _query(project, plan, text, asked)
    if query is not None:
        show(graphs.ask(project, query), drawing.answer, as_json=form == "json")
        return
    draw = {"mermaid": drawing.mermaid, "dot": drawing.dot}.get(form, drawing.waves)
    show(graphs.picture(project, _named(project, plan)), draw, as_json=form == "json")


def _named(project: Project, plan: str | None) -> str:
    return graphs.node(project, plan) if plan else graphs.latest(project)


def _query(project: Project, plan: str | None, text: str | None, asked: dict[str, Any]) -> GraphQuery | None:
    """The one query that the options ask for; None if the plan is to be drawn."""
    given = [name for name, value in {**asked, "query": text}.items() if value]
    if len(given) > 1:
        options = " and ".join(f"`--{name.rstrip('_').replace('_', '-')}`" for name in given)
        raise InvalidInput(f"{options} ask for different things", "use one of them")
    if text:
        return queries.parse_query(text)
    match given:
        case ["up" | "down" as direction]:
            start = graphs.node(project, asked[direction])
            return queries.Closure(node=start, direction="up" if direction == "up" else "down")
        case ["diff"]:
            before, after = (graphs.node(project, name) for name in asked["diff"])
            return queries.Difference(before=before, after=after)
        case [name]:
            return _about(name, _named(project, plan))
    return None


def _about(option: str, name: str) -> GraphQuery:
    known: dict[str, GraphQuery] = {
        "next_": queries.NextSteps(plan=name),
        "critical": queries.CriticalPath(plan=name),
        "timeline": queries.Timeline(node=name, limit=10_000),
        "custody": queries.Custody(node=name),
        "without_evidence": queries.WithoutEvidence(plan=name),
    }
    return known[option]


@click.command(cls=JsonCommand)
@click.argument("step")
@click.option("--open", "gate", metavar="GATE", help="Open a gate of the step, as it is planned now.")
@click.option("--settle", "risk", metavar="RISK", help="Settle a risk that blocks the step; needs --reason.")
@click.option("--reason", default="", help="Why the risk is settled; recorded.")
def why(step: str, gate: str | None, risk: str | None, reason: str) -> None:
    """Explain why a step has not started

    Each line is one cause: another step, a risk, a gate, a lease or a budget, with the command that helps.
    `1/phase-2` is the step in the newest revision of the plan.

    \b
    Examples:
      planforge why 1/phase-2
      planforge why plan-001/phase-2 --json
      planforge why 1/phase-2 --open legal
      planforge why 1/phase-2 --settle risk-1 --reason "measured: it is fast enough"
    """
    project = here()
    if gate:
        graphs.open_gate(project, step, gate)
        talk(f"gate {gate} is open")
    if risk:
        graphs.settle_risk(project, step, risk, reason)
        talk(f"risk {risk} is settled")
    show(graphs.why(project, step), drawing.blockers)


@click.command(cls=JsonCommand)
@click.argument("name", metavar="STEP|PLAN")
def score(name: str) -> None:
    """Score a step from its evidence

    Shows every measure with its value, or `unknown`, and its points. The score comes from evidence alone;
    `docs/scores.md` has the formula.

    \b
    Examples:
      planforge score 1/phase-1
      planforge score 1 --json
    """
    show(graphs.scores(here(), name), drawing.scores)
