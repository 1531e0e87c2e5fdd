"""
The agents of this machine and of this project: which are there, and adding and removing ones of one's own.

An agent of one's own is a table in `planforge.toml`: see `settings_file` for how that is changed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from planforge.actions import Action, see
from planforge.agents import homes, programs, roster
from planforge.agents.known import KNOWN
from planforge.agents.profiles import NAME, REHEARSAL, Profile
from planforge.agents.programs import Found, Memory
from planforge.app.agents import settings_file
from planforge.app.places import SETTINGS
from planforge.app.settings import AgentSettings, agents_named
from planforge.documents import toml
from planforge.errors import InvalidInput, NotFound, PlanforgeError
from planforge.kernel.effects import Access
from planforge.workspace import sandbox

if TYPE_CHECKING:
    from planforge.app.project import Project

NOWHERE = "http://127.0.0.1:9"
"""A server that is not there, for an agent that is only started."""
AT_ONCE = 4
TABLE = ("agents", "profiles")


class AgentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent."""

    name: str
    found: bool
    program: str
    """What must be on PATH."""
    path: str = ""
    real: str = ""
    """The file that is, once all links are followed."""
    sha256: str = ""
    version: str = ""
    version_seconds: float | None = None
    """How long it took to say its version."""
    startup_seconds: float | None = None
    """How long it took until it could be talked to, when that was last measured."""
    login: str = ""
    """`yes (file)`, `yes (variable)`, `no` or `unknown`."""
    login_command: str = ""
    speaks: str
    vendor: str = ""
    own: bool = False
    """The settings say something about it."""
    by_name: bool = False
    """It is never taken unless somebody names it."""
    roles: tuple[str, ...] = ()
    """The roles that the settings give to it; `default` is every other one."""
    install: str = ""
    """How to get it."""


