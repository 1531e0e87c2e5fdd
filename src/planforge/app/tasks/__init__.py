"""
Tasks: something somebody wants, on its way through a pipeline.

A task has a directory of documents beside the code, a status that only ever changes along its table, and
what each stage came to last. A task that is stuck is a person's: they have it go on at a stage, let a stage
pass in their own name, or abandon it. A committed one lands through the queue, like a plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from planforge.actions import REQUEST, Action, Advice, Blank
from planforge.app import landing, runs
from planforge.app.agents.casting import Casting
from planforge.app.context import gather
from planforge.app.decisions import deciders
from planforge.app.items import documents, offers, task_rows
from planforge.app.items.task_rows import StageRow, TaskRow
from planforge.app.landing import queue
from planforge.app.plans import work
from planforge.app.tasks import pipelines
from planforge.documents.plan import slug
from planforge.errors import Conflict, InvalidInput, RefusedByGate
from planforge.kernel import events
from planforge.kernel.effects import ReadDocument
from planforge.kernel.events import ItemMoved, ItemOpened, StageEnded, TaskEnded
from planforge.kernel.filters import Filter, read
from planforge.kernel.ledger import Write
from planforge.kernel.work.actions import Known, offered
from planforge.kernel.work.items import Kind, following
from planforge.kernel.work.lifecycle.tables import TASK
from planforge.rules.gates.evaluation import VOID
from planforge.workflows.course import Course, PipelineRequest, Player, Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planforge.app.project import Project
    from planforge.kernel.events import Event, ItemOpened, Recorded
    from planforge.rules.pipelines import Pipeline, Stage
    from planforge.workflows.course import Course, PipelineRequest, Player, Standing

APPROVED = "approved"
OVERRIDDEN = "overridden by "
"""How the reason of a stage begins that a person let pass."""
MORE = 2
"""How many rounds more are offered."""

LINE = 500
"""So many characters of detail a line of progress has."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way on: a command, what it does, and what it costs."""

    command: Action
    does: str
    cost: str = ""


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one task on one page."""

    schema_version: int = 1
    task: TaskRow
    stages: tuple[StageRow, ...]
    next: tuple[Way, ...]
    """The ways on."""


FREE = "no tokens"
LOOK = ("shows what the run waits for, and how to decide", FREE)
WAYS = {
    "land": ("merges it into your branch, once the merged tree has passed", FREE),
    "task abandon": ("gives it up; all there is of it is kept", FREE),
    "task override": (
        "lets the stage pass in your name, for what is there now",
        f"{FREE}; nobody else has found it right",
    ),
    "resume": ("resumes the run that is not finished", ""),
    "cancel": ("ends the run; its work is kept", FREE),
    "link": ("shows what it comes after", FREE),
}
"""What each way on does and costs, wherever that is always the same."""

Resuming = dict[tuple[str, int], tuple[str, str]]
"""What it does and costs to go on at a stage, with so many rounds more."""


def view(project: Project, name: str) -> TaskView:
    """A task in full, with the ways on."""
    found = task_rows.row(project, name)
    known = msgspec.structs.replace(
        offers.known_of_task(project, found.task), at_work=offers.at_work(project, found.task), ending=True
    )
    resuming: Resuming = {}
    if not known.at_work and found.open and found.status != task_rows.COMMITTED:
        known, resuming = _stages_to_resume(project, found, known)
    ways = []
    for action in offered(found.task, found.status, known):
        at = str(action.options.get("at", "")), int(action.options.get("rounds", 0))
        does, cost = resuming.get(at) or WAYS.get(action.verb, LOOK)
        ways.append(Way(command=action, does=does, cost=cost))
    return TaskView(task=found, stages=task_rows.stages(project, found.task), next=tuple(ways))


def _stages_to_resume(project: Project, found: TaskRow, known: Known) -> tuple[Known, Resuming]:
    """At which stages a task that no run is at can go on, and what comes of that."""
    course = _course(project, found)
    stage = next_stage(found, course)
    does = "tries the stage again" if stage == found.stage else "goes on with this stage"
    if course.verdict(stage) == VOID:
        does = "has the stage look at what has changed since it approved"
    document, after = _stage_after_text(project, found)
    judged = found.stuck and stage == found.stage and _is_judged(project, found)
    cost = _round_cost(project, found, stage)
    resuming = {(stage, 0): (does, cost), (stage, MORE): (f"gives the stage {MORE} rounds more", cost)}
    if after and after != stage:
        on = f"goes on with `{found.path}/{document}` as it is, with your edits"
        resuming[after, 0] = on, "tokens: of the stages from there on"
    known = msgspec.structs.replace(
        known,
        stage=stage,
        after_text=after if after != stage else "",
        rounds=MORE if judged else 0,
        passable=judged and not course.nothing_to_judge(stage),
    )
    return known, resuming


def next_stage(found: TaskRow, course: Course) -> str:
    """The stage at which a task goes on, unless somebody names another."""
    of = course.request.pipeline
    if found.stage not in {stage.name for stage in of.stages}:
        code = [stage.name for stage in of.stages if course.writes_code(stage)]
        return code[0] if code and found.status == "code-revision-required" else of.stages[0].name
    index = of.index(found.stage)
    if void := course.void(of.stages[index]):
        return void[0]
    # A stage that has passed is not gone through again; a person may have let a later one pass, too.
    passed = [
        number + 1
        for number, stage in enumerate(of.stages)
        if (number == index or not found.stuck) and stage.judges and course.verdict(stage.name) == APPROVED
    ]
    return of.stages[min(max([index, *passed]), len(of.stages) - 1)].name


def _round_cost(project: Project, found: TaskRow, name: str) -> str:
    """What one more round is likely to cost: the mean of those that there were, as far as agents said."""
    of = pipelines.find(project.root, found.pipeline)
    index = of.index(name)
    first = of.back_to(index) if of.stages[index].verdict else index
    again = {stage.name for stage in of.stages[first : index + 1]}
    spent: dict[str, list[int]] = {}
    for recorded in read(project.ledger, Filter(kinds=("StageEnded",))):
        match recorded.event:
            case StageEnded(task=found.task, stage=stage, tokens=int(tokens)) if stage in again:
                spent.setdefault(stage, []).append(tokens)
    if not spent:
        return "tokens: unknown, no agent has said"
    return f"about {sum(sum(each) // len(each) for each in spent.values())} tokens a round"


def _stage_after_text(project: Project, found: TaskRow) -> tuple[str, str]:
    """The document that a task is stuck at and the stage after it; empty if it is not about writing one."""
    of = pipelines.find(project.root, found.pipeline).stages
    index = next((number for number, each in enumerate(of) if each.name == found.stage), len(of))
    if not found.stuck or index + 1 >= len(of) or not of[index].writes:
        return "", ""
    written = any(
        each.stage == found.stage and each.document for each in task_rows.stages(project, found.task)
    )
    return (of[index].leaves, of[index + 1].name) if written else ("", "")


def _is_judged(project: Project, found: TaskRow) -> bool:
    """Whether somebody's judgement is what it is stuck at."""
    of = pipelines.find(project.root, found.pipeline)
    return any(each.name == found.stage and each.verdict not in ("", "evidence") for each in of.stages)


