"""Commands that only read: `status`, `log`, `verify`, `doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli import views
from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show
from planforge.interfaces.cli.typed import line
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.doctor import Diagnosis
    from planforge.app.integrity import Verification


@click.command()
@json_option
def status(as_json: bool) -> None:
    """Show plans, runs, what waits for you, and the next command

    \b
    Example:
      planforge status --json | jq '.plans[].plan.status'
    """
    _print(views.status(as_json=as_json))


@click.command()
@click.option(
    "-n",
    "--last",
    type=int,
    help="How many events, newest last; 0 for all. [default: 30, or all with --since]",
)
@click.option(
    "--run", "--stream", "streams", metavar="NAME", multiple=True, help="Only events of this run or stream."
)
@click.option("--kind", "kinds", metavar="KIND", multiple=True, help="Only events of this kind.")
@click.option("--plan", metavar="PLAN", help="Only events that name this plan.")
@click.option("--since", type=int, default=0, metavar="SEQ", help="Only events after this sequence number.")
@click.option("-f", "--follow", is_flag=True, help="Print new events as they come, until Ctrl-C.")
@json_option
def log(
    last: int | None,
    streams: tuple[str, ...],
    kinds: tuple[str, ...],
    plan: str | None,
    since: int,
    follow: bool,
    as_json: bool,
) -> None:
    """Show what happened, oldest first

    With --json, one JSON object a line. --run and --kind can be repeated.

    \b
    Examples:
      planforge log -n 5
      planforge log --run plan-001
      planforge log --follow --kind StepCompleted --kind StepFailed
      planforge log --since 120 --json
    """
    try:
        _print(
            views.log(
                last=last,
                streams=streams,
                kinds=kinds,
                plan=plan,
                since=since,
                follow=follow,
                as_json=as_json,
            )
        )
    except KeyboardInterrupt:
        if not follow:  # which has no other end
            raise


def _print(texts: Iterator[str]) -> None:
    for text in texts:
        click.echo(text)


@click.command()
@json_option
@click.pass_context
def verify(ctx: click.Context, as_json: bool) -> None:
    """Check that nobody changed the ledger

    Follows the hash chain over all events, checks every object that they refer to, and compares the
    projections with the events. If something was changed, it names the event or the row and exits with 1.
    """
    from planforge.app.integrity import verify as look

    found = look(views.here())
    show(found, lambda: _verification(found), as_json=as_json)
    ctx.exit(0 if found.intact else 1)


def _verification(found: Verification) -> str:
    if found.intact:
        return f"intact: {counted(found.events, 'event')}, {counted(found.objects, 'object')}"
    lines = []
    for fault in found.faults:
        name = f"event {fault.seq} ({fault.kind} of {fault.stream}): " if fault.kind else ""
        lines.append(f"not intact: {name}{fault.problem}")
    return "\n".join(lines)


@click.command()
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool, as_json: bool) -> None:
    """Check this machine and this repository

    Each line is one check and, if something is wrong, the command that repairs it. Exits with 1 if a check
    fails; a warning is not a failure. Some things, such as some logins, cannot be checked and are `unknown`.

    With --fix it writes a missing `.planforge/.gitignore`, removes git's lock files whose processes are dead,
    ends processes that a dead Planforge left, and archives and removes worktrees of ended runs. It prints
    each repair and leaves everything else to you.

    \b
    Examples:
      planforge doctor
      planforge doctor --fix
      planforge doctor --json | jq '.findings[] | select(.status != "ok")'
    """
    from planforge.app.doctor import diagnose, mend

    found = mend(Path.cwd()) if fix else diagnose(Path.cwd())
    show(found, lambda: _diagnosis(found), as_json=as_json)
    ctx.exit(0 if found.healthy else 1)


def _diagnosis(found: Diagnosis) -> str:
    marks = {"ok": "✓ ok", "warn": "⚠ warn", "fail": "✗ fail", "unknown": "? unknown"}
    rows = [
        (marks[item.status], item.id, item.evidence, f"fix: {line(item.fix)}" if item.fix else "")
        for item in found.findings
    ]
    done = [
        f"{'repaired' if item.done else 'could not repair'} {item.id}: {item.said}" for item in found.mended
    ]
    return "\n".join([*done, *([""] if done else []), table(rows)])
