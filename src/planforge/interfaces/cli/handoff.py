"""Commands about handoffs: `handoff list`, `handoff show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli import views
from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.kernel.graph.queries import GraphQuery
    from planforge.kernel.handoff import AgentContext


@click.group()
def handoff() -> None:
    """Show what an agent left for its successor

    An agent whose context is nearly full is stopped. The next agent continues from a summary of the ledger
    and the answers to the queries in it, and gets nothing else.
    """


@handoff.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List all handoffs, oldest first"""
    from planforge.app import handoffs

    rows = handoffs.listed(views.here())
    shown = [
        (
            row.handoff,
            f"{row.holder} → {row.successor}",
            f"{'about ' if row.estimated else ''}{counted(row.used, 'token')}",
        )
        for row in rows
    ]
    show(rows, lambda: table(shown) or "no handoffs", as_json=as_json)


@handoff.command("show")
@click.argument("name")
@json_option
def show_(name: str, as_json: bool) -> None:
    """Show one handoff, by its name or by its step

    For a step, shows its newest handoff. A step is named as in `planforge graph`: `1/phase-1` is in the
    plan's newest revision. What comes next is derived from the summary and the answers alone, as the
    successor has them now.

    \b
    Examples:
      planforge handoff show 1/phase-1
      planforge handoff show plan-001/phase-1#2 --json
    """
    from planforge.app import handoffs

    found = handoffs.show(views.here(), name)
    show(found, lambda: _page(found), as_json=as_json)


def _page(found: AgentContext) -> str:
    summary = found.summary
    guess = "about " if summary.context.estimated else ""
    parts = [
        f"{summary.step}  attempt {summary.attempt}  {summary.title}",
        f"goal: {summary.goal}",
        f"context: {guess}{summary.context.used} of {summary.context.threshold} tokens",
        "touched\n" + (table([(f.path, f.hash[:12]) for f in summary.touched_files], "  ") or "  nothing"),
    ]
    if summary.verification_results:
        rows = [(str(r.attempt), r.outcome.value, r.reason) for r in summary.verification_results]
        parts.append("verified\n" + table(rows, "  "))
    if summary.failures:
        failed = [(str(failure.attempt), failure.reason) for failure in summary.failures]
        parts.append("failed\n" + table(failed, "  "))
    parts.append(
        "next\n" + (table([(a.action, a.target) for a in found.next_actions()], "  ") or "  nothing")
    )
    parts.append("queries\n" + "\n".join(f"  {_written(query)}" for query in summary.queries))
    return "\n\n".join(parts)


def _written(query: GraphQuery) -> str:
    """A query as `planforge graph --query` takes it."""
    import msgspec

    return msgspec.json.encode(query).decode()