class AgentList(msgspec.Struct, frozen=True, kw_only=True):
    """All agents, and how they would be confined."""

    schema_version: int = 1
    agents: tuple[AgentRow, ...]
    names: dict[str, tuple[str, ...]]
    """Names that stand for the first of several that is installed."""
    sandbox: str
    """The level at which agents are confined here; empty if none may be started."""
    sandbox_problem: str = ""
    strongest: str
    """The firmest level that works on this machine."""


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that was taken out of the settings."""

    schema_version: int = 1
    name: str
    settings: str
    text: str
    """The table that was taken out, or added; put back, it is as it was."""


class Added(Removed, frozen=True, kw_only=True):
    """An agent that was added to the settings."""

    found: str
    """Where its program is; empty if it is not on PATH."""


# Looking


def listed(project: Project | None, *, measure: bool = False) -> AgentList:
    """Every agent that is known or set, with what is known of its program here."""
    settings = project.settings if project else None
    agents = settings.agents if settings else AgentSettings()
    every = roster.every(agents.profiles)
    memory = Memory(project.state / programs.CACHE if project else None)
    real = {name: profile for name, profile in every.items() if profile.command}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(real, pool.map(lambda one: programs.find(one, memory), real.values()), strict=True))
    if measure and project:
        _measure(project, {name: real[name] for name in real if found[name]}, memory)
        found = {name: programs.find(profile, memory) for name, profile in real.items()}
    memory.keep()
    roles = _roles(agents, every, [name for name in real if found[name]])
    rows = (_row(name, profile, found[name], agents, roles) for name, profile in real.items())
    level, problem = _level(settings.sandbox if settings else sandbox.Sandboxing())
    return AgentList(
        agents=tuple(rows),
        names={name: profile.either for name, profile in every.items() if profile.either},
        sandbox=level,
        sandbox_problem=problem,
        strongest=sandbox.strongest().value,
    )


def _row(
    name: str,
    profile: Profile,
    found: Found | None,
    agents: AgentSettings,
    roles: Mapping[str, Sequence[str]],
) -> AgentRow:
    program = found or Found(path="", real="", sha256="")
    return AgentRow(
        name=name,
        found=found is not None,
        program=profile.program,
        path=program.path,
        real=program.real,
        sha256=program.sha256,
        version=program.version,
        version_seconds=program.seconds,
        startup_seconds=program.startup,
        login=programs.login(profile) if name != REHEARSAL else "",
        login_command=profile.login_command,
        speaks=profile.speaks,
        vendor=profile.vendor,
        own=name in agents.profiles,
        by_name=profile.by_name,
        roles=tuple(roles.get(name, ())),
        install=profile.install,
    )


def _roles(
    agents: AgentSettings, every: Mapping[str, Profile], installed: Sequence[str]
) -> dict[str, list[str]]:
    """Which roles go to which agent that is installed."""
    roles: dict[str, list[str]] = {}
    first = next((name for name in installed if not every[name].by_name), "")
    for role, wanted in [("default", agents.default), *agents.roles.items()]:
        candidates = (
            (every[wanted].either or (wanted,)) if wanted in every else ((first,) if not wanted else ())
        )
        taken = next((name for name in candidates if name in installed), "")
        if taken:
            roles.setdefault(taken, []).append(role)
    return roles


def _level(sandboxing: sandbox.Sandboxing) -> tuple[str, str]:
    try:
        return sandboxing.chosen().value, ""
    except PlanforgeError as error:
        return "", error.message


def _measure(project: Project, real: Mapping[str, Profile], memory: Memory) -> None:
    """Start each agent that can be talked to at once, one after the other, and see how long it takes."""
    for name, profile in real.items():
        if profile.speaks != "acp" or name == REHEARSAL:
            continue
        place = homes.place(project.state, "measuring", "start-up", name)
        try:
            furnished = homes.prepare(
                place, profile, access=Access.READ, root=project.root, cwd=project.root, endpoint=NOWHERE
            )
            seconds = programs.start_up(furnished, furnished.home)
        finally:
            homes.remove(place)
        if seconds is not None:
            programs.started_in(profile, memory, seconds)


# Adding and removing


def add(
    project: Project,
    name: str,
    command: Sequence[str],
    *,
    speaks: str = "acp",
    vendor: str = "",
    env: Mapping[str, str] | None = None,
    inherit: Sequence[str] = (),
    login: Sequence[str] = (),
) -> Added:
    """Write an agent into the settings."""
    said: dict[str, Any] = {"command": list(command)}
    said |= {"speaks": speaks} if speaks != "acp" else {}
    said |= {"vendor": vendor} if vendor else {}
    said |= {"env": dict(env)} if env else {}
    said |= {"inherit": list(inherit)} if inherit else {}
    said |= {"login": list(login)} if login else {}
    _require_new(project, name, command)
    text = settings_file.add(project, (*TABLE, name), said)
    return Added(name=name, settings=SETTINGS, text=text, found=shutil.which(command[0]) or "")


def remove(project: Project, name: str) -> Removed:
    """Take an agent out of the settings, unless somebody relies on it."""
    agents = project.settings.agents
    if name not in agents.profiles:
        if name in KNOWN:
            raise InvalidInput(
                f"`{name}` is known to Planforge, and `{SETTINGS}` says nothing about it",
                "another `agents.default` or `agents.roles` keeps it from being used",
            )
        raise NotFound(f"`{SETTINGS}` has no agent `{name}`", see("agent list"))
    users = [toml.dotted(key) for key, one in agents_named(agents) if one == name]
    if name not in KNOWN and users:
        raise InvalidInput(
            f"agent `{name}` is in use: {', '.join(f'`{user}`' for user in users)}",
            f"give that another agent in `{SETTINGS}` first",
        )
    return Removed(name=name, settings=SETTINGS, text=settings_file.remove(project, (*TABLE, name)))


def _require_new(project: Project, name: str, command: Sequence[str]) -> None:
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"`{name}` is no name for an agent", "small letters, digits, `-` and `_`, such as `my-agent`"
        )
    if name in KNOWN:
        raise InvalidInput(
            f"`{name}` is known to Planforge",
            f"choose another name, or override it under `[agents.profiles.{name}]` in `{SETTINGS}`",
        )
    if not command:
        example = Action("agent add", name, "--", "my-agent", "--acp")
        raise InvalidInput("say how it is started, after `--`", example)
    _ = project.settings  # what cannot be read is not added to