# Beginning and going on


def begin(project: Project, pipeline: str, request: str) -> str:
    """Open a task and record its run; nothing is started yet."""
    chosen = pipelines.runnable(project, pipeline)
    work.require_request(request)
    players = _players(project, chosen)
    _require_agents(project, chosen)
    base, title = work.head(project), work.title_of(request)
    while True:
        opened = _opened(project, chosen, title, request)
        asked = _request(project, chosen, players, opened, base)
        try:
            return runs.begin(project, "pipeline", opened.item, asked, opened)
        except Conflict:
            continue  # another process took this number; the next one is ours


def _opened(project: Project, chosen: Pipeline, title: str, request: str) -> ItemOpened:
    directory = project.settings.run.tasks
    if not (project.root / directory).resolve().is_relative_to(project.root.resolve()):
        raise InvalidInput(f"`run.tasks` leads out of the repository: `{directory}`")
    work.require_directory(project, directory, "documents of tasks")
    names = [path.name for path in (project.root / directory).glob("task-*")]
    task = following(Kind.TASK, [*names, *(each.task for each in task_rows.rows(project))])
    path = f"{directory}/{task}-{slug(title)}"
    return ItemOpened(item=task, title=title, request=request, pipeline=chosen.name, path=path)


def resume(project: Project, name: str, *, at: str, rounds: int, actor: str, reason: str = "") -> str:
    """Have a task go on at a stage, as somebody wants it to; the new run."""
    found = task_rows.row(project, name)
    chosen = pipelines.runnable(project, found.pipeline)
    _require_resumable(project, found, actor)
    runs.require_turn(project, found.task)
    course = _course(project, found)
    index = chosen.index(at or next_stage(found, course))
    _require_agents(project, chosen)
    work.require_directory(project, found.path, "documents of the task")
    left = course.request
    if _is_refused(found):
        left = _on_what_has_landed(project, found, left)
    if found.stuck:
        code = any(map(course.writes_code, chosen.stages[: index + 1]))
        _move(
            project,
            found.task,
            "resume at the code" if code else "resume at the plan",
            actor=actor,
            reason=reason,
        )
    going_on = msgspec.structs.replace(
        left, status=task_rows.row(project, name).status, start=chosen.stages[index].name, rounds=rounds
    )
    return runs.begin(project, "pipeline", found.task, lambda run: msgspec.structs.replace(going_on, run=run))


