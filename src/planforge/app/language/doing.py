"""One function for each command: it calls what the command line calls, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from planforge.app import (
    approvals,
    background,
    deciders,
    landing,
    overview,
    plan_rounds,
    plans,
    runs,
    statuses,
    work,
)
from planforge.app.language import elsewhere
from planforge.app.language.replies import Reply, Speaker, in_our_words, refused, said
from planforge.errors import Locked, NeedsPerson, NotFound, PlanforgeError, RefusedByGate
from planforge.rules.commands import Command, shapes, written

if TYPE_CHECKING:
    from planforge.app.background import Work
    from planforge.app.plans import PlanRow
    from planforge.app.project import Project
    from planforge.app.runs import RunRow

RESUMABLE = ("DRAFT", "REVIEW")
RUNNABLE = ("APPROVED", "IMPLEMENTING")
AGENT = "an agent, by an action"
"""Who it was, where an agent's answer asked for it."""
SHOWN = 40
"""How many lines of a difference a reply has; the file has them all."""


def perform(project: Project, command: Command, speaker: Speaker = Speaker()) -> Reply:  # noqa: B008
    """Do what a command says; whatever stands in the way is a reply too."""
    import msgspec

    try:
        if speaker.depth and shapes.row(type(command)).person:
            raise NeedsPerson(
                f"only a person does this, so it was not done: type `{written(command)}` if you want it"
            )
        reply = DOING[type(command)](project, command, speaker)
    except PlanforgeError as error:
        return refused(error, command)
    return msgspec.structs.replace(reply, command=command)


# Help


def _help(word: str) -> Callable[[Project, Any, Speaker], Reply]:
    def told(project: Project, command: Command, speaker: Speaker) -> Reply:
        del project, command, speaker
        rows = shapes.rows(word)
        widest = max(len(row.usage) for row in rows)
        return said("\n".join(f"{row.usage:<{widest}}  {row.meaning}" for row in rows))

    return told


# Looking


def _status(project: Project, command: shapes.Status, speaker: Speaker) -> Reply:
    del command, speaker
    found = overview.overview(project)
    lines = [f"{run.run} {run.flow} of {run.subject} is {run.status}" for run in found.runs if run.unfinished]
    lines += [f"{item.plan.plan} [{item.plan.status}] {item.plan.title}" for item in found.plans]
    then = _then(*found.next)
    return said("\n".join(lines) or "nothing here yet", data=found, then=then)


def _list(project: Project, command: shapes.PlanList, speaker: Speaker) -> Reply:
    del speaker
    found = [row for row in plans.rows(project) if not command.status or row.status == command.status]
    nothing = f"no plan is {command.status}" if command.status else "no plans yet"
    then = () if found or command.status else ("!forge <description>",)
    return said("\n".join(map(_line, found)) or nothing, data=found, then=then)


def _line(plan: PlanRow) -> str:
    return f"{plan.plan} [{plan.status}] {plan.title}"


def _show(project: Project, command: shapes.PlanShow, speaker: Speaker) -> Reply:
    del speaker
    from planforge.documents import markdown

    view = plans.view(project, command.plan)
    plan = view.plan
    lines = [_line(plan), f"file: {plan.path}"]
    if view.edited:
        lines.append("edited: the file differs from what was last written or approved")
    if view.approved_by:
        lines.append(f"approved by {view.approved_by}, not used yet")
    if plan.branch:
        lines.append(f"branch: {plan.branch} at {plan.landed[:12]}")
    if objective := markdown.body(view.text, "Objective"):
        lines += ["", objective.strip()]
    audited = [each for each in plan_rounds.rounds(project, plan.plan) if each.verdict]
    if audited:
        last = audited[-1]
        lines += ["", f"audit {last.round} by {last.by}: {last.verdict}"]
        lines += [f"  {finding.severity}: {finding.title}" for finding in last.findings]
    if view.steps:
        lines += ["", *(f"  {step.step} {step.status}: {step.title}" for step in view.steps)]
    return said("\n".join(lines), data=view, then=ways_on(plan))


def ways_on(plan: PlanRow) -> tuple[str, ...]:
    """What it makes sense to type about a plan as it is."""
    ways = {
        "REVIEW": (f"!plan approve {plan.plan}", f"!forge {plan.plan}"),
        "APPROVED": (f"!plan run {plan.plan}",),
        "IMPLEMENTING": (f"!plan run {plan.plan}",),
        "DONE": (f"!plan land {plan.plan}",),
    }
    return ways.get(plan.status, ())


