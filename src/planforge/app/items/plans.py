"""Plans as the ledger and the files have them: lists, pages, phases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice, see
from planforge.app.places import PLANS
from planforge.errors import InvalidDocument, NotFound, RefusedByGate
from planforge.kernel.files import read_regular
from planforge.kernel.work.actions import back_or_new
from planforge.kernel.work.items import Kind, parse

if TYPE_CHECKING:
    from planforge.app.project import Project


FILE = r"^plan-0*(?P<number>[1-9][0-9]{0,7})-(?!phases(?:\.edited-[0-9a-f]+)?\.md$).+\.md$"
"""The name of a plan's file; the one that shows its phases is another."""
ADOPT = Action("plan adopt", all=True)
OVER = ("CLOSED", "CANCELLED")
"""The statuses of a plan that has come to its end."""


class PlanRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of plans."""

    plan: str
    title: str
    status: str
    path: str
    content: str
    object: str
    rounds: int
    branch: str
    landed: str
    updated_at: str
    task: str = ""
    """The task behind it; none for a plan that is kept in the ledger alone."""


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """A step as far as it has come."""

    step: str
    title: str
    kind: str
    status: str
    attempts: int
    landed: str
    score: int | None
    reason: str


class Listed(PlanRow, frozen=True, kw_only=True):
    """The same with what its evidence adds up to."""

    badge: str = ""
    """pending, failed, skipped, audited or verified; empty if it has no steps yet."""


def rows(project: Project, status: str = "") -> list[PlanRow]:
    """All plans, oldest first, or those with a status."""
    where = "plans WHERE ? IN ('', status) ORDER BY length(plan), plan"
    return project.ledger.select(PlanRow, where, status.upper())


def listed(project: Project, status: str = "") -> list[Listed]:
    """All plans, oldest first, or those with a status; with their badges."""
    found = []
    for plan in rows(project, status):
        known = steps(project, plan.plan)
        badge = shown_badge(plan, known)
        found.append(Listed(**{name: getattr(plan, name) for name in plan.__struct_fields__}, badge=badge))
    return found


def shown_badge(plan: PlanRow, known: tuple[StepRow, ...]) -> str:
    """The badge of a plan with steps; a small change that passed has none, for no audit of it is to come."""
    passed = not plan.path and all(step.status == "done" for step in known)
    return badge_of(known) if known and not passed else ""


def badge_of(known: tuple[StepRow, ...]) -> str:
    """What the evidence of a plan's steps adds up to, in a word."""
    from planforge.rules.badges import badge

    return badge([(step.kind, step.status) for step in known]).value


def row(project: Project, name: str) -> PlanRow:
    """The plan that `name` means: `plan-007`, `plan-7`, `7`, or the task behind it; or the fix, `fix-7`."""
    from planforge.documents.plan import OWN_TASK

    if (found := of_task(project, name)) is not None:
        return found
    if OWN_TASK.fullmatch(name.strip()):
        raise NotFound(f"no plan is for a task `{name}`", see("plan tasks"))
    plan = parse(name, Kind.PLAN, Kind.FIX)
    for found in project.ledger.select(PlanRow, "plans WHERE plan = ?", plan):
        return found
    if any(f"/{plan}-" in path for path in unknown(project)):
        raise NotFound(
            f"`{plan}` has a file, and this ledger does not know it",
            Advice("adopt it: {}", Action("plan adopt", plan)),
        )
    raise NotFound(f"there is no `{plan}` here", see("plan list"))


def unknown(project: Project) -> tuple[str, ...]:
    """The plan files in the repository that this ledger does not know, by their numbers."""
    directory = _directory(project)
    place = project.root / directory
    known = {plan.plan for plan in rows(project)}
    found = []
    for path in place.glob("plan-*.md") if place.resolve().is_relative_to(project.root.resolve()) else ():
        file = re.search(FILE, path.name)
        if file and f"plan-{int(file['number']):03}" not in known:
            found.append((int(file["number"]), f"{directory}/{path.name}"))
    return tuple(path for _, path in sorted(found))


