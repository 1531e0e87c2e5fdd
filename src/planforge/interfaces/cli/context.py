"""`planforge context`: the prompts of agents, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli import views
from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.context_report import ContextCall, ContextReport


@click.command()
@click.argument("run", required=False)
@json_option
def context(run: str | None, as_json: bool) -> None:
    """Show what the agents of RUN were told, part by part

    Without RUN, shows the newest run. For each call: the tokens of each part, what was left out, and how many
    tokens the prompt would have with the whole history, that is, with all earlier prompts and answers. Tokens
    are estimated as a quarter of the characters.

    \b
    Example:
      planforge context run-002 --json | jq .ratio
    """
    from planforge.app.context_report import report

    found = report(views.here(), run)
    show(found, lambda: _page(found), as_json=as_json)


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
    pages = [found.run, table([head, *rows])]
    if cut:
        pages.append("Left out\n" + "\n".join(cut))
    times = f", {found.ratio} times as many" if found.ratio else ""
    used = f"{counted(found.tokens, 'token')} in {counted(len(found.calls), 'call')}"
    pages.append(f"{used}; {found.whole} with the whole history{times}")
    return "\n\n".join(pages)


def _parts(call: ContextCall) -> str:
    parts = ", ".join(f"{part.name} {part.tokens}" for part in call.parts)
    return f"{parts or 'not composed'}{' (again, in short)' if call.simplified else ''}"