def _diff(project: Project, command: shapes.PlanDiff, speaker: Speaker) -> Reply:
    del speaker
    found = plan_rounds.diff(project, command.plan)
    lines = [f"{each.severity}: {each.title}" for each in found.reasons]
    lines += found.lines[:SHOWN] or ["nothing has changed"]
    if len(found.lines) > SHOWN:
        lines.append(f"... and {len(found.lines) - SHOWN} more lines: `planforge plan diff {command.plan}`")
    return said("\n".join(lines), data=found)


def _phases(project: Project, command: shapes.PlanPhases, speaker: Speaker) -> Reply:
    plan = plans.row(project, command.plan)
    if command.regenerate:
        make = elsewhere.function(shapes.PlanPhases)
        make(
            project,
            plan.plan,
            parallel=False,
            keep_done=command.keep_done,
            actor=_actor(project, speaker),
        )
    steps = plans.steps(project, plan.plan)
    if not steps and (make_first := elsewhere.find(shapes.PlanPhases)) and not command.regenerate:
        make_first(project, plan.plan, parallel=False, keep_done=False, actor=_actor(project, speaker))
        steps = plans.steps(project, plan.plan)
    if steps:
        lines = [f"{step.step} {step.status}: {step.title}" for step in steps]
        return said("\n".join(lines), data=steps)
    planned = plans.phases(project, plan.plan, parallel=False)
    lines = [f"{phase.id} {phase.kind.value}: {phase.title}" for phase in planned]
    return said("\n".join(lines), data=planned, then=ways_on(plan))


# Making and deciding


def _create(project: Project, command: shapes.PlanCreate, speaker: Speaker) -> Reply:
    make = elsewhere.function(shapes.PlanCreate)
    made = make(project, command.description, context=command.context, actor=_actor(project, speaker))
    return said(f"made {_line(made)}\nfile: {made.path}", data=made, then=(f"!forge {made.plan}",))


def _approve(project: Project, command: shapes.PlanApprove, speaker: Speaker) -> Reply:
    plan = plans.row(project, command.plan)
    approval = approvals.approve(project, plan.plan, actor=_actor(project, speaker))
    text = f"approved {plan.plan} at {approval.content[:12]} by {approval.actor}"
    return said(text, data=approval, then=(f"!plan run {plan.plan}",))


def _close(project: Project, command: shapes.PlanClose, speaker: Speaker) -> Reply:
    found = statuses.move(
        project,
        command.plan,
        "close",
        actor=_actor(project, speaker),
        reason=command.reason or "closed in a chat",
    )
    return said(f"{found.plan} is {found.status}", data=found)


def _cancel(project: Project, command: shapes.PlanCancel, speaker: Speaker) -> Reply:
    """End whatever is at the plan, and give it up; without a plan, stop the run of one that goes on here."""
    if not command.plan:
        mine = [item for item in background.under_way(project) if item.flow == "plan_run"]
        if not mine:
            raise NotFound(
                "no plan is carried out here", "give a plan up with `!plan cancel <id> [<reason>]`"
            )
        return _stopped(mine)
    plan = plans.row(project, command.plan).plan
    who, reason = _actor(project, speaker), command.reason or "given up in a chat"
    _end(project, lambda row: row.subject == plan, who, reason)
    found = plans.row(project, plan)
    if found.status != "CANCELLED":  # a draft goes with its forge
        found = statuses.move(project, plan, "cancel", actor=who, reason=reason)
    return said(f"{found.plan} is {found.status}", data=found)


def _end(project: Project, which: Callable[[RunRow], bool], actor: str, reason: str) -> list[RunRow]:
    """Stop the runs that go on here, and end them and those that nobody drives, for good."""
    ended = [row for row in runs.rows(project, unfinished=True) if which(row)]
    names = {row.run for row in ended}
    left = background.stop([item for item in background.under_way(project) if item.run in names])
    if left:
        raise Locked(f"`{left[0].run}` does not stop", "wait a while, and try again")
    for row in ended:
        if any(each.run == row.run for each in runs.rows(project, unfinished=True)):
            runs.cancel(project, row.run, reason=reason, actor=actor)
    return ended


