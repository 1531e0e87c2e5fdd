"""What a run that went on in the background came to, as a reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from planforge.app import landing
from planforge.app.chat import talking
from planforge.app.chat.replies import Reply, refused
from planforge.app.overview import report
from planforge.errors import PlanforgeError
from planforge.workflows.flows import FLOWS

if TYPE_CHECKING:
    from planforge.actions import Hint
    from planforge.app.project import Project
    from planforge.app.runs.background import Work
    from planforge.kernel.events import RunEnded


def reply(project: Project, work: Work) -> Reply:
    """How a run ended, or why it does not go on; for a chat, what its agent said."""
    if work.ended is None:
        error = work.error or PlanforgeError(f"`{work.run}` has not ended")
        return msgspec.structs.replace(refused(error), kind="ended", data={"run": work.run})
    return TOLD[FLOWS[work.flow].told](project, work, work.ended)


def _told(work: Work, ended: RunEnded, data: object, then: Sequence[Hint]) -> Reply:
    mark = "✓" if ended.succeeded else "✗"
    return Reply(
        kind="ended",
        text=f"{mark} {work.run} {work.flow} of {work.subject}: {ended.reason}",
        exit_code=ended.exit_code,
        data=data,
        next=tuple(then),
    )


def _ran(project: Project, work: Work, ended: RunEnded) -> Reply:
    document = report.of_run(project, work.run)
    return _told(work, ended, document, report.following(project, document))


def _landed(project: Project, work: Work, ended: RunEnded) -> Reply:
    found = landing.report(project, work.run)
    return _told(work, ended, found, found.next)


def _answered(project: Project, work: Work, ended: RunEnded) -> Reply:
    """What the agent said, and what became of each thing that it asked for."""
    found = talking.answer(project, work.run)
    if found is None:  # it failed before anybody answered
        return Reply(kind="answer", text=ended.reason, exit_code=ended.exit_code)
    lines = [found.text] if found.text else []
    if found.problem:
        lines.append(f"✗ nothing was done: {found.problem}")
    for action in found.actions:
        lines.append(f"{'✗' if action.exit_code else '✓'} {action.command}")
        lines += [f"  {line}" for line in action.text.split("\n")]
    return Reply(
        kind="answer",
        text="\n".join(lines),
        exit_code=max([ended.exit_code, *(action.exit_code for action in found.actions)]),
        data=found,
        runs=tuple(run for action in found.actions for run in action.runs),
    )


TOLD: dict[str, Callable[[Project, Work, RunEnded], Reply]] = {
    "run": _ran,
    "forge": _ran,
    "landing": _landed,
    "answer": _answered,
}
"""By the names that flows have for it in their declarations (`workflows/flows.py`)."""
