"""
Which finished plans and tasks may land on a branch, and in which order.

A plan may land if its branch is exactly what Planforge left there: every commit on
it was made by a run that a person had approved, and its tree has passed. A task may
land if its branch is where its pipeline left it; the pipeline has held its gates, and
of its commits the last one has passed. What else is on the branch is named, and
nothing of it lands. A plan that is built on another one comes after it; otherwise
the one that was done first comes first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import singledispatchmethod
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from planforge.app.items import plans, task_rows
from planforge.errors import CannotPerform
from planforge.kernel import events
from planforge.kernel.effects import HeldPlan, Queue, QueuedPlan, QueuedStep
from planforge.kernel.events import Event
from planforge.kernel.filters import Filter, read
from planforge.kernel.graph.steps import happened
from planforge.kernel.work.items import Kind, is_named, kind_of
from planforge.kernel.work.links import waits_for
from planforge.workspace.archive import ARCHIVE
from planforge.workspace.git import Git
from planforge.workspace.landing.merges import Work, beyond, changed, facts, is_ancestor

if TYPE_CHECKING:
    from planforge.app.items.plans import PlanRow
    from planforge.app.items.task_rows import TaskRow
    from planforge.app.project import Project

MADE = ("PatchProposed", "PatchApplied", "PlanLanded", "LandingCaughtUp")
"""The facts that say which commits on branches are of Planforge's making."""

GIVEN_UP = ("CLOSED", "CANCELLED", "abandoned")
"""The statuses of what does not land any more."""


class Applied(NamedTuple):
    """A change that landed on the plan's branch, and the run that landed it."""

    event: events.PatchApplied
    run: str


class Ended(NamedTuple):
    """How the work on a plan or a task ended, and where it left its branch."""

    succeeded: bool
    reason: str
    branch: str
    commit: str


class Known(NamedTuple):
    """Commits of Planforge's making: those of steps with their plans, and all of them."""

    owners: Mapping[str, str]
    made: Collection[str]


class Story:
    """What the ledger says of one plan or task, as far as landing goes."""

    def __init__(self, name: str, title: str, status: str = "") -> None:
        self.plan = name
        self.title = title
        self.status = status
        """The status of a task; empty for a plan."""
        self.started: events.PlanStarted | None = None
        self.ended: Ended | None = None
        self.paused = ""
        """Why the last run ended before the plan did, if it did."""
        self.age = 0
        self.base = ""
        """Where the plan's branch began."""
        self.applied: dict[str, Applied] = {}
        self.proposed: set[str] = set()
        """The commits of a task that led to the one that was committed."""
        self.approved: set[tuple[str, str]] = set()
        self.passed: set[str] = set()
        self.rescoped = False
        self.reopened = ""
        """Why it could not land, if steps of it were opened again for that."""
        self.moved = ""
        """What a person has done with it, if it is not to land any more."""
        self.refused_by = ""
        """The branch that it could not land on."""
        self.refused_at = ""
        """When that was."""
        self.seq, self.at, self.stream = 0, "", ""
        """Of the event that is taken."""

    @property
    def under_way(self) -> bool:
        """Whether a run has begun that has not ended."""
        return self.started is not None and self.ended is None and not self.paused

    @singledispatchmethod
    def take(self, event: Event) -> None:
        """Most events change nothing here."""

    @take.register
    def _(self, event: events.PlanStarted) -> None:
        self.started, self.ended, self.reopened, self.rescoped = event, None, "", False
        self.paused = self.moved = ""
        self.base = self.base or event.base

    @take.register
    def _(self, event: events.PlanPaused) -> None:
        self.paused = event.reason

    @take.register
    def _(self, event: events.PlanEnded) -> None:
        self.ended = Ended(event.succeeded, event.reason, event.branch, event.commit)
        self.age = self.seq

    @take.register
    def _(self, event: events.ItemMoved) -> None:
        if kind_of(event.item) is Kind.TASK:
            return  # its row says how it stands
        said = f"it is {event.status} ({event.actor}: {event.reason})"
        self.moved = "" if event.status == "DONE" else said

    @take.register
    def _(self, event: events.PlanRescoped) -> None:
        del event
        self.rescoped = True

    @take.register
    def _(self, event: events.PatchApplied) -> None:
        self.applied[event.commit] = Applied(event, self.stream)
        self.age = self.seq

    @take.register
    def _(self, event: events.PatchProposed) -> None:
        self.proposed.add(event.commit)

    @take.register
    def _(self, event: events.DecisionUsed) -> None:
        self.approved.add((event.content, event.run))

    @take.register
    def _(self, event: events.VerifyOk) -> None:
        self.passed.add(event.evidence.tree)

    @take.register
    def _(self, event: events.LandingConflicted | events.LandingBroken) -> None:
        self.refused_by, self.refused_at = event.branch, self.at

    @take.register
    def _(self, event: events.StepReopened) -> None:
        self.reopened = event.reason

    @take.register
    def _(self, event: events.PlanLanded) -> None:
        del event
        self.reopened = ""


