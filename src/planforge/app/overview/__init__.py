"""
One screen: what goes on, what waits for a person, what there is and what it has cost, what to type next.

All of it comes from the projections, by their keys, and none of the events is loaded: it has to be quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from planforge.actions import TEXT, Action, Blank, Hint
from planforge.app import runs
from planforge.app.decisions import questions
from planforge.app.decisions.questions import QuestionRow
from planforge.app.items import plans, task_rows
from planforge.app.items.plans import PlanRow, StepRow
from planforge.app.items.task_rows import TaskRow
from planforge.app.runs import RunRow
from planforge.errors import PlanforgeError
from planforge.kernel.wording import counted
from planforge.kernel.work import decisions

if TYPE_CHECKING:
    from planforge.app.project import Project

FIX = "fix-"
"""How the names of small changes begin that have no plan file."""

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
    return Overview(
        root=str(project.root),
        events=project.ledger.head(),
        runs=tuple(shown),
        plans=listed,
        next=tuple(_next(project, every, listed)),
        questions=asked,
        tasks=current,
        running=tuple(_running(project, run) for run in every if run.status == "running"),
        waiting=_waiting(project, every, listed, asked, current),
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


def _waiting(
    project: Project,
    every: list[RunRow],
    listed: tuple[PlanStatus, ...],
    asked: tuple[QuestionRow, ...],
    current: tuple[TaskRow, ...],
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
    at_gates = _gates(project)
    found += at_gates
    explained = {each.run for each in asked} | {
        run.run for run in every if any(gate.about.startswith(f"{run.subject} ") for gate in at_gates)
    }
    found += [_of_run(run) for run in every if _needs_somebody(run) and run.run not in explained]
    busy = {run.subject for run in every if run.unfinished}
    unlanded = {plan for (plan,) in project.ledger.query("SELECT plan FROM unlanded")}
    for item in listed:
        if item.plan.plan not in busy and (command := _command(project, item, unlanded)):
            found.append(
                Waiting(
                    what="plan",
                    name=item.plan.plan,
                    about=f"{item.plan.status}{_voided(project, item.plan)}: {item.plan.title}",
                    since=item.plan.updated_at,
                    command=command,
                )
            )
    if files := plans.unknown(project):
        number = counted(len(files), "plan file")
        found.append(
            Waiting(
                what="plans",
                name=number,
                about=f"this ledger does not know {files[0]}{' and others' if len(files) > 1 else ''}",
                since=project.ledger.now().isoformat(timespec="seconds"),
                command=plans.ADOPT,
            )
        )
    found += [
        Waiting(
            what="task",
            name=task.task,
            about=f"{task.status}: {task.title}",
            since=task.updated_at,
            command=_about_task(task),
        )
        for task in current
        if task.open and task.task not in busy
    ]
    return tuple(sorted(found, key=lambda each: each.since))


def _gates(project: Project) -> list[Waiting]:
    return [
        Waiting(
            what="gate",
            name=gate.label,
            about=f"{gate.subject} {gate.step}: a change needs a person",
            since=gate.asked_at,
            command=gate.look,
        )
        for gate in decisions.waiting(project.ledger, "gate")
    ]


def _needs_somebody(run: RunRow) -> bool:
    return run.status in ("interrupted", "waiting")


def _of_run(run: RunRow) -> Waiting:
    why = run.reason or run.status
    if run.until:
        why = f"parked until {run.until[:16].replace('T', ' ')} UTC"
    about = f"{run.flow} of {run.subject}: {why}"
    return Waiting(
        what="run", name=run.run, about=about, since=run.updated_at, command=Action("resume", run.run)
    )


def _command(project: Project, item: PlanStatus, unlanded: set[str]) -> Hint | None:
    """What to do about a plan that nobody is at; None if it waits for nobody."""
    plan = item.plan
    if plan.plan.startswith(FIX) and plan.status in ("REVIEW", "APPROVED", "IMPLEMENTING"):
        return _next_of_fix(plan, item.steps)
    if plan.status == "DRAFT" and plan.object:
        return Action("forge", plan.plan)
    if plan.status in ("APPROVED", "IMPLEMENTING") or _is_made_anew(item):
        return _going_on(project, item)[0]
    if plan.status == "DONE":
        return Action("land") if plan.plan in unlanded else None
    if plan.status == "REVIEW":
        return Action("plan show", plan.plan)
    return Action("plan run", plan.plan) if plan.status == "AUDITING" else None


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


def _next(project: Project, every: list[RunRow], listed: tuple[PlanStatus, ...]) -> list[Hint]:
    unlanded = {plan for (plan,) in project.ledger.query("SELECT plan FROM unlanded")}
    found: list[Hint] = [
        each.look for kind in ("gate", "question") for each in decisions.waiting(project.ledger, kind)
    ]
    waiting = [run for run in every if run.status in ("interrupted", "waiting")]
    due = [run for run in waiting if not run.until or runs.is_due(project, run.until)]
    found += [Action("resume", run.run) for run in due]
    busy = {run.subject for run in every if run.unfinished}
    for item in listed:
        plan = item.plan
        if plan.plan in busy:
            continue
        if plan.plan.startswith(FIX) and plan.status in ("REVIEW", "APPROVED", "IMPLEMENTING"):
            found.append(_next_of_fix(plan, item.steps))
        elif plan.status == "DRAFT" and plan.object:
            found += [Action("forge", plan.plan), Action("plan approve", plan.plan)]
        elif plan.status == "REVIEW":
            found += [Action("plan show", plan.plan), Action("plan approve", plan.plan)]
        elif plan.status in ("APPROVED", "IMPLEMENTING") or _is_made_anew(item):
            found += _going_on(project, item)
        elif plan.status == "DONE" and plan.plan in unlanded and Action("land") not in found:
            found.append(Action("land"))
    if _has_landed(project, every) and _is_ahead(project):
        found.append(Action("land", update_checkout=True))
    waiting_tasks = [task for task in task_rows.rows(project) if task.open and task.task not in busy]
    found += [each for task in waiting_tasks if (each := _about_task(task)) not in found]
    found += [plans.ADOPT] if plans.unknown(project) else []
    return found or [Action("forge", Blank("what you want"))]


def about_fix(project: Project, plan: PlanRow) -> list[Action]:
    """What to do about a small change without a plan; nothing if it waits for nobody."""
    if plan.status == "DONE":
        waits = any(project.ledger.query("SELECT 1 FROM unlanded WHERE plan = ?", plan.plan))
        return [Action("land", plan.plan)] if waits else []
    if plan.status not in ("REVIEW", "APPROVED", "IMPLEMENTING"):
        return []
    return [_next_of_fix(plan, plans.steps(project, plan.plan))]


def _next_of_fix(plan: PlanRow, steps: tuple[StepRow, ...]) -> Action:
    """A fix that is not done: taken although it is not small, if it passed; otherwise done again."""
    if plan.status != "IMPLEMENTING" and all(step.status == "done" for step in steps):
        return Action("fix", accept=plan.plan, reason=TEXT)
    return Action("fix", again=plan.plan)


def _about_task(task: TaskRow) -> Action:
    """What to do about a task that no run is at."""
    return Action("land" if task.status == "committed" else "task show", task.task)


def _has_landed(project: Project, every: list[RunRow]) -> bool:
    """Whether something was landed and nothing was brought into the checkout since."""
    done = [run.run for run in every if run.status == "done" and run.subject.startswith(BRANCHES)]
    updated = "SELECT 1 FROM events WHERE stream = ? AND kind = 'CheckoutUpdated'"
    return bool(done) and not any(project.ledger.query(updated, done[-1]))


def _is_ahead(project: Project) -> bool:
    """Whether what has landed lies beside the person's branch; it takes a look into git."""
    from planforge.app import landing

    try:
        return landing.is_ahead(project)
    except PlanforgeError:  # no branch is checked out
        return False


