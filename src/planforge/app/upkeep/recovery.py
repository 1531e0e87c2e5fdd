"""What agents left, wherever it is: worktrees that stand, work that is archived, and getting it back."""

from __future__ import annotations

import shutil
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice, Blank, see
from planforge.app import runs
from planforge.errors import GitFailed, InvalidInput, NotFound, PlanforgeError
from planforge.workspace.archive import catalogue, quarantine
from planforge.workspace.archive.catalogue import ATTEMPT, Work
from planforge.workspace.keeping import contents, directories
from planforge.workspace.worktrees import FRESH, Worktrees

if TYPE_CHECKING:
    from planforge.app.project import Project

SHORTEST = 7
"""How much of a commit's name must be said."""

QUARANTINE = "quarantine/"
"""What the names of things that are kept outside git begin with."""


class WorktreeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree that stands."""

    run: str
    status: str
    """That of its run; `unknown` if the ledger has no such run."""
    name: str
    step: str
    attempt: int
    path: str
    branch: str
    base: str
    commits: int
    """How many commits its agent has made by itself."""
    dirty: bool | None
    """Whether its files are not those of its base; None where that cannot be told."""
    bytes: int
    opened_at: str


class WorktreeList(msgspec.Struct, frozen=True, kw_only=True):
    """All worktrees of this project's runs."""

    schema_version: int = 1
    worktrees: tuple[WorktreeRow, ...]


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are kept outside git."""

    name: str
    run: str
    worktree: str
    at: str
    why: str
    files: tuple[str, ...]
    commits: tuple[str, ...]
    directory: str


class Recoverable(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be got back."""

    schema_version: int = 1
    work: tuple[Work, ...]
    quarantined: tuple[Quarantined, ...]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work, with what it changes."""

    schema_version: int = 1
    work: Work | Quarantined
    stat: str
    """What changed, file by file."""
    message: str


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """Work that was got back."""

    schema_version: int = 1
    name: str
    directory: str = ""
    branch: str = ""
    commit: str = ""


def worktrees(project: Project) -> WorktreeList:
    """The worktrees that stand, by run."""
    statuses = {row.run: row.status for row in runs.rows(project)}
    found = []
    for home in sorted((project.state / "worktrees").glob("*")):
        if not home.is_dir() or home.is_symlink():
            continue
        standing = Worktrees(project.git, project.state, home.name)
        status = statuses.get(home.name, "unknown")
        places = [path for path in standing.left() if path.is_dir() and not path.is_symlink()]
        found += [_row(project, standing, path, status) for path in places]
    return WorktreeList(worktrees=tuple(found))


def _row(project: Project, standing: Worktrees, path: Path, status: str) -> WorktreeRow:
    fresh = path.name.startswith(FRESH)
    opened = None if fresh else standing.opened(path.name)
    step = ATTEMPT.fullmatch(path.name)
    dirty = None
    if opened is not None:
        try:
            dirty = contents.is_changed(project.git, path, opened.commit)
        except GitFailed:
            dirty = None
    return WorktreeRow(
        run=path.parent.name,
        status=status,
        name=path.name,
        step="" if fresh else step[1] if step else path.name,
        attempt=int(step[2]) if step and not fresh else 0,
        path=str(path),
        branch=(opened.branch.removeprefix("refs/heads/") if opened else ""),
        base=opened.commit if opened else "",
        commits=_commits(project, opened.entry, opened.commit) if opened else 0,
        dirty=dirty,
        bytes=directories.size(path),
        opened_at=opened.at if opened else "",
    )


def _commits(project: Project, entry: str, base: str) -> int:
    head = project.git.ref(f"worktrees/{entry}/HEAD^{{commit}}") if entry else None
    return int(project.git.line("rev-list", "--count", f"{base}..{head}")) if head else 0


def archived(
    project: Project, *, run: str = "", plan: str = "", text: str = "", path: str = ""
) -> Recoverable:
    """Everything that is archived, or what matches all that is asked for."""
    subjects = {row.run: row.subject for row in runs.rows(project)}
    wanted = ""
    if plan:
        from planforge.app.items import plans

        wanted = plans.named(project, plan)

    def matches(of_run: str, files: tuple[str, ...], *said: str) -> bool:
        return (
            (not run or of_run == run)
            and (not wanted or subjects.get(of_run) == wanted)
            and (not text or any(text.lower() in words.lower() for words in said))
            and (not path or any(_covers(path, file) for file in files))
        )

    work = [
        item
        for item in catalogue.everything(project.git, run)
        if matches(item.run, item.files, item.name, item.subject, item.why)
    ]
    outside = [
        item
        for item in _quarantined(project)
        if matches(item.run, item.files, item.name, item.why, item.worktree)
    ]
    return Recoverable(work=tuple(work), quarantined=tuple(outside))


def _covers(pattern: str, path: str) -> bool:
    return path == pattern or path.startswith(pattern.rstrip("/") + "/") or fnmatchcase(path, pattern)


def _quarantined(project: Project) -> list[Quarantined]:
    return [
        Quarantined(
            name=f"{QUARANTINE}{found.held.run}/{found.directory.name}",
            run=found.held.run,
            worktree=found.held.worktree,
            at=found.held.at,
            why=found.held.why,
            files=found.held.paths,
            commits=found.held.commits,
            directory=str(found.directory),
        )
        for found in quarantine.everything(project.state)
    ]


def find(project: Project, name: str) -> Work | Quarantined:
    """The one piece of work that `name` means: its name, the end of it, or its commit."""
    found = archived(project)
    everything: list[Work | Quarantined] = [*found.work, *found.quarantined]
    exact = [item for item in everything if item.name == name]
    if exact:
        return exact[0]
    near = [item for item in everything if item.name.endswith(f"/{name}")]
    if len(name) >= SHORTEST:
        near += [item for item in found.work if item.commit.startswith(name)]
    if not near:
        raise NotFound(f"nothing is archived as `{name}`", see("recover"))
    if len({item.name for item in near}) > 1:
        names = ", ".join(f"`{item.name}`" for item in near)
        raise InvalidInput(f"`{name}` may be any of {names}", "say the whole name")
    return near[0]


def show(project: Project, name: str) -> Shown:
    """What a piece of work changes."""
    item = find(project, name)
    if isinstance(item, Quarantined):
        listed = [*item.files, *(f"commit {commit} in commits.pack" for commit in item.commits)]
        return Shown(work=item, stat="\n".join(listed), message=item.why)
    git = project.git
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--stat=110", "--summary")
    if item.base:
        stat = git.run("diff-tree", "-r", *plain, item.base, item.commit).stdout
    else:
        stat = git.run("diff-tree", "-r", "--root", "--no-commit-id", *plain, item.commit).stdout
    message = git.run("show", "--no-patch", "--no-color", "--format=%B", item.commit).stdout
    return Shown(
        work=item,
        stat=stat.decode("utf-8", "backslashreplace").rstrip(),
        message=message.decode("utf-8", "backslashreplace").strip(),
    )


def write_to(project: Project, name: str, directory: Path) -> Restored:
    """Write the files of a piece of work into a directory that is not there yet."""
    item = find(project, name)
    try:
        directory.mkdir()
    except FileExistsError:
        raise InvalidInput(
            f"`{directory}` exists already", "name a directory that does not: nothing is overwritten"
        ) from None
    except OSError as error:
        raise InvalidInput(f"cannot make `{directory}`: {error.strerror}") from error
    try:
        if isinstance(item, Quarantined):
            source = Path(item.directory) / "files"
            if source.is_dir():
                _copy(item, source, directory)
            return Restored(name=item.name, directory=str(directory))
        with tempfile.TemporaryDirectory(prefix="planforge-index-") as scratch:
            index = Path(scratch) / "index"
            project.git.run("read-tree", item.commit, index=index)
            project.git.run("checkout-index", "--all", "--quiet", work_tree=directory, index=index)
    except BaseException:
        directories.remove(directory)
        raise
    return Restored(name=item.name, directory=str(directory), commit=item.commit)


def _copy(item: Quarantined, source: Path, directory: Path) -> None:
    try:
        shutil.copytree(source, directory, symlinks=True, dirs_exist_ok=True)
    except (OSError, RecursionError) as error:
        reason = getattr(error, "strerror", "") or "some are too deep, or cannot be read"
        raise PlanforgeError(
            f"cannot write the files of `{item.name}`: {reason}", f"they can be moved out of `{source}`"
        ) from error


def require_branch(project: Project, name: str, branch: str) -> Work:
    """The work that a branch can be made of; refused if a branch of that name is there, or cannot be."""
    item = find(project, name)
    if isinstance(item, Quarantined):
        raise InvalidInput(
            f"`{item.name}` is kept outside git",
            Advice("use {}", Action("recover", item.name, to=Blank("DIRECTORY"))),
        )
    checked = project.git.run("check-ref-format", "--branch", branch, accept=(0, 1, 128))
    if checked.returncode or branch.startswith("-"):
        raise InvalidInput(f"`{branch}` cannot be the name of a branch")
    if project.git.ref(f"refs/heads/{branch}") is not None:
        raise _taken(branch)
    return item


def make_branch(project: Project, name: str, branch: str) -> Restored:
    """Make a branch of a piece of work; one of that name must not be there yet."""
    item = require_branch(project, name, branch)
    if not project.git.move_ref(f"refs/heads/{branch}", item.commit, None):
        raise _taken(branch)
    return Restored(name=item.name, branch=branch, commit=item.commit)


def _taken(branch: str) -> InvalidInput:
    return InvalidInput(f"there is a branch `{branch}` already", "choose another name")
