"""Commands that start, continue or end work: `init`, `resume`, `cancel`; `forge.py` has its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.errors import Interrupted, PlanforgeError, TryLater
from planforge.interfaces.cli.options import given_up_option
from planforge.interfaces.cli.show import json_option, show, talk
from planforge.interfaces.cli.typed import next_lines, text
from planforge.interfaces.cli.views import here

if TYPE_CHECKING:
    from planforge.actions import Hint
    from planforge.app.project import Project
    from planforge.app.report import Document


@click.command()
@json_option
def init(as_json: bool) -> None:
    """Set up this repository for Planforge

    Creates `.planforge`, which git ignores, and `planforge.toml`, unless they exist.
    """
    from planforge.app.setup import initialise

    made = initialise(Path.cwd())
    what = "wrote" if made.settings_written else "left"
    check = f"tests: {made.check}" if made.check else "tests: none found; set `[check]` before running a plan"
    show(made, f"ready: {made.root}\n{what} {made.settings}\n{check}", as_json=as_json)


@click.command()
@click.argument("run", required=False)
@click.option("--now", is_flag=True, help="Do not wait until an agent's usage limit ends.")
@json_option
@click.pass_context
def resume(ctx: click.Context, run: str | None, now: bool, as_json: bool) -> None:
    """Resume RUN, or every run that can be resumed

    These are interrupted runs, runs whose gate has been decided, and runs that waited for a usage limit to
    end. Before that time the exit code is 75.

    If a run has to wait again, the others continue; the end lists what each run waits for. The exit code is
    then the worst of all.

    Recorded work is not repeated: no agent is asked twice for the same answer.
    """
    from planforge.app.runs import to_resume, waiting_for

    project = here()
    found = to_resume(project, run, now=now)
    if not found:
        waits = waiting_for(project, run)
        text = "\n".join(["nothing to resume", *next_lines(waits)])
        show({"resumed": [], "next": waits}, text, as_json=as_json)
        return
    if len(found) == 1:
        ctx.exit(drive(project, found[0], as_json=as_json))
    ctx.exit(_drive_all(project, found, as_json=as_json))


def _drive_all(project: Project, found: list[str], *, as_json: bool) -> int:
    """Drive several runs, one after the other, also if one fails; returns the worst exit code."""
    from planforge.app.runs import waiting_for

    codes: list[int] = []
    resumed: list[Document] = []
    stopped: list[dict[str, object]] = []
    lines: list[str] = []
    for name in found:
        try:
            document, code = driven(project, name)
        except Interrupted:
            raise
        except PlanforgeError as error:
            code = error.exit_code
            stopped.append(
                {"run": name, "reason": error.message, "hint": text(error.hint) or None, "exit_code": code}
            )
            lines.append(f"⏸ {name} stopped: {error.message}")
        else:
            resumed.append(document)
            lines.append(summary(document, following(project, document)))
        codes.append(code)
    waits = [action for name in found for action in waiting_for(project, name)]
    lines += next_lines(waits)
    told = {"schema_version": 1, "resumed": resumed, "stopped": stopped, "next": waits}
    show(told, "\n".join(lines), as_json=as_json)
    return max(codes, key=lambda code: (bool(code), code != TryLater.exit_code, code))


@click.command()
@click.argument("run")
@given_up_option
@json_option
def cancel(run: str, reason: str, as_json: bool) -> None:
    """Cancel RUN at once, also if it runs in another terminal

    Stops its agents and keeps their work under `refs/planforge/archive/`. What has landed stays landed. The
    plan returns to review; a draft is cancelled. The command that drove the run says so and exits with 130.

    \b
    Example:
      planforge cancel run-003 --reason "it goes the wrong way"
    """
    from planforge.app.decisions import deciders
    from planforge.app.runs import cancellation

    project = here()
    actor = deciders.person_or_script(project, None)
    ended = cancellation.cancel(project, run, reason=reason, actor=actor)
    show(ended, f"{ended.run}: {ended.reason}", as_json=as_json)


def drive(project: Project, run: str, *, as_json: bool) -> int:
    """Drive a run in the foreground, show how it goes and how it ended."""
    document, code = driven(project, run)
    show(document, lambda: summary(document, following(project, document)), as_json=as_json)
    return code


def driven(project: Project, run: str) -> tuple[Document, int]:
    """Drive a run in the foreground and show how it goes; how it ended, and the exit code for that."""
    from planforge.app import forges, report
    from planforge.app.runs import driver
    from planforge.interfaces.cli.progress import shown

    talk(f"{run} in {project.root}")
    pace = forges.pace(project, run)
    if pace.problem:
        talk(f"! {pace.problem}")
    with shown(pace.heartbeat, pace.progress) as screen:
        ended = driver.drive(project, run, screen, screen)
    return report.of_run(project, run), ended.exit_code


def following(project: Project, document: Document) -> tuple[Hint, ...]:
    """What can be done after a run."""
    from planforge.app import report

    return report.following(project, document)


def summary(document: Document, then: tuple[Hint, ...] = ()) -> str:
    """How a run ended and what there is of it, in a few lines, with what can be done next."""
    mark = "✓" if document.status == "done" else "✗"
    lines = [f"{mark} {document.run} {document.status}: {document.reason}"]
    if document.warning:
        lines.append(f"warning: {document.warning}")
    if document.landed_commit:
        at = document.landed_commit[:12]
        lines.append(f"branch: {document.branch} at {at}" if document.branch else f"commit: {at}")
    elif document.written and not document.cancelled:
        lines.append(f"plan: {document.path}")
    if document.left:
        lines.append(f"left: {', '.join(document.left)}")
    return "\n".join([*lines, *next_lines(then)])
