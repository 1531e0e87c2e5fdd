"""
The phases of a plan: made from its text, kept in the ledger, shown in a file that people read.

The ledger alone says how far each phase has come (`phase_views.py`); `phase_file.py` writes the file. Phases
are of exactly one content of their plan; with any other they are stale, and nothing is run until they are
made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice, Hint, see
from planforge.app import landing, runs
from planforge.app.decisions import approvals, statuses
from planforge.app.items import offers, phase_file, phase_views, plans
from planforge.app.items.phase_views import PhaseView
from planforge.documents import phases as documents
from planforge.documents.phases import Phase, PhaseKind, signature
from planforge.documents.plan import content_hash, declared_parallel
from planforge.errors import InvalidInput, PhasesStale, PlanforgeError, RefusedByGate
from planforge.kernel import effects, events
from planforge.kernel.graph.steps import happened
from planforge.kernel.ledger import Write
from planforge.kernel.work.actions import remade
from planforge.rules import selection
from planforge.rules.badges import Badge
from planforge.rules.selection import MET, Candidate
from planforge.workflows.phase import planned
from planforge.workspace.landing import branches, merges

if TYPE_CHECKING:
    from planforge.app.items.plans import PlanRow, StepRow
    from planforge.app.project import Project
    from planforge.kernel.events import KeptStep


class PhasesView(msgspec.Struct, frozen=True, kw_only=True):
    """The phases of a plan, whether they still fit it, and what to do next."""

    plan: str
    path: str
    """The file that shows them; empty if it is not written yet."""
    content: str
    """The content of the plan that they were made from."""
    stale: bool
    parallel: bool
    badge: str
    phases: tuple[PhaseView, ...]
    edited: tuple[str, ...] = ()
    """In what the file differs from the ledger."""
    next: tuple[Hint, ...] = ()


def is_stale(project: Project, plan: PlanRow, content: str) -> bool:
    """Whether there are phases, and they are of another content than this."""
    made = phase_views.newest(project, plan.plan)
    return made is not None and made.content != content


def stale(plan: str) -> PhasesStale:
    """What is said of phases that do not fit their plan any more, with the remedy."""
    keep, remake = remade(plan)
    return PhasesStale(
        f"`{plan}` has changed since its phases were made: they may not be what it means now",
        Advice("run {} to start over, or {} to keep the phases that are the same", remake, keep),
    )


# Making them


def generate(
    project: Project,
    name: str,
    *,
    parallel: bool | None = None,
    keep_done: bool = False,
    actor: str = "",
) -> PhasesView:
    """
    Make the phases anew from the plan as it is now; what is kept is done or skipped already.

    They are side by side, or not, as they were before, unless somebody says otherwise.
    """
    plan = plans.row(project, name)
    text = plans.text(project, plan)
    plans.require_open(plan)
    approvals.require_whole(project, plan, text, remade(plan.plan)[1])
    before = phase_views.newest(project, plan.plan)
    if parallel is None and before is not None:
        said = declared_parallel(text)
        parallel = before.parallel if said is None else said

    def decide() -> list[Write]:
        runs.require_free(project, plan.plan)
        made = _write(project, plan.plan, text, parallel=parallel, keep_done=keep_done, actor=actor)
        return [] if _said_twice(project, made) else [made]

    project.ledger.transact(decide)
    _show(project, plan.plan)
    return view(project, plan.plan)


def _show(project: Project, plan: str) -> None:
    """Write the phases file. What is on record holds without it; `view` says in what a file differs."""
    with suppress(OSError):
        phase_file.write(project, plan)


def cut(
    project: Project, text: str, parallel: bool | None, present: Collection[str]
) -> tuple[tuple[Phase, ...], bool]:
    """The phases of such a plan, and whether they are side by side."""
    settings = project.settings.run
    said = declared_parallel(text) if parallel is None else parallel
    side_by_side = settings.parallel if said is None else said
    found = documents.decompose(text, max_files=settings.max_files, parallel=side_by_side, present=present)
    return found, side_by_side


def _write(
    project: Project, plan: str, text: str, *, parallel: bool | None, keep_done: bool, actor: str
) -> Write:
    present = phase_views.present(project.git, text, plans.row(project, plan).branch)
    found, side_by_side = cut(project, text, parallel, present)
    selection.check(_candidates(found, {}))
    kept = _kept(project, plan, found) if keep_done else ()
    event = events.PhasesGenerated(
        plan=plan,
        content=content_hash(text),
        parallel=side_by_side,
        max_files=project.settings.run.max_files,
        steps=tuple(planned(phase) for phase in found),
        signatures={phase.id: signature(phase) for phase in found},
        kept=kept,
        actor=actor,
        present=present,
    )
    return Write(plan, None, [event])


def _said_twice(project: Project, made: Write) -> bool:
    """Whether these are the phases there are, and none of them has come further: somebody asks once more."""
    before = phase_views.newest(project, made.stream)
    if before is None:
        return False
    found = {row.step: row.status for row in plans.steps(project, made.stream)}
    given = {step.step: "pending" for step in before.steps} | {kept.step: kept.status for kept in before.kept}
    # What was kept then is kept now under the names that it has got.
    kept = tuple(msgspec.structs.replace(kept, was=kept.step) for kept in before.kept)
    again = msgspec.structs.replace(before, kept=kept)
    return found == given and list(made.events) == [again]


def _kept(project: Project, plan: str, after: Sequence[Phase]) -> tuple[KeptStep, ...]:
    """Which of the new phases were done or skipped before under whatever name."""
    made = phase_views.newest(project, plan)
    if made is None:
        return ()
    rows = {row.step: row for row in plans.steps(project, plan)}
    known = _statuses(project, plan, tuple(rows.values()))
    met = [step.step for step in made.steps if known.get(step.step) in MET]
    found = selection.kept(
        {step: made.signatures.get(step, "") for step in met},
        {phase.id: signature(phase) for phase in after},
        {phase.id: phase.depends_on for phase in after},
    )
    return tuple(
        events.KeptStep(step=step, was=was, status=known[was], commit=rows[was].landed)
        for step, was in found.items()
    )


# Looking


def view(project: Project, name: str) -> PhasesView:
    """The phases of a plan as the ledger has them; those that it would get, if it has none."""
    plan = plans.row(project, name)
    text = plans.text(project, plan)
    made, content = phase_views.made_last(project, plan.plan), content_hash(text)
    if made is None:
        present = phase_views.present(project.git, text, plan.branch)
        found, side_by_side = cut(project, text, None, present)
        shown = tuple(phase_views.view(phase, None) for phase in found)
        return PhasesView(
            plan=plan.plan,
            path="",
            content=content,
            stale=False,
            parallel=side_by_side,
            badge=Badge.PENDING,
            phases=shown,
            next=tuple(offered(project, plan)),
        )
    shown = phase_views.shown(project, plan, made.event)
    return PhasesView(
        plan=plan.plan,
        path=plans.phases_path(plan),
        content=made.event.content,
        stale=made.event.content != content,
        parallel=made.event.parallel,
        badge=plans.badge_of(plans.steps(project, plan.plan)),
        phases=shown,
        edited=phase_file.edited(project, plan),
        next=tuple(offered(project, plan)),
    )


def offered(project: Project, plan: PlanRow) -> list[Action]:
    """What can be done next about a plan; about one that is done, as git has it now."""
    if plan.status != "DONE":
        return offers.about(project, plan)
    unlanded, stale = bool(statuses.unlanded(project, plan.plan)), False
    ahead = not unlanded and landing.is_ahead(project)
    with suppress(PlanforgeError):  # its file is gone
        stale = is_stale(project, plan, content_hash(plans.text(project, plan)))
    return offers.about(project, plan, unlanded=unlanded, ahead=ahead, stale=stale)


def require_left(project: Project, plan: PlanRow, content: str) -> None:
    """Refuse to carry out a plan that has come to its end, or in which nothing is left to do."""
    plans.require_open(plan)
    made = phase_views.newest(project, plan.plan)
    if plan.status != "DONE" or made is None or made.content != content:
        return
    if all(row.status in MET for row in plans.steps(project, plan.plan)):
        ways = offered(project, plan) or [Action("plan close", plan.plan)]
        raise RefusedByGate(
            f"`{plan.plan}` is DONE: every phase of it is done or was left out", Advice("run {}", ways[0])
        )


# What a run asks for


def read(project: Project, effect: effects.ReadPhases) -> effects.KnownPhases:
    """How far the phases of exactly this content have come; made if there are none yet."""
    plan = plans.row(project, effect.plan)
    text = plans.text(project, plan)
    made = phase_views.newest(project, plan.plan)
    if content_hash(text) != effect.content or (made and made.content != effect.content):
        raise stale(plan.plan)
    asked = effect.parallel or None

    def decide() -> list[Write]:
        known = phase_views.newest(project, plan.plan)
        if known is None or (effect.parallel and not known.parallel):
            keep = known is not None
            return [_write(project, plan.plan, text, parallel=asked, keep_done=keep, actor="")]
        return []

    try:
        project.ledger.transact(decide)
    except InvalidInput as error:
        raise RefusedByGate(error.message, error.hint) from error
    made = phase_views.newest(project, plan.plan)
    assert made is not None
    cut_now = documents.decompose(
        text, max_files=made.max_files, parallel=made.parallel, present=made.present
    )
    if tuple(planned(phase) for phase in cut_now) != made.steps:
        raise stale(plan.plan)  # another version of Planforge cut them otherwise
    rows = plans.steps(project, plan.plan)
    known = _statuses(project, plan.plan, rows)
    failed = [row for row in rows if known[row.step] == "failed"]
    return effects.KnownPhases(
        statuses=known,
        problems={row.step: row.reason for row in failed},
        changed={row.step: changed for row in failed if (changed := _changed(project, plan, row.step))},
        parallel=made.parallel,
        max_files=made.max_files,
        present=made.present,
        landed={
            step: commit
            for step, commit in _landed_before(project, plan, made).items()
            if known.get(step, "pending") not in MET
        },
    )


def _landed_before(project: Project, plan: PlanRow, made: events.PhasesGenerated) -> dict[str, str]:
    """
    What has landed for the same phases before they were made anew, and is on the branch still.

    A phase is the same if it says the same, and if no other phase has landed in its files since. They have to
    be as it left them, or as an audit mended them. One that could not land with its plan is to be done again.
    """
    if not plan.branch:
        return {}
    signatures: dict[str, str] = {}
    audits: set[str] = set()
    found: dict[str, tuple[events.PatchApplied, ...]] = {}
    for item in happened(project.ledger, plan.plan):
        match item.event:
            case events.PhasesGenerated(signatures=given, steps=steps):
                signatures = given
                audits = {step.step for step in steps if step.kind == PhaseKind.AUDIT}
            case events.PatchApplied(step=step) as mended if step in audits:
                found = {key: (*applied, mended) for key, applied in found.items()}
            case events.PatchApplied(step=step, scope=scope) as one:
                found = {key: each for key, each in found.items() if not set(each[0].scope) & set(scope)}
                found[signatures.get(step, "")] = (one,)
            case events.StepReopened(step=step):
                found.pop(signatures.get(step, ""), None)
    same = {step: found[signed] for step, signed in made.signatures.items() if signed in found}
    return {
        step: applied[0].commit
        for step, applied in same.items()
        if branches.keeps(project.git, plan.branch, [(each.parent, each.commit) for each in applied])
    }


def _statuses(project: Project, plan: str, rows: Sequence[StepRow]) -> dict[str, str]:
    """The status of each phase; what is done and not on the branch any more is to be done again."""
    branch = plans.row(project, plan).branch
    found: dict[str, str] = {}
    for row in rows:
        gone = bool(row.landed) and not (branch and branches.holds(project.git, branch, row.landed))
        found[row.step] = "pending" if row.status == "done" and gone else row.status
    # Only what was looked at when all was done is worth something as an audit of all.
    for row in rows:
        if row.kind == PhaseKind.AUDIT and found[row.step] == "done":
            others = [found[other.step] for other in rows if other.kind == PhaseKind.IMPLEMENT]
            if any(status not in MET for status in others):
                found[row.step] = "pending"
    return found


def _changed(project: Project, plan: PlanRow, step: str) -> tuple[str, ...]:
    """Which files that the failed step had changed are other ones on the branch now than when it began."""
    base, files = "", tuple[str, ...]()
    for item in happened(project.ledger, plan.plan):
        match item.event:
            case events.StepStarted(step=name, base=began) if name == step:
                base = began
            case events.PatchProposed(step=name, files=touched) if name == step:
                files = touched
    tip = project.git.ref(f"refs/heads/{plan.branch}") if plan.branch else None
    if not base or tip is None or project.git.ref(f"{base}^{{commit}}") is None:
        return ()
    return tuple(sorted(set(files).intersection(merges.changed(project.git, base, tip))))


# What a person does


def skip(project: Project, name: str, phase: str | None = None, *, actor: str, reason: str) -> PhasesView:
    """Leave a phase out: the one that is named, or the first that was interrupted or failed."""

    def chosen(known: Sequence[Candidate]) -> tuple[str, ...]:
        if phase is None:
            return (selection.skippable(known, plan).id,)
        found = selection.named(known, phase)
        if found.status in MET:
            raise RefusedByGate(f"`{found.id}` is {found.status} already", see("plan phases", plan))
        return (found.id,)

    plan = plans.row(project, name).plan
    return _skip(project, name, chosen, actor, reason)


def skip_to(project: Project, name: str, phase: str, *, actor: str, reason: str) -> PhasesView:
    """Leave out whatever stands before a phase."""
    plan = plans.row(project, name).plan
    return _skip(project, name, lambda known: selection.skipped_to(known, phase, plan), actor, reason)


def _skip(
    project: Project,
    name: str,
    chosen: Callable[[Sequence[Candidate]], tuple[str, ...]],
    actor: str,
    reason: str,
) -> PhasesView:
    plan = plans.row(project, name)
    plans.require_open(plan)
    if not reason.strip():
        raise InvalidInput("say why it is left out: `--reason TEXT`")

    def decide() -> list[Write]:
        runs.require_free(project, plan.plan)
        left_out = chosen(require(project, plan.plan))
        skips = [
            events.StepSkipped(plan=plan.plan, step=step, actor=actor, reason=reason) for step in left_out
        ]
        return [Write(plan.plan, None, skips)] if skips else []

    try:
        project.ledger.transact(decide)
    except RefusedByGate:
        # Nothing may be left to be done because a process died between the fact and the file.
        with suppress(OSError, PlanforgeError):
            phase_file.catch_up(project, plan.plan)
        raise
    _show(project, plan.plan)
    return view(project, plan.plan)


def require(project: Project, plan: str) -> list[Candidate]:
    """The phases to select from; refused if there are none, or if they are stale."""
    row = plans.row(project, plan)
    made = phase_views.newest(project, plan)
    if made is None:
        if not row.path:
            raise plans.without_file(row)
        ways = offers.about(project, row)
        hint = Advice("run {}", ways[0]) if ways else None
        raise RefusedByGate(f"`{plan}` has not been run yet", hint)
    if made.content != content_hash(plans.text(project, row)):
        raise stale(plan)
    rows = plans.steps(project, plan)
    return _candidates(made.steps, _statuses(project, plan, rows))


def _candidates(
    steps: Sequence[Phase] | Sequence[events.PlannedStep], statuses: dict[str, str]
) -> list[Candidate]:
    found = []
    for step in steps:
        name = step.id if isinstance(step, Phase) else step.step
        status = statuses.get(name, "pending")
        found.append(Candidate(id=name, status=status, depends_on=step.depends_on))
    return found


def runnable(project: Project, plan: str, name: str) -> str:
    """The phase of that name, if it can be run now."""
    row = plans.row(project, plan)
    if phase_views.newest(project, plan) is None:
        text = plans.text(project, row)
        present = phase_views.present(project.git, text, row.branch)
        found = _candidates(cut(project, text, None, present)[0], {})
    else:
        found = require(project, plan)
    return selection.target(found, name, plan).id


def failed(project: Project, plan: str, name: str | None) -> str:
    """The phase that failed and can be tried again: the one that is named, or the first."""
    known = require(project, plan)
    if name is None:
        return selection.failed(known, plan).id
    found = selection.target(known, name, plan)
    if found.status != "failed":
        raise RefusedByGate(
            f"`{found.id}` is {found.status}, it has not failed",
            Advice("run it: {}", Action("plan run-phase", plan, found.id)),
        )
    return found.id