def _is_refused(found: TaskRow) -> bool:
    """Whether the landing queue has sent a task back, and nobody has gone on with it since."""
    return found.status == "code-revision-required" and not found.stage


def _on_what_has_landed(project: Project, found: TaskRow, left: PipelineRequest) -> PipelineRequest:
    """Have the change made anew on top of what it could not be merged with; the earlier one is kept."""
    story = queue.story_of_task(project, found)
    base = landing.base_after(project, story)
    landing.begin_task_again(project, story, base)
    tree = project.git.tree_of(base)
    return msgspec.structs.replace(left, base=base, base_tree=tree, commit="", tree="", unlanded=found.reason)


def _course(project: Project, found: TaskRow) -> Course:
    """A task as it is on disk, in git and on record now."""
    chosen = pipelines.find(project.root, found.pipeline)
    commit, standing = _left_by_earlier_runs(project, found, chosen)
    base = _base(project, found) or project.git.commit_of("HEAD")
    asked = _request(project, chosen, _players(project, chosen), _as_opened(found), base)("")
    tree = project.git.tree_of(commit) if commit else ""
    return Course(msgspec.structs.replace(asked, commit=commit, tree=tree, standing=standing))


def _left_by_earlier_runs(
    project: Project, found: TaskRow, chosen: Pipeline
) -> tuple[str, tuple[Standing, ...]]:
    """The change that there is, and what the stages of the pipeline came to; documents as they are now."""
    known = {stage.name for stage in chosen.stages}
    came = [each for each in task_rows.stages(project, found.task) if each.stage in known]
    # A change that could not land is made anew.
    refused = queue.story_of_task(project, found).refused_at
    proposed = [each.proposed for each in came if each.proposed and each.at > refused]
    standing = [
        Standing(
            stage=each.stage,
            iteration=each.iteration,
            verdict=each.verdict,
            judged=each.judged,
            document=each.document,
            object=_object(project, found.task, each.document),
            overridden=each.reason if each.reason.startswith(OVERRIDDEN) else "",
        )
        for each in came
    ]
    return (proposed[-1] if proposed else ""), tuple(standing)


def _object(project: Project, task: str, name: str) -> str:
    """The object of a document as it is on disk; empty if there is none."""
    return documents.read(project, ReadDocument(task=task, name=name)).object if name else ""


def _base(project: Project, found: TaskRow) -> str:
    """The commit that the task began at, or that its change was begun again at."""
    known = runs.of_subject(project, found.task, "pipeline")
    return runs.request(project, known[-1], PipelineRequest).base if known else ""


def _as_opened(found: TaskRow) -> ItemOpened:
    """A task as it was opened."""
    said = {field: getattr(found, field) for field in ("title", "request", "path", "pipeline")}
    return ItemOpened(item=found.task, **said)


