"""`planforge context`: the prompts of agents, part by part."""

from __future__ import annotations

import click

from planforge.app.context.report import ContextCall, ContextReport, report
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import paragraphs, table
from planforge.interfaces.cli.output import JsonCommand, show
from planforge.kernel.wording import counted


@click.command(cls=JsonCommand)
@click.argument("run", required=False)
def context(run: str | None) -> None:
    """Show what the agents of RUN were told, part by part

    Without RUN, shows the newest run. For each call: the tokens of each part, what was left out, and how many
    tokens the prompt would have with the whole history, that is, with all earlier prompts and answers. Tokens
    are estimated as a quarter of the characters.

    \b
    Example:
      planforge context run-002 --json | jq .ratio
    """
    show(report(here(), run), _page)


def _page(found: ContextReport) -> str:
    head = ("role", "in", "tokens", "whole history", "parts")
    rows = [
        (call.role, call.worktree, str(call.tokens), str(call.whole), _parts(call)) for call in found.calls
    ]
    cut = [
        f"  {call.role} in {call.worktree}: {part.name}: {part.left_out}"
        for call in found.calls
        for part in call.parts
        if part.left_out
    ]
    times = f", {found.ratio} times as many" if found.ratio else ""
    used = f"{counted(found.tokens, 'token')} in {counted(len(found.calls), 'call')}"
    total = f"{used}; {found.whole} with the whole history{times}"
    return paragraphs(found.run, table([head, *rows]), "\n".join(["Left out", *cut]) if cut else "", total)


def _parts(call: ContextCall) -> str:
    parts = ", ".join(f"{part.name} {part.tokens}" for part in call.parts)
    return f"{parts or 'not composed'}{' (again, in short)' if call.simplified else ''}"