def _skip(project: Project, command: shapes.PlanSkip, speaker: Speaker) -> Reply:
    skip = elsewhere.function(shapes.PlanSkip)
    plan = plans.row(project, command.plan).plan
    reason = command.reason or "skipped in a chat"
    skip(project, plan, command.phase or None, actor=_actor(project, speaker), reason=reason)
    return _phases(project, shapes.PlanPhases(plan=plan), speaker)


def _skip_to(project: Project, command: shapes.PlanSkipTo, speaker: Speaker) -> Reply:
    skip_to = elsewhere.function(shapes.PlanSkipTo)
    plan = plans.row(project, command.plan).plan
    reason = command.reason or "skipped in a chat"
    skip_to(project, plan, command.phase, actor=_actor(project, speaker), reason=reason)
    return _phases(project, shapes.PlanPhases(plan=plan), speaker)


# Beginning what takes long


def _run(project: Project, command: shapes.PlanRun, speaker: Speaker) -> Reply:
    del speaker
    plan = plans.row(project, command.plan).plan
    return _begun(work.begin_plan_run(project, plan, parallel=False), f"carries out {plan}")


def _run_some(project: Project, command: Any, speaker: Speaker) -> Reply:
    """One phase: the next, the one that failed, or the one that is named."""
    del speaker
    begin = elsewhere.function(shapes.PlanRunOne)
    plan, only = plans.row(project, command.plan).plan, getattr(command, "phase", "") or "one"
    what = "the next phase" if only == "one" else only
    return _begun(begin(project, plan, parallel=False, only=only), f"carries out {what} of {plan}")


def _audit(project: Project, command: Any, speaker: Speaker) -> Reply:
    """Look at the form first: an auditor is not paid for what anybody can see."""
    del speaker
    from planforge.documents.plan import structural_findings

    plan = plans.row(project, command.plan)
    faults = structural_findings(plans.text(project, plan))
    looping = [fault for fault in faults if fault.severity.value in ("blocking", "medium")]
    if looping:
        lines = "\n".join(f"{fault.severity.value}: {fault.title}" for fault in looping)
        raise RefusedByGate(f"`{plan.path}` is not a whole plan:\n{lines}", f"edit `{plan.path}`")
    begin = elsewhere.function(shapes.PlanAudit)
    return _begun(begin(project, plan.plan), f"audits {plan.plan}")


def _land(project: Project, command: shapes.PlanLand, speaker: Speaker) -> Reply:
    del speaker
    plan = plans.row(project, command.plan).plan
    run = landing.begin(project, (plan,), None)
    return said("nothing to land") if run is None else _begun(run, f"lands {plan}")


def _forge(project: Project, command: shapes.ForgeCreate, speaker: Speaker) -> Reply:
    del speaker
    _require_no_forge(project)
    request = "\n\n".join(filter(None, (command.description, command.context)))
    run = work.begin_forge(project, request)
    return _begun(run, f"forges {_subject(project, run)}")


def _forge_again(project: Project, command: shapes.ForgeResume, speaker: Speaker) -> Reply:
    """Go on with an interrupted forge, audit a plan once more, or carry out one that is approved."""
    plan = plans.row(project, command.plan)
    mine = [row for row in runs.rows(project, unfinished=True) if row.subject == plan.plan]
    if mine:
        return _resume(project, shapes.Resume(run=mine[0].run), speaker)
    if plan.status in RUNNABLE:
        return _run(project, shapes.PlanRun(plan=plan.plan), speaker)
    if plan.status not in RESUMABLE:
        raise RefusedByGate(f"`{plan.plan}` is {plan.status}; there is nothing to forge")
    _require_no_forge(project)
    begin = elsewhere.function(shapes.ForgeResume)
    return _begun(begin(project, plan.plan), f"forges {plan.plan}")


def _require_no_forge(project: Project) -> None:
    for item in background.under_way(project):
        if item.flow == "forge":
            raise Locked(
                f"a forge is under way: `{item.run}` of `{item.subject}`",
                "wait for it, or end it with `!forge cancel`",
            )


def _forge_status(project: Project, command: shapes.ForgeStatus, speaker: Speaker) -> Reply:
    del command, speaker
    found = [row for row in runs.rows(project, unfinished=True) if row.flow == "forge"]
    lines = [f"{row.run} forges {row.subject}: {row.status}" for row in found]
    then = tuple(f"!resume {row.run}" for row in found if row.status == "interrupted")
    return said("\n".join(lines) or "no forge is under way", data=found, then=then)