def story(project: Project, row: PlanRow) -> Story:
    """What the ledger says of a plan."""
    return _told(project, Story(row.plan, row.title))


def story_of_task(project: Project, row: TaskRow) -> Story:
    """What the ledger says of a task of a pipeline."""
    found = _told(project, Story(row.task, row.title, row.status))
    applied = found.applied.get(row.landed)
    if applied:
        found.base = applied.event.parent
        found.approved.add((applied.event.content, applied.run))  # the gates of its pipeline were held
    if row.status not in ("committed", "landed"):
        found.moved = f"it is {row.status}"
    found.ended = Ended(bool(applied), row.reason, row.branch, row.landed)
    return found


def _told(project: Project, found: Story) -> Story:
    for item in happened(project.ledger, found.plan):
        found.seq, found.at, found.stream = item.seq, item.at, item.stream
        found.take(item.event)
    return found


def made(project: Project) -> set[str]:
    """All commits on branches that are of Planforge's making; those that led to a task's are beneath it."""
    found = set()
    for item in read(project.ledger, Filter(kinds=MADE)):
        match item.event:
            case events.PatchProposed(plan=plan) if not is_named(plan, Kind.TASK):
                continue  # what lands of a plan was applied
            case events.PatchProposed() | events.PatchApplied() | events.PlanLanded() as event:
                found.add(event.commit)
            case events.LandingCaughtUp() as event:
                found.add(event.commit)
    return found


def require_wanted(project: Project, name: str) -> None:
    """Refuse to land what a person has closed, cancelled or abandoned, perhaps while it was being tested."""
    row = task_rows.row(project, name) if is_named(name, Kind.TASK) else plans.row(project, name)
    if row.status in GIVEN_UP:
        raise CannotPerform(f"it is {row.status}")
    if names := waits_for(project.ledger, name):
        raise CannotPerform(f"it comes after {', '.join(names)}, which has not landed")


def queue(project: Project, branch: str, tip: str, names: Collection[str] = ()) -> Queue:
    """What may land on `tip`, the next plan first; of `names` alone, if there are any."""
    git = project.git
    stories = {row.plan: story(project, row) for row in plans.rows(project)}
    stories |= {row.task: story_of_task(project, row) for row in task_rows.rows(project) if row.branch}
    owners = {commit: found.plan for found in stories.values() for commit in found.applied}
    known = Known(owners, made(project))
    ready: list[QueuedPlan] = []
    held: list[HeldPlan] = []
    landed: list[str] = []
    for found in stories.values():
        if names and found.plan not in names:
            continue
        if found.ended and found.ended.succeeded and has(git, tip, found.ended.commit):
            landed.append(found.plan)
        elif reason := _unfit(found, asked=bool(names)):
            # What nobody asked for and is not done, or waits for its person, is nobody's news.
            held += [HeldPlan(plan=found.plan, reason=reason)] if names else []
        else:
            item = _checked(git, found, branch, tip, known)
            if isinstance(item, QueuedPlan):
                ready.append(item)
            else:
                held.append(item)
    ready, waiting = _by_links(project, ready)
    ages = {found.plan: found.age for found in stories.values()}
    return Queue(ready=_in_order(ready, ages), held=(*held, *waiting), landed=tuple(landed))


def _by_links(project: Project, ready: list[QueuedPlan]) -> tuple[list[QueuedPlan], list[HeldPlan]]:
    """What a person has said to come after something waits for it: for its turn, or until it is done."""
    waits = {item.plan: {*waits_for(project.ledger, item.plan)} for item in ready}
    held: list[HeldPlan] = []
    while late := [item for item in ready if not waits[item.plan] <= {each.plan for each in ready}]:
        ready = [item for item in ready if item not in late]
        held += [
            HeldPlan(
                plan=item.plan,
                reason=f"it comes after {', '.join(sorted(waits[item.plan]))}, which has not landed",
            )
            for item in late
        ]
    return [replace(item, after=tuple(sorted({*item.after, *waits[item.plan]}))) for item in ready], held


def has(git: Git, tip: str, commit: str) -> bool:
    """Whether `tip` has `commit`; a commit that is not there any more it has not."""
    return git.ref(f"{commit}^{{commit}}") is not None and is_ancestor(git, commit, tip)


def _unfit(found: Story, *, asked: bool) -> str | None:
    if found.moved:
        return found.moved
    if found.started is None and not found.status:
        return "it has not been carried out"
    if found.paused:
        return f"it is not done ({found.paused})"
    if found.ended is None:
        return "it is being carried out"
    if not found.ended.succeeded:
        return f"it is not done ({found.ended.reason})"
    return found.reopened if found.reopened and not asked else None


