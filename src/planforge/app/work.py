"""The two ways to work that a person can start: forge a plan, and carry one out."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planforge.app import approvals, landing, plans, runs
from planforge.errors import Conflict, InvalidInput, NoRepository, RefusedByGate
from planforge.kernel.events import PlanCreated

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.workflows.forge import ForgeRequest
    from planforge.workflows.plan_run import PlanRunRequest

ROLES_OF_FORGE = ("drafter", "auditor", "reviser")
ROLES_OF_RUN = ("developer", "auditor")


def begin_forge(project: Project, request: str, *, cap: int | None = None) -> str:
    """Give the request a plan of its own and record the run; nothing is started yet."""
    require_agents(project, ROLES_OF_FORGE)
    title = title_of(request)

    while True:
        created = new_plan(project, title, request)
        asking = forge_request(project, created.plan, title, request, cap=cap)
        try:
            return runs.begin(project, "forge", created.plan, _always(asking), created)
        except Conflict:
            continue  # another process took this plan number; the next one is ours


def forge_request(
    project: Project, plan: str, title: str, request: str, *, cap: int | None = None
) -> ForgeRequest:
    """What a forge of this plan is asked, as the settings have it."""
    from planforge.workflows.forge import ForgeRequest

    return ForgeRequest(
        plan=plan,
        title=title,
        request=request,
        project=project.root.name,
        today=today(),
        base=head(project),
        cap=cap or project.settings.forge.cap,
        composed=True,
        fingerprints=True,
        costed=True,
        whole=True,
    )


def _always(asking: ForgeRequest) -> Callable[[str], ForgeRequest]:
    return lambda _: asking


def begin_plan_run(project: Project, name: str, *, parallel: bool, jobs: int | None = None) -> str:
    """Record the run of an approved plan; refused here, before anything is made, if it is not approved."""
    from planforge.documents.plan import content_hash
    from planforge.workflows.plan_run import GATE, PlanRunRequest

    plan = plans.row(project, name)
    busy = [row.run for row in runs.rows(project, unfinished=True) if row.subject == plan.plan]
    if busy:
        raise RefusedByGate(
            f"`{plan.plan}` has an unfinished run, `{busy[0]}`", f"run `planforge resume {busy[0]}`"
        )
    content = content_hash(plans.text(project, plan))
    if approvals.unused(project, plan.plan, GATE, content) is None:
        raise RefusedByGate(
            f"`{plan.plan}` is not approved as it is now ({content[:12]})",
            f"read `{plan.path}`, then run `planforge plan approve {plan.plan}`",
        )
    require_agents(project, ROLES_OF_RUN)
    base = head(project)
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
            leased=True,
            inspected=True,
            handoffs=settings.handoffs,
            composed=True,
            escalate_after=settings.escalate_after,
        )

    return runs.begin(project, "plan_run", plan.plan, asked)


def require_agents(project: Project, roles: tuple[str, ...]) -> None:
    """Make sure that somebody can play every role, confined as is wanted, before anything is begun."""
    from planforge.agents.profiles import choose
    from planforge.app.contexts import require_roles
    from planforge.kernel.effects import Access

    require_roles(project, {role: Access.WRITE if role == "developer" else Access.READ for role in roles})
    for role in roles:
        choose(project.settings.agents.of(role), project.settings.agents.profiles)
    project.settings.sandbox.chosen()


def head(project: Project) -> str:
    """The commit that work starts from."""
    if not project.git.has_commits():
        raise NoRepository(f"`{project.root}` has no commit to start from", "commit something first")
    return project.git.commit_of("HEAD")


def new_plan(project: Project, title: str, request: str) -> PlanCreated:
    """A plan with the next free number, by the ledger and by the files."""
    from planforge.documents.plan import plan_id, slug

    directory = project.settings.forge.plans
    if not (project.root / directory).resolve().is_relative_to(project.root.resolve()):
        raise InvalidInput(f"`forge.plans` leads out of the repository: `{directory}`")
    names = [path.name for path in (project.root / directory).glob("plan-*.md")]
    names += [row.plan for row in plans.rows(project)]
    numbers = [int(found[1]) for name in names if (found := re.match(r"plan-(\d+)", name))]
    plan = plan_id(max(numbers, default=0) + 1)
    return PlanCreated(plan=plan, title=title, request=request, path=f"{directory}/{plan}-{slug(title)}.md")


def title_of(request: str) -> str:
    """A short title: the first line of the request."""
    lines = request.strip().splitlines()
    if not lines:
        raise InvalidInput('say what you want: `planforge forge "..."`')
    first = " ".join(lines[0].split())
    return first if len(first) <= 80 else first[:77].rsplit(" ", 1)[0] + "..."


def today() -> str:
    """The date, for documents."""
    return datetime.now(UTC).date().isoformat()
