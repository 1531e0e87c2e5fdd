"""
What `planforge doctor --fix` repairs: only what loses nothing and needs no decision.

- `.planforge/.gitignore` is written again if it does not make git ignore the directory.
- Git's lock files are removed if their processes are provably dead.
- Processes with the mark of a dead Planforge are ended.
- Worktrees of ended runs are archived and removed; checkouts of checks whose Planforge
  died are removed.

Interrupted runs, quarantine, archived work and other processes in a worktree are not
touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from planforge.app.evidence import screening
from planforge.app.places import STATE
from planforge.app.project import Project
from planforge.app.runs import rows
from planforge.app.upkeep.doctor.findings import Mended
from planforge.app.upkeep.doctor.leftovers import left
from planforge.app.upkeep.doctor.project import here, is_ignored
from planforge.errors import PlanforgeError
from planforge.kernel.locks import held, is_held
from planforge.kernel.wording import counted
from planforge.workspace.git import stale_locks
from planforge.workspace.processes.cookies import sweep
from planforge.workspace.worktrees import Worktrees, changing


def apply(start: Path) -> tuple[Mended, ...]:
    """Make the repairs; a repair that fails is reported."""
    project = here(start)
    if project is None:
        return ()
    remedies: dict[str, Callable[[Project], Iterator[str]]] = {
        "state": _ignore,
        "processes": _end_orphans,
        "locks": _remove_locks,
        "worktrees": _sweep,
    }
    done: list[Mended] = []
    for name, remedy in remedies.items():
        try:
            done.extend(Mended(id=name, done=True, said=said) for said in remedy(project))
        except (PlanforgeError, OSError) as error:
            said = (
                error.message if isinstance(error, PlanforgeError) else f"{error.strerror}: {error.filename}"
            )
            done.append(Mended(id=name, done=False, said=said))
    return tuple(done)


def _ignore(project: Project) -> Iterator[str]:
    if not is_ignored(project):
        path = project.state / ".gitignore"
        path.unlink(missing_ok=True)  # it may be a link
        path.write_text("*\n")
        yield f"wrote `{STATE}/.gitignore`"


def _end_orphans(project: Project) -> Iterator[str]:
    for swept in sweep(project.state):
        ended = counted(swept.processes, "process", "processes")
        yield f"ended {ended} of `{swept.program}`"


def _remove_locks(project: Project) -> Iterator[str]:
    if not stale_locks.find(project.git):
        return
    with changing(project.git):
        busy = any(is_held(path) for path in (project.state / "locks").glob("*"))
        for lock in stale_locks.remove(project.git, alone=not busy):
            yield f"removed `{lock.path}`: {lock.why}"


def _sweep(project: Project) -> Iterator[str]:
    for run, paths in left(project).items():
        subject = next((row.subject for row in rows(project) if row.run == run), "")
        worktrees = Worktrees(project.git, project.state, run, secret=screening.finder(project, subject))
        with held(project.lock(run), f"`{run}`"):
            worktrees.sweep()
        yield f"archived and removed {counted(len(paths), 'worktree')} of {run}"
        yield from worktrees.not_kept
    for row in rows(project, unfinished=True):
        checks = list((project.state / "worktrees" / row.run).glob("check-*"))
        if checks and not is_held(project.lock(row.run)):
            with held(project.lock(row.run), f"`{row.run}`"):
                Worktrees(project.git, project.state, row.run).discard_checks()
            yield f"removed {counted(len(checks), 'checkout')} for checks of {row.run}"
