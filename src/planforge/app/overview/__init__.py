"""
One screen: what goes on, what waits for a person, what there is and what it has cost, what to type next.

All of it comes from the projections, by their keys, and none of the events is loaded: it has to be quick.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import REQUEST, Action, Hint
from planforge.app import runs
from planforge.app.decisions import questions
from planforge.app.decisions.questions import QuestionRow
from planforge.app.items import offers, plans, task_rows
from planforge.app.items.plans import PlanRow, StepRow
from planforge.app.items.task_rows import TaskRow
from planforge.app.runs import RunRow
from planforge.errors import PlanforgeError
from planforge.kernel.wording import counted
from planforge.kernel.work import actions, decisions
from planforge.kernel.work.actions import AtWork

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.kernel.work.decisions import Decision

LAND = Action("land")
"""Lands everything that is done."""

SHOWN_RUNS = 10
"""How many ended runs the screen shows; the unfinished ones are all there."""

BRANCHES = "refs/heads/"
"""How the subjects of runs begin that land something on a branch."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What something has cost so far; None is unknown, not nothing."""

    tokens: int | None = None
    money: int | None = None
    """In millionths, as agents reported it."""
    unknown: int = 0
    """How many amounts nobody could tell; each counts as what was put aside for it."""


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A run that somebody drives now."""

    run: str
    flow: str
    subject: str
    since: str
    steps: tuple[str, ...]
    """Which steps are under way."""
    roles: tuple[str, ...]
    """Whose agents are at work."""
    cost: Cost


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not go on without a person."""

    what: str
    """question, gate, plan, plans, run or task"""
    name: str
    about: str
    since: str
    command: Hint
    """The one thing to do."""


class PlanStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, how far its steps have come, and what it has cost."""

    plan: PlanRow
    steps: tuple[StepRow, ...]
    badge: str = ""
    """What its evidence amounts to, in a word."""
    cost: Cost = Cost()


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a project."""

    schema_version: int = 1
    root: str
    events: int
    runs: tuple[RunRow, ...]
    """The unfinished ones, and the newest of those that are over."""
    plans: tuple[PlanStatus, ...]
    next: tuple[Hint, ...]
    """What makes sense now, the most urgent first."""
    questions: tuple[QuestionRow, ...] = ()
    """What people are asked and have not answered, the oldest first."""
    tasks: tuple[TaskRow, ...] = ()
    """Tasks on their way through a pipeline, without those that were given up."""
    running: tuple[Running, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    """What waits for a person, the oldest first."""
    cost: Cost = Cost()
    """What all runs have cost."""
    now: str = ""
    ended: int = 0
    """How many runs are over."""


def overview(project: Project) -> Overview:
    """The state of `project` as the ledger has it."""
    every = runs.rows(project)
    ended = [run.run for run in every if not run.unfinished]
    last = set(ended[-SHOWN_RUNS:])
    shown = [run for run in every if run.unfinished or run.run in last]
    by_plan = _costs(project, "plan:", "plan;")
    listed = tuple(
        _plan(project, row, by_plan.get(f"plan:{row.plan}", Cost())) for row in plans.rows(project)
    )
    asked = questions.waiting(project).questions
    current = tuple(task for task in task_rows.rows(project) if task.status != "abandoned")
    offered = _offered(project, every, listed, current)
    return Overview(
        root=str(project.root),
        events=project.ledger.head(),
        runs=tuple(shown),
        plans=listed,
        next=tuple(_next(project, every, offered)),
        questions=asked,
        tasks=current,
        running=tuple(_running(project, run) for run in every if run.status == "running"),
        waiting=_waiting(project, every, listed, asked, current, offered),
        cost=_in_all(project),
        now=project.ledger.now().isoformat(timespec="seconds"),
        ended=len(ended),
    )


def _plan(project: Project, row: PlanRow, cost: Cost) -> PlanStatus:
    steps = plans.steps(project, row.plan)
    return PlanStatus(plan=row, steps=steps, badge=plans.shown_badge(row, steps), cost=cost)


# What goes on


def _running(project: Project, run: RunRow) -> Running:
    steps = "SELECT step FROM steps WHERE plan = ? AND status = 'in-progress' AND revision = "
    newest = "(SELECT max(revision) FROM revisions WHERE plan = ?) ORDER BY ordinal"
    under_way = project.ledger.query(f"{steps}{newest}", run.subject, run.subject)
    # What is put aside for an agent at work names the role it plays.
    aside = "SELECT scopes FROM reservations WHERE reconciled IS NULL AND reservation BETWEEN ? AND ?"
    scopes = project.ledger.query(aside, f"{run.run}/", f"{run.run}0")
    prefix = f"role:{run.run}/"
    roles = (
        scope.removeprefix(prefix)
        for (names,) in scopes
        for scope in msgspec.json.decode(names, type=list[str])
        if scope.startswith(prefix)
    )
    return Running(
        run=run.run,
        flow=run.flow,
        subject=run.subject,
        since=run.started_at,
        steps=tuple(step for (step,) in under_way),
        roles=tuple(dict.fromkeys(roles)),
        cost=_costs(project, f"run:{run.run}", f"run:{run.run}/").get(f"run:{run.run}", Cost()),
    )


# What waits


def _offered(
    project: Project, every: list[RunRow], listed: tuple[PlanStatus, ...], current: tuple[TaskRow, ...]
) -> dict[str, list[Action]]:
    """What can be done next about each plan, fix and task that no run is at."""
    busy = {run.subject for run in every if run.unfinished}
    landing = offers.interrupted_landing([run for run in every if run.unfinished])
    found = {
        item.plan.plan: (item.plan.status, offers.known_of(project, item.plan, item.steps, landing))
        for item in listed
    }
    found |= {task.task: (task.status, offers.known_of_task(project, task.task, landing)) for task in current}
    return {
        name: actions.offered(name, status, known)
        for name, (status, known) in found.items()
        if name not in busy
    }


def _waiting(
    project: Project,
    every: list[RunRow],
    listed: tuple[PlanStatus, ...],
    asked: tuple[QuestionRow, ...],
    current: tuple[TaskRow, ...],
    offered: dict[str, list[Action]],
) -> tuple[Waiting, ...]:
    found = [
        Waiting(
            what="question",
            name=each.name,
            about=f"{' '.join(each.text.split())} ({' | '.join(option.name for option in each.options)})",
            since=each.asked_at,
            command=Action("question show", each.name),
        )
        for each in asked
    ]
    gates = decisions.waiting(project.ledger, "gate")
    found += map(_of_gate, gates)
    found += map(_of_run, _stopped(every, {each.run for each in asked} | {gate.run for gate in gates}))
    for item in listed:
        if ways := offered.get(item.plan.plan):
            about = f"{item.plan.status}{_voided(project, item.plan)}: {item.plan.title}"
            found.append(_of_item("plan", item.plan.plan, about, item.plan.updated_at, ways))
    if files := plans.unknown(project):
        found.append(
            Waiting(
                what="plans",
                name=counted(len(files), "plan file"),
                about=f"this ledger does not know {files[0]}{' and others' if len(files) > 1 else ''}",
                since=project.ledger.now().isoformat(timespec="seconds"),
                command=plans.ADOPT,
            )
        )
    for task in current:
        if ways := offered.get(task.task):
            found.append(_of_item("task", task.task, f"{task.status}: {task.title}", task.updated_at, ways))
    return tuple(sorted(found, key=lambda each: each.since))


def _of_item(what: str, name: str, about: str, since: str, ways: list[Action]) -> Waiting:
    return Waiting(what=what, name=name, about=about, since=since, command=ways[0])


def _of_gate(gate: Decision) -> Waiting:
    about = f"{gate.subject} {gate.step}: a change needs a person"
    return Waiting(what="gate", name=gate.label, about=about, since=gate.asked_at, command=gate.look)


def _stopped(every: list[RunRow], explained: set[str]) -> list[RunRow]:
    """The runs that do not go on by themselves, but for those of which a decision that waits says why."""
    stopped = [run for run in every if run.status in ("interrupted", "waiting")]
    return [run for run in stopped if run.until or run.run not in explained]


def _of_run(run: RunRow) -> Waiting:
    why = run.reason or run.status
    if run.until:
        why = f"parked until {run.until[:16].replace('T', ' ')} UTC"
    about = f"{run.flow} of {run.subject}: {why}"
    return _of_item("run", run.run, about, run.updated_at, actions.of_run(AtWork(run=run.run)))


# What it has cost


def _costs(project: Project, first: str, end: str) -> dict[str, Cost]:
    """What the scopes from one name on, and before another, have spent."""
    columns = "SELECT scope, kind, spent, unknown FROM budgets WHERE scope >= ? AND scope < ?"
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for scope, kind, spent, unknown in project.ledger.query(columns, first, end):
        found.setdefault(scope, {})[kind] = (spent, unknown)
    return {scope: _cost(kinds) for scope, kinds in found.items()}


def _in_all(project: Project) -> Cost:
    """What all runs have cost, added up where they are kept: there may be thousands of them."""
    columns = "SELECT kind, total(spent), total(unknown) FROM budgets"
    found = project.ledger.query(f"{columns} WHERE scope >= 'run:' AND scope < 'run;' GROUP BY kind")
    return _cost({kind: (int(spent), int(unknown)) for kind, spent, unknown in found})


def _cost(kinds: dict[str, tuple[int, int]]) -> Cost:
    tokens, money = kinds.get("tokens", (0, 0)), kinds.get("money", (0, 0))
    # An agent that costs nothing says so; one that says nothing may have cost anything.
    return Cost(tokens=tokens[0] or None, money=money[0] or None, unknown=tokens[1] + money[1])


# What to type


def _next(project: Project, every: list[RunRow], offered: dict[str, list[Action]]) -> list[Hint]:
    """What makes sense now. One landing takes all that is done; only then is the checkout updated."""
    asked = decisions.waiting(project.ledger)
    found: list[Hint] = [each.look for each in asked]
    stopped = _stopped(every, {each.run for each in asked})
    due = [run for run in stopped if not run.until or runs.is_due(project, run.until)]
    found += [action for run in due for action in actions.of_run(AtWork(run=run.run))]
    for ways in offered.values():
        found += [LAND if way.verb in ("land", "plan land") else way for way in ways]
    if LAND not in found and _has_landed(project, every):
        from planforge.app.landing import is_ahead  # it takes a look into git

        found += [actions.UPDATE] if is_ahead(project) else []
    found += [plans.ADOPT] if plans.unknown(project) else []
    return list(dict.fromkeys(found)) or [Action("forge", REQUEST)]


def _has_landed(project: Project, every: list[RunRow]) -> bool:
    """Whether something was landed and nothing was brought into the checkout since."""
    done = [run.run for run in every if run.status == "done" and run.subject.startswith(BRANCHES)]
    updated = "SELECT 1 FROM events WHERE stream = ? AND kind = 'CheckoutUpdated'"
    return bool(done) and not any(project.ledger.query(updated, done[-1]))


def _voided(project: Project, plan: PlanRow) -> str:
    """That a plan was edited after its approval, in words; empty if it was not."""
    if plan.status not in ("APPROVED", "IMPLEMENTING") or not plan.path:
        return ""
    from planforge.documents.plan import content_hash  # which is slow to load

    with suppress(PlanforgeError):  # it cannot be read
        if content_hash(plans.text(project, plan)) != plan.content:
            return ", but edited since, so its approval is void"
    return ""
