"""One function for each command: it calls what the command line calls, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Blank
from planforge.app import cancellation, forges, landing, overview, runs
from planforge.app.chat.replies import Reply, Speaker, refused, said
from planforge.app.decisions import approvals, deciders, statuses
from planforge.app.items import phase_views, plan_rounds, plans
from planforge.app.overview import report
from planforge.app.plans import creation, fixes, pages, phases, work
from planforge.app.runs import background
from planforge.documents import markdown
from planforge.documents.imports import Imported
from planforge.documents.plan import structural_faults
from planforge.errors import Locked, NeedsPerson, NotFound, PlanforgeError, RefusedByGate
from planforge.rules.commands import Command, written
from planforge.rules.commands.shapes import rows

if TYPE_CHECKING:
    from planforge.actions import Hint
    from planforge.app.items.plans import PlanRow
    from planforge.app.plans.phases import PhasesView
    from planforge.app.project import Project
    from planforge.app.runs import RunRow
    from planforge.app.runs.background import Work
    from planforge.documents.imports import Imported

Doing = Callable[["Project", Command, Speaker], Reply]
OVER = ("DONE", "CLOSED", "CANCELLED")
RUNNABLE = ("APPROVED", "IMPLEMENTING")
AGENT = "an agent, by an action"
"""Who it was, where an agent's answer asked for it."""
SHOWN = 40
"""How many lines of a difference a reply has; the file has them all."""


def perform(project: Project, command: Command, speaker: Speaker = Speaker()) -> Reply:  # noqa: B008
    """Do what a command says; whatever stands in the way is a reply too."""
    try:
        if speaker.depth and command.form.person:
            raise NeedsPerson(
                f"only a person does this, so it was not done: type `{written(command)}` if you want it"
            )
        reply = DOING[command.name](project, command, speaker)
    except PlanforgeError as error:
        return refused(error, command)
    return msgspec.structs.replace(reply, command=command)


# Help


def _help(word: str) -> Doing:
    def told(project: Project, command: Command, speaker: Speaker) -> Reply:
        del project, command, speaker
        forms = rows(word)
        widest = max(len(form.usage) for form in forms)
        return said("\n".join(f"{form.usage:<{widest}}  {form.meaning}" for form in forms))

    return told


# Looking


def _status(project: Project, command: Command, speaker: Speaker) -> Reply:
    del command, speaker
    found = overview.overview(project)
    under_way = (run for run in found.runs if run.unfinished)
    lines = [f"{run.run} {run.flow} of {run.subject} is {run.status}" for run in under_way]
    lines += [f"{item.plan.plan} [{item.plan.status}] {item.plan.title}" for item in found.plans]
    return said("\n".join(lines) or "nothing here yet", data=found, then=found.next)


def _list(project: Project, command: Command, _: Speaker) -> Reply:
    found = plans.listed(project, command.status)
    nothing = f"no plan is {command.status}" if command.status else "no plans yet"
    then = () if found or command.status else (Action("forge", Blank("what you want")),)
    return said("\n".join(map(_line, found)) or nothing, data=found, then=then)


def _line(plan: PlanRow, badge: str = "") -> str:
    known = badge or getattr(plan, "badge", "")
    task = f"({plan.task})" if plan.task else ""
    return " ".join(
        filter(None, (plan.plan, f"[{plan.status}]", f"[{known}]" if known else "", plan.title, task))
    )


def _show(project: Project, command: Command, _: Speaker) -> Reply:
    view = pages.view(project, command.plan)
    plan = view.plan
    lines = [_line(plan, view.badge), f"file: {plan.path}"]
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
    others = [each for each in report.about(project, plan.plan) if each != Action("plan show", plan.plan)]
    return said("\n".join(lines), data=view, then=tuple(others))


def _diff(project: Project, command: Command, _: Speaker) -> Reply:
    found = plan_rounds.diff(project, command.plan)
    lines = [f"{each.severity}: {each.title}" for each in found.reasons]
    lines += found.lines[:SHOWN] or ["nothing has changed"]
    then: tuple[Hint, ...] = ()
    if len(found.lines) > SHOWN:
        lines.append(f"... and {len(found.lines) - SHOWN} more lines")
        then = (Action("plan diff", command.plan),)
    return said("\n".join(lines), data=found, then=then)


def _phases(project: Project, command: Command, speaker: Speaker) -> Reply:
    """Show them, made now if there are none, or made anew."""
    plan = plans.row(project, command.plan)
    missing = phase_views.newest(project, plan.plan) is None and plan.status not in OVER
    if command.regenerate or missing:
        phases.generate(project, plan.plan, keep_done=command.keep_done, actor=_actor(project, speaker))
    return _phases_of(phases.view(project, plan.plan))