def _checked(git: Git, found: Story, branch: str, tip: str, known: Known) -> QueuedPlan | HeldPlan:
    """The plan as it may land, or the first thing that keeps it from that."""
    assert found.ended is not None
    commit = found.ended.commit
    fault = "it was rescoped after it was carried out" if found.rescoped else None
    if fault := fault or _astray(git, found.ended.branch, commit):
        return HeldPlan(plan=found.plan, reason=fault)
    commits = beyond(git, commit, tip)
    for name in commits:
        if fault := _fault(git, found, branch, name, known):
            return HeldPlan(plan=found.plan, reason=fault)
    others = {known.owners[name] for name in commits if name in known.owners} - {found.plan}
    return QueuedPlan(
        plan=found.plan,
        title=found.title,
        branch=found.ended.branch,
        commit=commit,
        after=tuple(sorted(others)),
        steps=_steps(git, [found.applied[name] for name in reversed(commits) if name in found.applied]),
        status=found.status,
    )


def _astray(git: Git, branch: str, commit: str) -> str | None:
    """Why the plan's branch is not where the plan ended."""
    at = git.ref(f"refs/heads/{branch}")
    if at is None:
        return f"its branch `{branch}` is gone"
    if at == commit:
        return None
    if git.ref(f"{commit}^{{commit}}") is None:
        return f"`{commit[:12]}`, where it ended, is gone"
    more = beyond(git, at, commit)
    if more:
        return f"`{branch}` has {_named(git, more[-1])}, which Planforge did not make"
    return f"`{branch}` is not at `{commit[:12]}` any more, where it ended"


def _fault(git: Git, found: Story, branch: str, commit: str, known: Known) -> str | None:
    """Why one commit may not land with the plan."""
    if applied := found.applied.get(commit):
        if (applied.event.content, applied.run) not in found.approved:
            return f"{_named(git, commit)} was made under no approval that is on record"
        if git.tree_of(commit) not in found.passed:
            return f"{_named(git, commit)} has no evidence that passed"
        return None
    if commit in known.owners or commit in known.made or (found.status and commit in found.proposed):
        return None
    if is_ancestor(git, commit, found.base):
        return f"it is built on {_named(git, commit)}, which `{branch}` does not have"
    ended = found.ended.branch if found.ended else ""
    return f"`{ended}` has {_named(git, commit)}, which Planforge did not make"


def _named(git: Git, commit: str) -> str:
    return f"`{commit[:12]}` ({facts(git, commit).subject})"


def _steps(git: Git, applied: Iterable[Applied]) -> tuple[QueuedStep, ...]:
    files: dict[str, set[str]] = {}
    for event, _ in applied:
        files.setdefault(event.step, set()).update(changed(git, event.parent, event.commit))
    return tuple(QueuedStep(step=step, files=tuple(sorted(paths))) for step, paths in files.items())


def _in_order(ready: Iterable[QueuedPlan], ages: Mapping[str, int]) -> tuple[QueuedPlan, ...]:
    """The oldest first, but each after those it is built on."""
    left = sorted(ready, key=lambda item: ages[item.plan])
    ordered: list[QueuedPlan] = []
    while left:
        waiting = {item.plan for item in left}
        first = next((item for item in left if waiting.isdisjoint(item.after)), left[0])
        ordered.append(first)
        left.remove(first)
    return tuple(ordered)


# Work that has not landed, for a look ahead


def work(project: Project, tip: str) -> list[Work]:
    """What is on its way to a branch at `tip`: branches of plans and tasks, and steps that are under way."""
    found = [
        Work(row.task, row.landed)
        for row in task_rows.rows(project)
        if row.status == "committed" and not has(project.git, tip, row.landed)
    ]
    for row in plans.rows(project):
        if not row.branch:
            continue
        known = story(project, row)
        at = project.git.ref(f"refs/heads/{row.branch}")
        if at is not None and not is_ancestor(project.git, at, tip):
            found.append(Work(row.plan, at))
        if known.under_way and known.started is not None:
            found += _under_way(project.git, known, known.started)
    return found


class _Kept(msgspec.Struct, frozen=True, order=True):
    attempt: int
    at: int
    commit: str


def _under_way(git: Git, known: Story, started: events.PlanStarted) -> list[Work]:
    """The newest commit of each step that has not landed on the plan's branch."""
    form = "--format=%(refname) %(committerdate:unix) %(objectname)"
    lines = git.run("for-each-ref", form, f"{ARCHIVE}/{started.run}/").stdout.decode("utf-8", "replace")
    done = {applied.event.step for applied in known.applied.values() if applied.run == started.run}
    newest: dict[str, _Kept] = {}
    for line in lines.splitlines():
        ref, date, commit = line.rsplit(" ", 2)
        for step in (step.step for step in started.steps if step.step not in done):
            if label := re.fullmatch(rf"{re.escape(step)}-(\d+)(\..*)?", ref.rpartition("/")[2]):
                kept = _Kept(attempt=int(label[1]), at=int(date), commit=commit)
                newest[step] = max(newest.get(step, kept), kept)
    return [Work(f"{known.plan}/{step}", kept.commit) for step, kept in newest.items()]