def _request(
    project: Project, chosen: Pipeline, players: dict[str, Player], opened: ItemOpened, base: str
) -> Callable[[str], PipelineRequest]:
    """Makes the request of a run once the run has its name."""
    base_tree = project.git.tree_of(base)

    def asked(run: str) -> PipelineRequest:
        return PipelineRequest(
            task=opened.item,
            title=opened.title,
            request=opened.request,
            run=run,
            path=opened.path,
            pipeline=chosen,
            players=players,
            base=base,
            base_tree=base_tree,
            attempts=project.settings.run.attempts,
            handoffs=project.settings.run.handoffs,
            escalate_after=project.settings.run.escalate_after,
        )

    return asked


def _players(project: Project, chosen: Pipeline) -> dict[str, Player]:
    """Every role of a pipeline."""
    library = gather.library(project)
    named = {role for stage in chosen.stages for role in (stage.role, stage.revised_by) if role}
    library.require(named)
    found = {role: library.role(role) for role in sorted(named)}
    return {name: Player(persona=role.persona, access=role.access) for name, role in found.items()}


def _require_agents(project: Project, chosen: Pipeline) -> None:
    """Refuse what nobody could play: each role that an agent plays needs one."""
    library = gather.library(project)
    asked = sorted(_asked_of_agents(chosen.stages))
    Casting(project).require({role: library.role(role).access for role in asked})
    project.settings.sandbox.chosen()


def _asked_of_agents(of: tuple[Stage, ...]) -> set[str]:
    asked = [stage for stage in of if not stage.lands and stage.verdict not in ("evidence", "person")]
    return {role for stage in asked for role in (stage.role, stage.revised_by) if role}


# What a person decides


def override(project: Project, name: str, *, stage: str, actor: str, reason: str) -> TaskRow:
    """Let a stage pass in a person's own name, for exactly what there is now."""
    found = task_rows.row(project, name)
    chosen = pipelines.find(project.root, found.pipeline)
    of = chosen.stages[chosen.index(stage)]
    if of.verdict in ("", "evidence"):
        what = "what our own checks say" if of.verdict else "a stage that gives no verdict"
        raise RefusedByGate(
            f"nobody overrides {what}: `{stage}`", Advice("go on with {}", Action("task resume", found.task))
        )
    if not reason.strip():
        raise InvalidInput("a stage is overridden only for a reason", 'say why: `--reason "..."`')
    _require_resumable(project, found, actor)
    course = _course(project, found)
    if nothing := course.nothing_to_judge(stage):
        raise RefusedByGate(
            f"`{stage}` judges {nothing}, which is not there yet",
            Advice("run {} first", Action("task resume", found.task)),
        )
    came = next((each for each in task_rows.stages(project, found.task) if each.stage == stage), None)
    passed = StageEnded(
        task=found.task,
        stage=stage,
        iteration=came.iteration if came else 1,
        role=of.role,
        name=actor,
        outcome=APPROVED,
        reason=f"{OVERRIDDEN}{actor}: {reason.strip()}",
        verdict=APPROVED,
        judged=course.judged(of),
        document=came.document if came else "",
        object=came.object if came else "",
        commit=course.commit if course.changed else "",
    )
    code = any(map(course.writes_code, course.subjects(of)))
    event = "override the code's review" if code else "override the plan's review"
    event = "override the approver" if code and of.verdict == "person" else event
    _move(project, found.task, event, passed, actor=actor, reason=reason.strip())
    return task_rows.row(project, name)


def abandon(project: Project, name: str, *, actor: str, reason: str) -> TaskRow:
    """Give a task up. What there is of it is kept."""
    found = task_rows.row(project, name)
    if not reason.strip():
        raise InvalidInput("a task is abandoned only for a reason", 'say why: `--reason "..."`')
    _require_possible(project, found, actor)
    _move(project, found.task, "abandon", actor=actor, reason=reason.strip())
    return task_rows.row(project, name)


def stopped(project: Project, task: str, run: str, reason: str) -> list[Event]:
    """What to record of a task whose run is cancelled; nothing if it is none, or not under way."""
    found = project.ledger.select(task_rows.TaskRow, "tasks WHERE task = ?", task)
    if not found or found[0].status in (*task_rows.FINAL, *task_rows.STUCK):
        return []
    status = TASK.after(found[0].status, "block")
    return [
        ItemMoved(item=task, by="block", status=status, reason=reason),
        TaskEnded(task=task, run=run, succeeded=False, reason=reason, stage=found[0].stage),
    ]


