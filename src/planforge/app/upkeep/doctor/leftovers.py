"""What ended and dead runs left: interrupted work, worktrees, processes, files outside of git."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from planforge.actions import Action
from planforge.app.project import Project
from planforge.app.runs import RunRow, rows
from planforge.app.upkeep.doctor.findings import FIX, OK, WARN, Finding, mebibytes
from planforge.app.upkeep.doctor.project import here
from planforge.kernel.locks import is_held
from planforge.kernel.wording import counted
from planforge.workspace.archive.quarantine import everything
from planforge.workspace.keeping.directories import size
from planforge.workspace.launch import trees
from planforge.workspace.processes.cookies import BOOT, Record
from planforge.workspace.sandbox import RECORDS

PROCESSES = Path("/proc")


def runs(start: Path) -> Iterator[Finding]:
    """Running and interrupted runs."""
    project = here(start)
    if project is None:
        return
    for row in rows(project, unfinished=True):
        if is_held(project.lock(row.run)):
            holder = project.lock(row.run).read_text(errors="replace") or "another process"
            yield Finding(id=row.run, status=OK, evidence=f"driven by {holder}")
        elif row.status == "interrupted":
            evidence = "interrupted, and not done"
            yield Finding(id=row.run, status=WARN, evidence=evidence, fix=Action("resume", row.run))


def worktrees(start: Path) -> Iterator[Finding]:
    """Worktrees of ended runs, and of runs that this project does not know."""
    project = here(start)
    if project is None:
        return
    for run, paths in left(project).items():
        taken = sum(map(size, paths))
        names = ", ".join(f"`{path.name}`" for path in paths[:5])
        evidence = f"{run} has ended and left {names} ({mebibytes(taken)}); their content is archived first"
        yield Finding(id=f"worktrees of {run}", status=WARN, evidence=evidence, fix=FIX)
    known = {row.run for row in rows(project)}
    for run in sorted(set(_by_run(project)) - known):
        evidence = f"`{project.state}/worktrees/{run}` belongs to no run of this project"
        yield Finding(id=f"worktrees of {run}", status=WARN, evidence=evidence, fix=Action("cleanup"))


def left(project: Project) -> dict[str, list[Path]]:
    """The worktrees of ended runs, by run."""
    every: dict[str, RunRow] = {row.run: row for row in rows(project)}
    return {
        run: paths
        for run, paths in _by_run(project).items()
        if run in every and not every[run].unfinished and not is_held(project.lock(run))
    }


def _by_run(project: Project) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted((project.state / "worktrees").glob("*/*")):
        if path.is_dir() and not path.is_symlink():
            found.setdefault(path.parent.name, []).append(path)
    return found


def processes(start: Path) -> Iterator[Finding]:
    """Processes that a dead Planforge left, and other processes in worktrees."""
    project = here(start)
    if project is None or not PROCESSES.is_dir():
        return
    told: set[int] = set()
    for program, pids in orphans(project.state):
        told |= set(pids)
        evidence = f"`{program}` left {_named(pids)}, and its Planforge has died"
        yield Finding(id="processes", status=WARN, evidence=evidence, fix=FIX)
    for pid, name, cwd in _sitting(project):
        if pid not in told:
            evidence = f"process {pid} (`{name}`) is in `{cwd}`, which no run needs any more"
            yield Finding(id=f"process {pid}", status=WARN, evidence=evidence, fix=f"kill {pid}")


def orphans(state: Path) -> Iterator[tuple[str, list[int]]]:
    """Programs of a dead Planforge, each with its remaining processes."""
    boot = BOOT.read_text().strip() if BOOT.exists() else ""
    for path in sorted((state / RECORDS).glob("[0-9a-f]*")):
        with suppress(OSError, msgspec.MsgspecError):
            noted = msgspec.json.decode(path.read_bytes(), type=Record)
            dead = noted.boot == boot and not trees.runs(noted.owner)
            if dead and (pids := sorted(pid for pid, _ in trees.bearing(noted.cookie))):
                yield noted.program, pids


def _sitting(project: Project) -> Iterator[tuple[int, str, str]]:
    """Processes in worktrees of runs that no process drives."""
    home = (project.state / "worktrees").resolve()
    for entry in PROCESSES.glob("[0-9]*"):
        pid = int(entry.name)
        with suppress(OSError):
            cwd = (entry / "cwd").readlink()
            if not cwd.is_relative_to(home) or cwd == home:
                continue
            run = cwd.relative_to(home).parts[0]
            if not is_held(project.lock(run)):
                yield pid, (entry / "comm").read_text(errors="replace").strip(), str(cwd)


def quarantine(start: Path) -> Iterator[Finding]:
    """Files outside of git, because they contain secrets or git cannot store them."""
    project = here(start)
    if project is None:
        return
    held = everything(project.state)
    if held:
        taken = sum(size(item.directory) for item in held)
        first = held[0]
        evidence = (
            f"{counted(len(held), 'worktree')} left files that are kept outside of git ({mebibytes(taken)}), "
            f"such as `{first.directory}`: {first.held.why}"
        )
        yield Finding(id="quarantine", status=WARN, evidence=evidence, fix=Action("recover"))


def _named(pids: list[int]) -> str:
    listed = ", ".join(map(str, pids[:5]))
    return (
        f"process {listed}" if len(pids) == 1 else f"{counted(len(pids), 'process', 'processes')} ({listed})"
    )
