"""Commands that start, continue or end work: `init`, `forge`, `resume`, `cancel`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.show import json_option, show, talk
from planforge.interfaces.cli.views import here

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.app.report import Document


@click.command()
@json_option
def init(as_json: bool) -> None:
    """Make this repository ready

    Makes `.planforge`, which git ignores, and `planforge.toml`, unless they are there.
    """
    from planforge.app.setup import initialise

    made = initialise(Path.cwd())
    what = "wrote" if made.settings_written else "left"
    check = f"tests: {made.check}" if made.check else "tests: none found; set `[check]` before running a plan"
    show(made, f"ready: {made.root}\n{what} {made.settings}\n{check}", as_json=as_json)


@click.command()
@click.argument("request")
@click.option("--cap", type=click.IntRange(min=1), help="How many rounds of audit the plan gets.")
@json_option
@click.pass_context
def forge(ctx: click.Context, request: str, cap: int | None, as_json: bool) -> None:
    """Turn REQUEST into a plan: draft, audit, revise until nothing blocks

    REQUEST is what you want, in your words; `-` reads it from standard input. The plan is a Markdown file
    that you can edit; approve it when it says what you mean.

    \b
    Examples:
      planforge forge "Add rate limiting to the webhook"
      planforge forge - < request.md
    """
    from planforge.app.work import begin_forge

    project = here()
    text = sys.stdin.read() if request == "-" else request
    ctx.exit(drive(project, begin_forge(project, text, cap=cap), as_json=as_json))


@click.command()
@click.argument("run", required=False)
@click.option("--now", is_flag=True, help="Do not wait for the end of an agent's limit.")
@json_option
@click.pass_context
def resume(ctx: click.Context, run: str | None, now: bool, as_json: bool) -> None:
    """Go on with RUN, or with every run that can go on

    Those are runs that were interrupted, that wait at a gate at which somebody has decided, and that were
    parked because their agent had reached its limit, once that has ended; before, the exit code is 75.

    What is on record is not done again: no agent is asked twice for an answer that it gave.
    """
    from planforge.app.runs import to_resume

    project = here()
    found = to_resume(project, run, now=now)
    if not found:
        show({"resumed": []}, "nothing to resume", as_json=as_json)
        return
    codes = [drive(project, name, as_json=as_json) for name in found]
    ctx.exit(max(codes))


@click.command()
@click.argument("run")
@click.option("--reason", required=True, help="Why, for the record.")
@json_option
def cancel(run: str, reason: str, as_json: bool) -> None:
    """End the interrupted RUN for good

    What its agents left is kept under `refs/planforge/archive/`; what has landed stays landed. The plan
    returns to review.
    """
    from planforge.app import runs

    project = here()
    ended = runs.cancel(project, run, reason=reason, actor=project.person)
    show(ended, f"{ended.run}: {ended.reason}", as_json=as_json)


def drive(project: Project, run: str, *, as_json: bool) -> int:
    """Drive a run in the foreground, show how it goes and how it ended."""
    from planforge.app import report, runs
    from planforge.interfaces.cli.progress import shown

    talk(f"{run} in {project.root}")
    with shown() as screen:
        ended = runs.drive(project, run, screen, screen)
    document = report.of_run(project, run)
    show(document, lambda: summary(document, _following(project, document)), as_json=as_json)
    return ended.exit_code


def _following(project: Project, document: Document) -> tuple[str, ...]:
    """What can be done about a plan whose run has stopped."""
    from planforge.app import phases

    return phases.view(project, document.plan).next if document.flow == "plan_run" else ()


def summary(document: Document, following: tuple[str, ...] = ()) -> str:
    """How a run ended, in a few lines, with the next command."""
    mark = "✓" if document.status == "done" else "✗"
    lines = [f"{mark} {document.run} {document.status}: {document.reason}"]
    if document.flow == "forge" and not document.written:
        lines.append("next: planforge doctor")
    elif document.flow == "forge":
        lines.append(f"plan: {document.path}")
        verb = "approve" if document.status == "done" else "show"
        lines.append(f"next: planforge plan {verb} {document.plan}")
    elif document.flow == "pipeline":
        lines += [f"branch: {document.branch} at {document.landed_commit[:12]}"] if document.branch else []
        lines.append(f"next: planforge task show {document.plan}")
    elif document.branch:
        lines.append(f"branch: {document.branch} at {document.landed_commit[:12]}")
        lines += [f"next: {command}" for command in following or (f"planforge plan show {document.plan}",)]
    return "\n".join(lines)
