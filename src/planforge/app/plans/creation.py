"""
Plans that no agent drafts: from the template, or from what somebody wrote elsewhere.

A plan gets its number in the ledger and its text on record before its file is made, so a process that dies in
between loses nothing, and two that make plans at the same time never get the same number. A file that is
there is never written over.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice, Blank
from planforge.app.items import backing
from planforge.app.items.plans import on_record
from planforge.app.plans import work
from planforge.documents import plan as plans
from planforge.documents import requests, template
from planforge.documents.imports import LIMIT, one_line, plain
from planforge.documents.template import is_blank
from planforge.errors import Conflict, InvalidDocument, InvalidInput, PlanEdited
from planforge.kernel.events import ItemOpened, PlanWritten
from planforge.kernel.redaction import Redactor

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.documents.imports import Imported
    from planforge.rules.findings import Finding


LARGEST = 4 * LIMIT
"""How many bytes a new plan may have: what is quoted in it has a mark before each line."""


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that was made, and what is left to be written in it."""

    schema_version: int = 1
    plan: str
    task: str
    title: str
    path: str
    status: str
    content: str
    """The hash an approval of this text would be bound to."""
    source: str
    """Where it is from, or what was given with it; empty if that is nothing."""
    template: str
    """The template it was made from; empty is the one that is built in, or none."""
    findings: tuple[Finding, ...]
    """What is wrong with its form so far."""
    blank: bool
    """Whether all of it is to be written, which an agent can do as well."""


def create(
    project: Project, description: str, *, context: Imported | None = None, task: str = "", new: bool = False
) -> Created:
    """Make a plan from the template, for a person or an agent to fill in."""
    redact = Redactor.of_environment()
    task, known = backing.named(project, task) if task else ("", "")
    said = redact.text(plain(_described(description, known)))
    title = work.title_of(said)
    if not new:
        backing.require_new(project, title, task, Action("plan create", title, new=True))
    own, form = _template(project)
    given = redact.text(context.text) if context else ""
    source = context.source if context else ""

    def render(created: ItemOpened) -> str:
        asked = said if said.strip() != title else ""
        return _filled(project, own, form, created, asked, given, source)

    return _made(project, redact, title, said, task, given, render, source=source, template=own)


def own_form(project: Project, created: ItemOpened, request: str, given: str, source: str) -> str:
    """The file that a plan begins as which an agent is to draft; empty if the project has no template."""
    own, form = _template(project)
    return _filled(project, own, form, created, request, given, source) if own else ""


def _filled(
    project: Project, own: str, form: str, created: ItemOpened, request: str, given: str, source: str
) -> str:
    """The template as the file of one plan, with what was asked for and what was given along."""
    try:
        text = template.filled(
            form,
            plan=created.item,
            title=created.title,
            task=created.parent,
            date=work.today(),
            project=project.root.name,
        )
    except InvalidDocument as error:
        raise InvalidDocument(f"`{own or 'the template'}`: {error.message}", template.HINT) from error
    text = plans.with_request(text, request) if request.strip() else text
    return plans.with_context(text, given, source) if given else text


def adopt(project: Project, found: Imported, *, task: str = "", new: bool = False) -> Created:
    """Make a plan of what somebody wrote elsewhere."""
    redact = Redactor.of_environment()
    task, _ = backing.named(project, task) if task else ("", "")
    title = redact.text(one_line(found.title))
    if not new:
        backing.require_new(project, title, task, Action("plan import", found.source, new=True))

    def render(created: ItemOpened) -> str:
        return plans.render_new(
            plan=created.item,
            title=title,
            created=work.today(),
            project=project.root.name,
            request="",
            body=found.body,
            task=created.parent,
            context=found.context,
            source=found.source,
        )

    return _made(project, redact, title, title, task, redact.text(found.text), render, source=found.source)


def _described(description: str, title: str) -> str:
    """What is wanted; a description that only points at something is that of the task it points at."""
    try:
        description.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("the description is not UTF-8") from error
    if requests.item(description) or not requests.means_nothing(description):
        work.require_request(description)
        return description
    if not title:
        raise InvalidInput(
            f"`{one_line(description)}` says nothing to whoever reads it later",
            Advice(
                "say what you want, or name a task: {}",
                Action("plan create", "this", task=Blank("TASK-ID")),
            ),
        )
    return title


def _template(project: Project) -> tuple[str, str]:
    """The project's own template and its path, or the one that is built in."""
    name = f"{project.settings.forge.plans}/{template.NAME}"
    path = project.root / name
    try:
        if not path.is_file() or path.stat().st_size > LIMIT:
            return "", template.BUILT_IN
        return name, path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return "", template.BUILT_IN


def _made(
    project: Project,
    redact: Redactor,
    title: str,
    request: str,
    task: str,
    description: str,
    render: Callable[[ItemOpened], str],
    *,
    source: str,
    template: str = "",
) -> Created:
    """Give the plan its number, put it on record, and write its file."""
    with work.numbering(project):
        while True:
            created = work.new_plan(project, title, request, task=task, description=description)
            text = redact.text(render(created))
            if len(text.encode()) > LARGEST:
                raise InvalidInput(f"the plan would have more than {LARGEST} bytes", "give it less")
            written = PlanWritten(
                plan=created.item,
                round=0,
                cause="draft",
                title=plans.parse(text).title,
                content=plans.content_hash(text),
                object=project.ledger.objects.put(text.encode()),
            )
            path = project.root / created.path
            part = _part(path, text.encode())
            try:
                project.ledger.append(created.item, [created, written], expected=0)
                _put(part, path, created.item)
            except Conflict:
                continue  # somebody else took this number; the next one is ours
            finally:
                part.unlink(missing_ok=True)
            break
    return Created(
        plan=created.item,
        task=created.parent,
        title=written.title,
        path=created.path,
        status=plans.PlanStatus.DRAFT.value,
        content=written.content,
        source=source,
        template=template,
        findings=plans.structural_findings(text),
        blank=is_blank(text),
    )


def _part(path: Path, content: bytes) -> Path:
    """The file under another name: what cannot be written is not put on record either."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise InvalidInput(f"`{path}` cannot be written: {error.strerror}") from error
    return part


def _put(part: Path, path: Path, plan: str) -> None:
    """Give the file its name, unless somebody has made one of that name."""
    try:
        os.link(part, path)
    except FileExistsError:
        hint = on_record(plan)
        raise PlanEdited(f"`{path}` is there already", hint) from None
    except OSError:  # a file system may have no links
        part.rename(path)