def _directory(project: Project) -> str:
    """Where plan files are. All settings are too slow to load for `status`; others say their faults."""
    try:
        text = read_regular(project.root / "planforge.toml").decode()
        if "plans" not in text:
            return PLANS
        import tomllib

        said = tomllib.loads(text)["forge"]["plans"]
    except (OSError, ValueError, LookupError, TypeError):
        return PLANS
    return said if isinstance(said, str) and said.isprintable() else PLANS


def named(project: Project, name: str) -> str:
    """The id of the plan that `name` means, whether there is such a plan or not."""
    found = of_task(project, name)
    return found.plan if found else parse(name, Kind.PLAN, Kind.FIX)


def of_task(project: Project, name: str) -> PlanRow | None:
    """The newest plan for the task that `name` means, such as `ws-007` or `ws-7`, if there is one."""
    from planforge.documents.plan import task_id

    task = task_id(name)
    newest = "plans WHERE task = ? COLLATE NOCASE ORDER BY length(plan) DESC, plan DESC LIMIT 1"
    for found in project.ledger.select(PlanRow, newest, task) if task else ():
        return found
    return None


def steps(project: Project, plan: str) -> tuple[StepRow, ...]:
    """The steps of the plan's newest revision, in order."""
    newest = "(SELECT max(revision) FROM revisions WHERE plan = ?)"
    where = f"steps WHERE plan = ? AND revision = {newest} ORDER BY ordinal"
    return tuple(project.ledger.select(StepRow, where, plan, plan))


def documents(project: Project) -> tuple[str, ...]:
    """The files that Planforge writes about plans, by their paths in the repository."""
    found = [(plan.path, phases_path(plan)) for plan in rows(project) if plan.path]
    return tuple(path for paths in found for path in paths)


def phases_path(plan: PlanRow) -> str:
    """Where the phases of a plan are shown."""
    return Path(plan.path).with_name(f"{plan.plan}-phases.md").as_posix()


def text(project: Project, plan: PlanRow) -> str:
    """The plan file as it is on disk now."""
    if not plan.path:
        raise without_file(plan)
    path = project.root / plan.path
    hint = on_record(plan.plan)
    if not path.resolve().is_relative_to(project.root.resolve()):
        raise InvalidDocument(f"`{plan.path}` leads out of the repository", hint)
    try:
        return read_regular(path).decode()
    except FileNotFoundError:
        if not plan.object:
            raise _never_written(plan) from None
        raise NotFound(f"`{plan.path}` is gone", hint) from None
    except OSError as error:
        raise NotFound(f"`{plan.path}` cannot be read: {error.strerror}", hint) from error
    except UnicodeDecodeError:
        raise InvalidDocument(f"`{plan.path}` is not UTF-8", hint) from None


def on_record(plan: str) -> Advice:
    """Where the text of a plan is, whatever became of its file."""
    return Advice("its text is on record: {}", Action("plan show", plan, recorded=True))


def require_open(plan: PlanRow) -> None:
    """Refuse to do anything with a plan that has come to its end."""
    if plan.status in OVER:
        raise RefusedByGate(
            f"`{plan.plan}` is {plan.status}: nothing more is done with it", back_or_new(plan.plan)
        )


def recorded_text(project: Project, name: str) -> str:
    """The plan's text as Planforge last wrote it, whatever became of the file."""
    plan = row(project, name)
    if not plan.object:
        raise _never_written(plan) if plan.path else without_file(plan)
    return project.ledger.objects.get(plan.object).decode()


def without_file(plan: PlanRow) -> NotFound:
    """Why there is nothing to read of a plan that has no file, such as a fix."""
    return NotFound(f"`{plan.plan}` has no plan file", see("plan evidence", plan.plan))


def _never_written(plan: PlanRow) -> NotFound:
    hint = back_or_new(plan.plan) if plan.status in OVER else Advice("run {}", Action("forge", plan.plan))
    return NotFound(f"`{plan.plan}` has no text: no draft of it was finished", hint)
