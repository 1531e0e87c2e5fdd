"""
One agent at work: in a worktree that was prepared for it, confined, and watched.

The sandbox keeps it from reaching out of its worktree; where none works here, what it did outside is
seen afterwards. Either way the attempt of an agent that reached out is not taken.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from planforge.agents.profiles import Profile
from planforge.agents.protocol import Launch
from planforge.app.evidence import gatherer
from planforge.app.project import Project
from planforge.errors import AgentFailed, AgentLimited, AgentStrayed
from planforge.kernel.effects import Access, Checkout, RunAgent
from planforge.workspace import processes, sandbox
from planforge.workspace.preparation.setup import Prepared
from planforge.workspace.sandbox import Level, Policy
from planforge.workspace.watch.postconditions import Watch
from planforge.workspace.worktrees import Worktrees, changing

VARIABLE = re.compile(r"\$\{(\w+)\}")

BUFFER = {"acp": 16 * 1024 * 1024, "claude": 256 * 1024, "codex": 256 * 1024}
"""How many bytes of an agent wait to be read before it has to wait: a whole line, or a piece of one where the
adapter puts lines together itself. Twice as many may be held, for every agent at work."""


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent can start: a worktree, and how programs are started in it."""

    cwd: Path
    level: Level
    """How firmly it is confined."""
    launch: Launch
    variables: Mapping[str, str]
    """What the worktree has to itself, such as ports."""


class Workroom:
    """Where the agents of one run work."""

    def __init__(self, project: Project, worktrees: Worktrees) -> None:
        self._project = project
        self._worktrees = worktrees
        self._opened: set[str] = set()
        """The worktrees that this process has made: nobody else has worked in them."""
        self._prepared: dict[str, Prepared] = {}
        self._tried = False
        """Whether it is known what works here."""

    def open(self, name: str, commit: str) -> Checkout:
        """Make a worktree."""
        self._leave(name)
        checkout = self._worktrees.open(name, commit)
        self._opened.add(name)
        return checkout

    def close(self, name: str) -> None:
        """Remove it, keeping what is in it."""
        self._leave(name)
        self._worktrees.close(name)
        self._opened.discard(name)

    def _leave(self, name: str) -> None:
        if prepared := self._prepared.pop(name, None):
            prepared.close()

    def stands(self, name: str) -> bool:
        """Whether the worktree is there as it was left, by this process or by one before."""
        return self._worktrees.path(name).is_dir() and self._worktrees.opened(name) is not None

    def path(self, name: str) -> Path:
        """Where a worktree is."""
        return self._worktrees.path(name)

    def tree(self, name: str) -> str:
        """The tree of everything in a worktree."""
        return self._worktrees.tree(name)

    async def level(self) -> Level:
        """How firmly agents are confined here; to find that out the first time takes a while."""
        if not self._tried:
            await asyncio.to_thread(self._project.settings.sandbox.chosen)
            self._tried = True
        return self._project.settings.sandbox.chosen()

    @asynccontextmanager
    async def at_work(
        self, agent: str, profile: Profile, effect: RunAgent, *, home: Path, anew: bool, going_on: bool
    ) -> AsyncIterator[Bench]:
        """
        A worktree that is ready for an agent. One that reached out of it has failed, whatever it said.

        `anew` makes the worktree again, `going_on` takes it as an agent left it that goes on in it now.
        """
        level = await self.level()
        if anew or (effect.worktree not in self._opened and not going_on):
            await asyncio.to_thread(self.open, effect.worktree, effect.base)
        prepared = await self._prepare(effect.worktree, level)
        watch = self._watch(effect, prepared, level)
        await asyncio.to_thread(self._take, watch)
        policy = self._policy(profile, effect, home)

        async def launch(
            argv: Sequence[str], *, env: Mapping[str, str], cwd: Path
        ) -> asyncio.subprocess.Process:
            return await processes.start(
                argv,
                cwd=cwd,
                extra=env,
                stdin=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=BUFFER[profile.speaks],
                policy=policy,
                level=level,
            )

        cwd = self._worktrees.path(effect.worktree)
        try:
            yield Bench(cwd=cwd, level=level, launch=launch, variables=prepared.env)
        except (AgentFailed, AgentLimited) as error:
            # Also one that goes on later: what it did outside must not be taken for what was there before.
            if reached := await asyncio.to_thread(self._reached_out, watch):
                raise AgentStrayed(f"{error.message}; besides, it {reached}") from error
            raise
        if reached := await asyncio.to_thread(self._reached_out, watch):
            raise AgentStrayed(f"agent `{agent}` {reached}")

    def _take(self, watch: Watch) -> None:
        # A worktree that is being made looks like one that is tampered with.
        with changing(self._project.git):
            watch.take()

    def _reached_out(self, watch: Watch) -> str:
        """What an agent did where it has no business, if anything."""
        with changing(self._project.git):
            problems = watch.problems()
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        return f"reached out of its worktree: {'; '.join(problems[:3])}{more}" if problems else ""

    async def _prepare(self, name: str, level: Level) -> Prepared:
        if name in self._prepared:
            return self._prepared[name]
        project, worktree = self._project, self._worktrees.path(name)
        prepared = await gatherer.prepare(worktree, project.git, project.state, project.settings, level)
        self._prepared[name] = prepared
        return prepared

    def _watch(self, effect: RunAgent, prepared: Prepared, level: Level) -> Watch:
        project, name = self._project, effect.worktree
        opened = self._worktrees.opened(name)
        return Watch(
            project.git,
            self._worktrees.path(name),
            name,
            opened.branch if opened else None,
            base=opened.commit if opened else effect.base,
            state=project.state,
            written=[project.settings.forge.plans],
            copied=prepared.copied,
            confined=sandbox.enough(level, Level.LANDLOCK),  # it cannot write outside its worktree
            allowed=project.settings.workspace.own_changes == "allow",
        )

    def _policy(self, profile: Profile, effect: RunAgent, home: Path) -> Policy:
        project, sandboxing = self._project, self._project.settings.sandbox
        confine = sandboxing.reading if effect.access is Access.READ else sandboxing.writing
        return confine(
            self._worktrees.path(effect.worktree),
            project.root,
            state=project.state,
            own=[home, *self._places(profile.writes)],
            visible=self._places(profile.reads),
        )

    def _places(self, named: Sequence[str]) -> list[Path]:
        """The paths of a profile on this machine; one that names an unset variable is none."""
        known = dict(os.environ) | {"root": str(self._project.root)}
        meant = [name for name in named if all(known.get(variable) for variable in VARIABLE.findall(name))]
        return [Path(VARIABLE.sub(lambda match: known[match[1]], name)).expanduser() for name in meant]
