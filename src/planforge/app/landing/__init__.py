"""
Getting finished plans and tasks onto the person's branch: what would land, landing it, updating the checkout.

A branch has one lander at a time. A landing is a run like any other: what it has
done is in the ledger, and `planforge resume` goes on where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice, Blank
from planforge.app import runs
from planforge.app.items import offers, plans, task_rows
from planforge.app.landing import queue
from planforge.errors import InvalidInput, NoRepository, NotFound, PlanforgeError, RefusedByGate
from planforge.kernel import effects, events
from planforge.kernel.effects import HeldPlan, Probed, Target
from planforge.kernel.events import ForeseenConflict
from planforge.kernel.locks import held
from planforge.kernel.objects import address
from planforge.kernel.work import actions
from planforge.kernel.work.items import Kind, is_named
from planforge.kernel.work.links import before
from planforge.workspace.landing import branches, merges, places, updates

if TYPE_CHECKING:
    from pathlib import Path

    from planforge.app.items.plans import PlanRow
    from planforge.app.project import Project

BRANCH = Blank("BRANCH")
LAND, UPDATE = "land", "update_checkout"
HEADS = "refs/heads/"


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that would be merged next, and whether that goes without a conflict."""

    plan: str
    title: str
    commit: str
    after: tuple[str, ...]
    conflicts: tuple[str, ...]


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a landing would begin with. The evidence that it would want is not gathered."""

    branch: str
    landing: str
    tip: str
    checkout: str
    catches_up: bool
    """Commits of the branch would be merged with what has landed beside it first."""
    ready: tuple[Forecast, ...]
    held: tuple[HeldPlan, ...]
    landed: tuple[str, ...]


class Landed(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that landed."""

    plan: str
    commit: str
    evidence: str


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that did not."""

    plan: str
    why: str
    """conflict, broken or held"""
    reason: str


class LandReport(msgspec.Struct, kw_only=True):
    """A landing told from the ledger."""

    schema_version: int = 1
    run: str
    branch: str
    landing: str = ""
    status: str = "running"
    reason: str = ""
    exit_code: int | None = None
    landed: list[Landed] = []
    left: list[Left] = []
    foreseen: tuple[ForeseenConflict, ...] = ()
    updated: str = ""
    """The checkout that was brought up to date."""
    next: list[Action] = []


# Which branch


def branch_named(project: Project, onto: str | None) -> str:
    """The branch that is meant: the one that was named, that of the settings, or that of the checkout."""
    name = (onto or project.settings.land.branch).removeprefix(HEADS)
    if not name:
        name = places.here(project.git).ref.removeprefix(HEADS)
    if not name:
        raise InvalidInput(
            f"`{project.root}` is on no branch (HEAD is detached)",
            Advice("say which: {}", Action("land", onto=BRANCH)),
        )
    if name.startswith(branches.PREFIX):
        raise InvalidInput(
            f"`{name}` is a branch of Planforge's",
            Advice("name one of yours: {}", Action("land", onto=BRANCH)),
        )
    query = ("show-ref", "--verify", "--quiet", "--", f"{HEADS}{name}")
    if project.git.run(*query, accept=(0, 1, 128)).returncode:
        if not project.git.has_commits():
            raise NoRepository(f"`{project.root}` has no commit to land on", "commit something first")
        raise NotFound(f"there is no branch `{name}`", "see `git branch`")
    return name


@contextmanager
def only_lander(project: Project, subject: str) -> Iterator[None]:
    """Be the only one who lands on the branch that a run is about."""
    branch = subject.removeprefix(HEADS)
    with held(_lock(project, branch), f"landing on `{branch}`"):
        yield


def _lock(project: Project, branch: str) -> Path:
    # In the repository and not in `.planforge`, of which each checkout may have one.
    return project.git.git_dir / f"planforge-land-{address(branch.encode())[:16]}.lock"


# What a person can do


def preview(project: Project, names: Collection[str] = (), onto: str | None = None) -> Preview:
    """What would land, in order; nothing is moved."""
    branch = branch_named(project, onto)
    wanted = _wanted(project, names)
    target, _ = branches.find_target(project.git, branch, queue.made(project))
    found = queue.queue(project, branch, target.tip, wanted)
    return Preview(
        branch=branch,
        landing=target.landing,
        tip=target.tip,
        checkout=target.checkout,
        catches_up=target.missing or bool(target.foreign),
        ready=tuple(_forecasts(project, target, found.ready)),
        held=found.held,
        landed=found.landed,
    )


def _wanted(project: Project, names: Collection[str]) -> tuple[str, ...]:
    """The plans and tasks that are named."""
    return tuple(_named(project, name) for name in names)


def _named(project: Project, name: str) -> str:
    if not is_named(name, Kind.TASK) or plans.of_task(project, name) is not None:
        return plans.row(project, name).plan
    found = task_rows.row(project, name)
    if not found.branch:
        raise RefusedByGate(
            f"`{found.task}` is {found.status}: there is nothing to land",
            Advice("see {}", Action("task show", found.task)),
        )
    return found.task


def _forecasts(project: Project, target: Target, ready: Collection[effects.QueuedPlan]) -> Iterator[Forecast]:
    git, tip = project.git, target.tip
    for item in ready:
        tree, clean, conflicts = merges.attempt(git, tip, item.commit)
        paths = tuple(conflict.path for conflict in conflicts)
        if clean:
            tip = git.commit_tree(tree, [tip, item.commit], "a forecast\n", "1970-01-01T00:00:00+00:00")
        yield Forecast(
            plan=item.plan, title=item.title, commit=item.commit, after=item.after, conflicts=paths
        )


def begin(project: Project, names: Collection[str] = (), onto: str | None = None) -> str | None:
    """Record the landing of what may land; None if there is nothing to do."""
    from planforge.workflows.landing import LandRequest

    branch = branch_named(project, onto)
    with held(_lock(project, branch), f"landing on `{branch}`"):
        if unfinished := _unfinished(project, LAND, branch):
            said = f"`{unfinished}` has not finished landing on `{branch}`"
            raise RefusedByGate(said, Advice("run {}", Action("resume", unfinished)))
        wanted = _wanted(project, names)
        target, _ = branches.find_target(project.git, branch, queue.made(project))
        found = queue.queue(project, branch, target.tip, wanted)
        if not (found.ready or found.held or target.missing or target.foreign):
            return None

        def asked(run: str) -> LandRequest:
            return LandRequest(run=run, branch=branch, plans=wanted, tries=project.settings.land.tries)

        return runs.begin(project, LAND, f"{HEADS}{branch}", asked)


def begin_update(project: Project, onto: str | None = None) -> str | None:
    """Record the update of the checkout, or find the one that was interrupted; None if there is nothing."""
    from planforge.workflows.landing import UpdateRequest

    git, branch = project.git, branch_named(project, onto)
    with held(_lock(project, branch), f"landing on `{branch}`"):
        if unfinished := _unfinished(project, UPDATE, branch):
            return unfinished
        at, tip = git.commit_of(f"{HEADS}{branch}"), git.ref(f"{HEADS}{branches.beside(branch)}")
        if tip is None or merges.is_ancestor(git, tip, at):
            if not updates.is_begun(git, branch):
                return None
            tip = at
        updates.look(git, branch, tip, plans.documents(project))
        request = UpdateRequest(run="", branch=branch, commit=tip)
        return runs.begin(
            project, UPDATE, f"{HEADS}{branch}", lambda run: msgspec.structs.replace(request, run=run)
        )


def _unfinished(project: Project, flow: str, branch: str) -> str | None:
    rows = runs.rows(project, unfinished=True, flow=flow)
    return next((row.run for row in rows if row.subject == f"{HEADS}{branch}"), None)


def probe(project: Project, onto: str | None = None) -> Probed:
    """Which work that has not landed conflicts with the branch or with other such work, as it is now."""
    branch = branch_named(project, onto)
    target, _ = branches.find_target(project.git, branch, queue.made(project))
    return merges.probe(project.git, branch, target.tip, queue.work(project, target.tip))


def reopened(project: Project, plan: str) -> str:
    """Why steps of a plan were opened again after it was done; empty if none were."""
    return queue.story(project, plans.row(project, plan)).reopened


def begin_again(project: Project, plan: str) -> str | None:
    """
    Begin the branch of a plan that could not land again where it could not land, to do its steps anew there.

    What it had is kept; the ref is returned. Nothing happens to a plan that was not opened again.
    """
    row = plans.row(project, plan)
    story = queue.story(project, row)
    if story.started is None or not story.reopened:
        return None
    return _begun_again(project, row.branch, base_after(project, story), f"{story.started.run}/{row.plan}")


def base_of(project: Project, plan: PlanRow, head: str) -> str:
    """
    What the work on a plan begins with: the checkout's commit, or what has landed if it waited for that.

    A branch on which nothing has been done yet begins there, too.
    """
    git, branch = project.git, _branch(project)
    tip = _tip(project, branch) if branch and before(project.ledger, plan.plan) else head
    if tip == head or not merges.is_ancestor(git, head, tip):
        return head
    at = git.ref(f"{HEADS}{plan.branch}") if plan.branch else None
    if at and not queue.story(project, plan).applied and merges.is_ancestor(git, at, tip):
        git.move_ref(f"{HEADS}{plan.branch}", tip, at)
    return tip


def base_after(project: Project, story: queue.Story) -> str:
    """What the work on something begins with that could not land: with what is there by now."""
    if story.refused_by and project.git.ref(f"{HEADS}{story.refused_by}"):
        return _tip(project, story.refused_by)
    return project.git.commit_of("HEAD")


def _tip(project: Project, branch: str) -> str:
    return branches.find_target(project.git, branch, queue.made(project))[0].tip


def _branch(project: Project, onto: str | None = None) -> str:
    """The branch that is meant; empty if none is checked out."""
    try:
        return branch_named(project, onto)
    except PlanforgeError:
        return ""


def begin_task_again(project: Project, story: queue.Story, base: str) -> str | None:
    """Begin the branch of a task that could not land again at `base`; what it had is kept, under that ref."""
    assert story.ended is not None
    run = story.applied[story.ended.commit].run
    return _begun_again(project, story.ended.branch, base, f"{run}/{story.plan}")


def _begun_again(project: Project, branch: str, base: str, name: str) -> str | None:
    git = project.git
    at = git.ref(f"{HEADS}{branch}") if branch else None
    if at is None:
        return None
    run, _, label = name.partition("/")
    kept = merges.keep(git, run, f"{label}.before", at)
    git.move_ref(f"{HEADS}{branch}", base, at)
    return kept


def reaches(project: Project, commit: str) -> bool:
    """Whether the branch that plans land on, or what has landed beside it, has a commit."""
    branch = _branch(project)
    tips = [f"{HEADS}{branch}", f"{HEADS}{branches.beside(branch)}"] if branch else ["HEAD"]
    found = [tip for tip in tips if project.git.ref(tip)]
    return any(queue.has(project.git, tip, commit) for tip in found)


def is_ahead(project: Project, onto: str | None = None) -> bool:
    """Whether something has landed beside the branch that the branch itself does not have."""
    branch = _branch(project, onto)
    tip = project.git.ref(f"{HEADS}{branches.beside(branch)}") if branch else None
    return tip is not None and not merges.is_ancestor(project.git, tip, f"{HEADS}{branch}")


# A landing, told


def report(project: Project, run: str) -> LandReport:
    """How a landing went, from the ledger."""
    told = LandReport(run=run, branch="")
    evidence: dict[str, str] = {}
    for recorded in project.ledger.stream(run):
        match recorded.event:
            case events.RunStarted(subject=subject):
                told.branch = subject.removeprefix(HEADS)
            case events.MergeChecked(evidence=seen):
                evidence[seen.commit] = seen.reason
            case events.PlanLanded() as event:
                told.landing = event.landing
                told.landed = [item for item in told.landed if item.plan != event.plan]
                said = evidence.get(event.commit, "")
                told.landed.append(Landed(plan=event.plan, commit=event.commit, evidence=said))
            case events.CheckoutUpdated() as event:
                told.updated = event.place or event.branch
            case events.ConflictsForeseen(conflicts=conflicts):
                told.foreseen = conflicts
            case events.RunEnded() as event:
                told.status = "done" if event.succeeded else "failed"
                told.reason, told.exit_code = event.reason, event.exit_code
            case event:
                _take_left(told, event)
    told.next = list(_next(project, told))
    return told


def _take_left(told: LandReport, event: events.Event) -> None:
    """What did not land, or did not stay."""
    match event:
        case events.PlanHeldBack(plan=plan, reason=reason):
            told.left.append(Left(plan=plan, why="held", reason=reason))
        case events.LandingBroken(plan=plan, reason=reason):
            told.left.append(Left(plan=plan, why="broken", reason=reason))
        case events.LandingConflicted() as conflict:
            paths = ", ".join(f"`{item.path}`" for item in conflict.conflicts)
            reason = f"in {paths}; both sides are in `{conflict.archive}`"
            told.left.append(Left(plan=conflict.plan, why="conflict", reason=reason))
        case events.LandingRestarted():
            told.landed = []  # what comes back is recorded again


def _next(project: Project, told: LandReport) -> Iterator[Action]:
    """What can be done about what did not land; what is done and was only held back waits for its reason."""
    for item in told.left:
        if is_named(item.plan, Kind.TASK):
            yield from actions.offered(
                item.plan, task_rows.row(project, item.plan).status, offers.known_of_task(project, item.plan)
            )
        elif (plan := plans.row(project, item.plan)).status != "DONE":
            yield from offers.about(project, plan)
    if told.landed and told.landing != told.branch:
        yield actions.UPDATE
