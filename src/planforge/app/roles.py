"""Roles as a person sees them: which there are, who plays each, with which model, and what it is told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from planforge.agents import tiers
from planforge.agents.profiles import choose
from planforge.app import settings as settings_of
from planforge.app.contexts import library_at
from planforge.errors import NoAgent

if TYPE_CHECKING:
    from pathlib import Path

    from planforge.agents.roles import Library, Role
    from planforge.app.settings import AgentSettings


class RoleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of roles."""

    role: str
    persona: str
    skills: tuple[str, ...]
    access: str
    output: str
    tier: str
    agent: str
    """Who plays it here; empty if nobody can."""
    model: str
    """The model that is asked for; empty if the agent takes its own."""
    source: str


class RoleView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one role."""

    row: RoleRow
    why: str
    """Why it gets the model that it gets."""
    architecture: bool
    summaries: str
    overlay: bool
    lessons: bool
    sources: tuple[tuple[str, str], ...]
    """The texts that it comes from, with their hashes."""
    block: str
    """What an agent that plays it is told about it."""


def listed(root: Path) -> list[RoleRow]:
    """Every role at `root`; one whose persona or skills are missing fails here as it would in a run."""
    settings, found = _known(root)
    found.require(found.roles)
    return [_row(settings, role)[0] for role in found.roles.values()]


def show(root: Path, name: str) -> RoleView:
    """One role."""
    settings, found = _known(root)
    role = found.role(name)
    row, why = _row(settings, role)
    block = found.block(name, settings.persona_mode)
    return RoleView(
        row=row,
        why=why,
        architecture=role.architecture,
        summaries=role.summaries,
        overlay=role.overlay,
        lessons=role.lessons,
        sources=tuple((source.path, source.hash) for source in block.sources),
        block=block.text,
    )


def _known(root: Path) -> tuple[AgentSettings, Library]:
    """What the settings say of agents, and the roles that there are; neither needs a repository."""
    settings = settings_of.read(root).agents
    return settings, library_at(root, settings.roles_directory)


def _row(settings: AgentSettings, role: Role) -> tuple[RoleRow, str]:
    wanted = settings.of(role.name)
    agent, model, why = "", "", "there is no agent"
    try:
        agent, profile = choose(wanted, settings.profiles)
    except NoAgent as error:
        why = error.message
    else:
        choice = tiers.resolve(role.name, role.tier, profile, settings.overrides(wanted, agent), os.environ)
        model, why = choice.model or choice.shown, choice.why
    row = RoleRow(
        role=role.name,
        persona=role.persona,
        skills=role.skills,
        access=role.access.value,
        output=role.output,
        tier=role.tier,
        agent=agent,
        model=model,
        source=role.source,
    )
    return row, why
