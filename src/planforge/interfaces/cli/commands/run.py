"""Commands about runs: `planforge resume` and `planforge cancel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.app.project import Project
from planforge.app.runs import to_resume, waiting_for
from planforge.errors import Interrupted, PlanforgeError, TryLater
from planforge.interfaces.cli.caller import deciding, here
from planforge.interfaces.cli.foreground import drive, driven, summary_and_next
from planforge.interfaces.cli.options import given_up_option
from planforge.interfaces.cli.output import JsonCommand, show
from planforge.interfaces.cli.typed import next_lines, text

if TYPE_CHECKING:
    from planforge.app.overview.report import Document


@click.command(cls=JsonCommand)
@click.argument("run", required=False)
@click.option("--now", is_flag=True, help="Do not wait until an agent's usage limit ends.")
def resume(run: str | None, now: bool) -> int:
    """Resume RUN, or every run that can be resumed

    These are interrupted runs, runs whose gate has been decided, and runs that waited for a usage limit to
    end. Before that time the exit code is 75.

    If a run has to wait again, the others continue; the end lists what each run waits for. The exit code is
    then the worst of all.

    Recorded work is not repeated: no agent is asked twice for the same answer.
    """
    project = here()
    found = to_resume(project, run, now=now)
    if not found:
        waits = waiting_for(project, run)
        show({"resumed": [], "next": waits}, "\n".join(["nothing to resume", *next_lines(waits)]))
        return 0
    if len(found) == 1:
        return drive(project, found[0])
    return _drive_all(project, found)


def _drive_all(project: Project, found: list[str]) -> int:
    """Drive several runs, one after the other, also if one fails; returns the worst exit code."""
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
            lines.append(summary_and_next(project, document))
        codes.append(code)
    waits = [action for name in found for action in waiting_for(project, name)]
    lines += next_lines(waits)
    told = {"schema_version": 1, "resumed": resumed, "stopped": stopped, "next": waits}
    show(told, "\n".join(lines))
    return max(codes, key=lambda code: (bool(code), code != TryLater.exit_code, code))


@click.command(cls=JsonCommand)
@click.argument("run")
@given_up_option
def cancel(run: str, reason: str) -> None:
    """Cancel RUN at once, also if it runs in another terminal

    Stops its agents and keeps their work under `refs/planforge/archive/`. What has landed stays landed. The
    plan returns to review; a draft is cancelled. The command that drove the run says so and exits with 130.

    \b
    Example:
      planforge cancel run-003 --reason "it goes the wrong way"
    """
    from planforge.app import cancellation

    project, actor = deciding(None)
    ended = cancellation.cancel(project, run, reason=reason, actor=actor)
    show(ended, f"{ended.run}: {ended.reason}")
