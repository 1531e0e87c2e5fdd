"""
The phases of a plan: made from its text, kept in the ledger, shown in a file that people read.

The ledger alone says how far each phase has come. The file beside the plan is written from it
and never read back, but for a look whether somebody has edited it: then theirs is put aside
under another name, and both are said. Phases are of exactly one content of their plan; with any
other they are stale, and nothing is run until they are made anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from planforge.app import approvals, plans, runs
from planforge.documents import phases as documents
from planforge.documents.phases import Phase, PhaseKind, signature
from planforge.documents.plan import content_hash, declared_parallel, parse_plan_id
from planforge.errors import InvalidInput, PhasesStale, RefusedByGate
from planforge.kernel import effects, events
from planforge.kernel.graph.steps import happened
from planforge.kernel.ledger import Write
from planforge.kernel.objects import address, write_atomically
from planforge.rules import selection
from planforge.rules.badges import Badge
from planforge.rules.selection import MET, Candidate, Signed
from planforge.workflows.phase import GATE, planned
from planforge.workspace import landing, merging

if TYPE_CHECKING:
    from pathlib import Path

    from planforge.app.plans import PlanRow, StepRow
    from planforge.app.project import Project
    from planforge.kernel.events import KeptStep, PhasesGenerated

REGENERATE = "planforge plan phases {plan} --regenerate"
SEALED = "<!-- planforge: {hash} -->"
"""The last line of the file: the hash of all before it, by which an edit is noticed."""
SEAL = re.compile(r"<!-- planforge: [0-9a-f]{16} -->\s*\Z")


class PhaseView(msgspec.Struct, frozen=True, kw_only=True):
    """One phase and how far it has come."""

    id: str
    title: str
    kind: str
    files: tuple[str, ...]
    depends_on: tuple[str, ...]
    change_spec: str
    status: str = "pending"
    attempts: int = 0
    commit: str = ""
    score: int | None = None
    reason: str = ""


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
    next: tuple[str, ...] = ()


class _Made(msgspec.Struct, frozen=True, kw_only=True):
    """The phases that a plan has now, and the fact that they were made."""

    event: PhasesGenerated
    at: str


def newest(project: Project, plan: str) -> PhasesGenerated | None:
    """The phases that were made last, if any were."""
    made = _newest(project, plan)
    return made.event if made else None


def _newest(project: Project, plan: str) -> _Made | None:
    found = None
    for recorded in project.ledger.stream(plan):
        if isinstance(recorded.event, events.PhasesGenerated):
            found = _Made(event=recorded.event, at=recorded.at)
    return found


def is_stale(project: Project, plan: PlanRow, content: str) -> bool:
    """Whether there are phases, and they are of another content than this."""
    made = newest(project, plan.plan)
    return made is not None and made.content != content


def stale(plan: str) -> PhasesStale:
    """What is said of phases that do not fit their plan any more, with the remedy."""
    again = REGENERATE.format(plan=plan)
    return PhasesStale(
        f"`{plan}` has changed since its phases were made: they may not be what it means now",
        f"run `{again}` to begin anew, or `{again} --keep-done` to keep what says the same",
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
    _require_open(plan)
    before = newest(project, plan.plan)
    if parallel is None and before is not None:
        said = declared_parallel(text)
        parallel = before.parallel if said is None else said

    def decide() -> list[Write]:
        require_idle(project, plan.plan)
        return [_write(project, plan.plan, text, parallel=parallel, keep_done=keep_done, actor=actor)]

    project.ledger.transact(decide)
    write(project, plan.plan)
    return view(project, plan.plan)


def _require_open(plan: PlanRow) -> None:
    if plan.status in ("CLOSED", "CANCELLED"):
        raise RefusedByGate(f"`{plan.plan}` is {plan.status}: nothing more is done with it")


def require_idle(project: Project, plan: str, but: str = "") -> None:
    """Refuse while another run is at the plan."""
    for row in runs.rows(project, unfinished=True):
        if row.subject == plan and row.run != but:
            raise RefusedByGate(
                f"`{plan}` is being worked on by `{row.run}` ({row.status})",
                f"run `planforge resume {row.run}`, or end it: `planforge cancel {row.run} --reason TEXT`",
            )


def cut(project: Project, text: str, parallel: bool | None) -> tuple[tuple[Phase, ...], bool]:
    """The phases of such a plan, and whether they are side by side."""
    settings = project.settings.run
    said = declared_parallel(text) if parallel is None else parallel
    side_by_side = settings.parallel if said is None else said
    return documents.decompose(text, max_files=settings.max_files, parallel=side_by_side), side_by_side


def _write(
    project: Project, plan: str, text: str, *, parallel: bool | None, keep_done: bool, actor: str
) -> Write:
    found, side_by_side = cut(project, text, parallel)
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
    )
    return Write(plan, None, [event])


def _kept(project: Project, plan: str, after: Sequence[Phase]) -> tuple[KeptStep, ...]:
    """Which of the new phases were done or skipped before under whatever name."""
    made = newest(project, plan)
    if made is None:
        return ()
    rows = {row.step: row for row in plans.steps(project, plan)}
    statuses = _statuses(project, plan, tuple(rows.values()))
    before = [
        Signed(
            id=step.step,
            signature=made.signatures.get(step.step, ""),
            status=statuses.get(step.step, "pending"),
            depends_on=step.depends_on,
        )
        for step in made.steps
    ]
    new = [Signed(id=phase.id, signature=signature(phase), depends_on=phase.depends_on) for phase in after]
    return tuple(
        events.KeptStep(step=step, was=was, status=statuses[was], commit=rows[was].landed)
        for step, was in selection.kept(before, new).items()
    )


# Looking


def view(project: Project, name: str) -> PhasesView:
    """The phases of a plan as the ledger has them; those that it would get, if it has none."""
    plan = plans.row(project, name)
    text = plans.text(project, plan)
    made, content = _newest(project, plan.plan), content_hash(text)
    if made is None:
        found, side_by_side = cut(project, text, None)
        shown = tuple(_view(phase, None) for phase in found)
        return PhasesView(
            plan=plan.plan,
            path="",
            content=content,
            stale=False,
            parallel=side_by_side,
            badge=Badge.PENDING,
            phases=shown,
            next=tuple(_next(project, plan, shown, content)),
        )
    shown = _phases(project, plan, made.event)
    return PhasesView(
        plan=plan.plan,
        path=_file(project, plan).relative_to(project.root).as_posix(),
        content=made.event.content,
        stale=made.event.content != content,
        parallel=made.event.parallel,
        badge=plans.badge_of(plans.steps(project, plan.plan)),
        phases=shown,
        edited=_edited(project, plan),
        next=tuple(_again(plan) if made.event.content != content else _next(project, plan, shown, content)),
    )


def _again(plan: PlanRow) -> list[str]:
    again = REGENERATE.format(plan=plan.plan)
    return [f"{again} --keep-done", again]


def _next(project: Project, plan: PlanRow, shown: Sequence[PhaseView], content: str) -> list[str]:
    if all(phase.status in MET for phase in shown) and plan.status == "DONE":
        return ["planforge land"]
    if plan.status in ("CLOSED", "CANCELLED", "DONE"):
        return []
    if approvals.holding(project, plan.plan, GATE, content) is None:
        return [f"planforge plan approve {plan.plan}"]
    failed = [phase.id for phase in shown if phase.status == "failed"]
    if failed and plan.status == "IMPLEMENTING":
        retry = f"planforge plan retry {plan.plan} {failed[0]}"
        return [retry, f"planforge plan skip {plan.plan} {failed[0]} --reason TEXT"]
    return [f"planforge plan run {plan.plan}"]


def _phases(project: Project, plan: PlanRow, made: PhasesGenerated) -> tuple[PhaseView, ...]:
    """The phases of the ledger, with what their plan said about each when they were made."""
    rows = {row.step: row for row in plans.steps(project, plan.plan)}
    specs = {phase.id: phase for phase in _said(project, plan, made)}
    shown = []
    for step in made.steps:
        phase = specs.get(step.step) or Phase(
            id=step.step,
            title=step.title,
            kind=PhaseKind(step.kind),
            files=step.files,
            depends_on=step.depends_on,
            change_spec="",
        )
        shown.append(_view(phase, rows.get(step.step)))
    return tuple(shown)


def _said(project: Project, plan: PlanRow, made: PhasesGenerated) -> tuple[Phase, ...]:
    """The phases with their change specs, if the plan still says what they were made from."""
    text = plans.text(project, plan)
    if content_hash(text) != made.content:
        return ()
    return documents.decompose(text, max_files=made.max_files, parallel=made.parallel)


def _view(phase: Phase, row: StepRow | None) -> PhaseView:
    shown = PhaseView(
        id=phase.id,
        title=phase.title,
        kind=phase.kind.value,
        files=phase.files,
        depends_on=phase.depends_on,
        change_spec=phase.change_spec,
    )
    if row is None:
        return shown
    return msgspec.structs.replace(
        shown,
        status=row.status,
        attempts=row.attempts,
        commit=row.landed,
        score=row.score,
        reason=row.reason,
    )


# What a run asks for


def read(project: Project, effect: effects.ReadPhases) -> effects.KnownPhases:
    """How far the phases of exactly this content have come; made if there are none yet."""
    plan = plans.row(project, effect.plan)
    text = plans.text(project, plan)
    made = newest(project, plan.plan)
    if content_hash(text) != effect.content or (made and made.content != effect.content):
        raise stale(plan.plan)
    asked = effect.parallel or None

    def decide() -> list[Write]:
        known = newest(project, plan.plan)
        if known is None or (effect.parallel and not known.parallel):
            keep = known is not None
            return [_write(project, plan.plan, text, parallel=asked, keep_done=keep, actor="")]
        return []

    project.ledger.transact(decide)
    made = newest(project, plan.plan)
    assert made is not None
    cut_now = documents.decompose(text, max_files=made.max_files, parallel=made.parallel)
    if tuple(planned(phase) for phase in cut_now) != made.steps:
        raise stale(plan.plan)  # another version of Planforge cut them otherwise
    rows = plans.steps(project, plan.plan)
    statuses = _statuses(project, plan.plan, rows)
    failed = [row for row in rows if statuses[row.step] == "failed"]
    return effects.KnownPhases(
        statuses=statuses,
        problems={row.step: row.reason for row in failed},
        changed={row.step: changed for row in failed if (changed := _changed(project, plan, row.step))},
        parallel=made.parallel,
        max_files=made.max_files,
    )


def _statuses(project: Project, plan: str, rows: Sequence[StepRow]) -> dict[str, str]:
    """The status of each phase; what is done and not on the branch any more is to be done again."""
    branch = plans.row(project, plan).branch
    statuses: dict[str, str] = {}
    for row in rows:
        gone = bool(row.landed) and not (branch and landing.holds(project.git, branch, row.landed))
        statuses[row.step] = "pending" if row.status == "done" and gone else row.status
    # Only what was looked at when all was done is worth something as an audit of all.
    for row in rows:
        if row.kind == PhaseKind.AUDIT and statuses[row.step] == "done":
            others = [statuses[other.step] for other in rows if other.kind == PhaseKind.IMPLEMENT]
            if any(status not in MET for status in others):
                statuses[row.step] = "pending"
    return statuses


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
    return tuple(sorted(set(files).intersection(merging.changed(project.git, base, tip))))


# The file


def write(project: Project, plan: str) -> None:
    """Write the file as the ledger has the phases now; one that somebody has edited is put aside first."""
    row, made = plans.row(project, plan), _newest(project, plan)
    if made is None:
        return
    path = _file(project, row)
    _put_aside(path)
    write_atomically(path, _sealed(_rendered(project, row, made)).encode())


def _rendered(project: Project, plan: PlanRow, made: _Made) -> str:
    shown = _phases(project, plan, made.event)
    phases = tuple(
        Phase(
            id=phase.id,
            title=phase.title,
            kind=PhaseKind(phase.kind),
            files=phase.files,
            depends_on=phase.depends_on,
            change_spec=phase.change_spec,
        )
        for phase in shown
    )
    return documents.render_phases(
        parse_plan_id(plan.plan),
        plan.path,
        made.event.content,
        made.at[:10],
        phases,
        {phase.id: phase.status for phase in shown},
        updated=plan.updated_at[:10],
        details={
            phase.id: documents.PhaseDetail(
                commit=phase.commit, error=phase.reason if phase.status == "failed" else ""
            )
            for phase in shown
        },
    )


def _file(project: Project, plan: PlanRow) -> Path:
    return (project.root / plan.path).with_name(f"{plan.plan}-phases.md")


def _sealed(text: str) -> str:
    return f"{text}{SEALED.format(hash=address(text.encode())[:16])}\n"


def _put_aside(path: Path) -> None:
    """Keep what somebody made of the file, under a name of its own."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    body, _, _ = content.rstrip(b"\n").rpartition(b"\n")
    text = body + b"\n"
    if content != _sealed(text.decode("utf-8", "replace")).encode():
        path.rename(path.with_name(f"{path.stem}.edited-{address(content)[:8]}.md"))


