"""
What a worktree gets before an agent starts in it.

Git checks out what is committed; a project often needs more to run: an `.env`,
installed packages, a port that nobody else has. What is copied from the person's
checkout is ignored by git both there and in the worktree, so it cannot be committed.
It is the worktree's own: nothing that one worktree does reaches another one or the
person. At the end a command of the person's may say whether everything is in place.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from planforge.errors import CannotPerform
from planforge.kernel.redaction import Redactor
from planforge.kernel.wording import counted
from planforge.workspace import processes
from planforge.workspace.files import links
from planforge.workspace.git import Git, objects
from planforge.workspace.git.checkouts import index_of
from planforge.workspace.preparation import Preparation, ports
from planforge.workspace.preparation.ports import Ports
from planforge.workspace.preparation.untracked import SHOWN, Copier
from planforge.workspace.processes import Ended

SHOWN_LINES = 5
SHOWN_CHARACTERS = 300

UNLINKED = {"UV_LINK_MODE": "copy", "npm_config_package_import_method": "copy"}
"""Has the tools that would link installed packages to their cache copy them instead."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, and the environment of programs in the worktree."""

    env: dict[str, str]
    notes: tuple[str, ...]
    copied: tuple[str, ...] = ()
    """Paths that were copied from the person's checkout and must not be committed."""
    ports: Ports | None = None

    def close(self) -> None:
        """Give the ports back, when nothing runs in the worktree any more."""
        if self.ports is not None:
            self.ports.give_back()


class Runner(Protocol):
    """Runs a command to its end, as `processes.run` does; the caller may confine it further."""

    async def __call__(
        self, argv: Sequence[str], *, cwd: Path, seconds: float, extra: Mapping[str, str] | None = None
    ) -> Ended:
        """How it ended."""


async def prepare(
    worktree: Path,
    source: Path,
    settings: Preparation,
    *,
    git: Git,
    state: Path,
    run: Runner = processes.run,
) -> Prepared:
    """Make `worktree` ready as the person's checkout `source` and the settings say, or say what failed."""
    brought = await asyncio.to_thread(_bring, git, worktree, source, settings)
    taken = ports.take(settings.ports, str(worktree)) if settings.ports else None
    env = UNLINKED | (taken.env if taken else {})
    try:
        notes = await _commands(worktree, source, settings, git, state / "caches", env, run)
    except BaseException:
        if taken:
            taken.give_back()
        raise
    return Prepared(env=env, notes=(*brought.notes, *notes), copied=tuple(brought.copied), ports=taken)


def _bring(git: Git, worktree: Path, source: Path, settings: Preparation) -> Copier:
    try:
        with Copier(git, source, worktree) as copier:
            copier.include(settings.include_files, settings.include_megabytes)
            for path in settings.caches:
                copier.cache(path, settings.cache_megabytes)
    except OSError as error:
        raise CannotPerform(f"cannot copy into the worktree: {error.strerror or error}") from error
    return copier


async def _commands(
    worktree: Path,
    source: Path,
    settings: Preparation,
    git: Git,
    caches: Path,
    env: dict[str, str],
    run: Runner,
) -> list[str]:
    notes = []
    inherited = {name: os.environ[name] for name in settings.inherit if name in os.environ}
    known = inherited | {"PLANFORGE_SOURCE": str(source), "PLANFORGE_WORKTREE": str(worktree)} | env
    if settings.setup:
        for name in settings.shared.values():
            (caches / name).mkdir(parents=True, exist_ok=True)
        shared = {variable: str(caches / name) for variable, name in settings.shared.items()}
        await _succeed("setup", settings.setup, worktree, settings.setup_seconds, known | shared, run)
        if number := await asyncio.to_thread(links.separate, worktree):
            notes.append(
                f"made {counted(number, 'file')} the worktree's own that `setup` had linked from elsewhere"
            )
    if settings.smoke:
        await _succeed("smoke", settings.smoke, worktree, settings.smoke_seconds, known, run)
    if settings.setup or settings.smoke:
        await asyncio.to_thread(_require_clean, git, worktree)
    return notes


async def _succeed(
    what: str, command: Sequence[str], cwd: Path, seconds: float, extra: Mapping[str, str], run: Runner
) -> None:
    ended = await run(command, cwd=cwd, seconds=seconds, extra=extra)
    if ended.exit_code == 0:
        return
    said = Redactor.of_environment().text(ended.output[-16384:].decode("utf-8", "replace"))
    lines = [line.strip()[:SHOWN_CHARACTERS] for line in said.splitlines() if line.strip()]
    end = "did not end in time" if ended.exit_code is None else f"ended with {ended.exit_code}"
    raise CannotPerform(
        f"the {what} command `{' '.join(command)}` {end}, so the worktree is not ready: "
        f"{' | '.join(lines[-SHOWN_LINES:]) or 'it printed nothing'}",
        f"run it yourself in a fresh clone, or change `workspace.{what}` in planforge.toml",
    )


def _require_clean(git: Git, worktree: Path) -> None:
    """What the commands of the person's left must not pass for the agent's work."""
    with objects.scratch_index(index_of(git, worktree)) as index:
        git.run("update-index", "-q", "--refresh", work_tree=worktree, index=index, accept=(0, 1))
        changed = git.run("diff-files", "--name-only", "-z", work_tree=worktree, index=index).stdout
        listing = ("ls-files", "--others", "--exclude-standard", "-z")
        changed += git.run(*listing, work_tree=worktree, index=index).stdout
    if paths := [path for path in changed.split(b"\0") if path]:
        named = objects.listed(paths, SHOWN)
        raise CannotPerform(
            f"`setup` or `smoke` changed {named}, which git does not ignore; it would be taken for the "
            "agent's work",
            "use a command that keeps to ignored files, such as `npm ci`, or ignore what it makes",
        )
