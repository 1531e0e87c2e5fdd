"""
Small changes without a plan: begun by the words of a person, accepted or done again by one.

A fix is on record as a plan that has no file: `fix-001`, with one step. To type the words is to approve them;
the approval is bound to their hash, and is refused to agents like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice, Blank, see
from planforge.app import runs
from planforge.app.decisions import approvals, statuses
from planforge.app.decisions.deciders import require_no_agent, require_other_author
from planforge.app.items import offers, plans
from planforge.app.landing import queue
from planforge.app.plans import work
from planforge.errors import Conflict, InvalidInput, NotFound, RefusedByGate
from planforge.kernel.events import ItemOpened
from planforge.kernel.objects import address
from planforge.kernel.paths import normalise_all
from planforge.kernel.redaction import Redactor
from planforge.kernel.work.items import Kind, following, is_named
from planforge.rules import small
from planforge.workflows.fix import FixRequest
from planforge.workflows.plan_run import GATE

if TYPE_CHECKING:
    from planforge.app.items.plans import PlanRow
    from planforge.app.landing.queue import Story
    from planforge.app.project import Project
    from planforge.workflows.fix import FixRequest

FLOW = "fix"
ROLES = ("developer",)
LONGEST = 100_000
"""More characters than this are no small request, whatever anybody says."""
CHANGE = Blank("what to change")


def begin(
    project: Project,
    request: str,
    *,
    actor: str,
    files: Collection[str] = (),
    anyway: bool = False,
    instead_of: str = "",
) -> str:
    """
    Record that somebody wants this small change; its run.

    Refused, with nothing on record, if the words do not sound small and nobody says `anyway`. The fix that it
    is done `instead_of` is given up at the same moment.
    """
    require_no_agent(project)
    require_other_author(project, "", actor)
    text = Redactor.of_environment().text(request.strip())
    title = _title(text)
    suspicions = small.before(text, project.settings.fix)
    if suspicions and not anyway:
        raise RefusedByGate(
            f"that does not sound small: {'; '.join(suspicions)}",
            Advice("run {}, or {}", Action("forge", text), Action("fix", text, anyway=True)),
        )
    scope = normalise_all(files)
    work.require_agents(project, ROLES)
    base, content = work.head(project), address(text.encode())
    while True:
        fix = _next(project)
        created = ItemOpened(item=fix, title=title, request=text)
        yes = partial(approvals.given, project, fix, GATE, content, actor)
        asked = _asked(project, fix, title, text, content, base)
        wanted = msgspec.structs.replace(asked, files=scope, anyway=suspicions)
        try:
            run = runs.begin(project, FLOW, fix, _named(wanted), created, approved=yes)
        except Conflict:
            continue  # another process took this number; the next one is ours
        if instead_of:
            statuses.move(project, instead_of, "cancel", actor=actor, reason=f"it is done again as {fix}")
        return run


def again(project: Project, name: str, *, actor: str, anyway: bool = False) -> str:
    """Do a fix that is not done once more, from where the checkout is now, in the place of the former one."""
    plan, story = _idle(project, name)
    if plan.status in ("CLOSED", "CANCELLED"):
        raise RefusedByGate(
            f"`{plan.plan}` is {plan.status}", Advice("request it again: {}", Action("fix", CHANGE))
        )
    if plan.status == "DONE" and not story.reopened:
        raise RefusedByGate(f"`{plan.plan}` is done", Advice("run {}", Action("land", plan.plan)))
    runs.require_turn(project, plan.plan)
    first = _first_request(project, plan.plan)
    overruled = anyway or bool(first.anyway)
    return begin(
        project, first.request, actor=actor, files=first.files, anyway=overruled, instead_of=plan.plan
    )


def accept(project: Project, name: str, *, actor: str, reason: str) -> str:
    """Record that somebody takes a change that passed and is not small, exactly as it is; its run."""
    if not reason.strip():
        raise InvalidInput("an acceptance needs a reason", "say why: `--reason TEXT`")
    plan, story = _idle(project, name)
    commit = acceptable(story)
    if not commit:
        ended = story.ended.reason if story.ended else "it has not been carried out"
        raise RefusedByGate(
            f"`{plan.plan}` has no change that passed and waits to be accepted ({ended})",
            Advice("run {}", Action("fix", again=plan.plan)),
        )
    first = _first_request(project, plan.plan)
    because = f"{actor}: {Redactor.of_environment().text(' '.join(reason.split()))}"
    asked = _asked(project, plan.plan, plan.title, first.request, first.content, first.base)
    wanted = msgspec.structs.replace(asked, files=first.files, accepts=commit, accepted_because=because)
    approvals.give(project, plan.plan, GATE, first.content, actor, alone=True)
    return runs.begin(project, FLOW, plan.plan, _named(wanted))


def acceptable(story: Story) -> str:
    """The commit of a fix that passed and was not taken because it is not small; empty if there is none."""
    ended = story.ended
    if ended is None or ended.succeeded or story.moved or story.reopened:
        return ""
    return ended.commit if ended.commit in story.applied else ""


def offered(project: Project, plan: PlanRow) -> list[Action]:
    """What a person may do with a fix as it is; of a change that passed and is not small, a plan, too."""
    story, found = queue.story(project, plan), ""
    if acceptable(story) and story.ended:
        request = _first_request(project, plan.plan).request
        found = f"{request}\n\nFound when {plan.plan} was tried: {story.ended.reason}"
    return offers.about(project, plan, passed=bool(found), found=found)


def _title(text: str) -> str:
    if not text:
        raise InvalidInput("say what is to be changed", Action("fix", CHANGE))
    if len(text) > LONGEST:
        raise InvalidInput(f"a request may have {LONGEST} characters, not {len(text)}")
    work.require_request(text)
    return work.title_of(text)


def _next(project: Project) -> str:
    return following(Kind.FIX, (row.plan for row in plans.rows(project)))


def _asked(project: Project, fix: str, title: str, request: str, content: str, base: str) -> FixRequest:
    settings = project.settings.run
    return FixRequest(
        fix=fix,
        run="",
        title=title,
        request=request,
        content=content,
        base=base,
        limits=project.settings.fix,
        attempts=settings.attempts,
        handoffs=settings.handoffs,
        escalate_after=settings.escalate_after,
    )


def _named(request: FixRequest) -> Callable[[str], FixRequest]:
    return lambda run: msgspec.structs.replace(request, run=run)


def _idle(project: Project, name: str) -> tuple[PlanRow, Story]:
    """A fix that no run is at, and its story."""
    if not is_named(name, Kind.FIX):
        raise InvalidInput(
            f"`{name}` is not a fix", Advice("write it like `fix-003`; see {}", Action("status"))
        )
    plan = plans.row(project, name)
    runs.require_free(project, plan.plan)
    return plan, queue.story(project, plan)


def _first_request(project: Project, fix: str) -> FixRequest:
    for run in runs.of_subject(project, fix, FLOW):
        return runs.request(project, run, FixRequest)
    raise NotFound(f"there is no `{fix}` here", see("status"))
