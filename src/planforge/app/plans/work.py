"""The two ways to work that a person can start: forge a plan, and carry one out."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from planforge.actions import REQUEST, Action, Advice, Verb
from planforge.app import landing, runs
from planforge.app.agents.casting import Casting
from planforge.app.context.gather import require_roles
from planforge.app.decisions import approvals
from planforge.app.items import offers, phase_views, plans
from planforge.app.places import STATE
from planforge.app.plans import phases
from planforge.app.project import Project
from planforge.documents.plan import content_hash, slug
from planforge.documents.requests import item, means_nothing
from planforge.errors import InvalidInput, NoRepository
from planforge.kernel.effects import Access
from planforge.kernel.events import ItemOpened
from planforge.kernel.ledger import storage
from planforge.kernel.locks import held
from planforge.kernel.projections.items import own_task
from planforge.kernel.work.items import Kind, following
from planforge.workflows.plan_run import GATE, ONE, PlanRunRequest

ROLES_OF_FORGE = ("drafter", "auditor", "reviser")
ROLES_OF_RUN = ("developer", "auditor")

DESCRIPTION = 1800
"""How much of what is given with a request describes the task behind the plan."""

ITEMS: dict[str, Verb] = {
    "plan": "plan show",
    "ws": "plan show",
    "fix": "plan evidence",
    "task": "task show",
    "run": "resume",
    "gate": "gate show",
    "question": "question show",
}
LISTS: dict[str, Verb] = {"phase": "plan list", "step": "plan list", "lesson": "lesson list"}
"""What to do about an item that somebody names where a request is expected, by itself or in a list."""


def begin_plan_run(
    project: Project, name: str, *, parallel: bool = False, jobs: int | None = None, only: str = ""
) -> str:
    """
    Record the run of an approved plan; refused here, before anything is made, if it may not run.

    `only` is `one` for the next phase, or the name of a phase; otherwise all that are left are run.
    """
    plan = plans.row(project, name)
    runs.require_free(project, plan.plan)
    runs.require_turn(project, plan.plan)
    text = plans.text(project, plan)
    content = content_hash(text)
    phases.require_left(project, plan, content)
    require_directory(project, Path(plan.path).parent.as_posix(), "phases")
    present = phase_views.present(project.git, text, plan.branch)
    phases.cut(project, text, parallel or None, present)  # what cannot be cut is refused before it is begun
    if phases.is_stale(project, plan, content):
        raise phases.stale(plan.plan)
    if offers.approval(project, plan, GATE, content) is None:
        raise approvals.not_approved(plan.plan, content)
    if only and only != ONE:
        only = phases.runnable(project, plan.plan, only)
    require_agents(project, ROLES_OF_RUN)
    base = landing.base_of(project, plan, head(project))
    landing.begin_again(project, plan.plan)
    settings = project.settings.run

    def asked(run: str) -> PlanRunRequest:
        return PlanRunRequest(
            plan=plan.plan,
            run=run,
            path=plan.path,
            base=base,
            today=today(),
            parallel=parallel,
            jobs=jobs or settings.jobs,
            attempts=settings.attempts,
            max_files=settings.max_files,
            handoffs=settings.handoffs,
            escalate_after=settings.escalate_after,
            only=only,
            fixes=settings.fixes,
        )

    return runs.begin(project, "plan_run", plan.plan, asked, alone=True)


def begin_retry(project: Project, name: str, phase: str | None = None) -> str:
    """Record the run of the phase that failed, the first if none is named."""
    plan = plans.row(project, name)
    phases.require_left(project, plan, content_hash(plans.text(project, plan)))
    return begin_plan_run(project, name, only=phases.failed(project, plan.plan, phase))


def require_agents(project: Project, roles: tuple[str, ...]) -> None:
    """Make sure that somebody can play every role, confined as is wanted, before anything is begun."""
    wanted = {role: Access.WRITE if role == "developer" else Access.READ for role in roles}
    require_roles(project, wanted)
    Casting(project).require(wanted)
    project.settings.sandbox.chosen()


def head(project: Project) -> str:
    """The commit that work starts from."""
    if not project.git.has_commits():
        raise NoRepository(f"`{project.root}` has no commit to start from", "commit something first")
    return project.git.commit_of("HEAD")


@contextmanager
def numbering(project: Project) -> Iterator[None]:
    """Hold the lock under which plans get their numbers: one for the repository and all its checkouts."""
    with held(project.git.git_dir / "planforge-plans.lock", "a plan getting its number", wait=True):
        yield


def require_directory(project: Project, directory: str, what: str) -> None:
    """Refuse a directory that nothing could be written to, before anybody is asked or paid for it."""
    place = project.root / directory
    while not os.path.lexists(place):
        place = place.parent
    if not place.is_dir():
        problem = "is not a directory"
    elif not os.access(place, os.W_OK | os.X_OK):
        problem = "cannot be written"
    else:
        return
    shown = place.relative_to(project.root) if place.is_relative_to(project.root) else place
    raise InvalidInput(
        f"`{shown}` {problem}, and {what} are written to `{directory}`",
        f"see `ls -ld {shlex.quote(str(place))}`",
    )


def new_plan(
    project: Project, title: str, request: str, *, task: str = "", description: str = ""
) -> ItemOpened:
    """A plan with the next free number: by the ledger, by the files, and by those of other checkouts."""
    directory = project.settings.forge.plans
    if not (project.root / directory).resolve().is_relative_to(project.root.resolve()):
        raise InvalidInput(f"`forge.plans` leads out of the repository: `{directory}`")
    require_directory(project, directory, "plans")
    others = {*project.git.checkouts()} - {project.root}
    names = [path.name for place in (project.root, *others) for path in (place / directory).glob("plan-*")]
    names += [row.plan for row in plans.rows(project)]
    for other in others:  # one with a ledger of its own may have numbers that there is no file for yet
        names += storage.streams(other / STATE / "ledger.db", "plan-*")
    plan = following(Kind.PLAN, names)
    path = f"{directory}/{plan}-{slug(title)}.md"
    return ItemOpened(
        item=plan,
        title=title,
        request=request,
        path=path,
        parent=task or own_task(plan),
        description=description[:DESCRIPTION],
    )


def title_of(request: str) -> str:
    """A short title: the first line of the request."""
    lines = request.strip().splitlines()
    if not lines:
        raise InvalidInput("say what you want", Action("forge", REQUEST))
    first = " ".join(lines[0].split())
    return first if len(first) <= 80 else first[:77].rsplit(" ", 1)[0] + "..."


def require_request(words: str) -> None:
    """Refuse words that only point at something, or name an item: no agent could know what is wanted."""
    said = " ".join(words.split())
    if not said:
        raise InvalidInput("the request is empty", "say what you want in a sentence")
    if named := item(said):
        listed = LISTS.get(named.kind)
        action = Action(listed) if listed else Action(ITEMS[named.kind], named.name)
        raise InvalidInput(f"`{said}` is a name, not a request", Advice("run {}", action))
    if means_nothing(words):
        raise InvalidInput(f"`{said}` does not say what you want", "say it in a sentence")


def today() -> str:
    """The date, for documents."""
    return datetime.now(UTC).date().isoformat()
