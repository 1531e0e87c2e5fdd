"""
A repository to try an agent in: made for it alone, and removed with everything in it.

The agent is started as in any run: with a private home, confined, in a worktree, watched.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.agents import homes
from planforge.agents.profiles import REHEARSAL, Profile, Way
from planforge.agents.protocol import Task
from planforge.app.agents.calls import put
from planforge.app.agents.conformance.script import SCRIPT
from planforge.app.agents.permissions import Permissions
from planforge.app.agents.workplace import Workroom
from planforge.app.project import Project
from planforge.app.settings import Settings
from planforge.kernel.effects import Access, AgentAnswer, RunAgent
from planforge.testing.model_server import ModelServer
from planforge.workspace.git import Git
from planforge.workspace.worktrees import Worktrees

if TYPE_CHECKING:
    from planforge.testing.model_server import ModelServer

RUN = "run-001"
FILES = {"README.md": "# A repository to try an agent in\n"}
SCRIPTED = "scripted-1"
EPOCH = "1970-01-01T00:00:00+00:00"


class Scratch:
    """Where one agent is asked."""

    def __init__(
        self, project: Project, commit: str, name: str, profile: Profile, server: ModelServer | None
    ) -> None:
        self.name = name
        self.profile = profile
        self.server = server
        """Who stands behind it; None is its own service, or nobody where it needs none."""
        self.model = _model(profile, server)
        """The one that it is told to ask; empty is its own choice."""
        self.project = project
        self._commit = commit
        self._room = Workroom(project, Worktrees(project.git, project.state, RUN))
        self.startup: float | None = None
        """How long it took from starting the agent to its first request or its first word."""

    def path(self, worktree: str) -> Path:
        """Where a worktree is."""
        return self._room.path(worktree)

    async def ask(
        self,
        worktree: str,
        prompt: str,
        *,
        access: Access = Access.WRITE,
        session: str = "",
        seconds: float = 120.0,
        idle_seconds: float = 0.0,
    ) -> AgentAnswer:
        """Put one task to the agent; the same worktree is the same conversation."""
        effect = RunAgent(
            role="conformance", access=access, worktree=worktree, base=self._commit, prompt=prompt
        )
        place = homes.place(self.project.state, RUN, worktree, self.name)
        async with self._room.at_work(
            self.name, self.profile, effect, home=place, anew=False, going_on=bool(session)
        ) as bench:
            began = time.time()

            async def launch(
                argv: Sequence[str], *, env: Mapping[str, str], cwd: Path
            ) -> asyncio.subprocess.Process:
                nonlocal began
                began = time.time()
                return await bench.launch(argv, env=env, cwd=cwd)

            def heard(what: str) -> None:
                del what
                self._note_start(began)

            task = Task(
                prompt=prompt,
                access=access,
                model=self.model,
                session=session,
                seconds=seconds,
                idle_seconds=idle_seconds,
            )
            try:
                return await put(
                    self.name,
                    self.profile,
                    task,
                    msgspec.structs.replace(bench, launch=launch),
                    home=place,
                    root=self.project.root,
                    endpoint=self.server.url if self.server else "",
                    permit=Permissions(self.name, access, cwd=bench.cwd, own=[place]),
                    heard=heard,
                )
            finally:
                self._note_start(began)

    def _note_start(self, began: float) -> None:
        if self.startup is None:
            asked = [request.at for request in self.server.requests] if self.server else []
            self.startup = max((min(asked) if asked else time.time()) - began, 0.0)

    def running(self, worktree: str) -> list[str]:
        """The programs that the agent has left running, each by what it is called."""
        home = homes.place(self.project.state, RUN, worktree, self.name)
        marks = (os.fsencode(self.path(worktree)), os.fsencode(home))
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                if int(directory.name) == os.getpid():
                    continue
                here = os.fsencode((directory / "cwd").readlink())
                known = here + b"\0" + (directory / "environ").read_bytes()
                if any(mark in known for mark in marks):
                    found.append((directory / "comm").read_text().strip())
            except OSError:  # it has ended, or is not ours
                continue
        return found


def _model(profile: Profile, server: ModelServer | None) -> str:
    """A made-up one for the scripted server: known ones are given other tools by some programs."""
    if not profile.tiers:
        return ""
    return SCRIPTED if server else profile.tiers.get("balanced", "")


def can_be_scripted(name: str, profile: Profile) -> bool:
    """Whether the agent can be had to follow a script: on its own, or by the model that it asks."""
    return plays(name, profile) or profile.endpoint != Way()


def plays(name: str, profile: Profile) -> bool:
    """Whether it is the rehearsal agent, under whatever name."""
    return name == REHEARSAL or "planforge.testing.rehearsal" in profile.command


@contextlib.asynccontextmanager
async def scratch(
    name: str, profile: Profile, settings: Settings, *, live: bool, level: str = ""
) -> AsyncIterator[Scratch]:
    """A repository to try an agent in, and the scripted model behind it unless it is `live`."""
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="planforge-", ignore_cleanup_errors=True)
        )
        root = Path(directory).resolve() / "scratch"
        project, commit = await asyncio.to_thread(_made, root, settings, level)
        stack.callback(project.ledger.close)
        server = None
        if plays(name, profile):
            path = root.parent / "script.json"
            path.write_text(json.dumps(SCRIPT))
            profile = _playing(profile, path)
        elif not live:
            server = stack.enter_context(ModelServer(SCRIPT))
        yield Scratch(project, commit, name, profile, server)


def _made(root: Path, settings: Settings, level: str) -> tuple[Project, str]:
    root.mkdir()
    git = Git(root / ".git", root)
    git.run("init", "--quiet", "--initial-branch=main", str(root), work_tree=root)
    for path, text in FILES.items():
        (root / path).write_text(text)
    project = Project.create(root)
    sandboxing = msgspec.structs.replace(settings.sandbox, level=level or settings.sandbox.level)
    project.settings = Settings(sandbox=sandboxing)
    git.run("add", "--", *FILES, work_tree=root)
    commit = git.commit_tree(git.line("write-tree", work_tree=root), [], "To try an agent in\n", EPOCH)
    git.move_ref("refs/heads/main", commit, git.ref("refs/heads/main"))
    return project, commit


def _playing(profile: Profile, script: Path) -> Profile:
    """The rehearsal agent with our script, and with what it can do that the script says of it."""
    return msgspec.structs.replace(
        profile,
        env=profile.env | {"PLANFORGE_REHEARSAL_SCRIPT": str(script)},
        reads=(*profile.reads, str(script)),
        read=Way(mode="read"),
        write=Way(mode="write"),
        resume="resume",
    )