def _forge_cancel(project: Project, command: shapes.ForgeCancel, speaker: Speaker) -> Reply:
    """End the forge that goes on here; if none does, the one that nobody drives."""
    del command
    here = {item.run for item in background.under_way(project) if item.flow == "forge"}
    found = [row for row in runs.rows(project, unfinished=True) if row.flow == "forge"]
    meant = [row for row in found if row.run in here] or found
    if not meant:
        raise NotFound("no forge is under way")
    if len(meant) > 1:
        names = ", ".join(f"`{row.run}`" for row in meant)
        raise NotFound(f"it is not clear which forge is meant: {names}", "end one: `!plan cancel <id>`")
    who = _actor(project, speaker)
    _end(project, lambda row: row.run == meant[0].run, who, "cancelled in a chat")
    text = f"{meant[0].run} is ended"
    rows = [row for row in plans.rows(project) if row.plan == meant[0].subject]
    return said("; ".join([text, *(f"{row.plan} is {row.status}" for row in rows)]), data=rows)


def _fix(project: Project, command: shapes.Fix, speaker: Speaker) -> Reply:
    del speaker
    begin = elsewhere.function(shapes.Fix)
    return _begun(begin(project, command.description), "mends it")


def _resume(project: Project, command: shapes.Resume, speaker: Speaker) -> Reply:
    del speaker
    here = {item.run for item in background.under_way(project)}
    found = [run for run in runs.to_resume(project, command.run or None) if run not in here]
    if not found:
        return said("nothing to resume")
    return said(f"goes on with {', '.join(found)}", data=found, runs=tuple(found))


def _stop(project: Project, command: shapes.Stop, speaker: Speaker) -> Reply:
    del command, speaker
    mine = background.under_way(project)
    return _stopped(mine) if mine else said("nothing goes on here")


def _stopped(mine: list[Work]) -> Reply:
    left = {item.run for item in background.stop(mine)}
    over = [item for item in mine if item.run not in left]
    lines = [f"{item.run} was stopped; nothing is lost" for item in over if item.ended is None]
    lines += [f"{item.run} had ended" for item in over if item.ended is not None]
    lines += [f"{run} does not stop yet" for run in sorted(left)]
    then = tuple(f"!resume {item.run}" for item in over if item.ended is None)
    return said("\n".join(lines), data=[item.run for item in mine], then=then)


def _begun(run: str, what: str) -> Reply:
    return said(f"{run} {what}", data={"run": run}, runs=(run,))


def _subject(project: Project, run: str) -> str:
    return next(row.subject for row in runs.rows(project, unfinished=True) if row.run == run)


def _actor(project: Project, speaker: Speaker) -> str:
    if speaker.depth:
        return AGENT
    return deciders.person_or_script(project, speaker.name)


def _then(*commands: str) -> tuple[str, ...]:
    return tuple(in_our_words(f"`{command}`").strip("`") for command in commands)


DOING: dict[type[Command], Callable[[Project, Any, Speaker], Reply]] = {
    shapes.Help: _help(""),
    shapes.PlanHelp: _help("plan"),
    shapes.ForgeHelp: _help("forge"),
    shapes.Status: _status,
    shapes.PlanList: _list,
    shapes.PlanShow: _show,
    shapes.PlanDiff: _diff,
    shapes.PlanPhases: _phases,
    shapes.PlanCreate: _create,
    shapes.PlanApprove: _approve,
    shapes.PlanClose: _close,
    shapes.PlanCancel: _cancel,
    shapes.PlanSkip: _skip,
    shapes.PlanSkipTo: _skip_to,
    shapes.PlanRun: _run,
    shapes.PlanRunOne: _run_some,
    shapes.PlanRunPhase: _run_some,
    shapes.PlanRetry: _run_some,
    shapes.PlanAudit: _audit,
    shapes.PlanLand: _land,
    shapes.ForgeCreate: _forge,
    shapes.ForgeResume: _forge_again,
    shapes.ForgeStatus: _forge_status,
    shapes.ForgeCancel: _forge_cancel,
    shapes.ForgeAudit: _audit,
    shapes.Fix: _fix,
    shapes.Resume: _resume,
    shapes.Stop: _stop,
}
"""Who does what; a command that is missing here fails a test."""