def _move(project: Project, task: str, event: str, *also: Event, actor: str, reason: str) -> None:
    def decide() -> list[Write]:
        status = TASK.after(task_rows.row(project, task).status, event, task)
        moved = ItemMoved(item=task, by=event, status=status, actor=actor, reason=reason)
        return [Write(task, None, [*also, moved])]

    project.ledger.transact(decide)


def _require_resumable(project: Project, found: TaskRow, actor: str) -> None:
    _require_possible(project, found, actor)
    if found.status == task_rows.COMMITTED:
        raise RefusedByGate(f"`{found.task}` is committed", Advice("run {}", Action("land", found.task)))


def _require_possible(project: Project, found: TaskRow, actor: str) -> None:
    deciders.require_other_author(project, found.task, actor)
    if busy := offers.at_work(project, found.task):
        resume, end = Action("resume", busy.run), Action("cancel", busy.run)
        raise RefusedByGate(
            f"`{found.task}` has an unfinished run, `{busy.run}`",
            Advice("resume it: {}, or end it: {}", resume, end),
        )
    if found.status in task_rows.FINAL:
        raise RefusedByGate(
            f"`{found.task}` is {found.status}",
            Advice("open a new task: {}", Action("pipeline run", Blank("PIPELINE"), REQUEST)),
        )


# Progress


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a task."""

    at: str
    agent: str
    persona: str
    status: str
    """start, progress, done or error"""
    detail: str

    @property
    def line(self) -> str:
        """It as `time|agent|persona|status|detail`."""
        return "|".join((self.at, self.agent, self.persona, self.status, self.detail))


def progress(project: Project, name: str) -> Iterator[Progress]:
    """Everything that happened to a task, oldest first."""
    task = task_rows.row(project, name).task
    kinds = ("StageStarted", "StageEnded", "FrictionNoted", "ItemMoved", "TaskEnded")
    for recorded in read(project.ledger, Filter(kinds=kinds)):
        if task in (getattr(recorded.event, "task", ""), getattr(recorded.event, "item", "")):
            yield _progress(recorded)


def _progress(recorded: Recorded) -> Progress:
    match recorded.event:
        case events.StageStarted() as begun:
            said = (begun.name, begun.name.split(":")[1], "start", f"{begun.stage} begins")
        case events.StageEnded() as ended:
            status = "error" if ended.outcome == "escalated" else "done"
            persona = ended.name.split(":")[1] if ended.name.count(":") == 3 else "person"
            said = (ended.name, persona, status, f"{ended.outcome}: {ended.reason}")
        case events.FrictionNoted() as noted:
            what = f"friction {noted.issue} {noted.skill} {noted.detail}"
            said = (noted.agent or "planforge", noted.persona, "progress", what)
        case events.ItemMoved() as moved:
            said = (moved.actor or "planforge", "orchestrator", "progress", f"{moved.by} → {moved.status}")
        case events.TaskEnded() as over:
            said = ("planforge", "orchestrator", "done" if over.succeeded else "error", over.reason)
        case other:
            raise AssertionError(other)
    agent, persona, status, detail = (" ".join(part.replace("|", "/").split())[:LINE] for part in said)
    return Progress(at=recorded.at, agent=agent, persona=persona, status=status, detail=detail)


# Facts for gates


def verdict(project: Project, task: str, stage: str) -> str | None:
    """What a stage of a task came to last; `void` if what it judged has changed since."""
    came = next((each for each in task_rows.stages(project, task) if each.stage == stage), None)
    if came is None or not came.verdict:
        return None
    course = _course(project, task_rows.row(project, task))
    known = {each.name for each in course.request.pipeline.stages}
    return course.verdict(stage) if stage in known else came.verdict


FIELDS = ("status", "title", "pipeline", "path", "stage", "branch")


def field(project: Project, task: str, name: str) -> str | None:
    """What the record of a task says; `KeyError` for a field that a task does not have."""
    kind, _, rest = name.partition(".")
    if kind != "task" or rest not in FIELDS:
        raise KeyError(name)
    value: str = getattr(task_rows.row(project, task), rest)
    return value or None
