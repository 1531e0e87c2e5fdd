"""Runs in the foreground: driven while a person watches, and summed up at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planforge.interfaces.cli.output import show, talk
from planforge.interfaces.cli.typed import next_lines

if TYPE_CHECKING:
    from planforge.app.overview.report import Document
    from planforge.app.project import Project
    from planforge.kernel.events import RunEnded


def drive(project: Project, run: str) -> int:
    """Drive a run, show its progress and its result; returns its exit code."""
    document, code = driven(project, run)
    show(document, lambda document: summary_and_next(project, document))
    return code


def driven(project: Project, run: str) -> tuple[Document, int]:
    """Drive a run at the pace of its plan and show its progress; returns its result and its exit code."""
    from planforge.app import forges
    from planforge.app.overview import report

    pace = forges.pace(project, run)
    ended = watch(project, run, pace.heartbeat, pace.progress, problem=pace.problem)
    return report.of_run(project, run), ended.exit_code


def watch(project: Project, run: str, *pace: float, problem: str = "") -> RunEnded:
    """Drive a run and show its progress, at a `pace` as `progress.shown` takes it; `problem` comes first."""
    from planforge.app import driver
    from planforge.interfaces.cli.progress import shown

    talk(f"{run} in {project.root}")
    if problem:
        talk(f"! {problem}")
    with shown(*pace) as screen:
        return driver.drive(project, run, screen, screen)


def summary_and_next(project: Project, document: Document) -> str:
    """The result of a run, and what can be done next."""
    from planforge.app.overview import report

    return "\n".join([summary(document), *next_lines(report.following(project, document))])


def summary(document: Document) -> str:
    """The result of a run in a few lines."""
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
    return "\n".join(lines)