def _is_made_anew(item: PlanStatus) -> bool:
    """Whether a plan was done, and its phases were made once more and are to be done again."""
    from planforge.rules.selection import MET

    made = item.plan.path and item.plan.status == "DONE"
    return bool(made) and any(step.status not in MET for step in item.steps)


def _content(project: Project, plan: PlanRow) -> str | None:
    """The hash of a plan as it is on disk; None if it cannot be read."""
    from planforge.documents.plan import content_hash

    try:
        return content_hash(plans.text(project, plan))
    except PlanforgeError:
        return None


def _voided(project: Project, plan: PlanRow) -> str:
    """That a plan was edited after its approval, in words; empty if it was not."""
    if plan.status not in ("APPROVED", "IMPLEMENTING") or plan.plan.startswith(FIX):
        return ""
    edited = _content(project, plan) not in (None, plan.content)
    return ", but edited since, so its approval is void" if edited else ""


def _going_on(project: Project, item: PlanStatus) -> list[Action]:
    """How to go on with a plan that has work left, as `plan phases` says it, without all that it loads."""
    plan = item.plan
    content = _content(project, plan)
    if content is None:
        return [Action("plan show", plan.plan)]
    query = "SELECT content FROM revisions WHERE plan = ? ORDER BY revision DESC LIMIT 1"
    if any(made not in ("", content) for (made,) in project.ledger.query(query, plan.plan)):
        keeping = Action("plan phases", plan.plan, regenerate=True, keep_done=True)
        return [keeping, Action("plan phases", plan.plan, regenerate=True)]
    if content != plan.content or plan.status == "DONE":  # the content is what was approved last
        return [Action("plan approve", plan.plan)]
    failed = next((step.step for step in item.steps if step.status == "failed"), "")
    if failed and plan.status == "IMPLEMENTING":
        skip = Action("plan skip", plan.plan, failed, reason=TEXT)
        return [Action("plan retry", plan.plan, failed), skip]
    return [Action("plan run", plan.plan)]