def _edited(project: Project, plan: PlanRow) -> tuple[str, ...]:
    """In what the file differs from the ledger, in words."""
    path, made = _file(project, plan), _newest(project, plan.plan)
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return (f"`{path.name}` is gone; it is written again with the next change",)
    said = SEAL.sub("", text)
    return documents.differences(said, _rendered(project, plan, made)) if made else ()


# What a person does


def skip(project: Project, name: str, phase: str | None = None, *, actor: str, reason: str) -> PhasesView:
    """Leave a phase out: the one that is named, or the first that was interrupted or failed."""

    def chosen(known: Sequence[Candidate]) -> tuple[str, ...]:
        if phase is None:
            return (selection.skippable(known).id,)
        found = selection.named(known, phase)
        if found.status in MET:
            raise RefusedByGate(f"`{found.id}` is {found.status} already")
        return (found.id,)

    return _skip(project, name, chosen, actor, reason)


def skip_to(project: Project, name: str, phase: str, *, actor: str, reason: str) -> PhasesView:
    """Leave out whatever stands before a phase."""
    return _skip(project, name, lambda known: selection.skipped_to(known, phase), actor, reason)


def _skip(
    project: Project,
    name: str,
    chosen: Callable[[Sequence[Candidate]], tuple[str, ...]],
    actor: str,
    reason: str,
) -> PhasesView:
    plan = plans.row(project, name)
    _require_open(plan)
    if not reason.strip():
        raise InvalidInput("say why it is left out: `--reason TEXT`")

    def decide() -> list[Write]:
        require_idle(project, plan.plan)
        left_out = chosen(require(project, plan.plan))
        skips = [
            events.StepSkipped(plan=plan.plan, step=step, actor=actor, reason=reason) for step in left_out
        ]
        return [Write(plan.plan, None, skips)] if skips else []

    project.ledger.transact(decide)
    write(project, plan.plan)
    return view(project, plan.plan)


def require(project: Project, plan: str) -> list[Candidate]:
    """The phases to select from; refused if there are none, or if they are stale."""
    row = plans.row(project, plan)
    made = newest(project, plan)
    if made is None:
        raise RefusedByGate(f"`{plan}` has no phases yet", f"run `planforge plan run {plan}`")
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
    if newest(project, plan) is None:
        found = _candidates(cut(project, plans.text(project, row), None)[0], {})
    else:
        found = require(project, plan)
    return selection.target(found, name).id


def failed(project: Project, plan: str, name: str | None) -> str:
    """The phase that failed and can be tried again: the one that is named, or the first."""
    known = require(project, plan)
    if name is None:
        return selection.failed(known).id
    found = selection.target(known, name)
    if found.status != "failed":
        raise RefusedByGate(
            f"`{found.id}` is {found.status}, it has not failed",
            f"run it: `planforge plan run-phase {plan} {found.id}`",
        )
    return found.id
