"""
One agent at work: in a worktree that was prepared for it, confined, and watched.

The sandbox keeps it from reaching out of its worktree; where none works here, what it did outside is
seen afterwards. Either way the attempt of an agent that reached out is not taken.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from planforge.agents import acp
from planforge.agents.profiles import Profile
from planforge.agents.wire import LINE_LIMIT
from planforge.app.project import Project
from planforge.errors import AgentFailed
from planforge.kernel.effects import Access, AgentAnswer, Checkout, RunAgent
from planforge.workspace import preparing, processes, sandbox
from planforge.workspace.postconditions import Watch
from planforge.workspace.preparing import Prepared
from planforge.workspace.processes import Ended
from planforge.workspace.sandbox import Level, Policy
from planforge.workspace.worktrees import Worktrees, changing

VARIABLE = re.compile(r"\$\{(\w+)\}")


class Workroom:
    """Where the agents of one run work."""

    def __init__(self, project: Project, worktrees: Worktrees) -> None:
        self._project = project
        self._worktrees = worktrees
        self._opened: set[str] = set()
        """The worktrees that this process has made: nobody else has worked in them."""
        self._prepared: dict[str, Prepared] = {}

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

    async def ask(
        self, name: str, profile: Profile, effect: RunAgent, *, again: bool, seconds: float
    ) -> AgentAnswer:
        """Put the task to the agent; one that reached out of its worktree has failed."""
        level = await asyncio.to_thread(self._project.settings.sandbox.chosen)
        if again or effect.worktree not in self._opened:
            await asyncio.to_thread(self.open, effect.worktree, effect.base)
        prepared = await self._prepare(effect.worktree, level)
        watch = self._watch(effect, prepared, level)
        await asyncio.to_thread(self._take, watch)
        policy = self._policy(profile, effect)

        async def launch(profile: Profile, cwd: Path) -> asyncio.subprocess.Process:
            return await processes.start(
                profile.command,
                cwd=cwd,
                extra=self._variables(profile) | prepared.env,
                stdin=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_LIMIT,
                policy=policy,
                level=level,
            )

        try:
            answer = await acp.ask(
                name,
                profile,
                effect,
                cwd=self._worktrees.path(effect.worktree),
                seconds=seconds,
                launch=launch,
                end=processes.end,
                # Only an agent that another one can follow is stopped before its context is full.
                threshold=profile.handoff_tokens if effect.turn else 0,
            )
        except AgentFailed as error:
            if reached := await asyncio.to_thread(self._reached_out, watch):
                raise AgentFailed(f"{error.message}; besides, it {reached}") from error
            raise
        if reached := await asyncio.to_thread(self._reached_out, watch):
            raise AgentFailed(f"agent `{name}` {reached}")
        return msgspec.structs.replace(answer, sandbox=level.value)

    def _take(self, watch: Watch) -> None:
        with changing(
            self._project.git
        ):  # a worktree that is being made looks like one that is tampered with
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
        sandboxing = project.settings.sandbox
        # What `setup` downloads is kept for the next worktree; agents do not get there.
        caches = project.state / "caches"
        policy = sandboxing.writing(worktree, project.root, state=project.state, own=[caches])

        async def run(
            argv: Sequence[str], *, cwd: Path, seconds: float, extra: Mapping[str, str] | None = None
        ) -> Ended:
            return await processes.run(
                argv, cwd=cwd, seconds=seconds, extra=extra, policy=policy, level=level
            )

        prepared = await preparing.prepare(
            worktree, project.root, project.settings.workspace, git=project.git, state=project.state, run=run
        )
        self._prepared[name] = prepared
        return prepared

    def _watch(self, effect: RunAgent, prepared: Prepared, level: Level) -> Watch:
        project, name = self._project, effect.worktree
        opened = self._worktrees.opened(name)
        return Watch(
            project.git,
            self._worktrees.path(name),
            name,
            self._worktrees.branch(name),
            base=opened.commit if opened else effect.base,
            state=project.state,
            written=[project.settings.forge.plans],
            copied=prepared.copied,
            confined=sandbox.enough(level, Level.LANDLOCK),  # it cannot write outside its worktree
            allowed=project.settings.workspace.own_changes == "allow",
        )

    def _policy(self, profile: Profile, effect: RunAgent) -> Policy:
        project, sandboxing = self._project, self._project.settings.sandbox
        confine = sandboxing.reading if effect.access is Access.READ else sandboxing.writing
        return confine(
            self._worktrees.path(effect.worktree),
            project.root,
            state=project.state,
            own=self._places(profile.writes),
            visible=self._places(profile.reads),
        )

    def _variables(self, profile: Profile) -> dict[str, str]:
        extra = {name: os.environ[name] for name in profile.inherit if name in os.environ}
        root = str(self._project.root)
        return extra | {key: value.replace("${root}", root) for key, value in profile.env.items()}

    def _places(self, named: Sequence[str]) -> list[Path]:
        """The paths of a profile on this machine; one that names an unset variable is none."""
        known = dict(os.environ) | {"root": str(self._project.root)}
        meant = [name for name in named if all(known.get(variable) for variable in VARIABLE.findall(name))]
        return [Path(VARIABLE.sub(lambda match: known[match[1]], name)).expanduser() for name in meant]
