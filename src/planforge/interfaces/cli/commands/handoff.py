"""`planforge handoff`: list handoffs, and show one."""

from __future__ import annotations

import click
import msgspec

from planforge.app.context import handoffs
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import paragraphs, section, table
from planforge.interfaces.cli.output import JsonGroup, show
from planforge.kernel.graph.queries import GraphQuery
from planforge.kernel.handoff import AgentContext
from planforge.kernel.wording import counted

NOTHING = ("nothing",)


@click.group(cls=JsonGroup)
def handoff() -> None:
    """Show what an agent left for its successor

    An agent whose context is nearly full is stopped. The next agent continues from a summary of the ledger
    and the answers to the queries in it, and gets nothing else.
    """


@handoff.command("list")
def list_() -> None:
    """List all handoffs, oldest first"""
    rows = handoffs.listed(here())
    shown = [
        (
            row.handoff,
            f"{row.holder} → {row.successor}",
            f"{'about ' if row.estimated else ''}{counted(row.used, 'token')}",
        )
        for row in rows
    ]
    show(rows, table(shown) or "no handoffs")


@handoff.command("show")
@click.argument("name")
def show_(name: str) -> None:
    """Show one handoff, by its name or by its step

    For a step, shows its newest handoff. A step is named as in `planforge graph`: `1/phase-1` is in the
    plan's newest revision. What comes next is derived from the summary and the answers alone, as the
    successor has them now.

    \b
    Examples:
      planforge handoff show 1/phase-1
      planforge handoff show plan-001/phase-1#2 --json
    """
    show(handoffs.show(here(), name), _page)


def _page(found: AgentContext) -> str:
    summary = found.summary
    guess = "about " if summary.context.estimated else ""
    verified = [(str(r.attempt), r.outcome.value, r.reason) for r in summary.verification_results]
    queries = "\n".join(f"  {_written(query)}" for query in summary.queries)
    return paragraphs(
        f"{summary.step}  attempt {summary.attempt}  {summary.title}",
        f"goal: {summary.goal}",
        f"context: {guess}{summary.context.used} of {summary.context.threshold} tokens",
        section("touched", [(each.path, each.hash[:12]) for each in summary.touched_files] or [NOTHING]),
        section("verified", verified),
        section("failed", [(str(failure.attempt), failure.reason) for failure in summary.failures]),
        section("next", [(each.action, each.target) for each in found.next_actions()] or [NOTHING]),
        f"queries\n{queries}",
    )


def _written(query: GraphQuery) -> str:
    """A query as `planforge graph --query` takes it."""
    return msgspec.json.encode(query).decode()
