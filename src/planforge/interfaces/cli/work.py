"""Commands that start, continue or end work: `init`, `resume`, `cancel`; `forge.py` has its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.actions import Action, Hint
from planforge.errors import Interrupted, NeedsPerson, PlanforgeError, TryLater
from planforge.interfaces.cli.options import given_up_option
from planforge.interfaces.cli.show import json_option, show, talk
from planforge.interfaces.cli.typed import line, text
from planforge.interfaces.cli.views import here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planforge.app.project import Project
    from planforge.app.report import Document


@click.command()
@json_option
def init(as_json: bool) -> None:
    """Set up this repository for Planforge

    Makes `.planforge`, which git ignores, and `planforge.toml`, unless they are there.
    """
    from planforge.app.setup import initialise

    made = initialise(Path.cwd())
    what = "wrote" if made.settings_written else "left"
    check = f"tests: {made.check}" if made.check else "tests: none found; set `[check]` before running a plan"
    show(made, f"ready: {made.root}\n{what} {made.settings}\n{check}", as_json=as_json)


@click.command()
@click.argument("run", required=False)
@click.option("--now", is_flag=True, help="Do not wait for the end of an agent's limit.")
@json_option
@click.pass_context
def resume(ctx: click.Context, run: str | None, now: bool, as_json: bool) -> None:
    """Resume RUN, or every run that can be resumed

    Those are interrupted runs, runs whose gate has been decided, and runs that were parked at a usage limit
    which is over. Until it is over the exit code is 75.

    A run that comes to wait again does not stop the others: all are resumed, and at the end it is said what
    each waits for. The exit code is then the worst of theirs.

    Recorded work is not repeated: no agent is asked again for an answer that it gave.
    """
    from planforge.app.runs import to_resume, waiting_for

    project = here()
    found = to_resume(project, run, now=now)
    if not found:
        waits = waiting_for(project, run)
        lines = ["nothing to resume", *(f"next: {command}" for command in waits)]
        show({"resumed": [], "next": waits}, "\n".join(lines), as_json=as_json)
        return
    if len(found) == 1:
        ctx.exit(drive(project, found[0], as_json=as_json))
    ctx.exit(_drive_all(project, found, as_json=as_json))


def _drive_all(project: Project, found: list[str], *, as_json: bool) -> int:
    """Drive several runs, one after the other, whatever becomes of each; the exit code of the worst."""
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
    waits = [command for name in found for command in waiting_for(project, name)]
    lines += [f"next: {command}" for command in waits]
    told = {"schema_version": 1, "resumed": resumed, "stopped": stopped, "next": waits}
    show(told, "\n".join(lines), as_json=as_json)
    return max(codes, key=lambda code: (bool(code), code != TryLater.exit_code, code))


@click.command()
@click.argument("run")
@given_up_option
@json_option
def cancel(run: str, reason: str, as_json: bool) -> None:
    """Cancel RUN at once, also if it runs in another terminal

    Its agents are stopped. What they left is kept under `refs/planforge/archive/`; what
    has landed stays landed. The plan returns to review; one that is a draft still is cancelled. The command
    that drove the run says so and exits with 130.

    \b
    Example:
      planforge cancel run-003 --reason "it goes the wrong way"
    """
    from planforge.app import deciders, runs

    project = here()
    actor = deciders.person_or_script(project, None)
    ended = runs.cancel(project, run, reason=reason, actor=actor)
    show(ended, f"{ended.run}: {ended.reason}", as_json=as_json)


def drive(project: Project, run: str, *, as_json: bool) -> int:
    """Drive a run in the foreground, show how it goes and how it ended."""
    document, code = driven(project, run)
    show(document, lambda: summary(document, following(project, document)), as_json=as_json)
    return code


def driven(project: Project, run: str) -> tuple[Document, int]:
    """Drive a run in the foreground and show how it goes; how it ended, and the exit code for that."""
    from planforge.app import forges, report, runs
    from planforge.interfaces.cli.progress import shown

    talk(f"{run} in {project.root}")
    pace = forges.pace(project, run)
    if pace.problem:
        talk(f"! {pace.problem}")
    with shown(pace.heartbeat, pace.progress) as screen:
        ended = runs.drive(project, run, screen, screen)
    return report.of_run(project, run), ended.exit_code


def following(project: Project, document: Document) -> tuple[Hint, ...]:
    """What can be done about a plan whose run has stopped."""
    from planforge.app import phases

    return phases.view(project, document.plan).next if document.flow == "plan_run" else ()


def summary(document: Document, following: tuple[Hint, ...] = ()) -> str:
    """How a run ended, in a few lines, with the next command."""
    mark = "✓" if document.status == "done" else "✗"
    lines = [f"{mark} {document.run} {document.status}: {document.reason}"]
    if document.warning:
        lines.append(f"warning: {document.warning}")
    if document.flow == "forge" and document.cancelled:
        lines.append('next: planforge forge "what you want"')
    elif document.flow == "forge" and not document.written:
        lines.append("next: planforge doctor")
    elif document.flow == "forge":
        lines.append(f"plan: {document.path}")
        verb = "approve" if document.status == "done" else "show"
        lines.append(f"next: planforge plan {verb} {document.plan}")
        if document.status == "failed":
            lines.append(f"then: edit the plan and run `planforge forge {document.plan}`")
    elif document.flow == "fix":
        lines += _fixed(document)
    elif document.flow == "pipeline":
        lines += [f"branch: {document.branch} at {document.landed_commit[:12]}"] if document.branch else []
        show_task = f"planforge task show {document.plan}"
        lines.append(f"next: {f'git merge --no-ff {document.branch}' if document.branch else show_task}")
    elif document.branch:
        lines.append(f"branch: {document.branch} at {document.landed_commit[:12]}")
        lines += [f"left: {', '.join(document.left)}"] if document.left else []
        ways = following or (Action("plan show", document.plan),)
        lines += [f"next: {line(each)}" for each in ways]
    return "\n".join(lines)


def _fixed(document: Document) -> Iterator[str]:
    """Where a small change is, and what can be done with it."""
    if document.landed_commit:
        yield f"branch: {document.branch} at {document.landed_commit[:12]}"
    if document.status == "done":
        yield f"next: planforge land {document.plan}"
    elif document.exit_code == NeedsPerson.exit_code:
        from planforge.app.fixes import too_large

        forge, accept = too_large(document.plan, document.request, document.reason)
        yield f"next: {line(forge)}"
        yield f"  or: {line(accept)}"
    elif document.status == "failed":
        yield f"next: planforge fix --again {document.plan}"
