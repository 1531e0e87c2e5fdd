"""
Takes in plan files that this ledger does not know, as a clone of a repository has them.

A plan keeps its number and its file. The status in its file is only a claim. A plan that is over by its file
is closed or cancelled here, too, which allows nothing. Every other plan is a draft, whatever its file says,
and needs an approval of its own. How far its phases have come by their file is never read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import see
from planforge.app.decisions import approvals, statuses
from planforge.app.items import plans
from planforge.app.plans import phases, work
from planforge.documents.plan import PlanStatus, content_hash, header_faults, parse, task_id
from planforge.errors import Conflict, InvalidDocument, InvalidInput, NotFound, PlanforgeError
from planforge.kernel.events import ItemMoved, ItemOpened, PlanWritten
from planforge.kernel.projections.items import own_task
from planforge.kernel.redaction import Redactor
from planforge.kernel.work import items
from planforge.kernel.work.items import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planforge.app.project import Project
    from planforge.kernel.events import Event

LIMIT = 4_000_000
"""How many bytes a plan file may have."""
OVER = {PlanStatus.DONE: "CLOSED", PlanStatus.CLOSED: "CLOSED", PlanStatus.CANCELLED: "CANCELLED"}
"""What a plan is here that is over elsewhere; done it is not, for nothing here shows that."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that is known now."""

    plan: str
    title: str
    path: str
    status: str
    said: str
    """The status that its file had."""
    phases: int = 0
    """How many phases were made for it, as it had a phases file; all of them are to be done."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is no plan which can be known here, and why."""

    path: str
    reason: str


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the files."""

    schema_version: int = 1
    taken: tuple[Taken, ...]
    refused: tuple[Refused, ...]


def adopt(project: Project, names: Sequence[str], *, actor: str) -> Adopted:
    """Take in the plan files of these names, or all that there are; a bad one does not stop the others."""
    found = plans.unknown(project)
    wanted = _chosen(project, found, names) if names else found
    numbers = [_number(path) for path in found]
    taken, refused = [], []
    for path in wanted:
        try:
            if numbers.count(_number(path)) > 1:
                raise InvalidDocument(f"there are several files of `{_number(path)}`")
            taken.append(_taken(project, path, actor))
        except PlanforgeError as error:
            refused.append(Refused(path=path, reason=error.message))
    return Adopted(taken=tuple(taken), refused=tuple(refused))


def _chosen(project: Project, found: Sequence[str], names: Sequence[str]) -> list[str]:
    chosen = []
    for name in names:
        plan = plans.named(project, name)
        of_it = [path for path in found if _number(path) == plan]
        if not of_it:
            plans.row(project, plan)  # which is said to be missing if it is
            raise InvalidInput(f"`{plan}` is known already", see("plan show", plan))
        chosen += of_it
    return list(dict.fromkeys(chosen))


def _number(path: str) -> str:
    found = re.search(plans.FILE, path.rpartition("/")[2])
    assert found is not None
    return items.name(Kind.PLAN, int(found["number"]))


def _taken(project: Project, path: str, actor: str) -> Taken:
    text = _read(project, path)
    plan = _number(path)
    if faults := header_faults(text, plan):
        raise InvalidDocument(faults[0])
    document = parse(text)
    status = OVER.get(document.status, PlanStatus.DRAFT.value)
    with work.numbering(project):
        try:
            project.ledger.append(plan, _events(project, plan, path, text, actor), expected=0)
        except Conflict:
            raise InvalidInput(f"`{plan}` is known already") from None
    statuses.mark(project, plan, status)
    row = plans.row(project, plan)
    made = 0
    had = status == PlanStatus.DRAFT.value and (project.root / plans.phases_path(row)).is_file()
    if had and not approvals.faults(project, row, plans.text(project, row)):
        made = len(phases.generate(project, plan, actor=actor).phases)
    return Taken(
        plan=plan,
        title=document.title,
        path=path,
        status=status,
        said=document.status.value,
        phases=made,
    )


def _events(project: Project, plan: str, path: str, text: str, actor: str) -> list[Event]:
    document = parse(text)
    recorded = Redactor.of_environment().text(text).encode()
    made: list[Event] = [
        ItemOpened(
            item=plan,
            title=document.title,
            request=document.title,
            path=path,
            parent=task_id(document.task) or own_task(plan),
        ),
        PlanWritten(
            plan=plan,
            round=0,
            cause="draft",
            title=document.title,
            content=content_hash(text),
            object=project.ledger.objects.put(recorded),
        ),
    ]
    if document.status in OVER:
        said = f"its file says that it is {document.status}"
        over = OVER[document.status]
        made.append(ItemMoved(item=plan, by="adopt", status=over, actor=actor, reason=said, override=True))
    return made


def _read(project: Project, path: str) -> str:
    place = project.root / path
    if place.is_symlink() or not place.is_file():
        raise InvalidDocument("it is no regular file")
    try:
        content = place.read_bytes() if place.stat().st_size <= LIMIT else b""
        text = content.decode()
    except OSError as error:
        raise NotFound(f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InvalidDocument("it is not UTF-8") from None
    if not text:
        raise InvalidDocument(f"it is empty, or has more than {LIMIT:,} bytes")
    return text
