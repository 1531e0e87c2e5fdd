"""What a run that went on in the background came to, as a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planforge.app import landing, plans, report
from planforge.app.language import talking
from planforge.app.language.doing import ways_on
from planforge.app.language.replies import Reply, refused
from planforge.errors import PlanforgeError

if TYPE_CHECKING:
    from planforge.app.background import Work
    from planforge.app.project import Project


def reply(project: Project, work: Work) -> Reply:
    """How a run ended, or why it does not go on; for a chat, what its agent said."""
    import msgspec

    if work.ended is None:
        error = work.error or PlanforgeError(f"`{work.run}` has not ended")
        return msgspec.structs.replace(refused(error), kind="ended", data={"run": work.run})
    if work.flow == "chat":
        return _answered(project, work)
    mark = "✓" if work.ended.succeeded else "✗"
    landed = work.flow in (landing.LAND, landing.UPDATE)
    return Reply(
        kind="ended",
        text=f"{mark} {work.run} {work.flow} of {work.subject}: {work.ended.reason}",
        exit_code=work.ended.exit_code,
        data=landing.report(project, work.run) if landed else report.of_run(project, work.run),
        next=_next(project, work.subject),
    )


def _next(project: Project, subject: str) -> tuple[str, ...]:
    found = project.ledger.select(plans.PlanRow, "plans WHERE plan = ?", subject)
    return ways_on(project, found[0]) if found else ()


def _answered(project: Project, work: Work) -> Reply:
    """What the agent said, and what became of each thing that it asked for."""
    found = talking.answer(project, work.run)
    assert work.ended is not None
    if found is None:  # it failed before anybody answered
        return Reply(kind="answer", text=work.ended.reason, exit_code=work.ended.exit_code)
    lines = [found.text] if found.text else []
    if found.problem:
        lines.append(f"✗ nothing was done: {found.problem}")
    for action in found.actions:
        lines.append(f"{'✗' if action.exit_code else '✓'} {action.command}")
        lines += [f"  {line}" for line in action.text.split("\n")]
    return Reply(
        kind="answer",
        text="\n".join(lines),
        exit_code=max([work.ended.exit_code, *(action.exit_code for action in found.actions)]),
        data=found,
        runs=tuple(run for action in found.actions for run in action.runs),
    )
