"""
The demo: a new repository, the whole story in it, and nothing outside it.

The run is recorded before the sample project is made, so that a demo which was
killed at any moment can be resumed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from planforge.actions import Action, Advice
from planforge.agents.profiles import Way
from planforge.agents.roster import choose
from planforge.app import runs
from planforge.app.agents.casting import Cast
from planforge.app.demo import story
from planforge.app.plans.work import today
from planforge.app.project import Project
from planforge.errors import InvalidInput, NotFound, RefusedByGate
from planforge.kernel import directories
from planforge.kernel.effects import AskHuman, Reply, Tip
from planforge.kernel.events import ItemOpened
from planforge.kernel.objects import write_atomically
from planforge.testing.model_server import ModelServer
from planforge.workflows.demo import DemoRequest, MakeSample
from planforge.workspace.git import Git
from planforge.workspace.sandbox import Level, strongest

if TYPE_CHECKING:
    from planforge.kernel.driver import Call

DIRECTORY = "planforge-demo"
SCRIPT = "rehearsal/script.json"
CAST = "rehearsal/cast.json"
"""Who plays, if not the rehearsal agent; beside the ledger, so that the sample project stays the same."""
SLOWEST = 600
"""How many seconds a scene may take at most."""
VISITOR = "Demo Visitor (rehearsed)"
ABLE = "import sys, unittest; sys.exit(sys.version_info < (3, 8))"
"""Whether a Python can run the tests of the sample project."""
PATIENCE = 30.0
PLAN_FILE = "docs/plans/plan-001-common-words-and-reading-time.md"


class Player(msgspec.Struct, frozen=True, kw_only=True):
    """A real agent that plays the demo."""

    agent: str
    live: bool
    """Whether its own service answers; otherwise the script does, in the place of a model."""


def begin(directory: Path | None, *, pace: float, agent: str = "", live: bool = False) -> tuple[Project, str]:
    """Make the new repository and record the run, which a real `agent` may play; nothing is played yet."""
    if not 0 <= pace <= SLOWEST:  # which what is no number is not either
        raise InvalidInput(f"`--pace` is a number of seconds from 0 to {SLOWEST}")
    if agent:
        _require_able(agent, live=live)
    was_there = directory is not None and directory.exists()
    place = _new_directory(directory)
    try:
        return _begun(place, pace=pace, agent=agent, live=live)
    except BaseException:
        if not was_there:
            directories.remove(place)
        raise


def _begun(place: Path, *, pace: float, agent: str, live: bool) -> tuple[Project, str]:
    _git_init(place)
    project = Project.create(place)
    (project.state / SCRIPT).parent.mkdir()
    write_atomically(project.state / SCRIPT, story.script(pace).encode())
    if agent:
        player = Player(agent=agent, live=live)
        write_atomically(project.state / CAST, msgspec.json.encode(player))
    created = ItemOpened(item="plan-001", title=story.TITLE, request=story.REQUEST, path=PLAN_FILE)

    def asked(run: str) -> DemoRequest:
        return DemoRequest(
            plan=created.item,
            run=run,
            path=PLAN_FILE,
            title=story.TITLE,
            request=story.REQUEST,
            today=today(),
        )

    return project, runs.begin(project, "demo", created.item, asked, created)


def _require_able(agent: str, *, live: bool) -> None:
    """Refuse before anything is made: an agent that is missing, unconfined, or cannot play a script."""
    name, profile = choose(agent, {})
    if not live and profile.endpoint == Way():
        raise InvalidInput(
            f"agent `{name}` cannot be pointed at a scripted server",
            Advice("{} has it ask its own service", Action("demo", agent=agent, live=True)),
        )
    if is_open():
        raise RefusedByGate(
            f"no sandbox works on this machine, and agent `{name}` is not started without one",
            Advice("see why with {}; or play without it: {}", Action("doctor"), Action("demo")),
        )


def _python() -> str:
    """The Python that checks the sample project: that of PATH, or ours if that one cannot be used."""
    try:
        subprocess.run([story.PYTHON, "-c", ABLE], capture_output=True, check=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError):
        return sys.executable
    return story.PYTHON


def is_open() -> bool:
    """Whether nothing can be confined on this machine."""
    return strongest() is Level.NONE


@contextmanager
def staged(project: Project, subject: str) -> Iterator[Cast | None]:
    """Who plays a run of the demo, with the scripted server behind it for as long as that lasts."""
    del subject
    path = project.state / CAST
    if not path.exists():
        yield None
        return
    player = msgspec.json.decode(path.read_bytes(), type=Player)
    if player.live:
        yield Cast(agent=player.agent)
        return
    with ModelServer(project.state / SCRIPT) as server:
        yield Cast(agent=player.agent, endpoint=server.url)


def _new_directory(wanted: Path | None) -> Path:
    place = wanted or _free_name()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        hint = Advice(
            "run {} in it if a demo was interrupted there, or name another directory", Action("resume")
        )
        raise InvalidInput(f"`{place}` is there already and not empty", hint)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotFound(f"cannot make `{place}`: {error.strerror}") from error
    return place.resolve()


def _free_name() -> Path:
    number = 1
    while (place := Path.cwd() / (DIRECTORY if number == 1 else f"{DIRECTORY}-{number}")).exists():
        number += 1
    return place


def _git_init(place: Path) -> None:
    Git(place / ".git", place).run("init", "--quiet", "--initial-branch=main", str(place), work_tree=place)


def performers(project: Project, run: str) -> dict[Any, Callable[[Any, Call], Awaitable[object]]]:
    """Who does what only the demo asks for, and who answers in the place of a person."""
    del run
    return {MakeSample: partial(make_sample, project), AskHuman: _approve}


async def make_sample(project: Project, effect: MakeSample, call: Call) -> Tip:
    """Write the sample project and commit it. Done twice, it makes the same commit."""
    del effect
    git, root = project.git, project.root
    files = story.files(python=_python(), unconfined=is_open())
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    git.run("add", "--", *files, work_tree=root)
    tree = git.line("write-tree", work_tree=root)
    commit = git.commit_tree(tree, [], "A sample project\n", call.intended_at)
    git.move_ref("refs/heads/main", commit, git.ref("refs/heads/main"))
    return Tip(commit=commit)


async def _approve(effect: AskHuman, call: Call) -> Reply:
    """The person of the demo says yes."""
    del call
    return Reply(answer=effect.options[0], actor=VISITOR)