def _phases_of(view: PhasesView) -> Reply:
    lines = [f"{view.plan} [{view.badge}]" + (" the plan has changed since" if view.stale else "")]
    lines += [f"{phase.id} {phase.status}: {phase.title}" for phase in view.phases]
    return said("\n".join(lines), data=view, then=view.next)


# Making and deciding


def _create(project: Project, command: Command, _: Speaker) -> Reply:
    made = creation.create(project, command.description, context=_given(command.context))
    return said(
        f"made {made.plan} [{made.status}] {made.title}\nfile: {made.path}",
        data=made,
        then=report.about(project, made.plan),
    )


def _given(context: str) -> Imported | None:
    """What was said around a description, as something that is from elsewhere."""
    return Imported(title="", text=context, source="a chat") if context else None


def _approve(project: Project, command: Command, speaker: Speaker) -> Reply:
    plan = plans.row(project, command.plan)
    approval = approvals.approve(project, plan.plan, actor=_actor(project, speaker))
    text = f"approved {plan.plan} at {approval.content[:12]} by {approval.actor}"
    return said(text, data=approval, then=report.about(project, plan.plan))


def _close(project: Project, command: Command, speaker: Speaker) -> Reply:
    found = statuses.move(
        project,
        command.plan,
        "close",
        actor=_actor(project, speaker),
        reason=command.reason or "closed in a chat",
    )
    return said(f"{found.plan} is {found.status}", data=found)


def _cancel(project: Project, command: Command, speaker: Speaker) -> Reply:
    """End whatever is at the plan, and give it up; without a plan, stop the run of one that goes on here."""
    if not command.plan:
        mine = _here(project, "plan_run")
        if not mine:
            raise NotFound(
                "no plan is carried out here", "give a plan up with `!plan cancel <id> [<reason>]`"
            )
        return _stopped(mine)
    plan = plans.row(project, command.plan).plan
    who, reason = _actor(project, speaker), command.reason or "given up in a chat"
    _end(project, lambda row: row.subject == plan, who, reason)
    found = plans.row(project, plan)
    if found.status != "CANCELLED":  # it may have gone with its run
        found = cancellation.give_up(project, plan, actor=who, reason=reason)
    return said(f"{found.plan} is {found.status}", data=found)


def _end(project: Project, which: Callable[[RunRow], bool], actor: str, reason: str) -> list[RunRow]:
    """Stop the runs that go on here, and end them and those of others, for good, with what they are about."""
    ended = [row for row in runs.rows(project, unfinished=True) if which(row)]
    names = {row.run for row in ended}
    left = background.stop([item for item in background.under_way(project) if item.run in names])
    if left:
        raise Locked(f"`{left[0].run}` does not stop", "wait a while, and try again")
    for row in ended:
        if any(each.run == row.run for each in runs.rows(project, unfinished=True)):
            cancellation.cancel(project, row.run, reason=reason, actor=actor, with_plan=True)
    return ended


def _skips(skip: Callable[..., PhasesView]) -> Doing:
    """Leaves out phases, one or all before one, for a reason."""

    def skipped(project: Project, command: Command, speaker: Speaker) -> Reply:
        reason, actor = command.reason or "skipped in a chat", _actor(project, speaker)
        return _phases_of(skip(project, command.plan, command.phase or None, actor=actor, reason=reason))

    return skipped


# Beginning what takes long


def _carries_out(begin: Callable[[Project, str, str], str], what: str) -> Doing:
    """Begins a run of a plan: of all that is left of it, or of a phase."""

    def begun(project: Project, command: Command, _: Speaker) -> Reply:
        plan, phase = plans.row(project, command.plan).plan, command.phase
        return _begun(begin(project, plan, phase), what.format(plan=plan, phase=phase or "what failed"))

    return begun


def _phase(project: Project, plan: str, phase: str) -> str:
    return work.begin_plan_run(project, plan, only=phase)


def _next_phase(project: Project, plan: str, _: str) -> str:
    return work.begin_plan_run(project, plan, only="one")


def _again(project: Project, plan: str, phase: str) -> str:
    return work.begin_retry(project, plan, phase or None)


def _audit(project: Project, command: Command, _: Speaker) -> Reply:
    """Look at the form first: an auditor is not paid for what anybody can see."""
    plan = plans.row(project, command.plan)
    if faults := structural_faults(plans.text(project, plan)):
        lines = "\n".join(f"{fault.severity.value}: {fault.title}" for fault in faults)
        raise RefusedByGate(f"`{plan.path}` is not a whole plan:\n{lines}", f"edit `{plan.path}`")
    return _begun(forges.audit(project, plan.plan), f"audits {plan.plan}")


def _land(project: Project, command: Command, _: Speaker) -> Reply:
    plan = plans.row(project, command.plan).plan
    run = landing.begin(project, (plan,), None)
    return said("nothing to land") if run is None else _begun(run, f"lands {plan}")


