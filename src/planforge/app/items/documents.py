"""Plans and documents of tasks, as runs read and write them; what a person has edited is left as it is."""

from __future__ import annotations

from pathlib import Path

from planforge.app.items import plans, task_rows
from planforge.app.project import Project
from planforge.errors import CannotPerform, InvalidInput, PlanEdited
from planforge.kernel import effects
from planforge.kernel.effects import DocumentText
from planforge.kernel.files import read_regular
from planforge.kernel.objects import address, write_atomically


def read_plan(project: Project, effect: effects.ReadPlan) -> DocumentText:
    """The plan as it is on disk, which is kept."""
    text = plans.text(project, plans.row(project, effect.plan))
    return DocumentText(text=text, object=project.ledger.objects.put(text.encode()))


def write_plan(project: Project, effect: effects.WritePlan) -> DocumentText:
    """Write a plan, unless a person has edited it meanwhile."""
    path = project.root / plans.row(project, effect.plan).path
    return DocumentText(text=effect.text, object=_written(project, path, effect.text, effect.replaces or ""))


def read(project: Project, effect: effects.ReadDocument) -> DocumentText:
    """A document of a task as it is on disk; an empty one if it is not there."""
    try:
        content = read_regular(_path(project, effect.task, effect.name))
    except FileNotFoundError:
        return DocumentText(text="", object="")
    except OSError as error:
        raise CannotPerform(f"`{effect.name}` cannot be read: {error.strerror}") from error
    return DocumentText(text=content.decode("utf-8", "replace"), object=project.ledger.objects.put(content))


def write(project: Project, effect: effects.WriteDocument) -> DocumentText:
    """Write a document of a task, unless a person has edited it meanwhile."""
    path = _path(project, effect.task, effect.name)
    return DocumentText(text=effect.text, object=_written(project, path, effect.text, effect.replaces))


def _written(project: Project, path: Path, text: str, replaces: str) -> str:
    """Write a file, unless what is there is neither what we left nor what we are to write; its object."""
    content = text.encode()
    found = address(read_regular(path)) if path.exists() else ""
    if found not in (replaces, address(content)):
        what = "was edited" if found else "was removed"
        raise PlanEdited(f"`{path.name}` {what} while Planforge was working on it; it is left as it is")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
    return project.ledger.objects.put(content)


def _path(project: Project, task: str, name: str) -> Path:
    directory = (project.root / task_rows.row(project, task).path).resolve()
    if Path(name).name != name or not directory.is_relative_to(project.root.resolve()):
        raise InvalidInput(f"`{name}` is not the name of a document")
    return directory / name