def _forge(project: Project, command: Command, _: Speaker) -> Reply:
    _require_no_forge(project)
    run = forges.begin(project, command.description, context=_given(command.context)).run
    return _begun(run, f"forges {_subject(project, run)}")


def _forge_again(project: Project, command: Command, speaker: Speaker) -> Reply:
    """Go on with an interrupted forge, audit a plan once more, or carry out one that is approved."""
    plan = plans.row(project, command.plan)
    mine = [row for row in runs.rows(project, unfinished=True) if row.subject == plan.plan]
    if mine and mine[0].status != "running":
        return _resume(project, Command(name="resume", run=mine[0].run), speaker)
    if plan.status not in RUNNABLE:
        _require_no_forge(project)
    forges.require_constraints(project)
    begun = forges.again(project, plan.plan)
    return _begun(begun.run, f"{'carries out' if begun.approved else 'forges'} {plan.plan}")


def _require_no_forge(project: Project) -> None:
    for item in _here(project, forges.FLOW):
        raise Locked(
            f"a forge is under way: `{item.run}` of `{item.subject}`",
            "wait for it, or end it with `!forge cancel`",
        )


def _here(project: Project, flow: str) -> list[Work]:
    """The runs of a flow that go on here."""
    there = {row.run for row in runs.rows(project, unfinished=True, flow=flow)}
    return [item for item in background.under_way(project) if item.run in there]


def _forge_status(project: Project, command: Command, speaker: Speaker) -> Reply:
    del command, speaker
    found = forges.unfinished(project)
    lines = [
        f"{row.run} forges {row.plan}: {row.status}{f', the {row.doing} is at work' if row.doing else ''}"
        for row in found
    ]
    then = tuple(row.next for row in found)
    return said("\n".join(lines) or "no forge is under way", data=found, then=then)


def _forge_cancel(project: Project, command: Command, speaker: Speaker) -> Reply:
    """End the forge that goes on here; if none does, the one that nobody drives."""
    del command
    here = {item.run for item in _here(project, forges.FLOW)}
    found = runs.rows(project, unfinished=True, flow=forges.FLOW)
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


def _fix(project: Project, command: Command, speaker: Speaker) -> Reply:
    run = fixes.begin(project, command.description, actor=_actor(project, speaker))
    return _begun(run, f"mends it as {_subject(project, run)}")


def _resume(project: Project, command: Command, _: Speaker) -> Reply:
    here = {item.run for item in background.under_way(project)}
    found = [run for run in runs.to_resume(project, command.run or None) if run not in here]
    if not found:
        return said("nothing to resume")
    return said(f"goes on with {', '.join(found)}", data=found, runs=tuple(found))


def _stop(project: Project, command: Command, speaker: Speaker) -> Reply:
    del command, speaker
    mine = background.under_way(project)
    return _stopped(mine) if mine else said("nothing goes on here")


def _stopped(mine: list[Work]) -> Reply:
    left = {item.run for item in background.stop(mine)}
    over = [item for item in mine if item.run not in left]
    lines = [f"{item.run} was stopped; nothing is lost" for item in over if item.ended is None]
    lines += [f"{item.run} had ended" for item in over if item.ended is not None]
    lines += [f"{run} does not stop yet" for run in sorted(left)]
    then = tuple(Action("resume", item.run) for item in over if item.ended is None)
    return said("\n".join(lines), data=[item.run for item in mine], then=then)


def _begun(run: str, what: str) -> Reply:
    return said(f"{run} {what}", data={"run": run}, runs=(run,))


def _subject(project: Project, run: str) -> str:
    return next(row.subject for row in runs.rows(project, unfinished=True) if row.run == run)


def _actor(project: Project, speaker: Speaker) -> str:
    if speaker.depth:
        return AGENT
    return deciders.person_or_script(project, speaker.name)


DOING: dict[str, Doing] = {
    "help": _help(""),
    "plan help": _help("plan"),
    "forge help": _help("forge"),
    "status": _status,
    "plan list": _list,
    "plan show": _show,
    "plan diff": _diff,
    "plan phases": _phases,
    "plan create": _create,
    "plan approve": _approve,
    "plan close": _close,
    "plan cancel": _cancel,
    "plan skip": _skips(phases.skip),
    "plan skip-to": _skips(phases.skip_to),
    "plan run": _carries_out(_phase, "carries out {plan}"),
    "plan run-one": _carries_out(_next_phase, "carries out the next phase of {plan}"),
    "plan run-phase": _carries_out(_phase, "carries out {phase} of {plan}"),
    "plan retry": _carries_out(_again, "tries {phase} of {plan} again"),
    "plan audit": _audit,
    "plan land": _land,
    "forge create": _forge,
    "forge resume": _forge_again,
    "forge status": _forge_status,
    "forge cancel": _forge_cancel,
    "forge audit": _audit,
    "fix": _fix,
    "resume": _resume,
    "stop": _stop,
}
"""Who does what; a command that is missing here fails a test."""
